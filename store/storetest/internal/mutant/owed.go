package mutant

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// owedMutants break rules about what a success owes to other jobs.
func owedMutants() []Mutant {
	job := func(change func(*store.Job)) func(whole) any {
		return func(s whole) any { return bentJobs{s, change} }
	}
	result := func(change func(*store.Result)) func(whole) any {
		return func(s whole) any {
			return &broken{st: s, result: func(_ context.Context, r store.Result) store.Result { change(&r); return r }}
		}
	}
	pay := func(pay func(ctx context.Context, s store.Store, q store.OwedQuery) (store.Paid, error)) func(whole) any {
		return func(s whole) any { return bentPayer{st: s, pay: pay} }
	}
	return slices.Concat(childMutants(), joinMutants(), []Mutant{
		{"NothingIsOwed", job(func(j *store.Job) { j.Children, j.ChildKeys, j.After, j.AfterKeys = nil, nil, nil, nil }),
			[]string{"Owed/AChildIsPlannedWhenItIsPaid", "Owed/TheLastPartOwes", "Owed/AJoinRunsWhenAllHaveSucceeded", "Owed/AChildOfAStoppedJobRuns", "Owed/AWindowThatIsOverIsARecord"}},
		{"KeysAreForgotten", job(func(j *store.Job) { j.ChildKeys, j.AfterKeys = nil, nil }),
			[]string{"Owed/AKeyIsLookedUpWhenItIsPaid", "Owed/AnAbsentChildIsNoted", "Owed/AJoinRunsWhenAllHaveSucceeded", "Owed/AWindowThatIsOverIsARecord"}},
		{"AFailureOwesAsWell", result(func(r *store.Result) { r.State = store.StateSucceeded }),
			[]string{"Owed/OtherEndsOweNothing", "Owed/TheLastAttemptOwes", "Owed/APartThatHasFailedForGoodBlocks", "Owed/APartThatIsTriedAgain", "Owed/ASnoozedTriggerOwesOnce"}},
		{"ALossOwesAsWell", func(s whole) any { return losesNothing{s} }, []string{"Owed/OtherEndsOweNothing"}},
		{"EachPartOwes", func(s whole) any { return paysParts{s} },
			[]string{"Owed/TheLastPartOwes", "Owed/PartsInOneBatchOweOnce", "Owed/APartThatIsTriedAgain", "Race/PartsThatSucceedAtOnceOweOnce"}},
		{"AnybodyPays", pay(func(ctx context.Context, s store.Store, q store.OwedQuery) (store.Paid, error) {
			q.Shards = underNow(ctx, s, q.Shards)
			return s.PayOwed(ctx, q)
		}), []string{"Owed/OnlyTheOwnerPays"}},
		{"PaymentsHaveNoLimit", pay(func(ctx context.Context, s store.Store, q store.OwedQuery) (store.Paid, error) {
			q.Limit = 1000
			return s.PayOwed(ctx, q)
		}), []string{"Owed/WhatWasOwedFirstIsPaidFirst", "Owed/NothingIsPaidToNobody"}},
		{"OneShardIsPaidAfterTheOther", pay(payShards), []string{"Owed/WhatWasOwedFirstIsPaidFirst"}},
		{"OnePaymentIsMadeTwice", pay(payAgain),
			[]string{"Owed/WhatIsPaidIsGone", "Owed/AJobThatIsNamedTwiceHasOneChild", "Owed/AWindowIsClosedOnce", "Race/PaymentsAtOnceMakeOneChild", "Race/SuccessesAtOnceCompleteOneWindow"}},
		{"TheAbsentAreNotCounted", pay(func(ctx context.Context, s store.Store, q store.OwedQuery) (store.Paid, error) {
			paid, err := s.PayOwed(ctx, q)
			paid.Absent = 0
			return paid, err
		}), []string{"Owed/AnAbsentChildIsNoted", "Owed/AnAbsentChildLeavesTheOthersAlone", "Owed/ARemovedJoinIsNoted"}},
		{"WhatIsLeftIsNotSaid", pay(func(ctx context.Context, s store.Store, q store.OwedQuery) (store.Paid, error) {
			paid, err := s.PayOwed(ctx, q)
			paid.Unknown = nil
			return paid, err
		}), []string{"Owed/WhatNoZoneIsThereForIsLeft"}},
		{"RecordsOfChildrenAreKeptBack", pay(func(ctx context.Context, s store.Store, q store.OwedQuery) (store.Paid, error) {
			paid, err := s.PayOwed(ctx, q)
			paid.Records = nil
			return paid, err
		}), []string{"Owed/ADeepChildIsARecord"}},
		{"TheAbsentAreNotNoted", func(s whole) any { return saysNothing{s} },
			[]string{"Owed/AnAbsentChildIsNoted", "Owed/ARemovedJoinIsNoted"}},
		{"ParametersStayTheirOwn", job(func(j *store.Job) { j.ChildParam = "" }), []string{"Owed/ChildrenAreGivenParameters", "Owed/ALongResultIsCut"}},
		{"TheParameterIsTheResult", job(func(j *store.Job) {
			if j.ChildParam != "" {
				j.ChildParam = store.ChildParamResult
			}
		}), []string{"Owed/ChildrenAreGivenParameters"}},
	})
}

