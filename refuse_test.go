package xxljob_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/store/memory"
)

// contents is everything a caller can read from a store.
type contents struct {
	Jobs    []xxljob.Job
	Groups  []xxljob.Group
	Runs    []xxljob.Run
	Changes map[int64][]xxljob.Change
}

func contentsOf(t *testing.T, st xxljob.Store) contents {
	t.Helper()
	ctx := context.Background()
	var c contents
	var err error
	c.Jobs, err = st.Jobs(ctx, xxljob.JobFilter{Limit: 1000})
	must(t, err)
	c.Groups, err = st.Groups(ctx)
	must(t, err)
	c.Runs = allRuns(t, st)
	c.Changes = map[int64][]xxljob.Change{}
	for id := int64(1); id < 50; id++ {
		c.Changes[id], err = st.Changes(ctx, id, 100)
		must(t, err)
	}
	return c
}

// requireSame says which part of a store's contents has changed.
func requireSame(t *testing.T, what string, before, after contents) {
	t.Helper()
	if !reflect.DeepEqual(before.Jobs, after.Jobs) {
		t.Errorf("%s: stored a job:\n%+v\nbefore:\n%+v", what, after.Jobs, before.Jobs)
	}
	if !reflect.DeepEqual(before.Groups, after.Groups) {
		t.Errorf("%s: stored a group:\n%+v\nbefore:\n%+v", what, after.Groups, before.Groups)
	}
	if !reflect.DeepEqual(before.Runs, after.Runs) {
		t.Errorf("%s: stored a run:\n%+v\nbefore:\n%+v", what, after.Runs, before.Runs)
	}
	if !reflect.DeepEqual(before.Changes, after.Changes) {
		t.Errorf("%s: stored a change:\n%+v\nbefore:\n%+v", what, after.Changes, before.Changes)
	}
}

// refusal is a call that has to fail: with an error that is the sentinel, if
// there is one, and says the words; and it leaves the store as it is.
type refusal struct {
	name  string
	call  func(ctx context.Context, s xxljob.Scheduler) error
	is    error
	words []string
}

// badJobs are the ways in which a definition is wrong, each a change of a good
// one.
var badJobs = []struct {
	name  string
	set   func(*xxljob.Job)
	is    error
	words []string
}{
	{"unknown route", func(j *xxljob.Job) { j.Route = "NORTH" }, xxljob.ErrUnknownRoute, []string{"Route", "NORTH"}},
	{"unknown block", func(j *xxljob.Job) { j.Block = "WALL" }, xxljob.ErrUnknownBlock, []string{"Block", "WALL"}},
	{"unknown zone", func(j *xxljob.Job) { j.Schedule = xxljob.Cron("* * * * * ?").In("Mars/Phobos") }, nil, []string{"Schedule", "Mars/Phobos"}},
	{"the local zone", func(j *xxljob.Job) { j.Schedule = xxljob.Crontab("* * * * *").In("Local") }, nil, []string{"Schedule", "Local"}},
	{"invalid cron", func(j *xxljob.Job) { j.Schedule = xxljob.Cron("0 0 25 * * ?") }, nil, []string{"Schedule", "hours", "25"}},
	{"cron with five fields", func(j *xxljob.Job) { j.Schedule = xxljob.Cron("*/5 * * * *") }, nil, []string{"Schedule", "xxljob.Crontab"}},
	{"invalid crontab", func(j *xxljob.Job) { j.Schedule = xxljob.Crontab("* 24 * * *") }, nil, []string{"Schedule", "24"}},
	{"never firing cron", func(j *xxljob.Job) { j.Schedule = xxljob.Cron("0 0 0 30 2 ?") }, xxljob.ErrNeverFires, []string{"Schedule", "0 0 0 30 2 ?"}},
	{"cron that is over", func(j *xxljob.Job) { j.Schedule = xxljob.Cron("0 0 0 1 1 ? 1999") }, xxljob.ErrNeverFires, []string{"Schedule", "1999"}},
	{"never firing crontab", func(j *xxljob.Job) { j.Schedule = xxljob.Crontab("0 0 31 2 *") }, xxljob.ErrNeverFires, []string{"Schedule", "0 0 31 2 *"}},
	{"an instant that is past", func(j *xxljob.Job) { j.Schedule = xxljob.At(time.Now().Add(-time.Second)) }, xxljob.ErrNeverFires, []string{"Schedule", "1999"}},
	{"zero rate", func(j *xxljob.Job) { j.Schedule = xxljob.FixedRate(0) }, nil, []string{"Schedule", "FIX_RATE", `"0"`}},
	{"negative rate", func(j *xxljob.Job) { j.Schedule = xxljob.FixedRate(-time.Hour) }, nil, []string{"Schedule", "FIX_RATE", "-3600"}},
	{"rate under a second", func(j *xxljob.Job) { j.Schedule = xxljob.FixedRate(500 * time.Millisecond) }, nil, []string{"Schedule", "0.5", "AllowSubSecond"}},
	{"zero delay", func(j *xxljob.Job) { j.Schedule = xxljob.FixedDelay(0) }, nil, []string{"Schedule", "FIX_DELAY", `"0"`}},
	{"negative delay", func(j *xxljob.Job) { j.Schedule = xxljob.FixedDelay(-1500 * time.Millisecond) }, nil, []string{"Schedule", "FIX_DELAY", "-1.5"}},
	{"delay under a second", func(j *xxljob.Job) { j.Schedule = xxljob.FixedDelay(time.Millisecond) }, nil, []string{"Schedule", "0.001", "AllowSubSecond"}},
	{"unknown schedule type", func(j *xxljob.Job) { j.Schedule = xxljob.Schedule{Type: "LUNAR"} }, nil, []string{"Schedule", "LUNAR"}},
	{"negative timeout", func(j *xxljob.Job) { j.Timeout = -time.Second }, nil, []string{"Timeout", "-1s"}},
	{"empty name", func(j *xxljob.Job) { j.Name = "" }, nil, []string{"Name", `""`, "empty"}},
	{"blank name", func(j *xxljob.Job) { j.Name = " \t" }, nil, []string{"Name", "empty"}},
	{"empty handler", func(j *xxljob.Job) { j.Handler = "" }, nil, []string{"Handler", "empty"}},
	{"blank app", func(j *xxljob.Job) { j.App = " " }, nil, []string{"App", "empty"}},
	{"unknown misfire", func(j *xxljob.Job) { j.Misfire = "PANIC" }, nil, []string{"Misfire", "PANIC"}},
}

