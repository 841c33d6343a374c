package scenario_test

// Starts that a store makes one by one, and hundreds of them at once.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/plain"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// oneByOne takes its time for each start of a broadcast and each refusal, as a database
// does, and gives up with the call.
type oneByOne struct {
	st   *memory.Store
	each atomic.Int64 // a time.Duration
}

func slowOneByOne(each time.Duration) bent.All {
	slow := &oneByOne{st: memory.New()}
	slow.each.Store(int64(each))
	return bent.AllOf(slow.st, slow)
}

func (s *oneByOne) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	var takes time.Duration
	for _, st := range starts {
		if len(st.Targets) > 0 || st.State == xxljob.StateRefused {
			takes += time.Duration(s.each.Load())
		}
	}
	select {
	case <-time.After(takes):
		return s.st.Start(ctx, dst, starts)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// handleParts has nodes note what they run in a journal.
func handleParts(t *testing.T, parts *stage.Journal, nodes ...*stage.Node) {
	for _, n := range nodes {
		stage.Must(t, n.Handle("part", func(_ context.Context, task *xxljob.Task) error { parts.Note(n.Name, task); return nil }))
	}
}

// broadcast makes a job, or finds it, that runs at all nodes when it is triggered.
func broadcast(t *testing.T, n *stage.Node, name string) xxljob.Job {
	done, err := n.EnsureJob(t.Context(), xxljob.Job{Name: name, Handler: "part", Route: route.ShardingBroadcast})
	stage.Must(t, err)
	return done.Job
}

// triggerBroadcasts makes n such jobs, and triggers each.
func triggerBroadcasts(t *testing.T, at *stage.Node, n int) (jobs []xxljob.Job) {
	for i := range n {
		jobs = append(jobs, broadcast(t, at, fmt.Sprint("part ", i)))
	}
	for _, job := range jobs {
		stage.Trigger(t, at, job)
	}
	return jobs
}

// TestManyStartsApart has two nodes start some hundred broadcasts and refuse as many runs at
// once. No other run waits for them, no call takes too long, each part is run once, and
// neither a node that stops meanwhile nor a run that is killed changes that.
func TestManyStartsApart(t *testing.T) {
	t.Parallel()
	for _, stops := range []bool{false, true} {
		t.Run(fmt.Sprint("a node stops ", stops), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow, j, parts := &oneByOne{st: memory.New()}, &stage.Journal{}, &stage.Journal{}
				st := bent.AllOf(slow.st, slow)
				a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
				handleParts(t, parts, a, b)
				time.Sleep(10 * time.Second)
				seconds := stage.AddSeconds(t, b, 20)
				for range 20 { // while it is quick
					stage.Trigger(t, b, broadcast(t, b, "before"))
					time.Sleep(100 * time.Millisecond)
				}
				slow.each.Store(int64(100 * time.Millisecond))
				var jobs []xxljob.Job
				for i := range 120 {
					nobodys, err := b.AddJob(t.Context(), xxljob.Job{App: "nobody", Name: fmt.Sprint("refused ", i), Handler: "part"})
					stage.Must(t, err)
					jobs = append(jobs, broadcast(t, b, fmt.Sprint("part ", i)), nobodys)
				}
				from := time.Now()
				time.Sleep(10*time.Second + 300*time.Millisecond)
				var runs []int64
				for _, job := range jobs {
					runs = append(runs, stage.Trigger(t, b, job))
				}
				time.Sleep(2 * time.Second)
				killed := runs[len(runs)-2]
				stage.Must(t, b.Kill(t.Context(), killed))
				if stops {
					stage.Stop(t, a)
				}
				for range 30 {
					time.Sleep(time.Second)
					if err := b.Ready(); err != nil {
						t.Error(err)
					}
				}
				to := time.Now()
				for i, id := range runs {
					run, err := st.Run(t.Context(), id)
					stage.Must(t, err)
					want := xxljob.StateSucceeded
					if i%2 == 1 {
						want = xxljob.StateRefused
					}
					if id == killed {
						want = xxljob.StateCancelled
					}
					if run.State != want {
						t.Errorf("run %d of job %d: %v, want %v", id, i, run.State, want)
					}
				}
				begun := map[string]int{}
				for _, s := range slices.DeleteFunc(parts.All(), func(s stage.Started) bool { return s.Due.Before(from) }) {
					begun[fmt.Sprint(s.Job, " ", s.Shard)]++
				}
				for part, n := range begun {
					if n != 1 {
						t.Errorf("part %s was begun %d times", part, n)
					}
				}
				most := time.Second // twice as long as some of them take
				if stops {
					most *= 2 // the node that stops sees one through
				}
				for _, s := range j.All() {
					if late := s.At.Sub(s.Due); late > most {
						t.Errorf("run %d began %v late, want %v at most", s.Run, late, most)
					}
				}
				time.Sleep(10 * time.Second)
				stage.Stop(t, b)
				if !stops {
					stage.Stop(t, a)
				}
				if got := stage.AuditSeconds(t, st, j, seconds, from, to); got != (stage.Audit{}) {
					t.Errorf("audit: %+v", got)
				}
			})
		})
	}
}

