package scenario_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// idByKey is the id of a job of app.
func idByKey(t *testing.T, st xxljob.Store, key string) int64 {
	t.Helper()
	job, err := st.JobByKey(t.Context(), "app", key)
	stage.Must(t, err)
	return job.ID
}

// refuseWorld is a store with two jobs of app, an ensured one, and a run.
func refuseWorld(t *testing.T, cfg xxljob.Config) (xxljob.Scheduler, *memory.Store) {
	t.Helper()
	ctx := t.Context()
	st := memory.New()
	cfg.App, cfg.Logger = "app", slog.New(slog.DiscardHandler)
	s, err := xxljob.New(st, cfg)
	stage.Must(t, err)
	stage.Must(t, s.Handle("work", stage.NothingToDo))
	stage.Must(t, s.SaveGroup(ctx, xxljob.Group{App: "app"}))
	_, err = s.AddJob(ctx, xxljob.Job{Name: "one", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?")})
	stage.Must(t, err)
	two, err := s.AddJob(ctx, xxljob.Job{Name: "two", Handler: "work"})
	stage.Must(t, err)
	_, err = s.EnsureJob(ctx, xxljob.Job{Name: "ensured", Handler: "work", Schedule: xxljob.FixedRate(24 * time.Hour)})
	stage.Must(t, err)
	_, err = s.Trigger(ctx, two.ID, xxljob.Trigger{At: time.Now().Add(time.Hour)})
	stage.Must(t, err)
	return s, st
}

// TestBadInput: every bad input is a clear error that names field and value, and
// stores nothing: jobs, groups, runs and audit are the same before and after. So
// it is before Start, while the scheduler runs, and after Stop.
func TestBadInput(t *testing.T) {
	t.Parallel()
	if stage.Detector {
		t.Skip("one call after the other: the race detector has nothing to say of it")
	}
	for _, phase := range []string{"before Start", "started", "stopped"} {
		t.Run(phase, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, st := refuseWorld(t, xxljob.Config{})
				if phase != "before Start" {
					stage.Must(t, s.Start(t.Context()))
					synctest.Wait()
				}
				if phase == "stopped" {
					stage.Must(t, s.Stop(t.Context()))
				}
				before := stage.ContentsOf(t, st)
				for _, r := range refusals(idByKey(t, st, "one"), idByKey(t, st, "two")) {
					err := r.call(t.Context(), s)
					after := stage.ContentsOf(t, st)
					stage.RequireSame(t, r.name, before, after)
					before = after
					if phase == "stopped" && errors.Is(err, xxljob.ErrStopped) && mayBeStopped(r.name) {
						continue
					}
					switch {
					case err == nil:
						t.Errorf("%s: no error", r.name)
					case r.is != nil && !errors.Is(err, r.is):
						t.Errorf("%s: %v is not %v", r.name, err, r.is)
					}
					for _, w := range r.words {
						if err != nil && !strings.Contains(err.Error(), w) && !(phase == "stopped" && strings.HasPrefix(r.name, "Handle")) {
							t.Errorf("%s: %v does not say %q", r.name, err, w)
						}
					}
				}
				stage.Must(t, s.Stop(t.Context()))
			})
		})
	}
}

// mayBeStopped reports whether a call is refused after Stop, whatever it asks for.
func mayBeStopped(name string) bool {
	verb, _, _ := strings.Cut(name, ":")
	verb, _, _ = strings.Cut(verb, " ")
	return slices.Contains([]string{"EnsureJob", "EnsureJobs", "Trigger", "Wait"}, verb)
}

