package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/asker"
	"github.com/xxljob/xxljob/internal/await"
	"github.com/xxljob/xxljob/internal/duty"
	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store/postgres"
)

// asked is a call of a method.
type asked struct {
	loops bool // the loops of a scheduler ask it too, so that runs go on
	call  func(context.Context) error
}

// methodsOf has a call for each method of a store that may need a connection; each needs
// one, whatever the store has in memory.
func methodsOf(a *actor, run xxljob.Run, other xxljob.Job) map[string]asked {
	s, job := a.Store, run.JobID
	end := result(run)
	planned := a.planned(other)
	reg := []xxljob.Registration{{App: "app", Address: "http://a"}}
	verdict := xxljob.Verdict{RunID: planned.ID, Shard: planned.Shard, Epoch: a.epoch(planned.Shard), Owner: a.inc, To: xxljob.StatePlanned}
	plan, start := a.plan(other), a.startOf(planned, other.Version)
	calls := map[string]func(context.Context) error{
		"AddJob": func(ctx context.Context) error { _, err := s.AddJob(ctx, newJob(), nil); return err },
		"EditJob": func(ctx context.Context) error {
			_, err := s.EditJob(ctx, job, xxljob.Edit{Verb: "update", Change: func(j *xxljob.Job) (bool, error) { j.Author += "x"; return false, nil }})
			return err
		},
		"RemoveJob": func(ctx context.Context) error { return s.RemoveJob(ctx, 1e6) },
		"Job":       func(ctx context.Context) error { _, err := s.Job(ctx, job); return err },
		"JobByKey":  func(ctx context.Context) error { _, err := s.JobByKey(ctx, "app", "k"); return err },
		"Jobs": func(ctx context.Context) error {
			_, err := s.Jobs(ctx, xxljob.JobFilter{IDs: []int64{job}})
			return err
		},
		"Changes": func(ctx context.Context) error { _, err := s.Changes(ctx, job, 10); return err },
		"PutList": func(ctx context.Context) error {
			_, err := s.PutList(ctx, xxljob.ListPut{JobList: xxljob.JobList{App: "app"}})
			return err
		},
		"Lists": func(ctx context.Context) error { _, err := s.Lists(ctx, "app", a.inc); return err },
		"NameJobs": func(ctx context.Context) error {
			_, err := s.NameJobs(ctx, xxljob.ListID{App: "app"}, []string{"k"})
			return err
		},
		"UnnameJob": func(ctx context.Context) error {
			_, err := s.UnnameJob(ctx, "app", "k")
			if errors.Is(err, xxljob.ErrNotFound) {
				return nil
			}
			return err
		},
		"AddJobs": func(ctx context.Context) error {
			_, err := s.AddJobs(ctx, xxljob.ListID{App: "app"}, []xxljob.Job{{App: "app", Key: "l"}}, nil)
			return err
		},
		"SaveGroup":   func(ctx context.Context) error { return s.SaveGroup(ctx, xxljob.Group{App: "x"}) },
		"EnsureGroup": func(ctx context.Context) error { return s.EnsureGroup(ctx, "y") },
		"RemoveGroup": func(ctx context.Context) error { return s.RemoveGroup(ctx, "z") },
		"Group":       func(ctx context.Context) error { _, err := s.Group(ctx, "app"); return err },
		"Groups":      func(ctx context.Context) error { _, err := s.Groups(ctx); return err },
		"AddRun":      func(ctx context.Context) error { _, err := s.AddRun(ctx, job, xxljob.Trigger{}); return err },
		"Finish":      func(ctx context.Context) error { _, err := s.Finish(ctx, []xxljob.Result{end}); return err },
		"Kill":        func(ctx context.Context) error { _, err := s.Kill(ctx, run.ID, "no more"); return err },
		"Run":         func(ctx context.Context) error { _, err := s.Run(ctx, run.ID); return err },
		"RunsByID":    func(ctx context.Context) error { _, err := s.RunsByID(ctx, []int64{run.ID}); return err },
		"Runs": func(ctx context.Context) error {
			_, err := s.Runs(ctx, xxljob.RunFilter{JobID: job, States: []xxljob.State{xxljob.StateStarted}})
			return err
		},
		"SetShards": func(ctx context.Context) error {
			if err := s.SetShards(ctx, 99); !errors.Is(err, xxljob.ErrShards) {
				return err
			}
			return nil
		},
		"Scan": func(ctx context.Context) error {
			_, err := s.Scan(ctx, xxljob.ScanQuery{Shards: a.shards, Before: time.Now().Add(time.Hour), Jobs: 10, Runs: 10})
			return err
		},
		"Planned": func(ctx context.Context) error {
			_, err := s.Planned(ctx, xxljob.PlannedQuery{Shards: a.shards, Before: time.Now(), Limit: 1})
			return err
		},
		"Claim": func(ctx context.Context) error { _, err := s.Claim(ctx, []xxljob.Plan{plan}); return err },
		"Sweep": func(ctx context.Context) error { return s.Sweep(ctx, a.shards) },
		"Start": func(ctx context.Context) error { _, err := s.Start(ctx, []xxljob.Start{start}); return err },
		"Readdress": func(ctx context.Context) error {
			_, err := s.Readdress(ctx, xxljob.Readdress{RunID: run.ID, Address: "http://b"})
			return err
		},
		"Dispatched": func(ctx context.Context) error {
			_, err := s.Dispatched(ctx, []xxljob.Dispatch{{RunID: run.ID}})
			return err
		},
		"StartedBy": func(ctx context.Context) error {
			_, err := s.StartedBy(ctx, a.shards, []string{a.inc}, 0, 10)
			return err
		},
		"Settle": func(ctx context.Context) error { _, err := s.Settle(ctx, []xxljob.Verdict{verdict}); return err },
		"Inbox":  func(ctx context.Context) error { _, err := s.Inbox(ctx, a.inc, 0, 10); return err },
		"Take":   func(ctx context.Context) error { _, err := s.Take(ctx, a.inc, []int64{run.ID}); return err },
		"AskLog": func(ctx context.Context) error {
			_, err := s.AskLog(ctx, xxljob.Ask{Incarnation: a.inc, Run: run, FromLine: 1})
			return err
		},
		"AnswerLog":     func(ctx context.Context) error { return s.AnswerLog(ctx, 1, xxljob.Answer{}) },
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
			_, err := s.Registrations(ctx, xxljob.RegistrationFilter{})
			return err
		},
		"ForgetAddresses": func(ctx context.Context) error { return s.ForgetAddresses(ctx, time.Hour) },
		"DropRuns":        func(ctx context.Context) error { return s.DropRuns(ctx, time.Now().AddDate(0, 0, -2)) },
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
	pool := pgtest.Pool(t, pgtest.MaxConns(4))
	s := openOn(t, pool, postgres.Config{LeaseMode: postgres.LeaseRow})
	a := own(t, s, inc(t, "a"), 2)
	all := methodsOf(a, a.started(a.job()), a.job())
	if have, want := slices.Sorted(maps.Keys(all)), asker.Methods(); !slices.Equal(have, want) {
		t.Fatalf("methods with a case:\n%v, want\n%v", have, want)
	}
	useUp(t, pool)
	const usedUp = "4 of 4 connections of the pool are in use"
	ctx := hasty(t, t.Context())
	var hosts sync.WaitGroup
	for name, m := range all {
		hosts.Go(func() {
			if err := m.call(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), usedUp) {
				t.Errorf("%s by a host: %v", name, err)
			}
		})
	}
	hosts.Wait()
	for name, m := range all {
		ctx, cancel := context.WithTimeout(duty.Mark(t.Context()), 5*time.Second) // as a loop has
		if err := m.call(ctx); m.loops && err != nil && (ctx.Err() != nil || strings.Contains(err.Error(), "are in use")) {
			t.Errorf("%s by a loop: %v", name, err)
		}
		cancel()
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

// soon reports a call of a loop that takes longer than a second.
func soon(t *testing.T, what string, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(duty.Mark(t.Context()), 20*time.Second)
	defer cancel()
	began := time.Now()
	must(t, call(ctx))
	if d := time.Since(began); d > time.Second {
		t.Errorf("%s took %v", what, d)
	}
}

// TestAHostDelaysNoClaim that goes over the reserve: neither a list of a console, nor what
// it reads, nor a kill, be the rows and the tables that they wait for locked.
func TestAHostDelaysNoClaim(t *testing.T) {
	t.Parallel()
	for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t, pgtest.MaxConns(2))
			s := openOn(t, pool, postgres.Config{LeaseMode: mode})
			a := own(t, s, inc(t, "a"), 2)
			run, jobs := a.started(a.job()), []xxljob.Job{a.job(), a.job(), a.job()}
			useUp(t, pool)
			locked(t, s, "xxl_job_change", "xxl_job_registry", "xxl_job_group")
			host, giveUp := context.WithCancel(t.Context())
			var calls sync.WaitGroup
			defer calls.Wait()
			defer giveUp()
			for range 3 {
				for _, call := range []func(){
					func() { s.Changes(host, run.JobID, 10) },
					func() { s.Registrations(host, xxljob.RegistrationFilter{}) },
					func() { s.Groups(host) },
					func() { s.Group(host, "app") },
				} {
					calls.Go(call)
				}
			}
			time.Sleep(100 * time.Millisecond)
			for _, job := range jobs {
				soon(t, "a claim", func(ctx context.Context) error { _, err := s.Claim(ctx, []xxljob.Plan{a.plan(job)}); return err })
			}
			soon(t, "a result", func(ctx context.Context) error { _, err := s.Finish(ctx, []xxljob.Result{result(run)}); return err })
		})
	}
}

