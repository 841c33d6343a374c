package xxljob_test

// Promise P6: an outcome that is unknown is neither a failure nor a success.

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// hangsUp answers nothing, though it may have the run.
func hangsUp(int, wire.TriggerRequest) (wire.Return, error) { return wire.Return{}, errHungUp }

// TestUnknownOfOthers: a third-party executor is not sent a run twice. It is asked
// whether the job is idle: busy may be with another run, so it is asked again, for a day;
// idle means that a result may still come for 90 seconds.
func TestUnknownOfOthers(t *testing.T) {
	busy := func() (wire.Return, error) { return wire.Failf(wire.MsgBusy), nil }
	idle := func() (wire.Return, error) { return wire.Success(), nil }
	t.Run("busy", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{run: hangsUp, idle: busy}
			e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
			e.register("far", at1)
			id := e.trigger(xxljob.Job{App: "far"})
			synctest.Wait()
			e.mustBe(id, xxljob.StateStarted)
			for range 3 * 60 * 4 { // it beats on
				time.Sleep(15 * time.Second)
				e.register("far", at1)
			}
			if run := e.mustBe(id, xxljob.StateStarted); len(p.sent()) != 1 {
				t.Errorf("sent %d times: %q", len(p.sent()), run.TriggerMsg)
			}
			e.report(id, 200, "")
			e.mustBe(id, xxljob.StateSucceeded)
		})
	})
	t.Run("busy, then idle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			from := time.Now()
			p := &peer{run: hangsUp, idle: func() (wire.Return, error) {
				if time.Since(from) < time.Hour {
					return busy()
				}
				return idle()
			}}
			e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
			stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
			id := e.trigger(xxljob.Job{App: "far"})
			time.Sleep(time.Hour + 89*time.Second)
			e.mustBe(id, xxljob.StateStarted)
			time.Sleep(20 * time.Second)
			e.mustBe(id, xxljob.StateLost)
		})
	})
	t.Run("busy for more than a day", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{run: hangsUp, idle: busy}
			e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
			stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
			id := e.trigger(xxljob.Job{App: "far", Timeout: time.Hour})
			time.Sleep(25*time.Hour - time.Second)
			e.mustBe(id, xxljob.StateStarted)
			time.Sleep(30 * time.Second)
			if run := e.mustBe(id, xxljob.StateLost); !strings.Contains(run.HandleMsg, "25h0m0s") {
				t.Errorf("%q", run.HandleMsg)
			}
		})
	})
	t.Run("a result comes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{run: hangsUp, idle: idle}
			e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
			e.register("far", at1)
			id := e.trigger(xxljob.Job{App: "far"})
			for range 8 { // it beats on
				time.Sleep(10 * time.Second)
				e.register("far", at1)
			}
			e.mustBe(id, xxljob.StateStarted)
			e.report(id, 200, "was quick")
			e.mustBe(id, xxljob.StateSucceeded)
			time.Sleep(5 * time.Minute)
			e.mustBe(id, xxljob.StateSucceeded)
			if len(p.sent()) != 1 || xxljob.RunsInDoubt(e.Scheduler) != 0 {
				t.Errorf("sent %d times, %d open", len(p.sent()), xxljob.RunsInDoubt(e.Scheduler))
			}
		})
	})
	t.Run("nothing comes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{run: hangsUp, idle: idle}
			e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
			stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
			id := e.trigger(xxljob.Job{App: "far"})
			time.Sleep(89 * time.Second)
			e.mustBe(id, xxljob.StateStarted)
			time.Sleep(15 * time.Second)
			run := e.mustBe(id, xxljob.StateLost)
			if !strings.Contains(run.HandleMsg, "the executor did not have the run") || len(p.sent()) != 1 {
				t.Errorf("sent %d times: %q", len(p.sent()), run.HandleMsg)
			}
			e.report(id, 200, "too late")
			if run := e.mustBe(id, xxljob.StateLost); !strings.Contains(run.TriggerMsg, "a result came after the run was lost") {
				t.Errorf("a late result is not noted: %q", run.TriggerMsg)
			}
		})
	})
}

