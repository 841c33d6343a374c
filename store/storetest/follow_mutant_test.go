package storetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// followMutants break rules about what follows the end of a run.
func followMutants() []mutant {
	result := func(change func(*xxljob.Result)) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, result: func(_ context.Context, r xxljob.Result) xxljob.Result { change(&r); return r }}
		}
	}
	start := func(change func(*xxljob.Start)) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store {
			return &broken{Store: s, start: func(_ context.Context, st xxljob.Start) xxljob.Start { change(&st); return st }}
		}
	}
	tree := func(change func(runs []xxljob.Run) []xxljob.Run) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store { return bentTree{s, change} }
	}
	next := func(change func(r *xxljob.Run)) func(xxljob.Store) xxljob.Store {
		return tree(func(runs []xxljob.Run) []xxljob.Run {
			for i := range runs {
				if runs[i].Type == xxljob.TriggerRetry {
					change(&runs[i])
				}
			}
			return runs
		})
	}
	job := func(change func(*xxljob.Job)) func(xxljob.Store) xxljob.Store {
		return func(s xxljob.Store) xxljob.Store { return bentJobs{s, change} }
	}
	return []mutant{
		{"NothingFollows", result(func(r *xxljob.Result) { r.NoRetry = true }),
			[]string{"Follow/AFailureIsFollowedByARetry", "Follow/EachOfABatchHasItsOwn", "Follow/EachPartOfABroadcastHasItsOwn", "Follow/RetriesOfTheTriggerWin"}},
		{"PermanentIsTriedAgain", result(func(r *xxljob.Result) { r.NoRetry = false }), []string{"Follow/WhatHasNotFailedIsNot"}},
		{"KillsAreTriedAgain", result(func(r *xxljob.Result) {
			if r.State == xxljob.StateKilled {
				r.State = xxljob.StateFailed
			}
		}), []string{"Follow/WhatHasNotFailedIsNot"}},
		{"TheHandlerIsNotHeard", result(func(r *xxljob.Result) { r.After = 0 }), []string{"Follow/TheHandlersDelayComesFirst", "Follow/ASnoozedRunComesAgain"}},
		{"SnoozedIsDone", result(func(r *xxljob.Result) {
			if r.State == xxljob.StateSnoozed {
				r.State = xxljob.StateSucceeded
			}
		}), []string{"Follow/ASnoozedRunComesAgain", "Follow/SnoozedOnceTooOftenHasFailed", "Follow/SnoozedRunsAreListedByTheirState"}},
		{"NoEndOfSnoozes", job(func(j *xxljob.Job) { j.MaxSnoozes = 1000 }), []string{"Follow/SnoozedOnceTooOftenHasFailed"}},
		{"NoEndOfReruns", job(func(j *xxljob.Job) { j.MaxReruns = 1000 }), []string{"Follow/LostRunsAreRunAgain"}},
		{"LostStaysLost", job(func(j *xxljob.Job) { j.OnLost = "" }), []string{"Follow/LostRunsAreRunAgain"}},
		{"NoPauses", job(func(j *xxljob.Job) { j.RetryBackoff = xxljob.Backoff{} }), []string{"Follow/PausesAreThoseOfTheJob"}},
		{"PausesDoNotGrow", job(func(j *xxljob.Job) { j.RetryBackoff.Max = 0 }), []string{"Follow/PausesAreThoseOfTheJob"}},
		{"OneRetryMore", job(func(j *xxljob.Job) { j.Retries++ }), []string{"Follow/RetriesAreUsedUp", "Follow/ADelayWaitsForTheLastAttempt"}},
		{"RetriesForgetTheParameter", next(func(r *xxljob.Run) { r.Param, r.ParamSet = "", false }), []string{"Follow/ARetryIsAskedForAsItsRunWas"}},
		{"RetriesForgetTheAddresses", next(func(r *xxljob.Run) { r.Addresses = nil }), []string{"Follow/ARetryIsAskedForAsItsRunWas"}},
		{"RetriesForgetThePart", next(func(r *xxljob.Run) { r.Sharding = xxljob.Sharding{} }), []string{"Follow/EachPartOfABroadcastHasItsOwn"}},
		{"RetriesForgetWhatTheyStandFor", next(func(r *xxljob.Run) { r.First, r.Last, r.Count = time.Time{}, time.Time{}, 0 }),
			[]string{"Follow/AFailureIsFollowedByARetry", "Follow/ARetryStandsForWhatItsRunStoodFor"}},
		{"RetriesAreNobodysBorn", next(func(r *xxljob.Run) { r.Born = false }), []string{"Follow/AFailureIsFollowedByARetry"}},
		{"AttemptsAreNotCounted", next(func(r *xxljob.Run) { r.Attempt = 1 }), []string{"Follow/RetriesAreUsedUp", "Follow/ARefusalIsFollowedByARetry"}},
		{"EveryRunPassesRetries", start(func(s *xxljob.Start) { s.AfterRetries = false }), []string{"Follow/SerialRunsWaitForEarlierRetries"}},
		{"EveryRunWaitsForRetries", start(func(s *xxljob.Start) {
			s.AfterRetries, s.Instant, s.TriggerID = true, time.Now().Add(time.Hour*9999), 1<<53-1
		}),
			[]string{"Follow/SerialRunsWaitForEarlierRetries"}},
		{"ATreeWithoutItsRoot", tree(func(runs []xxljob.Run) []xxljob.Run { return runs[min(1, len(runs)-1):] }), []string{"Follow/TreeHasTheTrigger"}},
		{"ATreeUpsideDown", tree(func(runs []xxljob.Run) []xxljob.Run { slices.Reverse(runs); return runs }), []string{"Follow/TreeHasTheTrigger"}},
		{"KillLeavesChainsAlone", func(s xxljob.Store) xxljob.Store { return killsTheNamed{s} },
			[]string{"Follow/KillOfAnEndedRunKillsWhatFollows", "Follow/KillOfAPartLeavesTheOthers"}},
		{"BacklogCountsRetries", func(s xxljob.Store) xxljob.Store { return countsRetries{s} }, []string{"Follow/WaitingRetriesAreNoBacklog"}},
	}
}