// TestAStuckStatementOfTheReserve: one that waits for a lock, a list among them, gives the
// reserve back before a LeaseTTL is over, and the connection is not lost with it.
func TestAStuckStatementOfTheReserve(t *testing.T) {
	t.Parallel()
	for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t, pgtest.MaxConns(2))
			s := openOn(t, pool, postgres.Config{LeaseMode: mode})
			a := own(t, s, inc(t, "a"), 2)
			job := a.job()
			s.Watch(t.Context(), a.inc)
			await.Until(t, "there is a reserve", func() bool { return reserves(t, s) == 1 })
			backend := backendOf(t, s)
			useUp(t, pool)
			locked(t, s, "xxl_job_registry", "xxl_job_group")
			loop := func(name string, call func(context.Context) error) {
				ctx, cancel := context.WithTimeout(duty.Mark(t.Context()), 40*time.Second)
				defer cancel()
				var stuck sync.WaitGroup
				defer stuck.Wait()
				stuck.Go(func() {
					if err := call(ctx); err == nil {
						t.Errorf("%s did not wait for the lock", name)
					}
				})
				time.Sleep(500 * time.Millisecond)
				began := time.Now()
				_, err := s.Claim(ctx, []xxljob.Plan{a.plan(job)})
				if must(t, err); time.Since(began) > 3500*time.Millisecond {
					t.Errorf("a claim behind %s took %v", name, time.Since(began))
				}
			}
			loop("a list", func(ctx context.Context) error {
				_, err := s.Registrations(ctx, xxljob.RegistrationFilter{})
				return err
			})
			loop("a read", func(ctx context.Context) error { _, err := s.Group(ctx, "app"); return err })
			loop("a statement that writes", func(ctx context.Context) error {
				return s.PutAddresses(ctx, []xxljob.Registration{{App: "app", Address: "http://a"}})
			})
			if now := backendOf(t, s); now != backend {
				t.Errorf("the reserve was made anew: backend %d, not %d", now, backend)
			}
		})
	}
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
	pool := pgtest.Pool(t, pgtest.MaxConns(2))
	s := openOn(t, pool, postgres.Config{})
	a := own(t, s, inc(t, "a"), 2)
	job := a.job()
	start := a.startOf(a.planned(job), job.Version)
	start.Serial = true
	useUp(t, pool)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var keeping sync.WaitGroup
	defer keeping.Wait()
	keeping.Go(func() {
		if err := postgres.RaiseStarted(ctx, s); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(50 * time.Millisecond)
	soon(t, "a start", func(ctx context.Context) error {
		_, err := s.Start(ctx, []xxljob.Start{start})
		return err
	})
}