// TestUnknownIsNotRetried: a run in doubt may be running, so its retry waits until it has ended
// as lost; a result that comes before that is all there is.
func TestUnknownIsNotRetried(t *testing.T) {
	start := func(t *testing.T) (*elsewhere, *peer, int64) {
		answers := 0
		p := &peer{idle: func() (wire.Return, error) { return wire.Success(), nil }}
		p.run = func(n int, r wire.TriggerRequest) (wire.Return, error) {
			if answers++; answers == 1 {
				return hangsUp(n, r)
			}
			return wire.Success(), nil
		}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		id := e.trigger(xxljob.Job{App: "far", Retries: 1})
		time.Sleep(89 * time.Second)
		e.mustBe(id, xxljob.StateStarted)
		if n := len(p.sent()); n != 1 {
			t.Errorf("sent %d times while it is in doubt", n)
		}
		return e, p, id
	}
	bubble(t, "it is lost", func(t *testing.T) {
		e, p, id := start(t)
		time.Sleep(15 * time.Second)
		e.mustBe(id, xxljob.StateLost)
		tree, err := e.store.Tree(t.Context(), id)
		stage.Must(t, err)
		if len(tree) != 2 || tree[1].Attempt != 1 || tree[1].State != xxljob.StateDispatched || len(p.sent()) != 2 {
			t.Errorf("sent %d times, runs %+v", len(p.sent()), tree)
		}
	})
	bubble(t, "it has succeeded", func(t *testing.T) {
		e, p, id := start(t)
		e.report(id, 200, "was quick")
		time.Sleep(5 * time.Minute)
		e.mustBe(id, xxljob.StateSucceeded)
		if n := len(p.sent()); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// TestUnknownUnreachable: an executor that nobody reaches any more has lost the run when
// it is registered no more, and after ten minutes otherwise.
func TestUnknownUnreachable(t *testing.T) {
	away := func() (wire.Return, error) { return wire.Return{}, errNoRoute }
	for _, c := range []struct {
		name  string
		beats bool
		least time.Duration
		most  time.Duration
	}{{"unregistered", false, 89 * time.Second, 120 * time.Second}, {"registered", true, 599 * time.Second, 630 * time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &peer{run: hangsUp, idle: away}
				e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
				e.register("far", at1)
				id := e.trigger(xxljob.Job{App: "far"})
				synctest.Wait()
				began := time.Now()
				for e.state(id).State == xxljob.StateStarted && time.Since(began) < 20*time.Minute {
					time.Sleep(5 * time.Second)
					if c.beats {
						e.register("far", at1)
					}
				}
				e.mustBe(id, xxljob.StateLost)
				if took := time.Since(began); took < c.least || took > c.most {
					t.Errorf("lost after %v", took)
				}
				if c.beats == false && p.idleBeats() > 60 {
					t.Errorf("asked %d times", p.idleBeats())
				}
			})
		})
	}
}

// TestUnknownOfOurs: an executor of this module is sent the same run again, for the
// process that was meant; a repeated id that it knows is as good as accepted.
func TestUnknownOfOurs(t *testing.T) {
	for _, c := range []struct {
		name  string
		again wire.Return
	}{{"it has it", wire.Noted(wire.MsgRepeat, int64(1))}, {"it has ended it", wire.Noted(wire.MsgRepeatEnded, int64(1))}, {"it gets it now", wire.Success()}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &peer{run: func(n int, _ wire.TriggerRequest) (wire.Return, error) {
					if n < 3 {
						return wire.Return{}, errHungUp
					}
					return c.again, nil
				}}
				e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
				e.registerOurs("far", at1, "boot-1")
				id := e.trigger(xxljob.Job{App: "far"})
				time.Sleep(10 * time.Second)
				e.mustBe(id, xxljob.StateDispatched)
				sent := p.sent()
				if len(sent) != 3 || sent[0].BootID != "boot-1" || sent[0].LogID != id || sent[0].AgainAfter != 0 {
					t.Fatalf("sent %+v", sent)
				}
				for i, again := range sent[1:] {
					if least := int64(i+1) * 1000; again.AgainAfter < least || again.AgainAfter > least+15_000 {
						t.Errorf("sent again %d ms after the first time", again.AgainAfter)
					}
					if again.AgainAfter = 0; again != sent[0] {
						t.Errorf("sent %+v, and then %+v", sent[0], again)
					}
				}
				if p.idleBeats() > 0 {
					t.Error("asked whether it is idle")
				}
			})
		})
	}
}

// TestUnknownRefusedAgain: a refusal that answers a repeated id says nothing about the
// first attempt.
func TestUnknownRefusedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{run: func(n int, _ wire.TriggerRequest) (wire.Return, error) {
			if n == 1 {
				return wire.Return{}, errHungUp
			}
			return wire.Failf("job queue is full"), nil
		}}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.registerOurs("far", at1, "boot-1")
		id := e.trigger(xxljob.Job{App: "far"})
		time.Sleep(30 * time.Second)
		e.mustBe(id, xxljob.StateStarted)
		if len(p.sent()) != 2 || p.idleBeats() == 0 {
			t.Errorf("sent %d times, asked %d times", len(p.sent()), p.idleBeats())
		}
		e.report(id, 200, "had it")
		e.mustBe(id, xxljob.StateSucceeded)
	})
}

// TestUnknownAndRestarted: the process that may have the run is gone; its successor at the
// address is not sent it.
func TestUnknownAndRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{run: hangsUp}
		e := newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
		e.registerOurs("far", at1, "boot-1")
		id := e.trigger(xxljob.Job{App: "far"})
		synctest.Wait()
		e.registerOurs("far", at1, "boot-2")
		for range 11 {
			time.Sleep(10 * time.Second)
			e.registerOurs("far", at1, "boot-2")
		}
		e.mustBe(id, xxljob.StateLost)
		if n := len(p.sent()); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// TestOtherProcess: an executor that was restarted since it registered refuses a run that
