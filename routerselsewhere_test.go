package xxljob_test

// Routing strategies of one of the services that share a store.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// canary is a strategy that counts what it is asked, and takes the last address.
type canary struct {
	mu    sync.Mutex
	asked map[int64]int // by job
	fails error
}

func (c *canary) Route(_ context.Context, job int64, addrs []string) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		c.asked = map[int64]int{}
	}
	c.asked[job]++
	return addrs[len(addrs)-1:], c.fails
}

func (c *canary) count() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.asked {
		n += k
	}
	return n
}

// services are a dozen on one store, each with an executor of its own, of which some have a strategy.
func services(t *testing.T, st xxljob.Store, routers map[string]xxljob.Router, names ...string) map[string]xxljob.Scheduler {
	all := map[string]xxljob.Scheduler{}
	for _, name := range names {
		cfg := xxljob.Config{App: strings.TrimRight(name, "'"), Node: name, Logger: stage.QuietLog()}
		if r := routers[name]; r != nil {
			cfg.Routers = map[string]xxljob.Router{"CANARY": r}
		}
		s, err := xxljob.New(st, cfg)
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", stage.NothingToDo))
		stage.Must(t, s.Handle("fail", func(context.Context, *xxljob.Task) error { return errors.New("no") }))
		stage.Must(t, s.Start(t.Context()))
		all[name] = s
	}
	time.Sleep(time.Minute) // the shards are shared out
	return all
}

func dozen() (names []string) {
	for i := range 12 {
		names = append(names, fmt.Sprintf("svc%02d", i))
	}
	return names
}

// canaries are jobs whose strategy CANARY is, with one failing job that has a retry among them.
func canaries(t *testing.T, s xxljob.Scheduler, app string, n int) (ids []int64) {
	for k := range n {
		job := xxljob.Job{App: app, Key: fmt.Sprint("canary", k), Name: "canary", Handler: "work", Route: "CANARY", Schedule: xxljob.Crontab("* * * * *")}
		if k == 0 {
			job.Handler, job.Retries = "fail", 1
		}
		added, err := s.EnsureJob(t.Context(), job)
		stage.Must(t, err)
		ids = append(ids, added.Job.ID)
	}
	return ids
}

func stopAll(t *testing.T, all map[string]xxljob.Scheduler) {
	for _, s := range all {
		stage.Must(t, s.Stop(t.Context()))
	}
}

// TestRoutersOfOneServiceAmongTwelve: runs of jobs with a strategy that one of twelve nodes has are
// routed by it, whichever node owns their shard: each once, retries too, and in the order of their
// job. What it refuses is refused in its words.
func TestRoutersOfOneServiceAmongTwelve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, c := memory.New(), &canary{}
		all := services(t, st, map[string]xxljob.Router{"svc00": c}, dozen()...)
		ids := canaries(t, all["svc00"], "svc00", 10)
		time.Sleep(10*time.Minute + 30*time.Second)
		runs := stage.AllOf(t, st, xxljob.RunFilter{App: "svc00"})
		by := stage.CountStates(runs)
		if by[xxljob.StateSucceeded] != 90 || by[xxljob.StateFailed] != 20 || len(runs) != 110 {
			t.Errorf("runs: %v", by)
		}
		if n := c.count(); n != 110 {
			t.Errorf("the strategy was asked %d times about 110 runs", n)
		}
		nodes := map[string]bool{}
		for _, r := range runs {
			if r.State.Ended() && r.Started.Sub(r.Scheduled) > time.Second {
				t.Errorf("run %d was started %v late", r.ID, r.Started.Sub(r.Scheduled))
			}
			nodes[r.Owner] = true
		}
		if len(nodes) < 3 {
			t.Errorf("only %d nodes have had such runs", len(nodes))
		}
		for name, s := range all {
			for _, x := range s.Troubles() {
				t.Errorf("%s: %+v", name, x)
			}
		}
		// Another service may change such a job.
		job, err := st.Job(t.Context(), ids[3])
		stage.Must(t, err)
		job.Name = "renamed"
		job, err = all["svc05"].UpdateJob(t.Context(), job)
		stage.Must(t, err)
		job.Route = "CANARI"
		if _, err = all["svc05"].UpdateJob(t.Context(), job); err == nil {
			t.Error("a strategy that nobody has")
		}
		c.mu.Lock()
		c.fails = errors.New("no canary today")
		c.mu.Unlock()
		for _, id := range ids[1:] {
			run := stage.WaitFor(t, all["svc07"], stage.Trigger(t, all["svc07"], xxljob.Job{ID: id}), time.Minute)
			if run.State != xxljob.StateRefused || !strings.Contains(run.HandleMsg, "no canary today") {
				t.Errorf("run %+v", run)
			}
		}
		stopAll(t, all)
	})
}

