package xxljobtest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/wire"
	"github.com/xxljob/xxljob/xxljobtest"
)

// TestReport: every code counts as what it is, and the second result of a run as nothing.
func TestReport(t *testing.T) {
	for code, state := range map[int]xxljob.State{
		wire.CodeSuccess: xxljob.StateSucceeded, wire.CodeFail: xxljob.StateFailed, wire.CodeTimeout: xxljob.StateTimedOut, 0: xxljob.StateFailed, 404: xxljob.StateFailed,
	} {
		eachGeneration(t, func(t *testing.T, s *xxljobtest.Scheduler, e *xxljobtest.Executor) {
			id := trigger(t, s, "j")
			e.WaitRun(t.Context(), 1)
			e.Report(id, code, "<first>")
			e.Report(id, wire.CodeFail, "second")
			if run := s.WaitRun(id); run.State != state || !strings.Contains(run.HandleMsg, "<first>") {
				t.Errorf("code %d: %v %q, want %v", code, run.State, run.HandleMsg, state)
			}
		})
	}
}

// TestReportTakesThePlaceOfAResultToCome: the run has one result.
func TestReportTakesThePlaceOfAResultToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *heard
		e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Answer: every(xxljobtest.Fail("later").After(time.Hour))})
		s := xxljobtest.NewWith(t, xxljobtest.Options{Executors: []*xxljobtest.Executor{e}}, remote)
		h = &heard{Handler: handlerOf(t, s)}
		e.Register(h)
		id := trigger(t, s, "j")
		time.Sleep(time.Minute)
		e.Report(id, wire.CodeSuccess, "now")
		time.Sleep(2 * time.Hour)
		if run := s.WaitRun(id); run.State != xxljob.StateSucceeded || run.HandleMsg != "now" {
			t.Errorf("%v %q", run.State, run.HandleMsg)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if n := strings.Count(strings.Join(h.paths, " "), "callback"); n != 1 {
			t.Errorf("%d callbacks", n)
		}
	})
}

// TestReportBeforeTheAnswer: a run can be reported, or killed, as soon as the test has seen
// it. Its answer is sent all the same, the result of the answer is not, and nothing is left
// of it that would keep the job busy.
func TestReportBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decide := make(chan struct{})
		s, e := far(t, func(ctx context.Context, _ xxljobtest.ExecutorRun) xxljobtest.Answer {
			<-decide
			return xxljobtest.Fail("too late")
		}, remote)
		c, err := wire.NewExecutorClient(e.Address(), wire.ClientConfig{Transport: xxljobtest.Transport(t, e)})
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []func(id int64){
			func(id int64) { e.Report(id, wire.CodeSuccess, "early") },
			func(int64) {
				if ret, err := c.Kill(t.Context(), wire.KillRequest{JobID: e.Runs()[1].JobID}); err != nil || ret.Msg == wire.MsgAlreadyKilled {
					t.Errorf("%+v, %v", ret, err)
				}
			},
		} {
			id := trigger(t, s, "j")
			synctest.Wait()
			end(id)
			decide <- struct{}{}
			time.Sleep(time.Minute)
			if run := s.WaitRun(id); run.HandleMsg == "too late" || !run.State.Ended() {
				t.Errorf("%v %q", run.State, run.HandleMsg)
			}
			if ret, err := c.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: e.Runs()[0].JobID}); err != nil || !ret.OK() {
				t.Errorf("%+v, %v", ret, err)
			}
		}
	})
}

// TestUnknownRuns: nothing can be reported or logged of a run that never came.
func TestUnknownRuns(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		for what, f := range map[string]func(*xxljobtest.Executor){
			"Report":    func(e *xxljobtest.Executor) { e.Report(404, wire.CodeSuccess, "") },
			"AppendLog": func(e *xxljobtest.Executor) { e.AppendLog(404, "line") },
		} {
			got := failure(t, func(t testing.TB) {
				_, e := far(t, nil)
				f(e)
			})
			if want := `app "far": ` + what + ": run 404: it was never asked for it, but for []"; !strings.Contains(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}
		got := failure(t, func(t testing.TB) {
			s, e := far(t, nil, remote)
			s.RunNow("j")
			e.Report(404, wire.CodeSuccess, "")
		})
		if strings.Contains(got, "but for []") || !strings.Contains(got, "run 404: it was never asked for it, but for [") {
			t.Errorf("%q", got)
		}
	})
}

