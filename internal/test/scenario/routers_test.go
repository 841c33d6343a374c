package scenario_test

// Routing strategies of services that share a store: who is asked about a run, and who then.

import (
	"context"
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
	"github.com/xxljob/xxljob/store/storetest"
)

// picker is a strategy that takes the first address with a prefix, and notes which jobs it was asked
// about.
type picker struct {
	prefix string
	hook   func(context.Context)

	mu   sync.Mutex
	jobs map[int64]int // guarded by mu
}

func (p *picker) Route(ctx context.Context, job int64, addrs []string) ([]string, error) {
	if p.hook != nil {
		p.hook(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jobs == nil {
		p.jobs = map[int64]int{}
	}
	p.jobs[job]++
	i := slices.IndexFunc(addrs, func(a string) bool { return strings.HasPrefix(a, p.prefix) })
	return addrs[max(i, 0):][:1], nil
}

func (p *picker) asked(jobs []xxljob.Job) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range jobs {
		n += p.jobs[j.ID]
	}
	return n
}

// routed are jobs of an app with the strategy CANARY, due every few seconds.
func routed(t *testing.T, s xxljob.Scheduler, app string, n int) (jobs []xxljob.Job) {
	for i := range n {
		j, err := s.AddJob(t.Context(), xxljob.Job{App: app, Name: fmt.Sprint(app, i), Handler: "work", Route: "CANARY", Schedule: xxljob.Cron("*/2 * * * * ?")})
		stage.Must(t, err)
		jobs = append(jobs, j)
	}
	return jobs
}

func canaryOf(app string, r xxljob.Router) func(*xxljob.Config) {
	return func(c *xxljob.Config) {
		c.App = app
		if r != nil {
			c.Routers = map[string]xxljob.Router{"CANARY": r}
		}
	}
}

// TestAnotherIsAskedWhereOneIsSilent: a node with the strategy of a job dies while it is asked. Until it
// is missed the other one is asked after a moment, and no run waits for longer than a take-over takes.
func TestAnotherIsAskedWhereOneIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		var a *stage.Node
		var killed time.Time
		var once sync.Once
		armed := make(chan struct{})
		hook := func(ctx context.Context) {
			select {
			case <-armed:
				once.Do(func() { killed = time.Now(); a.Pause() })
				<-ctx.Done()
			default:
			}
		}
		a = stage.StartNode(t, st, "a", j, canaryOf("app", &picker{prefix: "local://b-", hook: hook}))
		b := stage.StartNode(t, st, "b", j, canaryOf("app", &picker{prefix: "local://b-"}))
		o := stage.StartNode(t, st, "o", j, canaryOf("other", nil))
		time.Sleep(10 * time.Second)
		requireSpread(t, st, a, b, o)
		routed(t, o, "app", 40)
		time.Sleep(9 * time.Second)
		owned := map[int]bool{}
		for _, sh := range stage.Observe(t, st).Shards {
			owned[sh.ID] = strings.HasPrefix(sh.Owner, "o-")
		}
		time.Sleep(500 * time.Millisecond)
		close(armed)
		time.Sleep(time.Minute)
		seen, hers := 0, 0
		for _, r := range stage.AllRuns(t, st) {
			if r.Scheduled.Before(killed.Add(-time.Second)) || r.Scheduled.After(killed.Add(20*time.Second)) {
				continue
			}
			seen++
			switch late := r.Started.Sub(r.Scheduled); {
			case r.State != xxljob.StateSucceeded:
				t.Errorf("run %d of job %d is %v: %s", r.ID, r.JobID, r.State, r.HandleMsg)
			case owned[r.Shard] && late > 3*time.Second:
				t.Errorf("run %d of job %d, of the node that is there, was started %v late", r.ID, r.JobID, late)
			case late > 8*time.Second:
				t.Errorf("run %d of job %d was started %v late", r.ID, r.JobID, late)
			case owned[r.Shard] && late > 500*time.Millisecond:
				hers++
			}
		}
		if seen < 300 || hers == 0 {
			t.Errorf("%d runs, of which %d have waited for the dead node: nothing was shown", seen, hers)
		}
		a.Resume()
		stage.Stop(t, a, b, o)
	})
}