// TestRunsWaitForWhoKnowsTheirRoute: while no live node has the strategy of a job its due runs wait,
// in their order, which is a trouble; a job that asks for another one by now does not. A node that
// comes up with the strategy has them all started at once, each once.
func TestRunsWaitForWhoKnowsTheirRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, first, second := memory.New(), &canary{}, &canary{}
		all := services(t, st, map[string]xxljob.Router{"svc00": first}, "svc00", "svc01")
		ids := canaries(t, all["svc00"], "svc00", 4)
		// Its executor is elsewhere too, so that there is somebody to run what waits.
		rest := services(t, st, nil, "svc00'")
		time.Sleep(3 * time.Minute)
		before := len(stage.AllOf(t, st, xxljob.RunFilter{App: "svc00", States: []xxljob.State{xxljob.StateSucceeded}}))
		stage.Must(t, all["svc00"].Stop(t.Context()))
		delete(all, "svc00")
		time.Sleep(20 * time.Minute)
		planned := stage.AllOf(t, st, xxljob.RunFilter{App: "svc00", States: []xxljob.State{xxljob.StatePlanned}})
		ended := len(stage.AllOf(t, st, xxljob.RunFilter{App: "svc00", States: []xxljob.State{xxljob.StateSucceeded}}))
		if len(planned) < 75 || ended > before+3 {
			t.Errorf("%d runs are planned, %d have ended since", len(planned), ended-before)
		}
		troubles := map[int64]xxljob.Trouble{}
		for _, s := range []xxljob.Scheduler{all["svc01"], rest["svc00'"]} {
			for _, x := range s.Troubles() {
				troubles[x.JobID] = x
			}
		}
		for _, id := range ids {
			if x := troubles[id]; x.Cause != xxljob.TroubleUnknownRouter || !strings.Contains(x.Detail, "CANARY") || !strings.Contains(x.Detail, "1h0m0s") || x.Late < 1 {
				t.Errorf("trouble of job %d: %+v", id, x)
			}
		}
		job, err := st.Job(t.Context(), ids[3])
		stage.Must(t, err)
		job.Route = "FIRST"
		_, err = all["svc01"].UpdateJob(t.Context(), job)
		stage.Must(t, err)
		time.Sleep(10 * time.Second)
		for _, r := range stage.AllOf(t, st, xxljob.RunFilter{JobID: ids[3]}) {
			if r.State == xxljob.StatePlanned && r.Scheduled.Before(time.Now()) {
				t.Errorf("run %d of the corrected job still waits", r.ID)
			}
		}
		back, err := xxljob.New(st, xxljob.Config{App: "svc00", Node: "back", Logger: stage.QuietLog(), Routers: map[string]xxljob.Router{"CANARY": second}})
		stage.Must(t, err)
		stage.Must(t, back.Start(t.Context()))
		all["back"] = back
		time.Sleep(50 * time.Second)
		byJob := map[int64][]xxljob.Run{}
		for _, r := range stage.AllOf(t, st, xxljob.RunFilter{App: "svc00"}) {
			if r.State == xxljob.StatePlanned && r.Scheduled.Before(time.Now()) || r.State == xxljob.StateRefused {
				t.Errorf("run %d is %v: %s", r.ID, r.State, r.HandleMsg)
			}
			byJob[r.JobID] = append(byJob[r.JobID], r)
		}
		for _, id := range ids[1:3] {
			runs := byJob[id]
			slices.SortFunc(runs, func(a, b xxljob.Run) int { return a.Scheduled.Compare(b.Scheduled) })
			for i, r := range runs[:len(runs)-1] {
				if next := runs[i+1]; r.State == xxljob.StateSucceeded && next.State == xxljob.StateSucceeded && next.Started.Before(r.Started) {
					t.Errorf("run %d was started before the earlier %d", next.ID, r.ID)
				}
			}
		}
		waited := 0
		for _, r := range planned {
			if r.JobID != ids[3] {
				waited++
			}
		}
		if n := second.count(); n < waited {
			t.Errorf("the strategy was asked %d times about %d runs", n, waited)
		}
		time.Sleep(20 * time.Second)
		for name, s := range map[string]xxljob.Scheduler{"svc01": all["svc01"], "svc00'": rest["svc00'"]} {
			for _, x := range s.Troubles() {
				t.Errorf("afterwards %s has %+v", name, x)
			}
		}
		stopAll(t, all)
		stopAll(t, rest)
	})
}

