package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// What follows the end of a run (store.Run.Follow), which has its own table. These cases are
// about what a store does with it.

func followCases() []testCase {
	return []testCase{
		{"AFailureIsFollowedByARetry", followFailure},
		{"WhatHasNotFailedIsNot", followNothing},
		{"ARetryIsAskedForAsItsRunWas", followKeeps},
		{"ARetryStandsForWhatItsRunStoodFor", followSpan},
		{"ARefusalIsFollowedByARetry", followRefusal},
		{"ALostRunIsFollowedByARetry", followLost},
		{"LostRunsAreRunAgain", followRerun},
		{"RetriesAreUsedUp", followUsedUp},
		{"AnEditCountsFromTheNextEnd", followEdit},
		{"RetriesOfTheTriggerWin", followTriggerWins},
		{"PausesAreThoseOfTheJob", followPauses},
		{"TheHandlersDelayComesFirst", followAfter},
		{"ASnoozedRunComesAgain", followSnooze},
		{"SnoozedOnceTooOftenHasFailed", followSnoozes},
		{"SnoozedRunsAreListedByTheirState", followSnoozedList},
		{"ARetryIsFoundByScans", followScan},
		{"WaitingRetriesAreNoBacklog", followBacklog},
		{"EachOfABatchHasItsOwn", followBatch},
		{"OfConcurrentResultsOneIsFollowed", followConcurrent},
		{"EachPartOfABroadcastHasItsOwn", followParts},
		{"AJobIsNotFinishedBeforeItsRetries", followFinished},
		{"ADelayWaitsForTheLastAttempt", followDelay},
		{"ADelayWaitsForWhatIsRefusedOrLost", followDelayOfOthers},
		{"ARetryThatIsGivenBack", followGivenBack},
		{"ARetryInParts", followRetryInParts},
		{"OfOneInstantTheFirstTriggerGoesFirst", followSameInstant},
		{"AStopCancelsRetriesOfTheSchedule", followStop},
		{"AnEditOfTheScheduleCancelsNone", followReplan},
		{"ARemovalCancelsAll", followRemove},
		{"NothingFollowsWhereTheJobIsStopped", followStopped},
		{"AStoppedJobsRetryIsNotStarted", followStale},
		{"NothingFollowsWhereTheJobIsRemoved", followRemoved},
		{"NothingFollowsAKill", followKilled},
		{"KillOfAnEndedRunKillsWhatFollows", followKill},
		{"KillOfAPartLeavesTheOthers", followKillPart},
		{"SerialRunsWaitForEarlierRetries", followSerial},
		{"NothingIsPlannedBehindTheRetention", followRetention},
		{"TreeHasTheTrigger", followTree},
	}
}

// retried makes a job whose failures are tried again so often.
func retried(n int) func(*store.Job) { return func(j *store.Job) { j.Retries = n } }

// failure is the result of an attached executor whose handler has failed.
func failure(run store.Run) store.Result {
	r := success(run)
	r.State, r.HandleMsg = store.StateFailed, "boom"
	return r
}

// failed ends a started run as failed.
func (o *owner) failed(run store.Run) store.Run {
	o.Helper()
	return o.one(o.mustFinish(failure(run)))
}

// next is the run that follows an ended one, which it reads; the zero Run where there is none.
func (e *env) next(ended store.Run) (next store.Run) {
	e.Helper()
	for _, r := range e.mustTree(ended.ID) {
		if r.ID > ended.ID && r.Sharding == ended.Sharding && next.ID == 0 {
			next = r
		}
	}
	return next
}

func (e *env) mustNext(ended store.Run) store.Run {
	e.Helper()
	next := e.next(ended)
	if next.ID == 0 {
		e.Fatalf("nothing follows run %d, which has ended as %s: %s", ended.ID, ended.State, ended.TriggerMsg)
	}
	return next
}

func (e *env) mustTree(id int64) []store.Run {
	e.Helper()
	runs, err := e.Tree(e.ctx, id)
	e.must(err)
	return nameless(runs...)
}

// wantNone checks that nothing follows.
func (e *env) wantNone(what string, ended store.Run) {
	e.Helper()
	if next := e.next(ended); next.ID != 0 {
		e.Errorf("%s: run %d follows, as %s", what, next.ID, next.State)
	}
}

