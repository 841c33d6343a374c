package xxljob_test

// Runs that an executor elsewhere has accepted and nobody reports: they end, at their time
// and for a reason, and those that are still under way go on.

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

const (
	dead, lostAfter = 90 * time.Second, 30 * time.Second // the defaults of Config.Cluster
	// lookedAt is how much later than a bound a run may end for the look or the question
	// that has to come by.
	lookedAt = 11 * time.Second
)

// remotely is a script of an executor elsewhere that has accepted a run.
type remotely struct {
	*elsewhere
	t     *testing.T
	p     *peer
	id    int64
	mu    sync.Mutex
	said  func(wire.IdleBeatRequest) (wire.Return, error) // guarded by mu
	beats atomic.Pointer[func()]                          // what is registered every Beat; nil for nothing
}

func saysBusy(wire.IdleBeatRequest) (wire.Return, error) { return wire.Failf(wire.MsgBusy), nil }
func saysIdle(wire.IdleBeatRequest) (wire.Return, error) { return wire.Success(), nil }
func isGone(wire.IdleBeatRequest) (wire.Return, error)   { return wire.Return{}, errNoRoute }

// saysOf is the answer of an executor of ours.
func saysOf(state wire.RunState, boot string) func(wire.IdleBeatRequest) (wire.Return, error) {
	return func(wire.IdleBeatRequest) (wire.Return, error) {
		ret := wire.Failf(wire.MsgBusy)
		ret.RunState, ret.BootID = state, boot
		return ret, nil
	}
}

// says sets what it answers from now on.
func (r *remotely) says(f func(wire.IdleBeatRequest) (wire.Return, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = f
}

// registers sets what it registers every Beat from now on, beginning now.
func (r *remotely) registers(f func()) {
	if f == nil {
		r.beats.Store(nil)
		return
	}
	f()
	r.beats.Store(&f)
}

func (r *remotely) asOthers()        { r.registers(func() { r.register("far", at1) }) }
func (r *remotely) asOurs(id string) { r.registers(func() { r.registerOurs("far", at1, id) }) }

// accepts starts a scheduler and an executor at at1 that says it is busy; arrange registers it. Its
// run is accepted when accepts returns.
func accepts(t *testing.T, st xxljob.Store, cfg xxljob.Config, job xxljob.Job, arrange func(*remotely)) *remotely {
	t.Helper()
	r := &remotely{t: t, said: saysBusy}
	r.p = &peer{ask: func(q wire.IdleBeatRequest) (wire.Return, error) {
		r.mu.Lock()
		said := r.said
		r.mu.Unlock()
		return said(q)
	}}
	r.elsewhere = newElsewhere(t, st, cfg, map[string]*peer{at1: r.p})
	done := make(chan struct{})
	go func() { // ends with the test
		for tick := time.NewTicker(30 * time.Second); ; {
			select {
			case <-tick.C:
				if f := r.beats.Load(); f != nil {
					(*f)()
				}
			case <-done:
				tick.Stop()
				return
			}
		}
	}()
	t.Cleanup(func() { close(done) })
	arrange(r)
	job.App = "far"
	r.id = r.trigger(job)
	time.Sleep(20 * time.Second)
	r.mustBe(r.id, xxljob.StateDispatched)
	return r
}

// ends waits until the run is lost, which must be between two times from now on, and for a
// reason.
func (r *remotely) ends(least, most time.Duration, words string) {
	r.t.Helper()
	time.Sleep(least)
	r.mustBe(r.id, xxljob.StateDispatched)
	time.Sleep(most - least)
	stage.RequireText(r.t, "the end of the run", r.mustBe(r.id, xxljob.StateLost).HandleMsg, words)
}

// stays checks that the run goes on.
func (r *remotely) stays(d time.Duration) {
	r.t.Helper()
	if stage.Detector {
		d = min(d, 2*time.Hour) // each hour further is as the one before
	}
	time.Sleep(d)
	r.mustBe(r.id, xxljob.StateDispatched)
}

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func manually(r *remotely) {
	stage.Must(r.t, r.SaveGroup(r.t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
}

// TestUnreportedOfOthers: executors that say whether a job is idle, and no more.
func TestUnreportedOfOthers(t *testing.T) {
	bubble(t, "killed", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
		r.registers(nil)
		r.says(isGone)
		r.ends(dead-31*time.Second, dead+lostAfter, "nobody answers")
		r.report(r.id, 200, "too late")
		if run := r.mustBe(r.id, xxljob.StateLost); !strings.Contains(run.TriggerMsg, "a result came after the run was lost") {
			t.Errorf("a late result is not noted: %q", run.TriggerMsg)
		}
	})
	bubble(t, "silent, and there", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
		r.registers(nil)
		r.stays(time.Hour) // it is asked all the time
		r.says(isGone)
		r.ends(0, dead+lostAfter, "nobody answers")
	})
	bubble(t, "registered, and not to be reached", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
		r.says(isGone)
		r.stays(12 * time.Hour)
		r.report(r.id, 200, "")
		r.mustBe(r.id, xxljob.StateSucceeded)
	})
	bubble(t, "restarted at once", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
		r.says(saysIdle)
		r.ends(dead-time.Second, dead+lostAfter, "does not have the run any more")
	})
	bubble(t, "idle for a moment, as its queue is looked at", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
		n := 0
		r.says(func(q wire.IdleBeatRequest) (wire.Return, error) {
			if n++; n%2 == 0 {
				return saysIdle(q)
			}
			return saysBusy(q)
		})
		r.stays(time.Hour)
	})
	bubble(t, "idle, and the result comes", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
		r.says(saysIdle)
		r.stays(dead - time.Second)
		r.report(r.id, 200, "")
		r.mustBe(r.id, xxljob.StateSucceeded)
		time.Sleep(time.Hour)
		r.mustBe(r.id, xxljob.StateSucceeded)
	})
	bubble(t, "busy for more than a day", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{Timeout: time.Hour}, (*remotely).asOthers)
		r.ends(25*time.Hour-21*time.Second, 25*time.Hour-20*time.Second+lookedAt, "no result within 25h0m0s, though the job is busy")
	})
	bubble(t, "it refuses to be asked", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, manually)
		r.says(func(wire.IdleBeatRequest) (wire.Return, error) { return wire.Failf(wire.MsgTokenWrong), nil })
		r.ends(24*time.Hour-21*time.Second, 24*time.Hour+5*time.Minute, "no result within 24h0m0s")
	})
	bubble(t, "killed by a person", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
		r.registers(nil)
		r.stays(dead)
		stage.Must(t, r.Kill(t.Context(), r.id))
		r.mustBe(r.id, xxljob.StateKilled)
		time.Sleep(time.Hour)
		r.mustBe(r.id, xxljob.StateKilled)
	})
}

