package xxljob_test

// Accepted runs that nobody reports, where the node that looks after them has it hard: looks
// that take long, registries that do not answer, shards that move, very many runs.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// asFirst is the first process of an executor of ours.
func asFirst(r *remotely) { r.says(saysOf(wire.RunHeld, "one")); r.asOurs("one") }

// TestUnreportedBySlowLooks: a look that takes seconds is a look.
func TestUnreportedBySlowLooks(t *testing.T) {
	for _, d := range []time.Duration{time.Second, 4 * time.Second} {
		slow := func(faults *storetest.Faults) {
			faults.Inject("DispatchedRuns", storetest.Fault{Delay: d})
		}
		bubble(t, fmt.Sprint("killed, ", d), func(t *testing.T) {
			faults := storetest.Wrap(memory.New())
			r := accepts(t, faults, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
			slow(faults)
			time.Sleep(2 * time.Minute)
			r.registers(nil)
			r.says(isGone)
			r.ends(dead-31*time.Second, dead+lostAfter, "nobody answers")
		})
		bubble(t, fmt.Sprint("idle, ", d), func(t *testing.T) {
			faults := storetest.Wrap(memory.New())
			r := accepts(t, faults, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
			slow(faults)
			time.Sleep(2 * time.Minute)
			r.says(saysIdle)
			r.ends(dead-time.Second, dead+lostAfter+lookedAt, "does not have the run")
		})
		bubble(t, fmt.Sprint("restarted, ", d), func(t *testing.T) {
			faults := storetest.Wrap(memory.New())
			r := accepts(t, faults, xxljob.Config{}, xxljob.Job{}, asFirst)
			slow(faults)
			time.Sleep(2 * time.Minute)
			r.says(saysOf(wire.RunForgotten, "two"))
			r.asOurs("two")
			r.ends(lostAfter-time.Second, lostAfter+lookedAt+40*time.Second, "the executor was restarted")
		})
	}
}

// moody is a registry of the user's with one executor, that fails or hangs for some apps.
type moody struct {
	mu    sync.Mutex
	fails map[string]bool // guarded by mu
	hangs map[string]bool // guarded by mu
}

func newMoody() *moody { return &moody{fails: map[string]bool{}, hangs: map[string]bool{}} }

// set has it fail or hang for an app from now on.
func (f *moody) set(mood map[string]bool, app string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	mood[app] = true
}

func (f *moody) Register(context.Context, string, string) error   { return nil }
func (f *moody) Deregister(context.Context, string, string) error { return nil }
func (f *moody) Lookup(ctx context.Context, app string) ([]string, error) {
	f.mu.Lock()
	fails, hangs := f.fails[app], f.hangs[app]
	f.mu.Unlock()
	switch {
	case hangs:
		<-ctx.Done()
		return nil, ctx.Err()
	case fails:
		return nil, errors.New("no such service")
	}
	return []string{at1}, nil
}

// TestUnreportedWithoutARegistry: where it is not known who is there, a run ends at Overdue.
func TestUnreportedWithoutARegistry(t *testing.T) {
	bubble(t, "it fails for the app", func(t *testing.T) {
		reg := newMoody()
		r := accepts(t, nil, xxljob.Config{Registry: reg}, xxljob.Job{}, func(*remotely) {})
		reg.set(reg.fails, "far")
		r.says(isGone)
		r.ends(23*time.Hour, 25*time.Hour, "no result within 24h0m0s")
	})
	bubble(t, "it hangs for others", func(t *testing.T) {
		reg := newMoody()
		r := accepts(t, nil, xxljob.Config{Registry: reg}, xxljob.Job{}, func(*remotely) {})
		for i := range 40 {
			app := fmt.Sprint("other-", i)
			stage.TriggerNew(t, r.Scheduler, xxljob.Job{App: app, Name: "j", Handler: "work"})
			reg.set(reg.hangs, app)
		}
		time.Sleep(10 * time.Minute)
		r.says(saysIdle)
		r.ends(dead-time.Second, dead+lostAfter+2*lookedAt, "does not have the run")
	})
}

// TestUnreportedWhereShardsMove: no node has the shard for as long as it takes to see that an
// executor is gone.
func TestUnreportedWhereShardsMove(t *testing.T) {
	bubble(t, "each minute", func(t *testing.T) {
		st := memory.New()
		cfg := xxljob.Config{Node: "a", Cluster: xxljob.ClusterConfig{LeaseMaxHold: time.Minute}}
		r := accepts(t, st, cfg, xxljob.Job{}, (*remotely).asOthers)
		cfg.Node = "b"
		newElsewhere(t, st, cfg, r.peers)
		time.Sleep(10 * time.Minute)
		r.registers(nil)
		r.says(isGone)
		r.ends(dead-31*time.Second, dead+lostAfter+time.Minute, "nobody answers")
	})
}

// TestUnreportedOfADraining: an executor that has said good-bye lets its handlers end; a node
// that comes up meanwhile asks it as the one before did.
func TestUnreportedOfADraining(t *testing.T) {
	drained := func(t *testing.T) *remotely {
		st := memory.New()
		r := accepts(t, st, xxljob.Config{Node: "a"}, xxljob.Job{}, asFirst)
		r.registers(nil)
		r.deregister("far", at1)
		time.Sleep(10 * time.Second)
		stage.Must(t, r.Stop(context.Background()))
		r.elsewhere = newElsewhere(t, st, xxljob.Config{Node: "b"}, r.peers)
		r.stays(20 * time.Minute)
		return r
	}
	bubble(t, "it reports", func(t *testing.T) {
		r := drained(t)
		r.report(r.id, 200, "done")
		r.mustBe(r.id, xxljob.StateSucceeded)
	})
	bubble(t, "it is killed", func(t *testing.T) {
		r := drained(t)
		r.says(isGone)
		r.ends(0, dead+lostAfter, "nobody answers")
	})
}

// TestUnreportedRestarted: when a process was last heard of looks a little different each time
// that the store is asked, by how long its answer takes.
func TestUnreportedRestarted(t *testing.T) {
	bubble(t, "answers take a moment, and then less", func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		faults.Inject("Addresses", storetest.Fault{Delay: 50 * time.Millisecond})
		r := accepts(t, faults, xxljob.Config{}, xxljob.Job{}, asFirst) // it has registered before this node looks
		faults.Clear()
		r.says(saysOf(wire.RunForgotten, "two"))
		r.asOurs("two")
		r.ends(lostAfter-time.Second, lostAfter+lookedAt, "the executor was restarted")
	})
}

// TestUnreportedInACrashLoop: the processes that come up and die at an address do not hide that
// the first one is gone.
func TestUnreportedInACrashLoop(t *testing.T) {
	bubble(t, "every two seconds", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, asFirst)
		r.registers(nil)
		for i := range 25 {
			boot := fmt.Sprint("boot", i)
			r.says(saysOf(wire.RunForgotten, boot))
			r.registerOurs("far", at1, boot)
			if i < 14 {
				r.mustBe(r.id, xxljob.StateDispatched)
			}
			time.Sleep(2 * time.Second)
		}
		stage.RequireText(t, "the end of the run", r.mustBe(r.id, xxljob.StateLost).HandleMsg, "the executor was restarted")
	})
}