func followFailure(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(2))
	for _, state := range []store.State{store.StateFailed, store.StateTimedOut, store.StateRefused, store.StateLost} {
		run := o.started(o.planned(e.mustJob(job.ID)))
		r := failure(run)
		r.State = state
		got := o.one(e.mustFinish(r))
		want(e, "the ended run", got.State, state)
		next := e.mustNext(got)
		want(e, "what follows a run that has "+state.String(), next, store.Run{ID: next.ID, JobID: job.ID, App: job.App, Shard: job.Shard,
			TriggerID: run.ID, Attempt: 1, Type: store.TriggerRetry, Born: true, Scheduled: got.Ended, State: store.StatePlanned,
			Retries: -1, Created: next.Created, First: run.Scheduled, Last: run.Scheduled})
		e.check(next.ID > run.ID && !next.Created.Before(got.Created), "it has ID %d after %d, and was created at %v", next.ID, run.ID, next.Created)
		want(e, "what it stands for", next.Instant(), run.Scheduled)
		e.wantRun("the ended run", got)
		e.wantRun("what follows", next)
	}
}

func followNothing(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(2))
	for _, state := range []store.State{store.StateSucceeded, store.StateKilled, store.StateDiscarded} {
		r := failure(o.started(o.planned(e.mustJob(job.ID))))
		r.State = state
		e.wantNone("after "+state.String(), o.one(e.mustFinish(r)))
	}
	r := failure(o.started(o.planned(e.mustJob(job.ID))))
	r.NoRetry = true
	e.wantNone("after an error that is permanent", o.one(e.mustFinish(r)))
	e.wantNone("of a job without retries", o.failed(o.running()))
}

func followKeeps(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(1))
	param := "p — 错"
	run := e.mustAddRun(job.ID, store.Trigger{Param: &param, Addresses: []string{"http://b", "http://a"}, Shard: store.Sharding{Index: 1, Total: 3}, Key: "k"})
	ended := o.failed(o.started(run, func(s *store.Start) { s.Param = param }))
	next := e.mustNext(ended)
	want(e, "parameter, addresses, part", []any{next.Param, next.ParamSet, next.Addresses, next.Sharding}, []any{param, true, run.Addresses, run.Sharding})
	want(e, "born", next.Born, false)
	again, err := e.AddRun(e.ctx, job.ID, store.Trigger{Key: "k"})
	e.must(err)
	want(e, "the run of the key", again.ID, run.ID)

	plain := o.failed(o.started(e.mustAddRun(job.ID, store.Trigger{}), func(s *store.Start) { s.Param = "the job's" }))
	next = e.mustNext(plain)
	want(e, "a parameter that the trigger did not give", []any{next.Param, next.ParamSet}, []any{"", false})
}

func followSpan(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(2))
	p := o.plan(job, e.at(60))
	p.Runs[0].First, p.Runs[0].Last, p.Runs[0].Count = e.at(0), e.at(60), 2
	ended := o.failed(o.started(o.one(o.claim(p))))
	for attempt := 1; attempt <= 2; attempt++ {
		next := e.mustNext(ended)
		want(e, "First, Last, Count, Instant", []any{next.First, next.Last, next.Count, next.Instant()}, []any{e.at(0), e.at(60), 2, e.at(60)})
		want(e, "Attempt, TriggerID", []any{next.Attempt, next.TriggerID}, []any{attempt, ended.TriggerID})
		ended = o.failed(o.started(next))
	}
}

func followRefusal(e *env) {
	o := e.owner("a")
	run := o.planned(e.newJob(retried(2)))
	a := o.tryStart(o.startOf(run, refused, func(s *store.Start) { s.HandleMsg = "no address"; s.Retries = 2 }))
	want(e, "status", a.Status, store.StartOK)
	want(e, "the refused run", a.Run.State, store.StateRefused)
	next := e.mustNext(a.Run)
	want(e, "Attempt, type, state", []any{next.Attempt, next.Type, next.State}, []any{1, store.TriggerRetry, store.StatePlanned})
	again := o.tryStart(o.startOf(next, refused))
	want(e, "Attempt of the next", e.mustNext(again.Run).Attempt, 2)
}

