package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/asker"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/internal/urgent"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// asked is a call of a method.
type asked struct {
	loops bool // the loops of a scheduler ask it too, so that runs go on
	call  func(context.Context) error
}

// methodsOf has a call for each method of a store that may need a connection; each needs
// one, whatever the store has in memory.
func methodsOf(a *actor, run store.Run, other store.Job) map[string]asked {
	s, job := a.Store, run.JobID
	end := result(run)
	planned := a.planned(other)
	reg := []store.Registration{{App: "app", Address: "http://a"}}
	verdict := store.Verdict{RunID: planned.ID, Shard: planned.Shard, Epoch: a.epoch(planned.Shard), Owner: a.inc, To: store.StatePlanned}
	plan, start := a.plan(other), a.startOf(planned, other.Version)
	calls := map[string]func(context.Context) error{
		"AddJob": func(ctx context.Context) error { _, err := s.AddJob(ctx, newJob(), nil); return err },
		"EditJob": func(ctx context.Context) error {
			_, err := s.EditJob(ctx, job, store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) { j.Author += "x"; return false, nil }})
			return err
		},
		"RemoveJob": func(ctx context.Context) error { return s.RemoveJob(ctx, 1e6) },
		"Job":       func(ctx context.Context) error { _, err := s.Job(ctx, job); return err },
		"JobByKey":  func(ctx context.Context) error { _, err := s.JobByKey(ctx, "app", "k"); return err },
		"Jobs": func(ctx context.Context) error {
			_, err := s.Jobs(ctx, store.JobFilter{IDs: []int64{job}})
			return err
		},
		"Changes": func(ctx context.Context) error { _, err := s.Changes(ctx, job, 10); return err },
		"PutList": func(ctx context.Context) error {
			_, err := s.PutList(ctx, store.ListPut{JobList: store.JobList{App: "app"}})
			return err
		},
		"Lists": func(ctx context.Context) error { _, err := s.Lists(ctx, "app", a.inc); return err },
		"NameJobs": func(ctx context.Context) error {
			_, err := s.NameJobs(ctx, store.ListID{App: "app"}, []string{"k"})
			return err
		},
		"UnnameJob": func(ctx context.Context) error {
			_, err := s.UnnameJob(ctx, "app", "k")
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			return err
		},
		"AddJobs": func(ctx context.Context) error {
			_, err := s.AddJobs(ctx, store.ListID{App: "app"}, []store.Job{{App: "app", Key: "l"}}, nil)
			return err
		},
		"SaveGroup":   func(ctx context.Context) error { return s.SaveGroup(ctx, store.Group{App: "x"}) },
		"EnsureGroup": func(ctx context.Context) error { return s.EnsureGroup(ctx, "y") },
		"RemoveGroup": func(ctx context.Context) error { return s.RemoveGroup(ctx, "z") },
		"Group":       func(ctx context.Context) error { _, err := s.Group(ctx, "app"); return err },
		"Groups":      func(ctx context.Context) error { _, err := s.Groups(ctx); return err },
		"AddAhead": func(ctx context.Context) error {
			_, err := s.AddAhead(ctx, job, store.Trigger{}, time.Now().Add(time.Hour))
			return err
		},
		"MoveAhead": func(ctx context.Context) error {
			_, err := s.MoveAhead(ctx, store.AheadQuery{Shards: a.shards, Before: time.Now(), Limit: 1})
			return err
		},
		"AddRun": func(ctx context.Context) error { _, err := s.AddRun(ctx, job, store.Trigger{}); return err },
		"Finish": func(ctx context.Context) error { _, err := s.Finish(ctx, nil, []store.Result{end}); return err },
		"SetProgress": func(ctx context.Context) error {
			return s.SetProgress(ctx, []store.Progress{{RunID: run.ID, Token: run.Token, Percent: 1}})
		},
		"Kill":     func(ctx context.Context) error { _, err := s.Kill(ctx, run.ID, "no more"); return err },
		"Run":      func(ctx context.Context) error { _, err := s.Run(ctx, run.ID); return err },
		"RunsByID": func(ctx context.Context) error { _, err := s.RunsByID(ctx, []int64{run.ID}); return err },
		"Tree":     func(ctx context.Context) error { _, err := s.Tree(ctx, run.ID); return err },
		"Runs": func(ctx context.Context) error {
			_, err := s.Runs(ctx, store.RunFilter{JobID: job, States: []store.State{store.StateStarted}})
			return err
		},
		"SetShards": func(ctx context.Context) error {
			if err := s.SetShards(ctx, 99); !errors.Is(err, store.ErrShards) {
				return err
			}
			return nil
		},
		"Scan": func(ctx context.Context) error {
			_, err := s.Scan(ctx, store.ScanResult{}, store.ScanQuery{Shards: a.shards, Before: time.Now().Add(time.Hour), Jobs: 10, Runs: 10})
			return err
		},
		"Planned": func(ctx context.Context) error {
			_, err := s.Planned(ctx, nil, store.PlannedQuery{Shards: a.shards, Before: time.Now(), Limit: 1})
			return err
		},
		"Claim": func(ctx context.Context) error { _, err := s.Claim(ctx, nil, []store.Plan{plan}); return err },
		"Sweep": func(ctx context.Context) error { return s.Sweep(ctx, a.shards) },
		"Start": func(ctx context.Context) error { _, err := s.Start(ctx, nil, []store.Start{start}); return err },
		"Readdress": func(ctx context.Context) error {
			_, err := s.Readdress(ctx, store.Readdress{RunID: run.ID, Address: "http://b"})
			return err
		},
		"Dispatched": func(ctx context.Context) error {
			_, err := s.Dispatched(ctx, []store.Dispatch{{RunID: run.ID}})
			return err
		},
		"StartedBy": func(ctx context.Context) error {
			_, err := s.StartedBy(ctx, a.shards, []string{a.inc}, 0, 10)
			return err
		},
		"DispatchedRuns": func(ctx context.Context) error {
			_, err := s.DispatchedRuns(ctx, a.shards, 0, 10)
			return err
		},
		"Settle": func(ctx context.Context) error { _, err := s.Settle(ctx, []store.Verdict{verdict}); return err },
		"Inbox":  func(ctx context.Context) error { _, err := s.Inbox(ctx, a.inc, 0, 10); return err },
		"Take":   func(ctx context.Context) error { _, err := s.Take(ctx, a.inc, []int64{run.ID}); return err },
		"PayOwed": func(ctx context.Context) error {
			_, err := s.PayOwed(ctx, store.OwedQuery{Shards: a.shards, Limit: 10})
			return err
		},
		"ExpireWindows": func(ctx context.Context) error {
			_, err := s.ExpireWindows(ctx, store.WindowQuery{Shards: a.shards, Before: time.Now(), Limit: 10})
			return err
		},
		"Links":    func(ctx context.Context) error { _, err := s.Links(ctx); return err },
		"Alarms":   func(ctx context.Context) error { _, err := s.Alarms(ctx, a.shards, nil, 0, 10); return err },
		"ToldJobs": func(ctx context.Context) error { _, err := s.ToldJobs(ctx, []int64{job}); return err },
		"OpenAlarms": func(ctx context.Context) error {
			_, _, err := s.OpenAlarms(ctx, a.shards, nil, store.JobTold{}, 10)
			return err
		},
		"MarkAlarms": func(ctx context.Context) error {
			return s.MarkAlarms(ctx, store.AlarmMarks{Done: []store.AlarmDone{{ID: 1, Status: store.AlarmSent}}})
		},
		"AddLate": func(ctx context.Context) error {
			_, err := s.AddLate(ctx, store.LateQuery{Shards: a.shards, Now: time.Now(), Limit: 10})
			return err
		},
		"AskLog": func(ctx context.Context) error {
			_, err := s.AskLog(ctx, store.Ask{Incarnation: a.inc, Run: run, FromLine: 1})
			return err
		},
		"AnswerLog":     func(ctx context.Context) error { return s.AnswerLog(ctx, 1, store.Answer{}) },
		"LogAnswer":     func(ctx context.Context) error { _, _, err := s.LogAnswer(ctx, 1); return err },
		"Now":           func(ctx context.Context) error { _, err := s.Now(ctx); return err },
		"Join":          func(ctx context.Context) error { _, err := s.Join(ctx, nodeOf("joins")); return err },
		"Beat":          func(ctx context.Context) error { _, err := s.Beat(ctx, a.inc, nil); return err },
		"SetFailing":    func(ctx context.Context) error { return s.SetFailing(ctx, a.inc, false) },
		"Leave":         func(ctx context.Context) error { return s.Leave(ctx, "leaves") },
		"Bury":          func(ctx context.Context) error { return s.Bury(ctx, "buried", 1) },
		"TakeShards":    func(ctx context.Context) error { _, err := s.TakeShards(ctx, "takes", a.shards); return err },
		"ReleaseShards": func(ctx context.Context) error { return s.ReleaseShards(ctx, "releases", a.shards) },
		"PutAddresses":  func(ctx context.Context) error { return s.PutAddresses(ctx, reg) },
		"DropAddresses": func(ctx context.Context) error { return s.DropAddresses(ctx, reg) },
		"Addresses":     func(ctx context.Context) error { _, err := s.Addresses(ctx, "app", time.Hour); return err },
		"Registrations": func(ctx context.Context) error {
			_, err := s.Registrations(ctx, store.RegistrationFilter{})
			return err
		},
		"ForgetAddresses": func(ctx context.Context) error { return s.ForgetAddresses(ctx, time.Hour) },
		"NoteServed": func(ctx context.Context) error {
			return s.NoteServed(ctx, []store.Served{{App: "app", By: store.ServedAttached}})
		},
		"Served": func(ctx context.Context) error { _, err := s.Served(ctx, []string{"app"}); return err },
		"KeepRules": func(ctx context.Context) error {
			_, err := s.KeepRules(ctx, store.RuleKeeper{App: "app", Node: "n", Incarnation: "i"})
			return err
		},
		"Rules":     func(ctx context.Context) error { _, err := s.Rules(ctx); return err },
		"HoldRule":  func(ctx context.Context) error { _, err := s.HoldRule(ctx, "rule", "i", time.Second); return err },
		"DropRules": func(ctx context.Context) error { _, err := s.DropRules(ctx, time.Now().AddDate(0, 0, -2)); return err },
		"DropRuns":  func(ctx context.Context) error { return s.DropRuns(ctx, time.Now().AddDate(0, 0, -2)) },
	}
	by, all := asker.Table(), map[string]asked{}
	for name, call := range calls {
		all[name] = asked{by[name] != asker.Others, call}
	}
	return all
}

