package xxljobtest_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/wire"
	"github.com/xxljob/xxljob/xxljobtest"
)

// remote is a job of an app elsewhere that is run by hand.
var remote = xxljob.Job{App: "far", Name: "j", Handler: "report", Param: "EMEA"}

// every makes a function that decides the same about each run.
func every(a xxljobtest.Answer) xxljobtest.AnswerFunc {
	return func(context.Context, xxljobtest.ExecutorRun) xxljobtest.Answer { return a }
}

// far makes a scheduler and a fake executor that decides by f.
func far(t testing.TB, f xxljobtest.AnswerFunc, jobs ...xxljob.Job) (*xxljobtest.Scheduler, *xxljobtest.Executor) {
	t.Helper()
	e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Answer: f})
	return xxljobtest.NewWith(t, xxljobtest.Options{Executors: []*xxljobtest.Executor{e}}, jobs...), e
}

// TestAnswers: what a scheduler makes of each answer. Those whose run nobody reports in time
// are ended by the scheduler.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name  string
		a     xxljobtest.Answer
		state xxljob.State
		msg   string
		took  time.Duration // until it has ended, as long as the fake makes it; a scheduler that asks about a run adds some seconds
	}{
		{"succeed", xxljobtest.Succeed("3 pages"), xxljob.StateSucceeded, "3 pages", 0},
		{"succeed without a text", xxljobtest.Succeed(""), xxljob.StateSucceeded, "", 0},
		{"succeed later", xxljobtest.Succeed("x").After(time.Hour), xxljob.StateSucceeded, "x", time.Hour},
		{"fail", xxljobtest.Fail("disk full"), xxljob.StateFailed, "disk full", 0},
		{"fail later", xxljobtest.Fail("disk full").After(time.Minute), xxljob.StateFailed, "disk full", time.Minute},
		{"time out", xxljobtest.TimeOut().After(3 * time.Second), xxljob.StateTimedOut, wire.MsgTimeout, 3 * time.Second},
		{"refuse", xxljobtest.Refuse("not today"), xxljob.StateRefused, "not today", 0},
		{"refuse without a text", xxljobtest.Refuse(""), xxljob.StateRefused, "", 0},
		{"busy", xxljobtest.Busy(), xxljob.StateDiscarded, "Discard Later", 0},
		{"late", xxljobtest.Succeed("x").Late(5 * time.Second), xxljob.StateSucceeded, "x", 5 * time.Second},
		{"too late", xxljobtest.Succeed("x").Late(time.Minute), xxljob.StateSucceeded, "x", time.Minute},
		{"late and after", xxljobtest.Fail("x").After(time.Second).Late(time.Second), xxljob.StateFailed, "x", 2 * time.Second},
		{"cut, and runs", xxljobtest.Succeed("x").Cut().After(time.Hour), xxljob.StateSucceeded, "x", time.Hour},
		{"hung, and runs", xxljobtest.Succeed("x").Hang().After(time.Hour), xxljob.StateSucceeded, "x", time.Hour},
		{"cut, and does not run", xxljobtest.Refuse("").Cut(), xxljob.StateLost, "did not have the run", 90 * time.Second},
		{"hung, and does not run", xxljobtest.Refuse("").Hang(), xxljob.StateLost, "did not have the run", 96 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, e := far(t, every(c.a), remote)
				began := time.Now()
				run := s.RunNow("j")
				if run.State != c.state || !strings.Contains(run.HandleMsg, c.msg) {
					t.Errorf("%v %q, want %v %q", run.State, run.HandleMsg, c.state, c.msg)
				}
				if took := time.Since(began); took < c.took || took > c.took+15*time.Second {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				if n := len(e.Runs()); n != 1 {
					t.Errorf("it was asked %d times", n)
				}
			})
		})
	}
}

