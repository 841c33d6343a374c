package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/plain"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// TestFailoverPastHungBeat: FAILOVER goes on to the second address when the beat of the first hangs, and does
// not find the good answer too old by then.
func TestFailoverPastHungBeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		a, b := pair(t, memory.New(), &stage.Journal{})
		stage.Must(t, a.Attach(&stage.UserExecutor{Of: "x", OnBeat: func() (wire.Return, error) { <-release; return wire.Success(), nil }}))
		stage.Must(t, b.Attach(&stage.UserExecutor{Of: "x"}))
		time.Sleep(5 * time.Second)
		stage.WaitFor(t, a, stage.TriggerNew(t, a, xxljob.Job{App: "x", Name: "job", Handler: "work", Route: "FAILOVER"}), time.Minute)
		close(release)
		stage.Stop(t, a, b)
	})
}

// TestMovedLetsTheNextIn: A run that goes on to another node after a refusal lets the next serial run in at
// once.
func TestMovedLetsTheNextIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, memory.New(), &stage.Journal{})
		stage.Must(t, a.Attach(&stage.UserExecutor{Of: "x", OnRun: func(context.Context, wire.Admin, wire.TriggerRequest) (wire.Return, error) {
			time.Sleep(100 * time.Millisecond)
			return wire.Failf("not today"), nil
		}}))
		stage.Must(t, b.Attach(&stage.UserExecutor{Of: "x"}))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work", Route: "FAILOVER"})
		stage.Must(t, err)
		one := stage.Trigger(t, a, job)
		time.Sleep(20 * time.Millisecond)
		two := stage.Trigger(t, a, job)
		stage.WaitFor(t, a, one, time.Minute)
		stage.WaitFor(t, a, two, time.Minute)
		stage.Stop(t, a, b)
	})
}

// TestReaddressIsTriedAgain: A store that is away for the one call that moves a refused run does not make the
// refusal final: another address is there.
func TestReaddressIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, memory.New(), &stage.Journal{})
		stage.Must(t, a.Attach(&stage.UserExecutor{Of: "x", OnRun: func(context.Context, wire.Admin, wire.TriggerRequest) (wire.Return, error) {
			return wire.Failf("not today"), nil
		}}))
		stage.Must(t, b.Attach(&stage.UserExecutor{Of: "x"}))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work", Route: "FAILOVER"})
		stage.Must(t, err)
		a.Faults.Inject("Readdress", storetest.Fault{Before: true, Calls: 1})
		if r := stage.WaitFor(t, a, stage.Trigger(t, a, job), time.Minute); r.State != xxljob.StateSucceeded {
			t.Errorf("%v: %s", r.State, r.TriggerMsg)
		}
		stage.Stop(t, a, b)
	})
}

// TestBusyoverStoreError: BUSYOVER does not take a store that is away for an executor that is not well.
func TestBusyoverStoreError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, memory.New(), &stage.Journal{})
		stage.Must(t, b.Attach(&stage.UserExecutor{Of: "x"}))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work", Route: "BUSYOVER"})
		stage.Must(t, err)
		a.Faults.Inject("Runs", storetest.Fault{Before: true, Calls: 1})
		if r := stage.WaitFor(t, b, stage.Trigger(t, a, job), time.Minute); r.State != xxljob.StateSucceeded {
			t.Errorf("%v: %s", r.State, r.TriggerMsg)
		}
		stage.Stop(t, a, b)
	})
}

// oneBadRegistry fails for one app.
type oneBadRegistry struct{ plain.Registry }

func (r *oneBadRegistry) Lookup(ctx context.Context, app string) ([]string, error) {
	if app == "bad" {
		return nil, errors.New("no such zone")
	}
	return r.Registry.Lookup(ctx, app)
}

// TestRegistryFailsForOneApp: A registry that fails for one app leaves the runs of the others alone.
func TestRegistryFailsForOneApp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a := stage.StartNode(t, st, "a", j, func(c *xxljob.Config) { c.Registry = &oneBadRegistry{}; c.Logger = slog.New(slog.DiscardHandler) })
		time.Sleep(time.Second)
		good, err := a.AddJob(t.Context(), xxljob.Job{Name: "good", Handler: "work"})
		stage.Must(t, err)
		stage.TriggerNew(t, a, xxljob.Job{App: "bad", Name: "bad", Handler: "work"})
		time.Sleep(time.Second)
		stage.WaitFor(t, a, stage.Trigger(t, a, good), 5*time.Minute)
		stage.StopShort(a)
	})
}