// refusals are all the calls of the test.
func refusals() []refusal {
	type ctx = context.Context
	type sched = xxljob.Scheduler
	fresh := xxljob.Job{App: "app", Key: "three", Name: "three", Handler: "work", Schedule: xxljob.FixedRate(time.Minute)}
	var all []refusal
	for _, b := range badJobs {
		bad, changed := fresh, fresh
		b.set(&bad)
		changed.ID, changed.Key = 1, "one"
		b.set(&changed)
		if bad.App == " " {
			changed.App = "other" // the app of a job is fixed
			b.words = []string{"App"}
		}
		all = append(all,
			refusal{"AddJob: " + b.name, func(c ctx, s sched) error { _, err := s.AddJob(c, bad); return err }, b.is, b.words},
			refusal{"UpdateJob: " + b.name, func(c ctx, s sched) error { _, err := s.UpdateJob(c, changed); return err }, b.is, b.words},
			refusal{"EnsureJob: " + b.name, func(c ctx, s sched) error { _, err := s.EnsureJob(c, bad); return err }, b.is, b.words},
			refusal{"EnsureJob of a job that exists: " + b.name, func(c ctx, s sched) error {
				bad := bad
				bad.Key = "ensured"
				_, err := s.EnsureJob(c, bad)
				return err
			}, b.is, b.words},
			refusal{"EnsureJobs: " + b.name, func(c ctx, s sched) error {
				bad := bad
				bad.Key = "four"
				_, err := s.EnsureJobs(c, "app", []xxljob.Job{fresh, bad}, xxljob.Prune)
				return err
			}, b.is, b.words},
		)
	}
	update := func(job xxljob.Job) func(ctx, sched) error {
		return func(c ctx, s sched) error { _, err := s.UpdateJob(c, job); return err }
	}
	trigger := func(id int64, tr xxljob.Trigger) func(ctx, sched) error {
		return func(c ctx, s sched) error { _, err := s.Trigger(c, id, tr); return err }
	}
	group := func(g xxljob.Group) func(ctx, sched) error {
		return func(c ctx, s sched) error { return s.SaveGroup(c, g) }
	}
	ensure := func(jobs ...xxljob.Job) func(ctx, sched) error {
		return func(c ctx, s sched) error { _, err := s.EnsureJobs(c, "app", jobs, xxljob.Prune); return err }
	}
	with := func(set func(*xxljob.Job)) xxljob.Job { j := fresh; set(&j); return j }
	minus := -1
	long := strings.Repeat("p", 64<<10+1)
	return append(all, []refusal{
		{"AddJob: duplicate key", func(c ctx, s sched) error {
			_, err := s.AddJob(c, with(func(j *xxljob.Job) { j.Key = "one" }))
			return err
		}, xxljob.ErrDuplicateKey, []string{"Key", `"one"`}},
		{"AddJob: a name that is another's key", func(c ctx, s sched) error {
			_, err := s.AddJob(c, with(func(j *xxljob.Job) { j.Key, j.Name = "", "one" }))
			return err
		}, xxljob.ErrDuplicateKey, []string{"Key", `"one"`}},
		{"UpdateJob: duplicate key", update(with(func(j *xxljob.Job) { j.ID, j.Key = 2, "one" })), xxljob.ErrDuplicateKey, []string{"key", `"one"`, "2"}},
		{"UpdateJob: version conflict", update(with(func(j *xxljob.Job) { j.ID, j.Key, j.Version = 1, "one", 99 })), xxljob.ErrConflict, []string{"job 1", "99"}},
		{"UpdateJob: unknown job", update(with(func(j *xxljob.Job) { j.ID = 77 })), xxljob.ErrNotFound, []string{"job 77"}},
		{"UpdateJob: no id", update(fresh), xxljob.ErrNotFound, []string{"job 0"}},
		{"UpdateJob: another app", update(with(func(j *xxljob.Job) { j.ID, j.App = 1, "other" })), nil, []string{"App", "other", `"app"`}},
		{"EnsureJobs: one key twice", ensure(fresh, with(func(j *xxljob.Job) { j.Name = "again" })), xxljob.ErrDuplicateKey, []string{"Key", "three"}},
		{"EnsureJobs: another app", ensure(fresh, with(func(j *xxljob.Job) { j.App, j.Key = "other", "" })), nil, []string{"App", "other", `"app"`}},
		{"EnsureJobs: all faults at once", ensure(with(func(j *xxljob.Job) { j.Route = "NORTH" }), with(func(j *xxljob.Job) { j.Key, j.Block = "4", "WALL" })),
			xxljob.ErrUnknownBlock, []string{"NORTH", "WALL", "three"}},

		{"StartJob: unknown job", func(c ctx, s sched) error { return s.StartJob(c, 77) }, xxljob.ErrNotFound, []string{"start", "job 77"}},
		{"StartJob: manual", func(c ctx, s sched) error { return s.StartJob(c, 2) }, xxljob.ErrManual, []string{"start", "job 2"}},
		{"StopJob: unknown job", func(c ctx, s sched) error { return s.StopJob(c, 77) }, xxljob.ErrNotFound, []string{"stop", "job 77"}},
		{"RemoveJob: unknown job", func(c ctx, s sched) error { return s.RemoveJob(c, 77) }, xxljob.ErrNotFound, []string{"remove", "job 77"}},
		{"Kill: unknown run", func(c ctx, s sched) error { return s.Kill(c, 77) }, xxljob.ErrNotFound, []string{"77"}},
		{"Wait: unknown run", func(c ctx, s sched) error { _, err := s.Wait(c, 77); return err }, xxljob.ErrNotFound, []string{"77"}},

		{"Trigger: unknown job", trigger(77, xxljob.Trigger{}), xxljob.ErrNotFound, []string{"job 77"}},
		{"Trigger: too far ahead", trigger(1, xxljob.Trigger{At: time.Now().AddDate(0, 0, 30)}), nil, []string{"At", "2000-01-31", "RunRetention", "720h"}},
		{"Trigger: type of a schedule", trigger(1, xxljob.Trigger{Type: xxljob.TriggerCron}), nil, []string{"Type", "CRON", "MANUAL"}},
		{"Trigger: impossible part", trigger(1, xxljob.Trigger{Shard: xxljob.Sharding{Index: 5, Total: 2}}), nil, []string{"Shard", "5/2"}},
		{"Trigger: negative part", trigger(1, xxljob.Trigger{Shard: xxljob.Sharding{Index: -1, Total: 2}}), nil, []string{"Shard", "-1/2"}},
		{"Trigger: negative retries", trigger(1, xxljob.Trigger{Retries: &minus}), nil, []string{"Retries", "-1"}},
		{"Trigger: long parameter", trigger(1, xxljob.Trigger{Param: &long}), nil, []string{"Param", "65537 bytes"}},
		{"Trigger: long key", trigger(1, xxljob.Trigger{Key: long[:256]}), nil, []string{"Key", "256 bytes"}},

		{"SaveGroup: no app", group(xxljob.Group{Title: "title"}), nil, []string{"App", "empty"}},
		{"SaveGroup: bad address", group(xxljob.Group{App: "new", Manual: true, Addresses: []string{"ftp://host/"}}), nil, []string{"Addresses", "ftp://host/"}},
		{"SaveGroup: manual without addresses", group(xxljob.Group{App: "new", Manual: true}), nil, []string{"Addresses"}},
		{"SaveGroup: automatic with addresses", group(xxljob.Group{App: "new", Addresses: []string{"http://host/"}}), nil, []string{"Addresses", "http://host/"}},
		{"SaveGroup: an address twice", group(xxljob.Group{App: "new", Manual: true, Addresses: []string{"http://host/", "http://host/"}}), nil, []string{"Addresses", "http://host/"}},
		{"RemoveGroup: with jobs", func(c ctx, s sched) error { return s.RemoveGroup(c, "app") }, xxljob.ErrGroupInUse, []string{`"app"`}},
		{"RemoveGroup: unknown", func(c ctx, s sched) error { return s.RemoveGroup(c, "nobody") }, xxljob.ErrNotFound, []string{`"nobody"`}},

		{"Handle: no name", func(c ctx, s sched) error { return s.Handle("", nothingToDo) }, nil, []string{"name"}},
		{"Handle: nil", func(c ctx, s sched) error { return s.Handle("new", nil) }, nil, []string{`"new"`, "nil"}},
		{"Handle: taken", func(c ctx, s sched) error { return s.Handle("work", nothingToDo) }, nil, []string{`"work"`}},
		{"Attach: nil", func(c ctx, s sched) error { return s.Attach(nil) }, nil, []string{"attach", "nil"}},
		{"Attach: an app twice", func(c ctx, s sched) error {
			e, err := executor.New(executor.Config{App: "app"})
			if err != nil {
				return nil
			}
			return s.Attach(e)
		}, nil, []string{"attach", `"app"`}},
		{"an ended context", func(c ctx, s sched) error {
			ended, cancel := context.WithCancel(c)
			cancel()
			_, err := s.AddJob(ended, fresh)
			return err
		}, context.Canceled, nil},
	}...)
}

