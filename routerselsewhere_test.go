package xxljob_test

// Routing strategies of one of the services that share a store.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
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