// TestAddressesThatNobodyTells: while the tables of apps and addresses are locked, the last
// answer serves, and the executors that are attached get their runs. What has joined or
// left meanwhile is known by other means.
func TestAddressesThatNobodyTells(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Group", "Addresses"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, j := memory.New(), &stage.Journal{}
				a := stage.StartNode(t, st, "a", j)
				stage.AddSeconds(t, a, 5)
				time.Sleep(10 * time.Second)
				unlock := make(chan struct{})
				a.Faults.Inject(method, storetest.Fault{Hang: unlock})
				locked := len(j.All())
				time.Sleep(time.Minute)
				close(unlock)
				a.Faults.Clear()
				time.Sleep(10 * time.Second)
				stage.Stop(t, a)
				late := time.Duration(0)
				for _, s := range j.All()[locked:] {
					late = max(late, s.At.Sub(s.Due))
				}
				// A run waits for one look at most, of a second.
				if n := len(j.All()) - locked; n < 5*69 || late > time.Second+10*time.Millisecond {
					t.Errorf("%d runs of %d, the latest by %v", n, 5*70, late)
				}
				if skipped := stage.CountStates(stage.AllRuns(t, st))[xxljob.StateSkipped]; skipped > 0 {
					t.Errorf("%d instants were skipped", skipped)
				}
			})
		})
	}
}

// TestManyAppsThatNobodyTellsAbout: one look at a locked table holds the starts up, not
// one for each app.
func TestManyAppsThatNobodyTellsAbout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const apps = 10
		st := memory.New()
		a := stage.StartNode(t, st, "a", &stage.Journal{})
		var mu sync.Mutex
		late, n := time.Duration(0), 0
		for i := range apps {
			app := fmt.Sprint("app ", i)
			ex, err := executor.New(executor.Config{App: app, Logger: stage.QuietLog()})
			stage.Must(t, err)
			stage.Must(t, ex.Handle("work", func(_ context.Context, task *xxljob.Task) error {
				mu.Lock()
				defer mu.Unlock()
				late, n = max(late, time.Since(task.ScheduledAt)), n+1
				return nil
			}))
			stage.Must(t, a.Attach(ex))
			_, err = a.AddJob(t.Context(), xxljob.Job{App: app, Name: app, Handler: "work", Schedule: xxljob.Cron("* * * * * ?")})
			stage.Must(t, err)
		}
		time.Sleep(10 * time.Second)
		unlock := make(chan struct{})
		a.Faults.Inject("Group", storetest.Fault{Hang: unlock})
		mu.Lock()
		late, n = 0, 0
		mu.Unlock()
		time.Sleep(time.Minute)
		mu.Lock()
		if n < apps*58 || late > time.Second+10*time.Millisecond {
			t.Errorf("%d runs of %d, the latest by %v", n, apps*60, late)
		}
		mu.Unlock()
		close(unlock)
		a.Faults.Clear()
		stage.Stop(t, a)
	})
}

// listed is a registry that says what it is told to, or nothing.
type listed struct {
	addrs []string
	fails atomic.Bool
}

func (r *listed) Register(context.Context, string, string) error   { return nil }
func (r *listed) Deregister(context.Context, string, string) error { return nil }
func (r *listed) Lookup(context.Context, string) ([]string, error) {
	if r.fails.Load() {
		return nil, errors.New("away")
	}
	return r.addrs, nil
}

// TestAnOldAbsenceRefusesNothing: that there were no addresses the last time somebody told
// does not end a run as refused while nobody tells. It waits.
func TestAnOldAbsenceRefusesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &listed{}
		st := memory.New()
		a := stage.StartNode(t, st, "a", &stage.Journal{}, func(c *xxljob.Config) { c.Registry = r })
		time.Sleep(time.Second)
		refused := stage.TriggerNew(t, a, xxljob.Job{Name: "early", Handler: "work"})
		if run := stage.WaitFor(t, a, refused, time.Minute); run.State != xxljob.StateRefused {
			t.Fatalf("without an address a run is %v", run.State)
		}
		r.fails.Store(true)
		time.Sleep(2 * time.Second)
		id := stage.TriggerNew(t, a, xxljob.Job{Name: "job", Handler: "work"})
		time.Sleep(20 * time.Second)
		if run, err := st.Run(t.Context(), id); err != nil || run.State != xxljob.StatePlanned {
			t.Errorf("while nobody tells it is %v (%v), want planned", run.State, err)
		}
		stage.StopShort(a)
	})
}
