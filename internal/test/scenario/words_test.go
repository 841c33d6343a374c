package scenario_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// wordsWorld is a scheduler that is not started, with a routing strategy of the user's.
func wordsWorld(t *testing.T, cfg xxljob.Config) (xxljob.Scheduler, *memory.Store) {
	t.Helper()
	st := memory.New()
	cfg.App, cfg.Routers = "app", map[string]xxljob.Router{"BY_TENANT": firstOnly{}}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := xxljob.New(st, cfg)
	stage.Must(t, err)
	stage.Must(t, s.Handle("work", stage.NothingToDo))
	return s, st
}

// firstOnly is a routing strategy of the user's.
type firstOnly struct{}

func (firstOnly) Route(_ context.Context, _ int64, addrs []string) ([]string, error) {
	return addrs[:1], nil
}

// requireWords holds an error against what it has to say, and against saying it twice.
func requireWords(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, w := range words {
		if without, ok := strings.CutPrefix(w, "!"); ok {
			if strings.Contains(err.Error(), without) {
				t.Errorf("%s: %v says %q", what, err, without)
			}
		} else if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %v does not say %q", what, err, w)
		}
	}
	for line := range strings.Lines(err.Error()) {
		if n := strings.Count(line, "xxljob: "); n > 1 {
			t.Errorf("%s: %q names the module %d times", what, line, n)
		}
	}
}

