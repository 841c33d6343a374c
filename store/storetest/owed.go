package storetest

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// What a success owes to other jobs (store.Run.Owes), which has its own table. These cases
// are about what a store does with it. What is owed cannot be read back but by paying it.

func owedCases() []testCase {
	return slices.Concat([]testCase{
		{"AChildIsPlannedWhenItIsPaid", owedChild},
		{"WhatIsPaidIsGone", owedGone},
		{"WhatWasOwedFirstIsPaidFirst", owedOrder},
		{"OnlyTheOwnerPays", owedFence},
		{"NothingIsPaidToNobody", owedNobody},
		{"OtherEndsOweNothing", owedOtherEnds},
		{"ARemovedJobOwesNothing", owedRemovedParent},
		{"ARemovalAfterTheSuccessIsTooLate", owedRemovedLater},
		{"WhatIsOwedIsAsItWasAtTheEnd", owedEdited},
		{"AnAbsentChildIsNoted", owedAbsent},
		{"AnAbsentChildLeavesTheOthersAlone", owedAbsentAmong},
		{"AKeyIsLookedUpWhenItIsPaid", owedLaterKey},
		{"AJobThatIsNamedTwiceHasOneChild", owedTwice},
		{"ChildrenAreGivenParameters", owedParams},
		{"WhatIsSecretGoesToSecretJobsOfItsApp", owedSecret},
		{"ALongResultIsCut", owedLongResult},
		{"ChildrenAreForTheTimeOfTheirParent", owedBusiness},
		{"WhatFollowsAChildIsAChild", owedRetry},
		{"PartsOfAChildAreChildren", owedChildInParts},
		{"ADeepChildIsARecord", owedDepth},
		{"TheKeyOfAChildIsKnown", owedKey},
		{"TheKeyOfARecordIsKnown", owedRecordKey},
		{"APaymentWithoutAnAnswerIsNotMadeTwice", owedLostAnswer},
		{"AChildOfAStoppedJobRuns", owedStopped},
		{"LinksAreTheJobsThatNameOthers", linksNamed},
		{"LinksFollowEdits", linksEdited},
	}, owedPartCases(), windowCases())
}

// leading makes a job whose successes trigger others.
func leading(ids ...int64) func(*store.Job) {
	return func(j *store.Job) { j.Children = ids }
}

// mustPay pays, and checks and leaves out the records.
func (o *owner) mustPay(limit int) store.Paid {
	o.Helper()
	paid, err := o.PayOwed(o.ctx, store.OwedQuery{Shards: o.shards, Limit: limit})
	o.must(err)
	want(o.env, "records of what was skipped", len(paid.Records), paid.Skipped)
	o.wantRecords(paid.Records)
	paid.Records = nil
	return paid
}

// wantRecords checks that runs are records, and stored as they are.
func (e *env) wantRecords(runs []store.Run) {
	e.Helper()
	for _, r := range runs {
		want(e, "the state of a record", r.State, store.StateSkipped)
		e.wantRun("a record", r)
	}
}

// payAll pays all that is owed.
func (o *owner) payAll() store.Paid {
	o.Helper()
	return o.mustPay(1000)
}

// succeeded ends a planned run as succeeded.
func (o *owner) succeeded(planned store.Run) store.Run {
	o.Helper()
	return o.one(o.mustFinish(success(o.started(planned))))
}

// succeedsAt is a success of the job for an instant of its schedule.
func (o *owner) succeedsAt(job int64, at time.Time) store.Run {
	o.Helper()
	return o.succeeded(o.one(o.claim(o.plan(o.mustJob(job), at))))
}

// succeeds is a success of the job.
func (o *owner) succeeds(job int64) store.Run {
	o.Helper()
	return o.succeedsAt(job, o.now)
}

// only is the one run of a job.
func (e *env) only(what string, job int64) store.Run {
	e.Helper()
	runs := e.runsOf(job)
	if len(runs) != 1 {
		e.Fatalf("%s: the job has %d runs, want one", what, len(runs))
	}
	return runs[0]
}

func (e *env) wantRuns(what string, job int64, n int) {
	e.Helper()
	want(e, what+": runs of the job", len(e.runsOf(job)), n)
}