// TestRunsAreRefusedWhereNobodyComes who knows their strategy: each after an hour, in words, and so
// says the trouble. Two nodes with the strategy share the jobs among them, and one may go at any time.
func TestRunsAreRefusedWhereNobodyComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, one, two := memory.New(), &canary{}, &canary{}
		all := services(t, st, map[string]xxljob.Router{"svc00": one, "svc00'": two}, "svc00", "svc00'", "svc01", "svc02")
		canaries(t, all["svc00"], "svc00", 8)
		time.Sleep(5 * time.Minute)
		if one.count() < 5 || two.count() < 5 {
			t.Errorf("of two nodes one was asked %d times, the other %d", one.count(), two.count())
		}
		stage.Must(t, all["svc00"].Stop(t.Context()))
		delete(all, "svc00")
		time.Sleep(5 * time.Minute)
		for _, r := range stage.AllOf(t, st, xxljob.RunFilter{App: "svc00"}) {
			if r.State == xxljob.StateRefused || r.State == xxljob.StatePlanned && time.Since(r.Scheduled) > 5*time.Second {
				t.Errorf("run %d is %v: %s", r.ID, r.State, r.HandleMsg)
			}
		}
		extra := services(t, st, nil, "svc00''")
		gone := time.Now()
		stage.Must(t, all["svc00'"].Stop(t.Context()))
		delete(all, "svc00'")
		time.Sleep(59 * time.Minute)
		if refused := stage.AllOf(t, st, xxljob.RunFilter{App: "svc00", States: []xxljob.State{xxljob.StateRefused}}); len(refused) > 0 {
			t.Errorf("%d runs are refused, the first with %q", len(refused), refused[0].HandleMsg)
		}
		time.Sleep(11 * time.Minute)
		refused := stage.AllOf(t, st, xxljob.RunFilter{App: "svc00", States: []xxljob.State{xxljob.StateRefused}})
		if len(refused) < 70 || len(refused) > 90 {
			t.Errorf("%d runs are refused", len(refused))
		}
		for _, r := range refused {
			if !strings.Contains(r.HandleMsg, "CANARY") || r.Ended.Sub(r.Scheduled) < time.Hour || r.Ended.Sub(r.Scheduled) > time.Hour+10*time.Second || r.Scheduled.Before(gone.Add(-time.Minute)) {
				t.Errorf("run %d due %v ended %v: %q", r.ID, r.Scheduled, r.Ended, r.HandleMsg)
				break
			}
		}
		stopAll(t, all)
		stopAll(t, extra)
	})
}

// departed is a store of which a node has left when a run is first started there, which the others come to
// see a quarter of a second later.
type departed struct {
	st    xxljob.Store
	mu    sync.Mutex
	since time.Time    // of the first such start
	told  atomic.Int64 // how many starts were answered so
}

