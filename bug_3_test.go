package xxljob_test

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob"
)

// TestCatchUpOnceKeepsToMaxPlanned: with more than MaxPlanned runs waiting,
// further instants go into a skipped record with reason "backlog". The one run
// that catches up for late instants asks for no room: each late scan plans one
// more, without bound. (FIRE_ONCE_NOW does ask.)
func TestCatchUpOnceKeepsToMaxPlanned(t *testing.T) {
	p := xxljob.Planner{Now: planNow, Before: planNow.Add(5 * time.Second), Threshold: 15 * time.Second, CatchUp: xxljob.CatchUpOnce, MaxPlanned: 10}
	job := xxljob.Job{Schedule: xxljob.Cron("* * * * * ?"), Next: planNow.Add(-3 * time.Second)}
	plan := p.Plan(&xxljob.DueJob{Job: job, Waiting: 1_000_000}, 1)
	for _, r := range plan.Runs {
		if r.State == xxljob.StatePlanned {
			t.Errorf("planned beside 1,000,000 waiting runs: %s", planText(r))
		}
	}
}
