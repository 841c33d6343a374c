package xxljob_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/store/memory"
)

// waiting is a scheduler whose handler "work" calls what the test gives it.
type waiting struct {
	xxljob.Scheduler
	store  *memory.Store
	within chan func(ctx context.Context, task *xxljob.Task)
}

func newWaiting(t *testing.T) *waiting {
	t.Helper()
	w := &waiting{store: memory.New(), within: make(chan func(context.Context, *xxljob.Task), 1)}
	s, err := xxljob.New(w.store, xxljob.Config{App: "app", Logger: quietLog()})
	must(t, err)
	w.Scheduler = s
	must(t, s.Handle("work", w.handle))
	must(t, s.Start(context.Background()))
	t.Cleanup(func() { must(t, s.Stop(context.Background())) })
	return w
}

func (w *waiting) handle(ctx context.Context, task *xxljob.Task) error {
	select {
	case f := <-w.within:
		f(ctx, task)
	default:
	}
	return nil
}

// do triggers the job, calls f inside of its handler, and waits until that has returned.
func (w *waiting) do(t *testing.T, job xxljob.Job, f func(ctx context.Context, task *xxljob.Task)) {
	t.Helper()
	done := make(chan struct{})
	w.within <- func(ctx context.Context, task *xxljob.Task) {
		defer close(done)
		f(ctx, task)
	}
	trigger(t, w, job)
	<-done
}

// TestWaitForOneself: a handler that waits for its own run, or for one that is queued
// behind it, would hang until its context ends. It is told so at once.
func TestWaitForOneself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		job, err := w.AddJob(t.Context(), xxljob.Job{Name: "self", Handler: "work"})
		must(t, err)
		other, err := w.AddJob(t.Context(), xxljob.Job{Name: "other", Handler: "work"})
		must(t, err)
		refused := func(what string, ctx context.Context, id int64) {
			t.Helper()
			began := time.Now()
			run, err := w.Wait(ctx, id)
			if !errors.Is(err, xxljob.ErrWaitsForItself) || !strings.Contains(err.Error(), fmt.Sprint("run ", id)) || run.ID != id {
				t.Errorf("%s: run %d, %v", what, run.ID, err)
			}
			if d := time.Since(began); d > 0 {
				t.Errorf("%s: told after %v", what, d)
			}
		}
		w.do(t, job, func(ctx context.Context, task *xxljob.Task) {
			refused("its own run", ctx, task.RunID)
			derived, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			refused("its own run, a context made of the handler's", derived, task.RunID)
			next := trigger(t, w, job)
			refused("a run that was just triggered", ctx, next)
			synctest.Wait()
			refused("a run that is queued", ctx, next)
			later, err := w.Trigger(ctx, job.ID, xxljob.Trigger{At: time.Now().Add(time.Hour)})
			must(t, err)
			refused("a run that is due later", ctx, later[0])
			must(t, w.Kill(ctx, later[0]))

			for name, id := range map[string]int64{"another job's run": trigger(t, w, other), "a cancelled run": later[0]} {
				if run, err := w.Wait(ctx, id); err != nil || !run.State.Ended() {
					t.Errorf("%s: %v, %v", name, run.State, err)
				}
			}
			short, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if _, err := w.Wait(short, next); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a context that says nothing of the handler: %v", err)
			}
		})
	})
}