// TestWhoMayHaveTheReserve: while the pool is used up, what the loops ask gets it, and
// what a host asks, be it the same, is an error that says what is used up. It is in row
// mode, where everything goes over the pool.
func TestWhoMayHaveTheReserve(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.MaxConns(4), noticing())
	s := openOn(t, pool, postgres.Config{LeaseMode: postgres.LeaseRow})
	a := own(t, s, inc(t, "a"), 2)
	all := methodsOf(a, a.started(a.job()), a.job())
	if have, want := slices.Sorted(maps.Keys(all)), asker.Methods(); !slices.Equal(have, want) {
		t.Fatalf("methods with a case:\n%v, want\n%v", have, want)
	}
	useUp(t, pool)
	const usedUp = "4 of 4 connections of the pool are in use"
	var hosts sync.WaitGroup
	for name, m := range all {
		hosts.Go(func() {
			if err := m.call(impatient(t, t.Context())); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), usedUp) {
				t.Errorf("%s by a host: %v", name, err)
			}
		})
	}
	hosts.Wait()
	for name, m := range all {
		ctx := impatient(t, urgent.Mark(t.Context()))
		if err := m.call(ctx); m.loops && err != nil && (ctx.Err() != nil || strings.Contains(err.Error(), "are in use")) {
			t.Errorf("%s by a loop: %v", name, err)
		}
	}
}