// refuseWorld is a store with two jobs of app, an ensured one, and a run.
func refuseWorld(t *testing.T, cfg xxljob.Config) (xxljob.Scheduler, *memory.Store) {
	t.Helper()
	ctx := t.Context()
	st := memory.New()
	cfg.App, cfg.Logger = "app", slog.New(slog.DiscardHandler)
	s, err := xxljob.New(st, cfg)
	must(t, err)
	must(t, s.Handle("work", nothingToDo))
	must(t, s.SaveGroup(ctx, xxljob.Group{App: "app"}))
	_, err = s.AddJob(ctx, xxljob.Job{Name: "one", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?")})
	must(t, err)
	_, err = s.AddJob(ctx, xxljob.Job{Name: "two", Handler: "work"})
	must(t, err)
	_, err = s.EnsureJob(ctx, xxljob.Job{Name: "ensured", Handler: "work", Schedule: xxljob.FixedRate(24 * time.Hour)})
	must(t, err)
	_, err = s.Trigger(ctx, 2, xxljob.Trigger{At: time.Now().Add(time.Hour)})
	must(t, err)
	return s, st
}

// TestBadInput: every bad input is a clear error that names field and value, and
// stores nothing: jobs, groups, runs and audit are the same before and after. So
// it is before Start, while the scheduler runs, and after Stop.
func TestBadInput(t *testing.T) {
	for _, phase := range []string{"before Start", "started", "stopped"} {
		t.Run(phase, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, st := refuseWorld(t, xxljob.Config{})
				if phase != "before Start" {
					must(t, s.Start(t.Context()))
					synctest.Wait()
				}
				if phase == "stopped" {
					must(t, s.Stop(t.Context()))
				}
				for _, r := range refusals() {
					before := contentsOf(t, st)
					err := r.call(t.Context(), s)
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
					requireSame(t, r.name, before, contentsOf(t, st))
				}
				must(t, s.Stop(t.Context()))
			})
		})
	}
}

