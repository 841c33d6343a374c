package xxljob_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/plain"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// TestFailoverPastHungBeat: FAILOVER goes on to the second address when the beat of the first hangs, and does
// not find the good answer too old by then.
func TestFailoverPastHungBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		a, b := pair(t, memory.New(), &journal{})
		must(t, a.Attach(&userExecutor{app: "x", beat: func() (wire.Return, error) { <-release; return wire.Success(), nil }}))
		must(t, b.Attach(&userExecutor{app: "x"}))
		time.Sleep(5 * time.Second)
		waitFor(t, a, triggerNew(t, a, xxljob.Job{App: "x", Name: "job", Handler: "work", Route: "FAILOVER"}), time.Minute)
		close(release)
		stop(t, a, b)
	})
}

// TestMovedLetsTheNextIn: A run that goes on to another node after a refusal lets the next serial run in at
// once.
func TestMovedLetsTheNextIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, memory.New(), &journal{})
		must(t, a.Attach(&userExecutor{app: "x", run: func(context.Context, wire.Admin, wire.TriggerRequest) (wire.Return, error) {
			time.Sleep(100 * time.Millisecond)
			return wire.Failf("not today"), nil
		}}))
		must(t, b.Attach(&userExecutor{app: "x"}))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work", Route: "FAILOVER"})
		must(t, err)
		one := trigger(t, a, job)
		time.Sleep(20 * time.Millisecond)
		two := trigger(t, a, job)
		waitFor(t, a, one, time.Minute)
		waitFor(t, a, two, time.Minute)
		stop(t, a, b)
	})
}

// TestReaddressIsTriedAgain: A store that is away for the one call that moves a refused run does not make the
// refusal final: another address is there.
func TestReaddressIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, memory.New(), &journal{})
		must(t, a.Attach(&userExecutor{app: "x", run: func(context.Context, wire.Admin, wire.TriggerRequest) (wire.Return, error) {
			return wire.Failf("not today"), nil
		}}))
		must(t, b.Attach(&userExecutor{app: "x"}))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work", Route: "FAILOVER"})
		must(t, err)
		a.faults.Inject("Readdress", storetest.Fault{Before: true, Calls: 1})
		if r := waitFor(t, a, trigger(t, a, job), time.Minute); r.State != xxljob.StateSucceeded {
			t.Errorf("%v: %s", r.State, r.TriggerMsg)
		}
		stop(t, a, b)
	})
}

// TestBusyoverStoreError: BUSYOVER does not take a store that is away for an executor that is not well.
func TestBusyoverStoreError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, memory.New(), &journal{})
		must(t, b.Attach(&userExecutor{app: "x"}))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{App: "x", Name: "job", Handler: "work", Route: "BUSYOVER"})
		must(t, err)
		a.faults.Inject("Runs", storetest.Fault{Before: true, Calls: 1})
		if r := waitFor(t, b, trigger(t, a, job), time.Minute); r.State != xxljob.StateSucceeded {
			t.Errorf("%v: %s", r.State, r.TriggerMsg)
		}
		stop(t, a, b)
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
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &journal{}
		a := startNode(t, st, "a", j, func(c *xxljob.Config) { c.Registry = &oneBadRegistry{}; c.Logger = slog.New(slog.DiscardHandler) })
		time.Sleep(time.Second)
		good, err := a.AddJob(t.Context(), xxljob.Job{Name: "good", Handler: "work"})
		must(t, err)
		triggerNew(t, a, xxljob.Job{App: "bad", Name: "bad", Handler: "work"})
		time.Sleep(time.Second)
		waitFor(t, a, trigger(t, a, good), 5*time.Minute)
		stopShort(a)
	})
}

// TestAddressesThatNobodyTells: while the tables of apps and addresses are locked, the last
// answer serves, and the executors that are attached get their runs. What has joined or
// left meanwhile is known by other means.
func TestAddressesThatNobodyTells(t *testing.T) {
	for _, method := range []string{"Group", "Addresses"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, j := memory.New(), &journal{}
				a := startNode(t, st, "a", j)
				addSeconds(t, a, 5)
				time.Sleep(10 * time.Second)
				unlock := make(chan struct{})
				a.faults.Inject(method, storetest.Fault{Hang: unlock})
				locked := len(j.all())
				time.Sleep(time.Minute)
				close(unlock)
				a.faults.Clear()
				time.Sleep(10 * time.Second)
				stop(t, a)
				late := time.Duration(0)
				for _, s := range j.all()[locked:] {
					late = max(late, s.at.Sub(s.due))
				}
				// A run waits for one look at most, of a second.
				if n := len(j.all()) - locked; n < 5*69 || late > time.Second+10*time.Millisecond {
					t.Errorf("%d runs of %d, the latest by %v", n, 5*70, late)
				}
				if skipped := countStates(allRuns(t, st))[xxljob.StateSkipped]; skipped > 0 {
					t.Errorf("%d instants were skipped", skipped)
				}
			})
		})
	}
}

// TestManyAppsThatNobodyTellsAbout: one look at a locked table holds the starts up, not
// one for each app.
func TestManyAppsThatNobodyTellsAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const apps = 10
		st := memory.New()
		a := startNode(t, st, "a", &journal{})
		var mu sync.Mutex
		late, n := time.Duration(0), 0
		for i := range apps {
			app := fmt.Sprint("app ", i)
			ex, err := executor.New(executor.Config{App: app, Logger: quietLog()})
			must(t, err)
			must(t, ex.Handle("work", func(_ context.Context, task *xxljob.Task) error {
				mu.Lock()
				defer mu.Unlock()
				late, n = max(late, time.Since(task.ScheduledAt)), n+1
				return nil
			}))
			must(t, a.Attach(ex))
			_, err = a.AddJob(t.Context(), xxljob.Job{App: app, Name: app, Handler: "work", Schedule: xxljob.Cron("* * * * * ?")})
			must(t, err)
		}
		time.Sleep(10 * time.Second)
		unlock := make(chan struct{})
		a.faults.Inject("Group", storetest.Fault{Hang: unlock})
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
		a.faults.Clear()
		stop(t, a)
	})
}

// listed is a registry that says what it is told to, or nothing.
type listed struct {
	addrs []string
	fails bool
}

func (r *listed) Register(context.Context, string, string) error   { return nil }
func (r *listed) Deregister(context.Context, string, string) error { return nil }
func (r *listed) Lookup(context.Context, string) ([]string, error) {
	if r.fails {
		return nil, errors.New("away")
	}
	return r.addrs, nil
}

// TestAnOldAbsenceRefusesNothing: that there were no addresses the last time somebody told
// does not end a run as refused while nobody tells. It waits.
func TestAnOldAbsenceRefusesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &listed{}
		st := memory.New()
		a := startNode(t, st, "a", &journal{}, func(c *xxljob.Config) { c.Registry = r })
		time.Sleep(time.Second)
		refused := triggerNew(t, a, xxljob.Job{Name: "early", Handler: "work"})
		if run := waitFor(t, a, refused, time.Minute); run.State != xxljob.StateRefused {
			t.Fatalf("without an address a run is %v", run.State)
		}
		r.fails = true
		time.Sleep(2 * time.Second)
		id := triggerNew(t, a, xxljob.Job{Name: "job", Handler: "work"})
		time.Sleep(20 * time.Second)
		if run, err := st.Run(t.Context(), id); err != nil || run.State != xxljob.StatePlanned {
			t.Errorf("while nobody tells it is %v (%v), want planned", run.State, err)
		}
		stopShort(a)
	})
}