// TestAStartApartThatComesAgain: one of five broadcasts, the only runs of a node, is not
// started at first. It is a moment later.
func TestAStartApartThatComesAgain(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(*testing.T, *stage.Node, []xxljob.Job){
		"its start fails": func(t *testing.T, n *stage.Node, _ []xxljob.Job) {
			time.Sleep(350 * time.Millisecond)
			n.Faults.Inject("Start", storetest.Fault{Before: true, Calls: 1})
		},
		"its job is edited": func(t *testing.T, n *stage.Node, jobs []xxljob.Job) {
			time.Sleep(350 * time.Millisecond)
			for _, job := range jobs {
				job.Author = "somebody"
				_, err := n.UpdateJob(t.Context(), job)
				stage.Must(t, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, parts := slowOneByOne(100*time.Millisecond), &stage.Journal{}
				n := stage.StartNode(t, st, "n", &stage.Journal{})
				handleParts(t, parts, n)
				time.Sleep(10 * time.Second)
				disturb(t, n, triggerBroadcasts(t, n, 5))
				time.Sleep(5 * time.Second)
				if n := len(parts.All()); n != 5 {
					t.Errorf("%d of 5 were run", n)
				}
				stage.Stop(t, n)
			})
		})
	}
}

// TestAnExecutorThatComesWhileRunsAreRefused: a run whose turn to be refused has not come
// when its executor is there is run.
func TestAnExecutorThatComesWhileRunsAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, parts := slowOneByOne(100*time.Millisecond), &stage.Journal{}
		n := stage.StartNode(t, st, "n", &stage.Journal{})
		time.Sleep(10 * time.Second)
		var jobs []xxljob.Job
		for i := range 100 {
			job, err := n.AddJob(t.Context(), xxljob.Job{App: "late", Name: fmt.Sprint("job ", i), Handler: "part"})
			stage.Must(t, err)
			jobs = append(jobs, job)
		}
		for _, job := range jobs {
			stage.Trigger(t, n, job)
		}
		time.Sleep(2 * time.Second)
		late := stage.StartNode(t, st, "late", &stage.Journal{}, func(c *xxljob.Config) { c.App = "late" })
		handleParts(t, parts, late)
		time.Sleep(15 * time.Second)
		if n := len(parts.All()); n < 50 {
			t.Errorf("%d of 100 were run, though the executor came after 2 s", n)
		}
		stage.Stop(t, n, late)
	})
}

// oneIsStuck starts one run only when a time has come: its row is locked, or its start is an
// error for all that are started with it.
type oneIsStuck struct {
	st    *memory.Store
	run   atomic.Int64
	until time.Time
	fails bool
}

func (s *oneIsStuck) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	at := slices.IndexFunc(starts, func(st store.Start) bool { return st.RunID == s.run.Load() })
	if at < 0 || time.Now().After(s.until) {
		return s.st.Start(ctx, dst, starts)
	}
	if s.fails {
		return nil, errors.New("stuck")
	}
	answers, err := s.st.Start(ctx, nil, slices.Delete(slices.Clone(starts), at, at+1))
	if err != nil {
		return nil, err
	}
	return slices.Insert(answers, at, store.Started{Status: store.StartLocked}), nil
}

// TestAStuckStartApart: a broadcast cannot be started for long, and others, of its app and of
// another one, do not wait for it.
func TestAStuckStartApart(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		for _, registry := range []xxljob.Registry{nil, &plain.Registry{}} {
			t.Run(fmt.Sprintf("with an error %t, registry %T", fails, registry), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					lock, parts := &oneIsStuck{st: memory.New(), until: time.Now().Add(30 * time.Second), fails: fails}, &stage.Journal{}
					st := bent.AllOf(lock.st, lock)
					n := stage.StartNode(t, st, "n", &stage.Journal{}, func(c *xxljob.Config) { c.Registry = registry })
					handleParts(t, parts, n)
					time.Sleep(10 * time.Second)
					stuck := broadcast(t, n, "stuck")
					var runs []int64
					var jobs []xxljob.Job
					for i := range 20 {
						nobodys, err := n.AddJob(t.Context(), xxljob.Job{App: "nobody", Name: fmt.Sprint("refused ", i), Handler: "part"})
						stage.Must(t, err)
						jobs = append(jobs, broadcast(t, n, fmt.Sprint("part ", i)), nobodys)
					}
					n.Faults.Inject("Start", storetest.Fault{Delay: time.Second, Calls: 1})
					first := stage.Trigger(t, n, stuck)
					lock.run.Store(first)
					for _, job := range jobs {
						runs = append(runs, stage.Trigger(t, n, job))
					}
					time.Sleep(5 * time.Second)
					for _, id := range runs {
						run, err := st.Run(t.Context(), id)
						stage.Must(t, err)
						if !run.State.Ended() {
							t.Errorf("run %d is %v", id, run.State)
						}
					}
					time.Sleep(20 * time.Second)
					run, err := st.Run(t.Context(), first)
					stage.Must(t, err)
					if run.State != xxljob.StateSucceeded {
						t.Errorf("the run that was stuck is %v", run.State)
					}
					stage.Stop(t, n)
				})
			})
		}
	}
}