// was meant for the process before. It has done nothing, so it gets the run.
func TestOtherProcess(t *testing.T) {
	for _, registered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var e *elsewhere
			p := &peer{}
			p.run = func(n int, r wire.TriggerRequest) (wire.Return, error) {
				if r.BootID != "" && r.BootID != "boot-2" {
					if registered {
						e.registerOurs("far", at1, "boot-2")
					}
					return wire.Failf(wire.MsgOtherBoot), nil
				}
				return wire.Success(), nil
			}
			e = newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
			e.registerOurs("far", at1, "boot-1")
			id := e.trigger(xxljob.Job{App: "far"})
			time.Sleep(5 * time.Second)
			e.mustBe(id, xxljob.StateDispatched)
			want := ""
			if registered {
				want = "boot-2"
			}
			if sent := p.sent(); len(sent) != 2 || sent[0].BootID != "boot-1" || sent[1].BootID != want {
				t.Errorf("sent %+v", sent)
			}
		})
	}
}

// TestUnknownOfADeadNode: the node that called is gone before it could tell what the
// answer was. The one that takes its shards over does not send the run, it asks.
func TestUnknownOfADeadNode(t *testing.T) {
	for _, c := range []struct {
		name string
		idle func() (wire.Return, error)
		want xxljob.State
	}{
		{"busy", func() (wire.Return, error) { return wire.Failf(wire.MsgBusy), nil }, xxljob.StateStarted},
		{"idle", func() (wire.Return, error) { return wire.Success(), nil }, xxljob.StateLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				faults := storetest.Wrap(st)
				p := &peer{idle: c.idle}
				hang := make(chan struct{})
				p.run = func(int, wire.TriggerRequest) (wire.Return, error) {
					faults.Inject(storetest.All, storetest.Fault{Hang: hang}) // it dies while it waits for the answer
					<-hang
					return wire.Return{}, errHungUp
				}
				peers := map[string]*peer{at1: p}
				a := newElsewhere(t, faults, xxljob.Config{Node: "a"}, peers)
				stage.Must(t, a.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
				id := a.trigger(xxljob.Job{App: "far"})
				time.Sleep(time.Second)
				b := newElsewhere(t, st, xxljob.Config{Node: "b"}, peers)
				time.Sleep(3 * time.Minute)
				run := b.mustBe(id, c.want)
				if len(p.sent()) != 1 {
					t.Errorf("sent %d times", len(p.sent()))
				}
				if !run.State.Ended() {
					b.report(id, 200, "")
					b.mustBe(id, xxljob.StateSucceeded)
				}
				close(hang)
				faults.Clear()
			})
		})
	}
}

// TestStartedBehindItsBack: the start of a run took effect though its call had an error,
// and the store did not show it when it was read again. The run is sent, once.
func TestStartedBehindItsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		faults := storetest.Wrap(stage.NeverAlone{Store: memory.New()})
		e := newElsewhere(t, faults, xxljob.Config{}, map[string]*peer{at1: p})
		stage.Must(t, e.SaveGroup(t.Context(), xxljob.Group{App: "far", Manual: true, Addresses: []string{at1}}))
		faults.Inject("Start", storetest.Fault{After: true, Calls: 1})
		id := e.trigger(xxljob.Job{App: "far"})
		time.Sleep(10 * time.Second)
		e.mustBe(id, xxljob.StateDispatched)
		if n := len(p.sent()); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// TestTrap11QuickResult is about quick results (docs/xxl-job.md, traps): the result may come before the answer
// to the trigger, and neither an answer nor its absence touches it then.
func TestTrap11QuickResult(t *testing.T) {
	for name, answer := range map[string]func() (wire.Return, error){
		"accepted":  func() (wire.Return, error) { return wire.Success(), nil },
		"timed out": func() (wire.Return, error) { return wire.Return{}, errHungUp },
		"refused":   func() (wire.Return, error) { return wire.Failf("too late"), nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e *elsewhere
				p := &peer{}
				p.run = func(_ int, r wire.TriggerRequest) (wire.Return, error) {
					e.report(r.LogID, 200, "quick")
					return answer()
				}
				e = newElsewhere(t, nil, xxljob.Config{}, map[string]*peer{at1: p})
				e.register("far", at1)
				id := e.trigger(xxljob.Job{App: "far"})
				time.Sleep(3 * time.Minute)
				if run := e.mustBe(id, xxljob.StateSucceeded); run.HandleMsg != "quick" {
					t.Errorf("%q", run.HandleMsg)
				}
				if len(p.sent()) != 1 || len(p.killed()) != 0 {
					t.Errorf("sent %d times, killed %d times", len(p.sent()), len(p.killed()))
				}
			})
		})
	}
}