// TestUnreportedByHand: addresses that a person has given are asked, and need not register.
func TestUnreportedByHand(t *testing.T) {
	bubble(t, "alive", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, manually)
		r.stays(20 * time.Hour)
	})
	bubble(t, "dead", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, manually)
		r.says(isGone)
		r.ends(dead-time.Second, dead+lostAfter, "nobody has answered at the address")
	})
	bubble(t, "dead for a moment again and again", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, manually)
		for range 30 {
			r.says(isGone)
			r.stays(dead - 20*time.Second)
			r.says(saysBusy)
			r.stays(15 * time.Second)
		}
	})
	bubble(t, "given by a trigger", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
		r.report(r.id, 200, "")
		ids, err := r.Trigger(t.Context(), r.state(r.id).JobID, xxljob.Trigger{Addresses: []string{at1}})
		stage.Must(t, err)
		r.id = ids[0]
		time.Sleep(20 * time.Second)
		r.registers(nil)
		r.stays(time.Hour)
	})
}

// TestUnreportedOfOurs: executors whose processes can be told apart.
func TestUnreportedOfOurs(t *testing.T) {
	first := func(r *remotely) { r.says(saysOf(wire.RunHeld, "one")); r.asOurs("one") }
	bubble(t, "there", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, first)
		r.stays(20 * time.Hour)
		if n := r.p.idleBeats(); n > 20*6+20 {
			t.Errorf("asked %d times", n)
		}
	})
	bubble(t, "killed", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, first)
		r.registers(nil)
		r.says(isGone)
		r.ends(dead-31*time.Second, dead+lostAfter, "nobody answers")
	})
	bubble(t, "restarted", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, first)
		r.says(saysOf(wire.RunForgotten, "two"))
		r.asOurs("two")
		r.ends(lostAfter-time.Second, lostAfter+lookedAt, "the executor was restarted")
	})
	bubble(t, "restarted, and not to be reached", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, first)
		r.says(isGone)
		r.asOurs("two")
		r.ends(lostAfter-time.Second, lostAfter+lookedAt, "the executor was restarted")
	})
	bubble(t, "others have taken its place", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, first)
		r.says(saysBusy)
		r.asOthers()
		r.ends(lostAfter-time.Second, lostAfter+lookedAt, "the executor was restarted")
	})
	bubble(t, "restarted, with the result on its spool", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, first)
		r.says(saysOf(wire.RunForgotten, "two"))
		r.asOurs("two")
		r.stays(lostAfter - time.Second)
		r.report(r.id, 200, "spooled")
		time.Sleep(time.Hour)
		r.mustBe(r.id, xxljob.StateSucceeded)
	})
	bubble(t, "restarted, and slow to deliver", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, first)
		r.says(saysOf(wire.RunHeld, "two"))
		r.asOurs("two")
		r.stays(10 * lostAfter)
		r.report(r.id, 200, "spooled")
		r.mustBe(r.id, xxljob.StateSucceeded)
	})
	bubble(t, "two behind a balancer", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, first)
		n := 0
		r.says(func(q wire.IdleBeatRequest) (wire.Return, error) {
			if n++; n%7 == 0 {
				return saysOf(wire.RunHeld, "one")(q)
			}
			return saysOf(wire.RunUnknown, "two")(q)
		})
		r.registers(func() {
			r.registerOurs("far", at1, "one")
			go func() { time.Sleep(time.Second); r.registerOurs("far", at1, "two") }()
		})
		r.stays(5 * time.Hour)
		r.says(saysOf(wire.RunUnknown, "two"))
		r.asOurs("two") // and the first one is no more
		r.ends(2*dead, 3*dead+lostAfter+lookedAt, "the executor was restarted")
	})
	bubble(t, "two behind a balancer, of which one is never seen to register", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, first)
		n := 0
		r.says(func(q wire.IdleBeatRequest) (wire.Return, error) {
			if n++; n%2 == 1 {
				return saysOf(wire.RunHeld, "one")(q)
			}
			return saysOf(wire.RunUnknown, "two")(q)
		})
		r.asOurs("two")
		r.stays(5 * time.Hour)
	})
	bubble(t, "it was never there", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, first)
		r.says(saysOf(wire.RunUnknown, "one"))
		r.ends(0, 2*dead, "does not know the run")
	})
	bubble(t, "reported, and the store has forgotten", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, first)
		r.says(saysOf(wire.RunReported, "one"))
		r.ends(0, 2*dead, "the store has lost its result")
	})
	bubble(t, "it says good-bye, and lets its handlers end", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, first)
		r.registers(nil)
		r.deregister("far", at1)
		r.stays(20 * time.Minute)
		r.says(isGone)
		r.ends(0, dead, "nobody answers")
	})
	bubble(t, "it says good-bye, and the last result is late", func(t *testing.T) {
		r := accepts(t, nil, xxljob.Config{}, xxljob.Job{}, first)
		r.registers(nil)
		r.deregister("far", at1)
		r.says(isGone)
		r.stays(dead - time.Second)
		r.report(r.id, 200, "")
		r.mustBe(r.id, xxljob.StateSucceeded)
	})
}

