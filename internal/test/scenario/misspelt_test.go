package scenario_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// naming is a scheduler of app, not started, with handlers of these names.
func naming(t *testing.T, st xxljob.Store, node string, handlers ...string) (xxljob.Scheduler, *stage.LogLines) {
	t.Helper()
	log := &stage.LogLines{}
	cfg := xxljob.Config{App: "app", Node: node}
	log.LogTo(&cfg)
	s, err := xxljob.New(st, cfg)
	stage.Must(t, err)
	for _, name := range handlers {
		stage.Must(t, s.Handle(name, stage.NothingToDo))
	}
	t.Cleanup(func() { _ = s.Stop(t.Context()) })
	return s, log
}

func manual(key, handler string) xxljob.Job {
	return xxljob.Job{Key: key, Name: key, Handler: handler}
}

// TestMisspeltBeforeStart: what is defined before Start is looked at there, with one error for all
// that has the names there are. Nothing is started, and Start may be called again.
func TestMisspeltBeforeStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := naming(t, memory.New(), "a")
		_, err := s.EnsureJobs(t.Context(), "", []xxljob.Job{manual("one", "send"), manual("two", "sned"), manual("three", "sned")}, xxljob.EnsureOptions{})
		stage.Must(t, err)
		_, err = s.EnsureJob(t.Context(), manual("four", "clsoe"))
		stage.Must(t, err)
		gone, err := s.AddJob(t.Context(), manual("five", "removed"))
		stage.Must(t, err)
		stage.Must(t, s.RemoveJob(t.Context(), gone.ID))
		_, err = s.AddJob(t.Context(), xxljob.Job{App: "elsewhere", Key: "six", Name: "six", Handler: "theirs"})
		stage.Must(t, err)
		_, err = s.AddJob(t.Context(), xxljob.Job{Key: "seven", Name: "seven", Handler: "script", GlueType: "GLUE_SHELL", GlueSource: "true"})
		stage.Must(t, err)
		for _, name := range []string{"send", "close"} { // behind the definitions
			stage.Must(t, s.Handle(name, stage.NothingToDo))
		}
		err = s.Start(t.Context())
		if !errors.Is(err, xxljob.ErrUnknownHandler) {
			t.Fatalf("Start: %v", err)
		}
		for _, word := range []string{`job "three" and 1 more`, `"sned"`, `job "four"`, `"clsoe"`, `there are "close", "send"`} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("it does not say %s: %v", word, err)
			}
		}
		for _, word := range []string{"removed", "theirs", "script"} {
			if strings.Contains(err.Error(), word) {
				t.Errorf("it says %s: %v", word, err)
			}
		}
		if err := s.Ready(); !errors.Is(err, xxljob.ErrNotReady) {
			t.Errorf("Ready: %v", err)
		}
		_, err = s.EnsureJob(t.Context(), manual("four", "close"))
		stage.Must(t, err)
		stage.Must(t, s.Handle("sned", stage.NothingToDo))
		stage.Must(t, s.Start(t.Context()))
	})
}

// TestMisspeltLater: once the scheduler is started each definition is looked at as it comes, and
// nothing is stored of one that is refused. An edit that leaves the handler as it is may be made.
func TestMisspeltLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		s, _ := naming(t, st, "a", "send", "close")
		ctx := t.Context()
		one, err := s.AddJob(ctx, manual("one", "send"))
		stage.Must(t, err)
		stage.Must(t, s.Start(ctx))
		synctest.Wait()
		before := stage.ContentsOf(t, st)
		wrong := one
		wrong.Handler = "sned"
		for verb, define := range map[string]func() error{
			"AddJob":    func() error { _, err := s.AddJob(ctx, manual("two", "sned")); return err },
			"UpdateJob": func() error { _, err := s.UpdateJob(ctx, wrong); return err },
			"EnsureJob": func() error { _, err := s.EnsureJob(ctx, manual("one", "sned")); return err },
			"EnsureJobs": func() error {
				_, err := s.EnsureJobs(ctx, "", []xxljob.Job{manual("one", "sned")}, xxljob.EnsureOptions{})
				return err
			},
		} {
			err := define()
			if !errors.Is(err, xxljob.ErrUnknownHandler) || !strings.Contains(err.Error(), `there are "close", "send"`) {
				t.Errorf("%s: %v", verb, err)
			}
			stage.RequireSame(t, verb, before, stage.ContentsOf(t, st))
		}
		_, err = s.AddJob(ctx, xxljob.Job{App: "elsewhere", Key: "two", Name: "two", Handler: "sned"})
		stage.Must(t, err)
		later, _ := naming(t, st, "b") // only schedules
		later2, err := later.AddJob(ctx, manual("three", "of tomorrow"))
		stage.Must(t, err)
		later2.Name = "another name"
		_, err = s.UpdateJob(ctx, later2)
		stage.Must(t, err)
	})
}

