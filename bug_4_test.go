package xxljob_test

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob"
)

// TestPlanStopsBrokenDelay: a schedule that fails to evaluate stops its job with
// a reason. A FixedDelay that cannot be read (it came by import, or another
// version wrote it) is run once all the same, and is then called finished.
func TestPlanStopsBrokenDelay(t *testing.T) {
	p := xxljob.Planner{Now: planNow, Before: planNow.Add(5 * time.Second), Threshold: 15 * time.Second, CatchUp: xxljob.CatchUpEvery, MaxPlanned: 1000}
	job := xxljob.Job{Schedule: xxljob.Schedule{Type: xxljob.ScheduleFixDelay, Conf: "soon"}, Next: planNow}
	if plan := p.Plan(&xxljob.DueJob{Job: job}, 1); plan.Stop == "" || len(plan.Runs) != 0 {
		t.Errorf("stop %q, runs %v", plan.Stop, plan.Runs)
	}
}