// TestRoutersOfOneNameInTwoServices: each service's runs are routed by its own strategy, whichever node
// owns their shard; those of one that has none of the name by any.
func TestRoutersOfOneNameInTwoServices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		first, second := &picker{}, &picker{prefix: "local://b2-"}
		nodes := []*stage.Node{
			stage.StartNode(t, st, "a1", j, canaryOf("a", first)), stage.StartNode(t, st, "a2", j, canaryOf("a", nil)),
			stage.StartNode(t, st, "b1", j, canaryOf("b", second)), stage.StartNode(t, st, "b2", j, canaryOf("b", second)),
			stage.StartNode(t, st, "c", j, canaryOf("c", nil)),
		}
		time.Sleep(10 * time.Second)
		requireSpread(t, st, nodes...)
		as, bs, cs := routed(t, nodes[4], "a", 20), routed(t, nodes[0], "b", 20), routed(t, nodes[2], "c", 5)
		time.Sleep(20*time.Second + 500*time.Millisecond) // between instants, when none is under way
		runs := stage.CountStates(stage.AllRuns(t, st))
		if runs[xxljob.StateSucceeded] < 400 || len(runs) > 2 {
			t.Errorf("runs: %v", runs)
		}
		for _, r := range stage.AllOf(t, st, xxljob.RunFilter{App: "b", States: []xxljob.State{xxljob.StateSucceeded}}) {
			if !strings.HasPrefix(r.Address, "local://b2-") {
				t.Fatalf("run %d of b was sent to %s", r.ID, r.Address)
			}
		}
		if n, m := first.asked(bs), second.asked(as); n+m > 0 || first.asked(as) < 150 || second.asked(bs) < 150 {
			t.Errorf("a's strategy was asked %d times about runs of b, b's %d times about those of a", n, m)
		}
		if n := first.asked(cs) + second.asked(cs); n < 40 {
			t.Errorf("%d questions about runs of c", n)
		}
		for _, n := range nodes {
			for _, x := range n.Troubles() {
				t.Errorf("%s: %+v", n.Name, x)
			}
		}
		stage.Stop(t, nodes...)
	})
}

// TestARouteThatNobodyTellsIsOneTrouble: a node says that it has the strategy of jobs, and answers no
// question about their runs. As long as these wait that is one trouble a job, told once; it is over when
// the node answers.
func TestARouteThatNobodyTellsIsOneTrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		var mu sync.Mutex
		began, over := map[int64]int{}, map[int64]int{}
		note := func(counts map[int64]int) func(xxljob.Trouble) {
			return func(x xxljob.Trouble) {
				if x.Cause == xxljob.TroubleUnknownRouter {
					mu.Lock()
					defer mu.Unlock()
					counts[x.JobID]++
				}
			}
		}
		b := stage.StartNode(t, st, "b", j, canaryOf("app", &picker{}))
		o := stage.StartNode(t, st, "o", j, canaryOf("other", nil), func(c *xxljob.Config) {
			c.Hooks.TroubleBegan, c.Hooks.TroubleOver = note(began), note(over)
		})
		time.Sleep(10 * time.Second)
		requireSpread(t, st, b, o)
		answers := b.Faults.Inject("AnswerLog", storetest.Fault{Before: true})
		routed(t, o, "app", 8)
		require := func(when string, wantOver int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(began) == 0 {
				t.Fatalf("%s: no trouble: nothing was shown", when)
			}
			for id, n := range began {
				if n != 1 || over[id] != wantOver {
					t.Errorf("%s: the trouble of job %d was told %d times, and %d times that it is over, want 1 and %d", when, id, n, over[id], wantOver)
				}
			}
		}
		time.Sleep(5 * time.Minute)
		require("while nobody answers", 0)
		answers()
		time.Sleep(time.Minute)
		require("when somebody does", 1)
		stage.Stop(t, b, o)
	})
}

// TestRoutedWhenTheServiceIsBack: the only node of a service dies while it is asked where runs go. What
// was found out then, that nobody answers, says nothing of the moment in which a node is back: the runs
// go on at once.
func TestRoutedWhenTheServiceIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		dead := stage.StartNode(t, st, "b", j, canaryOf("app", &picker{}))
		o := stage.StartNode(t, st, "o", j, canaryOf("other", nil))
		time.Sleep(10 * time.Second)
		requireSpread(t, st, dead, o)
		for _, job := range routed(t, o, "app", 8) {
			job.OnNoExecutor = xxljob.OnNoExecutorWait
			_, err := o.UpdateJob(t.Context(), job)
			stage.Must(t, err)
		}
		time.Sleep(10*time.Second - time.Millisecond) // an instant is about to come
		dead.Pause()
		time.Sleep(time.Minute)
		waiting := stage.AllOf(t, st, xxljob.RunFilter{States: []xxljob.State{xxljob.StatePlanned}})
		back, at := stage.StartNode(t, st, "b2", j, canaryOf("app", &picker{})), time.Now()
		time.Sleep(30 * time.Second)
		if len(waiting) == 0 {
			t.Fatal("no run has waited: nothing was shown")
		}
		for _, r := range waiting {
			r, err := st.Run(t.Context(), r.ID)
			stage.Must(t, err)
			if took := r.Started.Sub(at); r.State != xxljob.StateSucceeded || r.Scheduled.Before(at) && took > 3*time.Second {
				t.Errorf("run %d of %v is %v, started %v after the service was back: %s", r.ID, r.Scheduled, r.State, took, r.HandleMsg)
			}
		}
		dead.Resume()
		stage.StopShort(dead)
		stage.Stop(t, back, o)
	})
}