// TestMisspeltOrNot: a handler that somebody has or may have is no error: another node of the app, be it
// one that has come a moment ago; an executor elsewhere; and what another release brings or takes
// along is a warning.
func TestMisspeltOrNot(t *testing.T) {
	t.Parallel()
	started := func(t *testing.T, s xxljob.Scheduler) { stage.Must(t, s.Start(t.Context())); synctest.Wait() }
	for name, c := range map[string]struct {
		before func(t *testing.T, st *memory.Store)
		warns  bool
	}{
		"another node has it": {before: func(t *testing.T, st *memory.Store) {
			b, _ := naming(t, st, "b", "other")
			started(t, b)
		}},
		"an executor elsewhere": {before: func(t *testing.T, st *memory.Store) {
			stage.Must(t, st.PutAddresses(t.Context(), []xxljob.Registration{{App: "app", Address: "http://127.0.0.1:9999/"}}))
		}},
		"a release beside": {warns: true, before: func(t *testing.T, st *memory.Store) {
			b, _ := naming(t, st, "b", "send")
			_, err := b.EnsureJobs(t.Context(), "", []xxljob.Job{manual("one", "send")}, xxljob.EnsureOptions{Generation: 1})
			stage.Must(t, err)
			started(t, b)
		}},
	} {
		for _, when := range []string{"before Start", "later"} {
			t.Run(name+", "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := memory.New()
					s, log := naming(t, st, "a", "send")
					_, err := s.EnsureJobs(t.Context(), "", []xxljob.Job{manual("one", "send")}, xxljob.EnsureOptions{Generation: 2})
					stage.Must(t, err)
					define := func() {
						_, err := s.EnsureJobs(t.Context(), "", []xxljob.Job{manual("one", "send"), manual("two", "other")}, xxljob.EnsureOptions{Generation: 2})
						stage.Must(t, err)
						_, err = s.AddJob(t.Context(), manual("three", "other"))
						stage.Must(t, err)
					}
					if when == "later" {
						started(t, s)
						time.Sleep(time.Minute)
					}
					c.before(t, st)
					define()
					if when != "later" {
						started(t, s)
					}
					if warned := len(log.With("no executor")) > 0; c.warns && !warned {
						t.Error("no warning")
					}
				})
			})
		}
	}
}

// TestMisspeltWithoutStore: where the store does not say who is there, nothing is refused; and where
// this process has all handlers itself, it is not asked.
func TestMisspeltWithoutStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.WrapWhole(memory.New())
		s, _ := naming(t, faults, "a", "send")
		_, err := s.EnsureJob(t.Context(), manual("one", "sned"))
		stage.Must(t, err)
		for _, method := range []string{"Group", "Addresses", "View", "Lists"} {
			defer faults.Inject(method, storetest.Fault{Before: true})()
		}
		stage.Must(t, s.Start(t.Context()))
		synctest.Wait()
		b, _ := naming(t, faults, "b", "send")
		_, err = b.EnsureJob(t.Context(), manual("two", "send"))
		stage.Must(t, err)
		views := faults.Calls("View")
		stage.Must(t, b.Start(t.Context()))
		if n := faults.Calls("View") - views; n != 0 {
			t.Errorf("%d calls of View for a scheduler with all handlers", n)
		}
	})
}

// TestMisspeltWithoutViews: where the store cannot be asked who is there, a handler that another live node
// has is known from the beats, and no error; one that nobody has is, with the names that all have together.
// Before the first beat nothing is certain.
func TestMisspeltWithoutViews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := storetest.Wrap(memory.New())
		if _, is := any(st).(xxljob.ClusterReader); is {
			t.Fatal("the store says who is there")
		}
		b, _ := naming(t, st, "b", "other")
		stage.Must(t, b.Start(t.Context()))
		synctest.Wait()
		a, _ := naming(t, st, "a", "send")
		_, err := a.AddJob(t.Context(), manual("before", "other"))
		stage.Must(t, err)
		stage.Must(t, a.Start(t.Context()))
		time.Sleep(time.Minute)
		synctest.Wait()
		for verb, define := range map[string]func(handler string) error{
			"AddJob": func(handler string) error {
				_, err := a.AddJob(t.Context(), manual("of-"+handler, handler))
				return err
			},
			"EnsureJob": func(handler string) error { _, err := a.EnsureJob(t.Context(), manual("ensured", handler)); return err },
			"EnsureJobs": func(handler string) error {
				_, err := a.EnsureJobs(t.Context(), "", []xxljob.Job{manual("listed", handler)}, xxljob.EnsureOptions{})
				return err
			},
		} {
			if err := define("other"); err != nil {
				t.Errorf("%s: a handler of another node: %v", verb, err)
			}
			if err := define("otehr"); !errors.Is(err, xxljob.ErrUnknownHandler) || !strings.Contains(err.Error(), `there are "other", "send"`) {
				t.Errorf("%s: a handler that nobody has: %v", verb, err)
			}
		}
		stage.Must(t, b.Stop(t.Context()))
		time.Sleep(time.Minute)
		if _, err := a.AddJob(t.Context(), manual("after", "other")); !errors.Is(err, xxljob.ErrUnknownHandler) {
			t.Errorf("once the other node has left: %v", err)
		}
	})
}