func (s *departed) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = time.Now()
	}
	if time.Since(s.since) > 250*time.Millisecond || s.told.Load() > 1000 { // time stands still while nobody waits
		return s.st.Start(ctx, dst, starts)
	}
	for range starts {
		s.told.Add(1)
		dst = append(dst, store.Started{Status: store.StartNoNode})
	}
	return dst, nil
}

// TestARouterIsAskedOnceWhereANodeHasLeft about each run, until this node has seen that the other one is not
// there any more: a strategy of its own, of a broadcast too, or one that another node has.
func TestARouterIsAskedOnceWhereANodeHasLeft(t *testing.T) {
	for name, c := range map[string]struct{ route, at string }{
		"its own":            {"CANARY", "here"},
		"its own, broadcast": {xxljob.RouteShardingBroadcast, "here and there"}, // no node is asked about a strategy of XXL-JOB's
		"another node's":     {"CANARY", "there"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gone, asked := &departed{st: memory.New()}, &canary{}
				st := bent.StoreOf(gone.st, gone)
				all := map[string]xxljob.Scheduler{}
				for _, at := range []string{"here", "there"} {
					cfg := xxljob.Config{App: at, Node: at, Logger: stage.QuietLog()}
					if strings.Contains(c.at, at) {
						cfg.Routers = map[string]xxljob.Router{c.route: asked}
					}
					s, err := xxljob.New(st, cfg)
					stage.Must(t, err)
					stage.Must(t, s.Handle("work", stage.NothingToDo))
					stage.Must(t, s.Start(t.Context()))
					all[at] = s
				}
				time.Sleep(time.Minute)
				for _, key := range []string{"a", "b"} { // an answer about the one wakes the other
					job, err := all["here"].AddJob(t.Context(), xxljob.Job{App: "here", Key: key, Name: "canary", Handler: "work", Route: c.route})
					stage.Must(t, err)
					_, err = all["here"].Trigger(t.Context(), job.ID, xxljob.Trigger{})
					stage.Must(t, err)
				}
				time.Sleep(10 * time.Second)
				if n := asked.count(); n != 2 || gone.told.Load() == 0 || gone.told.Load() > 100 {
					t.Errorf("the strategy was asked %d times about two runs whose starts were tried %d times", n, gone.told.Load())
				}
				for _, r := range stage.AllOf(t, st, xxljob.RunFilter{App: "here"}) {
					if r.State != xxljob.StateSucceeded {
						t.Errorf("run %d is %v: %s", r.ID, r.State, r.HandleMsg)
					}
				}
				stopAll(t, all)
			})
		})
	}
}

// forgetfulAsks is the store of a node whose questions about routes come to nothing for a while.
type forgetfulAsks struct {
	st    xxljob.Store
	mu    sync.Mutex
	fails bool
	asked int
	about []int64 // runs, in the order in which questions about them came through
}

func (s *forgetfulAsks) AskLog(ctx context.Context, ask store.Ask) (store.Ask, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ask.Route != "" && s.fails {
		s.asked++
		return store.Ask{}, xxljob.ErrNotFound
	}
	if ask.Route != "" {
		s.about = append(s.about, ask.Run.ID)
	}
	return s.st.AskLog(ctx, ask)
}

func (s *forgetfulAsks) fail(fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails, s.asked = fails, 0
}