// TestWaitForARunThatIsNotBehind: other runs of the same job may be waited for.
func TestWaitForARunThatIsNotBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t)
		b, err := xxljob.New(w.store, xxljob.Config{App: "app", Node: "b", Logger: quietLog()})
		must(t, err)
		held, freed := make(chan struct{}), make(chan struct{})
		must(t, b.Handle("work", func(ctx context.Context, _ *xxljob.Task) error { close(held); <-freed; return nil }))
		must(t, b.Start(context.Background()))
		time.Sleep(10 * time.Second) // until the nodes know each other
		addressOf := func(s xxljob.Scheduler) string { return xxljob.AddressOf(s) }

		job, err := w.AddJob(t.Context(), xxljob.Job{Name: "two nodes", Handler: "work"})
		must(t, err)
		done := make(chan struct{})
		w.within <- func(ctx context.Context, _ *xxljob.Task) {
			defer close(done)
			there, err := w.Trigger(ctx, job.ID, xxljob.Trigger{Addresses: []string{addressOf(b)}})
			must(t, err)
			go func() { <-held; time.Sleep(time.Second); close(freed) }()
			if run, err := w.Wait(ctx, there[0]); err != nil || run.State != xxljob.StateSucceeded || run.Address != addressOf(b) {
				t.Errorf("a run at another address: %v at %s, %v", run.State, run.Address, err)
			}
		}
		_, err = w.Trigger(t.Context(), job.ID, xxljob.Trigger{Addresses: []string{addressOf(w.Scheduler)}})
		must(t, err)
		<-done
		must(t, b.Stop(t.Context()))

		for _, strategy := range []string{block.DiscardLater, block.CoverEarly} {
			job, err := w.AddJob(t.Context(), xxljob.Job{Name: strategy, Handler: "work", Block: strategy})
			must(t, err)
			w.do(t, job, func(ctx context.Context, _ *xxljob.Task) {
				ids, err := w.Trigger(context.Background(), job.ID, xxljob.Trigger{})
				must(t, err)
				run, err := w.Wait(ctx, ids[0])
				switch {
				case strategy == block.DiscardLater && (err != nil || run.State != xxljob.StateDiscarded):
					t.Errorf("%s: %v, %v", strategy, run.State, err)
				case strategy == block.CoverEarly && !errors.Is(err, context.Canceled): // the later run ends this one
					t.Errorf("%s: %v, %v", strategy, run.State, err)
				}
			})
		}
	})
}

// TestWaitForOneselfAtAnAttachedExecutor: also for executors of other apps, and not for
// the runs of another scheduler in the process that have the same ids.
func TestWaitForOneselfAtAnAttachedExecutor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newWaiting(t), newWaiting(t)
		own, err := executor.New(executor.Config{App: "attached", Logger: quietLog()})
		must(t, err)
		must(t, own.Handle("work", a.handle))
		must(t, a.Attach(own))
		defer own.Stop(context.Background())
		ja, err := a.AddJob(t.Context(), xxljob.Job{App: "attached", Name: "same", Handler: "work"})
		must(t, err)
		a.do(t, ja, func(ctx context.Context, task *xxljob.Task) {
			if _, err := a.Wait(ctx, task.RunID); !errors.Is(err, xxljob.ErrWaitsForItself) {
				t.Errorf("its own run: %v", err)
			}
		})

		ja, err = a.AddJob(t.Context(), xxljob.Job{Key: "twin", Name: "twin", Handler: "work"})
		must(t, err)
		jb, err := b.AddJob(t.Context(), xxljob.Job{Key: "twin", Name: "twin", Handler: "work"})
		must(t, err)
		if ja.ID != jb.ID {
			t.Fatalf("the jobs have ids %d and %d: nothing to take for each other", ja.ID, jb.ID)
		}
		trigger(t, b, jb) // a's run before this was one as well
		synctest.Wait()
		a.do(t, ja, func(ctx context.Context, task *xxljob.Task) {
			b.within <- func(context.Context, *xxljob.Task) { time.Sleep(time.Second) } // both are under way
			inB := trigger(t, b, jb)
			synctest.Wait()
			if inB != task.RunID {
				t.Errorf("the runs have ids %d and %d: nothing to take for each other", task.RunID, inB)
			}
			if run, err := b.Wait(ctx, inB); err != nil || run.State != xxljob.StateSucceeded {
				t.Errorf("a run of another scheduler: %v, %v", run.State, err)
			}
		})
	})
}

