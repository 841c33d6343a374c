package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// useUp takes every connection of a pool, as a host does that forgets to give them back.
func useUp(t *testing.T, pool *pgxpool.Pool) (giveBack func()) {
	t.Helper()
	var held []*pgxpool.Conn
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(t.Context())
		must(t, err)
		held = append(held, conn)
	}
	var once sync.Once
	giveBack = func() {
		once.Do(func() {
			for _, conn := range held {
				conn.Release()
			}
		})
	}
	t.Cleanup(giveBack)
	return giveBack
}

// inEachMode tests a node that has all shards, in each lease mode, with a noticing pool of so
// many connections. What its loops ask ends when it comes to wait for the pool.
func inEachMode(t *testing.T, conns int32, test func(*testing.T, *pgxpool.Pool, *actor)) {
	for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t, pgtest.MaxConns(conns), noticing())
			s := openOn(t, pool, postgres.Config{LeaseMode: mode})
			a := own(t, s, inc(t, "a"), 2)
			a.ctx = impatient(t, a.ctx)
			test(t, pool, a)
		})
	}
}

// reserves counts the reserve connections that the server has for a store.
func reserves(t *testing.T, s *postgres.Store) int {
	t.Helper()
	return ask[int](t, pgtest.SharedPool(t), "select count(*)::int from pg_stat_activity where application_name like 'xxljob reserve %' and application_name like '%' || right($1, 20)", postgres.SchemaOf(s))
}

// lines are what a store has logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(of string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), of)
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// TestPeopleLeaveConnections has more people ask at the same time than the pool has connections, each of a table
// that somebody has locked: there is a connection for others at once, and none has to wait for one.
func TestPeopleLeaveConnections(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.MaxConns(4))
	s := openOn(t, pool, postgres.Config{})
	useUp(t, pool)() // each is made by now
	lock, err := pgtest.SharedPool(t).Begin(t.Context())
	must(t, err)
	defer lock.Rollback(context.Background())
	_, err = lock.Exec(t.Context(), fmt.Sprintf("lock table %q.xxl_job_info in access exclusive mode", postgres.SchemaOf(s)))
	must(t, err)
	waited := pool.Stat().EmptyAcquireCount()
	var people sync.WaitGroup
	for i := range 12 {
		people.Go(func() {
			if _, err := s.Job(store.WithClient(t.Context(), "10.0.0.1:99", fmt.Sprint("request ", i)), 1); !errors.Is(err, store.ErrNotFound) {
				t.Error(err)
			}
		})
	}
	await.Until(t, "as many ask as may at a time", func() bool { return pool.Stat().AcquiredConns() >= 3 })
	for range 20 {
		_, err := s.Now(t.Context())
		must(t, err)
	}
	must(t, lock.Rollback(t.Context()))
	people.Wait()
	if n := pool.Stat().EmptyAcquireCount() - waited; n > 0 {
		t.Errorf("%d calls waited for a connection", n)
	}
}

// TestSharesOfPeople: a quarter of a pool of any size is left for others.
func TestSharesOfPeople(t *testing.T) {
	if got := postgres.OfPeople(1); got != 1 {
		t.Errorf("of a single connection people have %d", got)
	}
	for most := int32(2); most < 100; most++ {
		if got := postgres.OfPeople(most); got < 1 || 4*(most-got) < most || 4*(most-got) >= most+4 {
			t.Errorf("of %d connections people have %d", most, got)
		}
	}
}

// TestReserve lets the host have all connections of the pool: what a node asks of the
// store it does all the same, in either mode, with a pool of four and with one of one.
func TestReserve(t *testing.T) {
	t.Parallel()
	for _, conns := range []int32{1, 4} {
		t.Run(fmt.Sprintf("pool of %d", conns), func(t *testing.T) {
			if conns > 1 && testing.Short() {
				t.Skip("another pool; leave out -short")
			}
			inEachMode(t, conns, func(t *testing.T, pool *pgxpool.Pool, a *actor) {
				s := a.Store
				watch, stop := context.WithCancel(t.Context())
				defer stop()
				s.Watch(watch, a.inc)
				job, second := a.job(), a.job()
				giveBack := useUp(t, pool)
				run := a.started(job)
				accepted, err := s.Finish(a.ctx, nil, []store.Result{result(run)})
				must(t, err)
				if len(accepted) != 1 || accepted[0].State != store.StateSucceeded {
					t.Errorf("finished %+v", accepted)
				}
				v := a.beat()
				_, err = s.Scan(a.ctx, store.ScanResult{}, store.ScanQuery{Shards: a.shards, Before: time.Now(), Jobs: 10, Runs: 10})
				must(t, err)
				_, err = s.Inbox(a.ctx, a.inc, 0, 10)
				must(t, err)
				loops(t, a, run)
				if taken, err := s.TakeShards(a.ctx, a.inc, v.Shards); err != nil || len(taken) != 2 {
					t.Errorf("took %+v: %v", taken, err)
				}
				giveBack()
				a.shards = a.beat().Shards
				a.started(second) // the pool again
				stop()
				must(t, s.Leave(a.ctx, a.inc))
				await.Until(t, "the reserve goes with the last node", func() bool { return reserves(t, s) == 0 })
			})
		})
	}
}