// TestUnreportedBehindABalancer: two processes of one address register with another node. This
// one sees now and then what is stored, which is always of the same process.
func TestUnreportedBehindABalancer(t *testing.T) {
	both := func(t *testing.T, twoToo int) *remotely {
		st := memory.New()
		r := accepts(t, st, xxljob.Config{Node: "a"}, xxljob.Job{}, asFirst)
		r.registers(nil)
		r.says(saysOf(wire.RunUnknown, "two")) // the balancer sends all questions there
		beat := func(boot string) {
			stage.Must(t, st.PutAddresses(t.Context(), []xxljob.Registration{{App: "far", Address: at1, BootID: boot, Capabilities: []string{wire.CapRepeat}}}))
		}
		for i := range 40 {
			if i < twoToo {
				beat("one")
			}
			time.Sleep(time.Second)
			beat("two")
			time.Sleep(29 * time.Second)
		}
		return r
	}
	bubble(t, "both are there", func(t *testing.T) {
		r := both(t, 40)
		r.report(r.id, 200, "done")
		r.mustBe(r.id, xxljob.StateSucceeded)
	})
	bubble(t, "the one that has the run goes", func(t *testing.T) {
		r := both(t, 20)
		stage.RequireText(t, "the end of the run", r.mustBe(r.id, xxljob.StateLost).HandleMsg, "the executor was restarted")
	})
}

// TestUnreportedInABlackHole: where nobody answers and each question takes its time, one
// question is for all runs of the address.
func TestUnreportedInABlackHole(t *testing.T) {
	bubble(t, "many runs", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
		job := r.state(r.id).JobID
		ids := []int64{r.id}
		for range 1500 {
			ids = append(ids, stage.Trigger(t, r.Scheduler, xxljob.Job{ID: job}))
		}
		time.Sleep(time.Minute)
		r.registers(nil)
		r.says(func(wire.IdleBeatRequest) (wire.Return, error) {
			time.Sleep(3 * time.Second)
			return wire.Return{}, errNoRoute
		})
		time.Sleep(dead + lostAfter)
		for _, id := range ids {
			r.mustBe(id, xxljob.StateLost)
		}
	})
}

// TestAShutdownReportedTwice: a result that was sent again is no news of a run that is lost.
func TestAShutdownReportedTwice(t *testing.T) {
	bubble(t, "twice", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, asFirst)
		result := wire.CallbackRequest{LogID: r.id, HandleCode: wire.CodeFail, Killed: true, Shutdown: true, Exact: true, HandleMsg: "shut down"}
		r.callback(result)
		before := r.mustBe(r.id, xxljob.StateLost)
		r.callback(result)
		if after := r.mustBe(r.id, xxljob.StateLost); before.TriggerMsg != after.TriggerMsg || after.LateNoted {
			t.Errorf("noted as late: %v, %q", after.LateNoted, after.TriggerMsg)
		}
	})
}

// TestSnoozedForGood: who says that a run is to come again, and that it is not, is taken at the
// former.
func TestSnoozedForGood(t *testing.T) {
	bubble(t, "both", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, asFirst)
		r.callback(wire.CallbackRequest{LogID: r.id, HandleCode: wire.CodeFail, SnoozeIn: 5, NoRetry: true})
		time.Sleep(time.Minute)
		runs, err := r.store.Tree(t.Context(), r.id)
		stage.Must(t, err)
		if len(runs) != 2 || runs[0].State != xxljob.StateSnoozed || runs[0].NoRetry {
			t.Errorf("runs %+v, want one that is snoozed and one that follows it", runs)
		}
	})
}
