package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/engine/plan"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// planNow is the moment of the planning tests: 12:00:00 on a Wednesday.
var planNow = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// clockTime reads "11:59:58.500" as a time of planNow's day; "" is none.
func clockTime(t *testing.T, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse("2006-01-02 15:04:05", planNow.Format("2006-01-02 ")+text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// planText writes a run of a plan as one line: type, instant, and for records
// state, span, count and reason.
func planText(r store.NewRun) string {
	clock := func(at time.Time) string { return at.Format("15:04:05.999") }
	text := string(r.Type) + " " + clock(r.At)
	if r.State != store.StatePlanned {
		text += " " + r.State.String()
	}
	if r.Count != 0 {
		text += fmt.Sprintf(" %s..%s x%d", clock(r.First), clock(r.Last), r.Count)
	}
	return strings.TrimSpace(text + " " + r.Reason)
}

// TestPlan is the table of the planner, with a pre-read of 5 s, a threshold of
// 15 s and room for 1,000 runs unless the row says otherwise.
func TestPlan(t *testing.T) {
	const everySecond, every2 = "* * * * * ?", "0/2 * * * * ?"
	for _, tt := range []struct {
		name     string
		schedule schedule.Schedule
		next     string
		misfire  store.Misfire
		catchUp  store.CatchUp
		max      int
		waiting  int
		want     []string
		wantNext string
		wait     bool
	}{
		{
			name: "later instants of the window, the last one included", schedule: schedule.Cron(every2), next: "12:00:02",
			want: []string{"CRON 12:00:02", "CRON 12:00:04"}, wantNext: "12:00:06",
		},
		{
			name: "an instant at the window's end belongs to it", schedule: schedule.Cron("5 * * * * ?"), next: "12:00:05",
			want: []string{"CRON 12:00:05"}, wantNext: "12:01:05",
		},
		{
			name: "an instant behind the window waits", schedule: schedule.Cron("6 * * * * ?"), next: "12:00:06",
			wantNext: "12:00:06",
		},
		{
			name: "due now is not late", schedule: schedule.Cron(every2), next: "12:00:00",
			want: []string{"CRON 12:00:00", "CRON 12:00:02", "CRON 12:00:04"}, wantNext: "12:00:06",
		},
		{
			name: "crontab", schedule: schedule.Crontab("* * * * *"), next: "12:00:00",
			want: []string{"CRON 12:00:00"}, wantNext: "12:01:00",
		},
		{
			name: "fixed rate keeps its phase", schedule: schedule.FixedRate(1500 * time.Millisecond), next: "12:00:00.700",
			want: []string{"FIX_RATE 12:00:00.7", "FIX_RATE 12:00:02.2", "FIX_RATE 12:00:03.7"}, wantNext: "12:00:05.200",
		},

		// Late by no more than the threshold.
		{
			name: "catch up every", schedule: schedule.Cron(everySecond), next: "11:59:58",
			want: []string{
				"CRON 11:59:58", "CRON 11:59:59", "CRON 12:00:00", "CRON 12:00:01",
				"CRON 12:00:02", "CRON 12:00:03", "CRON 12:00:04", "CRON 12:00:05",
			}, wantNext: "12:00:06",
		},
		{
			name: "late by the threshold exactly is caught up", schedule: schedule.Cron("0/15 * * * * ?"), next: "11:59:45",
			want: []string{"CRON 11:59:45", "CRON 12:00:00"}, wantNext: "12:00:15",
		},
		{
			name: "catch up once, as XXL-JOB", schedule: schedule.Cron(every2), next: "11:59:54", catchUp: store.CatchUpOnce,
			want: []string{"CRON 12:00:00 11:59:54..12:00:00 x4", "CRON 12:00:02", "CRON 12:00:04"}, wantNext: "12:00:06",
		},
		{
			name: "catch up once with one late instant is an ordinary run", schedule: schedule.Cron("58 * * * * ?"), next: "11:59:58",
			catchUp: store.CatchUpOnce, want: []string{"CRON 11:59:58"}, wantNext: "12:00:58",
		},
		{
			name: "catch up once of a fixed rate", schedule: schedule.FixedRate(2 * time.Second), next: "11:59:55", catchUp: store.CatchUpOnce,
			want: []string{"FIX_RATE 11:59:59 11:59:55..11:59:59 x3", "FIX_RATE 12:00:01", "FIX_RATE 12:00:03", "FIX_RATE 12:00:05"}, wantNext: "12:00:07",
		},

		// Later than the threshold.
		{
			name: "misfire: do nothing", schedule: schedule.Cron(every2), next: "11:59:40",
			want:     []string{"CRON 11:59:40 skipped 11:59:40..12:00:00 x11 misfire", "CRON 12:00:02", "CRON 12:00:04"},
			wantNext: "12:00:06",
		},
		{
			name: "misfire: a millisecond over the threshold", schedule: schedule.FixedRate(20 * time.Second), next: "11:59:44.999",
			want: []string{"FIX_RATE 11:59:44.999 skipped 11:59:44.999..11:59:44.999 x1 misfire", "FIX_RATE 12:00:04.999"}, wantNext: "12:00:24.999",
		},
		{
			name: "misfire: fire once now", schedule: schedule.Cron(every2), next: "11:59:40", misfire: store.MisfireFireOnceNow,
			want:     []string{"MISFIRE 12:00:00 11:59:40..12:00:00 x11", "CRON 12:00:02", "CRON 12:00:04"},
			wantNext: "12:00:06",
		},
		{
			name: "misfire of a cron: counted up to at least 1,000, to the span's end", schedule: schedule.Cron("0/7 * * * * ?"), next: "08:00:00",
			want:     []string{"CRON 08:00:00 skipped 08:00:00..12:00:00 x1000 misfire"},
			wantNext: "12:00:07",
		},
		{
			name: "misfire of a fixed rate: exact ends however long", schedule: schedule.FixedRate(7 * time.Second), next: "08:00:02",
			want:     []string{"FIX_RATE 08:00:02 skipped 08:00:02..11:59:54 x1000 misfire", "FIX_RATE 12:00:01"},
			wantNext: "12:00:08",
		},
		{
			name: "misfire of a fixed rate: exact count below the cap", schedule: schedule.FixedRate(time.Minute), next: "10:00:30",
			want: []string{"FIX_RATE 10:00:30 skipped 10:00:30..11:59:30 x120 misfire"}, wantNext: "12:00:30",
		},

		// Backlog.
		{
			name: "backlog: no room even for a window", schedule: schedule.Cron(everySecond), next: "12:00:01", max: 10, waiting: 15,
			want: []string{"CRON 12:00:01 skipped 12:00:01..12:00:05 x5 backlog"}, wantNext: "12:00:06",
		},
		{
			name: "backlog: the room that is left is used", schedule: schedule.Cron(everySecond), next: "12:00:01", max: 10, waiting: 12,
			want: []string{
				"CRON 12:00:01", "CRON 12:00:02", "CRON 12:00:03",
				"CRON 12:00:04 skipped 12:00:04..12:00:05 x2 backlog",
			}, wantNext: "12:00:06",
		},
		{
			name: "backlog: runs planned ahead of their time are none", schedule: schedule.Cron(everySecond), next: "12:00:01", max: 1,
			want: []string{
				"CRON 12:00:01", "CRON 12:00:02", "CRON 12:00:03", "CRON 12:00:04", "CRON 12:00:05",
			}, wantNext: "12:00:06",
		},
		{
			name: "backlog of a fixed rate", schedule: schedule.FixedRate(time.Second), next: "12:00:00.500", max: 3, waiting: 500,
			want: []string{"FIX_RATE 12:00:00.5 skipped 12:00:00.5..12:00:04.5 x5 backlog"}, wantNext: "12:00:05.500",
		},

		// Fixed delay: one run, and then the job waits for its end.
		{
			name: "fixed delay waits for its run", schedule: schedule.FixedDelay(time.Second), next: "12:00:01",
			want: []string{"FIX_DELAY 12:00:01"}, wait: true,
		},
		{
			name: "fixed delay, a little late", schedule: schedule.FixedDelay(time.Second), next: "11:59:55",
			want: []string{"FIX_DELAY 11:59:55"}, wait: true,
		},
		{
			name: "fixed delay, missed: skipped, and the delay counts from now", schedule: schedule.FixedDelay(10 * time.Second), next: "11:59:05",
			want: []string{"FIX_DELAY 11:59:05 skipped 11:59:05..11:59:55 x6 misfire"}, wantNext: "12:00:10",
		},
		{
			name: "fixed delay, missed, fire once now", schedule: schedule.FixedDelay(10 * time.Second), next: "11:59:05", misfire: store.MisfireFireOnceNow,
			want: []string{"MISFIRE 11:59:55 11:59:05..11:59:55 x6"}, wait: true,
		},

		// Once.
		{
			name: "once", schedule: schedule.At(planNow.Add(3 * time.Second)), next: "12:00:03",
			want: []string{"ONCE 12:00:03"},
		},
		{
			name: "once, a little late", schedule: schedule.At(planNow.Add(-3 * time.Second)), next: "11:59:57",
			want: []string{"ONCE 11:59:57"},
		},
		{
			name: "once, missed", schedule: schedule.At(planNow.Add(-time.Minute)), next: "11:59:00",
			want: []string{"ONCE 11:59:00 skipped 11:59:00..11:59:00 x1 misfire"},
		},
		{
			name: "once, missed, fire once now", schedule: schedule.At(planNow.Add(-time.Minute)), next: "11:59:00", misfire: store.MisfireFireOnceNow,
			want: []string{"MISFIRE 11:59:00 11:59:00..11:59:00 x1"},
		},
		{
			name: "the last instant of a cron with years", schedule: schedule.Cron("2,4 0 12 1 7 ? 2026"), next: "12:00:02",
			want: []string{"CRON 12:00:02", "CRON 12:00:04"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := plan.Planner{Now: planNow, Before: planNow.Add(5 * time.Second), Threshold: 15 * time.Second, CatchUp: store.CatchUpEvery, MaxPlanned: 1000}
			if tt.max != 0 {
				p.MaxPlanned = tt.max
			}
			job := store.Job{ID: 7, Shard: 3, Version: 9, Schedule: tt.schedule, Next: clockTime(t, tt.next), Misfire: tt.misfire, CatchUp: tt.catchUp}
			plan := p.Plan(&store.DueJob{Job: job, Waiting: tt.waiting}, 5)
			var got []string
			for _, r := range plan.Runs {
				got = append(got, planText(r))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("runs:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			if want := clockTime(t, tt.wantNext); !plan.Next.Equal(want) {
				t.Errorf("next %v, want %v", plan.Next, want)
			}
			if plan.Wait != tt.wait || plan.Stop != "" {
				t.Errorf("wait %t, want %t; stop %q", plan.Wait, tt.wait, plan.Stop)
			}
			if plan.JobID != 7 || plan.Shard != 3 || plan.Epoch != 5 || plan.Version != 9 || !plan.Due.Equal(job.Next) {
				t.Errorf("the compare-and-set is on %+v", plan)
			}
		})
	}
}

// TestPlanOneFurther: of a job that comes round within a pre-read one instant more is
// planned than the window has, but none further than any node looks.
func TestPlanOneFurther(t *testing.T) {
	for _, tt := range []struct {
		name            string
		schedule        schedule.Schedule
		next            string
		window, preRead time.Duration
		waiting         int
		want            []string
		wantNext        string
	}{
		{"every second", schedule.Cron("* * * * * ?"), "12:00:04", 5 * time.Second, 5 * time.Second, 0,
			[]string{"CRON 12:00:04", "CRON 12:00:05", "CRON 12:00:06"}, "12:00:07"},
		{"every five seconds", schedule.FixedRate(5 * time.Second), "12:00:03", 5 * time.Second, 5 * time.Second, 0,
			[]string{"FIX_RATE 12:00:03", "FIX_RATE 12:00:08"}, "12:00:13"},
		{"every six seconds", schedule.FixedRate(6 * time.Second), "12:00:03", 5 * time.Second, 5 * time.Second, 0,
			[]string{"FIX_RATE 12:00:03"}, "12:00:09"},
		{"late", schedule.FixedRate(5 * time.Second), "11:59:57", 5 * time.Second, 5 * time.Second, 0,
			[]string{"FIX_RATE 11:59:57", "FIX_RATE 12:00:02", "FIX_RATE 12:00:07"}, "12:00:12"},
		{"once", schedule.At(planNow.Add(3 * time.Second)), "12:00:03", 5 * time.Second, 5 * time.Second, 0,
			[]string{"ONCE 12:00:03"}, ""},
		{"a delay", schedule.FixedDelay(time.Second), "12:00:03", 5 * time.Second, 5 * time.Second, 0,
			[]string{"FIX_DELAY 12:00:03"}, ""},
		{"as far as any node looks", schedule.FixedRate(10 * time.Second), "12:00:45", 55 * time.Second, 55 * time.Second, 0,
			[]string{"FIX_RATE 12:00:45", "FIX_RATE 12:00:55"}, "12:01:05"},
		{"a backlog", schedule.FixedRate(5 * time.Second), "12:00:03", 5 * time.Second, 5 * time.Second, 1000,
			[]string{"FIX_RATE 12:00:03", "FIX_RATE 12:00:08"}, "12:00:13"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := plan.Planner{Now: planNow, Before: planNow.Add(tt.window), PreRead: tt.preRead, Threshold: 15 * time.Second,
				CatchUp: store.CatchUpEvery, MaxPlanned: 1000}
			plan := p.Plan(&store.DueJob{Job: store.Job{ID: 7, Schedule: tt.schedule, Next: clockTime(t, tt.next)}, Waiting: tt.waiting}, 5)
			var got []string
			for _, r := range plan.Runs {
				got = append(got, planText(r))
			}
			if want := clockTime(t, tt.wantNext); !slices.Equal(got, tt.want) || !plan.Next.Equal(want) {
				t.Errorf("runs %v, next %v; want %v, %v", got, plan.Next, tt.want, want)
			}
		})
	}
}

// TestPlanJobOverridesCatchUp: Job.CatchUp takes the place of Config.CatchUp, in
// both directions.
func TestPlanJobOverridesCatchUp(t *testing.T) {
	for _, tt := range []struct {
		config, job store.CatchUp
		want        int // runs for four late instants
	}{
		{store.CatchUpEvery, "", 4},
		{store.CatchUpOnce, "", 1},
		{store.CatchUpEvery, store.CatchUpOnce, 1},
		{store.CatchUpOnce, store.CatchUpEvery, 4},
	} {
		p := plan.Planner{Now: planNow, Before: planNow, Threshold: 15 * time.Second, CatchUp: tt.config, MaxPlanned: 1000}
		plan := p.Plan(&store.DueJob{Job: store.Job{Schedule: schedule.Cron("* * * * * ?"), Next: planNow.Add(-3 * time.Second), CatchUp: tt.job}}, 1)
		if len(plan.Runs) != tt.want {
			t.Errorf("config %q, job %q: %d runs, want %d", tt.config, tt.job, len(plan.Runs), tt.want)
		}
	}
}

// TestPlanStopsBrokenSchedule: a schedule that cannot be evaluated stops its job
// with the error as reason and plans nothing, in time, late and missed.
func TestPlanStopsBrokenSchedule(t *testing.T) {
	for _, schedule := range []schedule.Schedule{
		schedule.Cron("bad"),
		schedule.Cron("* * * * * ?").In("Nowhere/Atlantis"),
		schedule.Crontab("61 * * * *"),
		{Type: schedule.TypeFixRate, Conf: "-1"},
		{Type: schedule.TypeOnce, Conf: "tomorrow"},
		{Type: "LUNAR", Conf: "full moon"},
		schedule.Cron(strings.Repeat("1,", 2000) + "1 * * * * ?"),
	} {
		for _, late := range []time.Duration{-time.Second, time.Second, time.Hour} {
			p := plan.Planner{Now: planNow, Before: planNow.Add(5 * time.Second), Threshold: 15 * time.Second, CatchUp: store.CatchUpEvery, MaxPlanned: 1000}
			job := store.Job{ID: 1, Version: 2, Schedule: schedule, Next: planNow.Add(-late)}
			plan := p.Plan(&store.DueJob{Job: job}, 1)
			if plan.Stop == "" || len(plan.Runs) != 0 || !plan.Next.IsZero() || plan.Wait {
				t.Errorf("%.40s, late by %v: %+v", schedule, late, plan)
			}
			if len(plan.Stop) > 410 {
				t.Errorf("%.40s: a reason of %d bytes", schedule, len(plan.Stop))
			}
		}
	}
}

// TestPlanCoversEveryInstant draws jobs at random: each instant from the oldest
// unplanned one to the window's end is in exactly one run or record, in order;
// the plan's next is the first instant after the window; and no more runs are
// planned than there is room for beside a window's worth. Instants outside of the
// job's bounds are in none, and none comes after the run that uses up MaxRuns.
func TestPlanCoversEveryInstant(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	plans := 4000
	if testing.Short() {
		plans /= 10 // it all happens on one goroutine
	}
	for i := range plans {
		p, job := randomPlan(r)
		plan := p.Plan(&job, 1)
		if err := checkPlan(p, job, plan); err != nil {
			t.Fatalf("seed %d, plan %d: %v\n%+v\n%+v\n%+v", seed, i, err, p, job, plan)
		}
	}
}

func randomPlan(r *rand.Rand) (plan.Planner, store.DueJob) {
	pick := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	now := planNow.Add(time.Duration(r.Int64N(int64(400 * 24 * time.Hour)))).Truncate(time.Millisecond)
	p := plan.Planner{
		Now: now, Before: now.Add(time.Duration(r.Int64N(int64(20 * time.Second)))).Truncate(time.Millisecond),
		Threshold: time.Duration(1+r.IntN(60)) * time.Second, CatchUp: store.CatchUp(pick("EVERY", "ONCE")), MaxPlanned: 1 + r.IntN(30),
	}
	var s schedule.Schedule
	switch r.IntN(5) {
	case 0:
		ms := 100 + r.IntN(5000)
		s = schedule.Schedule{Type: schedule.TypeFixRate, Conf: fmt.Sprintf("%d.%03d", ms/1000, ms%1000)}
	case 1:
		s = schedule.Crontab(pick("* * * * *", "*/7 2,3 * * *", "0 0 29 2 *", "@hourly"))
	case 2:
		s = schedule.At(now.Add(time.Duration(r.IntN(40)-30) * time.Second))
	default:
		s = schedule.Cron(pick("* * * * * ?", "0/3 * * * * ?", "1,2,3,58,59 * * * * ?", "0 30 2 * * ?", "0/20 0/2 * * * ?", "* * * ? * SUN", "0 0 0 1 1 ? 2026-2027"))
	}
	if s.GoesByClocks() {
		s = s.In(pick("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"))
	}
	// The oldest unplanned instant: a little ahead, or long ago.
	from := now.Add(time.Duration(r.Int64N(int64(30*time.Second))) - 15*time.Second)
	if r.IntN(3) == 0 {
		from = now.Add(-time.Duration(r.Int64N(int64(3 * time.Hour))))
	}
	next, _ := s.Next(from.Truncate(time.Millisecond))
	if next.IsZero() {
		next, _ = s.Next(time.Time{})
	}
	job := store.DueJob{Job: store.Job{ID: 1, Version: 1, Schedule: s, Next: next}, Waiting: r.IntN(60)}
	job.Misfire = store.Misfire(pick("DO_NOTHING", "FIRE_ONCE_NOW"))
	job.CatchUp = store.CatchUp(pick("", "EVERY", "ONCE"))
	if r.IntN(3) == 0 && !next.IsZero() {
		job.NotBefore = next.Add(-time.Duration(r.IntN(2000)) * time.Millisecond)
		job.NotAfter = next.Add(time.Duration(r.Int64N(int64(now.Sub(next).Abs()+20*time.Second))) / time.Millisecond * time.Millisecond)
	}
	if r.IntN(3) == 0 {
		job.Runs = r.IntN(100)
		job.MaxRuns = job.Runs + 1 + r.IntN(12)
	}
	return p, job
}

// checkPlan walks over the instants and the runs side by side.
func checkPlan(p plan.Planner, job store.DueJob, plan store.Plan) error {
	if plan.Stop != "" || plan.Wait {
		return fmt.Errorf("stop %q, wait %t", plan.Stop, plan.Wait)
	}
	at, planned := job.Next, 0
	// advance moves at over the instants up to and including end, and counts them.
	advance := func(end time.Time) (n int, err error) {
		for !at.IsZero() && !at.After(end) {
			n++
			if at, err = job.Schedule.Next(at); err != nil {
				return n, err
			}
			if !job.NotAfter.IsZero() && at.After(job.NotAfter) {
				at = time.Time{}
			}
		}
		return n, nil
	}
	for i, r := range plan.Runs {
		last := r.At
		if r.State == store.StatePlanned {
			planned++
		}
		if r.Count > 0 {
			last = r.Last
			if !r.First.Equal(at) {
				return fmt.Errorf("run %d begins at %v, the instant is %v", i, r.First, at)
			}
		} else if !r.At.Equal(at) {
			return fmt.Errorf("run %d is for %v, the instant is %v", i, r.At, at)
		}
		n, err := advance(last)
		if err != nil {
			return err
		}
		if want := min(max(r.Count, 1), store.CountCap); min(n, store.CountCap) != want {
			return fmt.Errorf("run %d counts %d, there are %d instants", i, r.Count, n)
		}
		if job.MaxRuns > 0 && job.Runs+planned == job.MaxRuns {
			at = time.Time{} // what comes after the last run does not exist
		}
	}
	if !plan.Next.Equal(at) {
		return fmt.Errorf("next is %v, the first instant not covered is %v", plan.Next, at)
	}
	if !at.IsZero() && !at.After(p.Before) {
		return fmt.Errorf("next %v is within the window", at)
	}
	ahead := int(p.Before.Sub(p.Now)/(100*time.Millisecond)) + 1
	if most := max(p.MaxPlanned-job.Waiting, 0) + ahead; planned > most {
		return fmt.Errorf("%d runs are planned, there is room for %d", planned, most)
	}
	return nil
}

// TestCatchUpOnceKeepsToMaxPlanned: the one run that catches up for late instants
// needs room like any other.
func TestCatchUpOnceKeepsToMaxPlanned(t *testing.T) {
	p := plan.Planner{Now: planNow, Before: planNow.Add(5 * time.Second), Threshold: 15 * time.Second, CatchUp: store.CatchUpOnce, MaxPlanned: 10}
	job := store.Job{Schedule: schedule.Cron("* * * * * ?"), Next: planNow.Add(-3 * time.Second)}
	plan := p.Plan(&store.DueJob{Job: job, Waiting: 1_000_000}, 1)
	for _, r := range plan.Runs {
		if r.State == store.StatePlanned {
			t.Errorf("planned beside 1,000,000 waiting runs: %s", planText(r))
		}
	}
}

// TestPlanStopsBrokenDelay: a FixedDelay that cannot be read stops its job before
// a run is planned, not after.
func TestPlanStopsBrokenDelay(t *testing.T) {
	p := plan.Planner{Now: planNow, Before: planNow.Add(5 * time.Second), Threshold: 15 * time.Second, CatchUp: store.CatchUpEvery, MaxPlanned: 1000}
	job := store.Job{Schedule: schedule.Schedule{Type: schedule.TypeFixDelay, Conf: "soon"}, Next: planNow}
	if plan := p.Plan(&store.DueJob{Job: job}, 1); plan.Stop == "" || len(plan.Runs) != 0 {
		t.Errorf("stop %q, runs %v", plan.Stop, plan.Runs)
	}
}

// TestOverdueBeyondItsBounds: a next instant that a node which knows nothing of bounds has set
// behind NotAfter is no instant, and leaves no record.
func TestOverdueBeyondItsBounds(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	job := store.Job{Schedule: schedule.FixedRate(time.Minute), Next: at.Add(10 * time.Minute), NotAfter: at}
	if record, missed := plan.OverdueOf(job, at.Add(20*time.Minute)); missed {
		t.Errorf("a record of %d instants, from %v to %v", record.Count, record.First, record.Last)
	}
	job.NotAfter = time.Time{}
	if record, missed := plan.OverdueOf(job, at.Add(20*time.Minute)); !missed || record.Count != 11 {
		t.Errorf("without bounds: a record of %d instants, %v; want 11", record.Count, missed)
	}
}
