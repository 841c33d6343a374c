package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestLifecycle: Start once, Stop as often as one likes, Start never after Stop.
// A bubble ends only when every goroutine in it has ended, so each of these
// tests also shows that a stopped scheduler leaves none.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	make1 := func(t *testing.T, cfg xxljob.Config) xxljob.Scheduler {
		s, _ := refuseWorld(t, cfg)
		return s
	}
	for name, test := range map[string]func(t *testing.T){
		"Start twice": func(t *testing.T) {
			s := make1(t, xxljob.Config{})
			if err := s.Ready(); !errors.Is(err, xxljob.ErrNotReady) {
				t.Errorf("Ready before Start: %v", err)
			}
			stage.Must(t, s.Start(t.Context()))
			if err := s.Start(t.Context()); !errors.Is(err, xxljob.ErrStarted) {
				t.Errorf("the second Start: %v", err)
			}
			synctest.Wait()
			stage.Must(t, s.Ready())
			stage.Must(t, s.Stop(t.Context()))
			if err := s.Start(t.Context()); !errors.Is(err, xxljob.ErrStopped) {
				t.Errorf("Start after Stop: %v", err)
			}
			if err := s.Ready(); !errors.Is(err, xxljob.ErrNotReady) || !errors.Is(err, xxljob.ErrStopped) {
				t.Errorf("Ready after Stop: %v", err)
			}
		},
		"Stop before Start": func(t *testing.T) {
			s := make1(t, xxljob.Config{})
			stage.Must(t, s.Stop(t.Context()))
			stage.Must(t, s.Stop(t.Context()))
			if err := s.Start(t.Context()); !errors.Is(err, xxljob.ErrStopped) {
				t.Errorf("Start: %v", err)
			}
			if err := s.Run(t.Context()); !errors.Is(err, xxljob.ErrStopped) {
				t.Errorf("Run: %v", err)
			}
		},
		"Stop from many goroutines": func(t *testing.T) {
			s := make1(t, xxljob.Config{})
			stage.Must(t, s.Start(t.Context()))
			var group sync.WaitGroup
			for range 20 {
				group.Go(func() {
					if err := s.Stop(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			stage.Must(t, s.Stop(t.Context()))
		},
		"Start with an ended context": func(t *testing.T) {
			s := make1(t, xxljob.Config{})
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Start(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("Start: %v", err)
			}
			stage.Must(t, s.Start(t.Context())) // that was no Start
			stage.Must(t, s.Stop(t.Context()))
		},
		"Run": func(t *testing.T) {
			s := make1(t, xxljob.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			group.Go(func() {
				if err := s.Run(ctx); err != nil {
					t.Errorf("Run: %v", err)
				}
			})
			time.Sleep(time.Second)
			stage.Must(t, s.Ready())
			if err := s.Run(ctx); !errors.Is(err, xxljob.ErrStarted) {
				t.Errorf("a second Run: %v", err)
			}
			cancel()
			group.Wait()
			if err := s.Ready(); !errors.Is(err, xxljob.ErrStopped) {
				t.Errorf("Ready: %v", err)
			}
		},
		"Run with an ended context": func(t *testing.T) {
			s := make1(t, xxljob.Config{})
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			stage.Must(t, s.Run(ended))
		},
		"Stop ends Run": func(t *testing.T) {
			s := make1(t, xxljob.Config{})
			var group sync.WaitGroup
			group.Go(func() {
				if err := s.Run(t.Context()); err != nil {
					t.Errorf("Run: %v", err)
				}
			})
			time.Sleep(time.Second)
			stage.Must(t, s.Stop(t.Context()))
			group.Wait()
		},
		"the end of Start's context stops": func(t *testing.T) {
			s := make1(t, xxljob.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			stage.Must(t, s.Start(ctx))
			time.Sleep(time.Second)
			cancel()
			synctest.Wait()
			if err := s.Ready(); !errors.Is(err, xxljob.ErrStopped) {
				t.Errorf("Ready: %v", err)
			}
			stage.Must(t, s.Stop(t.Context())) // waits for the first
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}

// TestGrace: the end of Start's context gives handlers Config.StopGrace; then
// they are cancelled and recorded as killed.
func TestGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := refuseWorld(t, xxljob.Config{StopGrace: 10 * time.Second})
		var mu sync.Mutex
		var took []time.Duration
		stage.Must(t, s.Handle("slow", func(ctx context.Context, task *xxljob.Task) error {
			began := time.Now()
			d, _ := time.ParseDuration(task.Param)
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(began))
			return ctx.Err()
		}))
		ctx, cancel := context.WithCancel(t.Context())
		stage.Must(t, s.Start(ctx))
		var runs []int64
		for _, d := range []string{"6s", "60s"} {
			job, err := s.AddJob(t.Context(), xxljob.Job{Name: d, Handler: "slow", Param: d})
			stage.Must(t, err)
			ids, err := s.Trigger(t.Context(), job.ID, xxljob.Trigger{})
			stage.Must(t, err)
			runs = append(runs, ids...)
		}
		time.Sleep(time.Second)
		cancel()
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		if fmt.Sprint(took) != "[6s 11s]" {
			t.Errorf("the handlers ran for %v, want 6s and 11s", took)
		}
		mu.Unlock()
		for i, want := range []xxljob.State{xxljob.StateSucceeded, xxljob.StateLost} {
			run, err := st.Run(t.Context(), runs[i])
			stage.Must(t, err)
			if run.State != want {
				t.Errorf("run %d is %v, want %v", i, run.State, want)
			}
		}
	})
}

// TestCallableAtAnyTime: every call works before Start as it does later, and those that
// change definitions also after Stop; what was asked for then is done by whoever runs
// the store.
func TestCallableAtAnyTime(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"before Start", "started", "stopped"} {
		t.Run(phase, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { callEverything(t, phase) })
		})
	}
}