func (s *forgetfulAsks) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// TestNoRunWaitsForThePauseOfOthers: where a node has the strategy of a job again, a run that is new is
// started at once though earlier ones wait to be tried again, and these before it. While the node does
// not answer, there is one question for each new run, beside one for each pause.
func TestNoRunWaitsForThePauseOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, tries = 6, 4
		st, asks, c := memory.New(), &forgetfulAsks{}, &canary{}
		asks.st = st
		knows := services(t, st, map[string]xxljob.Router{"svc00": c}, "svc00")
		other := services(t, bent.StoreOf(st, asks), nil, "svc01")
		var list []xxljob.Job
		for i := range jobs {
			job := xxljob.Job{App: "svc00", Key: fmt.Sprint("k", i), Name: "canary", Handler: "work", Route: "CANARY"}
			if i%2 > 0 {
				job.Block = xxljob.BlockConcurrent
			}
			added, err := knows["svc00"].EnsureJob(t.Context(), job)
			stage.Must(t, err)
			list = append(list, added.Job)
		}
		triggered := func() (ids []int64) {
			for _, j := range list {
				ids = append(ids, stage.Trigger(t, other["svc01"], j))
			}
			return ids
		}
		waited := 0
		for k := range tries {
			asks.fail(true)
			var first []int64
			for range 5 {
				first = append(first, triggered()...)
				time.Sleep(1100 * time.Millisecond)
			}
			if n := asks.count(); n == 0 || n > 5*jobs+2*jobs {
				t.Errorf("%d questions about %d new runs of %d jobs in %v", n, 5*jobs, jobs, 5500*time.Millisecond)
			}
			time.Sleep(time.Duration(k) * 1200 * time.Millisecond)
			asks.fail(false)
			for _, id := range first {
				if r, err := st.Run(t.Context(), id); err != nil || r.State == xxljob.StatePlanned {
					waited++
				}
			}
			asked := time.Now()
			second := append(triggered(), triggered()...) // two new ones of each job at once
			time.Sleep(30 * time.Second)
			last, order := map[int64]time.Time{}, map[int64]int{}
			for i, id := range slices.Concat(first, second) {
				r, err := st.Run(t.Context(), id)
				stage.Must(t, err)
				if r.State != xxljob.StateSucceeded || r.Started.Sub(asked) > time.Second {
					t.Errorf("try %d: run %d of job %d is %v, started %v after a node was there", k, i, r.JobID, r.State, r.Started.Sub(asked))
				}
				if about := slices.Index(asks.about, id); about >= 0 && about < order[r.JobID] { // -1: its shard is of the node that knows
					t.Errorf("try %d: run %d of job %d was asked about before the one before it", k, i, r.JobID)
				} else {
					order[r.JobID] = max(about, 0)
				}
				if r.Started.Before(last[r.JobID]) && r.Block == xxljob.BlockSerial {
					t.Errorf("try %d: run %d of job %d was started before the one before it", k, i, r.JobID)
				}
				last[r.JobID] = r.Started
			}
		}
		if waited < tries*5 {
			t.Errorf("only %d runs have waited: it says little", waited)
		}
		stopAll(t, knows)
		stopAll(t, other)
	})
}

// ofBlocks are jobs of svc00 whose strategy CANARY is, as many that keep order as that do not.
func ofBlocks(t *testing.T, s xxljob.Scheduler, n int) (list []xxljob.Job) {
	for i := range n {
		added, err := s.EnsureJob(t.Context(), xxljob.Job{App: "svc00", Key: fmt.Sprint("k", i), Name: "canary", Handler: "work", Route: "CANARY", Block: []string{xxljob.BlockSerial, xxljob.BlockConcurrent}[i%2]})
		stage.Must(t, err)
		list = append(list, added.Job)
	}
	return list
}

