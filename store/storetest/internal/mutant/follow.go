package mutant

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// followMutants break rules about what follows the end of a run.
func followMutants() []Mutant {
	result := func(change func(*store.Result)) func(whole) any {
		return func(s whole) any {
			return &broken{st: s, result: func(_ context.Context, r store.Result) store.Result { change(&r); return r }}
		}
	}
	start := func(change func(*store.Start)) func(whole) any {
		return func(s whole) any {
			return &broken{st: s, start: func(_ context.Context, st store.Start) store.Start { change(&st); return st }}
		}
	}
	tree := func(change func(runs []store.Run) []store.Run) func(whole) any {
		return func(s whole) any { return bentTree{s, change} }
	}
	next := func(change func(r *store.Run)) func(whole) any {
		return tree(func(runs []store.Run) []store.Run {
			for i := range runs {
				if runs[i].Type == store.TriggerRetry {
					change(&runs[i])
				}
			}
			return runs
		})
	}
	job := func(change func(*store.Job)) func(whole) any {
		return func(s whole) any { return bentJobs{s, change} }
	}
	return []Mutant{
		{"NothingFollows", result(func(r *store.Result) { r.NoRetry = true }),
			[]string{"Follow/AFailureIsFollowedByARetry", "Follow/EachOfABatchHasItsOwn", "Follow/EachPartOfABroadcastHasItsOwn", "Follow/RetriesOfTheTriggerWin"}},
		{"PermanentIsTriedAgain", result(func(r *store.Result) { r.NoRetry = false }), []string{"Follow/WhatHasNotFailedIsNot"}},
		{"KillsAreTriedAgain", result(func(r *store.Result) {
			if r.State == store.StateKilled {
				r.State = store.StateFailed
			}
		}), []string{"Follow/WhatHasNotFailedIsNot"}},
		{"TheHandlerIsNotHeard", result(func(r *store.Result) { r.After = 0 }), []string{"Follow/TheHandlersDelayComesFirst", "Follow/ASnoozedRunComesAgain"}},
		{"SnoozedIsDone", result(func(r *store.Result) {
			if r.State == store.StateSnoozed {
				r.State = store.StateSucceeded
			}
		}), []string{"Follow/ASnoozedRunComesAgain", "Follow/SnoozedOnceTooOftenHasFailed", "Follow/SnoozedRunsAreListedByTheirState"}},
		{"NoEndOfSnoozes", job(func(j *store.Job) { j.MaxSnoozes = 1000 }), []string{"Follow/SnoozedOnceTooOftenHasFailed"}},
		{"NoEndOfReruns", job(func(j *store.Job) { j.MaxReruns = 1000 }), []string{"Follow/LostRunsAreRunAgain"}},
		{"LostStaysLost", job(func(j *store.Job) { j.OnLost = "" }), []string{"Follow/LostRunsAreRunAgain"}},
		{"NoPauses", job(func(j *store.Job) { j.RetryBackoff = store.Backoff{} }), []string{"Follow/PausesAreThoseOfTheJob"}},
		{"PausesDoNotGrow", job(func(j *store.Job) { j.RetryBackoff.Max = 0 }), []string{"Follow/PausesAreThoseOfTheJob"}},
		{"OneRetryMore", job(func(j *store.Job) { j.Retries++ }), []string{"Follow/RetriesAreUsedUp", "Follow/ADelayWaitsForTheLastAttempt"}},
		{"RetriesForgetTheParameter", next(func(r *store.Run) { r.Param, r.ParamSet = "", false }), []string{"Follow/ARetryIsAskedForAsItsRunWas"}},
		{"RetriesForgetTheAddresses", next(func(r *store.Run) { r.Addresses = nil }), []string{"Follow/ARetryIsAskedForAsItsRunWas"}},
		{"RetriesForgetThePart", next(func(r *store.Run) { r.Sharding = store.Sharding{} }), []string{"Follow/EachPartOfABroadcastHasItsOwn"}},
		{"RetriesForgetWhatTheyStandFor", next(func(r *store.Run) { r.First, r.Last, r.Count = time.Time{}, time.Time{}, 0 }),
			[]string{"Follow/AFailureIsFollowedByARetry", "Follow/ARetryStandsForWhatItsRunStoodFor"}},
		{"RetriesAreNobodysBorn", next(func(r *store.Run) { r.Born = false }), []string{"Follow/AFailureIsFollowedByARetry"}},
		{"AttemptsAreNotCounted", next(func(r *store.Run) { r.Attempt = 1 }), []string{"Follow/RetriesAreUsedUp", "Follow/ARefusalIsFollowedByARetry"}},
		{"EveryRunPassesRetries", start(func(s *store.Start) { s.AfterRetries = false }), []string{"Follow/SerialRunsWaitForEarlierRetries"}},
		{"EveryRunWaitsForRetries", start(func(s *store.Start) {
			s.AfterRetries, s.Instant, s.TriggerID = true, time.Now().Add(time.Hour*9999), 1<<53-1
		}),
			[]string{"Follow/SerialRunsWaitForEarlierRetries"}},
		{"ATreeWithoutItsRoot", tree(func(runs []store.Run) []store.Run { return runs[min(1, len(runs)-1):] }), []string{"Follow/TreeHasTheTrigger"}},
		{"ATreeUpsideDown", tree(func(runs []store.Run) []store.Run { slices.Reverse(runs); return runs }), []string{"Follow/TreeHasTheTrigger"}},
		{"KillLeavesChainsAlone", func(s whole) any { return killsTheNamed{s} },
			[]string{"Follow/KillOfAnEndedRunKillsWhatFollows", "Follow/KillOfAPartLeavesTheOthers"}},
		{"BacklogCountsRetries", func(s whole) any { return countsRetries{s} }, []string{"Follow/WaitingRetriesAreNoBacklog"}},
	}
}

// bentTree changes what a trigger has.
type bentTree struct {
	st     whole
	change func([]store.Run) []store.Run
}

func (b bentTree) Tree(ctx context.Context, id int64) ([]store.Run, error) {
	runs, err := b.st.Tree(ctx, id)
	if len(runs) > 0 {
		runs = b.change(runs)
	}
	return runs, err
}

// bentJobs changes jobs that are added.
type bentJobs struct {
	st     whole
	change func(*store.Job)
}

func (b bentJobs) AddJob(ctx context.Context, job store.Job, first store.FirstInstant) (store.Job, error) {
	b.change(&job)
	return b.st.AddJob(ctx, job, first)
}

// killsTheNamed kills no run but that which is named.
type killsTheNamed struct{ st whole }

func (s killsTheNamed) Kill(ctx context.Context, id int64, reason string) (store.Run, error) {
	if run, err := s.st.Run(ctx, id); err == nil && run.State.Ended() {
		run.JobName, run.JobKey, run.Secret = "", "", false
		return run, nil
	}
	return s.st.Kill(ctx, id, reason)
}

// countsRetries takes runs that wait to be tried again for a backlog.
type countsRetries struct{ st whole }

func (s countsRetries) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (store.ScanResult, error) {
	r, err := s.st.Scan(ctx, dst, q)
	for i := range r.Jobs {
		runs, _ := s.st.Runs(ctx, store.RunFilter{JobID: r.Jobs[i].ID, States: []store.State{store.StatePlanned}})
		r.Jobs[i].Waiting = len(runs)
	}
	return r, err
}