func followLost(e *env) {
	o := e.owner("a")
	run := o.started(o.planned(e.newJob(retried(1))))
	got := o.one(e.mustSettle(o.verdict(run, store.StateLost)))
	want(e, "Attempt", e.mustNext(got).Attempt, 1)
	e.wantNone("of a job without retries", o.one(e.mustSettle(o.verdict(o.running(), store.StateLost))))
}

func followRerun(e *env) {
	o := e.owner("a")
	job := e.newJob(func(j *store.Job) { j.OnLost, j.MaxReruns, j.Retries = store.OnLostRerun, 2, 1 })
	run := o.planned(job)
	for n := 1; n <= 2; n++ {
		run = e.mustNext(o.one(e.mustSettle(o.verdict(o.started(run), store.StateLost))))
		want(e, "Attempt, Reruns", []any{run.Attempt, run.Reruns}, []any{n, n})
	}
	run = e.mustNext(o.failed(o.started(run)))
	want(e, "Attempt, Reruns of a retry", []any{run.Attempt, run.Reruns}, []any{3, 2})
	last := o.one(e.mustSettle(o.verdict(o.started(run), store.StateLost)))
	e.wantNone("after the last rerun", last)
	e.check(strings.Contains(last.TriggerMsg, "nothing follows"), "TriggerMsg %q does not say why nothing follows", last.TriggerMsg)
	e.wantRun("the last", last)
}

func followUsedUp(e *env) {
	o := e.owner("a")
	run := o.planned(e.newJob(retried(2)))
	for attempt := 1; attempt <= 2; attempt++ {
		run = e.mustNext(o.failed(o.started(run)))
		want(e, "Attempt", run.Attempt, attempt)
	}
	e.wantNone("after the last attempt", o.failed(o.started(run)))
}

func followEdit(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(5))
	more, none := o.started(o.planned(job), func(s *store.Start) { s.Retries = 5 }), e.newJob()
	e.edit(job.ID, func(j *store.Job) { j.Retries = 0 })
	left := func(what string, ended store.Run, n int) store.Run {
		e.Helper()
		want(e, what+": Retries, FailedForGood", []any{ended.Retries, ended.FailedForGood()}, []any{n, n == 0})
		e.wantRun(what, ended)
		return ended
	}
	e.wantNone("of a job that has none any more", left("the number is lowered", o.failed(more), 0))
	run := o.started(o.planned(none))
	e.edit(none.ID, retried(1))
	next := e.mustNext(left("the number is raised", o.failed(run), 1))
	e.wantNone("after the one", left("the number is used up", o.failed(o.started(next, func(s *store.Start) { s.Retries = 7 })), 0))

	refusal, loss := o.planned(e.mustJob(none.ID)), o.started(o.planned(e.mustJob(none.ID)))
	left("a refusal", o.tryStart(o.startOf(refusal, refused)).Run, 1)
	left("a loss", o.one(e.mustSettle(o.verdict(loss, store.StateLost))), 1)
	stops := o.started(o.planned(e.mustJob(none.ID)), func(s *store.Start) { s.Retries = 1 })
	e.stop(none.ID)
	left("the job is stopped", o.failed(stops), 0)
}

func followTriggerWins(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(7))
	one := 1
	run := e.mustAddRun(job.ID, store.Trigger{Retries: &one})
	e.edit(job.ID, retried(0))
	next := e.mustNext(o.failed(o.started(run, func(s *store.Start) { s.Retries = one })))
	want(e, "Retries", []any{next.Retries, next.RetriesSet}, []any{0, true})
	e.edit(job.ID, retried(9))
	e.wantNone("after the trigger's only one", o.failed(o.started(next)))
}

func followPauses(e *env) {
	o := e.owner("a")
	run := o.planned(e.newJob(func(j *store.Job) {
		j.Retries, j.RetryBackoff = 4, store.Backoff{First: 1500 * time.Millisecond, Max: 5 * time.Second}
	}))
	for _, pause := range []time.Duration{1500, 3000, 5000, 5000} {
		ended := o.failed(o.started(run))
		run = e.mustNext(ended)
		want(e, "pause", run.Scheduled.Sub(ended.Ended), pause*time.Millisecond)
	}
}