// TestUnreportedOverdue: what an executor of ours has is not ended, and the log says so, now
// and then.
func TestUnreportedOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var out bytes.Buffer
		cfg := xxljob.Config{Logger: slog.New(slog.NewTextHandler(locked{&mu, &out}, nil)), Limits: xxljob.Limits{Overdue: time.Hour}}
		warned := func() int {
			mu.Lock()
			defer mu.Unlock()
			return strings.Count(out.String(), "a run is overdue")
		}
		r := accepts(t, nil, cfg, xxljob.Job{Timeout: time.Hour}, func(r *remotely) { r.says(saysOf(wire.RunHeld, "one")); r.asOurs("one") })
		r.stays(2*time.Hour - 21*time.Second)
		if n := warned(); n != 0 {
			t.Errorf("warned %d times too early", n)
		}
		r.stays(40 * time.Minute)
		if n := warned(); n != 1 {
			t.Errorf("warned %d times, want once", n)
		}
		r.stays(40 * time.Minute)
		if n := warned(); n != 2 {
			t.Errorf("warned %d times, want twice", n)
		}
		r.report(r.id, 200, "")
		r.mustBe(r.id, xxljob.StateSucceeded)
	})
}

// locked is a writer for several.
type locked struct {
	mu  *sync.Mutex
	out *bytes.Buffer
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(b)
}

