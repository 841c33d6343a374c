//go:build unix

package siege

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/internal/test/siege/judge"
)

// ErrViolated is returned by Run when the honest app was not served as promised.
var ErrViolated = errors.New("siege: the honest app was not served as promised")

const (
	// calm is how long the honest app is alone before the siege, and aftermath how long
	// behind it.
	calm, aftermath = 10 * time.Second, 10 * time.Second
	// settlePatience is how long runs may take to end once no more are due: an open one is
	// lost after 90 s.
	settlePatience = 100 * time.Second
	// lostRuns and hostileJobs are what the hostile app has of its own.
	lostRuns, hostileJobs = 1000, 5
	// surrender is the live heap above which the siege is given up, to spare the machine.
	surrender = 2 << 30
)

// runner is one run of the program.
type runner struct {
	Config
	began   time.Time
	tokens  tokens
	secrets sessions
	pg      *pgtest.Cluster
	dsn     string
	node    *child
	hostile *child // nil where there is no attack
	honest  *honest
	stalls  stalls
	levels  levels
	// besieged is when the siege has begun: what there was before is what it is measured by.
	besieged time.Duration
}

// Run lays siege to a scheduler and prints what came of it. It returns ErrViolated when a
// promise was broken, and another error when the test itself failed.
func Run(ctx context.Context, c Config) (err error) {
	c, err = c.withDefaults()
	if err != nil {
		return err
	}
	r := &runner{Config: c, began: time.Now(), tokens: tokens{Honest: rand.Text(), Hostile: rand.Text()}, secrets: sessions{Admin: rand.Text(), Viewer: rand.Text()}}
	if err := r.open(ctx); err != nil {
		return errors.Join(err, r.close())
	}
	r.printSettings(ctx)
	findings, err := r.run(ctx)
	if err != nil {
		r.printCounts()
		return errors.Join(err, r.close())
	}
	faults := judge.Faults(findings, r.bounds())
	if err := r.close(); err != nil {
		faults = append(faults, err.Error())
	}
	r.printVerdict(faults)
	if len(faults) > 0 {
		return ErrViolated
	}
	return nil
}

// bounds are what is asserted.
func (r *runner) bounds() judge.Bounds {
	b := judge.DefaultBounds()
	idle, _, _ := r.levels.most(judge.Span{From: r.besieged - calm, To: r.besieged}) // as a collection leaves it
	b.Heap = idle + r.HeapBound
	return b
}

// open starts Postgres, the scheduler and both apps.
func (r *runner) open(ctx context.Context) (err error) {
	if r.pg, err = pgtest.New(pgtest.Options{}); err != nil {
		return err
	}
	const role = "siege"
	if _, err := r.pg.Exec(ctx, "postgres", "CREATE ROLE "+role+" LOGIN"); err != nil {
		return err
	}
	if r.dsn, err = r.pg.CreateDatabase(ctx, role, "", role); err != nil {
		return err
	}
	r.node, err = startChild(RoleNode, nodeConfig{DSN: r.dsn, Tokens: r.tokens, Honest: r.Runs, Hostile: hostileJobs, Lost: lostRuns, Sessions: r.secrets, Profiles: r.Profiles}, r.Log, r.news)
	if err != nil {
		return err
	}
	ready, err := r.node.answer(ctx, time.Minute)
	if err != nil {
		return err
	}
	if r.honest, err = newHonest(r.Config, r.tokens.Honest, ready.Admin, r.began); err != nil {
		return err
	}
	r.honest.console, r.honest.page, r.honest.admins = ready.Console, fmt.Sprintf("runs/%d", ready.Heavy), r.secrets.Admin
	if err := r.honest.register(ctx); err != nil {
		return err
	}
	if len(r.Attacks) > 0 {
		r.hostile, err = startChild(RoleHostile, hostileConfig{Admin: ready.Admin, Token: r.tokens.Hostile, Seed: r.Seed, Attacks: r.Attacks, Rates: r.Rates, Lost: ready.Lost, Console: ready.Console, Viewer: r.secrets.Viewer, Heavy: ready.Heavy}, r.Log, r.news)
		if err != nil {
			return err
		}
		if _, err := r.hostile.answer(ctx, 30*time.Second); err != nil {
			return err
		}
	}
	return r.node.ask(ctx, orderJobs, 30*time.Second)
}