// locked keeps a table from everybody until the test is over.
func locked(t *testing.T, s *postgres.Store, tables ...string) {
	t.Helper()
	x := begin(t, pgx.ReadCommitted)
	for _, table := range tables {
		_, err := x.Exec(t.Context(), fmt.Sprintf("lock table %q.%s in access exclusive mode", postgres.SchemaOf(s), table))
		must(t, err)
	}
}

// TestAHostDelaysNoClaim that goes over the reserve: neither a list of a console, nor what
// it reads, be the tables that they wait for locked. One that has the reserve would have to
// end before the claim behind it comes.
func TestAHostDelaysNoClaim(t *testing.T) {
	t.Parallel()
	inEachMode(t, 2, func(t *testing.T, pool *pgxpool.Pool, a *actor) {
		s := a.Store
		run, jobs := a.started(a.job()), []store.Job{a.job(), a.job(), a.job()}
		useUp(t, pool)
		locked(t, s, "xxl_job_change", "xxl_job_registry", "xxl_job_group")
		var calls sync.WaitGroup
		defer calls.Wait()
		var atPool, over atomic.Int64
		host, giveUp := context.WithCancel(whenWaiting(t.Context(), func() { atPool.Add(1) }))
		defer giveUp()
		giveBack, ok := postgres.HoldReserve(a.ctx, s)
		if !ok {
			t.Fatal("no reserve")
		}
		for _, call := range []func(){
			func() { s.Changes(host, run.JobID, 10) },
			func() { s.Registrations(host, store.RegistrationFilter{}) },
			func() { s.Groups(host) },
			func() { s.Group(host, "app") },
		} {
			for range 3 {
				calls.Go(func() { call(); over.Add(1) })
			}
		}
		await.Until(t, "each call of the host waits, be it for the pool or for the reserve", func() bool {
			return int(atPool.Load())+postgres.WaitForReserve(s) == 12
		})
		giveBack()
		for _, job := range jobs {
			_, err := s.Claim(a.ctx, nil, []store.Plan{a.plan(job)})
			must(t, err)
		}
		_, err := s.Finish(a.ctx, nil, []store.Result{result(run)})
		must(t, err)
		if n := over.Load(); n > 0 {
			t.Errorf("%d calls of the host had ended before the claims and the result", n)
		}
	})
}

