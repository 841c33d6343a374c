package executor_test

import (
	"bytes"
	"context"
	"math"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// aboutRun asks about a run of job 7 that was started that long ago.
func aboutRun(id, date, token int64, ago time.Duration) wire.IdleBeatRequest {
	return wire.IdleBeatRequest{JobID: 7, LogID: id, LogDateTime: date, StartToken: token, StartedAgo: ago.Milliseconds()}
}

// started is a run of job 7 with the number of its start.
func started(id, date, token int64) wire.TriggerRequest {
	r := dated(7, id, date)
	r.StartToken = token
	return r
}

func wantState(t *testing.T, x wire.Executor, q wire.IdleBeatRequest, want wire.RunState) {
	t.Helper()
	ret, err := x.IdleBeat(t.Context(), q)
	if err != nil || ret.RunState != want || ret.BootID == "" {
		t.Errorf("%+v: %+v, %v, want %s", q, ret, err, want)
	}
}

// TestRunStates follows one run: what is said about it does not depend on what else its
// job does, and what is said about the job does not depend on the run.
func TestRunStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a := newNode(), admins{}
		e := over(t, a, executor.Config{Admins: []executor.AdminCluster{a.cluster("one", n)}})
		handle(t, e, "h", func(context.Context, *executor.Task) error { time.Sleep(time.Minute); return nil })
		start(t, e)
		x := e.As("one")
		time.Sleep(time.Minute)
		job := func(busy bool) {
			t.Helper()
			ret, _ := x.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: 7})
			if ret.OK() == busy || ret.RunState != "" || ret.BootID != "" {
				t.Errorf("about the job: %+v", ret)
			}
			ask, _ := x.IdleBeat(t.Context(), aboutRun(1, 100, 5, time.Second))
			if ask.Code != ret.Code || ask.Msg != ret.Msg {
				t.Errorf("about a run: %+v, about its job: %+v", ask, ret)
			}
		}
		mustGive(t, e, "one", started(1, 100, 5))
		mustGive(t, e, "one", started(2, 100, 5))
		wantState(t, x, aboutRun(1, 100, 5, time.Second), wire.RunHeld)
		wantState(t, x, aboutRun(2, 100, 9, time.Second), wire.RunHeld) // waits; a later owner asks
		wantState(t, x, aboutRun(3, 100, 5, time.Second), wire.RunUnknown)
		wantState(t, x, aboutRun(1, 101, 5, time.Second), wire.RunUnknown) // of another life
		job(true)
		n.set(true)
		time.Sleep(3 * time.Minute) // both have ended, and no admin has their results
		wantState(t, x, aboutRun(1, 100, 5, 3*time.Minute), wire.RunHeld)
		job(false)
		time.Sleep(time.Hour) // their ids are forgotten otherwise
		wantState(t, x, aboutRun(1, 100, 5, time.Hour), wire.RunHeld)
		ended := give(t, e, "one", started(1, 100, 6))
		if ended.BootID != e.Boot() {
			t.Errorf("who says so: %+v", ended)
		}
		ended.BootID = ""
		wantEnded(t, ended, 1)
		n.set(false)
		time.Sleep(time.Minute)
		wantState(t, x, aboutRun(1, 100, 5, time.Hour+4*time.Minute), wire.RunForgotten) // not an honest "unknown"
		mustGive(t, e, "one", started(4, 100, 5))
		time.Sleep(2 * time.Minute)
		wantState(t, x, aboutRun(4, 100, 5, 2*time.Minute), wire.RunReported)
		job(false)
	})
}