// TestSubSecondAllowed: with AllowSubSecond such rates are accepted everywhere.
func TestSubSecondAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := refuseWorld(t, xxljob.Config{AllowSubSecond: true})
		_, err := s.AddJob(t.Context(), xxljob.Job{Name: "fast", Handler: "work", Schedule: xxljob.FixedRate(100 * time.Millisecond)})
		must(t, err)
		_, err = s.EnsureJob(t.Context(), xxljob.Job{Name: "delayed", Handler: "work", Schedule: xxljob.FixedDelay(time.Millisecond)})
		must(t, err)
		must(t, s.Stop(t.Context()))
	})
}

// TestNewRefuses: New without a store, or with a bad config, makes nothing.
func TestNewRefuses(t *testing.T) {
	if s, err := xxljob.New(nil, xxljob.Config{}); err == nil || s != nil || !strings.Contains(err.Error(), "store is nil") {
		t.Errorf("no store: %v, %v", s, err)
	}
	if s, err := xxljob.New(memory.New(), xxljob.Config{Shards: -1}); err == nil || s != nil || !strings.Contains(err.Error(), "Shards") {
		t.Errorf("bad config: %v, %v", s, err)
	}
	bad := xxljob.Config{Executor: executor.Config{Places: -1}}
	if s, err := xxljob.New(memory.New(), bad); err == nil || s != nil || !strings.Contains(err.Error(), "Places") {
		t.Errorf("bad executor: %v, %v", s, err)
	}
}

