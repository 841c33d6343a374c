package storetest

import (
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Traces: what a trigger gives is the run's, and that of all that comes of it.

func traceCases() []testCase {
	return []testCase{
		{"IsThatOfTheTrigger", traceKept},
		{"IsKeptApart", traceAhead},
		{"OfNobodyIsNone", traceNone},
		{"IsThatOfARetry", traceRetry},
		{"IsThatOfEachPart", traceParts},
		{"IsThatOfAChild", traceChild},
		{"OfAWindowIsThatOfTheLastSuccess", traceWindow},
	}
}

const someTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"

// traced is a planned run that was asked for in a trace.
func (e *env) traced(job int64) store.Run {
	e.Helper()
	return e.mustAddRun(job, store.Trigger{Trace: someTrace})
}

func (e *env) wantTrace(what string, run store.Run) {
	e.Helper()
	want(e, "Trace of "+what, run.Trace, someTrace)
	want(e, "Trace of "+what+", as it is read", e.mustRun(run.ID).Trace, someTrace)
}

func traceKept(e *env) {
	o := e.owner("a")
	job := e.newJob()
	run := e.traced(job.ID)
	e.wantTrace("a run", run)
	run = o.started(run)
	e.wantTrace("a run that is started", run)
	e.wantTrace("a run that has ended", o.one(e.mustFinish(success(run))))
	long := store.Trigger{Trace: someTrace[:55] + " a=" + strings.Repeat("x", 600-58), Key: "once"}
	want(e, "a long Trace", e.mustAddRun(job.ID, long).Trace, long.Trace)
	want(e, "the Trace of a key's second run", e.mustAddRun(job.ID, store.Trigger{Trace: someTrace, Key: "once"}).Trace, long.Trace)
}

func traceAhead(e *env) {
	o := e.owner("a")
	at, move := e.far(0)
	run := e.mustAddAhead(e.newJob().ID, store.Trigger{At: at, Trace: someTrace}, move)
	e.wantTrace("a run that is kept apart", run)
	o.mustMove(move, 9)
	e.wantTrace("a run that has moved", e.mustRun(run.ID))
}

func traceNone(e *env) {
	o := e.owner("a")
	want(e, "Trace of a trigger without any", e.mustRun(e.mustAddRun(e.newJob().ID, store.Trigger{}).ID).Trace, "")
	want(e, "Trace of a run of the schedule", e.mustRun(o.planned(e.newJob()).ID).Trace, "")
}

func traceRetry(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(1), func(j *store.Job) { j.OnLost = store.OnLostRerun })
	failed := o.failed(o.started(e.traced(job.ID)))
	e.wantTrace("a retry", e.mustNext(failed))
	snoozed := o.one(e.mustFinish(snoozing(o.started(e.traced(job.ID)), time.Minute)))
	e.wantTrace("a run that was snoozed", e.mustNext(snoozed))
	lost := o.one(e.mustSettle(o.verdict(o.started(e.traced(job.ID)), store.StateLost)))
	e.wantTrace("a run that is run again", e.mustNext(lost))
}

func traceParts(e *env) {
	o := e.owner("a")
	for _, part := range o.inParts(e.traced(e.newJob().ID), 3) {
		e.wantTrace("a part", part)
	}
}

func traceChild(e *env) {
	o := e.owner("a")
	last := e.newJob()
	child := e.newJob(leading(last.ID))
	untraced := e.newJob()
	o.succeeded(e.traced(e.newJob(leading(child.ID)).ID))
	o.succeeded(o.planned(e.newJob(leading(untraced.ID))))
	want(e, "paid", o.payAll(), store.Paid{Owed: 2, Runs: 2})
	run := e.only("a child", child.ID)
	e.wantTrace("a child", run)
	want(e, "Trace of a child of the schedule's", e.mustRun(e.only("another child", untraced.ID).ID).Trace, "")
	o.succeeded(run)
	o.payAll()
	e.wantTrace("a child of a child", e.only("a child of a child", last.ID))
}

func traceWindow(e *env) {
	o := e.owner("a")
	one, two := e.newJob(), e.newJob()
	join := e.newJob(behind(one.ID, two.ID), func(j *store.Job) { j.AfterWindow = 365 * 24 * time.Hour })
	o.succeeded(e.mustAddRun(one.ID, store.Trigger{Trace: strings.Replace(someTrace, "congo", "other", 1)}))
	o.payAll()
	o.succeeded(e.traced(two.ID))
	o.payAll()
	e.wantTrace("a run behind two", e.only("behind two", join.ID))
}
