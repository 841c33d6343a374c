package storetest

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

// What a run stands for, where that is another instant than the one at which it is due.

func standsCases() []testCase {
	return []testCase{
		{"ARunForAPastTimeStandsForIt", standsForThePast},
		{"OneForLaterStandsForWhenItIsDue", standsForLater},
		{"ARunStandsForWhatItRepeats", standsForAnother},
		{"WhatARunStandsForStays", standsForLong},
		{"WhatIsDueDecidesTheOrder", standsAside},
	}
}

func standsForThePast(e *env) {
	job := e.newJob()
	for _, past := range []time.Time{e.at(-3600), time.Date(1970, 1, 1, 0, 0, 0, 1e6, time.UTC), e.at(-30 * 86400)} {
		run := e.mustAddRun(job.ID, store.Trigger{At: past.Add(999 * time.Microsecond), Param: new("p")})
		want(e, "a run for a past time", run, store.Run{ID: run.ID, JobID: job.ID, App: job.App, Shard: job.Shard, TriggerID: run.ID, Type: store.TriggerManual,
			Scheduled: run.Created, StandsFor: past, ParamSet: true, Param: "p", Retries: -1, Created: run.Created})
		e.wantRun("AddRun", run)
		want(e, "Instant, BusinessTime", []any{run.Instant(), run.BusinessTime()}, []any{past, past})
	}
}

func standsForLater(e *env) {
	job := e.newJob()
	for _, t := range []store.Trigger{{}, {At: e.at(3600)}} {
		run := e.mustAddRun(job.ID, t)
		want(e, "StandsFor", run.StandsFor, time.Time{})
		want(e, "Instant", run.Instant(), run.Scheduled)
	}
	far := e.mustAddAhead(job.ID, store.Trigger{At: e.at(100 * 86400)}, e.at(99*86400))
	want(e, "StandsFor of a run that is kept apart", []any{far.StandsFor, far.Instant()}, []any{time.Time{}, e.at(100 * 86400)})
}

func standsForAnother(e *env) {
	job := e.newJob()
	several := store.Run{Scheduled: e.at(-60), First: e.at(-600), Last: e.at(-60), Count: 10, Type: store.TriggerMisfire}
	for _, c := range []struct {
		name string
		of   store.Run
		want store.Run
	}{
		{"a run of a schedule", store.Run{Scheduled: e.at(-60)}, store.Run{StandsFor: e.at(-60)}},
		{"one that is not due yet", store.Run{Scheduled: e.at(600)}, store.Run{StandsFor: e.at(600)}},
		{"one that repeats another", store.Run{Scheduled: e.at(-6), StandsFor: e.at(-60)}, store.Run{StandsFor: e.at(-60)}},
		{"a retry", store.Run{Scheduled: e.at(-6), First: e.at(-60), Last: e.at(-60), Type: store.TriggerRetry}, store.Run{StandsFor: e.at(-60)}},
		{"one for several instants", several, store.Run{StandsFor: e.at(-60), First: e.at(-600), Last: e.at(-60), Count: 10}},
		{"a join", store.Run{Scheduled: e.at(-6), Business: midnight()}, store.Run{StandsFor: e.at(-6), Business: midnight()}},
		{"a child", store.Run{Scheduled: e.at(-6), ParentID: 77, Depth: 3}, store.Run{StandsFor: e.at(-6), ParentID: 77, Depth: 3}},
	} {
		run := e.mustAddRun(job.ID, store.Trigger{}.Repeating(&c.of))
		got := store.Run{StandsFor: run.StandsFor, Business: run.Business, First: run.First, Last: run.Last, Count: run.Count, ParentID: run.ParentID, Depth: run.Depth}
		want(e, "a run that repeats "+c.name, got, c.want)
		want(e, "when it is due", run.Scheduled, run.Created)
		want(e, "its Instant and BusinessTime", []any{run.Instant(), run.BusinessTime()}, []any{c.of.Instant(), c.of.BusinessTime()})
		e.wantRun("AddRun", run)
	}
}

// standsForLong has retries, parts of a broadcast, and runs that are given back.
func standsForLong(e *env) {
	o := e.owner("a")
	past := e.at(-86400)
	job := e.newJob(retried(2))
	run := e.mustAddRun(job.ID, store.Trigger{At: past})
	started := o.started(run)
	e.mustSettle(o.verdict(started, store.StatePlanned))
	back := e.mustRun(run.ID)
	want(e, "State, StandsFor of a run that was given back", []any{back.State, back.StandsFor}, []any{store.StatePlanned, past})
	ended := o.failed(o.started(back))
	for range 2 {
		next := e.mustNext(ended)
		want(e, "StandsFor, Instant, BusinessTime of a retry", []any{next.StandsFor, next.Instant(), next.BusinessTime()}, []any{past, past, past})
		want(e, "when its trigger was due", next.Due(), run.Scheduled)
		ended = o.failed(o.started(next))
	}
	for _, part := range o.inParts(e.mustAddRun(e.newJob().ID, store.Trigger{At: past}), 3) {
		want(e, "StandsFor of a part", part.StandsFor, past)
		e.wantRun("a part", part)
	}
}

// standsAside: a retry whose trigger was due before lets no later run pass, whatever that stands for.
func standsAside(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(1))
	behind := func(run store.Run) func(*store.Start) {
		return func(s *store.Start) { s.AfterRetries, s.Instant, s.TriggerID = true, run.Due(), run.TriggerID }
	}
	first := e.mustAddRun(job.ID, store.Trigger{})
	o.failed(o.started(first))
	second := e.mustAddRun(job.ID, store.Trigger{At: e.at(-86400)})
	want(e, "the start of a later trigger for an earlier time", o.tryStart(o.startOf(second, behind(second))).Status, store.StartBusy)
}