// TestSubSecondAllowed: with AllowSubSecond such rates are accepted everywhere.
func TestSubSecondAllowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := refuseWorld(t, xxljob.Config{Limits: xxljob.Limits{AllowSubSecond: true}})
		_, err := s.AddJob(t.Context(), xxljob.Job{Name: "fast", Handler: "work", Schedule: xxljob.FixedRate(100 * time.Millisecond)})
		stage.Must(t, err)
		_, err = s.EnsureJob(t.Context(), xxljob.Job{Name: "delayed", Handler: "work", Schedule: xxljob.FixedDelay(time.Millisecond)})
		stage.Must(t, err)
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestNewRefuses: New without a store, or with a bad config, makes nothing.
func TestNewRefuses(t *testing.T) {
	if s, err := xxljob.New(nil, xxljob.Config{}); err == nil || s != nil || !strings.Contains(err.Error(), "store is nil") {
		t.Errorf("no store: %v, %v", s, err)
	}
	if s, err := xxljob.New(memory.New(), xxljob.Config{Cluster: xxljob.ClusterConfig{Shards: -1}}); err == nil || s != nil || !strings.Contains(err.Error(), "Shards") {
		t.Errorf("bad config: %v, %v", s, err)
	}
	bad := xxljob.Config{Executor: executor.Config{Places: -1}}
	if s, err := xxljob.New(memory.New(), bad); err == nil || s != nil || !strings.Contains(err.Error(), "Places") {
		t.Errorf("bad executor: %v, %v", s, err)
	}
}

// TestOtherShards: a store that was set up with another number of shards is
// ErrShards, with both numbers, in the first call that writes and in Start.
func TestOtherShards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, st := refuseWorld(t, xxljob.Config{})
		before := stage.ContentsOf(t, st)
		s, err := xxljob.New(st, xxljob.Config{App: "app", Cluster: xxljob.ClusterConfig{Shards: 8}, Logger: slog.New(slog.DiscardHandler)})
		stage.Must(t, err)
		_, err = s.AddJob(t.Context(), stage.GoodJob())
		if !errors.Is(err, xxljob.ErrShards) || !strings.Contains(err.Error(), "8") || !strings.Contains(err.Error(), "32") {
			t.Errorf("AddJob: %v", err)
		}
		for _, start := range []func(context.Context) error{s.Start, s.Run, s.Start} {
			if err := start(t.Context()); !errors.Is(err, xxljob.ErrShards) || !strings.Contains(err.Error(), "8") || !strings.Contains(err.Error(), "32") {
				t.Errorf("Start: %v", err)
			}
		}
		if err := s.Ready(); !errors.Is(err, xxljob.ErrNotReady) {
			t.Errorf("Ready: %v", err)
		}
		stage.Must(t, s.Stop(t.Context()))
		stage.RequireSame(t, t.Name(), before, stage.ContentsOf(t, st))
	})
}

// TestOtherShardsLater: a store that does not answer at the start is none of Start's errors.
// When it turns out to have another number of shards, Ready says so and Run ends with it.
func TestOtherShardsLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, st := refuseWorld(t, xxljob.Config{})
		before := stage.ContentsOf(t, st)
		faults := storetest.Wrap(st)
		faults.Inject("SetShards", storetest.Fault{Before: true, Calls: 3})
		var logged bytes.Buffer
		s, err := xxljob.New(faults, xxljob.Config{App: "app", Cluster: xxljob.ClusterConfig{Shards: 8}, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		stage.Must(t, err)
		if err := s.Run(t.Context()); !errors.Is(err, xxljob.ErrShards) {
			t.Errorf("Run: %v", err)
		}
		if err := s.Ready(); !errors.Is(err, xxljob.ErrShards) || !errors.Is(err, xxljob.ErrNotReady) {
			t.Errorf("Ready: %v", err)
		}
		if n := strings.Count(logged.String(), "different number of shards"); n != 1 {
			t.Errorf("it is logged %d times:\n%s", n, &logged)
		}
		stage.RequireSame(t, t.Name(), before, stage.ContentsOf(t, st))
	})
}

// TestStartJobThatIsOver: a job whose schedule has no further instant cannot be
// started, and stays as it is.
func TestStartJobThatIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := refuseWorld(t, xxljob.Config{})
		job, err := s.AddJob(t.Context(), xxljob.Job{Name: "once", Handler: "work", Stopped: true, Schedule: xxljob.At(time.Now().Add(time.Minute))})
		stage.Must(t, err)
		time.Sleep(time.Minute)
		before := stage.ContentsOf(t, st)
		if err := s.StartJob(t.Context(), job.ID); !errors.Is(err, xxljob.ErrNeverFires) {
			t.Errorf("StartJob: %v", err)
		}
		stage.RequireSame(t, t.Name(), before, stage.ContentsOf(t, st))
		stage.Must(t, s.Stop(t.Context()))
	})
}

