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

// TestPlanEveryMissed is the table of the planner for CatchUpEveryMissed, at noon, with a window of
// 5 s and a threshold of 15 s.
func TestPlanEveryMissed(t *testing.T) {
	const every2, everyMinute = "0/2 * * * * ?", "0 * * * * ?"
	for _, tt := range []struct {
		name     string
		schedule schedule.Schedule
		next     string
		most     int
		age      time.Duration
		set      func(*store.Job)
		waiting  int // beside 1,000 that may
		want     []string
		wantNext string
		wait     bool
	}{
		{name: "each, far behind the threshold", schedule: schedule.Cron(everyMinute), next: "11:57:00",
			want: []string{"CRON 11:57:00", "CRON 11:58:00", "CRON 11:59:00", "CRON 12:00:00"}, wantNext: "12:01:00"},
		{name: "nothing is late", schedule: schedule.Cron(every2), next: "12:00:02", most: 1,
			want: []string{"CRON 12:00:02", "CRON 12:00:04"}, wantNext: "12:00:06"},
		{name: "those ahead are no part of the number", schedule: schedule.Cron(every2), next: "11:59:58", most: 2,
			want: []string{"CRON 11:59:58", "CRON 12:00:00", "CRON 12:00:02", "CRON 12:00:04"}, wantNext: "12:00:06"},
		{name: "over the number: the latest", schedule: schedule.Cron(everyMinute), next: "11:30:00", most: 2,
			want: []string{"CRON 11:30:00 skipped 11:30:00..11:58:00 x29 misfire", "CRON 11:59:00", "CRON 12:00:00"}, wantNext: "12:01:00"},
		{name: "over the number by one", schedule: schedule.Cron(everyMinute), next: "11:58:00", most: 2,
			want: []string{"CRON 11:58:00 skipped 11:58:00..11:58:00 x1 misfire", "CRON 11:59:00", "CRON 12:00:00"}, wantNext: "12:01:00"},
		{name: "the number holds for what is late by less than the threshold", schedule: schedule.Cron(every2), next: "11:59:50", most: 1,
			want: []string{"CRON 11:59:50 skipped 11:59:50..11:59:58 x5 misfire", "CRON 12:00:00", "CRON 12:00:02", "CRON 12:00:04"}, wantNext: "12:00:06"},
		{name: "over the age", schedule: schedule.Cron(everyMinute), next: "11:30:00", age: 2 * time.Minute,
			want: []string{"CRON 11:30:00 skipped 11:30:00..11:57:00 x28 misfire", "CRON 11:58:00", "CRON 11:59:00", "CRON 12:00:00"}, wantNext: "12:01:00"},
		{name: "all are over the age", schedule: schedule.Cron("30 0/10 * * * ?"), next: "11:30:30", age: time.Minute,
			want: []string{"CRON 11:30:30 skipped 11:30:30..11:50:30 x3 misfire"}, wantNext: "12:00:30"},
		{name: "one run for those over the bounds", schedule: schedule.Cron(everyMinute), next: "11:30:00", most: 2, age: time.Hour,
			set:  func(j *store.Job) { j.Misfire = store.MisfireFireOnceNow },
			want: []string{"MISFIRE 11:58:00 11:30:00..11:58:00 x29", "CRON 11:59:00", "CRON 12:00:00"}, wantNext: "12:01:00"},
		{name: "a rate keeps its phase", schedule: schedule.FixedRate(90 * time.Second), next: "11:30:30",
			want: []string{"FIX_RATE 11:30:30 skipped 11:30:30..11:57:30 x19 misfire", "FIX_RATE 11:59:00"}, wantNext: "12:00:30",
			set: func(j *store.Job) { j.CatchUpMost = 1 }},
		{name: "far too many wait", schedule: schedule.Cron("0/2 * * * * ?"), next: "11:59:00", waiting: 9000,
			want: []string{"CRON 11:59:00 skipped 11:59:00..12:00:00 x31 misfire", "CRON 12:00:02 skipped 12:00:02..12:00:04 x2 backlog"}, wantNext: "12:00:06"},
		{name: "a rate over the age", schedule: schedule.FixedRate(90 * time.Second), next: "11:30:30", age: 3 * time.Minute,
			want: []string{"FIX_RATE 11:30:30 skipped 11:30:30..11:56:00 x18 misfire", "FIX_RATE 11:57:30", "FIX_RATE 11:59:00"}, wantNext: "12:00:30"},
		{name: "a delay has one", schedule: schedule.FixedDelay(time.Minute), next: "11:30:30", most: 5,
			want: []string{"FIX_DELAY 11:30:30"}, wait: true},
		{name: "a delay that is too old", schedule: schedule.FixedDelay(time.Minute), next: "11:30:30", age: 3 * time.Minute,
			want: []string{"FIX_DELAY 11:30:30 skipped 11:30:30..11:59:30 x30 misfire"}, wantNext: "12:01:00"},
		{name: "once", schedule: schedule.At(planNow.Add(-time.Hour)), next: "11:00:00", want: []string{"ONCE 11:00:00"}},
		{name: "NotAfter ends them", schedule: schedule.Cron(everyMinute), next: "11:30:00", most: 2,
			set:  func(j *store.Job) { j.NotAfter = planNow.Add(-10*time.Minute + time.Second) },
			want: []string{"CRON 11:30:00 skipped 11:30:00..11:48:00 x19 misfire", "CRON 11:49:00", "CRON 11:50:00"}},
		{name: "a rate ends with NotAfter", schedule: schedule.FixedRate(time.Minute), next: "11:30:00", most: 2,
			set:  func(j *store.Job) { j.NotAfter = planNow.Add(-10*time.Minute + time.Second) },
			want: []string{"FIX_RATE 11:30:00 skipped 11:30:00..11:48:00 x19 misfire", "FIX_RATE 11:49:00", "FIX_RATE 11:50:00"}},
		{name: "MaxRuns ends them", schedule: schedule.Cron(everyMinute), next: "11:55:00",
			set:  func(j *store.Job) { j.MaxRuns = 2 },
			want: []string{"CRON 11:55:00", "CRON 11:56:00"}},
		{name: "many wait already", schedule: schedule.Cron(every2), next: "11:30:00", waiting: 998,
			want:     []string{"CRON 11:30:00 skipped 11:30:00..11:59:56 x899 misfire", "CRON 11:59:58", "CRON 12:00:00", "CRON 12:00:02", "CRON 12:00:04"},
			wantNext: "12:00:06"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			job := store.Job{ID: 7, Schedule: tt.schedule, Next: clockTime(t, tt.next), CatchUp: store.CatchUpEveryMissed, CatchUpMost: tt.most, CatchUpAge: tt.age}
			if tt.set != nil {
				tt.set(&job)
			}
			p := plan.Planner{Now: planNow, Before: planNow.Add(5 * time.Second), Threshold: 15 * time.Second, CatchUp: store.CatchUpOnce, MaxPlanned: 1000}
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

// TestPlanAMillionMissed: however many were missed, a plan has no more runs than the job's number, one
// record, and those of the window, and its cost does not grow with how many there were.
func TestPlanAMillionMissed(t *testing.T) {
	for _, schedule := range []schedule.Schedule{schedule.Cron("* * * * * ?"), schedule.FixedRate(time.Second), schedule.Cron("* * * * * ?").In("America/New_York")} {
		for _, age := range []time.Duration{0, 12 * 24 * time.Hour} {
			job := store.Job{ID: 7, Schedule: schedule, Next: planNow.Add(-1_000_000 * time.Second), CatchUp: store.CatchUpEveryMissed, CatchUpMost: 1000, CatchUpAge: age}
			p := plan.Planner{Now: planNow, Before: planNow.Add(5 * time.Second), Threshold: 15 * time.Second, MaxPlanned: 1000}
			made := p.Plan(&store.DueJob{Job: job}, 5)
			if n := len(made.Runs); n != 1+1000+5 || made.Runs[0].State != store.StateSkipped || made.Runs[0].Count != store.CountCap || !made.Next.Equal(planNow.Add(6*time.Second)) {
				t.Fatalf("%v: %d runs, the first %+v, next %v, stop %q", schedule, n, made.Runs[0], made.Next, made.Stop)
			}
			for i, r := range made.Runs[1:] {
				if want := planNow.Add(time.Duration(i-999) * time.Second); !r.At.Equal(want) || r.State != store.StatePlanned || r.Count != 0 {
					t.Fatalf("%v: run %d is %+v, want %v", schedule, i, r, want)
				}
			}
			if last := made.Runs[0].Last; !last.Before(made.Runs[1].At) {
				t.Errorf("%v: the record ends at %v", schedule, last)
			}
			if n := testing.AllocsPerRun(3, func() { p.Plan(&store.DueJob{Job: job}, 5) }); n > 3000 { // a rate is read for each run
				t.Errorf("%v: a plan allocates %v times", schedule, n)
			}
		}
	}
}
