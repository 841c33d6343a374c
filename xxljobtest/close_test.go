package xxljobtest_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/wire"
	"github.com/xxljob/xxljob/xxljobtest"
)

// TestNothingIsLeft: whatever an executor is doing when the test ends, no goroutine is left,
// whether it is closed before the scheduler stops or after. A bubble in which one is left fails.
func TestNothingIsLeft(t *testing.T) {
	for name, f := range map[string]xxljobtest.AnswerFunc{
		"hang":           every(xxljobtest.Accept().Hang()),
		"late":           every(xxljobtest.Succeed("").Late(48 * time.Hour)),
		"result to come": every(xxljobtest.Succeed("").After(48 * time.Hour)),
		"function hangs": func(ctx context.Context, _ xxljobtest.ExecutorRun) xxljobtest.Answer {
			<-ctx.Done()
			return xxljobtest.Accept()
		},
		"function is slow": func(context.Context, xxljobtest.ExecutorRun) xxljobtest.Answer {
			time.Sleep(time.Hour)
			return xxljobtest.Succeed("")
		},
		"nothing to report": every(xxljobtest.Accept()),
	} {
		for _, closed := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, e := far(t, f, remote)
					for range 3 {
						trigger(t, s, "j")
					}
					e.WaitRun(t.Context(), 1)
					if closed {
						e.Close()
					}
				})
			})
		}
	}
}

// TestClose: an executor that is closed is not there, whatever hangs at it is cut, and it
// can be closed again, at the same time.
func TestClose(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		s, e := far(t, every(xxljobtest.Accept().Hang()), remote)
		id := trigger(t, s, "j")
		e.WaitRun(t.Context(), 1)
		var all sync.WaitGroup
		for range 3 {
			all.Go(e.Close)
		}
		all.Wait()
		c, err := wire.NewExecutorClient(e.Address(), wire.ClientConfig{Transport: xxljobtest.Transport(t, e)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Beat(t.Context()); !wire.NotSent(err) || !strings.Contains(err.Error(), "connection refused") {
			t.Error(err)
		}
		if run, err := s.Store.Run(t.Context(), id); err != nil || run.State.Ended() {
			t.Errorf("%v, %v", run.State, err)
		}
		if runs := e.Runs(); len(runs) != 1 {
			t.Errorf("%d runs", len(runs))
		}
	})
}

// TestClosedExecutors cannot report, register or say good-bye.
func TestClosedExecutors(t *testing.T) {
	for want, f := range map[string]func(testing.TB, *xxljobtest.Scheduler, *xxljobtest.Executor){
		"Report: run 1: the executor is closed": func(_ testing.TB, _ *xxljobtest.Scheduler, e *xxljobtest.Executor) { e.Report(1, wire.CodeSuccess, "") },
		"Unregister: the executor is closed":    func(_ testing.TB, _ *xxljobtest.Scheduler, e *xxljobtest.Executor) { e.Unregister() },
		"Register: the executor is closed": func(t testing.TB, s *xxljobtest.Scheduler, e *xxljobtest.Executor) {
			e.Register(handlerOf(t, s))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := failure(t, func(t testing.TB) {
				s, e := far(t, nil, remote)
				if run := s.RunNow("j"); run.ID != 1 || run.State != xxljob.StateSucceeded {
					t.Fatalf("run %d: %v", run.ID, run.State)
				}
				e.Close()
				f(t, s, e)
			})
			if !strings.Contains(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