// TestOtherShards: a store that was set up with another number of shards is
// ErrShards, with both numbers, in the first call that writes and in Ready.
func TestOtherShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, st := refuseWorld(t, xxljob.Config{})
		before := contentsOf(t, st)
		s, err := xxljob.New(st, xxljob.Config{App: "app", Shards: 8, Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		_, err = s.AddJob(t.Context(), goodJob())
		if !errors.Is(err, xxljob.ErrShards) || !strings.Contains(err.Error(), "8") || !strings.Contains(err.Error(), "32") {
			t.Errorf("AddJob: %v", err)
		}
		must(t, s.Start(t.Context()))
		time.Sleep(time.Minute)
		if err := s.Ready(); !errors.Is(err, xxljob.ErrShards) || !errors.Is(err, xxljob.ErrNotReady) {
			t.Errorf("Ready: %v", err)
		}
		must(t, s.Stop(t.Context()))
		requireSame(t, t.Name(), before, contentsOf(t, st))
	})
}

// TestStartJobThatIsOver: a job whose schedule has no further instant cannot be
// started, and stays as it is.
func TestStartJobThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, st := refuseWorld(t, xxljob.Config{})
		job, err := s.AddJob(t.Context(), xxljob.Job{Name: "once", Handler: "work", Stopped: true, Schedule: xxljob.At(time.Now().Add(time.Minute))})
		must(t, err)
		time.Sleep(time.Minute)
		before := contentsOf(t, st)
		if err := s.StartJob(t.Context(), job.ID); !errors.Is(err, xxljob.ErrNeverFires) {
			t.Errorf("StartJob: %v", err)
		}
		requireSame(t, t.Name(), before, contentsOf(t, st))
		must(t, s.Stop(t.Context()))
	})
}

// TestStrictHandlers: by default a job whose app or handler nobody offers is
// added with one warning; with StrictHandlers it is ErrUnknownHandler, and
// nothing is stored.
func TestStrictHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := []xxljob.Job{
			{Name: "new", Handler: "nobody"},
			{App: "elsewhere", Name: "new", Handler: "work"},
		}
		loose, _ := refuseWorld(t, xxljob.Config{})
		strict, st := refuseWorld(t, xxljob.Config{StrictHandlers: true})
		for _, j := range bad {
			_, err := loose.AddJob(t.Context(), j)
			must(t, err)
			before := contentsOf(t, st)
			_, err = strict.AddJob(t.Context(), j)
			if !errors.Is(err, xxljob.ErrUnknownHandler) || !strings.Contains(err.Error(), j.Handler) || !strings.Contains(err.Error(), j.App) {
				t.Errorf("AddJob %q of %q: %v", j.Handler, j.App, err)
			}
			j.ID, j.App = 1, ""
			if j.Handler == "nobody" {
				if _, err = strict.UpdateJob(t.Context(), j); !errors.Is(err, xxljob.ErrUnknownHandler) {
					t.Errorf("UpdateJob: %v", err)
				}
			}
			requireSame(t, t.Name(), before, contentsOf(t, st))
		}
		_, err := strict.AddJob(t.Context(), xxljob.Job{Name: "new", Handler: "work"})
		must(t, err)
		must(t, loose.Stop(t.Context()))
		must(t, strict.Stop(t.Context()))
	})
}