// TestStrictHandlers: by default a job whose app or handler nobody offers is
// added with one warning; with StrictHandlers it is ErrUnknownHandler, and
// nothing is stored.
func TestStrictHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bad := []xxljob.Job{
			{Name: "new", Handler: "nobody"},
			{App: "elsewhere", Name: "new", Handler: "work"},
		}
		loose, _ := refuseWorld(t, xxljob.Config{})
		strict, st := refuseWorld(t, xxljob.Config{StrictHandlers: true})
		for _, j := range bad {
			_, err := loose.AddJob(t.Context(), j)
			stage.Must(t, err)
			before := stage.ContentsOf(t, st)
			_, err = strict.AddJob(t.Context(), j)
			if !errors.Is(err, xxljob.ErrUnknownHandler) || !strings.Contains(err.Error(), j.Handler) || !strings.Contains(err.Error(), j.App) {
				t.Errorf("AddJob %q of %q: %v", j.Handler, j.App, err)
			}
			j.ID, j.App = idByKey(t, st, "one"), ""
			if j.Handler == "nobody" {
				if _, err = strict.UpdateJob(t.Context(), j); !errors.Is(err, xxljob.ErrUnknownHandler) {
					t.Errorf("UpdateJob: %v", err)
				}
			}
			stage.RequireSame(t, t.Name(), before, stage.ContentsOf(t, st))
		}
		_, err := strict.AddJob(t.Context(), xxljob.Job{Name: "new", Handler: "work"})
		stage.Must(t, err)
		stage.Must(t, loose.Stop(t.Context()))
		stage.Must(t, strict.Stop(t.Context()))
	})
}

// TestAllFaultsOfAJob: that the schedule never fires is said beside the other
// faults.
func TestAllFaultsOfAJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := refuseWorld(t, xxljob.Config{})
		_, err := s.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work", Route: "NORTH", Schedule: xxljob.Cron("0 0 0 30 2 ?")})
		if !errors.Is(err, xxljob.ErrUnknownRoute) || !errors.Is(err, xxljob.ErrNeverFires) {
			t.Errorf("AddJob: %v", err)
		}
		stage.Must(t, s.Stop(t.Context()))
	})
}

// lasting is a store that outlives the process: one that does not say otherwise counts as such.
type lasting struct{ xxljob.Store }

// TestAppNeedsANameThatStays: with a store that outlives the process, an empty App is an error with
// the name that was taken until now, beside the other faults; in memory it is one warning.
func TestAppNeedsANameThatStays(t *testing.T) {
	program := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	for _, st := range []xxljob.Store{lasting{memory.New()}, storetest.Wrap(lasting{memory.New()})} {
		s, err := xxljob.New(st, xxljob.Config{Logger: log, Cluster: xxljob.ClusterConfig{Shards: -1}})
		faults := xxljob.FieldErrors(err)
		if s != nil || len(faults) != 2 || faults[0].Field != "App" || !strings.Contains(err.Error(), "App: \""+program+"\"") {
			t.Errorf("%T: %v, %v", st, s, err)
		}
		_, err = xxljob.New(st, xxljob.Config{App: "app", Logger: log})
		stage.Must(t, err)
	}
	if said.Len() > 0 {
		t.Errorf("it says %s", &said)
	}
	for _, st := range []xxljob.Store{memory.New(), storetest.Wrap(memory.New())} {
		said.Reset()
		_, err := xxljob.New(st, xxljob.Config{Logger: log})
		stage.Must(t, err)
		if strings.Count(said.String(), "level=WARN") != 1 || !strings.Contains(said.String(), program) {
			t.Errorf("in memory, a %T, it says %s", st, &said)
		}
	}
}
