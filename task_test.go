package xxljob_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/xxljobtest"
)

// What a handler is told of its run: times are in the zone of the job's schedule, or in
// Config.Location where it has none.

// told returns what a handler of the job is told within some time.
func told(t *testing.T, o xxljobtest.Options, d time.Duration, job xxljob.Job) (tasks []xxljob.Task) {
	t.Helper()
	job.Key, job.Name, job.Handler = "j", "j", "h"
	o.Handlers = map[string]xxljob.Handler{"h": func(_ context.Context, k *xxljob.Task) error { tasks = append(tasks, *k); return nil }}
	xxljobtest.NewWith(t, o, job)
	time.Sleep(d)
	synctest.Wait()
	return tasks
}

func days(tasks []xxljob.Task) string {
	var list []string
	for i := range tasks {
		list = append(list, tasks[i].ScheduledAt.Format("2006-01-02"))
	}
	return strings.Join(list, " ")
}

func TestTaskTimesAreOfTheJobsZone(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	at := func(loc *time.Location) xxljobtest.Options {
		return xxljobtest.Options{Config: xxljob.Config{Location: loc}}
	}
	apart := xxljobtest.Options{Config: xxljob.Config{Location: time.UTC, Executor: executor.Config{Location: shanghai}}}
	for _, tt := range []struct {
		name       string
		o          xxljobtest.Options
		s          xxljob.Schedule
		zone, days string
	}{
		{"Config.Location", at(shanghai), xxljob.Crontab("0 0 * * *"), "Asia/Shanghai", "2000-01-02 2000-01-03"},
		{"the job's", at(nil), xxljob.Cron("0 30 23 * * ?").In("America/New_York"), "America/New_York", "1999-12-31 2000-01-01"},
		{"the job's, and another Location", at(shanghai), xxljob.Cron("0 30 23 * * ?").In("America/New_York"), "America/New_York", "1999-12-31 2000-01-01"},
		{"the job's is UTC", at(shanghai), xxljob.Crontab("0 23 * * *").In("UTC"), "UTC", "2000-01-01 2000-01-02"},
		{"a schedule without a zone", at(shanghai), xxljob.FixedRate(20 * time.Hour), "Asia/Shanghai", "2000-01-02 2000-01-03"},
		{"none at all", at(nil), xxljob.Crontab("0 23 * * *"), "UTC", "2000-01-01 2000-01-02"},
		{"the executor's, where the scheduler has none", apart, xxljob.Crontab("0 23 * * *"), "Asia/Shanghai", "2000-01-02 2000-01-03"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tasks := told(t, tt.o, 48*time.Hour, xxljob.Job{Schedule: tt.s, Timeout: time.Minute})
				if got := days(tasks); got != tt.days {
					t.Errorf("days %s, want %s", got, tt.days)
				}
				for _, k := range tasks {
					for what, at := range map[string]time.Time{"ScheduledAt": k.ScheduledAt, "Deadline": k.Deadline, "BusinessTime": k.BusinessTime} {
						if at.Location().String() != tt.zone {
							t.Errorf("%s is in %v, want %s", what, at.Location(), tt.zone)
						}
					}
					if k.Zone != tt.zone || !k.BusinessTime.Equal(k.ScheduledAt) || k.Count != 0 || !k.First.IsZero() || k.Window != nil {
						t.Errorf("told %+v", k)
					}
				}
			})
		})
	}
}