func followAfter(e *env) {
	o := e.owner("a")
	job := e.newJob(func(j *store.Job) { j.Retries, j.RetryBackoff = 4, store.Backoff{First: time.Hour} })
	r := failure(o.started(o.planned(job)))
	r.After = 1234 * time.Millisecond
	ended := o.one(e.mustFinish(r))
	want(e, "pause", e.mustNext(ended).Scheduled.Sub(ended.Ended), 1234*time.Millisecond)
}

// snoozing is the result of a handler that wants to be called again.
func snoozing(run store.Run, d time.Duration) store.Result {
	r := success(run)
	r.State, r.HandleMsg, r.After = store.StateSnoozed, "snoozed", d
	return r
}

func followSnooze(e *env) {
	o := e.owner("a")
	run := o.planned(e.newJob(retried(1)))
	for n := 1; n <= 3; n++ {
		ended := o.one(e.mustFinish(snoozing(o.started(run), time.Minute)))
		want(e, "state", ended.State, store.StateSnoozed)
		e.wantRun("the snoozed run", ended)
		run = e.mustNext(ended)
		want(e, "Attempt, Snoozes, pause", []any{run.Attempt, run.Snoozes, run.Scheduled.Sub(ended.Ended)}, []any{0, n, time.Minute})
	}
	failed := e.mustNext(o.failed(o.started(run)))
	want(e, "Attempt after a failure", []any{failed.Attempt, failed.Snoozes}, []any{1, 3})
}

func followSnoozes(e *env) {
	o := e.owner("a")
	run := o.planned(e.newJob(func(j *store.Job) { j.MaxSnoozes, j.Retries = 2, 3 }))
	for range 2 {
		run = e.mustNext(o.one(e.mustFinish(snoozing(o.started(run), 0))))
	}
	last := o.one(e.mustFinish(snoozing(o.started(run), 0)))
	want(e, "state, HandleMsg, NoRetry", []any{last.State, last.HandleMsg, last.NoRetry}, []any{store.StateFailed, store.TooManySnoozes, true})
	e.wantRun("the last", last)
	e.wantNone("after the last", last)
}

func followSnoozedList(e *env) {
	o := e.owner("a")
	job := e.newJob()
	done := o.one(e.mustFinish(success(o.started(o.planned(job)))))
	snoozed := o.one(e.mustFinish(snoozing(o.started(o.planned(e.mustJob(job.ID))), time.Hour)))
	for _, c := range []struct {
		states []store.State
		ids    []int64
	}{
		{[]store.State{store.StateSucceeded}, []int64{done.ID}},
		{[]store.State{store.StateSnoozed}, []int64{snoozed.ID}},
		{[]store.State{store.StateSnoozed, store.StateSucceeded}, []int64{snoozed.ID, done.ID}},
		{[]store.State{store.StateFailed}, nil},
	} {
		want(e, "runs that are "+c.states[0].String(), ids(e.mustRuns(store.RunFilter{JobID: job.ID, States: c.states})), c.ids)
	}
}

func followScan(e *env) {
	o := e.owner("a")
	next := e.mustNext(o.failed(o.started(o.planned(e.newJob(retried(1))))))
	want(e, "PlanEpoch", next.PlanEpoch, 0)
	want(e, "runs of a scan", ids(o.mustScan(o.scan(next.Scheduled)).Runs), []int64{next.ID})
	want(e, "planned runs", ids(o.allPlanned()), []int64{next.ID})
}

func followBacklog(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(1), func(j *store.Job) { j.Next = e.at(-3600) })
	p := o.plan(job, e.at(-3600))
	p.Next = e.at(-1)
	for range 3 {
		o.failed(o.started(e.mustAddRun(job.ID, store.Trigger{})))
	}
	o.claim(p)
	e.eventually("one run waits, and it is no retry", func() bool {
		jobs := o.mustScan(o.scan(e.at(0))).Jobs
		if len(jobs) != 1 || jobs[0].Waiting > 1 {
			e.Fatalf("due jobs: %+v, want one with at most one run that waits", jobs)
		}
		return jobs[0].Waiting == 1
	})
}