// TestWordsOfBadJobs: an error about a definition names the job, and says what would have
// been right.
func TestWordsOfBadJobs(t *testing.T) {
	t.Parallel()
	const names = "want one of FIRST, LAST, ROUND, RANDOM, CONSISTENT_HASH, LEAST_FREQUENTLY_USED, LEAST_RECENTLY_USED, FAILOVER, BUSYOVER, SHARDING_BROADCAST, NEAREST, BY_TENANT"
	for _, tt := range []struct {
		name  string
		set   func(*xxljob.Job)
		is    error
		words []string
	}{
		{"unknown route", func(j *xxljob.Job) { j.Route = "NORTH" }, xxljob.ErrUnknownRoute, []string{"unknown routing strategy", names, "!did you mean"}},
		{"route in another case", func(j *xxljob.Job) { j.Route = "first" }, xxljob.ErrUnknownRoute, []string{names, "did you mean FIRST?"}},
		{"the user's route in another case", func(j *xxljob.Job) { j.Route = "by_Tenant" }, xxljob.ErrUnknownRoute, []string{names, "did you mean BY_TENANT?"}},
		{"unknown block", func(j *xxljob.Job) { j.Block = "WALL" }, xxljob.ErrUnknownBlock, []string{"want one of SERIAL_EXECUTION, DISCARD_LATER, COVER_EARLY", "!did you mean"}},
		{"block in another case", func(j *xxljob.Job) { j.Block = "Discard_Later" }, xxljob.ErrUnknownBlock, []string{"did you mean DISCARD_LATER?"}},
		{"unknown misfire", func(j *xxljob.Job) { j.Misfire = "PANIC" }, nil, []string{"want one of DO_NOTHING, FIRE_ONCE_NOW", "!did you mean"}},
		{"misfire in another case", func(j *xxljob.Job) { j.Misfire = "do_nothing" }, nil, []string{"did you mean DO_NOTHING?"}},
		{"catch-up in another case", func(j *xxljob.Job) { j.CatchUp = "once" }, nil, []string{"want one of EVERY, ONCE", "did you mean ONCE?"}},
		{"glue type in another case", func(j *xxljob.Job) { j.GlueType = "bean" }, nil, []string{"GLUE_SHELL", "did you mean BEAN?"}},
		{"schedule type in another case", func(j *xxljob.Job) { j.Schedule = xxljob.Schedule{Type: "cron", Conf: "0 0 3 * * ?"} }, nil,
			[]string{"want one of NONE, CRON, FIX_RATE, FIX_DELAY, CRONTAB, CRON_SECONDS, ONCE", "did you mean CRON?"}},
		{"DST policy in another case", func(j *xxljob.Job) { j.Schedule = xxljob.Cron("0 0 3 * * ?").WithDST("quartz") }, nil, []string{"did you mean QUARTZ?"}},

		{"@every in a crontab", func(j *xxljob.Job) { j.Schedule = xxljob.Crontab("@every 5m") }, nil, []string{"use xxljob.FixedRate(5*time.Minute)"}},
		{"@every in a cron", func(j *xxljob.Job) { j.Schedule = xxljob.Cron("@every 1h30m") }, nil, []string{"use xxljob.FixedRate(90*time.Minute)"}},
		{"@every of seconds", func(j *xxljob.Job) { j.Schedule = xxljob.Crontab("@EVERY 1.5s") }, nil, []string{"use xxljob.FixedRate(1500*time.Millisecond)"}},
		{"@every of an hour", func(j *xxljob.Job) { j.Schedule = xxljob.Crontab("@every 2h") }, nil, []string{"use xxljob.FixedRate(2*time.Hour)"}},
		{"@every of nothing", func(j *xxljob.Job) { j.Schedule = xxljob.Crontab("@every") }, nil, []string{"use xxljob.FixedRate(5*time.Minute)"}},
		{"CRON_TZ in a crontab", func(j *xxljob.Job) { j.Schedule = xxljob.Crontab("CRON_TZ=Asia/Tokyo 0 3 * * *") }, nil, []string{`use .In("Asia/Tokyo")`}},
		{"TZ in a crontab", func(j *xxljob.Job) { j.Schedule = xxljob.Crontab("TZ=Europe/Berlin 0 3 * * *") }, nil, []string{`use .In("Europe/Berlin")`}},
		{"TZ in a cron", func(j *xxljob.Job) { j.Schedule = xxljob.Cron("TZ=Asia/Tokyo 0 0 3 * * ?") }, nil, []string{`use .In("Asia/Tokyo")`}},
		{"TZ before a tag", func(j *xxljob.Job) { j.Schedule = xxljob.Crontab("TZ=Asia/Tokyo @daily") }, nil, []string{`use .In("Asia/Tokyo")`}},
		{"? in a crontab's weekday", func(j *xxljob.Job) { j.Schedule = xxljob.Crontab("0 3 * * ?") }, nil, []string{"day-of-week", "write *"}},
		{"? in a crontab's day", func(j *xxljob.Job) { j.Schedule = xxljob.Crontab("0 3 ? * 1") }, nil, []string{"day-of-month", "write *"}},
		{"? in a crontab's minute", func(j *xxljob.Job) { j.Schedule = xxljob.Crontab("? 3 * * *") }, nil, []string{"minutes", "write *"}},

		{"At in the past", func(j *xxljob.Job) { j.Schedule = xxljob.At(time.Now().Add(-time.Hour)) }, xxljob.ErrNeverFires, []string{"the instant is past"}},
		{"a cron whose years are past", func(j *xxljob.Job) { j.Schedule = xxljob.Cron("0 0 0 1 1 ? 1999") }, xxljob.ErrNeverFires, []string{"all its instants are past"}},
		{"a cron without instants", func(j *xxljob.Job) { j.Schedule = xxljob.Cron("0 0 0 30 2 ?") }, xxljob.ErrNeverFires, []string{"the schedule never fires"}},
		{"a zone of a rate", func(j *xxljob.Job) { j.Schedule = xxljob.FixedRate(time.Minute).In("Asia/Tokyo") }, nil, []string{"FIX_RATE", "Asia/Tokyo", "no zone"}},
		{"a zone of a delay", func(j *xxljob.Job) { j.Schedule = xxljob.FixedDelay(time.Minute).In("Asia/Tokyo") }, nil, []string{"FIX_DELAY", "Asia/Tokyo", "no zone"}},
		{"a zone of an instant", func(j *xxljob.Job) { j.Schedule = xxljob.At(time.Now().Add(time.Hour)).In("Asia/Tokyo") }, nil, []string{"ONCE", "Asia/Tokyo", "no zone"}},
		{"a policy of a rate", func(j *xxljob.Job) { j.Schedule = xxljob.FixedRate(time.Minute).WithDST(xxljob.DSTQuartz) }, nil, []string{"FIX_RATE", "QUARTZ"}},
		{"a period with its unit", func(j *xxljob.Job) { j.Schedule = xxljob.Schedule{Type: xxljob.ScheduleFixRate, Conf: "5m"} }, nil, []string{"want seconds: 300"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := wordsWorld(t, xxljob.Config{})
				ctx := t.Context()
				good := xxljob.Job{Name: "nightly report", Key: "report", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?")}
				had, err := s.AddJob(ctx, xxljob.Job{Name: "earlier", Handler: "work"})
				stage.Must(t, err)
				bad, changed := good, good
				tt.set(&bad)
				changed = bad
				changed.ID, changed.Key = had.ID, "earlier"
				for what, call := range map[string]func() error{
					"AddJob":    func() error { _, err := s.AddJob(ctx, bad); return err },
					"EnsureJob": func() error { _, err := s.EnsureJob(ctx, bad); return err },
					"UpdateJob": func() error { _, err := s.UpdateJob(ctx, changed); return err },
					"EnsureJobs": func() error {
						_, err := s.EnsureJobs(ctx, "app", []xxljob.Job{bad}, xxljob.EnsureOptions{})
						return err
					},
				} {
					err := call()
					requireWords(t, what, err, append([]string{`"nightly report"`}, tt.words...)...)
					if tt.is != nil && !errors.Is(err, tt.is) {
						t.Errorf("%s: %v is not %v", what, err, tt.is)
					}
				}
			})
		})
	}
}