// TestLifecycle: Start once, Stop as often as one likes, Start never after Stop.
// A bubble ends only when every goroutine in it has ended, so each of these
// tests also shows that a stopped scheduler leaves none.
func TestLifecycle(t *testing.T) {
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
			must(t, s.Start(t.Context()))
			if err := s.Start(t.Context()); !errors.Is(err, xxljob.ErrStarted) {
				t.Errorf("the second Start: %v", err)
			}
			synctest.Wait()
			must(t, s.Ready())
			must(t, s.Stop(t.Context()))
			if err := s.Start(t.Context()); !errors.Is(err, xxljob.ErrStopped) {
				t.Errorf("Start after Stop: %v", err)
			}
			if err := s.Ready(); !errors.Is(err, xxljob.ErrNotReady) || !errors.Is(err, xxljob.ErrStopped) {
				t.Errorf("Ready after Stop: %v", err)
			}
		},
		"Stop before Start": func(t *testing.T) {
			s := make1(t, xxljob.Config{})
			must(t, s.Stop(t.Context()))
			must(t, s.Stop(t.Context()))
			if err := s.Start(t.Context()); !errors.Is(err, xxljob.ErrStopped) {
				t.Errorf("Start: %v", err)
			}
			if err := s.Run(t.Context()); !errors.Is(err, xxljob.ErrStopped) {
				t.Errorf("Run: %v", err)
			}
		},
		"Stop from many goroutines": func(t *testing.T) {
			s := make1(t, xxljob.Config{})
			must(t, s.Start(t.Context()))
			var group sync.WaitGroup
			for range 20 {
				group.Go(func() {
					if err := s.Stop(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			must(t, s.Stop(t.Context()))
		},
		"Start with an ended context": func(t *testing.T) {
			s := make1(t, xxljob.Config{})
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Start(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("Start: %v", err)
			}
			must(t, s.Start(t.Context())) // that was no Start
			must(t, s.Stop(t.Context()))
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
			must(t, s.Ready())
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
			must(t, s.Run(ended))
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
			must(t, s.Stop(t.Context()))
			group.Wait()
		},
		"the end of Start's context stops": func(t *testing.T) {
			s := make1(t, xxljob.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			must(t, s.Start(ctx))
			time.Sleep(time.Second)
			cancel()
			synctest.Wait()
			if err := s.Ready(); !errors.Is(err, xxljob.ErrStopped) {
				t.Errorf("Ready: %v", err)
			}
			must(t, s.Stop(t.Context())) // waits for the first
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}

// TestGrace: the end of Start's context gives handlers Config.StopGrace; then
// they are cancelled and recorded as killed.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, st := refuseWorld(t, xxljob.Config{StopGrace: 10 * time.Second})
		var mu sync.Mutex
		var took []time.Duration
		must(t, s.Handle("slow", func(ctx context.Context, task *xxljob.Task) error {
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
		must(t, s.Start(ctx))
		var runs []int64
		for _, d := range []string{"6s", "60s"} {
			job, err := s.AddJob(t.Context(), xxljob.Job{Name: d, Handler: "slow", Param: d})
			must(t, err)
			ids, err := s.Trigger(t.Context(), job.ID, xxljob.Trigger{})
			must(t, err)
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
		for i, want := range []xxljob.State{xxljob.StateSucceeded, xxljob.StateKilled} {
			run, err := st.Run(t.Context(), runs[i])
			must(t, err)
			if run.State != want {
				t.Errorf("run %d is %v, want %v", i, run.State, want)
			}
		}
	})
}

// TestCallableAtAnyTime: every call works before Start and after Stop as it does
// in between; what was asked for then is done by whoever runs the store.
func TestCallableAtAnyTime(t *testing.T) {
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
		must(t, s.Start(ctx))
		time.Sleep(time.Second)
	}
	if phase == "stopped" {
		must(t, s.Stop(ctx))
	}
	job, err := s.AddJob(ctx, xxljob.Job{Name: "new", Handler: "work", Schedule: xxljob.FixedRate(time.Hour)})
	must(t, err)
	job.Author = "me"
	job, err = s.UpdateJob(ctx, job)
	if err != nil || job.Author != "me" || job.Version != 2 {
		t.Errorf("UpdateJob: %+v, %v", job, err)
	}
	must(t, s.StopJob(ctx, job.ID))
	must(t, s.StartJob(ctx, job.ID))
	must(t, s.StartJob(ctx, job.ID))
	all, err := s.EnsureJobs(ctx, "", []xxljob.Job{{Name: "ensured", Handler: "work", Schedule: xxljob.FixedRate(24 * time.Hour)}, {Name: "more", Handler: "work"}}, xxljob.Prune)
	if err != nil || len(all) != 2 || all[0].Outcome != xxljob.Unchanged || all[1].Outcome != xxljob.Created {
		t.Errorf("EnsureJobs: %+v, %v", all, err)
	}
	must(t, s.SaveGroup(ctx, xxljob.Group{App: "other"}))
	must(t, s.RemoveGroup(ctx, "other"))
	e, err := executor.New(executor.Config{App: "attached"})
	must(t, err)
	must(t, s.Attach(e))
	if err := s.Handle("late", nothingToDo); (err != nil) != (phase == "stopped") {
		t.Errorf("Handle: %v", err)
	}
	ids, err := s.Trigger(ctx, job.ID, xxljob.Trigger{Key: "k"})
	must(t, err)
	again, err := s.Trigger(ctx, job.ID, xxljob.Trigger{Key: "k"})
	if err != nil || len(ids) != 1 || len(again) != 1 || again[0] != ids[0] {
		t.Errorf("Trigger: %v, again %v, %v", ids, again, err)
	}
	later, err := s.Trigger(ctx, job.ID, xxljob.Trigger{At: time.Now().Add(time.Hour)})
	must(t, err)
	must(t, s.Kill(ctx, later[0]))
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
	runner := s
	if phase == "before Start" {
		must(t, s.Start(ctx))
	}
	if phase == "stopped" {
		runner, err = xxljob.New(st, xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		must(t, runner.Handle("work", nothingToDo))
		must(t, runner.Start(ctx))
	}
	if run, err := s.Wait(ctx, ids[0]); err != nil || run.State != xxljob.StateSucceeded {
		t.Errorf("the triggered run: %v, %v", run.State, err)
	}
	must(t, s.RemoveJob(ctx, job.ID))
	if err := s.StopJob(ctx, job.ID); !errors.Is(err, xxljob.ErrNotFound) {
		t.Errorf("StopJob of a removed job: %v", err)
	}
	must(t, runner.Stop(ctx))
	must(t, s.Stop(ctx))
}

// TestStress starts, stops and uses several schedulers of one store from many
// goroutines at once. Every error is one that the calls promise, and no
// goroutine is left.
func TestStress(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		var group sync.WaitGroup
		for i := range 6 {
			group.Go(func() { stressOne(t, st, rand.New(rand.NewPCG(seed, uint64(i)))) })
		}
		group.Wait()
	})
}

// stressOne makes schedulers one after the other, and for each four goroutines
// that do as they please with it.
func stressOne(t *testing.T, st xxljob.Store, r *rand.Rand) {
	for range 4 {
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Error(err)
			return
		}
		if err := s.Handle("work", func(context.Context, *xxljob.Task) error { time.Sleep(300 * time.Millisecond); return nil }); err != nil {
			t.Error(err)
		}
		var group sync.WaitGroup
		for range 4 {
			dice := rand.New(rand.NewPCG(r.Uint64(), 1))
			group.Go(func() {
				for range 60 {
					time.Sleep(time.Duration(dice.IntN(200)) * time.Millisecond)
					stressCall(t, s, dice)
				}
			})
		}
		group.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := s.Stop(ctx); err != nil {
			t.Errorf("Stop: %v", err)
		}
		cancel()
	}
}

func stressCall(t *testing.T, s xxljob.Scheduler, dice *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	id := 1 + dice.Int64N(40)
	job := xxljob.Job{Name: fmt.Sprint("job ", dice.IntN(20)), Handler: "work", Schedule: xxljob.FixedRate(time.Second)}
	var err error
	switch dice.IntN(12) {
	case 0, 1:
		err = s.Start(context.Background())
	case 2:
		if dice.IntN(10) == 0 {
			err = s.Stop(ctx)
		}
	case 3:
		_, err = s.AddJob(ctx, job)
	case 4:
		_, err = s.EnsureJob(ctx, job)
	case 5:
		_, err = s.EnsureJobs(ctx, "", []xxljob.Job{job}, xxljob.Prune)
	case 6:
		err = s.StopJob(ctx, id)
	case 7:
		err = s.StartJob(ctx, id)
	case 8:
		job.ID = id
		_, err = s.UpdateJob(ctx, job)
	case 9:
		if dice.IntN(5) == 0 {
			err = s.RemoveJob(ctx, id)
		}
	case 10:
		var ids []int64
		if ids, err = s.Trigger(ctx, id, xxljob.Trigger{}); err == nil && dice.IntN(2) == 0 {
			err = s.Kill(ctx, ids[0])
		}
		if err == nil {
			_, err = s.Wait(ctx, ids[0])
		}
	case 11:
		err = s.Ready()
	}
	for _, fine := range []error{nil, xxljob.ErrStarted, xxljob.ErrStopped, xxljob.ErrNotReady, xxljob.ErrNotFound, xxljob.ErrDuplicateKey, xxljob.ErrManual, context.DeadlineExceeded} {
		if errors.Is(err, fine) {
			return
		}
	}
	t.Errorf("unexpected: %v", err)
}

// TestEnsureStoresNothing: an error of EnsureJob or EnsureJobs that is about the
// input stores nothing: not the group of a new app, and of a list not the jobs
// before the bad one.
func TestEnsureStoresNothing(t *testing.T) {
	never := xxljob.Job{App: "fresh", Name: "never", Handler: "work", Schedule: xxljob.Cron("0 0 0 30 2 ?")}
	good := xxljob.Job{Name: "good", Handler: "work"}
	unknown := xxljob.Job{Name: "unknown", Handler: "nobody"}
	for name, call := range map[string]func(ctx context.Context, s xxljob.Scheduler) error{
		"EnsureJob, never firing, new app": func(ctx context.Context, s xxljob.Scheduler) error {
			_, err := s.EnsureJob(ctx, never)
			return err
		},
		"EnsureJob, unknown handler, new app": func(ctx context.Context, s xxljob.Scheduler) error {
			_, err := s.EnsureJob(ctx, xxljob.Job{App: "fresh", Name: "unknown", Handler: "nobody"})
			return err
		},
		"EnsureJobs, unknown handler": func(ctx context.Context, s xxljob.Scheduler) error {
			_, err := s.EnsureJobs(ctx, "", []xxljob.Job{good, unknown})
			return err
		},
		"EnsureJob, change to an unknown handler": func(ctx context.Context, s xxljob.Scheduler) error {
			_, err := s.EnsureJob(ctx, xxljob.Job{Name: "ensured", Handler: "nobody"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, st := refuseWorld(t, xxljob.Config{StrictHandlers: true})
				before := contentsOf(t, st)
				if err := call(t.Context(), s); err == nil {
					t.Error("no error")
				}
				requireSame(t, name, before, contentsOf(t, st))
				must(t, s.Stop(t.Context()))
			})
		})
	}
}

// TestHandleAfterStop: Handle on a stopped scheduler is ErrStopped.
func TestHandleAfterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := refuseWorld(t, xxljob.Config{})
		must(t, s.Stop(t.Context()))
		if err := s.Handle("late", nothingToDo); !errors.Is(err, xxljob.ErrStopped) {
			t.Errorf("%v is not %v", err, xxljob.ErrStopped)
		}
	})
}