// loops lists what the loops of a scheduler list, many at once.
func loops(t *testing.T, s *actor, run store.Run) {
	t.Helper()
	var g sync.WaitGroup
	for range 20 {
		g.Go(func() {
			if jobs, err := s.Jobs(s.ctx, store.JobFilter{IDs: []int64{run.JobID}}); err != nil || len(jobs) != 1 {
				t.Errorf("jobs by id: %+v %v", jobs, err)
			}
		})
		for name, f := range map[string]store.RunFilter{
			"runs of a trigger":          {TriggerID: run.ID},
			"runs of a job in one state": {JobID: run.JobID, States: []store.State{store.StateSucceeded}},
		} {
			g.Go(func() {
				if runs, err := s.Runs(s.ctx, f); err != nil || len(runs) != 1 {
					t.Errorf("%s: %+v %v", name, runs, err)
				}
			})
		}
	}
	g.Wait()
}

// TestTurns: those who wait for the reserve have it in their order, and who leaves keeps
// nobody waiting, also where it leaves when its turn has come.
func TestTurns(t *testing.T) {
	var turns postgres.Turns
	came := func(turn chan struct{}) bool {
		select {
		case <-turn:
			return true
		default:
			return false
		}
	}
	first, second, third, fourth := turns.Ask(), turns.Ask(), turns.Ask(), turns.Ask()
	if !came(first) || came(second) || came(third) || came(fourth) {
		t.Fatal("the turn is not the first one's alone")
	}
	turns.Leave(second)
	turns.Done() // of the first
	if !came(third) || came(second) || came(fourth) {
		t.Fatal("the turn is not the third one's alone, though the second has left")
	}
	turns.Leave(third)
	if !came(fourth) {
		t.Fatal("who left when its turn had come has kept it")
	}
	turns.Done()
	if !came(turns.Ask()) {
		t.Fatal("nobody has the turn, and it is not to be had")
	}
}

// TestReserveIsThereAhead of the need, and goes with the store.
func TestReserveIsThereAhead(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	s.Watch(t.Context(), "watcher")
	await.Until(t, "there is a reserve", func() bool { return reserves(t, s) == 1 })
	s.Close()
	await.Until(t, "the reserve is closed with the store", func() bool { return reserves(t, s) == 0 })
}

// TestReserveWithoutANode: a call that comes late, when the last node has left, or when
// there never was one, may have a reserve, and leaves none behind.
func TestReserveWithoutANode(t *testing.T) {
	t.Parallel()
	inEachMode(t, 1, func(t *testing.T, pool *pgxpool.Pool, a *actor) {
		s := a.Store
		call := func(when string) {
			t.Helper()
			defer useUp(t, pool)()
			if _, err := s.Now(a.ctx); err != nil {
				t.Errorf("a call %s: %v", when, err)
			}
		}
		gone := func() bool { return reserves(t, s) == 0 }
		call("before there is a node")
		await.Until(t, "no reserve is left of a call before there is a node", gone)
		watch, stop := context.WithCancel(t.Context())
		s.Watch(watch, a.inc)
		await.Until(t, "there is a reserve", func() bool { return reserves(t, s) == 1 })
		stop()
		must(t, s.Leave(a.ctx, a.inc))
		await.Until(t, "the reserve goes with the last node", gone)
		call("after the last node has left")
		await.Until(t, "no reserve is left of a call after the last node", gone)
		s.Close()
		defer useUp(t, pool)()
		if _, err := s.Now(a.ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a call after Close: %v", err)
		}
		await.Until(t, "no reserve is made after Close", gone)
	})
}