// TestEveryFaultNamesTheJob: of several faults each line says whose it is.
func TestEveryFaultNamesTheJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := wordsWorld(t, xxljob.Config{})
		_, err := s.AddJob(t.Context(), xxljob.Job{Name: "report", Route: "NORTH", Block: "WALL", Schedule: xxljob.At(time.Now().Add(-time.Hour))})
		requireWords(t, "AddJob", err, "Route", "Block", "Handler", "the instant is past")
		for line := range strings.Lines(err.Error()) {
			if !strings.Contains(line, `job "report"`) {
				t.Errorf("%q does not name the job", line)
			}
		}
		_, err = s.AddJob(t.Context(), xxljob.Job{Key: "by-key", Handler: "work"})
		requireWords(t, "a job without a name", err, `job "by-key"`, "Name", "must not be empty")
	})
}

// TestWordsOfACall: an error of the store names the job once, whoever wrapped it.
func TestWordsOfACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := wordsWorld(t, xxljob.Config{})
		ctx := t.Context()
		one := xxljob.Job{Name: "one", Handler: "work"}
		had, err := s.AddJob(ctx, one)
		stage.Must(t, err)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		for _, tt := range []struct {
			name string
			call func() error
			is   error
			text string
		}{
			{"Trigger", func() error { _, err := s.Trigger(ctx, 12345, xxljob.Trigger{}); return err }, xxljob.ErrNotFound, "xxljob: trigger: job 12345 does not exist"},
			{"UpdateJob", func() error {
				_, err := s.UpdateJob(ctx, xxljob.Job{ID: 12345, Name: "x", Handler: "work"})
				return err
			}, xxljob.ErrNotFound, "xxljob: update: job 12345 does not exist"},
			{"StartJob", func() error { return s.StartJob(ctx, 12345) }, xxljob.ErrNotFound, "xxljob: start: job 12345 does not exist"},
			{"StopJob", func() error { return s.StopJob(ctx, 12345) }, xxljob.ErrNotFound, "xxljob: stop: job 12345 does not exist"},
			{"RemoveJob", func() error { return s.RemoveJob(ctx, 12345) }, xxljob.ErrNotFound, "xxljob: remove: job 12345 does not exist"},
			{"RemoveGroup", func() error { return s.RemoveGroup(ctx, "nobody") }, xxljob.ErrNotFound, `xxljob: remove: group "nobody" does not exist`},
			{"Wait", func() error { _, err := s.Wait(ctx, 12345); return err }, xxljob.ErrNotFound, "xxljob: wait: run 12345 does not exist"},
			{"Kill", func() error { return s.Kill(ctx, 12345) }, xxljob.ErrNotFound, "xxljob: kill: run 12345 does not exist"},
			{"Log", func() error { _, err := s.Log(ctx, 12345, 1); return err }, xxljob.ErrNotFound, "xxljob: log: run 12345 does not exist"},
		} {
			err := tt.call()
			if err == nil || err.Error() != tt.text || !errors.Is(err, tt.is) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.text)
			}
		}
		for what, call := range map[string]func() error{
			"AddJob, key taken": func() error { _, err := s.AddJob(ctx, one); return err },
			"AddJob, ctx ended": func() error {
				_, err := s.AddJob(ended, xxljob.Job{Name: "one", Key: "k", Handler: "work"})
				return err
			},
			"EnsureJob, ctx ended": func() error { _, err := s.EnsureJob(ended, one); return err },
			"EnsureJob of a changed": func() error {
				_, err := s.EnsureJob(ended, xxljob.Job{Name: "one", Handler: "work", Param: "p"})
				return err
			},
			"EnsureJob of a new, ends": func() error {
				_, err := s.EnsureJob(ended, xxljob.Job{Name: "one", Key: "n", Handler: "work"})
				return err
			},
		} {
			requireWords(t, what, call(), `"one"`)
		}
		_, err = s.EnsureJobs(ended, "app", []xxljob.Job{one}, xxljob.EnsureOptions{})
		requireWords(t, "EnsureJobs, ctx ended", err, `ensure jobs of app "app"`)
		_, err = s.UpdateJob(ctx, xxljob.Job{ID: had.ID, Name: "one", Handler: "work", Version: 99})
		requireWords(t, "UpdateJob, conflict", err, "update", "version")
	})
}

