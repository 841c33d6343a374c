package xxljob_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// TestBoundsFaults: what is wrong with bounds is said with the field and its value.
func TestBoundsFaults(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2027, 1, n, 0, 0, 0, 0, time.UTC) }
	beyond := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		set  func(*xxljob.Job)
		want map[string]string // nothing: it is in order
	}{
		{"none", func(*xxljob.Job) {}, nil},
		{"all", func(j *xxljob.Job) { j.NotBefore, j.NotAfter, j.MaxRuns = day(1), day(2), 1<<31-1 }, nil},
		{"one instant", func(j *xxljob.Job) { j.NotBefore, j.NotAfter = day(1), day(1) }, nil},
		{"within a millisecond", func(j *xxljob.Job) { j.NotBefore, j.NotAfter = day(1).Add(2000), day(1).Add(1000) }, nil},
		{"the bounds of the bounds", func(j *xxljob.Job) {
			j.NotBefore, j.NotAfter = time.UnixMilli(1), beyond.Add(-time.Millisecond)
		}, nil},
		{"the wrong way round", func(j *xxljob.Job) { j.NotBefore, j.NotAfter = day(2), day(1) },
			map[string]string{"NotAfter": "before NotBefore, 2027-01-02T00:00:00Z"}},
		{"below zero", func(j *xxljob.Job) { j.MaxRuns = -1 }, map[string]string{"MaxRuns": `"-1"`}},
		{"too many", func(j *xxljob.Job) { j.MaxRuns = 1 << 31 }, map[string]string{"MaxRuns": "2147483648"}},
		{"too early", func(j *xxljob.Job) { j.NotBefore = time.UnixMilli(0) }, map[string]string{"NotBefore": "1970-01-01T00:00:00Z"}},
		{"too late", func(j *xxljob.Job) { j.NotBefore, j.NotAfter = beyond, beyond.AddDate(5, 0, 0) },
			map[string]string{"NotBefore": "10000-01-01", "NotAfter": "10005-01-01"}},
		{"nothing to bound", func(j *xxljob.Job) {
			j.Schedule, j.NotBefore, j.NotAfter, j.MaxRuns = xxljob.Manual(), day(1), day(2), 1
		}, map[string]string{"NotBefore": "no schedule", "NotAfter": "no schedule", "MaxRuns": "no schedule"}},
	} {
		j := stage.GoodJob()
		j.Schedule = xxljob.Cron("0 0 3 * * ?")
		tt.set(&j)
		if err := j.Validate(); tt.want == nil {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		} else {
			requireFaults(t, err, calledIn(j), tt.want)
		}
	}
}