func owedChild(e *env) {
	o := e.owner("a")
	child := e.newJob()
	parent := o.succeedsAt(e.newJob(leading(child.ID)).ID, e.at(-60))
	e.wantRuns("before it is paid", child.ID, 0)
	want(e, "paid", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	run := e.only("when it is paid", child.ID)
	want(e, "the child", run, store.Run{ID: run.ID, JobID: child.ID, App: child.App, Shard: child.Shard, TriggerID: run.ID, ParentID: parent.ID,
		Type: store.TriggerParent, Depth: 1, Business: parent.Scheduled, Scheduled: run.Scheduled, State: store.StatePlanned,
		Retries: -1, Created: run.Created})
	e.wantRun("the parent", parent)
	want(e, "the child's job", e.mustJob(child.ID), child)
	want(e, "runs of a scan", ids(o.mustScan(o.scan(run.Scheduled)).Runs), []int64{run.ID})
	want(e, "state of the child that is started", o.started(run).State, store.StateStarted)
	now := e.clock()
	e.check(!run.Scheduled.Before(parent.Ended) && !run.Scheduled.After(now), "it is due at %v: want from %v, when its parent ended, to now, %v", run.Scheduled, parent.Ended, now)
}

func owedGone(e *env) {
	o := e.owner("a")
	child := e.newJob()
	job := e.newJob(leading(child.ID))
	for n := 1; n <= 3; n++ {
		o.succeeds(job.ID)
		want(e, "paid", o.payAll(), store.Paid{Owed: 1, Runs: 1})
		want(e, "paid again", o.payAll(), store.Paid{})
		e.wantRuns("each success has its own child", child.ID, n)
	}
}

// owedOrder goes through the shards against their order, twice.
func owedOrder(e *env) {
	o := e.owner("a")
	var children []int64
	for range 2 {
		for shard := numShards - 1; shard >= 0; shard-- {
			child := e.newJob()
			o.succeeds(e.jobIn(shard, leading(child.ID)).ID)
			children = append(children, child.ID)
		}
	}
	want(e, "paid where the limit is 1", o.mustPay(1), store.Paid{Owed: 1, Runs: 1})
	e.wantRuns("what was owed first", children[0], 1)
	want(e, "paid where the limit is 4", o.mustPay(4), store.Paid{Owed: 4, Runs: 4})
	for i, child := range children {
		e.wantRuns("paid in order", child, map[bool]int{true: 1}[i < 5])
	}
	want(e, "what is left", o.payAll(), store.Paid{Owed: 3, Runs: 3})
}

func owedFence(e *env) {
	o := e.owner("a")
	there, elsewhere := e.newJob(), e.newJob()
	one, two := e.jobIn(1, leading(there.ID)), e.jobIn(2, leading(elsewhere.ID))
	o.succeeds(one.ID)
	o.succeeds(two.ID)
	pay := func(what string, want store.Paid, shards ...store.Shard) {
		e.Helper()
		paid, err := e.PayOwed(e.ctx, store.OwedQuery{Shards: shards, Limit: 9})
		e.must(err)
		e.check(reflect.DeepEqual(paid, want), "%s: paid %+v, want %+v", what, paid, want)
	}
	pay("other shards", store.Paid{}, o.shards[0], o.shards[3])
	b := o.overtakenBy("b")
	pay("the former owner", store.Paid{}, o.shards...)
	pay("an epoch to come", store.Paid{}, store.Shard{ID: 1, Owner: "b", Epoch: b.epoch(1) + 1})
	pay("a shard that is not there", store.Paid{}, store.Shard{ID: numShards, Epoch: 1})
	e.wantRuns("who does not own pays nothing", there.ID, 0)
	pay("one good shard of two", store.Paid{Owed: 1, Runs: 1}, o.shards[2], b.shards[1])
	e.wantRuns("in the good one", there.ID, 1)
	e.wantRuns("in the other", elsewhere.ID, 0)
	pay("the rest", store.Paid{Owed: 1, Runs: 1}, b.shards...)
	e.wantRuns("by the owner", elsewhere.ID, 1)
}

func owedNobody(e *env) {
	o := e.owner("a")
	child := e.newJob()
	o.succeeds(e.newJob(leading(child.ID)).ID)
	want(e, "paid where the limit is zero", o.mustPay(0), store.Paid{})
	paid, err := e.PayOwed(e.ctx, store.OwedQuery{Limit: 9})
	e.must(err)
	want(e, "paid in no shard", paid, store.Paid{})
	e.wantRuns("nothing was paid", child.ID, 0)
}

// owedOtherEnds has every end but a success.
func owedOtherEnds(e *env) {
	o := e.owner("a")
	child := e.newJob()
	fresh := func() store.Job { return e.newJob(leading(child.ID)) }
	for _, state := range []store.State{store.StateFailed, store.StateTimedOut, store.StateKilled, store.StateRefused, store.StateLost, store.StateDiscarded} {
		r := success(o.started(o.planned(fresh())))
		r.State = state
		want(e, "ended", o.one(e.mustFinish(r)).State, state)
	}
	e.mustFinish(snoozing(o.started(o.planned(fresh())), time.Hour))
	e.mustSettle(o.verdict(o.started(o.planned(fresh())), store.StateLost))
	o.tryStart(o.startOf(o.planned(fresh()), refused))
	e.mustKill(o.planned(fresh()).ID, "unwanted")
	o.claim(o.skip(fresh()))
	e.stop(o.planned(fresh()).JobID)
	tooOften := o.planned(e.newJob(leading(child.ID), func(j *store.Job) { j.MaxSnoozes = 1 }))
	next := e.mustNext(o.one(e.mustFinish(snoozing(o.started(tooOften), 0))))
	want(e, "snoozed too often", o.one(e.mustFinish(snoozing(o.started(next), 0))).State, store.StateFailed)
	want(e, "paid", o.payAll(), store.Paid{})
	e.wantRuns("after ends that are no success", child.ID, 0)
	late := o.started(o.planned(fresh()))
	e.mustSettle(o.verdict(late, store.StateLost))
	e.mustFinish(success(late))
	want(e, "paid after a result that came too late", o.payAll(), store.Paid{})
}

func owedRemovedParent(e *env) {
	o := e.owner("a")
	child := e.newJob()
	run := o.started(o.planned(e.newJob(leading(child.ID))))
	e.must(e.RemoveJob(e.ctx, run.JobID))
	want(e, "ended", o.one(e.mustFinish(success(run))).State, store.StateSucceeded)
	want(e, "paid", o.payAll(), store.Paid{})
	e.wantRuns("of a removed job", child.ID, 0)
}

func owedRemovedLater(e *env) {
	o := e.owner("a")
	child := e.newJob()
	run := o.succeeds(e.newJob(leading(child.ID)).ID)
	e.must(e.RemoveJob(e.ctx, run.JobID))
	want(e, "paid", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	want(e, "ParentID", e.only("owed before the removal", child.ID).ParentID, run.ID)
}

func owedEdited(e *env) {
	o := e.owner("a")
	former, later := e.newJob(), e.newJob()
	job := e.newJob(leading(former.ID))
	run := o.started(o.planned(job))
	e.edit(job.ID, leading(later.ID))
	e.mustFinish(success(run))
	e.edit(job.ID, leading())
	want(e, "paid", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	e.wantRuns("the child when it was started", former.ID, 0)
	e.wantRuns("the child when it ended", later.ID, 1)
}

// noteOf is the line that says that a job is not there.
func noteOf(id int64, app, key string) string {
	o := store.Owed{JobID: id, App: app, Key: key}
	return o.Unpaid()
}

func owedAbsent(e *env) {
	o := e.owner("a")
	gone := e.newJob()
	job := e.newJob(func(j *store.Job) { j.Children, j.ChildKeys = []int64{gone.ID}, []string{"app/never/there", "none/k"} })
	e.must(e.RemoveJob(e.ctx, gone.ID))
	for what, end := range map[string]func() store.Run{
		"a row that says nothing": func() store.Run { return o.succeeds(job.ID) },
		"one that says something": func() store.Run {
			run := o.started(o.planned(e.mustJob(job.ID)), to(remote), func(s *store.Start) { s.Msg = "routed" })
			e.mustDispatched(accepted(run))
			return o.one(e.mustFinish(overWire(run.ID)))
		},
	} {
		run := end()
		want(e, what+": paid", o.payAll(), store.Paid{Owed: 3, Absent: 3})
		got := e.mustRun(run.ID)
		for _, line := range []string{noteOf(gone.ID, "", ""), noteOf(0, "app", "never/there"), noteOf(0, "none", "k")} {
			e.check(hasLine(got.TriggerMsg, line), "%s: TriggerMsg %q lacks the line %q", what, got.TriggerMsg, line)
		}
		e.check(strings.HasPrefix(got.TriggerMsg, run.TriggerMsg), "%s: TriggerMsg %q has lost %q", what, got.TriggerMsg, run.TriggerMsg)
		got.TriggerMsg = run.TriggerMsg
		want(e, what+": the run but for that", got, run)
		want(e, what+": paid again", o.payAll(), store.Paid{})
	}
	e.wantRuns("of a removed job", gone.ID, 0)
}

func owedAbsentAmong(e *env) {
	o := e.owner("a")
	gone, first, last := e.newJob(), e.newJob(), e.newJob()
	e.must(e.RemoveJob(e.ctx, gone.ID))
	o.succeeds(e.newJob(leading(first.ID, gone.ID, last.ID)).ID)
	want(e, "paid", o.payAll(), store.Paid{Owed: 3, Runs: 2, Absent: 1})
	e.wantRuns("the one before", first.ID, 1)
	e.wantRuns("the one behind", last.ID, 1)
}

func owedLaterKey(e *env) {
	o := e.owner("a")
	keyed := func(j *store.Job) { j.App, j.Key = "other", "later/on" }
	parent := e.newJob(func(j *store.Job) { j.ChildKeys = []string{"other/later/on"} })
	run := o.succeeds(parent.ID)
	child := e.newJob(keyed)
	want(e, "paid to one that came later", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	want(e, "ParentID", e.only("with the key", child.ID).ParentID, run.ID)
	o.succeeds(parent.ID)
	e.must(e.RemoveJob(e.ctx, child.ID))
	again := e.newJob(keyed)
	want(e, "paid to another with the key", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	e.wantRuns("the one that has the key now", again.ID, 1)
}
