package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/engine/plan"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// TestInstantsWithinBounds: both bounds belong to the schedule; a rate keeps its usual
// instants, and a delay begins at NotBefore at the soonest.
func TestInstantsWithinBounds(t *testing.T) {
	noon := planNow
	clock := func(text string) time.Time { return clockTime(t, text) }
	far := time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)
	every := func(d time.Duration) schedule.Schedule { return schedule.FixedRate(d) }
	for _, tt := range []struct {
		name          string
		schedule      schedule.Schedule
		before, after time.Time
		want          time.Time
	}{
		{"cron, no bounds", schedule.Cron("0 * * * * ?"), time.Time{}, time.Time{}, clock("12:01:00")},
		{"cron, at NotBefore", schedule.Cron("0 * * * * ?"), clock("12:05:00"), time.Time{}, clock("12:05:00")},
		{"cron, behind NotBefore", schedule.Cron("0 * * * * ?"), clock("12:05:00.001"), time.Time{}, clock("12:06:00")},
		{"cron, NotBefore is past", schedule.Cron("0 * * * * ?"), clock("11:00:00"), time.Time{}, clock("12:01:00")},
		{"cron, at NotAfter", schedule.Cron("0 * * * * ?"), time.Time{}, clock("12:01:00"), clock("12:01:00")},
		{"cron, behind NotAfter", schedule.Cron("0 * * * * ?"), time.Time{}, clock("12:00:59.999"), time.Time{}},
		{"cron, one instant", schedule.Cron("0 * * * * ?"), clock("12:05:00"), clock("12:05:00"), clock("12:05:00")},
		{"cron, none between", schedule.Cron("0 * * * * ?"), clock("12:05:00.001"), clock("12:05:59"), time.Time{}},
		{"crontab", schedule.Crontab("0 * * * *"), clock("14:00:00"), time.Time{}, clock("14:00:00")},
		{"rate, no bounds", every(90 * time.Second), time.Time{}, time.Time{}, clock("12:01:30")},
		{"rate, the first of its instants", every(90 * time.Second), clock("12:04:00"), time.Time{}, clock("12:04:30")},
		{"rate, at NotBefore", every(90 * time.Second), clock("12:04:30"), time.Time{}, clock("12:04:30")},
		{"rate, NotBefore before the first", every(90 * time.Second), clock("12:01:00"), time.Time{}, clock("12:01:30")},
		{"rate, in 7,000 years", every(time.Second), far, time.Time{}, far},
		{"rate, at NotAfter", every(90 * time.Second), time.Time{}, clock("12:01:30"), clock("12:01:30")},
		{"rate, behind NotAfter", every(90 * time.Second), time.Time{}, clock("12:01:29.999"), time.Time{}},
		{"delay, no bounds", schedule.FixedDelay(time.Minute), time.Time{}, time.Time{}, clock("12:01:00")},
		{"delay, NotBefore", schedule.FixedDelay(time.Minute), clock("12:05:00.007"), time.Time{}, clock("12:05:00.007")},
		{"delay, NotBefore before the first", schedule.FixedDelay(time.Minute), clock("12:00:30"), time.Time{}, clock("12:01:00")},
		{"delay, behind NotAfter", schedule.FixedDelay(time.Minute), time.Time{}, clock("12:00:59.999"), time.Time{}},
		{"once", schedule.At(clock("12:05:00")), clock("12:05:00"), clock("12:05:00"), clock("12:05:00")},
		{"once, before NotBefore", schedule.At(clock("12:05:00")), clock("12:05:00.001"), time.Time{}, time.Time{}},
		{"once, behind NotAfter", schedule.At(clock("12:05:00")), time.Time{}, clock("12:04:59.999"), time.Time{}},
		{"manual", schedule.Manual(), clock("12:05:00"), time.Time{}, time.Time{}},
	} {
		got, err := plan.InstantAfter(store.Job{Schedule: tt.schedule, NotBefore: tt.before, NotAfter: tt.after}, noon)
		if err != nil || !got.Equal(tt.want) {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
	for _, s := range []schedule.Schedule{schedule.Cron("bad"), {Type: schedule.TypeFixRate, Conf: "soon"}, {Type: "LUNAR"}} {
		if got, err := plan.InstantAfter(store.Job{Schedule: s, NotBefore: far, NotAfter: far}, noon); err == nil || !got.IsZero() {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
}

// TestInstantsInStep: a rate goes on from an instant of its own, be it past or to come, and
// a delay waits for the one that it has.
func TestInstantsInStep(t *testing.T) {
	clock := func(text string) time.Time { return clockTime(t, text) }
	for _, tt := range []struct {
		schedule           schedule.Schedule
		with, before, want string
	}{
		{schedule.FixedRate(time.Hour), "", "", "13:00:00"},
		{schedule.FixedRate(time.Hour), "12:00:00", "", "13:00:00"},
		{schedule.FixedRate(time.Hour), "12:20:00", "", "12:20:00"},
		{schedule.FixedRate(time.Hour), "13:20:00", "", "12:20:00"}, // what is planned was cancelled
		{schedule.FixedRate(time.Hour), "09:20:00", "", "12:20:00"},
		{schedule.FixedRate(time.Hour), "12:20:00", "12:20:00", "12:20:00"},
		{schedule.FixedRate(time.Hour), "12:20:00", "12:20:01", "13:20:00"},
		{schedule.FixedDelay(time.Hour), "", "", "13:00:00"},
		{schedule.FixedDelay(time.Hour), "12:20:00", "", "12:20:00"},
		{schedule.FixedDelay(time.Hour), "11:20:00", "", "13:00:00"},
		{schedule.FixedDelay(time.Hour), "12:20:00", "12:30:00", "12:30:00"},
		{schedule.Cron("0 0 * * * ?"), "12:20:00", "", "13:00:00"},
		{schedule.At(planNow.Add(time.Minute)), "12:20:00", "", "12:01:00"},
	} {
		job := store.Job{Schedule: tt.schedule, NotBefore: clock(tt.before)}
		got, err := plan.InstantInStep(job, clock(tt.with), planNow)
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
		schedule schedule.Schedule
		next     string
		until    string // NotAfter
		max      int    // MaxRuns
		made     int
		set      func(*store.Job)
		waiting  int // beside 10 that may
		want     []string
		wantNext string
		wait     bool
	}{
		{name: "NotAfter is behind the window", schedule: schedule.Cron(every2), next: "12:00:02", until: "12:00:06",
			want: []string{"CRON 12:00:02", "CRON 12:00:04"}, wantNext: "12:00:06"},
		{name: "NotAfter ends the window", schedule: schedule.Cron(every2), next: "12:00:02", until: "12:00:05",
			want: []string{"CRON 12:00:02", "CRON 12:00:04"}},
		{name: "the instant at NotAfter", schedule: schedule.FixedRate(1500 * time.Millisecond), next: "12:00:00.700", until: "12:00:02.200",
			want: []string{"FIX_RATE 12:00:00.7", "FIX_RATE 12:00:02.2"}},
		{name: "late instants before NotAfter are caught up", schedule: schedule.Cron(everySecond), next: "11:59:57", until: "11:59:58",
			want: []string{"CRON 11:59:57", "CRON 11:59:58"}},
		{name: "one run for late instants, up to NotAfter", schedule: schedule.Cron(everySecond), next: "11:59:55", until: "11:59:58",
			set:  func(j *store.Job) { j.CatchUp = store.CatchUpOnce },
			want: []string{"CRON 11:59:58 11:59:55..11:59:58 x4"}},
		{name: "missed instants end with NotAfter", schedule: schedule.Cron(every2), next: "11:59:40", until: "11:59:50",
			want: []string{"CRON 11:59:40 skipped 11:59:40..11:59:50 x6 misfire"}},
		{name: "missed instants of a rate end with NotAfter", schedule: schedule.FixedRate(4 * time.Second), next: "11:59:40", until: "11:59:50",
			want: []string{"FIX_RATE 11:59:40 skipped 11:59:40..11:59:48 x3 misfire"}},
		{name: "the run for missed instants stands for those up to NotAfter", schedule: schedule.FixedRate(4 * time.Second), next: "11:59:40", until: "11:59:50",
			set:  func(j *store.Job) { j.Misfire = store.MisfireFireOnceNow },
			want: []string{"MISFIRE 11:59:48 11:59:40..11:59:48 x3"}},
		{name: "more missed instants than are counted", schedule: schedule.Cron(everySecond), next: "11:00:00", until: "11:50:00.500",
			want: []string{"CRON 11:00:00 skipped 11:00:00..11:50:00.5 x1000 misfire"}},
		{name: "the record of a backlog ends with NotAfter", schedule: schedule.Cron(everySecond), next: "12:00:01", until: "12:00:03", waiting: 500,
			want: []string{"CRON 12:00:01 skipped 12:00:01..12:00:03 x3 backlog"}},
		{name: "a missed delay, and none comes before NotAfter", schedule: schedule.FixedDelay(10 * time.Second), next: "11:59:05", until: "12:00:09.999",
			want: []string{"FIX_DELAY 11:59:05 skipped 11:59:05..11:59:55 x6 misfire"}},
		{name: "a missed delay, and one comes at NotAfter", schedule: schedule.FixedDelay(10 * time.Second), next: "11:59:05", until: "12:00:10",
			want: []string{"FIX_DELAY 11:59:05 skipped 11:59:05..11:59:55 x6 misfire"}, wantNext: "12:00:10"},

		{name: "more are left than the window has", schedule: schedule.Cron(every2), next: "12:00:02", max: 10, made: 7,
			want: []string{"CRON 12:00:02", "CRON 12:00:04"}, wantNext: "12:00:06"},
		{name: "the window's are the last", schedule: schedule.Cron(every2), next: "12:00:02", max: 9, made: 7,
			want: []string{"CRON 12:00:02", "CRON 12:00:04"}},
		{name: "the last one", schedule: schedule.FixedRate(time.Second), next: "12:00:02", max: 1,
			want: []string{"FIX_RATE 12:00:02"}},
		{name: "fewer are left than are late: no record of the rest", schedule: schedule.Cron(everySecond), next: "11:59:55", max: 3,
			want: []string{"CRON 11:59:55", "CRON 11:59:56", "CRON 11:59:57"}},
		{name: "one run for several instants counts once", schedule: schedule.Cron(every2), next: "11:59:54", max: 2,
			set:  func(j *store.Job) { j.CatchUp = store.CatchUpOnce },
			want: []string{"CRON 12:00:00 11:59:54..12:00:00 x4", "CRON 12:00:02"}},
		{name: "a record counts nothing", schedule: schedule.Cron(every2), next: "11:59:40", max: 1,
			want: []string{"CRON 11:59:40 skipped 11:59:40..12:00:00 x11 misfire", "CRON 12:00:02"}},
		{name: "a MISFIRE run counts", schedule: schedule.Cron(every2), next: "11:59:40", max: 1,
			set:  func(j *store.Job) { j.Misfire = store.MisfireFireOnceNow },
			want: []string{"MISFIRE 12:00:00 11:59:40..12:00:00 x11"}},
		{name: "a backlog counts nothing", schedule: schedule.Cron(everySecond), next: "12:00:01", max: 1, waiting: 500,
			want: []string{"CRON 12:00:01 skipped 12:00:01..12:00:05 x5 backlog"}, wantNext: "12:00:06"},
		{name: "no record of a backlog behind the last run", schedule: schedule.Cron(everySecond), next: "12:00:01", max: 3, waiting: 12,
			want: []string{"CRON 12:00:01", "CRON 12:00:02", "CRON 12:00:03"}},
		{name: "the last delay is waited for", schedule: schedule.FixedDelay(time.Second), next: "12:00:01", max: 5, made: 4,
			want: []string{"FIX_DELAY 12:00:01"}, wait: true},

		{name: "all are made, and it is due all the same", schedule: schedule.Cron(everySecond), next: "12:00:01", max: 3, made: 3},
		{name: "more were made than there are", schedule: schedule.Cron(everySecond), next: "11:00:00", max: 3, made: 5},
		{name: "it is due before NotBefore", schedule: schedule.Cron(every2), next: "12:00:02",
			set: func(j *store.Job) { j.NotBefore = planNow.Add(3 * time.Second) }, wantNext: "12:00:04"},
		{name: "it is due behind NotAfter", schedule: schedule.FixedDelay(time.Second), next: "12:00:02", until: "12:00:01"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			job := store.Job{ID: 7, Schedule: tt.schedule, Next: clockTime(t, tt.next), NotAfter: clockTime(t, tt.until), MaxRuns: tt.max, Runs: tt.made}
			if tt.set != nil {
				tt.set(&job)
			}
			p := plan.Planner{Now: planNow, Before: planNow.Add(5 * time.Second), Threshold: 15 * time.Second, CatchUp: store.CatchUpEvery, MaxPlanned: 10}
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
