package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// TestAfterStop: what would wait for loops that are no more is ErrStopped. Who has been
// waiting goes on: another node may run what this one has not.
func TestAfterStop(t *testing.T) {
	t.Parallel()
	for _, started := range []bool{true, false} {
		t.Run(fmt.Sprintf("started %v", started), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, st := refuseWorld(t, xxljob.Config{})
				if started {
					stage.Must(t, s.Start(t.Context()))
				}
				id := idByKey(t, st, "two")
				later, err := s.Trigger(t.Context(), id, xxljob.Trigger{At: time.Now().Add(time.Hour)})
				stage.Must(t, err)
				type answer struct {
					run xxljob.Run
					err error
				}
				answers := make(chan answer, 1)
				go func() {
					run, err := s.Wait(context.Background(), later[0])
					answers <- answer{run, err}
				}()
				time.Sleep(time.Second)
				stage.Must(t, s.Stop(t.Context()))
				before := stage.ContentsOf(t, st)
				job := xxljob.Job{Name: "late", Handler: "work"}
				for name, call := range map[string]func() error{
					"Trigger":   func() error { _, err := s.Trigger(t.Context(), id, xxljob.Trigger{}); return err },
					"EnsureJob": func() error { _, err := s.EnsureJob(t.Context(), job); return err },
					"EnsureJobs": func() error {
						_, err := s.EnsureJobs(t.Context(), "", []xxljob.Job{job}, xxljob.EnsureOptions{})
						return err
					},
					"Wait": func() error { _, err := s.Wait(t.Context(), later[0]); return err },
				} {
					if err := call(); !errors.Is(err, xxljob.ErrStopped) {
						t.Errorf("%s: %v", name, err)
					}
				}
				stage.RequireSame(t, t.Name(), before, stage.ContentsOf(t, st))
				_, err = st.Kill(t.Context(), later[0], "")
				stage.Must(t, err)
				if a := <-answers; a.err != nil || a.run.State != xxljob.StateCancelled {
					t.Errorf("a Wait from before the stop: %v, %v", a.run.State, a.err)
				}
			})
		})
	}
}

// TestAfterAStopThatGaveUp: Stop has returned, though its steps go on in a store that
// hangs.
func TestAfterAStopThatGaveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := stage.StartNode(t, st, "a", &stage.Journal{})
		time.Sleep(time.Second)
		n.Faults.Pause(true)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := n.Stop(short); err == nil {
			t.Error("Stop says that all is over")
		}
		asked := make(chan error, 1)
		go func() { _, err := n.Trigger(t.Context(), 1, xxljob.Trigger{}); asked <- err }()
		synctest.Wait()
		select {
		case err := <-asked:
			if !errors.Is(err, xxljob.ErrStopped) {
				t.Errorf("Trigger: %v", err)
			}
		default:
			t.Error("Trigger hangs in the store")
		}
		n.Faults.Resume()
		stage.Must(t, n.Stop(context.Background()))
	})
}

// newLastAndNext makes a scheduler with a job whose handler Stop waits for, and another
// that this handler may trigger.
func newLastAndNext(t *testing.T) (w *stage.Waiting, last, next xxljob.Job) {
	t.Helper()
	w = stage.NewWaiting(t)
	last, err := w.AddJob(t.Context(), xxljob.Job{Name: "last", Handler: "work"})
	stage.Must(t, err)
	next, err = w.AddJob(t.Context(), xxljob.Job{Name: "next", Handler: "work"})
	stage.Must(t, err)
	return w, last, next
}

// TestTheLastHandlersMayTrigger: while Stop waits for them, they may trigger and wait as
// before, and what they wait for has ended when their own end comes.
func TestTheLastHandlersMayTrigger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, job, next := newLastAndNext(t)
		running, done := make(chan struct{}), make(chan struct{})
		w.Within <- func(ctx context.Context, _ *xxljob.Task) {
			defer close(done)
			close(running)
			time.Sleep(10 * time.Second)
			ids, err := w.Trigger(ctx, next.ID, xxljob.Trigger{})
			if err != nil || len(ids) != 1 {
				t.Errorf("Trigger while Stop waits: %v, %v", ids, err)
				return
			}
			stage.Must(t, w.Kill(ctx, ids[0]))
			if run, err := w.Wait(ctx, ids[0]); err != nil || run.State != xxljob.StateCancelled {
				t.Errorf("Wait while Stop waits: %v, %v", run.State, err)
			}
		}
		stage.Trigger(t, w, job)
		<-running
		stage.Must(t, w.Stop(t.Context()))
		<-done
	})
}