// bentTree changes what a trigger has.
type bentTree struct {
	xxljob.Store
	change func([]xxljob.Run) []xxljob.Run
}

func (b bentTree) Tree(ctx context.Context, id int64) ([]xxljob.Run, error) {
	runs, err := b.Store.Tree(ctx, id)
	if len(runs) > 0 {
		runs = b.change(runs)
	}
	return runs, err
}

// bentJobs changes jobs that are added.
type bentJobs struct {
	xxljob.Store
	change func(*xxljob.Job)
}

func (b bentJobs) AddJob(ctx context.Context, job xxljob.Job, first xxljob.FirstInstant) (xxljob.Job, error) {
	b.change(&job)
	return b.Store.AddJob(ctx, job, first)
}

// killsTheNamed kills no run but that which is named.
type killsTheNamed struct{ xxljob.Store }

func (s killsTheNamed) Kill(ctx context.Context, id int64, reason string) (xxljob.Run, error) {
	if run, err := s.Run(ctx, id); err == nil && run.State.Ended() {
		run.JobName, run.JobKey = "", ""
		return run, nil
	}
	return s.Store.Kill(ctx, id, reason)
}

// countsRetries takes runs that wait to be tried again for a backlog.
type countsRetries struct{ xxljob.Store }

func (s countsRetries) Scan(ctx context.Context, dst xxljob.ScanResult, q store.ScanQuery) (xxljob.ScanResult, error) {
	r, err := s.Store.Scan(ctx, dst, q)
	for i := range r.Jobs {
		runs, _ := s.Runs(ctx, xxljob.RunFilter{JobID: r.Jobs[i].ID, States: []xxljob.State{xxljob.StatePlanned}})
		r.Jobs[i].Waiting = len(runs)
	}
	return r, err
}