// TestWithdrawnStart: what was said to be unknown is refused should it still arrive, but
// not a later start of the run, nor anything else.
func TestWithdrawnStart(t *testing.T) {
	for _, c := range []struct {
		name    string
		q       wire.IdleBeatRequest
		r       wire.TriggerRequest
		refused bool
	}{
		{"the start", aboutRun(1, 100, 5, 0), started(1, 100, 5), true},
		{"an earlier one", aboutRun(1, 100, 5, 0), started(1, 100, 4), true},
		{"a later one", aboutRun(1, 100, 5, 0), started(1, 100, 6), false},
		{"another life", aboutRun(1, 100, 5, 0), started(1, 101, 5), false},
		{"another run", aboutRun(1, 100, 5, 0), started(2, 100, 5), false},
		{"without a date", aboutRun(1, 100, 5, 0), started(1, 0, 5), true},
		{"asked without a date", aboutRun(1, 0, 5, 0), started(1, 100, 5), true},
		// A scheduler that does not number its starts cannot say that one is later.
		{"without a number", aboutRun(1, 100, 5, 0), started(1, 100, 0), true},
		{"without a number, of another life", aboutRun(1, 100, 5, 0), started(1, 101, 0), false},
		{"without a number and a date", aboutRun(1, 100, 5, 0), started(1, 0, 0), false}, // which run that is nobody knows
		{"asked without a number", aboutRun(1, 100, 0, 0), started(1, 100, 1), false},
		{"both without a number", aboutRun(1, 100, 0, 0), started(1, 100, 0), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, runs := counting(t, executor.Config{})
				time.Sleep(time.Minute)
				wantState(t, e, c.q, wire.RunUnknown)
				for range 2 { // also the second time
					if !c.refused {
						break
					}
					wantRefused(t, send(t, e, c.r), "start withdrawn, logId:1: the executor was asked about it before it arrived.")
					again := c.r
					again.AgainAfter = time.Second.Milliseconds()
					wantRefused(t, send(t, e, again), "start withdrawn, logId:1: the executor was asked about it before it arrived.")
				}
				if !c.refused {
					mustSend(t, e, c.r)
				}
				synctest.Wait()
				if n := runs[c.r.LogID].Load(); (n == 0) != c.refused {
					t.Errorf("it has run %d times", n)
				}
			})
		})
	}
}

// TestStartedAgain: a run that was put back and started again runs once, and the original
// that arrives behind it is a repeat.
func TestStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, runs := counting(t, executor.Config{})
		time.Sleep(time.Minute)
		wantState(t, e, aboutRun(1, 100, 5, 0), wire.RunUnknown)
		wantState(t, e, aboutRun(1, 100, 7, 0), wire.RunUnknown) // started again, and asked about again
		wantState(t, e, aboutRun(1, 100, 6, 0), wire.RunUnknown) // an old owner's question takes nothing back
		wantRefused(t, send(t, e, started(1, 100, 7)), wire.Failf(wire.MsgWithdrawn, 1).Msg)
		mustSend(t, e, started(1, 100, 8))
		synctest.Wait()
		wantEnded(t, send(t, e, started(1, 100, 5)), 1)
		wantState(t, e, aboutRun(1, 100, 8, time.Second), wire.RunReported)
		if n := runs[1].Load(); n != 1 {
			t.Errorf("it has run %d times", n)
		}
	})
}

// TestUnknownIsCertain: who may have forgotten a run, or was not there, says so and
// withdraws nothing.
func TestUnknownIsCertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, runs := counting(t, executor.Config{KeepFinished: time.Minute, KeepFinishedMax: 20})
		wantState(t, e, aboutRun(1, 100, 5, time.Millisecond), wire.RunForgotten) // started as it was being made, or before
		time.Sleep(time.Hour)
		for _, ago := range []time.Duration{61 * time.Minute, time.Hour, math.MaxInt64} {
			wantState(t, e, aboutRun(1, 100, 5, ago), wire.RunForgotten)
		}
		wantState(t, e, wire.IdleBeatRequest{LogID: 1, LogDateTime: 100, StartToken: 5, StartedAgo: math.MaxInt64}, wire.RunForgotten)
		wantState(t, e, aboutRun(2, 100, 5, 59*time.Minute), wire.RunUnknown) // nothing was ever forgotten
		mustSend(t, e, started(1, 100, 5))
		time.Sleep(10 * time.Minute)
		mustSend(t, e, started(3, 100, 5))
		synctest.Wait()
		wantState(t, e, aboutRun(1, 100, 5, 11*time.Minute), wire.RunForgotten)
		wantState(t, e, aboutRun(4, 100, 5, 2*time.Second), wire.RunUnknown)
		if n := runs[1].Load(); n != 1 {
			t.Errorf("it has run %d times", n)
		}
	})
}

