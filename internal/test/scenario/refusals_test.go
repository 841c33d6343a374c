package scenario_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
)

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

// refusals are all the calls of the test, where one and two are jobs that exist.
func refusals(one, two int64) []refusal {
	type ctx = context.Context
	type sched = xxljob.Scheduler
	fresh := xxljob.Job{App: "app", Key: "three", Name: "three", Handler: "work", Schedule: xxljob.FixedRate(time.Minute)}
	var all []refusal
	for _, b := range badJobs {
		bad, changed := fresh, fresh
		b.set(&bad)
		changed.ID, changed.Key = one, "one"
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
				_, err := s.EnsureJobs(c, "app", []xxljob.Job{fresh, bad}, xxljob.EnsureOptions{Prune: true})
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
		return func(c ctx, s sched) error {
			_, err := s.EnsureJobs(c, "app", jobs, xxljob.EnsureOptions{Prune: true})
			return err
		}
	}
	options := func(app string, o xxljob.EnsureOptions) func(ctx, sched) error {
		return func(c ctx, s sched) error { _, err := s.EnsureJobs(c, app, nil, o); return err }
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
		{"UpdateJob: duplicate key", update(with(func(j *xxljob.Job) { j.ID, j.Key = two, "one" })), xxljob.ErrDuplicateKey, []string{"key", `"one"`, fmt.Sprint(two)}},
		{"UpdateJob: version conflict", update(with(func(j *xxljob.Job) { j.ID, j.Key, j.Version = one, "one", 99 })), xxljob.ErrConflict, []string{fmt.Sprint("job ", one), "99"}},
		{"UpdateJob: unknown job", update(with(func(j *xxljob.Job) { j.ID = 77 })), xxljob.ErrNotFound, []string{"job 77"}},
		{"UpdateJob: no id", update(fresh), xxljob.ErrNotFound, []string{"job 0"}},
		{"UpdateJob: another app", update(with(func(j *xxljob.Job) { j.ID, j.App = one, "other" })), nil, []string{"App", "other", `"app"`}},
		{"EnsureJobs: one key twice", ensure(fresh, with(func(j *xxljob.Job) { j.Name = "again" })), xxljob.ErrDuplicateKey, []string{"Key", "three"}},
		{"EnsureJobs: another app", ensure(fresh, with(func(j *xxljob.Job) { j.App, j.Key = "other", "" })), nil, []string{"App", "other", `"app"`}},
		{"EnsureJobs: one key twice, once as a name", ensure(fresh, with(func(j *xxljob.Job) { j.Key, j.Name = "", "three" })), xxljob.ErrDuplicateKey, []string{"Key", "three", "job 1"}},
		{"EnsureJobs: negative generation", options("app", xxljob.EnsureOptions{Generation: -1}), nil, []string{"Generation", "-1", "zero"}},
		{"EnsureJobs: negative generation of a rollback", options("app", xxljob.EnsureOptions{Generation: -1, Rollback: true}), nil, []string{"Generation", "-1"}},
		{"EnsureJobs: a list of nothing for a bad app", options("a\x00b", xxljob.EnsureOptions{Prune: true}), nil, []string{"App", "NUL"}},
		{"EnsureJobs: all faults at once", ensure(with(func(j *xxljob.Job) { j.Route = "NORTH" }), with(func(j *xxljob.Job) { j.Key, j.Block = "4", "WALL" })),
			xxljob.ErrUnknownBlock, []string{"NORTH", "WALL", "three"}},

		{"StartJob: unknown job", func(c ctx, s sched) error { return s.StartJob(c, 77) }, xxljob.ErrNotFound, []string{"start", "job 77"}},
		{"StartJob: manual", func(c ctx, s sched) error { return s.StartJob(c, two) }, xxljob.ErrManual, []string{"start", fmt.Sprint("job ", two)}},
		{"StopJob: unknown job", func(c ctx, s sched) error { return s.StopJob(c, 77) }, xxljob.ErrNotFound, []string{"stop", "job 77"}},
		{"RemoveJob: unknown job", func(c ctx, s sched) error { return s.RemoveJob(c, 77) }, xxljob.ErrNotFound, []string{"remove", "job 77"}},
		{"Kill: unknown run", func(c ctx, s sched) error { return s.Kill(c, 77) }, xxljob.ErrNotFound, []string{"77"}},
		{"Wait: unknown run", func(c ctx, s sched) error { _, err := s.Wait(c, 77); return err }, xxljob.ErrNotFound, []string{"77"}},

		{"Trigger: unknown job", trigger(77, xxljob.Trigger{}), xxljob.ErrNotFound, []string{"job 77"}},
		{"Trigger: farther ahead than ids reach", trigger(one, xxljob.Trigger{At: time.Date(2059, 1, 1, 0, 0, 0, 0, time.UTC)}), nil, []string{"At", "2059-01-01", "before the year 2059"}},
		{"Trigger: year 10000", trigger(one, xxljob.Trigger{At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}), nil, []string{"At", "10000-01-01", "before the year 2059"}},
		{"Trigger: type of a schedule", trigger(one, xxljob.Trigger{Type: xxljob.TriggerCron}), nil, []string{"Type", "CRON", "MANUAL"}},
		{"Trigger: impossible part", trigger(one, xxljob.Trigger{Shard: xxljob.Sharding{Index: 5, Total: 2}}), nil, []string{"Shard", "5/2"}},
		{"Trigger: negative part", trigger(one, xxljob.Trigger{Shard: xxljob.Sharding{Index: -1, Total: 2}}), nil, []string{"Shard", "-1/2"}},
		{"Trigger: negative retries", trigger(one, xxljob.Trigger{Retries: &minus}), nil, []string{"Retries", "-1"}},
		{"Trigger: long parameter", trigger(one, xxljob.Trigger{Param: &long}), nil, []string{"Param", "65537 bytes"}},
		{"Trigger: long key", trigger(one, xxljob.Trigger{Key: long[:256]}), nil, []string{"Key", "256 bytes"}},

		{"SaveGroup: no app", group(xxljob.Group{Title: "title"}), nil, []string{"App", "empty"}},
		{"SaveGroup: bad address", group(xxljob.Group{App: "new", Manual: true, Addresses: []string{"ftp://host/"}}), nil, []string{"Addresses", "ftp://host/"}},
		{"SaveGroup: manual without addresses", group(xxljob.Group{App: "new", Manual: true}), nil, []string{"Addresses"}},
		{"SaveGroup: automatic with addresses", group(xxljob.Group{App: "new", Addresses: []string{"http://host/"}}), nil, []string{"Addresses", "http://host/"}},
		{"SaveGroup: an address twice", group(xxljob.Group{App: "new", Manual: true, Addresses: []string{"http://host/", "http://host/"}}), nil, []string{"Addresses", "http://host/"}},
		{"RemoveGroup: with jobs", func(c ctx, s sched) error { return s.RemoveGroup(c, "app") }, xxljob.ErrGroupInUse, []string{`"app"`}},
		{"RemoveGroup: unknown", func(c ctx, s sched) error { return s.RemoveGroup(c, "nobody") }, xxljob.ErrNotFound, []string{`"nobody"`}},

		{"Handle: no name", func(c ctx, s sched) error { return s.Handle("", stage.NothingToDo) }, nil, []string{"name"}},
		{"Handle: nil", func(c ctx, s sched) error { return s.Handle("new", nil) }, nil, []string{`"new"`, "nil"}},
		{"Handle: taken", func(c ctx, s sched) error { return s.Handle("work", stage.NothingToDo) }, nil, []string{`"work"`}},
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