// TestTheReserveIsEverybodys who watches the store: it goes with the last of them, be it
// that one comes as another goes.
func TestTheReserveIsEverybodys(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	var keepers [2]struct {
		stop func()
		over sync.WaitGroup
	}
	for i := range keepers {
		ctx, stop := context.WithCancel(t.Context())
		keepers[i].stop = stop
		keepers[i].over.Go(func() { postgres.KeepReserve(ctx, s) })
		defer keepers[i].over.Wait()
		defer stop()
		await.Until(t, "there is a reserve, which both keep in the end", func() bool {
			return reserves(t, s) == 1 && postgres.KeepersOfReserve(s) == i+1
		})
	}
	giveBack, ok := postgres.HoldReserve(t.Context(), s) // the second one is behind this, or has had its turn
	if !ok {
		t.Fatal("no reserve")
	}
	backend := backendOf(t, s)
	giveBack()
	keepers[0].stop()
	keepers[0].over.Wait()
	if n := reserves(t, s); n != 1 || backendOf(t, s) != backend {
		t.Errorf("%d reserves are left to the other", n)
	}
	keepers[1].stop()
	keepers[1].over.Wait()
	await.Until(t, "the reserve goes with the last", func() bool { return reserves(t, s) == 0 })
}

// TestAReserveInUse keeps neither Close nor Leave waiting, and goes when it is given back.
func TestAReserveInUse(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, inc(t, "a"), 2)
	giveBack, ok := postgres.HoldReserve(t.Context(), s)
	if !ok {
		t.Fatal("no reserve")
	}
	giveBack = sync.OnceFunc(giveBack)
	t.Cleanup(giveBack) // or Close would wait for it after a failure
	watch, stop := context.WithCancel(t.Context())
	s.Watch(watch, a.inc)
	stop()
	over := make(chan error, 1)
	for _, c := range []struct {
		what string
		call func() error
	}{
		{"Leave", func() error { return s.Leave(a.ctx, a.inc) }},
		{"Close", func() error { s.Close(); return nil }},
	} {
		go func() { over <- c.call() }()
		await.Until(t, c.what+" ends while the reserve is in use", func() bool { return len(over) == 1 })
		must(t, <-over)
	}
	giveBack()
	await.Until(t, "the reserve goes with its last use", func() bool { return reserves(t, s) == 0 })
}

// TestReserveThatBroke is made anew before it is needed for a call.
func TestReserveThatBroke(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.MaxConns(2))
	s := openOn(t, pool, postgres.Config{})
	a := own(t, s, inc(t, "a"), 2)
	s.Watch(t.Context(), a.inc)
	job := a.job()
	useUp(t, pool)
	run := a.planned(job)
	kill(t, backendOf(t, s))
	postgres.ReserveIsStale(s)
	answers, err := s.Start(a.ctx, nil, []store.Start{a.startOf(run, job.Version)})
	must(t, err)
	if answers[0].Status != store.StartOK {
		t.Errorf("status %d", answers[0].Status)
	}
}

// TestWithoutReserve: what fails for want of a connection says how many are in use; and
// so does what the host itself asks for, which leaves the reserve alone.
func TestWithoutReserve(t *testing.T) {
	t.Parallel()
	const want = "4 of 4 connections of the pool are in use"
	pool := pgtest.Pool(t, pgtest.MaxConns(4), noticing())
	s := openOn(t, pool, postgres.Config{NoReserve: true})
	a := own(t, s, inc(t, "a"), 2)
	job := a.job()
	run := a.planned(job)
	giveBack := useUp(t, pool)
	for name, call := range map[string]func(context.Context) error{
		"claim": func(ctx context.Context) error { _, err := s.Claim(ctx, nil, []store.Plan{a.plan(job)}); return err },
		"start": func(ctx context.Context) error {
			_, err := s.Start(ctx, nil, []store.Start{a.startOf(run, job.Version)})
			return err
		},
		"finish": func(ctx context.Context) error {
			_, err := s.Finish(ctx, nil, []store.Result{result(run)})
			return err
		},
		"list": func(ctx context.Context) error { _, err := s.Runs(ctx, store.RunFilter{}); return err },
	} {
		if err := call(impatient(t, a.ctx)); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	giveBack()
	with := openOn(t, pool, postgres.Config{})
	b := own(t, with, inc(t, "b"), 2)
	job = b.job()
	useUp(t, pool)
	if _, err := with.AddRun(impatient(t, t.Context()), job.ID, store.Trigger{}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), want) {
		t.Errorf("a trigger of the host's while it has all connections: %v", err)
	}
	b.planned(job)
}