// TestWithdrawnBound: what was promised is kept for its time; where there is no room for
// one more promise none is made.
func TestWithdrawnBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := counting(t, executor.Config{KeepFinished: time.Minute, KeepFinishedMax: 20})
		time.Sleep(time.Minute)
		for id := int64(1); id <= 20; id++ {
			wantState(t, e, aboutRun(id, 100, 5, 0), wire.RunUnknown)
		}
		wantState(t, e, aboutRun(21, 100, 5, 0), wire.RunForgotten)
		wantState(t, e, aboutRun(1, 100, 5, 0), wire.RunUnknown) // is promised already
		time.Sleep(59 * time.Second)
		for id := int64(1); id <= 20; id++ {
			wantRefused(t, send(t, e, started(id, 100, 5)), wire.Failf(wire.MsgWithdrawn, id).Msg)
		}
		mustSend(t, e, started(21, 100, 5)) // nothing was promised
		time.Sleep(time.Hour)
		wantState(t, e, aboutRun(22, 100, 5, 0), wire.RunUnknown)
		if n := e.WithdrawnStarts(); n != 1 {
			t.Errorf("%d starts are remembered after an hour", n)
		}
	})
}

// TestWithdrawnForLong: how long a start is refused does not become short where ended runs
// are remembered for a short time only: nothing else says that it comes late.
func TestWithdrawnForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, runs := counting(t, executor.Config{KeepFinished: time.Second})
		time.Sleep(time.Minute)
		wantState(t, e, aboutRun(1, 100, 5, 0), wire.RunUnknown)
		time.Sleep(10*time.Minute - time.Second)
		wantRefused(t, send(t, e, started(1, 100, 5)), wire.Failf(wire.MsgWithdrawn, 1).Msg)
		synctest.Wait()
		if n := runs[1].Load(); n != 0 {
			t.Errorf("it has run %d times", n)
		}
	})
}

// TestWithdrawnBoundOfOneID: the bound counts each start, also those of runs with one id,
// of which one was asked about without a date.
func TestWithdrawnBoundOfOneID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := counting(t, executor.Config{KeepFinished: time.Minute, KeepFinishedMax: 20})
		time.Sleep(time.Minute)
		wantState(t, e, aboutRun(1, 0, 5, 0), wire.RunUnknown)
		for date := int64(1); date <= 100; date++ {
			_, _ = e.IdleBeat(t.Context(), aboutRun(1, date, 5, 0))
		}
		if n := e.WithdrawnStarts(); n > 20 {
			t.Errorf("%d starts are remembered, want 20 at most", n)
		}
	})
}

// TestLaterProcess: a later process at the address says that it is another one, and that
// it cannot know.
func TestLaterProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, _ := counting(t, executor.Config{})
		time.Sleep(time.Minute)
		second, _ := counting(t, executor.Config{})
		time.Sleep(2 * time.Second)
		one, _ := first.IdleBeat(t.Context(), aboutRun(1, 100, 5, 3*time.Second))
		two, _ := second.IdleBeat(t.Context(), aboutRun(1, 100, 5, 3*time.Second))
		if one.RunState != wire.RunUnknown || two.RunState != wire.RunForgotten || one.BootID == two.BootID {
			t.Errorf("%+v and %+v", one, two)
		}
		mustSend(t, second, started(1, 100, 5)) // nothing was promised
	})
}

// TestStateOfSpooled: a run whose result is in the spool is held until an admin has it,
// and no longer when the file turns out to make no sense.
func TestStateOfSpooled(t *testing.T) {
	for name, broken := range map[string]bool{"delivered": false, "broken": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir, n := t.TempDir(), newNode()
				n.set(true)
				e := spooling(t, dir, n, executor.Config{})
				var unreadable atomic.Bool
				unreadable.Store(true)
				e.BreakReads(func(string, string) error {
					if unreadable.Load() {
						return errBoom
					}
					return nil
				})
				time.Sleep(time.Minute)
				mustGive(t, e, "one", started(1, 100, 5))
				synctest.Wait()
				time.Sleep(time.Minute)
				wantState(t, e.As("one"), aboutRun(1, 100, 5, time.Minute), wire.RunHeld)
				files := spoolFiles(t, dir)
				if len(files) != 1 {
					t.Fatalf("files %q", files)
				}
				for _, f := range files {
					if broken {
						if err := os.WriteFile(f, bytes.Repeat([]byte("x"), 10), 0o600); err != nil {
							t.Fatal(err)
						}
					}
				}
				n.set(false)
				unreadable.Store(false)
				time.Sleep(time.Minute)
				wantState(t, e.As("one"), aboutRun(1, 100, 5, 2*time.Minute), wire.RunReported)
				if got := len(n.ids()); (got == 0) != broken {
					t.Errorf("%d results", got)
				}
			})
		})
	}
}
