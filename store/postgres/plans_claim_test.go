package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestAClaimOfRunsOfSeveralKinds: what a claim says of all of its runs, or leaves out where it is
// the same for all of them, is stored of each, and each job counts the runs that are made.
func TestAClaimOfRunsOfSeveralKinds(t *testing.T) {
	t.Parallel()
	a := own(t, open(t, postgres.Config{}), inc(t, "kinds"), 4)
	cron := func(at time.Time) store.NewRun {
		return store.NewRun{At: at, Type: store.TriggerCron, State: store.StatePlanned}
	}
	misfire := func(at time.Time) store.NewRun {
		return store.NewRun{At: at, Type: store.TriggerMisfire, State: store.StatePlanned, First: at.Add(-time.Minute), Last: at, Count: 2}
	}
	skipped := func(at time.Time) store.NewRun {
		return store.NewRun{At: at, Type: store.TriggerMisfire, State: store.StateSkipped, First: at, Last: at, Count: 1, Reason: "misfire"}
	}
	for name, kinds := range map[string][][]func(time.Time) store.NewRun{
		"of one kind":             {{cron, cron}, {cron}, {cron, cron, cron}},
		"of one kind, not cron":   {{misfire}, {misfire, misfire}},
		"of two kinds":            {{cron, misfire}, {misfire}, {cron}},
		"and a job without any":   {{cron}, {}, {misfire}},
		"and jobs with none last": {{cron, cron}, {}, {}},
		"and records":             {{skipped, cron}, {cron}, {skipped}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			var plans []store.Plan
			var want []string
			counts := map[int64]int{}
			for _, list := range kinds {
				job := a.job()
				p := a.plan(job)
				p.Runs = nil
				for k, kind := range list {
					n := kind(job.Next.Add(time.Duration(k) * time.Second))
					p.Runs = append(p.Runs, n)
					want = append(want, fmt.Sprint(job.ID, n.At, n.Type, n.State, n.First.UnixMilli(), n.Last.UnixMilli(), n.Count, n.Reason, p.Epoch))
					if !n.State.Ended() {
						counts[job.ID]++
					}
				}
				plans = append(plans, p)
			}
			runs, err := a.Claim(a.ctx, nil, plans)
			must(t, err)
			if len(runs) != len(want) {
				t.Fatalf("%d runs, want %d", len(runs), len(want))
			}
			for i := range runs {
				stored, err := a.Store.Run(a.ctx, runs[i].ID)
				must(t, err)
				for what, r := range map[string]store.Run{"answered": runs[i], "stored": stored} {
					if got := fmt.Sprint(r.JobID, r.Scheduled, r.Type, r.State, r.First.UnixMilli(), r.Last.UnixMilli(), r.Count, r.Reason, r.PlanEpoch); got != want[i] {
						t.Errorf("run %d, %s: %s, want %s", i, what, got, want[i])
					}
				}
			}
			for i := range plans {
				job, err := a.Job(a.ctx, plans[i].JobID)
				must(t, err)
				if job.Runs != counts[job.ID] || !job.Next.Equal(plans[i].Next) {
					t.Errorf("job %d: %d runs and next %v, want %d and %v", i, job.Runs, job.Next, counts[job.ID], plans[i].Next)
				}
			}
		})
	}
}