// childMutants break what is stored of children.
func childMutants() []Mutant {
	child := func(change func(*store.Run)) func(whole) any {
		return func(s whole) any {
			return &broken{st: s, runs: func(runs []store.Run) {
				for i := range runs {
					if runs[i].Type == store.TriggerParent {
						change(&runs[i])
					}
				}
			}}
		}
	}
	retry := func(s whole) any {
		return bentTree{s, func(runs []store.Run) []store.Run {
			for i := range runs {
				if runs[i].Type == store.TriggerRetry {
					runs[i].ParentID, runs[i].Depth, runs[i].Business = 0, 0, time.Time{}
				}
			}
			return runs
		}}
	}
	links := func(change func([]store.Job) []store.Job) func(whole) any {
		return func(s whole) any { return bentLinks{s, change} }
	}
	return []Mutant{
		{"ChildrenForgetTheirParent", child(func(r *store.Run) { r.ParentID = 0 }),
			[]string{"Owed/AChildIsPlannedWhenItIsPaid", "Owed/TheLastAttemptOwes", "Owed/APartThatIsTriggeredAloneIsATrigger", "Owed/AJoinIsAsDeepAsTheDeepest"}},
		{"ChildrenAreOfTheTrigger", func(s whole) any { return firstIsParent(s) }, []string{"Owed/TheLastAttemptOwes", "Owed/ASnoozedTriggerOwesOnce"}},
		{"ChildrenAreForTheirOwnTime", child(func(r *store.Run) { r.Business = r.Scheduled }),
			[]string{"Owed/AChildIsPlannedWhenItIsPaid", "Owed/ChildrenAreForTheTimeOfTheirParent", "Owed/AJoinRunsWhenAllHaveSucceeded"}},
		{"JoinsStandForWhenTheyAreDue", child(func(r *store.Run) { r.StandsFor = time.Time{} }),
			[]string{"Owed/AJoinRunsWhenAllHaveSucceeded", "Owed/NothingIsMissingWhenItIsOver"}},
		{"ChildrenAreOfDepthOne", child(func(r *store.Run) { r.Depth = 1 }),
			[]string{"Owed/ChildrenAreForTheTimeOfTheirParent", "Owed/AJoinIsAsDeepAsTheDeepest", "Owed/AChildMayBeAJoin"}},
		{"ADeepChildRuns", child(func(r *store.Run) {
			if r.Reason == store.ReasonDepth {
				r.State, r.Reason, r.Count = store.StatePlanned, "", 0
			}
		}), []string{"Owed/ADeepChildIsARecord", "Owed/AJoinTooDeepIsARecord"}},
		{"RetriesForgetTheirParent", retry, []string{"Owed/WhatFollowsAChildIsAChild"}},
		{"NobodyHearsWhatIsWithheld", child(func(r *store.Run) { r.TriggerMsg = "" }), []string{"Owed/WhatIsSecretGoesToSecretJobsOfItsApp"}},
		{"LinksWithoutJoins", links(func(jobs []store.Job) []store.Job {
			return slices.DeleteFunc(jobs, func(j store.Job) bool { return len(j.Children)+len(j.ChildKeys) == 0 })
		}), []string{"Owed/LinksAreTheJobsThatNameOthers", "Owed/LinksFollowEdits"}},
		{"LinksWithoutKeys", links(func(jobs []store.Job) []store.Job {
			for i := range jobs {
				jobs[i].ChildKeys = nil
			}
			return jobs
		}), []string{"Owed/LinksAreTheJobsThatNameOthers"}},
		{"LinksWithoutChildParam", links(func(jobs []store.Job) []store.Job {
			for i := range jobs {
				jobs[i].ChildParam = ""
			}
			return jobs
		}), []string{"Owed/LinksAreTheJobsThatNameOthers"}},
		{"LinksInAnotherOrder", links(func(jobs []store.Job) []store.Job { slices.Reverse(jobs); return jobs }),
			[]string{"Owed/LinksAreTheJobsThatNameOthers"}},
		{"NobodyHearsWhatIsOwed", func(s whole) any { return deafToOwed{s} }, []string{"Signals/Owed"}},
	}
}