// TestReportRefused fails the test: the scheduler has not taken the result.
func TestReportRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := failure(t, func(t testing.TB) {
			s, e := far(t, every(xxljobtest.Accept()), remote)
			id := trigger(t, s, "j")
			e.WaitRun(t.Context(), 1)
			e.ReportTo(http.NotFoundHandler())
			e.Report(id, wire.CodeSuccess, "")
		})
		if !strings.Contains(got, "Report: run 1: HTTP status 404") {
			t.Errorf("%q", got)
		}
	})
}

// TestKill: a kill ends what is open of the job, and of no other, and the executor says so.
func TestKill(t *testing.T) {
	eachGeneration(t, func(t *testing.T, s *xxljobtest.Scheduler, e *xxljobtest.Executor) {
		if _, err := s.AddJob(t.Context(), xxljob.Job{App: "far", Name: "other", Handler: "h", Schedule: xxljob.Manual()}); err != nil {
			t.Fatal(err)
		}
		first := trigger(t, s, "j")
		e.WaitRun(t.Context(), 1)
		second, other := trigger(t, s, "j"), trigger(t, s, "other")
		e.WaitRun(t.Context(), 3)
		if err := s.Kill(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		for _, id := range []int64{first, second} {
			if run := s.WaitRun(id); run.State != xxljob.StateKilled {
				t.Errorf("run %d: %v %q", id, run.State, run.HandleMsg)
			}
		}
		kills := e.Kills() // two where it came while the executor's answer was on its way
		if len(kills) == 0 || kills[0].JobID != e.Runs()[0].JobID {
			t.Errorf("%+v", kills)
		}
		e.Report(other, wire.CodeSuccess, "")
		if run := s.WaitRun(other); run.State != xxljob.StateSucceeded {
			t.Errorf("another job's: %v", run.State)
		}
	})
}

// TestKilledBeforeItsResult: what was to come does not.
func TestKilledBeforeItsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, e := far(t, every(xxljobtest.Succeed("").After(time.Hour)), remote)
		id := trigger(t, s, "j")
		e.WaitRun(t.Context(), 1)
		time.Sleep(time.Second)
		if err := s.Kill(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		if run := s.WaitRun(id); run.State != xxljob.StateKilled {
			t.Errorf("%v %q", run.State, run.HandleMsg)
		}
		e.SetAnswer(nil)
		if run := s.RunNow("j"); run.State != xxljob.StateSucceeded {
			t.Errorf("afterwards: %v", run.State)
		}
	})
}

// TestLog: the scheduler reads what the test has written, as it grows.
func TestLog(t *testing.T) {
	eachGeneration(t, func(t *testing.T, s *xxljobtest.Scheduler, e *xxljobtest.Executor) {
		id := trigger(t, s, "j")
		e.WaitRun(t.Context(), 1)
		e.AppendLog(id, "one", "two\nthree")
		res, err := s.Log(t.Context(), id, 2)
		if err != nil || res.LogContent != "two\nthree\n" || res.ToLineNum != 3 || res.IsEnd {
			t.Fatalf("%+v, %v", res, err)
		}
		if res, err := s.Log(t.Context(), id, 4); err != nil || res.LogContent != "" || res.FromLineNum <= res.ToLineNum {
			t.Errorf("nothing new: %+v, %v", res, err)
		}
		e.AppendLog(id, "<four>")
		e.Report(id, wire.CodeSuccess, "")
		s.WaitRun(id)
		for n, want := range map[int]wire.LogResult{
			1: {FromLineNum: 4, ToLineNum: 4, LogContent: "<four>\n"}, 2: {FromLineNum: 3, ToLineNum: 4, LogContent: "three\n<four>\n"},
		} {
			if res, err := s.LogTail(t.Context(), id, n); err != nil || res.FromLineNum != want.FromLineNum || res.ToLineNum != want.ToLineNum || res.LogContent != want.LogContent {
				t.Errorf("the last %d lines: %+v, %v", n, res, err)
			}
		}
		if res, err := s.Log(t.Context(), id, 4); err != nil || res.LogContent != "<four>\n" {
			t.Errorf("%+v, %v", res, err)
		}
	})
}