// TestInstantsWithinBounds: both bounds belong to the schedule; a rate keeps its usual
// instants, and a delay begins at NotBefore at the soonest.
func TestInstantsWithinBounds(t *testing.T) {
	noon := planNow
	clock := func(text string) time.Time { return clockTime(t, text) }
	far := time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)
	every := func(d time.Duration) xxljob.Schedule { return xxljob.FixedRate(d) }
	for _, tt := range []struct {
		name          string
		schedule      xxljob.Schedule
		before, after time.Time
		want          time.Time
	}{
		{"cron, no bounds", xxljob.Cron("0 * * * * ?"), time.Time{}, time.Time{}, clock("12:01:00")},
		{"cron, at NotBefore", xxljob.Cron("0 * * * * ?"), clock("12:05:00"), time.Time{}, clock("12:05:00")},
		{"cron, behind NotBefore", xxljob.Cron("0 * * * * ?"), clock("12:05:00.001"), time.Time{}, clock("12:06:00")},
		{"cron, NotBefore is past", xxljob.Cron("0 * * * * ?"), clock("11:00:00"), time.Time{}, clock("12:01:00")},
		{"cron, at NotAfter", xxljob.Cron("0 * * * * ?"), time.Time{}, clock("12:01:00"), clock("12:01:00")},
		{"cron, behind NotAfter", xxljob.Cron("0 * * * * ?"), time.Time{}, clock("12:00:59.999"), time.Time{}},
		{"cron, one instant", xxljob.Cron("0 * * * * ?"), clock("12:05:00"), clock("12:05:00"), clock("12:05:00")},
		{"cron, none between", xxljob.Cron("0 * * * * ?"), clock("12:05:00.001"), clock("12:05:59"), time.Time{}},
		{"crontab", xxljob.Crontab("0 * * * *"), clock("14:00:00"), time.Time{}, clock("14:00:00")},
		{"rate, no bounds", every(90 * time.Second), time.Time{}, time.Time{}, clock("12:01:30")},
		{"rate, the first of its instants", every(90 * time.Second), clock("12:04:00"), time.Time{}, clock("12:04:30")},
		{"rate, at NotBefore", every(90 * time.Second), clock("12:04:30"), time.Time{}, clock("12:04:30")},
		{"rate, NotBefore before the first", every(90 * time.Second), clock("12:01:00"), time.Time{}, clock("12:01:30")},
		{"rate, in 7,000 years", every(time.Second), far, time.Time{}, far},
		{"rate, at NotAfter", every(90 * time.Second), time.Time{}, clock("12:01:30"), clock("12:01:30")},
		{"rate, behind NotAfter", every(90 * time.Second), time.Time{}, clock("12:01:29.999"), time.Time{}},
		{"delay, no bounds", xxljob.FixedDelay(time.Minute), time.Time{}, time.Time{}, clock("12:01:00")},
		{"delay, NotBefore", xxljob.FixedDelay(time.Minute), clock("12:05:00.007"), time.Time{}, clock("12:05:00.007")},
		{"delay, NotBefore before the first", xxljob.FixedDelay(time.Minute), clock("12:00:30"), time.Time{}, clock("12:01:00")},
		{"delay, behind NotAfter", xxljob.FixedDelay(time.Minute), time.Time{}, clock("12:00:59.999"), time.Time{}},
		{"once", xxljob.At(clock("12:05:00")), clock("12:05:00"), clock("12:05:00"), clock("12:05:00")},
		{"once, before NotBefore", xxljob.At(clock("12:05:00")), clock("12:05:00.001"), time.Time{}, time.Time{}},
		{"once, behind NotAfter", xxljob.At(clock("12:05:00")), time.Time{}, clock("12:04:59.999"), time.Time{}},
		{"manual", xxljob.Manual(), clock("12:05:00"), time.Time{}, time.Time{}},
	} {
		got, err := xxljob.InstantAfter(xxljob.Job{Schedule: tt.schedule, NotBefore: tt.before, NotAfter: tt.after}, noon)
		if err != nil || !got.Equal(tt.want) {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
	for _, s := range []xxljob.Schedule{xxljob.Cron("bad"), {Type: xxljob.ScheduleFixRate, Conf: "soon"}, {Type: "LUNAR"}} {
		if got, err := xxljob.InstantAfter(xxljob.Job{Schedule: s, NotBefore: far, NotAfter: far}, noon); err == nil || !got.IsZero() {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
}

// TestInstantsInStep: a rate goes on from an instant of its own, be it past or to come, and
// a delay waits for the one that it has.
func TestInstantsInStep(t *testing.T) {
	clock := func(text string) time.Time { return clockTime(t, text) }
	for _, tt := range []struct {
		schedule           xxljob.Schedule
		with, before, want string
	}{
		{xxljob.FixedRate(time.Hour), "", "", "13:00:00"},
		{xxljob.FixedRate(time.Hour), "12:00:00", "", "13:00:00"},
		{xxljob.FixedRate(time.Hour), "12:20:00", "", "12:20:00"},
		{xxljob.FixedRate(time.Hour), "13:20:00", "", "12:20:00"}, // what is planned was cancelled
		{xxljob.FixedRate(time.Hour), "09:20:00", "", "12:20:00"},
		{xxljob.FixedRate(time.Hour), "12:20:00", "12:20:00", "12:20:00"},
		{xxljob.FixedRate(time.Hour), "12:20:00", "12:20:01", "13:20:00"},
		{xxljob.FixedDelay(time.Hour), "", "", "13:00:00"},
		{xxljob.FixedDelay(time.Hour), "12:20:00", "", "12:20:00"},
		{xxljob.FixedDelay(time.Hour), "11:20:00", "", "13:00:00"},
		{xxljob.FixedDelay(time.Hour), "12:20:00", "12:30:00", "12:30:00"},
		{xxljob.Cron("0 0 * * * ?"), "12:20:00", "", "13:00:00"},
		{xxljob.At(planNow.Add(time.Minute)), "12:20:00", "", "12:01:00"},
	} {
		job := xxljob.Job{Schedule: tt.schedule, NotBefore: clock(tt.before)}
		got, err := xxljob.InstantInStep(job, clock(tt.with), planNow)
		if want := clock(tt.want); err != nil || !got.Equal(want) {
			t.Errorf("%v in step with %q, from %q on: %v, %v; want %v", tt.schedule, tt.with, tt.before, got, err, want)
		}
	}
}

// TestPlanBounded is the table of the planner for jobs with bounds, at noon, with the
// window and the threshold of TestPlan.
func TestPlanBounded(t *testing.T) {
	const everySecond, every2 = "* * * * * ?", "0/2 * * * * ?"
	for _, tt := range []struct {
		name     string
		schedule xxljob.Schedule
		next     string
		until    string // NotAfter
		max      int    // MaxRuns
		made     int
		set      func(*xxljob.Job)
		waiting  int // beside 10 that may
		want     []string
		wantNext string
		wait     bool
	}{
		{name: "NotAfter is behind the window", schedule: xxljob.Cron(every2), next: "12:00:02", until: "12:00:06",
			want: []string{"CRON 12:00:02", "CRON 12:00:04"}, wantNext: "12:00:06"},
		{name: "NotAfter ends the window", schedule: xxljob.Cron(every2), next: "12:00:02", until: "12:00:05",
			want: []string{"CRON 12:00:02", "CRON 12:00:04"}},
		{name: "the instant at NotAfter", schedule: xxljob.FixedRate(1500 * time.Millisecond), next: "12:00:00.700", until: "12:00:02.200",
			want: []string{"FIX_RATE 12:00:00.7", "FIX_RATE 12:00:02.2"}},
		{name: "late instants before NotAfter are caught up", schedule: xxljob.Cron(everySecond), next: "11:59:57", until: "11:59:58",
			want: []string{"CRON 11:59:57", "CRON 11:59:58"}},
		{name: "one run for late instants, up to NotAfter", schedule: xxljob.Cron(everySecond), next: "11:59:55", until: "11:59:58",
			set:  func(j *xxljob.Job) { j.CatchUp = xxljob.CatchUpOnce },
			want: []string{"CRON 11:59:58 11:59:55..11:59:58 x4"}},
		{name: "missed instants end with NotAfter", schedule: xxljob.Cron(every2), next: "11:59:40", until: "11:59:50",
			want: []string{"CRON 11:59:40 skipped 11:59:40..11:59:50 x6 misfire"}},
		{name: "missed instants of a rate end with NotAfter", schedule: xxljob.FixedRate(4 * time.Second), next: "11:59:40", until: "11:59:50",
			want: []string{"FIX_RATE 11:59:40 skipped 11:59:40..11:59:48 x3 misfire"}},
		{name: "the run for missed instants stands for those up to NotAfter", schedule: xxljob.FixedRate(4 * time.Second), next: "11:59:40", until: "11:59:50",
			set:  func(j *xxljob.Job) { j.Misfire = xxljob.MisfireFireOnceNow },
			want: []string{"MISFIRE 11:59:48 11:59:40..11:59:48 x3"}},
		{name: "more missed instants than are counted", schedule: xxljob.Cron(everySecond), next: "11:00:00", until: "11:50:00.500",
			want: []string{"CRON 11:00:00 skipped 11:00:00..11:50:00.5 x1000 misfire"}},
		{name: "the record of a backlog ends with NotAfter", schedule: xxljob.Cron(everySecond), next: "12:00:01", until: "12:00:03", waiting: 500,
			want: []string{"CRON 12:00:01 skipped 12:00:01..12:00:03 x3 backlog"}},
		{name: "a missed delay, and none comes before NotAfter", schedule: xxljob.FixedDelay(10 * time.Second), next: "11:59:05", until: "12:00:09.999",
			want: []string{"FIX_DELAY 11:59:05 skipped 11:59:05..11:59:55 x6 misfire"}},
		{name: "a missed delay, and one comes at NotAfter", schedule: xxljob.FixedDelay(10 * time.Second), next: "11:59:05", until: "12:00:10",
			want: []string{"FIX_DELAY 11:59:05 skipped 11:59:05..11:59:55 x6 misfire"}, wantNext: "12:00:10"},

		{name: "more are left than the window has", schedule: xxljob.Cron(every2), next: "12:00:02", max: 10, made: 7,
			want: []string{"CRON 12:00:02", "CRON 12:00:04"}, wantNext: "12:00:06"},
		{name: "the window's are the last", schedule: xxljob.Cron(every2), next: "12:00:02", max: 9, made: 7,
			want: []string{"CRON 12:00:02", "CRON 12:00:04"}},
		{name: "the last one", schedule: xxljob.FixedRate(time.Second), next: "12:00:02", max: 1,
			want: []string{"FIX_RATE 12:00:02"}},
		{name: "fewer are left than are late: no record of the rest", schedule: xxljob.Cron(everySecond), next: "11:59:55", max: 3,
			want: []string{"CRON 11:59:55", "CRON 11:59:56", "CRON 11:59:57"}},
		{name: "one run for several instants counts once", schedule: xxljob.Cron(every2), next: "11:59:54", max: 2,
			set:  func(j *xxljob.Job) { j.CatchUp = xxljob.CatchUpOnce },
			want: []string{"CRON 12:00:00 11:59:54..12:00:00 x4", "CRON 12:00:02"}},
		{name: "a record counts nothing", schedule: xxljob.Cron(every2), next: "11:59:40", max: 1,
			want: []string{"CRON 11:59:40 skipped 11:59:40..12:00:00 x11 misfire", "CRON 12:00:02"}},
		{name: "a MISFIRE run counts", schedule: xxljob.Cron(every2), next: "11:59:40", max: 1,
			set:  func(j *xxljob.Job) { j.Misfire = xxljob.MisfireFireOnceNow },
			want: []string{"MISFIRE 12:00:00 11:59:40..12:00:00 x11"}},
		{name: "a backlog counts nothing", schedule: xxljob.Cron(everySecond), next: "12:00:01", max: 1, waiting: 500,
			want: []string{"CRON 12:00:01 skipped 12:00:01..12:00:05 x5 backlog"}, wantNext: "12:00:06"},
		{name: "no record of a backlog behind the last run", schedule: xxljob.Cron(everySecond), next: "12:00:01", max: 3, waiting: 12,
			want: []string{"CRON 12:00:01", "CRON 12:00:02", "CRON 12:00:03"}},
		{name: "the last delay is waited for", schedule: xxljob.FixedDelay(time.Second), next: "12:00:01", max: 5, made: 4,
			want: []string{"FIX_DELAY 12:00:01"}, wait: true},

		{name: "all are made, and it is due all the same", schedule: xxljob.Cron(everySecond), next: "12:00:01", max: 3, made: 3},
		{name: "more were made than there are", schedule: xxljob.Cron(everySecond), next: "11:00:00", max: 3, made: 5},
		{name: "it is due before NotBefore", schedule: xxljob.Cron(every2), next: "12:00:02",
			set: func(j *xxljob.Job) { j.NotBefore = planNow.Add(3 * time.Second) }, wantNext: "12:00:04"},
		{name: "it is due behind NotAfter", schedule: xxljob.FixedDelay(time.Second), next: "12:00:02", until: "12:00:01"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			job := xxljob.Job{ID: 7, Schedule: tt.schedule, Next: clockTime(t, tt.next), NotAfter: clockTime(t, tt.until), MaxRuns: tt.max, Runs: tt.made}
			if tt.set != nil {
				tt.set(&job)
			}
			p := xxljob.Planner{Now: planNow, Before: planNow.Add(5 * time.Second), Threshold: 15 * time.Second, CatchUp: xxljob.CatchUpEvery, MaxPlanned: 10}
			plan := p.Plan(&store.DueJob{Job: job, Waiting: tt.waiting}, 5)
			var got []string
			for _, r := range plan.Runs {
				got = append(got, planText(r))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("runs:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			if want := clockTime(t, tt.wantNext); !plan.Next.Equal(want) || plan.Wait != tt.wait || plan.Stop != "" {
				t.Errorf("next %v, want %v; wait %t, want %t; stop %q", plan.Next, want, plan.Wait, tt.wait, plan.Stop)
			}
		})
	}
}

// TestDigestsWithoutBounds: a job that sets no bound has the digest that it had before
// there were any, so that an update of the library changes nothing; and each bound is part
// of the digest of a job that has it.
func TestDigestsWithoutBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := xxljob.New(withEveryJob{memory.New()}, xxljob.Config{App: "app", Logger: stage.QuietLog()})
		stage.Must(t, err)
		digest := func(j xxljob.Job) string {
			t.Helper()
			e, err := s.EnsureJob(t.Context(), j)
			stage.Must(t, err)
			return e.Job.Ensured
		}
		plain := xxljob.Job{Name: "plain", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?")}
		for want, j := range map[string]xxljob.Job{
			"7aeb42490b9bff1a25abe947e5419748": plain,
			"54506e2cb95dde44826a5236b7244858": {Name: "manual", Handler: "work"},
			"29c1a625a40c24c677b70c115a79b3c9": {
				App: "other", Key: "k", Name: "full", Author: "me", AlarmEmail: "me@example.com", Schedule: xxljob.Crontab("0 3 * * *").In("Asia/Shanghai"),
				Misfire: xxljob.MisfireFireOnceNow, CatchUp: xxljob.CatchUpOnce, Route: xxljob.RouteRound, Handler: "work", Param: "p", Block: xxljob.BlockCoverEarly,
				Timeout: 90 * time.Second, Retries: 3, Children: []int64{1, 2}, GlueType: "GLUE_SHELL", GlueSource: "echo", GlueRemark: "first",
			},
		} {
			if got := digest(j); got != want {
				t.Errorf("the digest of %q is %s, and was %s", j.Name, got, want)
			}
		}
		seen := map[string]bool{}
		at := time.Now().Add(time.Hour)
		for _, set := range []func(*xxljob.Job){
			func(*xxljob.Job) {},
			func(j *xxljob.Job) { j.NotBefore = at },
			func(j *xxljob.Job) { j.NotAfter = at.AddDate(1, 0, 0) },
			func(j *xxljob.Job) { j.MaxRuns = 3 },
		} {
			j := plain
			set(&j)
			d := digest(j)
			if seen[d] {
				t.Errorf("%+v has the digest of another definition", j)
			}
			seen[d] = true
			j.NotBefore, j.NotAfter = j.NotBefore.In(time.FixedZone("east", 3600)), j.NotAfter.Add(999)
			if j.NotAfter.Before(at) {
				j.NotAfter = time.Time{}
			}
			if again := digest(j); again != d {
				t.Errorf("%+v has another digest in another zone", j)
			}
		}
	})
}

// TestBoundsOverTheWire: a request knows nothing of bounds, so they stay, but for a job that
// it leaves without a schedule.
func TestBoundsOverTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElsewhere(t, nil, xxljob.Config{HTTP: xxljob.HTTPConfig{JobsAPI: []string{"far"}, Tokens: map[string][]string{"far": {"of-far"}}}},
			map[string]*peer{at1: {token: "of-far"}})
		until := time.Now().UTC().AddDate(1, 0, 0)
		job, err := e.AddJob(t.Context(), xxljob.Job{App: "far", Name: "nightly", Handler: "work", Schedule: xxljob.Crontab("@daily"), NotAfter: until, MaxRuns: 7})
		stage.Must(t, err)
		for _, kind := range []string{"CRON", "NONE"} {
			d := definition("nightly")
			if d.ScheduleType = kind; kind == "NONE" {
				d.ScheduleConf = ""
			}
			if ret := stage.Manage(t, e.admin, "far", "updateJob", wire.UpdateJobRequest{ID: job.ID, JobDefinition: d}); !ret.OK() {
				t.Errorf("%s: %+v", kind, ret)
			}
			got, err := e.store.Job(t.Context(), job.ID)
			stage.Must(t, err)
			if bounded := got.NotAfter.Equal(until) && got.MaxRuns == 7; bounded != (kind == "CRON") || string(got.Schedule.Type) != kind {
				t.Errorf("%s: %v, NotAfter %v, MaxRuns %d", kind, got.Schedule, got.NotAfter, got.MaxRuns)
			}
		}
	})
}

// withEveryJob is a store that has a job of every id that somebody asks for.
type withEveryJob struct{ xxljob.Store }

func (s withEveryJob) Jobs(ctx context.Context, f xxljob.JobFilter) (jobs []xxljob.Job, err error) {
	if len(f.IDs) == 0 {
		return s.Store.Jobs(ctx, f)
	}
	for _, id := range f.IDs {
		jobs = append(jobs, xxljob.Job{ID: id, App: "app", Key: fmt.Sprint("job ", id)})
	}
	return jobs, nil
}