// The lines of a run's log have the times of Config.Location, unless the executor has a zone of its own.
func TestLinesAreOfTheSchedulersZone(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	stage.Must(t, err)
	for want, cfg := range map[string]xxljob.Config{
		"2000-01-01 00:00:01 INFO now\n": {},
		"2000-01-01 08:00:01 INFO now\n": {Location: shanghai},
		"1999-12-31 23:00:01 INFO now\n": {Location: shanghai, Executor: executor.Config{Location: time.FixedZone("", -3600)}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := xxljobtest.NewWith(t, xxljobtest.Options{Config: cfg, Handlers: map[string]xxljob.Handler{
				"h": func(_ context.Context, task *xxljob.Task) error { task.Log().Info("now"); return nil },
			}}, xxljob.Job{Key: "k", Name: "k", Handler: "h", Schedule: xxljob.Crontab("0 0 1 1 *").In("UTC")})
			time.Sleep(time.Second)
			run, err := s.TriggerJob(t.Context(), "", "k", xxljob.Trigger{})
			stage.Must(t, err)
			time.Sleep(time.Second)
			lines, err := s.Log(t.Context(), run[0], 1)
			stage.Must(t, err)
			if lines.LogContent != want {
				t.Errorf("%v: %q", cfg.Location, lines.LogContent)
			}
		})
	}
}

func TestTaskKeyIsOneForAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tasks []xxljob.Task
		s := xxljobtest.NewWith(t, xxljobtest.Options{Handlers: map[string]xxljob.Handler{"h": func(_ context.Context, k *xxljob.Task) error {
			tasks = append(tasks, *k)
			return errors.New("no")
		}}}, xxljob.Job{Key: "close", Name: "j", Handler: "h", Retries: 2, Schedule: xxljob.Cron("0 30 23 L * ?").In("America/New_York")})
		time.Sleep(33 * 24 * time.Hour)
		synctest.Wait()
		runs := s.Runs("close")
		if len(tasks) != 6 || len(runs) != 6 {
			t.Fatalf("%d attempts, %d runs", len(tasks), len(runs))
		}
		keys, ids := map[string]int{}, map[int64]int{}
		for i, k := range tasks {
			keys[k.Key()]++
			ids[k.TriggerID]++
			if k.Attempt != i%3 {
				t.Errorf("attempt %d is told %d", i, k.Attempt)
			}
		}
		if keys["test/close 2000-01-01T04:30:00.000Z"] != 3 || keys["test/close 2000-02-01T04:30:00.000Z"] != 3 || len(ids) != 2 {
			t.Errorf("keys %v, triggers %v", keys, ids)
		}
		if no := (&xxljob.Task{App: "a", JobID: 7}).Key(); no != "a/#7 0001-01-01T00:00:00.000Z" {
			t.Errorf("a job without a key: %s", no)
		}
	})
}

// The parts of a broadcast are of one trigger, and so is what they are for.
func TestTaskKeyIsOneForAllParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		var mu sync.Mutex // three of them run at once
		var tasks []xxljob.Task
		for range 3 {
			s, err := xxljob.New(store, xxljob.Config{App: "b"})
			if err != nil {
				t.Fatal(err)
			}
			s.Handle("h", func(_ context.Context, k *xxljob.Task) error {
				mu.Lock()
				defer mu.Unlock()
				tasks = append(tasks, *k)
				return nil
			})
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer s.Stop(context.Background())
			if _, err := s.EnsureJob(t.Context(), xxljob.Job{Key: "j", Name: "j", Handler: "h", Route: "SHARDING_BROADCAST", Schedule: xxljob.Crontab("10 0 * * *")}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if len(tasks) != 3 || tasks[0].Key() != tasks[1].Key() || tasks[1].Key() != tasks[2].Key() || tasks[0].TriggerID != tasks[2].TriggerID || tasks[1].TriggerID == 0 {
			t.Errorf("told %+v", tasks)
		}
	})
}