// TestBroadcastsApartAreRoutedAnew: a node that joins while broadcasts wait for their turn
// has parts of those whose turn comes later.
func TestBroadcastsApartAreRoutedAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, parts := slowOneByOne(100*time.Millisecond), &stage.Journal{}
		a := stage.StartNode(t, st, "a", &stage.Journal{})
		handleParts(t, parts, a)
		time.Sleep(10 * time.Second)
		triggerBroadcasts(t, a, 100)
		time.Sleep(2 * time.Second)
		b := stage.StartNode(t, st, "b", &stage.Journal{})
		handleParts(t, parts, b)
		time.Sleep(20 * time.Second)
		if n := parts.By("b"); n < 50 {
			t.Errorf("%d of 100 broadcasts had a part at the node that joined after 2 s", n)
		}
		stage.Stop(t, a, b)
	})
}

// TestStartsApartWhileStartsAreSlow: each call that starts runs takes longer than addresses
// are good for, one broadcast cannot be started, and there are other runs and refusals in
// each pass. Everything has its turn nevertheless.
func TestStartsApartWhileStartsAreSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lock, j, parts := &oneIsStuck{st: memory.New(), until: time.Now().Add(40 * time.Second)}, &stage.Journal{}, &stage.Journal{}
		st := bent.AllOf(lock.st, lock)
		n := stage.StartNode(t, st, "n", j)
		handleParts(t, parts, n)
		stage.AddSeconds(t, n, 5)
		nobodys, err := n.AddJob(t.Context(), xxljob.Job{App: "nobody", Name: "refused", Handler: "part", Schedule: xxljob.FixedRate(time.Second)})
		stage.Must(t, err)
		time.Sleep(10*time.Second + 100*time.Millisecond)
		n.Faults.Inject("Start", storetest.Fault{Delay: 1200 * time.Millisecond})
		first := stage.Trigger(t, n, broadcast(t, n, "stuck"))
		lock.run.Store(first)
		time.Sleep(3 * time.Second)
		refused := func() int {
			runs, err := st.Runs(t.Context(), xxljob.RunFilter{JobID: nobodys.ID, States: []xxljob.State{xxljob.StateRefused}})
			stage.Must(t, err)
			return len(runs)
		}
		from, before := time.Now(), refused()
		second := stage.Trigger(t, n, broadcast(t, n, "part"))
		time.Sleep(16 * time.Second)
		if run, err := st.Run(t.Context(), second); err != nil || run.State != xxljob.StateSucceeded {
			t.Errorf("the broadcast is %v, %v", run.State, err)
		}
		if n := len(slices.DeleteFunc(j.All(), func(s stage.Started) bool { return s.At.Before(from) })); n < 15 {
			t.Errorf("%d other runs, want some 20", n)
		}
		if n := refused() - before; n < 3 {
			t.Errorf("%d runs were refused, want some 5", n)
		}
		time.Sleep(30 * time.Second)
		if run, err := st.Run(t.Context(), first); err != nil || run.State != xxljob.StateSucceeded {
			t.Errorf("the broadcast that was stuck is %v, %v", run.State, err)
		}
		stage.Stop(t, n)
	})
}

// TestAppsTakeTurnsApart: an app that is not there has refusals due faster than the store
// takes them. The broadcasts of another app have every other turn.
func TestAppsTakeTurnsApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, parts := slowOneByOne(600*time.Millisecond), &stage.Journal{}
		n := stage.StartNode(t, st, "n", &stage.Journal{})
		handleParts(t, parts, n)
		for i := range 5 {
			_, err := n.AddJob(t.Context(), xxljob.Job{App: "nobody", Name: fmt.Sprint("refused ", i), Handler: "part", Schedule: xxljob.FixedRate(time.Second)})
			stage.Must(t, err)
		}
		time.Sleep(10 * time.Second)
		triggerBroadcasts(t, n, 5)
		time.Sleep(10 * time.Second)
		if n := len(parts.All()); n != 5 {
			t.Errorf("%d of 5 were run", n)
		}
		stage.Stop(t, n)
	})
}

