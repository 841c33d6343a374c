package xxljobtest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/xxljobtest"
)

func nothing(context.Context, *xxljob.Task) error { return nil }

func echo(_ context.Context, task *xxljob.Task) error {
	task.SetResult("echo " + task.Param)
	return nil
}

func clock(hour, min, sec int) time.Time { return time.Date(2000, 1, 1, hour, min, sec, 0, time.UTC) }

var hourly = xxljob.Job{Name: "hourly", Handler: "h", Schedule: xxljob.Crontab("0 * * * *"), Param: "own"}

func TestRunNow(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		s := xxljobtest.New(t, hourly, xxljob.Job{Name: "by hand", Key: "k", Handler: "fails"})
		if err := s.Handle("h", echo); err != nil {
			t.Fatal(err)
		}
		if err := s.Handle("fails", func(context.Context, *xxljob.Task) error { return errors.New("no") }); err != nil {
			t.Fatal(err)
		}
		if run := s.RunNow("hourly"); run.State != xxljob.StateSucceeded || run.HandleMsg != "echo own" || run.Type != xxljob.TriggerManual {
			t.Errorf("got %+v", run)
		}
		if run := s.RunNow("hourly", "other"); run.HandleMsg != "echo other" {
			t.Errorf("got %+v", run)
		}
		if run := s.RunNow("hourly", ""); run.HandleMsg != "echo " {
			t.Errorf("got %+v", run)
		}
		if run := s.RunNow("k"); run.State != xxljob.StateFailed || run.HandleMsg != "no" {
			t.Errorf("got %+v", run)
		}
		if runs := s.Runs("hourly"); len(runs) != 3 || runs[0].Param != "own" {
			t.Errorf("got %+v", runs)
		}
		s.RequireRuns("hourly")
		s.RequireRuns("k")
	})
}

func TestRunNowWithoutHandler(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		s := xxljobtest.New(t, hourly)
		if run := s.RunNow("hourly"); run.State != xxljob.StateRefused {
			t.Errorf("got %+v", run)
		}
	})
}

func TestHandlersOfOptionsComeFirst(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		ran := make(chan time.Time, 1)
		at := time.Now().Add(20 * time.Millisecond)
		s := xxljobtest.NewWith(t, xxljobtest.Options{Handlers: map[string]xxljob.Handler{
			"h": func(_ context.Context, task *xxljob.Task) error { ran <- task.ScheduledAt; return nil },
		}}, xxljob.Job{Name: "soon", Handler: "h", Schedule: xxljob.At(at)})
		if got := <-ran; !got.Equal(at.Truncate(time.Millisecond)) {
			t.Errorf("ran for %v, want %v", got, at)
		}
		s.WaitRun(s.Runs("soon")[0].ID)
		s.RequireRuns("soon", at)
	})
}

func TestNextFireOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := xxljobtest.New(t, hourly,
			xxljob.Job{Name: "often", Handler: "h", Schedule: xxljob.Cron("0/2 * * * * ?")},
			xxljob.Job{Name: "once", Handler: "h", Schedule: xxljob.At(clock(0, 0, 30))},
			xxljob.Job{Name: "delay", Handler: "slow", Schedule: xxljob.FixedDelay(10 * time.Second)},
			xxljob.Job{Name: "by hand", Handler: "h"},
		)
		if err := errors.Join(s.Handle("h", nothing), s.Handle("slow", func(context.Context, *xxljob.Task) error {
			time.Sleep(3 * time.Second)
			return nil
		})); err != nil {
			t.Fatal(err)
		}
		check := func(key string, want time.Time) {
			t.Helper()
			if got := s.NextFireOf(key); !got.Equal(want) {
				t.Errorf("at %s: %s: got %v, want %v", time.Now().UTC().Format(time.TimeOnly), key, got, want)
			}
		}
		check("hourly", clock(1, 0, 0))
		check("often", clock(0, 0, 2)) // planned already, the job's Next is further on
		check("once", clock(0, 0, 30))
		check("delay", clock(0, 0, 10))
		check("by hand", time.Time{})
		time.Sleep(12 * time.Second)
		check("often", clock(0, 0, 14))
		check("delay", time.Time{}) // it runs
		time.Sleep(time.Second)
		check("delay", clock(0, 0, 23))
		time.Sleep(17 * time.Second)
		check("once", time.Time{})
		if err := s.StopJob(t.Context(), s.Runs("often")[0].JobID); err != nil {
			t.Fatal(err)
		}
		check("often", time.Time{})
	})
}

func TestRequireRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := xxljobtest.New(t, hourly)
		if err := s.Handle("h", nothing); err != nil {
			t.Fatal(err)
		}
		s.RequireRuns("hourly")
		time.Sleep(time.Hour) // ends at the very instant at which the job is due
		s.RequireRuns("hourly", clock(1, 0, 0))
		time.Sleep(2 * time.Hour)
		s.RequireRuns("hourly", clock(3, 0, 0), clock(1, 0, 0), clock(2, 0, 0).In(time.FixedZone("", 7200)))
	})
}

func TestRequireRunsShowsTheDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := failure(t, func(t testing.TB) {
			s := xxljobtest.New(t, hourly)
			calls := 0
			if err := s.Handle("h", func(context.Context, *xxljob.Task) error {
				if calls++; calls == 2 {
					return errors.New("disk full\nand more")
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(12 * time.Hour)
			want := []time.Time{clock(0, 30, 0)}
			for h := 1; h < 12; h++ {
				want = append(want, clock(h, 0, 0))
			}
			s.RequireRuns("hourly", want...)
		})
		want := `xxljobtest: job "hourly": 12 runs by its schedule, want 12:
- 2000-01-01T00:30:00Z  missing
  2000-01-01T01:00:00Z  succeeded
  2000-01-01T02:00:00Z  failed: disk full
  ... 7 more as wanted
  2000-01-01T10:00:00Z  succeeded
  2000-01-01T11:00:00Z  succeeded
+ 2000-01-01T12:00:00Z  succeeded  not wanted`
		if got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	})
}

func TestRequireRunsShowsRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := failure(t, func(t testing.TB) {
			s := xxljobtest.New(t, hourly)
			time.Sleep(time.Hour)
			s.RequireRuns("hourly")
		})
		if !strings.HasPrefix(got, "xxljobtest: job \"hourly\": 1 run by its schedule, want 0:\n+ 2000-01-01T01:00:00Z  refused: ") ||
			!strings.Contains(got, "test") {
			t.Errorf("got:\n%s", got)
		}
	})
}

func TestRequireRunsCountsABroadcastOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		both := xxljobtest.Options{Store: store, Handlers: map[string]xxljob.Handler{"h": nothing}}
		xxljobtest.NewWith(t, both)
		wide := hourly
		wide.Route = route.ShardingBroadcast
		s := xxljobtest.NewWith(t, both, wide)
		time.Sleep(time.Hour)
		s.RequireRuns("hourly", clock(1, 0, 0))
		if n := len(s.Runs("hourly")); n != 2 {
			t.Errorf("%d runs, want one for each part", n)
		}
	})
}

// A month of a job that is seldom due: nothing is missed, and nothing ticks while
// nothing is due, so that it takes milliseconds.
func TestAMonth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := xxljobtest.New(t, xxljob.Job{Name: "daily", Handler: "h", Schedule: xxljob.Cron("0 0 3 * * ?")})
		if err := s.Handle("h", nothing); err != nil {
			t.Fatal(err)
		}
		time.Sleep(31 * 24 * time.Hour)
		var want []time.Time
		for d := range 31 {
			want = append(want, clock(3+24*d, 0, 0))
		}
		s.RequireRuns("daily", want...)
	})
}

// A test may end while a handler runs. In a bubble, goroutines that were left
// would fail it.
func TestEndInTheMiddleOfARun(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		var cause error
		running := make(chan struct{})
		rec := record(t, func(t testing.TB) {
			s := xxljobtest.NewWith(t, xxljobtest.Options{
				Config: xxljob.Config{StopGrace: 10 * time.Millisecond},
				Handlers: map[string]xxljob.Handler{"h": func(ctx context.Context, _ *xxljob.Task) error {
					close(running)
					<-ctx.Done()
					cause = context.Cause(ctx)
					return nil
				}},
			}, hourly)
			jobs, err := s.Store.Jobs(t.Context(), xxljob.JobFilter{})
			if err != nil || len(jobs) != 1 {
				t.Fatal(jobs, err)
			}
			if _, err := s.Trigger(t.Context(), jobs[0].ID, xxljob.Trigger{}); err != nil {
				t.Fatal(err)
			}
			<-running
		})
		if cause == nil {
			t.Error("the handler was not cancelled")
		}
		if rec.fatal != "" || len(rec.logs) != 1 || !strings.Contains(rec.logs[0], "at the end of the test") {
			t.Errorf("failed with %q, logged %q", rec.fatal, rec.logs)
		}
	})
}