// A job behind others is told the window that they have ended, and a child what its parent is about.
func TestTaskKnowsItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var report, child xxljob.Task
		ok := func(context.Context, *xxljob.Task) error { time.Sleep(3 * time.Hour); return nil }
		s := xxljobtest.NewWith(t, xxljobtest.Options{Handlers: map[string]xxljob.Handler{
			"ok":     ok,
			"report": func(_ context.Context, k *xxljob.Task) error { report = *k; return nil },
			"child":  func(_ context.Context, k *xxljob.Task) error { child = *k; return nil },
		}},
			xxljob.Job{Key: "a", Name: "a", Handler: "ok", Schedule: xxljob.Crontab("0 22 * * *")},
			xxljob.Job{Key: "b", Name: "b", Handler: "ok", Schedule: xxljob.Crontab("0 23 * * *")},
			xxljob.Job{Key: "child", Name: "child", Handler: "child", AfterKeys: []string{"test/a"}},
			xxljob.Job{Key: "report", Name: "report", Handler: "report", AfterKeys: []string{"test/a", "test/b"}})
		time.Sleep(30 * time.Hour)
		synctest.Wait()
		run := s.Runs("report")[0]
		day := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		if !report.BusinessTime.Equal(run.BusinessTime()) || !report.ScheduledAt.Equal(day) || run.Scheduled.Format("2006-01-02") != "2000-01-02" {
			t.Errorf("told %+v of %+v", report, run)
		}
		if report.Window == nil || !report.Window.Start.Equal(day) || !report.Window.End.Equal(day.AddDate(0, 0, 1)) {
			t.Errorf("the window is %v", report.Window)
		}
		if child.BusinessTime.Format("01-02") != "01-01" {
			t.Errorf("the child is about %v", child.BusinessTime)
		}
	})
}

// A run that makes up for several instants says from which to which.
func TestTaskKnowsWhatItMakesUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		var tasks []xxljob.Task
		run := func(d time.Duration) {
			ctx, cancel := context.WithCancel(context.Background())
			s, err := xxljob.New(store, xxljob.Config{App: "b"})
			if err != nil {
				t.Fatal(err)
			}
			s.Handle("m", func(_ context.Context, k *xxljob.Task) error { tasks = append(tasks, *k); return nil })
			if _, err := s.EnsureJob(ctx, xxljob.Job{Key: "m", Name: "M", Handler: "m", Misfire: xxljob.MisfireFireOnceNow, Schedule: xxljob.Cron("0 0 6 1 * ?").In("Asia/Tokyo")}); err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() { done <- s.Run(ctx) }()
			time.Sleep(d)
			cancel()
			<-done
		}
		run(time.Hour)
		time.Sleep(100 * 24 * time.Hour)
		run(time.Hour)
		if len(tasks) != 1 {
			t.Fatalf("%d runs", len(tasks))
		}
		k := tasks[0]
		if k.Count != 3 || k.First.Format(time.DateTime) != "2000-02-01 06:00:00" || k.Last.Format(time.DateTime) != "2000-04-01 06:00:00" || k.Zone != "Asia/Tokyo" {
			t.Errorf("it makes up for %d, %v to %v", k.Count, k.First, k.Last)
		}
	})
}

// The cause of a handler's context says who has ended it.
func TestCauseOfAHandlersEnd(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(s xxljob.Scheduler, stop func(), id int64)
		want error
	}{
		{"shutdown", func(_ xxljob.Scheduler, stop func(), _ int64) { stop() }, executor.ErrShutdown},
		{"kill", func(s xxljob.Scheduler, _ func(), id int64) { s.Kill(context.Background(), id) }, executor.ErrKilled},
		{"timeout", func(xxljob.Scheduler, func(), int64) { time.Sleep(time.Minute) }, executor.ErrTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := xxljob.New(memory.New(), xxljob.Config{App: "x", StopGrace: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				var cause error
				s.Handle("h", func(ctx context.Context, _ *xxljob.Task) error { <-ctx.Done(); cause = context.Cause(ctx); return nil })
				job, err := s.EnsureJob(t.Context(), xxljob.Job{Key: "j", Name: "j", Handler: "h", Timeout: 30 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan error, 1)
				go func() { done <- s.Run(ctx) }()
				time.Sleep(time.Second)
				id, err := s.TriggerOne(t.Context(), job.Job.ID, xxljob.Trigger{})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				tt.end(s, cancel, id)
				cancel()
				<-done
				if !errors.Is(cause, tt.want) {
					t.Errorf("cause: %v, want %v", cause, tt.want)
				}
			})
		})
	}
}