// TestAddedJobIsNotEnsured: Job.Ensured is the library's. A job that was read from
// an ensured one and added under another key is not pruned.
func TestAddedJobIsNotEnsured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := refuseWorld(t, xxljob.Config{})
		e, err := s.EnsureJob(t.Context(), xxljob.Job{Name: "model", Handler: "work", Schedule: xxljob.FixedRate(time.Hour)})
		must(t, err)
		copied := e.Job
		copied.Key, copied.Name = "copy", "copy"
		added, err := s.AddJob(t.Context(), copied)
		must(t, err)
		if added.Ensured != "" {
			t.Errorf("AddJob stores Ensured %q", added.Ensured)
		}
		all, err := s.EnsureJobs(t.Context(), "", []xxljob.Job{{Name: "model", Handler: "work", Schedule: xxljob.FixedRate(time.Hour)}}, xxljob.Prune)
		must(t, err)
		for _, e := range all {
			if e.Job.ID == added.ID {
				t.Errorf("the added job was %s", e.Outcome)
			}
		}
		must(t, s.Stop(t.Context()))
	})
}

// TestUpdateLeavesNoKey: a job that came by import may have no Key, and UpdateJob
// gives it none.
func TestUpdateLeavesNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, st := refuseWorld(t, xxljob.Config{})
		imported := goodJob()
		imported.App, imported.Key, imported.Name = "app", "", "one" // there is a job with this Key
		imported, err := st.AddJob(t.Context(), imported)
		must(t, err)
		imported.Author = "me"
		if job, err := s.UpdateJob(t.Context(), imported); err != nil || job.Key != "" {
			t.Errorf("Key %q, %v", job.Key, err)
		}
		must(t, s.Stop(t.Context()))
	})
}

// TestAllFaultsOfAJob: that the schedule never fires is said beside the other
// faults.
func TestAllFaultsOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := refuseWorld(t, xxljob.Config{})
		_, err := s.AddJob(t.Context(), xxljob.Job{Name: "job", Handler: "work", Route: "NORTH", Schedule: xxljob.Cron("0 0 0 30 2 ?")})
		if !errors.Is(err, xxljob.ErrUnknownRoute) || !errors.Is(err, xxljob.ErrNeverFires) {
			t.Errorf("AddJob: %v", err)
		}
		must(t, s.Stop(t.Context()))
	})
}