func followBatch(e *env) {
	o := e.owner("a")
	job, never := e.newJob(retried(1)), e.newJob()
	var results []store.Result
	var runs []store.Run
	for i := range 6 {
		of := job
		if i%3 == 2 {
			of = never
		}
		run := o.started(e.mustAddRun(of.ID, store.Trigger{}))
		r := failure(run)
		if i%3 == 1 {
			r = success(run)
		}
		runs, results = append(runs, run), append(results, r)
	}
	slices.Reverse(results)
	want(e, "accepted", len(e.mustFinish(results...)), 6)
	for i, run := range runs {
		want(e, "followed", e.next(run).ID != 0, i%3 == 0)
	}
}

func followConcurrent(e *env) {
	o := e.owner("a")
	for range 10 {
		run := o.started(o.planned(e.newJob(retried(3))))
		var parties []func()
		for range 4 {
			parties = append(parties, func() { e.mustFinish(failure(run)) }, func() { e.mustSettle(o.verdict(run, store.StateLost)) })
		}
		e.race(parties...)
		want(e, "runs of the trigger", len(e.mustTree(run.ID)), 2)
	}
}

func followParts(e *env) {
	o := e.owner("a")
	e.there("b")
	addresses := []string{o.addr(), store.LocalAddress("b"), remote}
	a := o.tryStart(o.startOf(o.planned(e.newJob(retried(2))), func(s *store.Start) { s.Targets = addresses; s.Address = addresses[0] }))
	want(e, "status", a.Status, store.StartOK)
	parts := append([]store.Run{a.Run}, a.Siblings...)
	e.must(takeAll(e, "b", parts[1].ID))
	for _, i := range []int{0, 2} {
		r := failure(parts[i])
		if i == 2 {
			r = overWire(parts[2].ID)
			r.State = store.StateFailed
		}
		next := e.mustNext(o.one(e.mustFinish(r)))
		want(e, "part, trigger, attempt", []any{next.Sharding, next.TriggerID, next.Attempt}, []any{parts[i].Sharding, a.Run.ID, 1})
		retry := o.started(next)
		want(e, "part of the attempt", retry.Sharding, parts[i].Sharding)
	}
	e.wantNone("of a part that runs", parts[1])
}

func takeAll(e *env, incarnation string, ids ...int64) error {
	_, err := e.Take(e.ctx, incarnation, ids)
	return err
}

func followFinished(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(1))
	ended := o.failed(o.started(o.last(job)))
	want(e, "stopped, StoppedJob with a retry to come", []any{e.mustJob(job.ID).Stopped, ended.StoppedJob}, []any{false, false})
	_ = e.Sweep(e.ctx, o.shards)
	want(e, "stopped after a sweep", e.mustJob(job.ID).Stopped, false)
	retry := o.started(e.mustNext(ended))
	_ = e.Sweep(e.ctx, o.shards)
	want(e, "stopped while the retry runs", e.mustJob(job.ID).Stopped, false)
	done := o.one(e.mustFinish(success(retry)))
	got := e.mustJob(job.ID)
	want(e, "stopped, why, StoppedJob", []any{got.Stopped, got.StopReason, done.StoppedJob}, []any{true, store.StopFinished, true})
}

func followDelay(e *env) {
	o := e.owner("a")
	job := e.newJob(delayed(time.Minute), retried(1))
	run := o.waited(job)
	next := e.mustNext(o.failed(o.started(run)))
	got := e.mustJob(job.ID)
	want(e, "Next, WaitRun with a retry to come", []any{got.Next.IsZero(), got.WaitRun}, []any{true, next.ID})
	e.must(e.Sweep(e.ctx, o.shards))
	want(e, "WaitRun after a sweep", e.mustJob(job.ID).WaitRun, next.ID)
	last := o.failed(o.started(next))
	got = e.mustJob(job.ID)
	want(e, "Next, WaitRun after the last", []any{got.Next, got.WaitRun}, []any{last.Ended.Add(time.Minute), 0})
}