// TestANodeWithoutThePoolGivesUpItsShards, and says why: what that takes goes over its lock
// connection. By an attempt that changes nothing it finds out when there is room again.
func TestANodeWithoutThePoolGivesUpItsShards(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.MaxConns(2), noticing())
	s := openOn(t, pool, postgres.Config{NoReserve: true})
	a := own(t, s, inc(t, "a"), 2)
	attempt := func(ctx context.Context) error {
		_, err := s.Claim(ctx, nil, []store.Plan{{}})
		if err == nil {
			_, err = s.Start(ctx, nil, []store.Start{{State: store.StateStarted, Owner: a.inc, Address: store.LocalAddress(a.inc)}})
		}
		return err
	}
	must(t, attempt(a.ctx))
	giveBack := useUp(t, pool)
	wantText(t, attempt(impatient(t, a.ctx)), "2 of 2 connections of the pool are in use")
	ctx := impatient(t, a.ctx)
	must(t, s.SetFailing(ctx, a.inc, true))
	must(t, s.ReleaseShards(ctx, a.inc, a.shards))
	v := a.beat()
	if !v.Nodes[0].Failing || free(v) != 2 || locksOf(t, holder(t, a.inc)) != 0 {
		t.Errorf("node %+v, shards %+v", v.Nodes[0], v.Shards)
	}
	giveBack()
	must(t, attempt(a.ctx))
}

// TestRefusedReserve: a server that gives the role no further connection is a warning,
// once, and the node waits for its pool.
func TestRefusedReserve(t *testing.T) {
	t.Parallel()
	var log lines
	super := superPool(t)
	role := "r_" + strings.ToLower(rand.Text())
	run(t, super, "create role "+role+" login in role "+ask[string](t, pgtest.SharedPool(t), "select current_user::text"))
	t.Cleanup(func() { super.Exec(context.Background(), "drop role "+role) })
	pool := pgtest.Pool(t, pgtest.At(as(t, pgtest.DSN(t), role)), pgtest.MaxConns(2), noticing())
	s := openOn(t, pool, postgres.Config{LeaseMode: postgres.LeaseRow, Logger: log.logger()})
	a := own(t, s, inc(t, "a"), 2)
	job := a.job()
	giveBack := useUp(t, pool)
	run(t, super, "alter role "+role+" connection limit 2")
	for range 2 {
		_, err := s.Claim(impatient(t, a.ctx), nil, []store.Plan{a.plan(job)})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("claim: %v", err)
		}
		wantText(t, err, "2 of 2 connections of the pool are in use")
		postgres.AskForReserveAgain(s)
	}
	if n := log.count("no reserve connection"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.text.String())
	}
	run(t, super, "alter role "+role+" connection limit 3")
	await.Until(t, "there is a reserve", func() bool { // the server may count one that it has refused for a moment yet
		postgres.AskForReserveAgain(s)
		giveBack, ok := postgres.HoldReserve(t.Context(), s)
		if ok {
			giveBack()
		}
		return ok
	})
	var planned []store.Run
	await.Until(t, "a run is started over the reserve", func() bool { // which a server that is slow may have lost by then
		postgres.AskForReserveAgain(s)
		if len(planned) == 0 {
			planned, _ = s.Claim(impatient(t, a.ctx), nil, []store.Plan{a.plan(job)})
		}
		if len(planned) != 1 {
			return false
		}
		got, err := s.Start(impatient(t, a.ctx), nil, []store.Start{a.startOf(planned[0], job.Version)})
		return err == nil && got[0].Status == store.StartOK
	})
	giveBack()
}

// TestLeaveWithoutThePool: a hint that a node has left, which only mode lock sends, is not
// worth a long wait for a pool that the host uses up.
func TestLeaveWithoutThePool(t *testing.T) {
	t.Parallel()
	inEachMode(t, 1, func(t *testing.T, pool *pgxpool.Pool, a *actor) {
		defer useUp(t, pool)()
		before := pool.Stat().CanceledAcquireCount()
		must(t, a.Store.Leave(a.ctx, a.inc))
		if a.ctx.Err() != nil {
			t.Error("it waited for the pool without a bound")
		}
		want := int64(1) // the wait of what then goes over the reserve
		if postgres.Listens(a.Store) {
			want++ // that of the hint
		}
		if n := pool.Stat().CanceledAcquireCount() - before; n != want {
			t.Errorf("it gave up %d waits for the pool, want %d", n, want)
		}
	})
}