// TestStartsApartByASlowRegistry: where the addresses are a registry's of the user's, which
// takes longer to answer than addresses are good for, broadcasts are started nevertheless,
// also to given addresses, and runs of an app that is not there are refused.
func TestStartsApartByASlowRegistry(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{0, 1500 * time.Millisecond} {
		t.Run(fmt.Sprint(takes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, parts := slowOneByOne(100*time.Millisecond), &stage.Journal{}
				r := &stage.BadRegistry{Do: func(method, _ string) {
					if method == "Lookup" {
						time.Sleep(takes)
					}
				}}
				n := stage.StartNode(t, st, "n", &stage.Journal{}, func(c *xxljob.Config) { c.Registry, c.Limits.RouteTimeout = r, 3*time.Second })
				handleParts(t, parts, n)
				stage.AddSeconds(t, n, 5)
				time.Sleep(10 * time.Second)
				n.Faults.Inject("Start", storetest.Fault{Delay: 600 * time.Millisecond})
				nobodys, err := n.AddJob(t.Context(), xxljob.Job{App: "nobody", Name: "refused", Handler: "part"})
				stage.Must(t, err)
				runs := []int64{stage.Trigger(t, n, nobodys)}
				for i := range 5 {
					given, err := n.Trigger(t.Context(), broadcast(t, n, fmt.Sprint("given ", i)).ID, xxljob.Trigger{Addresses: []string{store.LocalAddress(stage.IncarnationOf(t, st, n))}})
					stage.Must(t, err)
					runs = append(runs, given[0], stage.Trigger(t, n, broadcast(t, n, fmt.Sprint("part ", i))))
				}
				time.Sleep(time.Minute)
				for i, id := range runs {
					if run, err := st.Run(t.Context(), id); err != nil || !run.State.Ended() {
						t.Errorf("run %d is %v, %v", i, run.State, err)
					}
				}
				if n := len(parts.All()); n != 10 {
					t.Errorf("%d of 10 broadcasts were run", n)
				}
				stage.Stop(t, n)
				time.Sleep(takes) // the last call of the registry
			})
		})
	}
}

// TestStartsApartHoldUpNothingEarly: the store takes its time, so that runs are started a
// little before theirs. They are sent at their time, and not when the start of a broadcast,
// which takes longer, is over.
func TestStartsApartHoldUpNothingEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow, j, parts := &oneByOne{st: memory.New()}, &stage.Journal{}, &stage.Journal{}
		st := bent.AllOf(slow.st, slow)
		slow.each.Store(int64(400 * time.Millisecond))
		n := stage.StartNode(t, st, "n", j)
		handleParts(t, parts, n)
		stage.AddSeconds(t, n, 3)
		_, err := n.AddJob(t.Context(), xxljob.Job{Name: "part", Handler: "part", Route: route.ShardingBroadcast, Schedule: xxljob.Cron("* * * * * ?")})
		stage.Must(t, err)
		n.Faults.Inject("Start", storetest.Fault{Late: 10 * time.Millisecond})
		time.Sleep(10 * time.Second)
		from := time.Now()
		time.Sleep(30 * time.Second)
		for _, s := range j.All() {
			if late := s.At.Sub(s.Due); s.Due.After(from) && late > 0 {
				t.Errorf("run %d began %v late", s.Run, late)
			}
		}
		if n := len(parts.All()); n < 35 {
			t.Errorf("%d broadcasts were run, want 39 or 40", n)
		}
		stage.Stop(t, n)
	})
}

// TestABroadcastThatWaitsForRoom: more runs wait for room at a node than it has. A broadcast
// that comes among them has its turn.
func TestABroadcastThatWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, parts := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "n", &stage.Journal{}, func(c *xxljob.Config) { c.Executor.Places = 1 })
		stage.Must(t, n.Handle("long", func(context.Context, *xxljob.Task) error { time.Sleep(time.Second); return nil }))
		handleParts(t, parts, n)
		time.Sleep(10 * time.Second)
		for i := range 60 {
			job, err := n.EnsureJob(t.Context(), xxljob.Job{Name: fmt.Sprint("long ", i), Handler: "long"})
			stage.Must(t, err)
			stage.Trigger(t, n, job.Job)
			if i == 5 {
				stage.Trigger(t, n, broadcast(t, n, "part"))
			}
		}
		time.Sleep(15 * time.Second)
		if n := len(parts.All()); n != 1 {
			t.Errorf("%d of 1 were run", n)
		}
		time.Sleep(time.Minute)
		stage.Stop(t, n)
	})
}
