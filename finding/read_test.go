package finding_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
)

// TestRead: on a store that a scheduler works on, what is wrong is found, explained on the page of the job,
// and gone once its remedy was followed. Where all is well, with one-shots, covered runs, retries that
// succeed and a job that somebody has stopped, nothing is found.
func TestRead(t *testing.T) {
	every := xxljob.FixedRate(10 * time.Second)
	for _, c := range []struct {
		name   string
		job    xxljob.Job // what is added to what is well
		harm   func(w *workshop, j xxljob.Job)
		cause  finding.Cause // none: all is well
		remedy func(w *workshop, j xxljob.Job)
	}{
		{name: "all is well", job: xxljob.Job{Handler: "work", Schedule: every}},
		{name: "a one-shot that has run", job: xxljob.Job{Handler: "work", Schedule: xxljob.At(time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC))}},
		{name: "runs that are covered", job: xxljob.Job{Handler: "slow", Schedule: every, Block: xxljob.BlockCoverEarly}},
		{name: "runs that are discarded", job: xxljob.Job{Handler: "slow", Schedule: every, Block: xxljob.BlockDiscardLater}},
		{name: "a retry that succeeds", job: xxljob.Job{Handler: "second", Schedule: every, Retries: 1}},
		{name: "stopped by somebody", job: xxljob.Job{Handler: "work", Schedule: every}, harm: func(w *workshop, j xxljob.Job) { stage.Must(w.t, w.s.StopJob(w.t.Context(), j.ID)) }},
		{name: "an app without executors", job: xxljob.Job{App: "dark", Handler: "work", Schedule: every}, cause: finding.NoExecutor,
			remedy: func(w *workshop, j xxljob.Job) { stage.Must(w.t, w.s.StopJob(w.t.Context(), j.ID)) }},
		{name: "a handler that nobody has", job: xxljob.Job{Handler: "work", Schedule: every}, cause: finding.NoHandler,
			harm: func(w *workshop, j xxljob.Job) { // the scheduler would refuse it
				_, err := w.st.EditJob(w.t.Context(), j.ID, store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) { j.Handler = "wrok"; return false, nil }})
				stage.Must(w.t, err)
			},
			remedy: func(w *workshop, j xxljob.Job) {
				j.Handler = "work"
				_, err := w.s.UpdateJob(w.t.Context(), j)
				stage.Must(w.t, err)
			}},
		{name: "a job that fails", job: xxljob.Job{Handler: "fickle", Schedule: every}, harm: func(w *workshop, _ xxljob.Job) { w.broken.Store(true) }, cause: finding.Failing,
			remedy: func(w *workshop, _ xxljob.Job) { w.broken.Store(false) }},
		{name: "a job that runs out of time", job: xxljob.Job{Handler: "slow", Schedule: xxljob.FixedRate(time.Minute), Timeout: 10 * time.Second}, cause: finding.TimingOut,
			remedy: func(w *workshop, j xxljob.Job) {
				j.Timeout = time.Minute
				_, err := w.s.UpdateJob(w.t.Context(), j)
				stage.Must(w.t, err)
			}},
		{name: "a job that falls behind", job: xxljob.Job{Handler: "slow", Schedule: every}, cause: finding.FallingBehind,
			remedy: func(w *workshop, j xxljob.Job) {
				j.Schedule = xxljob.FixedRate(2 * time.Minute)
				_, err := w.s.UpdateJob(w.t.Context(), j)
				stage.Must(w.t, err)
			}},
		{name: "no scheduler", job: xxljob.Job{Handler: "work", Schedule: every}, harm: func(w *workshop, _ xxljob.Job) { stage.Must(w.t, w.s.Stop(w.t.Context())) }, cause: finding.ShardUnowned,
			remedy: func(w *workshop, _ xxljob.Job) { w.start() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &workshop{t: t, st: memory.New()}
				w.start()
				c.job.Key, c.job.Name = "mine", "mine"
				j, err := w.s.AddJob(t.Context(), c.job)
				stage.Must(t, err)
				_, err = w.s.AddJob(t.Context(), xxljob.Job{Key: "other", Name: "other", Handler: "work", Schedule: every})
				stage.Must(t, err)
				time.Sleep(time.Minute)
				if c.harm != nil {
					c.harm(w, j)
				}
				time.Sleep(5 * time.Minute)
				all := w.attention()
				if c.cause == "" {
					if len(all) > 0 {
						t.Errorf("found: %v", all)
					}
					return
				}
				if len(all) == 0 || all[0].Cause != c.cause {
					t.Fatalf("found %v, want %s", all, c.cause)
				}
				w.sameOfTheCluster(all)
				world, err := finding.ReadJob(t.Context(), w.st, j.ID)
				stage.Must(t, err)
				if why := finding.WhyJob(world, j.ID); why[0].Cause != c.cause {
					t.Errorf("of the job: %v", why)
				}
				j, err = w.st.Job(t.Context(), j.ID)
				stage.Must(t, err)
				c.remedy(w, j)
				time.Sleep(10 * time.Minute)
				if all := w.attention(); len(all) > 0 {
					t.Errorf("after the remedy: %v", all)
				}
			})
		})
	}
}

