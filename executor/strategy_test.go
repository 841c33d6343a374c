package executor_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

const (
	killedRunning  = "scheduling center kill job. [job running, killed]"
	killedQueued   = "scheduling center kill job. [job not executed, in the job queue, killed.]"
	coveredRunning = "block strategy effect：Cover Early [job running, killed]"
	coveredQueued  = "block strategy effect：Cover Early [job not executed, in the job queue, killed.]"
)

// scene is one executor with one job, whose handler does what the parameter says.
type scene struct {
	t        *testing.T
	e        *executor.Executor
	a        *admin
	strategy string
	causes   map[int64]error
	started  map[int64]time.Time
	release  chan struct{} // lets "deaf" handlers return
}

func (s *scene) handler(ctx context.Context, t *executor.Task) error {
	s.started[t.RunID] = time.Now()
	switch t.Param {
	case "ok":
		t.SetResult("done")
	case "error":
		return errBoom
	case "fail":
		return fmt.Errorf("wrapped: %w", executor.Permanent(errBoom))
	case "panic":
		panic("ouch")
	case "goexit":
		runtime.Goexit()
	case "wait":
		<-ctx.Done()
		s.causes[t.RunID] = context.Cause(ctx)
		return nil // late results do not matter
	case "deaf":
		<-s.release
	}
	return nil
}

func (s *scene) send(id int64, do string, timeout int) wire.Return {
	r := req(7, id)
	r.ExecutorParams, r.ExecutorTimeout, r.ExecutorBlockStrategy = do, timeout, s.strategy
	ret := send(s.t, s.e, r)
	synctest.Wait()
	return ret
}

func (s *scene) kill(k wire.KillRequest) {
	if ret, err := s.e.Kill(s.t.Context(), k); err != nil || ret != wire.Success() {
		s.t.Errorf("kill: %+v %v", ret, err)
	}
	synctest.Wait()
}

// want checks a recorded result; the message may be a prefix that ends in "…".
func (s *scene) want(id int64, code int, msg string) {
	s.t.Helper()
	got := s.a.result(s.t, id)
	prefix, cut := strings.CutSuffix(msg, "…")
	if got.HandleCode != code || got.HandleMsg != msg && !(cut && strings.HasPrefix(got.HandleMsg, prefix)) {
		s.t.Errorf("run %d: result is %d %q, want %d %q", id, got.HandleCode, got.HandleMsg, code, msg)
	}
}

func (s *scene) refused(ret wire.Return, msg string) {
	s.t.Helper()
	wantRefused(s.t, ret, msg)
}

