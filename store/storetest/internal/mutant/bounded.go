package mutant

import (
	"context"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// boundedMutants count runs in other ways, or forget a bound.
func boundedMutants() []Mutant {
	// counting makes Job.Runs of the job's schedule-born runs, as Job and Edit.Next tell it.
	counting := func(count func(j store.Job, born []store.Run) int) func(whole) any {
		return func(s whole) any {
			return &broken{st: s, jobOut: func(j store.Job) store.Job {
				runs, _ := s.Runs(context.Background(), store.RunFilter{JobID: j.ID, Limit: 1000})
				var born []store.Run
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
	number := func(runs []store.Run, of func(store.Run) bool) (n int) {
		for _, r := range runs {
			if of(r) {
				n++
			}
		}
		return n
	}
	cancelled := func(of func(store.Run) bool) func(j store.Job, born []store.Run) int {
		return func(j store.Job, born []store.Run) int {
			return j.Runs - number(born, func(r store.Run) bool { return r.State == store.StateCancelled && of(r) })
		}
	}
	forgetting := func(forget func(*store.Job)) func(whole) any {
		return func(s whole) any { return forgetsBounds{s, forget} }
	}
	return []Mutant{
		{"RecordsCount", counting(func(_ store.Job, born []store.Run) int { return len(born) }), []string{"Bounded/ClaimCountsPlannedRuns"}},
		{"CancelledRunsCount", counting(func(_ store.Job, born []store.Run) int {
			return number(born, func(r store.Run) bool { return r.State != store.StateSkipped })
		}), []string{"Bounded/ReplanTakesCancelledRunsOut", "Bounded/GivenBackToAStoppedJobIsTakenOut", "Bounded/AnotherScheduleBeginsAtZero"}},
		{"StartedRunsCount", counting(func(_ store.Job, born []store.Run) int {
			return number(born, func(r store.Run) bool { return !r.Started.IsZero() })
		}), []string{"Bounded/ClaimCountsPlannedRuns", "Bounded/WhatBecomesOfARunChangesNothing"}},
		{"KilledRunsAreTakenOut", counting(cancelled(func(r store.Run) bool { return r.Reason == "x" })),
			[]string{"Bounded/KillCountsUnlessTheJobIsStopped", "Bounded/WhatBecomesOfARunChangesNothing"}},
		{"PartsAreTakenOut", counting(cancelled(func(r store.Run) bool { return r.Sharding.Total > 0 })),
			[]string{"Bounded/PartsOfABroadcastAreNotTakenOut"}},
		{"FormerRunsAreTakenOut", counting(cancelled(func(r store.Run) bool { return r.Retries >= 0 })),
			[]string{"Bounded/RunsOfTheFormerScheduleAreNotTakenOut"}},
		{"NextSeesWhatWasPlanned", func(s whole) any { return countsLate{s} }, []string{"Bounded/ReplanTakesCancelledRunsOut"}},
		{"NotAfterIsForgotten", forgetting(func(j *store.Job) { j.NotAfter = time.Time{} }),
			[]string{"Bounded/BoundsAreKeptToTheMillisecond", "Bounded/NotRearmedAfterNotAfter", "Bounded/FinishedBySaysWhich", "Job/AddKeepsEveryField"}},
		{"MaxRunsIsForgotten", forgetting(func(j *store.Job) { j.MaxRuns = 0 }),
			[]string{"Bounded/ScanTellsTheCount", "Bounded/NotRearmedWhenAllRunsWereMade", "Bounded/FinishedBySaysWhich"}},
		{"FinishedWithoutSayingWhy", func(s whole) any {
			return &broken{st: s, jobOut: func(j store.Job) store.Job {
				if strings.HasPrefix(j.StopReason, store.StopFinished) {
					j.StopReason = store.StopFinished
				}
				return j
			}}
		}, []string{"Bounded/FinishedBySaysWhich"}},
		{"EditsFinishNothing", func(s whole) any { return hidesFinish{s} }, []string{"Bounded/ReplanWithoutNextFinishes"}},
	}
}

// forgetsBounds adds jobs without a bound.
type forgetsBounds struct {
	st     whole
	forget func(*store.Job)
}

func (f forgetsBounds) AddJob(ctx context.Context, job store.Job, first store.FirstInstant) (store.Job, error) {
	f.forget(&job)
	return f.st.AddJob(ctx, job, first)
}

// countsLate tells Edit.Next what the job had made before the edit.
type countsLate struct{ st whole }

func (c countsLate) EditJob(ctx context.Context, id int64, e store.Edit) (store.Job, error) {
	was, _ := c.st.Job(ctx, id)
	if next := e.Next; next != nil {
		e.Next = func(j store.Job, started, now time.Time) (time.Time, error) {
			j.Runs = was.Runs
			return next(j, started, now)
		}
	}
	return c.st.EditJob(ctx, id, e)
}

// hidesFinish returns of an edit the job that it would be if it went on.
type hidesFinish struct{ st whole }

func (h hidesFinish) EditJob(ctx context.Context, id int64, e store.Edit) (store.Job, error) {
	j, err := h.st.EditJob(ctx, id, e)
	if j.StopReason != "" {
		j.Stopped, j.StopReason = false, ""
	}
	return j, err
}
