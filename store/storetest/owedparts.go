package storetest

// Once per trigger: with its last attempt, and with the last part of a broadcast.

import (
	"fmt"

	"github.com/xxljob/xxljob/store"
)

func owedPartCases() []testCase {
	return []testCase{
		{"TheLastAttemptOwes", owedAttempts},
		{"ASnoozedTriggerOwesOnce", owedSnoozed},
		{"TheLastPartOwes", owedParts},
		{"PartsInOneBatchOweOnce", owedPartsInOne},
		{"APartThatIsTriedAgain", owedPartRetried},
		{"APartThatHasFailedForGoodBlocks", owedPartFailed},
		{"APartThatIsTriggeredAloneIsATrigger", owedPartAlone},
		{"ARetryInPartsOwesOnce", owedRetryInParts},
		{"PartsOfTwoTriggersAreTwo", owedTwoBroadcasts},
	}
}

// inParts starts a run as a broadcast, and returns its parts in their order.
func (o *owner) inParts(run store.Run, n int) []store.Run {
	o.Helper()
	var targets []string
	for i := range n {
		targets = append(targets, fmt.Sprintf("http://10.0.0.%d:9999", i+1))
	}
	a := o.tryStart(o.startOf(run, func(s *store.Start) { s.Targets, s.Address = targets, targets[0] }))
	want(o.env, "status of a broadcast", a.Status, store.StartOK)
	parts := append([]store.Run{a.Run}, a.Siblings...)
	want(o.env, "parts of a broadcast", len(parts), n)
	return parts
}

// paysFor checks that one run of the child is paid for, and whose success led to it.
func (o *owner) paysFor(what string, child, parent int64) {
	o.Helper()
	want(o.env, "paid "+what, o.payAll(), store.Paid{Owed: 1, Runs: 1})
	want(o.env, "ParentID "+what, o.only(what, child).ParentID, parent)
}

// partFailed is the result of a part that has failed.
func partFailed(part store.Run) store.Result {
	r := overWire(part.ID)
	r.State, r.HandleMsg = store.StateFailed, "boom"
	return r
}

func owedAttempts(e *env) {
	o := e.owner("a")
	child := e.newJob()
	run := o.planned(e.newJob(leading(child.ID), retried(2)))
	for range 2 {
		run = e.mustNext(o.failed(o.started(run)))
		want(e, "paid after a failure", o.payAll(), store.Paid{})
	}
	o.succeeded(run)
	o.paysFor("after the last", child.ID, run.ID)
}

func owedSnoozed(e *env) {
	o := e.owner("a")
	child := e.newJob()
	run := o.planned(e.newJob(leading(child.ID)))
	for range 2 {
		run = e.mustNext(o.one(e.mustFinish(snoozing(o.started(run), 0))))
		want(e, "paid after a snooze", o.payAll(), store.Paid{})
	}
	o.succeeded(run)
	o.paysFor("after the success", child.ID, run.ID)
}

func owedParts(e *env) {
	o := e.owner("a")
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		child := e.newJob()
		parts := o.inParts(o.planned(e.newJob(leading(child.ID))), 3)
		for _, i := range order[:2] {
			e.mustFinish(overWire(parts[i].ID))
			want(e, "paid while a part is under way", o.payAll(), store.Paid{})
		}
		last := o.one(e.mustFinish(overWire(parts[order[2]].ID)))
		o.paysFor("after the last part", child.ID, last.ID)
		e.mustFinish(overWire(last.ID))
		want(e, "paid after a result that comes twice", o.payAll(), store.Paid{})
	}
}

func owedPartsInOne(e *env) {
	o := e.owner("a")
	child, other := e.newJob(), e.newJob()
	parts := o.inParts(o.planned(e.newJob(leading(child.ID))), 3)
	more := o.inParts(o.planned(e.newJob(leading(other.ID))), 2)
	e.mustFinish(overWire(parts[2].ID), overWire(more[0].ID), overWire(parts[0].ID), overWire(parts[2].ID), overWire(parts[1].ID))
	want(e, "paid", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	e.wantRuns("whose parts have all succeeded", child.ID, 1)
	e.wantRuns("of which one has not", other.ID, 0)
}

func owedPartRetried(e *env) {
	o := e.owner("a")
	child := e.newJob()
	parts := o.inParts(o.planned(e.newJob(leading(child.ID), retried(2))), 2)
	retry := e.mustNext(o.one(e.mustFinish(partFailed(parts[0]))))
	e.mustFinish(overWire(parts[1].ID))
	want(e, "paid while a part waits to be tried again", o.payAll(), store.Paid{})
	retry = e.mustNext(o.failed(o.started(retry)))
	want(e, "paid after another failure", o.payAll(), store.Paid{})
	o.succeeded(retry)
	o.paysFor("after its success", child.ID, retry.ID)
}

func owedPartFailed(e *env) {
	o := e.owner("a")
	child := e.newJob()
	job := e.newJob(leading(child.ID), retried(1))
	parts := o.inParts(o.planned(job), 3)
	retry := e.mustNext(o.one(e.mustFinish(partFailed(parts[1]))))
	e.wantNone("after the last attempt", o.failed(o.started(retry)))
	e.mustFinish(overWire(parts[0].ID), overWire(parts[2].ID))
	killed := o.inParts(o.planned(e.mustJob(job.ID)), 2)
	e.mustKill(killed[0].ID, "unwanted")
	r := overWire(killed[0].ID)
	r.State = store.StateKilled
	e.mustFinish(r, overWire(killed[1].ID))
	want(e, "paid", o.payAll(), store.Paid{})
	e.wantRuns("of which a part has failed for good", child.ID, 0)
}

func owedPartAlone(e *env) {
	o := e.owner("a")
	child := e.newJob()
	job := e.newJob(leading(child.ID))
	parts := o.inParts(o.planned(job), 3)
	e.mustFinish(overWire(parts[0].ID), overWire(parts[2].ID), partFailed(parts[1]))
	want(e, "paid after a failure", o.payAll(), store.Paid{})
	alone := e.mustAddRun(job.ID, store.Trigger{Shard: store.Sharding{Index: 1, Total: 3}})
	o.succeeded(alone)
	o.paysFor("after one that was triggered alone", child.ID, alone.ID)
}

// owedRetryInParts: the parts of a trigger are those of its last attempt, where the first was
// none.
func owedRetryInParts(e *env) {
	o := e.owner("a")
	child := e.newJob()
	parts := o.inParts(e.mustNext(o.failed(o.started(o.planned(e.newJob(leading(child.ID), retried(1)))))), 2)
	e.mustFinish(overWire(parts[1].ID))
	want(e, "paid while a part is under way", o.payAll(), store.Paid{})
	e.mustFinish(overWire(parts[0].ID))
	o.paysFor("after the last part of a retry", child.ID, parts[0].ID)
}

func owedTwoBroadcasts(e *env) {
	o := e.owner("a")
	child := e.newJob()
	job := e.newJob(leading(child.ID))
	one, two := o.inParts(o.planned(job), 2), o.inParts(o.planned(e.mustJob(job.ID)), 2)
	e.mustFinish(overWire(one[0].ID), overWire(two[1].ID))
	want(e, "paid after one part of each", o.payAll(), store.Paid{})
	e.mustFinish(overWire(two[0].ID), overWire(one[1].ID))
	want(e, "paid after the others", o.payAll(), store.Paid{Owed: 2, Runs: 2})
	e.wantRuns("one of each trigger", child.ID, 2)
}