// joinMutants break windows.
func joinMutants() []Mutant {
	job := func(change func(*store.Job)) func(whole) any {
		return func(s whole) any { return bentJobs{s, change} }
	}
	expire := func(expire func(ctx context.Context, s store.Store, q store.WindowQuery) (store.Expired, error)) func(whole) any {
		return func(s whole) any { return bentPayer{st: s, expire: expire} }
	}
	return []Mutant{
		{"EachWindowIsADay", job(func(j *store.Job) { j.AfterWindow = 0 }), []string{"Owed/SuccessesCountForTheirWindow"}},
		{"EachDayIsOfUTC", job(func(j *store.Job) { j.AfterZone = "" }), []string{"Owed/WindowsGoByTheClocksOfTheJob"}},
		{"ZonesWithoutDataAreUTC", job(func(j *store.Job) {
			if strings.HasPrefix(j.AfterZone, "Mars/") {
				j.AfterZone = ""
			}
		}), []string{"Owed/WhatNoZoneIsThereForIsLeft"}},
		{"OneOfSeveralIsEnough", job(func(j *store.Job) { j.After = j.After[:min(1, len(j.After))] }),
			[]string{"Owed/SuccessesCountForTheirWindow", "Owed/AWindowThatIsOverStaysClosed", "Owed/ARepeatedSuccessCountsOnce"}},
		{"EachWindowIsOpenForADay", job(func(j *store.Job) { j.AfterTimeout = 0 }),
			[]string{"Owed/AWindowIsOverAfterItsTimeout", "Owed/TheFirstSuccessSetsTheTimeout", "Owed/WindowsThatAreOverFirstAreClosedFirst"}},
		{"WindowsAreNeverOver", expire(func(context.Context, store.Store, store.WindowQuery) (store.Expired, error) {
			return store.Expired{}, nil
		}), []string{"Owed/AWindowThatIsOverIsARecord", "Owed/NothingIsMissingWhenItIsOver", "Owed/WindowsOfJobsThatAreNoJoins"}},
		{"RecordsOfWindowsAreKeptBack", expire(func(ctx context.Context, s store.Store, q store.WindowQuery) (store.Expired, error) {
			expired, err := s.ExpireWindows(ctx, q)
			expired.Records = nil
			return expired, err
		}), []string{"Owed/AWindowThatIsOverIsARecord"}},
		{"WindowsAreOverTooEarly", expire(func(ctx context.Context, s store.Store, q store.WindowQuery) (store.Expired, error) {
			q.Before = q.Before.Add(time.Millisecond)
			return s.ExpireWindows(ctx, q)
		}), []string{"Owed/AWindowIsOverAfterItsTimeout"}},
		{"AnybodyClosesWindows", expire(func(ctx context.Context, s store.Store, q store.WindowQuery) (store.Expired, error) {
			q.Shards = underNow(ctx, s, q.Shards)
			return s.ExpireWindows(ctx, q)
		}), []string{"Owed/OnlyTheOwnerOfTheJoinClosesWindows"}},
		{"EveryOwnerClosesWindows", expire(func(ctx context.Context, s store.Store, q store.WindowQuery) (store.Expired, error) {
			if v, err := s.Beat(ctx, "observer", nil); err == nil && len(q.Shards) > 0 && q.Shards[0].Epoch == epoch(ctx, s, q.Shards[0].ID) {
				q.Shards = v.Shards
			}
			return s.ExpireWindows(ctx, q)
		}), []string{"Owed/OnlyTheOwnerOfTheJoinClosesWindows"}},
		{"ExpiryHasNoLimit", expire(func(ctx context.Context, s store.Store, q store.WindowQuery) (store.Expired, error) {
			q.Limit = 1000
			return s.ExpireWindows(ctx, q)
		}), []string{"Owed/WindowsThatAreOverFirstAreClosedFirst"}},
		{"NobodyKnowsWhatIsOverNext", expire(func(ctx context.Context, s store.Store, q store.WindowQuery) (store.Expired, error) {
			expired, err := s.ExpireWindows(ctx, q)
			expired.Next = time.Time{}
			return expired, err
		}), []string{"Owed/AWindowIsOverAfterItsTimeout", "Owed/TheFirstSuccessSetsTheTimeout"}},
		{"NobodySaysWhoIsMissing", func(s whole) any {
			return &broken{st: s, runs: func(runs []store.Run) {
				for i := range runs {
					runs[i].TriggerMsg, _, _ = strings.Cut(runs[i].TriggerMsg, ", ")
				}
			}}
		}, []string{"Owed/AWindowThatIsOverIsARecord"}},
	}
}

// bentPayer pays and closes windows in another way.
type bentPayer struct {
	st     whole
	pay    func(ctx context.Context, s store.Store, q store.OwedQuery) (store.Paid, error)
	expire func(ctx context.Context, s store.Store, q store.WindowQuery) (store.Expired, error)
}