func callEverything(t *testing.T, phase string) {
	ctx := t.Context()
	s, st := refuseWorld(t, xxljob.Config{})
	if phase != "before Start" {
		stage.Must(t, s.Start(ctx))
		time.Sleep(time.Second)
	}
	if phase == "stopped" {
		stage.Must(t, s.Stop(ctx))
	}
	job, err := s.AddJob(ctx, xxljob.Job{Name: "new", Handler: "work", Schedule: xxljob.FixedRate(time.Hour)})
	stage.Must(t, err)
	job.Author = "me"
	job, err = s.UpdateJob(ctx, job)
	if err != nil || job.Author != "me" || job.Version != 2 {
		t.Errorf("UpdateJob: %+v, %v", job, err)
	}
	stage.Must(t, s.StopJob(ctx, job.ID))
	stage.Must(t, s.StartJob(ctx, job.ID))
	stage.Must(t, s.StartJob(ctx, job.ID))
	own := s // for what is refused after Stop
	if phase == "stopped" {
		s, err = xxljob.New(st, xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler)})
		stage.Must(t, err)
		stage.Must(t, s.Handle("work", stage.NothingToDo))
	}
	all, err := s.EnsureJobs(ctx, "", []xxljob.Job{{Name: "ensured", Handler: "work", Schedule: xxljob.FixedRate(24 * time.Hour)}, {Name: "more", Handler: "work"}}, xxljob.EnsureOptions{Prune: true})
	if err != nil || len(all) != 2 || all[0].Outcome != xxljob.Unchanged || all[1].Outcome != xxljob.Created {
		t.Errorf("EnsureJobs: %+v, %v", all, err)
	}
	stage.Must(t, own.SaveGroup(ctx, xxljob.Group{App: "other"}))
	stage.Must(t, own.RemoveGroup(ctx, "other"))
	e, err := executor.New(executor.Config{App: "attached"})
	stage.Must(t, err)
	stage.Must(t, own.Attach(e))
	if err := own.Handle("late", stage.NothingToDo); (err != nil) != (phase == "stopped") {
		t.Errorf("Handle: %v", err)
	}
	ids, err := s.Trigger(ctx, job.ID, xxljob.Trigger{Key: "k"})
	stage.Must(t, err)
	again, err := s.Trigger(ctx, job.ID, xxljob.Trigger{Key: "k"})
	if err != nil || len(ids) != 1 || len(again) != 1 || again[0] != ids[0] {
		t.Errorf("Trigger: %v, again %v, %v", ids, again, err)
	}
	later, err := s.Trigger(ctx, job.ID, xxljob.Trigger{At: time.Now().Add(time.Hour)})
	stage.Must(t, err)
	stage.Must(t, own.Kill(ctx, later[0]))
	if run, err := s.Wait(ctx, later[0]); err != nil || run.State != xxljob.StateCancelled {
		t.Errorf("the killed run: %v, %v", run.State, err)
	}
	if phase != "started" {
		short, cancel := context.WithTimeout(ctx, 10*time.Second)
		if run, err := s.Wait(short, ids[0]); !errors.Is(err, context.DeadlineExceeded) || run.State != xxljob.StatePlanned {
			t.Errorf("Wait while nobody runs: %v, %v", run.State, err)
		}
		cancel()
	}
	if phase != "started" {
		stage.Must(t, s.Start(ctx))
	}
	if run, err := s.Wait(ctx, ids[0]); err != nil || run.State != xxljob.StateSucceeded {
		t.Errorf("the triggered run: %v, %v", run.State, err)
	}
	stage.Must(t, own.RemoveJob(ctx, job.ID))
	if err := own.StopJob(ctx, job.ID); !errors.Is(err, xxljob.ErrNotFound) {
		t.Errorf("StopJob of a removed job: %v", err)
	}
	stage.Must(t, s.Stop(ctx))
	stage.Must(t, own.Stop(ctx))
}

// TestHandleAfterStop: Handle on a stopped scheduler is ErrStopped.
func TestHandleAfterStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := refuseWorld(t, xxljob.Config{})
		stage.Must(t, s.Stop(t.Context()))
		if err := s.Handle("late", stage.NothingToDo); !errors.Is(err, xxljob.ErrStopped) {
			t.Errorf("%v is not %v", err, xxljob.ErrStopped)
		}
	})
}

// TestStopRefusesNothing: while a node stops, and still has something to take, no run of it
// is refused though no other node answers for the moment.
func TestStopRefusesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		time.Sleep(10 * time.Second)
		for i := range 40 {
			for _, r := range []string{route.Failover, route.Round} {
				_, err := b.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(r, i), Handler: "work", Route: r, Schedule: xxljob.Cron("* * * * * ?")})
				stage.Must(t, err)
			}
		}
		time.Sleep(5 * time.Second)
		a.Faults.Inject("Take", storetest.Fault{Delay: 4500 * time.Millisecond})
		time.Sleep(500 * time.Millisecond)
		b.Pause()
		time.Sleep(2500 * time.Millisecond)
		stage.Stop(t, a)
		b.Resume()
		time.Sleep(time.Minute)
		for _, run := range stage.AllRuns(t, st) {
			if run.State == xxljob.StateRefused {
				t.Errorf("run %d of %v: %s", run.ID, run.Scheduled, run.TriggerMsg)
			}
		}
		stage.Stop(t, b)
	})
}