// A handler that calls Stop with its context is told that Stop would wait for it.
func TestStopCalledByAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *xxljobtest.Scheduler
		var got error
		s = xxljobtest.NewWith(t, xxljobtest.Options{Handlers: map[string]xxljob.Handler{"h": func(ctx context.Context, _ *xxljob.Task) error {
			got = s.Stop(ctx)
			return nil
		}}}, xxljob.Job{Key: "j", Name: "j", Handler: "h"})
		ids, err := s.TriggerJob(t.Context(), "", "j", xxljob.Trigger{})
		if err != nil {
			t.Fatal(err)
		}
		if run := s.WaitRun(ids[0]); run.State != xxljob.StateSucceeded || !errors.Is(got, xxljob.ErrWaitsForItself) || !strings.Contains(got.Error(), "stop, which waits for the handler") {
			t.Errorf("%v, and the run ended as %v", got, run.State)
		}
		if err := s.Ready(); err != nil {
			t.Errorf("not ready any more: %v", err)
		}
	})
}

// Who waits on a scheduler that was never started is told so at the end.
func TestWaitWithoutStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := xxljob.New(memory.New(), xxljob.Config{App: "x"})
		if err != nil {
			t.Fatal(err)
		}
		s.Handle("h", func(context.Context, *xxljob.Task) error { return nil })
		job, err := s.EnsureJob(t.Context(), xxljob.Job{Key: "j", Name: "j", Handler: "h"})
		if err != nil {
			t.Fatal(err)
		}
		id, err := s.TriggerOne(t.Context(), job.Job.ID, xxljob.Trigger{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = s.Wait(ctx, id)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not started") {
			t.Errorf("%v", err)
		}
	})
}

// Who triggers on a scheduler that was never started, and gives up since the store does not answer, is told
// so; and one that is started says nothing of it.
func TestTriggerWithoutStart(t *testing.T) {
	for _, started := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			st := storetest.Wrap(memory.New())
			s, err := xxljob.New(st, xxljob.Config{App: "x", Logger: stage.QuietLog()})
			stage.Must(t, err)
			stage.Must(t, s.Handle("h", stage.NothingToDo))
			job, err := s.EnsureJob(t.Context(), xxljob.Job{Key: "j", Name: "j", Handler: "h"})
			stage.Must(t, err)
			run, err := s.TriggerOne(t.Context(), job.Job.ID, xxljob.Trigger{})
			stage.Must(t, err)
			if started {
				stage.Must(t, s.Start(t.Context()))
				synctest.Wait()
			}
			hangs := make(chan struct{})
			var removes []func()
			for _, method := range []string{"AddRun", "Run", "JobByKey"} {
				removes = append(removes, st.Inject(method, storetest.Fault{Hang: hangs}))
			}
			for verb, call := range map[string]func(ctx context.Context) error{
				"Trigger":    func(ctx context.Context) error { _, err := s.Trigger(ctx, job.Job.ID, xxljob.Trigger{}); return err },
				"TriggerJob": func(ctx context.Context) error { _, err := s.TriggerJob(ctx, "", "j", xxljob.Trigger{}); return err },
				"TriggerOne": func(ctx context.Context) error { _, err := s.TriggerOne(ctx, job.Job.ID, xxljob.Trigger{}); return err },
				"Again":      func(ctx context.Context) error { _, err := s.Again(ctx, run); return err },
				"Wait":       func(ctx context.Context) error { _, err := s.Wait(ctx, run); return err },
			} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				err := call(ctx)
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "this scheduler was not started") == started {
					t.Errorf("started %v, %s: %v", started, verb, err)
				}
			}
			close(hangs)
			for _, remove := range removes {
				remove()
			}
			stage.Must(t, s.Stop(t.Context()))
		})
	}
}