func (b bentPayer) PayOwed(ctx context.Context, q store.OwedQuery) (store.Paid, error) {
	if b.pay == nil {
		return b.st.PayOwed(ctx, q)
	}
	return b.pay(ctx, b.st, q)
}

func (b bentPayer) ExpireWindows(ctx context.Context, q store.WindowQuery) (store.Expired, error) {
	if b.expire == nil {
		return b.st.ExpireWindows(ctx, q)
	}
	return b.expire(ctx, b.st, q)
}

// underNow are the shards under the epochs that they have now.
func underNow(ctx context.Context, s store.Store, shards []store.Shard) []store.Shard {
	shards = slices.Clone(shards)
	for i := range shards {
		shards[i].Epoch = epoch(ctx, s, shards[i].ID)
	}
	return shards
}

// payShards pays all of one shard, and then the next.
func payShards(ctx context.Context, s store.Store, q store.OwedQuery) (sum store.Paid, err error) {
	for _, shard := range q.Shards {
		paid, err := s.PayOwed(ctx, store.OwedQuery{Shards: []store.Shard{shard}, Limit: q.Limit - sum.Owed})
		if err != nil {
			return sum, err
		}
		sum.Owed, sum.Runs, sum.Absent, sum.Skipped = sum.Owed+paid.Owed, sum.Runs+paid.Runs, sum.Absent+paid.Absent, sum.Skipped+paid.Skipped
		sum.Records = append(sum.Records, paid.Records...)
	}
	return sum, nil
}

// payAgain goes by no key: what it has planned it plans once more.
func payAgain(ctx context.Context, s store.Store, q store.OwedQuery) (store.Paid, error) {
	all := store.RunFilter{Limit: 1000}
	before, _ := s.Runs(ctx, all)
	paid, err := s.PayOwed(ctx, q)
	after, _ := s.Runs(ctx, all)
	for _, r := range after {
		if r.Type == store.TriggerParent && !slices.ContainsFunc(before, func(b store.Run) bool { return b.ID == r.ID }) {
			_, _ = s.AddRun(ctx, r.JobID, store.Trigger{Type: store.TriggerParent})
		}
	}
	return paid, err
}

// paysParts plans children for each part that has succeeded.
type paysParts struct{ st whole }

func (p paysParts) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	runs, err := p.st.Finish(ctx, nil, results)
	for _, r := range runs {
		job, gone := p.st.Job(ctx, r.JobID)
		if gone != nil || r.State != store.StateSucceeded || r.Sharding.Total < 2 {
			continue
		}
		for _, child := range job.Children {
			_, _ = p.st.AddRun(ctx, child, store.Trigger{Type: store.TriggerParent})
		}
	}
	return runs, err
}

// losesNothing takes a lost run for one that has succeeded.
type losesNothing struct{ st whole }

func (s losesNothing) Settle(ctx context.Context, verdicts []store.Verdict) ([]store.Run, error) {
	for _, v := range verdicts {
		if run, err := s.st.Run(ctx, v.RunID); err == nil && v.To == store.StateLost {
			inc, _ := store.LocalIncarnation(run.Address)
			return s.st.Finish(ctx, nil, []store.Result{{RunID: v.RunID, Incarnation: inc, Token: run.Token, State: store.StateSucceeded}})
		}
	}
	return s.st.Settle(ctx, verdicts)
}

// firstIsParent shows the first run of a trigger as the parent of what it led to.
func firstIsParent(s whole) any {
	return &broken{st: s, runs: func(runs []store.Run) {
		for i := range runs {
			if parent, err := s.Run(context.Background(), runs[i].ParentID); err == nil {
				runs[i].ParentID = parent.TriggerID
			}
		}
	}}
}

// saysNothing drops lines about jobs that are not there.
type saysNothing struct{ st whole }

func (s saysNothing) Run(ctx context.Context, id int64) (store.Run, error) {
	run, err := s.st.Run(ctx, id)
	run.TriggerMsg, _, _ = strings.Cut(run.TriggerMsg, "nothing is triggered")
	return run, err
}

// bentLinks changes what Links returns.
type bentLinks struct {
	st     whole
	change func([]store.Job) []store.Job
}

func (b bentLinks) Links(ctx context.Context) ([]store.Job, error) {
	jobs, err := b.st.Links(ctx)
	return b.change(jobs), err
}

// deafToOwed has a channel for what is owed on which nothing comes.
type deafToOwed struct{ st whole }

func (d deafToOwed) Watch(ctx context.Context, incarnation string) store.Signals {
	s := d.st.Watch(ctx, incarnation)
	s.Owed = make(chan struct{})
	return s
}