// TestAnswersOutside: the same outside of bubbles, as far as nothing waits.
func TestAnswersOutside(t *testing.T) {
	for state, a := range map[xxljob.State]xxljobtest.Answer{
		xxljob.StateSucceeded: xxljobtest.Succeed("x"), xxljob.StateFailed: xxljobtest.Fail("x"),
		xxljob.StateTimedOut: xxljobtest.TimeOut(), xxljob.StateRefused: xxljobtest.Refuse("x"), xxljob.StateDiscarded: xxljobtest.Busy(),
	} {
		s, _ := far(t, every(a), remote)
		if run := s.RunNow("j"); run.State != state {
			t.Errorf("%v %q, want %v", run.State, run.HandleMsg, state)
		}
	}
	s, _ := far(t, every(xxljobtest.Succeed("x").Cut()), remote)
	if run := s.RunNow("j"); run.State != xxljob.StateSucceeded {
		t.Errorf("the connection was cut: %v %q", run.State, run.HandleMsg)
	}
}

// TestTheZeroAnswerAccepts: nobody reports the run.
func TestTheZeroAnswerAccepts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, e := far(t, every(xxljobtest.Answer{}), remote)
		id := trigger(t, s, "j")
		time.Sleep(time.Hour)
		if run, err := s.Store.Run(t.Context(), id); err != nil || run.State != xxljob.StateDispatched {
			t.Errorf("%v, %v", run.State, err)
		}
		e.Report(id, wire.CodeSuccess, "at last")
		if run := s.WaitRun(id); run.State != xxljob.StateSucceeded || run.HandleMsg != "at last" {
			t.Errorf("%v %q", run.State, run.HandleMsg)
		}
	})
}

// trigger triggers a job by hand, and does not wait for it.
func trigger(t testing.TB, s *xxljobtest.Scheduler, key string) int64 {
	t.Helper()
	job, err := s.Store.JobByKey(t.Context(), "far", key)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := s.Trigger(t.Context(), job.ID, xxljob.Trigger{})
	if err != nil {
		t.Fatal(err)
	}
	return ids[0]
}

// TestAnswerFunc: the function may take its time, sees the caller hang up, and another one
// may take its place.
func TestAnswerFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var patience time.Duration
		s, e := far(t, func(ctx context.Context, run xxljobtest.ExecutorRun) xxljobtest.Answer {
			if run.ExecutorParams != "EMEA" {
				t.Errorf("param %q", run.ExecutorParams)
			}
			began := time.Now()
			<-ctx.Done()
			patience = time.Since(began)
			return xxljobtest.Succeed("for nobody")
		}, remote)
		if run := s.RunNow("j"); run.State != xxljob.StateSucceeded || run.HandleMsg != "for nobody" {
			t.Errorf("%v %q", run.State, run.HandleMsg)
		}
		if patience != 6*time.Second { // Config.HTTP.CallTimeout
			t.Errorf("the caller has waited for %v", patience)
		}
		e.SetAnswer(every(xxljobtest.Refuse("no")))
		if run := s.RunNow("j"); run.State != xxljob.StateRefused {
			t.Errorf("%v %q", run.State, run.HandleMsg)
		}
		e.SetAnswer(nil)
		if run := s.RunNow("j"); run.State != xxljob.StateSucceeded || run.HandleMsg != "" {
			t.Errorf("%v %q", run.State, run.HandleMsg)
		}
	})
}

// TestAnswerFuncThatPanics fails the test, and the scheduler sees a broken connection. One
// that ends its goroutine is left to its reasons.
func TestAnswerFuncThatPanics(t *testing.T) {
	for name, fail := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			inAndOut(t, func(t *testing.T) {
				var again atomic.Bool
				called := make(chan struct{}) // a run is recorded before the function is
				r := record(t, func(t testing.TB) {
					s, e := far(t, func(context.Context, xxljobtest.ExecutorRun) xxljobtest.Answer {
						if !again.Swap(true) {
							close(called)
							fail()
						}
						return xxljobtest.Succeed("")
					}, remote)
					id := trigger(t, s, "j")
					e.WaitRun(t.Context(), 1)
					<-called // or the next run would be the first for it
					e.Report(id, wire.CodeFail, "so that it ends")
					s.WaitRun(id)
					if run := s.RunNow("j"); run.State != xxljob.StateSucceeded {
						t.Fatalf("%v %q", run.State, run.HandleMsg)
					}
				})
				if r.fatal != "" {
					t.Error(r.fatal)
				}
				if name == "panic" && (len(r.errors) != 1 || !strings.Contains(r.errors[0], "panic: boom\n") || !strings.Contains(r.errors[0], "answer_test.go")) {
					t.Errorf("errors %q", r.errors)
				}
			})
		})
	}
}
