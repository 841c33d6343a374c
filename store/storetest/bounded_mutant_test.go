package storetest_test

import (
	"context"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
)

// boundedMutants count runs in other ways, or forget a bound.
func boundedMutants() []mutant {
	// counting makes Job.Runs of the job's schedule-born runs, as Job and Edit.Next tell it.
	counting := func(count func(j xxljob.Job, born []xxljob.Run) int) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, jobOut: func(j xxljob.Job) xxljob.Job {
				runs, _ := s.Runs(context.Background(), xxljob.RunFilter{JobID: j.ID, Limit: 1000})
				var born []xxljob.Run
				for _, r := range runs {
					if r.Type.ScheduleBorn() {
						born = append(born, r)
					}
				}
				j.Runs = count(j, born)
				return j
			}}
		}
	}
	number := func(runs []xxljob.Run, of func(xxljob.Run) bool) (n int) {
		for _, r := range runs {
			if of(r) {
				n++
			}
		}
		return n
	}
	cancelled := func(of func(xxljob.Run) bool) func(j xxljob.Job, born []xxljob.Run) int {
		return func(j xxljob.Job, born []xxljob.Run) int {
			return j.Runs - number(born, func(r xxljob.Run) bool { return r.State == xxljob.StateCancelled && of(r) })
		}
	}
	forgetting := func(forget func(*xxljob.Job)) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store { return forgetsBounds{s, forget} }
	}
	return []mutant{
		{"RecordsCount", counting(func(_ xxljob.Job, born []xxljob.Run) int { return len(born) }), []string{"Bounded/ClaimCountsPlannedRuns"}},
		{"CancelledRunsCount", counting(func(_ xxljob.Job, born []xxljob.Run) int {
			return number(born, func(r xxljob.Run) bool { return r.State != xxljob.StateSkipped })
		}), []string{"Bounded/ReplanTakesCancelledRunsOut", "Bounded/GivenBackToAStoppedJobIsTakenOut", "Bounded/AnotherScheduleBeginsAtZero"}},
		{"StartedRunsCount", counting(func(_ xxljob.Job, born []xxljob.Run) int {
			return number(born, func(r xxljob.Run) bool { return !r.Started.IsZero() })
		}), []string{"Bounded/ClaimCountsPlannedRuns", "Bounded/WhatBecomesOfARunChangesNothing"}},
		{"KilledRunsAreTakenOut", counting(cancelled(func(r xxljob.Run) bool { return r.Reason == "x" })),
			[]string{"Bounded/KillCountsUnlessTheJobIsStopped", "Bounded/WhatBecomesOfARunChangesNothing"}},
		{"PartsAreTakenOut", counting(cancelled(func(r xxljob.Run) bool { return r.Sharding.Total > 0 })),
			[]string{"Bounded/PartsOfABroadcastAreNotTakenOut"}},
		{"FormerRunsAreTakenOut", counting(cancelled(func(r xxljob.Run) bool { return r.Retries >= 0 })),
			[]string{"Bounded/RunsOfTheFormerScheduleAreNotTakenOut"}},
		{"NextSeesWhatWasPlanned", func(s xxljob.Store) xxljob.Store { return countsLate{s} }, []string{"Bounded/ReplanTakesCancelledRunsOut"}},
		{"NotAfterIsForgotten", forgetting(func(j *xxljob.Job) { j.NotAfter = time.Time{} }),
			[]string{"Bounded/BoundsAreKeptToTheMillisecond", "Bounded/NotRearmedAfterNotAfter", "Bounded/FinishedBySaysWhich", "Job/AddKeepsEveryField"}},
		{"MaxRunsIsForgotten", forgetting(func(j *xxljob.Job) { j.MaxRuns = 0 }),
			[]string{"Bounded/ScanTellsTheCount", "Bounded/NotRearmedWhenAllRunsWereMade", "Bounded/FinishedBySaysWhich"}},
		{"FinishedWithoutSayingWhy", func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, jobOut: func(j xxljob.Job) xxljob.Job {
				if strings.HasPrefix(j.StopReason, xxljob.StopFinished) {
					j.StopReason = xxljob.StopFinished
				}
				return j
			}}
		}, []string{"Bounded/FinishedBySaysWhich"}},
		{"EditsFinishNothing", func(s xxljob.Store) xxljob.Store { return hidesFinish{s} }, []string{"Bounded/ReplanWithoutNextFinishes"}},
	}
}

// forgetsBounds adds jobs without a bound.
type forgetsBounds struct {
	xxljob.Store
	forget func(*xxljob.Job)
}

func (f forgetsBounds) AddJob(ctx context.Context, job xxljob.Job, first xxljob.FirstInstant) (xxljob.Job, error) {
	f.forget(&job)
	return f.Store.AddJob(ctx, job, first)
}

// countsLate tells Edit.Next what the job had made before the edit.
type countsLate struct{ xxljob.Store }

func (c countsLate) EditJob(ctx context.Context, id int64, e xxljob.Edit) (xxljob.Job, error) {
	was, _ := c.Job(ctx, id)
	if next := e.Next; next != nil {
		e.Next = func(j xxljob.Job, started, now time.Time) (time.Time, error) {
			j.Runs = was.Runs
			return next(j, started, now)
		}
	}
	return c.Store.EditJob(ctx, id, e)
}

// hidesFinish returns of an edit the job that it would be if it went on.
type hidesFinish struct{ xxljob.Store }

func (h hidesFinish) EditJob(ctx context.Context, id int64, e xxljob.Edit) (xxljob.Job, error) {
	j, err := h.Store.EditJob(ctx, id, e)
	if j.StopReason != "" {
		j.Stopped, j.StopReason = false, ""
	}
	return j, err
}