// TestAStuckStatementOfTheReserve: one that waits for a lock, a list among them, gives the
// reserve back before a LeaseTTL is over, and the connection is not lost with it.
func TestAStuckStatementOfTheReserve(t *testing.T) {
	t.Parallel()
	inEachMode(t, 2, func(t *testing.T, pool *pgxpool.Pool, a *actor) {
		s, job := a.Store, a.job()
		s.Watch(t.Context(), a.inc)
		await.Until(t, "there is a reserve", func() bool { return reserves(t, s) == 1 })
		useUp(t, pool)
		locked(t, s, "xxl_job_registry", "xxl_job_group")
		for name, call := range map[string]func() error{
			"a list":                  func() error { _, err := s.Registrations(a.ctx, store.RegistrationFilter{}); return err },
			"a read":                  func() error { _, err := s.Group(a.ctx, "app"); return err },
			"a statement that writes": func() error { return s.PutAddresses(a.ctx, []store.Registration{at("a")}) },
		} {
			// The server has a second or two for it, and we three: where the machine is so
			// slow that ours are over first, the connection is lost, and it is tried again.
			await.Until(t, "the server ends "+name+" that waits for a lock", func() bool {
				backend := backendOf(t, s)
				stuck := make(chan error, 1)
				go func() { stuck <- call() }()
				await.Until(t, name+" waits for a lock", func() bool { return len(stuck) > 0 || blocked(t, s) })
				_, err := s.Claim(a.ctx, nil, []store.Plan{a.plan(job)})
				must(t, err)
				if !endedByServer(t, name, <-stuck) {
					return false
				}
				if now := backendOf(t, s); now != backend {
					t.Errorf("after %s the reserve was made anew: backend %d, not %d", name, now, backend)
				}
				return true
			})
		}
	})
}

// endedByServer reports whether a call over the reserve, which waited for a lock and had no
// deadline, was ended by what the server allows it. The other limit is what we allow the
// reserve; that another one has ended it is a fault.
func endedByServer(t *testing.T, name string, err error) bool {
	t.Helper()
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "57014") { // lock_timeout, statement_timeout
		return true
	}
	if err == nil || !strings.Contains(err.Error(), "has not answered for 3s") {
		t.Fatalf("%s was not ended by a limit of the reserve: %v", name, err)
	}
	return false
}

// backendOf is the backend of a store's reserve.
func backendOf(t *testing.T, s *postgres.Store) int {
	t.Helper()
	return ask[int](t, pgtest.SharedPool(t), "select pid from pg_stat_activity where application_name like 'xxljob reserve %' and application_name like '%' || right($1, 20)", postgres.SchemaOf(s))
}

// TestHousekeepingDelaysNoStart: what it reads while no serial job may start is as urgent
// as the start.
func TestHousekeepingDelaysNoStart(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.MaxConns(2), noticing())
	s := openOn(t, pool, postgres.Config{})
	a := own(t, s, inc(t, "a"), 2)
	job := a.job()
	start := a.startOf(a.planned(job), job.Version)
	start.Serial = true
	useUp(t, pool)
	giveBack, ok := postgres.HoldReserve(a.ctx, s)
	if !ok {
		t.Fatal("no reserve")
	}
	kept, started := make(chan error, 1), make(chan error, 1)
	go func() { kept <- postgres.RaiseStarted(impatient(t, t.Context()), s) }()
	await.Until(t, "housekeeping waits for the reserve", func() bool { return len(kept) > 0 || postgres.WaitForReserve(s) == 1 })
	go func() { _, err := s.Start(a.ctx, nil, []store.Start{start}); started <- err }()
	await.Until(t, "the start waits for housekeeping", func() bool { return len(kept) > 0 || postgres.WaitForStarts(s) == 1 })
	giveBack()
	must(t, <-kept)
	must(t, <-started)
}