// run is the course of events: calm, siege, aftermath.
func (r *runner) run(ctx context.Context) (f judge.Findings, err error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	var loads sync.WaitGroup
	loads.Go(func() { r.honest.beat(working) })
	loads.Go(func() { r.honest.looks(working) })
	defer loads.Wait()
	defer stop()
	r.printHead()
	if err := r.phase(ctx, "calm", calm, calm); err != nil {
		return f, err
	}
	if r.hostile != nil {
		if err := r.hostile.ask(ctx, orderBegin, 10*time.Second); err != nil {
			return f, err
		}
	}
	stalling := make(chan error, 1)
	stalled, stopStalls := context.WithCancel(ctx)
	defer stopStalls()
	go func() {
		if r.StoreStall {
			stalling <- r.stalls.stall(stalled, r.pg.DSN("siege"), r.began)
		}
		close(stalling)
	}()
	f.Siege.From = time.Since(r.began)
	r.besieged = f.Siege.From
	if err := r.phase(ctx, "siege", r.For, r.Row); err != nil {
		return f, err
	}
	f.Siege.To = time.Since(r.began)
	stopStalls()
	if err := <-stalling; err != nil {
		return f, err
	}
	r.printCounts()
	if err := r.endHostile(); err != nil {
		return f, err
	}
	if err := r.phase(ctx, "after", aftermath, aftermath); err != nil {
		return f, err
	}
	if err := r.node.ask(ctx, orderStop, time.Minute); err != nil {
		return f, err
	}
	if f.Runs, err = r.settle(ctx); err != nil {
		return f, err
	}
	f.Heap, f.Goroutines = r.levels.all()
	f.Kinds = r.kinds(f.Siege)
	r.printFindings(f)
	return f, nil
}

// endHostile ends the attacks.
func (r *runner) endHostile() error {
	if r.hostile == nil {
		return nil
	}
	err := r.hostile.close(15 * time.Second)
	r.hostile = nil
	return err
}

// kinds are the requests of the honest app that were due in a span, but for stalls.
func (r *runner) kinds(in judge.Span) []judge.Kind {
	out, h := r.stalls.all(), r.honest
	return []judge.Kind{
		{Name: "heartbeats", Summary: h.beats.Summary(in, out...)},
		{Name: "registrations", Summary: h.guests.Summary(in, out...)},
		{Name: "pages of results", Summary: h.attempts.Summary(in, out...)},
		{Name: "results", Summary: h.results.Summary(in, out...)},
		{Name: "console", Summary: h.seen.Summary(in, out...)},
	}
}

// phase waits, and prints a line for each part of it.
func (r *runner) phase(ctx context.Context, name string, lasts, row time.Duration) error {
	for end := time.Since(r.began) + lasts; ; {
		before := r.usage()
		left := end - before.at
		if left < 100*time.Millisecond {
			return nil
		}
		if left < row+row/2 {
			row = left
		}
		if err := r.watch(ctx, row); err != nil {
			return err
		}
		r.printRow(name, before, r.usage())
	}
}

// watch waits, unless a process ends or too much memory is used.
func (r *runner) watch(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	var hostileEnded chan struct{}
	if r.hostile != nil {
		hostileEnded = r.hostile.ended
	}
	select {
	case <-t.C:
		return nil
	case <-r.levels.tooMuch():
		return fmt.Errorf("%w, and the siege is given up: the live heap has reached %d MiB", ErrViolated, surrender>>20)
	case <-r.node.ended:
		return fmt.Errorf("%w: the scheduler's process has ended: %v", ErrViolated, r.node.cmd.ProcessState)
	case <-hostileEnded:
		return errors.New("siege: the hostile app has ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle waits until the runs of the honest app have ended and their results are
// acknowledged, or for so long that the rest never will, and has the store audited.
func (r *runner) settle(ctx context.Context) (runs judge.Runs, err error) {
	db, err := pgx.Connect(ctx, r.pg.DSN("siege"))
	if err != nil {
		return runs, err
	}
	defer db.Close(context.WithoutCancel(ctx))
	for end := time.Now().Add(settlePatience); time.Now().Before(end); {
		n, err := unended(ctx, db, honestApp)
		if err != nil {
			return runs, err
		}
		if n == 0 && r.honest.pending() == 0 || !pause(ctx, 200*time.Millisecond) {
			break
		}
	}
	accepted, twice := r.honest.sent()
	runs, err = audit(ctx, db, honestApp, accepted)
	runs.Twice, runs.Unacknowledged = twice, r.honest.pending()
	if err == nil {
		err = r.printStates(ctx, db)
	}
	return runs, err
}

// usage is the CPU time that has been used until now.
func (r *runner) usage() usage {
	u := usage{at: time.Since(r.began), hostile: -1}
	u.node, u.honest = cpuOf(r.node.cmd.Process.Pid, false), cpuOf(os.Getpid(), false)
	if r.hostile != nil {
		u.hostile = cpuOf(r.hostile.cmd.Process.Pid, false)
	}
	u.postgres, u.machine = cpuOfPostgres(r.pg.PID()), cpuOfMachine()
	return u
}

// close ends all processes.
func (r *runner) close() error {
	err := r.endHostile()
	if r.node != nil {
		err = errors.Join(err, r.node.close(40*time.Second))
	}
	if r.honest != nil {
		err = errors.Join(err, r.honest.server.Close())
	}
	if r.pg != nil {
		err = errors.Join(err, r.pg.Close())
	}
	return err
}