// TestWordsOfAnUnknownHandler: with StrictHandlers the job is named too.
func TestWordsOfAnUnknownHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := wordsWorld(t, xxljob.Config{StrictHandlers: true})
		_, err := s.AddJob(t.Context(), xxljob.Job{Name: "report", Handler: "Work"})
		requireWords(t, "AddJob", err, `job "report"`, `"Work"`)
		_, err = s.EnsureJob(t.Context(), xxljob.Job{Name: "report", Handler: "Work"})
		requireWords(t, "EnsureJob", err, `job "report"`, `"Work"`)
	})
}

// TestWordsOfAConfig: those of a Config and a Trigger are siblings of a job's.
func TestWordsOfAConfig(t *testing.T) {
	_, err := xxljob.New(memory.New(), xxljob.Config{CatchUp: "every"})
	requireWords(t, "CatchUp", err, "want one of EVERY, ONCE", "did you mean EVERY?")
	requireWords(t, "Type", xxljob.Trigger{Type: "api"}.Validate(), "want one of MANUAL, API", "did you mean API?")
}

// TestStoresFields: what the store sets of a job cannot be given to AddJob.
func TestStoresFields(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := wordsWorld(t, xxljob.Config{})
		now := time.Now()
		for field, set := range map[string]func(*xxljob.Job){
			"ID":          func(j *xxljob.Job) { j.ID = 7 },
			"Version":     func(j *xxljob.Job) { j.Version = 1 },
			"Ensured":     func(j *xxljob.Job) { j.Ensured = "digest" },
			"Shard":       func(j *xxljob.Job) { j.Shard = 3 },
			"Next":        func(j *xxljob.Job) { j.Next = now },
			"Last":        func(j *xxljob.Job) { j.Last = now },
			"WaitRun":     func(j *xxljob.Job) { j.WaitRun = 9 },
			"Runs":        func(j *xxljob.Job) { j.Runs = 4 },
			"Added":       func(j *xxljob.Job) { j.Added = now },
			"Updated":     func(j *xxljob.Job) { j.Updated = now },
			"GlueUpdated": func(j *xxljob.Job) { j.GlueUpdated = now },
			"StopReason":  func(j *xxljob.Job) { j.StopReason = xxljob.StopPruned },
		} {
			job := xxljob.Job{Name: "report", Handler: "work"}
			set(&job)
			_, err := s.AddJob(t.Context(), job)
			requireWords(t, field, err, `job "report"`, field, "is set by the store")
		}
		job := xxljob.Job{Name: "report", Handler: "work", ID: 7, Version: 1, Route: "NORTH"}
		_, err := s.AddJob(t.Context(), job)
		requireWords(t, "all faults at once", err, "ID", "Version", "Route")
		if jobs, err := st.Jobs(t.Context(), xxljob.JobFilter{}); err != nil || len(jobs) != 0 {
			t.Errorf("stored %v, %v", jobs, err)
		}
	})
}