// followDelayOfOthers: a run that was refused, or is lost, is followed as one that has failed is.
func followDelayOfOthers(e *env) {
	o := e.owner("a")
	for what, end := range map[string]func(run store.Run) store.Run{
		"refused": func(run store.Run) store.Run { return o.tryStart(o.startOf(run, refused)).Run },
		"lost": func(run store.Run) store.Run {
			return o.one(e.mustSettle(o.verdict(o.started(run), store.StateLost)))
		},
	} {
		job := e.newJob(delayed(time.Minute), retried(1))
		next := e.mustNext(end(o.waited(job)))
		got := e.mustJob(job.ID)
		want(e, what+": Next, WaitRun with a retry to come", []any{got.Next.IsZero(), got.WaitRun}, []any{true, next.ID})
		last := end(next)
		got = e.mustJob(job.ID)
		want(e, what+": Next, WaitRun after the last", []any{got.Next, got.WaitRun}, []any{last.Ended.Add(time.Minute), 0})
	}
}

// followGivenBack: a retry that is given back when its job is stopped goes as a stop would have
// had it.
func followGivenBack(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(1))
	born, manual := twoRetries(o, job)
	born, manual = o.started(born), o.started(manual)
	e.stop(job.ID)
	e.mustSettle(o.verdict(born, store.StatePlanned), o.verdict(manual, store.StatePlanned))
	e.wantState("a retry of the schedule's", born.ID, store.StateCancelled)
	e.wantState("a trigger's retry", manual.ID, store.StatePlanned)
}

// followRetryInParts starts a retry as a broadcast: its parts are as far in their chain as it is.
func followRetryInParts(e *env) {
	o := e.owner("a")
	job := e.newJob(func(j *store.Job) { j.OnLost = store.OnLostRerun })
	three := 3
	for what, first := range map[string]store.Run{"born": o.planned(job), "triggered": e.mustAddRun(job.ID, store.Trigger{Retries: &three})} {
		snoozed := o.one(e.mustFinish(snoozing(o.started(first, func(s *store.Start) { s.Retries = first.Retries }), time.Second)))
		lost := o.one(e.mustSettle(o.verdict(o.started(e.mustNext(snoozed), func(s *store.Start) { s.Retries = first.Retries }), store.StateLost)))
		next := e.mustNext(lost)
		a := o.tryStart(o.startOf(next, func(s *store.Start) {
			s.Targets, s.Address, s.Retries = []string{remote, remoteToo}, remote, next.Retries
		}))
		for _, part := range append(a.Siblings, a.Run) {
			want(e, what+": TriggerID, Attempt, Type, Born, RetriesSet, Reruns, Snoozes of a part",
				[]any{part.TriggerID, part.Attempt, part.Type, part.Born, part.RetriesSet, part.Reruns, part.Snoozes},
				[]any{first.ID, 1, store.TriggerRetry, what == "born", what != "born", 1, 1})
			e.wantRun(what+": a part", part)
		}
	}
}

// followSameInstant: of two triggers for one instant the one that came first goes first.
func followSameInstant(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(1), func(j *store.Job) { j.RetryBackoff.First = time.Hour })
	at := e.at(600)
	first, second := e.mustAddRun(job.ID, store.Trigger{At: at}), e.mustAddRun(job.ID, store.Trigger{At: at})
	third := e.mustAddRun(job.ID, store.Trigger{At: at})
	behind := func(s *store.Start) { s.AfterRetries, s.Instant, s.TriggerID = true, at, s.RunID }
	retry := e.mustNext(o.failed(o.started(second, behind)))
	want(e, "start of the one before", o.tryStart(o.startOf(first, behind)).Status, store.StartOK)
	a := o.tryStart(o.startOf(third, behind))
	want(e, "start of the one behind", []any{a.Status, a.Run.ID}, []any{store.StartBusy, retry.ID})
}