// TestAfterStop: what would wait for loops that are no more is ErrStopped. Who has been
// waiting goes on: another node may run what this one has not.
func TestAfterStop(t *testing.T) {
	for _, started := range []bool{true, false} {
		t.Run(fmt.Sprintf("started %v", started), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, st := refuseWorld(t, xxljob.Config{})
				if started {
					must(t, s.Start(t.Context()))
				}
				id := idByKey(t, st, "two")
				later, err := s.Trigger(t.Context(), id, xxljob.Trigger{At: time.Now().Add(time.Hour)})
				must(t, err)
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
				must(t, s.Stop(t.Context()))
				before := contentsOf(t, st)
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
				requireSame(t, t.Name(), before, contentsOf(t, st))
				_, err = st.Kill(t.Context(), later[0], "")
				must(t, err)
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
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := startNode(t, st, "a", &journal{})
		time.Sleep(time.Second)
		n.faults.Pause(true)
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
		n.faults.Resume()
		must(t, n.Stop(context.Background()))
	})
}

// newLastAndNext makes a scheduler with a job whose handler Stop waits for, and another
// that this handler may trigger.
func newLastAndNext(t *testing.T) (w *waiting, last, next xxljob.Job) {
	t.Helper()
	w = newWaiting(t)
	last, err := w.AddJob(t.Context(), xxljob.Job{Name: "last", Handler: "work"})
	must(t, err)
	next, err = w.AddJob(t.Context(), xxljob.Job{Name: "next", Handler: "work"})
	must(t, err)
	return w, last, next
}

// TestTheLastHandlersMayTrigger: while Stop waits for them, they may trigger and wait as
// before, and what they wait for has ended when their own end comes.
func TestTheLastHandlersMayTrigger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, job, next := newLastAndNext(t)
		running, done := make(chan struct{}), make(chan struct{})
		w.within <- func(ctx context.Context, _ *xxljob.Task) {
			defer close(done)
			close(running)
			time.Sleep(10 * time.Second)
			ids, err := w.Trigger(ctx, next.ID, xxljob.Trigger{})
			if err != nil || len(ids) != 1 {
				t.Errorf("Trigger while Stop waits: %v, %v", ids, err)
				return
			}
			must(t, w.Kill(ctx, ids[0]))
			if run, err := w.Wait(ctx, ids[0]); err != nil || run.State != xxljob.StateCancelled {
				t.Errorf("Wait while Stop waits: %v, %v", run.State, err)
			}
		}
		trigger(t, w, job)
		<-running
		must(t, w.Stop(t.Context()))
		<-done
	})
}

// TestNilContexts: each call says what is wrong, and does nothing.
func TestNilContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, st := refuseWorld(t, xxljob.Config{})
		id := idByKey(t, st, "two")
		before := contentsOf(t, st)
		var none context.Context
		job := goodJob()
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
		requireSame(t, t.Name(), before, contentsOf(t, st))
		must(t, s.Start(t.Context())) // none of it was a start or a stop
		must(t, s.Stop(t.Context()))
	})
}

// TestASecondStop that gives up early does not take from the handlers what the first one,
// which waits for them, leaves them.
func TestASecondStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, job, next := newLastAndNext(t)
		running, done := make(chan struct{}), make(chan struct{})
		w.within <- func(ctx context.Context, _ *xxljob.Task) {
			defer close(done)
			close(running)
			time.Sleep(30 * time.Second)
			if _, err := w.Trigger(ctx, next.ID, xxljob.Trigger{}); err != nil {
				t.Errorf("a trigger while the first Stop waits: %v", err)
			}
		}
		trigger(t, w, job)
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
		must(t, w.Stop(long))
		<-done
		if _, err := w.Trigger(t.Context(), next.ID, xxljob.Trigger{}); !errors.Is(err, xxljob.ErrStopped) {
			t.Errorf("a trigger after Stop: %v", err)
		}
	})
}