// TestNilContexts: each call says what is wrong, and does nothing.
func TestNilContexts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := refuseWorld(t, xxljob.Config{})
		id := idByKey(t, st, "two")
		before := stage.ContentsOf(t, st)
		var none context.Context
		job := stage.GoodJob()
		for name, call := range map[string]func() error{
			"Start":       func() error { return s.Start(none) },
			"Stop":        func() error { return s.Stop(none) },
			"Run":         func() error { return s.Run(none) },
			"AddJob":      func() error { _, err := s.AddJob(none, job); return err },
			"UpdateJob":   func() error { _, err := s.UpdateJob(none, job); return err },
			"RemoveJob":   func() error { return s.RemoveJob(none, id) },
			"StartJob":    func() error { return s.StartJob(none, id) },
			"StopJob":     func() error { return s.StopJob(none, id) },
			"EnsureJob":   func() error { _, err := s.EnsureJob(none, job); return err },
			"EnsureJobs":  func() error { _, err := s.EnsureJobs(none, "", []xxljob.Job{job}, xxljob.EnsureOptions{}); return err },
			"SaveGroup":   func() error { return s.SaveGroup(none, xxljob.Group{App: "x"}) },
			"RemoveGroup": func() error { return s.RemoveGroup(none, "app") },
			"Trigger":     func() error { _, err := s.Trigger(none, id, xxljob.Trigger{}); return err },
			"Wait":        func() error { _, err := s.Wait(none, 1); return err },
			"Kill":        func() error { return s.Kill(none, 1) },
			"Log":         func() error { _, err := s.Log(none, 1, 1); return err },
			"the store":   func() error { _, err := st.Job(none, id); return err },
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), "the context is nil") {
				t.Errorf("%s: %v", name, err)
			}
		}
		stage.RequireSame(t, t.Name(), before, stage.ContentsOf(t, st))
		stage.Must(t, s.Start(t.Context())) // none of it was a start or a stop
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestNilContextsOfActors: where a context is to come back there is no error to return, so
// it is a panic in words; and nobody has put a name into none.
func TestNilContextsOfActors(t *testing.T) {
	var none context.Context
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "the context is nil") {
			t.Errorf("WithActor panicked with %q", said)
		}
		if name := store.Actor(none); name != "" {
			t.Errorf("the actor of a nil context is %q", name)
		}
	}()
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "the context is nil") {
			t.Errorf("WithClient panicked with %q", said)
		}
		xxljob.WithActor(none, "ann")
	}()
	xxljob.WithClient(none, "10.0.0.1", "r")
}

// TestASecondStop that gives up early does not take from the handlers what the first one,
// which waits for them, leaves them.
func TestASecondStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, job, next := newLastAndNext(t)
		running, done := make(chan struct{}), make(chan struct{})
		w.Within <- func(ctx context.Context, _ *xxljob.Task) {
			defer close(done)
			close(running)
			time.Sleep(30 * time.Second)
			if _, err := w.Trigger(ctx, next.ID, xxljob.Trigger{}); err != nil {
				t.Errorf("a trigger while the first Stop waits: %v", err)
			}
		}
		stage.Trigger(t, w, job)
		<-running
		go func() {
			time.Sleep(time.Second)
			short, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := w.Stop(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the second Stop: %v", err)
			}
		}()
		long, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		stage.Must(t, w.Stop(long))
		<-done
		if _, err := w.Trigger(t.Context(), next.ID, xxljob.Trigger{}); !errors.Is(err, xxljob.ErrStopped) {
			t.Errorf("a trigger after Stop: %v", err)
		}
	})
}

// TestWaitNamesTheJob: whichever way Wait hears of the end, at the node that ran the run or
// at another one, before or after.
func TestWaitNamesTheJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		a := stage.StartNode(t, st, "a", &stage.Journal{})
		idle := stage.StartNode(t, st, "b", &stage.Journal{})
		defer stage.Stop(t, a, idle)
		stage.Must(t, a.Handle("slow", func(context.Context, *xxljob.Task) error { time.Sleep(time.Second); return nil }))
		time.Sleep(time.Minute)
		id := stage.TriggerNew(t, a, xxljob.Job{Name: "name", Key: "key", Handler: "slow", Schedule: xxljob.Manual()})
		ended := make(chan xxljob.Run, 2)
		for _, n := range []*stage.Node{a, idle} {
			go func() { ended <- stage.WaitFor(t, n, id, time.Minute) }()
		}
		for _, run := range []xxljob.Run{<-ended, <-ended, stage.WaitFor(t, a, id, time.Minute)} {
			if run.State != xxljob.StateSucceeded || run.JobName != "name" || run.JobKey != "key" {
				t.Errorf("the run is %v, of job %q with key %q", run.State, run.JobName, run.JobKey)
			}
		}
	})
}