// TestATroubleSaysHowManyRunsAreLate, those behind the first too, whether no node has the strategy of their
// job or one that has it does not answer: as many as wait, from soon after each has come until they are
// started, also of jobs that run when somebody triggers them.
func TestATroubleSaysHowManyRunsAreLate(t *testing.T) {
	for _, there := range []bool{false, true} {
		t.Run(fmt.Sprint("a node has it ", there), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, asks := memory.New(), &forgetfulAsks{}
				asks.st = st
				knows := services(t, st, map[string]xxljob.Router{"svc00": &canary{}}, "svc00")
				rest := services(t, bent.StoreOf(st, asks), nil, "svc00'", "svc01")
				jobs := ofBlocks(t, knows["svc00"], 8)
				if asks.fail(true); !there {
					stopAll(t, knows)
				}
				time.Sleep(time.Minute + 50*time.Millisecond)
				late := func() (all int) {
					t.Helper()
					synctest.Wait()
					for _, j := range jobs {
						got, want := 0, len(stage.AllOf(t, st, xxljob.RunFilter{JobID: j.ID, States: []xxljob.State{xxljob.StatePlanned}}))
						for _, s := range rest {
							for _, x := range s.Troubles() {
								if x.Cause == xxljob.TroubleUnknownRouter && x.JobID == j.ID {
									got += x.Late
								}
							}
						}
						if all += want; got != want {
							t.Errorf("%s job %d: %d of %d runs are late", j.Block, j.ID, got, want)
						}
					}
					return all
				}
				for round := range 4 {
					for range 1 + 2*round {
						for _, j := range jobs {
							stage.Trigger(t, rest["svc01"], j)
						}
						time.Sleep(7 * time.Millisecond)
					}
					time.Sleep(1100 * time.Millisecond)
					late()
				}
				time.Sleep(23 * time.Second) // they are tried again and again
				if n := late(); n < 32 {
					t.Errorf("only %d runs have waited: it says little", n)
				}
				if asks.fail(false); !there {
					knows = services(t, st, map[string]xxljob.Router{"svc00": &canary{}}, "svc00")
				}
				time.Sleep(time.Minute)
				if n := late(); n != 0 {
					t.Errorf("%d runs wait when a node answers", n)
				}
				stopAll(t, knows)
				stopAll(t, rest)
			})
		})
	}
}

// TestKilledRunsAreNotLate: of runs that wait for a node with their strategy those that are killed wait no
// more, nor do those that a schedule has made of a job that is stopped; and where none is left the trouble is
// over, though no node has the strategy.
func TestKilledRunsAreNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		knows := services(t, st, map[string]xxljob.Router{"svc00": &canary{}}, "svc00")
		jobs := ofBlocks(t, knows["svc00"], 4)
		rest := services(t, st, nil, "svc00'")
		s := rest["svc00'"]
		stopAll(t, knows)
		time.Sleep(time.Minute)
		runs := map[int64][]int64{}
		for range 3 {
			for _, j := range jobs {
				runs[j.ID] = append(runs[j.ID], stage.Trigger(t, s, j))
			}
		}
		late := func(want int) {
			t.Helper()
			time.Sleep(40 * time.Second)
			synctest.Wait()
			all, each := s.Troubles(), map[int64]int{}
			for _, x := range all {
				each[x.JobID] = x.Late
			}
			stats := s.Stats()
			for _, j := range jobs {
				if each[j.ID] != want {
					t.Errorf("job %d: %d runs are late, want %d", j.ID, each[j.ID], want)
				}
			}
			if want == 0 && len(all) > 0 || stats.Held != want*len(jobs) {
				t.Errorf("%d runs are in memory, the troubles are %+v", stats.Held, all)
			}
		}
		kill := func(i int) {
			for _, j := range jobs {
				stage.Must(t, s.Kill(t.Context(), runs[j.ID][i]))
			}
		}
		late(3)
		kill(1)
		late(2)
		kill(0)
		late(1)
		kill(2)
		late(0)
		stopAll(t, rest)
	})
}

// TestNewRunsTakeNoGoroutineEach: those that are tried again soon, since a run of their job is new, are waited
// for together, however many their jobs are.
func TestNewRunsTakeNoGoroutineEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		knows := services(t, st, map[string]xxljob.Router{"svc00": &canary{}}, "svc00")
		jobs := ofBlocks(t, knows["svc00"], 200)
		rest := services(t, st, nil, "svc00'")
		stopAll(t, knows)
		time.Sleep(time.Minute)
		var n [2]int
		for i := range n {
			for _, j := range jobs {
				stage.Trigger(t, rest["svc00'"], j)
			}
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
			n[i] = runtime.NumGoroutine()
		}
		if n[1]-n[0] > 20 {
			t.Errorf("%d goroutines, and %d with a new run of %d jobs", n[0], n[1], len(jobs))
		}
		stopAll(t, rest)
	})
}