// TestStrategyOutcome is the table of every block strategy and every way a run can
// end. In each scene the job must be free again at the end.
func TestStrategyOutcome(t *testing.T) {
	const serial, discard, cover = block.SerialExecution, block.DiscardLater, block.CoverEarly
	all := []string{serial, discard, cover, "", "unknown"}
	single := func(do string, timeout, code int, msg string) func(*scene) {
		return func(s *scene) {
			s.send(1, do, timeout)
			time.Sleep(time.Duration(timeout) * time.Second)
			synctest.Wait()
			s.want(1, code, msg)
		}
	}
	for _, c := range []struct {
		outcome    string
		strategies []string
		play       func(s *scene)
	}{
		{"ok", all, single("ok", 0, 200, "done")},
		{"ok within the timeout", all, single("ok", 9, 200, "done")},
		{"error", all, single("error", 0, 500, "boom")},
		{"fail", all, single("fail", 0, 500, "wrapped: boom")},
		{"panic", all, single("panic", 0, 500, "panic: ouch\n…")},
		{"goexit", all, single("goexit", 0, 500, "job handler ended its goroutine without returning")},
		{"timeout", all, single("wait", 5, 502, "job execute timeout ")},
		{"timeout ignored", all, func(s *scene) {
			single("deaf", 5, 502, "job execute timeout ")(s)
			time.Sleep(10 * time.Second) // the grace
		}},
		{"killed running", all, func(s *scene) {
			s.send(1, "wait", 0)
			s.kill(wire.KillRequest{JobID: 7})
			s.want(1, 500, killedRunning)
			if s.causes[1] != executor.ErrKilled {
				s.t.Errorf("cause is %v", s.causes[1])
			}
		}},
		{"killed running with a reason", all, func(s *scene) {
			s.send(1, "wait", 0)
			s.kill(wire.KillRequest{JobID: 7, LogID: 1, Reason: "edited."})
			s.want(1, 500, "edited. [job running, killed]")
		}},
		{"kill ignored", all, func(s *scene) {
			s.send(1, "deaf", 0)
			s.kill(wire.KillRequest{JobID: 7})
			s.want(1, 500, killedRunning) // at once
			time.Sleep(10 * time.Second)
		}},
		{"killed queued", []string{serial, "", "unknown"}, func(s *scene) {
			s.send(1, "wait", 0)
			s.send(2, "ok", 0)
			s.send(3, "ok", 0)
			s.kill(wire.KillRequest{JobID: 7, LogID: 2})
			s.want(2, 500, killedQueued)
			s.want(1, 0, "")
			s.kill(wire.KillRequest{JobID: 7})
			s.want(1, 500, killedRunning)
			s.want(3, 500, killedQueued)
		}},
		{"killed queued", []string{cover}, func(s *scene) { // queued behind a deaf one
			s.send(1, "deaf", 0)
			s.send(2, "ok", 0)
			s.want(1, 500, coveredRunning)
			s.kill(wire.KillRequest{JobID: 7})
			s.want(2, 500, killedQueued)
			time.Sleep(10 * time.Second)
		}},
		{"killed queued", []string{discard}, func(s *scene) { // there is never a queue
			s.send(1, "wait", 0)
			s.refused(s.send(2, "ok", 0), block.MsgDiscard)
			s.kill(wire.KillRequest{JobID: 7})
			s.want(1, 500, killedRunning)
			s.want(2, 0, "")
		}},
		{"second while running", []string{serial, "", "unknown"}, func(s *scene) {
			s.send(1, "wait", 5)
			s.send(2, "ok", 0)
			s.want(2, 0, "")
			time.Sleep(5 * time.Second)
			synctest.Wait()
			s.want(1, 502, "job execute timeout ")
			s.want(2, 200, "done")
		}},
		{"discarded", []string{discard}, func(s *scene) {
			s.send(1, "wait", 5)
			s.refused(s.send(2, "ok", 0), "block strategy effect：Discard Later")
			time.Sleep(5 * time.Second)
			synctest.Wait()
			s.want(1, 502, "job execute timeout ")
			s.want(2, 0, "")
			if ret := s.send(2, "ok", 0); !ret.OK() { // a refused id is not remembered
				s.t.Errorf("refused run sent again: %+v", ret)
			}
		}},
		{"covered", []string{cover}, func(s *scene) {
			s.send(1, "wait", 0)
			s.send(2, "ok", 0)
			s.want(1, 500, coveredRunning)
			s.want(2, 200, "done")
			if s.causes[1] != executor.ErrCovered {
				s.t.Errorf("cause is %v", s.causes[1])
			}
		}},
		{"covered, cover ignored", []string{cover}, func(s *scene) {
			began := time.Now()
			s.send(1, "deaf", 0)
			time.Sleep(time.Second)
			s.send(2, "ok", 0)
			s.want(1, 500, coveredRunning)
			time.Sleep(4 * time.Second)
			s.send(3, "ok", 0)
			s.want(2, 500, coveredQueued)
			time.Sleep(6*time.Second - time.Nanosecond)
			synctest.Wait()
			s.want(3, 0, "")
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			s.want(3, 200, "done")
			if d := s.started[3].Sub(began); d != 11*time.Second {
				s.t.Errorf("the last run started after %v, want 1 s and the grace", d)
			}
		}},
		{"cover drains the queue of a serial job", []string{cover}, func(s *scene) {
			s.strategy = serial
			s.send(1, "wait", 0)
			s.send(2, "ok", 0)
			s.strategy = cover
			s.send(3, "ok", 0)
			s.want(1, 500, coveredRunning)
			s.want(2, 500, coveredQueued)
			s.want(3, 200, "done")
		}},
		{"serial waits the grace", []string{serial}, func(s *scene) {
			began := time.Now()
			s.send(1, "deaf", 3)
			s.send(2, "ok", 0)
			time.Sleep(13 * time.Second)
			synctest.Wait()
			s.want(1, 502, "job execute timeout ")
			s.want(2, 200, "done")
			if d := s.started[2].Sub(began); d != 13*time.Second {
				s.t.Errorf("the next run started after %v, want timeout and grace", d)
			}
		}},
		{"discards during the grace", []string{discard}, func(s *scene) {
			s.send(1, "deaf", 3)
			time.Sleep(5 * time.Second)
			s.refused(s.send(2, "ok", 0), block.MsgDiscard)
			time.Sleep(8 * time.Second)
		}},
	} {
		for _, strategy := range c.strategies {
			t.Run(c.outcome+"/"+strategy, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &scene{t: t, strategy: strategy, causes: map[int64]error{}, started: map[int64]time.Time{}, release: make(chan struct{})}
					s.e, s.a = open(t, executor.Config{})
					handle(t, s.e, "h", s.handler)
					c.play(s)
					synctest.Wait()
					if ret := s.send(99, "ok", 0); !ret.OK() {
						t.Errorf("the job is not free afterwards: %+v", ret)
					}
					s.want(99, 200, "done")
					close(s.release)
					synctest.Wait()
					for _, r := range s.a.results() {
						s.a.result(t, r.LogID) // never two
						if want := c.outcome == "fail" && r.LogID == 1; r.NoRetry != want {
							t.Errorf("run %d: NoRetry is %v", r.LogID, r.NoRetry)
						}
					}
					if n := s.e.Running(); n != 0 {
						t.Errorf("%d handlers run", n)
					}
				})
			})
		}
	}
}