func followSerial(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(2), func(j *store.Job) { j.RetryBackoff.First = time.Hour })
	p := o.plan(job, e.at(0), e.at(60))
	p.Next = e.at(120)
	runs := o.claim(p)
	behind := func(s *store.Start) {
		run := e.mustRun(s.RunID)
		s.AfterRetries, s.Instant, s.TriggerID = true, run.Instant(), run.TriggerID
	}
	later := func() store.Started { return o.tryStart(o.startOf(runs[1], behind)) }
	retry := e.mustNext(o.failed(o.started(runs[0], behind)))
	a := later()
	want(e, "start of a later instant, and what is in its way", []any{a.Status, a.Run.ID, a.Run.State}, []any{store.StartBusy, retry.ID, store.StatePlanned})
	want(e, "start of another job", o.tryStart(o.startOf(o.planned(e.newJob()), behind)).Status, store.StartOK)
	refusal := o.tryStart(o.startOf(e.mustAddRun(job.ID, store.Trigger{At: e.at(600)}), behind, refused))
	want(e, "a refusal", refusal.Status, store.StartOK)
	e.mustKill(refusal.Run.ID, "")
	early := e.mustAddRun(job.ID, store.Trigger{})
	if early.Instant().Before(retry.Instant()) {
		want(e, "start of an earlier instant", o.tryStart(o.startOf(early, behind)).Status, store.StartOK)
	}
	running := o.started(retry, behind)
	want(e, "start of a later instant once the retry has started", later().Status, store.StartOK)

	next := e.mustNext(o.failed(running))
	free := e.mustAddRun(job.ID, store.Trigger{At: e.at(7200)})
	want(e, "start that lets no retry go first", o.tryStart(o.startOf(free)).Status, store.StartOK)
	waits := e.mustAddRun(job.ID, store.Trigger{At: e.at(7200)})
	want(e, "start behind the second retry", o.tryStart(o.startOf(waits, behind)).Run.ID, next.ID)
	e.mustKill(next.ID, "")
	want(e, "start once the retry is cancelled", o.tryStart(o.startOf(waits, behind)).Status, store.StartOK)
}

func followRetention(e *env) {
	aware, is := e.Store.(store.RetentionAware)
	if !is {
		return
	}
	o := e.owner("a")
	job := e.newJob(retried(9))
	aware.KnowRetention(2 * time.Hour)
	run := o.started(o.planned(job))
	r := failure(run)
	r.After = 10 * time.Hour
	next := e.mustNext(o.one(e.mustFinish(r))).Scheduled
	e.check(next.Sub(run.Created.Add(time.Hour)).Abs() < time.Second, "an attempt that was to come too late is due at %v, of a run of %v", next, run.Created)
	aware.KnowRetention(2)
	last := o.failed(o.started(o.planned(e.mustJob(job.ID))))
	e.wantNone("behind the retention", last)
	e.check(strings.Contains(last.TriggerMsg, "nothing follows"), "TriggerMsg %q does not say why nothing follows", last.TriggerMsg)
	e.wantRun("one that nothing follows", last)
	turnedDown := o.tryStart(o.startOf(o.planned(e.mustJob(job.ID)), refused)).Run
	e.check(strings.Contains(turnedDown.TriggerMsg, "nothing follows"), "TriggerMsg %q of a refusal does not say why nothing follows", turnedDown.TriggerMsg)
	e.wantRun("a refusal that nothing follows", turnedDown)
}

func followTree(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(2))
	a := o.tryStart(o.startOf(o.planned(job), func(s *store.Start) { s.Targets = []string{remote, remoteToo}; s.Address = remote }))
	r := overWire(a.Siblings[0].ID)
	r.State = store.StateFailed
	next := e.mustNext(o.one(e.mustFinish(r)))
	other := o.planned(e.mustJob(job.ID))
	all := []int64{a.Run.ID, a.Siblings[0].ID, next.ID}
	for _, id := range all {
		tree, err := e.Tree(e.ctx, id)
		e.must(err)
		want(e, "Tree", ids(tree), all)
		want(e, "name of its job", tree[0].JobName, job.Name)
		for _, r := range nameless(tree...) {
			e.wantRun("Tree", r)
		}
	}
	want(e, "Tree of a single run", ids(e.mustTree(other.ID)), []int64{other.ID})
	_, err := e.Tree(e.ctx, 1<<53-1)
	e.wantErr("Tree of no run", err, store.ErrNotFound)
}