// TestOneAddressIsEnough: to know whether an app has an executor, one address is read that lives, and none
// where none does.
func TestOneAddressIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler)})
		stage.Must(t, err)
		j, err := s.AddJob(t.Context(), xxljob.Job{App: "far", Name: "mine", Handler: "work", Schedule: xxljob.Manual()})
		stage.Must(t, err)
		put := func(first, n int) {
			regs := make([]store.Registration, n)
			for i := range regs {
				regs[i] = store.Registration{App: "far", Address: fmt.Sprintf("http://10.0.0.1:80/%05d", first+i)}
			}
			stage.Must(t, st.PutAddresses(t.Context(), regs))
		}
		for _, c := range []struct{ first, n, read int }{{0, 1500, 1}, {1000, 1, 1}, {2000, 0, 0}} {
			time.Sleep(10 * time.Minute) // those from before do not live any more
			put(c.first, c.n)
			w, err := finding.ReadJob(t.Context(), st, j.ID)
			stage.Must(t, err)
			if len(w.Registrations) != c.read {
				t.Errorf("%d addresses are read, want %d", len(w.Registrations), c.read)
			}
			dark := slices.ContainsFunc(finding.WhyJob(w, j.ID), func(f finding.Finding) bool { return f.Cause == finding.NoExecutor })
			if dark != (c.n == 0) {
				t.Errorf("no executor: %t, want %t", dark, c.n == 0)
			}
		}
	})
}

// workshop is a store with a scheduler.
type workshop struct {
	t      *testing.T
	st     *memory.Store
	s      xxljob.Scheduler
	broken atomic.Bool
}

// start starts a scheduler, which stops with the test.
func (w *workshop) start() {
	s, err := xxljob.New(w.st, xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler)})
	stage.Must(w.t, err)
	for name, h := range map[string]func(context.Context, *xxljob.Task) error{
		"work": func(context.Context, *xxljob.Task) error { return nil },
		"slow": func(ctx context.Context, _ *xxljob.Task) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(25 * time.Second):
				return nil
			}
		},
		"second": func(_ context.Context, task *xxljob.Task) error {
			if task.Attempt == 0 {
				return errors.New("not at once")
			}
			return nil
		},
		"fickle": func(context.Context, *xxljob.Task) error {
			if w.broken.Load() {
				return errors.New("disk full")
			}
			return nil
		},
	} {
		stage.Must(w.t, s.Handle(name, h))
	}
	stage.Must(w.t, s.Start(w.t.Context()))
	w.s = s
	w.t.Cleanup(func() { _ = s.Stop(context.WithoutCancel(w.t.Context())) })
}

// sameOfTheCluster checks that what is read of the cluster alone has the same findings about it.
func (w *workshop) sameOfTheCluster(all []finding.Finding) {
	w.t.Helper()
	world, err := finding.ReadCluster(w.t.Context(), w.st)
	stage.Must(w.t, err)
	about := func(list []finding.Finding) (said []string) {
		for _, f := range list {
			if slices.Contains([]finding.Cause{finding.ShardUnowned, finding.NodeSilent, finding.NodeFailing, finding.NoExecutor}, f.Cause) {
				said = append(said, f.String())
			}
		}
		return said
	}
	if got, want := about(finding.Attention(world)), about(all); !slices.Equal(got, want) {
		w.t.Errorf("of the cluster alone: %q, want %q", got, want)
	}
}

// attention is what is found now.
func (w *workshop) attention() []finding.Finding {
	world, err := finding.Read(w.t.Context(), w.st)
	stage.Must(w.t, err)
	world.Troubles = w.s.Troubles()
	return finding.Attention(world)
}

// TestNothingFollowsTheRetriesOfATrigger: a run whose trigger has given a number of retries fails when it is too
// late for another one. Lists have no word of that, and it is found all the same; while another attempt does
// follow nothing is.
func TestNothingFollowsTheRetriesOfATrigger(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"one follows": time.Minute, "nothing follows": 30 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memory.New()
				s, err := xxljob.New(st, xxljob.Config{App: "app", RunRetention: 48 * time.Hour, Logger: slog.New(slog.DiscardHandler)})
				stage.Must(t, err)
				stage.Must(t, s.Handle("long", func(context.Context, *xxljob.Task) error {
					time.Sleep(lasts)
					return errors.New("disk full")
				}))
				stage.Must(t, s.Start(t.Context()))
				j, err := s.AddJob(t.Context(), xxljob.Job{Key: "mine", Name: "mine", Handler: "long", Block: xxljob.BlockConcurrent, Schedule: xxljob.Manual(), RetryBackoff: xxljob.Backoff{First: time.Hour}})
				stage.Must(t, err)
				for range 3 {
					id, err := s.Trigger(t.Context(), j.ID, xxljob.Trigger{Retries: new(2)})
					stage.Must(t, err)
					run, err := s.Wait(t.Context(), id[0])
					stage.Must(t, err)
					if run.State != xxljob.StateFailed || run.Retries != 2 {
						t.Fatalf("%s with %d retries left", run.State, run.Retries)
					}
				}
				bad := name == "nothing follows"
				w, err := finding.Read(t.Context(), st)
				stage.Must(t, err)
				is := func(f finding.Finding) bool { return slices.Contains(f.Jobs, j.ID) && f.Cause == finding.Failing }
				if found := finding.Attention(w); slices.ContainsFunc(found, is) != bad {
					t.Errorf("found %v, want that it fails: %t", found, bad)
				}
				w, err = finding.ReadJob(t.Context(), st, j.ID)
				stage.Must(t, err)
				if found := finding.WhyJob(w, j.ID); slices.ContainsFunc(found, is) != bad {
					t.Errorf("of the job %v, want that it fails: %t", found, bad)
				}
				stage.Must(t, s.Stop(t.Context()))
			})
		})
	}
}
