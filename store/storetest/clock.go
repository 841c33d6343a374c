package storetest

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

// What is done about a clock that was ahead. A store need not be a ClockMarker or a RunRedater: then
// these cases say nothing.

func clockCases() []testCase {
	marks := func(e *env, m store.ClockMarker) *marker { return &marker{e, m} }
	redates := func(e *env, r store.RunRedater) *redater { return &redater{e, r, e.owner("a")} }
	return append(optionalCases(marks, []optional[*marker]{
		{"AtFirstThereIsNoMark", markNone},
		{"TheMarkIsKeptToTheMillisecond", markKept},
		{"TheMarkGoesBackToo", markBack},
	}), optionalCases(redates, []optional[*redater]{
		{"WhatWasDueAtOnceIsDueAtOnce", redateNow},
		{"RetriesKeepWhatIsLeftOfTheirPause", redateRetry},
		{"NamedTimesStay", redateNamed},
		{"RunsFromBeforeStay", redateBefore},
		{"RunsOfSchedulesStay", redateBorn},
		{"OnlyPlannedRunsAreCorrected", redateStarted},
		{"OnlyTheOwnerCorrects", redateFenced},
		{"SoManyRunsAreCorrected", redatePages},
	})...)
}

// marker is a store that remembers when its clock was last trusted.
type marker struct {
	*env
	marks store.ClockMarker
}

func (e *marker) wantMark(what string, at time.Time) {
	e.Helper()
	got, err := e.marks.ClockMark(e.ctx)
	e.must(err)
	want(e.env, what, got, at)
}

func markNone(e *marker) { e.wantMark("the mark of a new store", time.Time{}) }

func markKept(e *marker) {
	e.must(e.marks.SetClockMark(e.ctx, e.at(10).Add(999*time.Microsecond).In(time.FixedZone("", 3600))))
	e.wantMark("the mark", e.at(10))
}

func markBack(e *marker) {
	for _, seconds := range []int{0, 86400, -86400} {
		e.must(e.marks.SetClockMark(e.ctx, e.at(seconds)))
		e.wantMark("the mark that was set last", e.at(seconds))
	}
}

// redater is a store that corrects runs, and the owner of all its shards. Its clock was never ahead:
// the cases name a time before it.
type redater struct {
	*env
	runs store.RunRedater
	o    *owner
}

// redate corrects runs as of a time, and returns how many.
func (e *redater) redate(now time.Time, shards []store.Shard, limit int) int {
	e.Helper()
	n, err := e.runs.RedateRuns(e.ctx, store.RedateQuery{Shards: shards, Now: now, Limit: limit})
	e.must(err)
	return n
}

// wantRedated corrects all runs as of two hours before one was inserted, and checks how many they
// are and when that one is due.
func (e *redater) wantRedated(what string, run store.Run, n int, due func(now time.Time) time.Time) {
	e.Helper()
	now := run.Created.Add(-2 * time.Hour)
	want(e.env, what+": how many are corrected", e.redate(now, e.o.shards, 100), n)
	if n > 0 {
		run.Created, run.Scheduled = now, due(now)
	}
	got := e.mustRun(run.ID)
	want(e.env, what+": when it was inserted and is due", []time.Time{got.Created, got.Scheduled}, []time.Time{run.Created, run.Scheduled})
	want(e.env, what+": how many are corrected once more", e.redate(now, e.o.shards, 100), 0)
}

func redateNow(e *redater) {
	run := e.mustAddRun(e.newJob().ID, store.Trigger{})
	e.wantRedated("a run that was due at once", run, 1, func(now time.Time) time.Time { return now })
	e.o.started(e.mustRun(run.ID)) // it is a run like others
}

func redateRetry(e *redater) {
	job := e.newJob(retried(1), func(j *store.Job) { j.RetryBackoff.First = 10 * time.Minute })
	ended := e.o.failed(e.o.started(e.o.planned(job)))
	retry := e.mustNext(ended)
	left := retry.Scheduled.Sub(retry.Created) // a moment less than the pause, which began with the end
	e.wantRedated("a retry", retry, 1, func(now time.Time) time.Time { return now.Add(left) })
}

func redateNamed(e *redater) {
	at := e.at(3 * 3600)
	run := e.mustAddRun(e.newJob().ID, store.Trigger{At: at})
	e.wantRedated("a run for a time that somebody has named", run, 1, func(time.Time) time.Time { return at })
}

func redateBefore(e *redater) {
	run := e.mustAddRun(e.newJob().ID, store.Trigger{})
	want(e.env, "corrected where the clock was a minute ahead at most", e.redate(run.Created.Add(-59*time.Second), e.o.shards, 100), 0)
	e.wantRun("RedateRuns", run)
	want(e.env, "corrected where it was more than a minute ahead", e.redate(run.Created.Add(-62*time.Second), e.o.shards, 100), 1)
}

func redateBorn(e *redater) {
	for _, run := range []store.Run{e.o.planned(e.newJob()), e.o.waited(e.newJob(delayed(time.Minute)))} {
		e.wantRedated("a run of a schedule", run, 0, nil)
	}
}

func redateStarted(e *redater) {
	run := e.o.started(e.mustAddRun(e.newJob().ID, store.Trigger{}))
	e.wantRedated("a run that was started", run, 0, nil)
	run = e.o.one(e.mustFinish(success(run)))
	e.wantRedated("a run that has ended", run, 0, nil)
}

func redateFenced(e *redater) {
	mine, other := e.mustAddRun(e.jobIn(0).ID, store.Trigger{}), e.mustAddRun(e.jobIn(1).ID, store.Trigger{})
	now, late := mine.Created.Add(-2*time.Hour), e.o
	e.o = late.overtakenBy("b")
	want(e.env, "corrected by a former owner", e.redate(now, late.shards, 100), 0)
	want(e.env, "corrected for no shards", e.redate(now, nil, 100), 0)
	for _, sh := range e.o.shards {
		if sh.ID == mine.Shard {
			want(e.env, "corrected in one shard", e.redate(now, []store.Shard{sh}, 100), 1)
		}
	}
	want(e.env, "when a run of the shard was inserted", e.mustRun(mine.ID).Created, now)
	e.wantRun("RedateRuns of another shard", other)
}

func redatePages(e *redater) {
	var now time.Time
	for range 5 {
		now = e.mustAddRun(e.newJob().ID, store.Trigger{}).Created.Add(-2 * time.Hour)
	}
	for _, n := range []int{2, 2, 1, 0} {
		want(e.env, "corrected at most", e.redate(now, e.o.shards, 2), n)
	}
}