// TestUnreportedElsewhere: another scheduler ends the run, after as long as if it had been
// accepted in front of its eyes.
func TestUnreportedElsewhere(t *testing.T) {
	bubble(t, "restarted", func(t *testing.T) {
		st := memory.New()
		r := accepts(t, st, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
		r.registers(nil)
		r.says(isGone)
		stage.Must(t, r.Stop(context.Background()))
		time.Sleep(24 * time.Hour)
		newElsewhere(t, st, xxljob.Config{}, r.peers)
		r.ends(dead-time.Second, dead+lostAfter, "nobody answers")
	})
	bubble(t, "restarted, and the executor lives", func(t *testing.T) {
		st := memory.New()
		r := accepts(t, st, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
		stage.Must(t, r.Stop(context.Background()))
		r.registers(nil)
		time.Sleep(12 * time.Hour)
		r.elsewhere = newElsewhere(t, st, xxljob.Config{}, r.peers)
		time.Sleep(dead - 20*time.Second) // it had given up, and tries again
		r.asOthers()
		r.stays(time.Hour)
		r.report(r.id, 200, "")
		r.mustBe(r.id, xxljob.StateSucceeded)
	})
	bubble(t, "at another node", func(t *testing.T) {
		st := memory.New()
		faults := storetest.Wrap(st)
		r := accepts(t, faults, xxljob.Config{Node: "a"}, xxljob.Job{}, (*remotely).asOthers)
		b := newElsewhere(t, st, xxljob.Config{Node: "b"}, r.peers)
		r.elsewhere.store = st
		time.Sleep(time.Minute)
		r.registers(nil)
		r.says(isGone)
		faults.Pause(true)
		r.ends(dead-31*time.Second, dead+lostAfter+20*time.Second, "nobody answers")
		faults.Resume()
		time.Sleep(time.Minute)
		b.mustBe(r.id, xxljob.StateLost)
	})
	bubble(t, "both nodes live, whoever has the shard", func(t *testing.T) {
		st := memory.New()
		r := accepts(t, st, xxljob.Config{Node: "a"}, xxljob.Job{}, (*remotely).asOthers)
		newElsewhere(t, st, xxljob.Config{Node: "b"}, r.peers)
		newElsewhere(t, st, xxljob.Config{Node: "c"}, r.peers)
		time.Sleep(time.Minute)
		r.registers(nil)
		r.says(isGone)
		r.ends(dead-31*time.Second, dead+lostAfter, "nobody answers")
	})
	bubble(t, "its node hears late, when the shard is another's", func(t *testing.T) {
		st := memory.New()
		faults := storetest.Wrap(stage.NeverAlone{Store: st})
		r := accepts(t, faults, xxljob.Config{Node: "a"}, xxljob.Job{}, manually)
		r.elsewhere.store = st
		hangs, paused := make(chan struct{}), make(chan struct{})
		var once sync.Once
		from := time.Now()
		r.says(func(wire.IdleBeatRequest) (wire.Return, error) { // nobody reaches it from there
			if time.Since(from) > dead {
				once.Do(func() { close(paused) })
				<-hangs
			}
			return wire.Return{}, errNoRoute
		})
		<-paused
		faults.Pause(true)
		reached := map[string]*peer{at1: {ask: saysBusy}}
		newElsewhere(t, st, xxljob.Config{Node: "b"}, reached)
		time.Sleep(time.Minute)
		close(hangs)
		time.Sleep(time.Second)
		faults.Resume()
		r.stays(dead - 10*time.Second) // it may have the shard again, and begins anew
		if reached[at1].idleBeats() == 0 {
			t.Error("the other node has not asked")
		}
	})
	bubble(t, "the store was away", func(t *testing.T) {
		st := memory.New()
		faults := storetest.Wrap(st)
		r := accepts(t, faults, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
		r.says(isGone) // the scheduler cannot reach it, for a while
		r.registers(nil)
		faults.Inject(storetest.All, storetest.Fault{Before: true})
		time.Sleep(10 * time.Minute)
		faults.Clear()
		r.elsewhere.store = st
		r.stays(dead - 15*time.Second) // nobody could register
		r.asOthers()
		r.stays(time.Hour)
	})
}

// TestNothingUnreported: where nothing is under way elsewhere, nobody looks.
func TestNothingUnreported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.Wrap(memory.New())
		r := accepts(t, faults, xxljob.Config{}, xxljob.Job{}, (*remotely).asOthers)
		r.report(r.id, 200, "")
		time.Sleep(time.Minute)
		looks := faults.Calls("DispatchedRuns")
		time.Sleep(24 * time.Hour)
		if n := faults.Calls("DispatchedRuns") - looks; n != 0 || looks == 0 {
			t.Errorf("%d looks, and %d later", looks, n)
		}
	})
}