// TestWarnsOfMailsThatNobodySends: a job with an AlarmEmail is saved with one warning where no
// rule sends alarms, each time it is saved, and with none where one does.
func TestWarnsOfMailsThatNobodySends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logs stage.LogLines
		var cfg xxljob.Config
		logs.LogTo(&cfg)
		s, _ := wordsWorld(t, cfg)
		ctx := t.Context()
		seen := 0
		check := func(what string, want int, words ...string) {
			t.Helper()
			got := logs.With("level=WARN", "AlarmEmail")[seen:]
			if seen += len(got); len(got) != want {
				t.Errorf("%s: %d warnings, want %d: %q", what, len(got), want, got)
			}
			for _, line := range got {
				for _, word := range append(words, "report", "Config.Alarms") {
					if !strings.Contains(line, word) {
						t.Errorf("%s: %q does not say %q", what, line, word)
					}
				}
			}
		}
		full := xxljob.Job{Name: "report", Handler: "work", AlarmEmail: "a@example.com"}
		added, err := s.AddJob(ctx, full)
		stage.Must(t, err)
		check("AddJob", 1)
		added.Retries = 1
		_, err = s.UpdateJob(ctx, added)
		stage.Must(t, err)
		check("UpdateJob", 1)
		full.Key = "ensured"
		for i, want := range []int{1, 0} {
			_, err = s.EnsureJob(ctx, full)
			stage.Must(t, err)
			check([]string{"created", "unchanged"}[i], want)
		}
		var list []xxljob.Job
		for _, key := range []string{"a", "b", "c"} {
			listed := full
			listed.Key = key
			list = append(list, listed)
		}
		for i, want := range []int{1, 0} {
			_, err = s.EnsureJobs(ctx, "", list, xxljob.EnsureOptions{})
			stage.Must(t, err)
			check([]string{"list created", "list unchanged"}[i], want, "jobs=3")
		}
		_, err = s.AddJob(ctx, xxljob.Job{Name: "plain", Handler: "work", Retries: 3})
		stage.Must(t, err)
		check("plain", 0)
		cfg.Alarms = []alarm.Rule{{Name: "sink", To: &sink{}}}
		s, _ = wordsWorld(t, cfg)
		full.Key = ""
		_, err = s.AddJob(ctx, full)
		stage.Must(t, err)
		check("with a rule", 0)
	})
}

// TestErrorsDoNotStutter: the module's name stands once in each line of an error, whatever it wraps.
func TestErrorsDoNotStutter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, all := t.Context(), map[string]error{}
		s, st := wordsWorld(t, xxljob.Config{})
		job, err := s.AddJob(ctx, xxljob.Job{Key: "k", Name: "k", Handler: "work"})
		stage.Must(t, err)
		_, err = s.EnsureJobs(ctx, "", []xxljob.Job{manual("a", "wrok"), manual("b", "krow")}, xxljob.EnsureOptions{})
		stage.Must(t, err)
		all["Start: misspelt"] = s.Start(ctx)
		_, all["an App and more"] = xxljob.New(lasting{st}, xxljob.Config{HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {""}}}, Executor: executor.Config{Places: -1}})
		_, all["AddJob"] = s.AddJob(ctx, xxljob.Job{Route: "x", Block: "y", Schedule: xxljob.Cron("nonsense")})
		_, all["EnsureJobs"] = s.EnsureJobs(ctx, "", []xxljob.Job{{}, {Name: "n", Schedule: xxljob.Crontab("x")}}, xxljob.EnsureOptions{Generation: -1})
		_, all["UpdateJob"] = s.UpdateJob(ctx, xxljob.Job{ID: 7})
		all["RemoveJob"] = s.RemoveJob(ctx, 7)
		all["StartJob"] = s.StartJob(ctx, job.ID)
		all["SaveGroup"] = s.SaveGroup(ctx, xxljob.Group{Addresses: []string{"x"}})
		_, all["Trigger"] = s.Trigger(ctx, 7, xxljob.Trigger{})
		_, all["Wait"] = s.Wait(ctx, 7)
		_, all["Log"] = s.Log(ctx, 7, 1)
		_, all["NextFire"] = s.NextFire(ctx, 7)
		other, err := xxljob.New(st, xxljob.Config{App: "app", Cluster: xxljob.ClusterConfig{Shards: 8}})
		stage.Must(t, err)
		all["Start: shards"] = other.Start(ctx)
		all["Ready"] = s.Ready()
		stage.Must(t, s.Stop(ctx))
		_, all["EnsureJob, stopped"] = s.EnsureJob(ctx, job)
		_, all["EnsureJobs, stopped"] = s.EnsureJobs(ctx, "", nil, xxljob.EnsureOptions{})
		_, all["Trigger, stopped"] = s.Trigger(ctx, job.ID, xxljob.Trigger{})
		_, all["Wait, stopped"] = s.Wait(ctx, 7)
		all["Start, stopped"] = s.Start(ctx)
		all["Handle, stopped"] = s.Handle("more", stage.NothingToDo)
		for what, err := range all {
			if err == nil {
				t.Errorf("%s: no error", what)
				continue
			}
			for line := range strings.Lines(err.Error()) {
				if strings.Count(line, "xxljob: ") > 1 {
					t.Errorf("%s: %s", what, line)
				}
			}
		}
	})
}