func TestStopIsCalledOnce(t *testing.T) {
	inAndOut(t, func(t *testing.T) {
		rec := record(t, func(t testing.TB) {
			s := xxljobtest.New(t, hourly)
			if err := s.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.RunNow("hourly")
		})
		if !strings.Contains(rec.fatal, "the scheduler is stopped") {
			t.Errorf("failed with %q", rec.fatal)
		}
	})
}

func TestWarningsGoToTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := record(t, func(t testing.TB) {
			s := xxljobtest.New(t, hourly)
			if err := s.Handle("h", func(context.Context, *xxljob.Task) error { panic("boom") }); err != nil {
				t.Fatal(err)
			}
			s.RunNow("hourly")
		})
		out := rec.out.String()
		if !strings.Contains(out, "a handler panicked") || strings.Contains(out, "no executor") {
			t.Errorf("output:\n%s", out)
		}
	})
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(t testing.TB)
		want string
	}{
		{"bad config", func(t testing.TB) {
			xxljobtest.NewWith(t, xxljobtest.Options{Config: xxljob.Config{Cluster: xxljob.ClusterConfig{Shards: -1}}})
		}, `New: xxljob: config: Cluster.Shards "-1"`},
		{"bad jobs", func(t testing.TB) {
			xxljobtest.New(t, xxljob.Job{Name: "a", Schedule: xxljob.Cron("x")}, hourly, hourly)
		}, "xxljob: job \"a\": Handler \"\": must not be empty"},
		{"duplicate", func(t testing.TB) { xxljobtest.New(t, hourly, hourly) }, "the key is taken"},
		{"nil handler", func(t testing.TB) {
			xxljobtest.NewWith(t, xxljobtest.Options{Handlers: map[string]xxljob.Handler{"h": nil}})
		}, `handler "h" is nil`},
		{"no job", func(t testing.TB) { xxljobtest.New(t).RunNow("x") }, `job "x": there are no jobs`},
		{"wrong key", func(t testing.TB) { xxljobtest.New(t, hourly).NextFireOf("x") }, `job "x": no job has this key; there are "hourly"`},
		{"wrong key of runs", func(t testing.TB) { xxljobtest.New(t, hourly).RequireRuns("x") }, `job "x": no job has this key`},
		{"key in two apps", func(t testing.TB) {
			a, b := hourly, hourly
			a.App, b.App = "a", "b"
			xxljobtest.New(t, a, b).RunNow("hourly")
		}, `job "hourly": there is one in each of the apps a, b`},
		{"two params", func(t testing.TB) { xxljobtest.New(t, hourly).RunNow("hourly", "a", "b") }, "2 params, want one at most"},
		{"no run", func(t testing.TB) { xxljobtest.New(t, hourly).WaitRun(99) }, "WaitRun: run 99: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			inAndOut(t, func(t *testing.T) {
				if got := failure(t, c.f); !strings.HasPrefix(got, "xxljobtest: ") || !strings.Contains(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// A serial job whose runs take long does not trouble RequireRuns: what waits
// has not been started.
func TestRunsThatWaitAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int32
		s := xxljobtest.New(t, xxljob.Job{Name: "slow", Handler: "h", Schedule: xxljob.Cron("0/10 * * * * ?")})
		if err := s.Handle("h", func(context.Context, *xxljob.Task) error {
			if running.Add(1) > 1 {
				t.Error("two at a time")
			}
			time.Sleep(25 * time.Second)
			running.Add(-1)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(34 * time.Second)
		s.RequireRuns("slow", clock(0, 0, 10))
		time.Sleep(2 * time.Second)
		s.RequireRuns("slow", clock(0, 0, 10), clock(0, 0, 20))
	})
}