// TestNewRunsAreNotAskedAboutOneByOne: however many runs come while the nodes that have the strategy of
// their job do not answer, what waits is tried twice a second and not for each of them, one question a
// batch of it; and a run that is new then does not wait for longer than that.
func TestNewRunsAreNotAskedAboutOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, asks := memory.New(), &forgetfulAsks{}
		asks.st = st
		knows := services(t, st, map[string]xxljob.Router{"svc00": &canary{}}, "svc00")
		other := services(t, bent.StoreOf(st, asks), nil, "svc01")
		jobs := ofBlocks(t, knows["svc00"], 6)
		var runs []int64
		asks.fail(true)
		began := time.Now()
		for range 200 {
			for _, j := range jobs {
				runs = append(runs, stage.Trigger(t, other["svc01"], j))
			}
			time.Sleep(31 * time.Millisecond)
		}
		// What waits is tried in batches, each of which asks once.
		if n, most := asks.count(), len(runs)/4; n == 0 || n > most {
			t.Errorf("%d questions for %d runs in %v, want %d at most", n, len(runs), time.Since(began), most)
		}
		asks.fail(false)
		again := time.Now()
		for _, j := range jobs {
			runs = append(runs, stage.Trigger(t, other["svc01"], j))
		}
		time.Sleep(30 * time.Second)
		first := map[int64]time.Duration{}
		for _, id := range runs {
			r, err := st.Run(t.Context(), id)
			stage.Must(t, err)
			if r.State != xxljob.StateSucceeded {
				t.Fatalf("run %d of job %d is %v", id, r.JobID, r.State)
			}
			if wait, seen := first[r.JobID]; r.Started.After(again) && (!seen || r.Started.Sub(again) < wait) {
				first[r.JobID] = r.Started.Sub(again)
			}
		}
		for _, j := range jobs {
			if first[j.ID] > 600*time.Millisecond {
				t.Errorf("the first run of job %d was started %v after a node answered", j.ID, first[j.ID])
			}
		}
		stopAll(t, knows)
		stopAll(t, other)
	})
}

// TestANodeThatComesWhileAnotherIsAsked: a node with the strategy of a job that comes while one which does
// not answer is being asked has its runs go on at once, whenever it comes.
func TestANodeThatComesWhileAnotherIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, c := memory.New(), &canary{}
		all := services(t, st, nil, "svc00", "svc01") // executors, and nodes that ask
		for name, s := range services(t, stage.BlindInbox{Store: st}, map[string]xxljob.Router{"mute": &canary{}}, "mute") {
			all[name] = s
		}
		var list []xxljob.Job
		for i := range 6 {
			added, err := all["mute"].EnsureJob(t.Context(), xxljob.Job{App: "svc00", Key: fmt.Sprint("k", i), Name: "canary", Handler: "work", Route: "CANARY"})
			stage.Must(t, err)
			list = append(list, added.Job)
		}
		for k := range 16 {
			var ids []int64
			for _, j := range list {
				ids = append(ids, stage.Trigger(t, all["svc01"], j))
			}
			time.Sleep(time.Duration(k) * 500 * time.Millisecond)
			back, err := xxljob.New(st, xxljob.Config{App: "svc00", Node: "back", Logger: stage.QuietLog(), Routers: map[string]xxljob.Router{"CANARY": c}})
			stage.Must(t, err)
			stage.Must(t, back.Handle("work", stage.NothingToDo))
			stage.Must(t, back.Start(t.Context()))
			came := time.Now()
			time.Sleep(30 * time.Second)
			for i, id := range ids {
				r, err := st.Run(t.Context(), id)
				stage.Must(t, err)
				if r.State != xxljob.StateSucceeded || r.Started.Sub(came) > 3*time.Second {
					t.Errorf("%v after the question: run of job %d is %v, started %v after a node came", time.Duration(k)*500*time.Millisecond, i, r.State, r.Started.Sub(came))
				}
			}
			stage.Must(t, back.Stop(t.Context()))
			time.Sleep(time.Minute)
		}
		stopAll(t, all)
	})
}
