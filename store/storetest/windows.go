package storetest

// Joins: jobs that run behind several, once for a window.

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

func windowCases() []testCase {
	return slices.Concat([]testCase{
		{"AJoinRunsWhenAllHaveSucceeded", joinRuns},
		{"AJoinIsAsDeepAsTheDeepest", joinDepth},
		{"AJoinTooDeepIsARecord", joinTooDeep},
		{"SuccessesCountForTheirWindow", joinWindows},
		{"WindowsGoByTheClocksOfTheJob", joinZone},
		{"WhatNoZoneIsThereForIsLeft", joinUnknown},
		{"ARepeatedSuccessCountsOnce", joinRepeated},
		{"AWindowIsClosedOnce", joinOnce},
		{"AJoinIsNamedByIDAndByKey", joinTwice},
		{"TheKeyOfAWindowIsKnown", joinKey},
		{"AJoinGoesByItsDefinitionNow", joinEdited},
		{"AJoinThatIsNoneAnyMore", joinNoMore},
		{"ARemovedJoinIsNoted", joinRemoved},
		{"AJoinThatIsStoppedRuns", joinStopped},
		{"AChildMayBeAJoin", joinOfChildren},
		{"PartsCountOnceForAWindow", joinOfParts},
	}, expiryCases())
}

// behind makes a job run behind others.
func behind(ids ...int64) func(*store.Job) {
	return func(j *store.Job) { j.After = ids }
}

// noon is an instant that windows of these cases lie about.
func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// midnight is when the window of noon begins, where it is a day of UTC.
func midnight() time.Time { return noon().Add(-12 * time.Hour) }

func joinRuns(e *env) {
	o := e.owner("a")
	one, two, three := e.newJob(), e.newJob(), e.newJob()
	join := e.newJob(behind(one.ID, two.ID), func(j *store.Job) { j.AfterKeys = []string{three.App + "/" + three.Key} })
	for _, job := range []int64{two.ID, three.ID} {
		o.succeedsAt(job, noon())
		want(e, "paid before the last", o.payAll(), store.Paid{Owed: 1})
	}
	e.wantRuns("before the last", join.ID, 0)
	last := o.succeedsAt(one.ID, noon().Add(time.Minute))
	want(e, "paid after the last", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	run := e.only("behind three", join.ID)
	want(e, "the run", run, store.Run{ID: run.ID, JobID: join.ID, App: join.App, Shard: join.Shard, TriggerID: run.ID, ParentID: last.ID,
		Type: store.TriggerParent, Depth: 1, Business: midnight(), StandsFor: midnight(), Scheduled: run.Scheduled, State: store.StatePlanned,
		Retries: -1, Created: run.Created})
	e.check(!run.Scheduled.Before(last.Ended), "it is due at %v, before the last had ended, at %v", run.Scheduled, last.Ended)
	want(e, "its Instant", run.Instant(), midnight())
	want(e, "runs of a scan", ids(o.mustScan(o.scan(run.Scheduled)).Runs), []int64{run.ID})
	want(e, "windows that are open", o.mustExpire(o.later(), 9), store.Expired{})
	want(e, "state of the run that is started", o.started(run).State, store.StateStarted)
}

// joinDepth has the deepest first, and last.
func joinDepth(e *env) {
	o := e.owner("a")
	for _, deepFirst := range []bool{true, false} {
		flat, inner := e.newJob(), e.newJob()
		join := e.newJob(behind(flat.ID, inner.ID))
		deep := o.deep(inner.ID, 3)
		var last store.Run
		ends := []func(){
			func() { last = o.succeeded(deep) },
			func() { last = o.succeedsAt(flat.ID, deep.Business) },
		}
		if !deepFirst {
			slices.Reverse(ends)
		}
		for _, end := range ends {
			end()
			o.payAll()
		}
		run := e.only("behind two", join.ID)
		want(e, "Depth, ParentID", []any{run.Depth, run.ParentID}, []any{4, last.ID})
	}
}

func joinTooDeep(e *env) {
	o := e.owner("a")
	inner := e.newJob()
	join := e.newJob(behind(inner.ID))
	last := o.succeeded(o.deep(inner.ID, store.MostDepth))
	want(e, "paid", o.payAll(), store.Paid{Owed: 1, Skipped: 1})
	got := e.only("one too deep", join.ID)
	want(e, "State, Type, Reason, Count, ParentID, Depth, Business", []any{got.State, got.Type, got.Reason, got.Count, got.ParentID, got.Depth, got.Business},
		[]any{store.StateSkipped, store.TriggerParent, store.ReasonDepth, 1, last.ID, store.MostDepth + 1, e.window(&join, last.Business)})
	want(e, "windows that are open", o.mustExpire(o.later(), 9), store.Expired{})
}

func joinWindows(e *env) {
	o := e.owner("a")
	one, two := e.newJob(), e.newJob()
	join := e.newJob(behind(one.ID, two.ID), func(j *store.Job) { j.AfterWindow = time.Hour })
	o.succeedsAt(one.ID, noon().Add(-time.Millisecond))
	o.succeedsAt(two.ID, noon())
	want(e, "paid for two windows", o.payAll(), store.Paid{Owed: 2})
	o.succeedsAt(one.ID, noon().Add(time.Hour))
	want(e, "paid for a third", o.payAll(), store.Paid{Owed: 1})
	o.succeedsAt(one.ID, noon().Add(time.Hour-time.Millisecond))
	want(e, "paid for the second", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	want(e, "Business", e.only("of the second", join.ID).Business, noon())
	o.succeedsAt(two.ID, noon().Add(-time.Hour))
	want(e, "paid for the first", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	var windows []time.Time
	for _, run := range e.runsOf(join.ID) {
		windows = append(windows, run.Business)
	}
	want(e, "Business of both", windows, []time.Time{noon(), noon().Add(-time.Hour)})
}

// joinZone: what a success is for is an instant, and a window goes by the zone of the join.
func joinZone(e *env) {
	o := e.owner("a")
	one, two := e.newJob(), e.newJob()
	shanghai := e.newJob(behind(one.ID, two.ID), func(j *store.Job) { j.AfterZone = "Asia/Shanghai" })
	utc := e.newJob(behind(one.ID, two.ID))
	evening := time.Date(2026, 3, 1, 16, 0, 0, 0, time.UTC) // midnight in Shanghai
	o.succeedsAt(one.ID, evening.Add(-time.Millisecond))
	o.succeedsAt(two.ID, evening)
	want(e, "paid", o.payAll(), store.Paid{Owed: 4, Runs: 1})
	want(e, "Business in UTC", e.only("one day", utc.ID).Business, midnight())
	o.succeedsAt(one.ID, evening.Add(time.Hour))
	o.payAll()
	want(e, "Business in Shanghai", e.only("two days", shanghai.ID).Business, evening)
}

// window is when the window begins that a business time lies in.
func (e *env) window(j *store.Job, business time.Time) time.Time {
	e.Helper()
	begins, err := j.Window(business)
	e.must(err)
	return begins
}

// joinUnknown: what is owed to a job whose windows this process cannot work out stays owed, says so, holds up
// nothing else, however much of it there is, and is paid once the windows can be worked out.
func joinUnknown(e *env) {
	o := e.owner("a")
	one := e.newJob()
	nowhere := e.newJob(behind(one.ID), func(j *store.Job) { j.AfterZone = "Mars/Olympus" })
	before := e.newJob()
	far := e.newJob(behind(before.ID), func(j *store.Job) { j.AfterZone = "Mars/Tharsis" })
	child := e.newJob()
	other := e.newJob(leading(child.ID))
	utc := e.newJob(behind(other.ID))
	for i := range 3 {
		o.succeedsAt(one.ID, noon().AddDate(0, 0, i))
		o.succeedsAt(before.ID, noon().AddDate(0, 0, i))
	}
	o.succeedsAt(other.ID, noon())
	unknown := func(p store.Paid) (all []store.UnknownWindow) {
		slices.SortFunc(p.Unknown, func(a, b store.UnknownWindow) int { return cmp.Compare(a.Zone, b.Zone) })
		for _, u := range p.Unknown {
			if n := len(all); n > 0 && all[n-1].JobID == u.JobID {
				all[n-1].Owed += u.Owed
				continue
			}
			u.Shard = 0
			all = append(all, u)
		}
		return all
	}
	lacks := []store.UnknownWindow{{JobID: nowhere.ID, App: nowhere.App, Zone: "Mars/Olympus", Owed: 3}, {JobID: far.ID, App: far.App, Zone: "Mars/Tharsis", Owed: 3}}
	for i := range 2 { // one by one, and both are behind what cannot be paid
		paid := o.mustPay(1)
		want(e, fmt.Sprintf("paid at call %d", i), []int{paid.Owed, paid.Runs}, []int{1, 1})
	}
	paid := o.mustPay(100)
	want(e, "paid when the rest is paid", []int{paid.Owed, paid.Runs}, []int{0, 0})
	want(e, "what is left", unknown(paid), lacks)
	want(e, "Business of the one in UTC", e.only("in UTC", utc.ID).Business, midnight())
	e.only("the child", child.ID)
	e.wantRuns("in no zone", nowhere.ID, 0)
	e.wantRuns("in another", far.ID, 0)
	want(e, "windows that are open", o.mustExpire(o.later(), 9), store.Expired{})
	e.edit(nowhere.ID, func(j *store.Job) { j.AfterZone = "Asia/Shanghai" })
	paid = o.mustPay(100)
	want(e, "paid once the windows are known", []int{paid.Owed, paid.Runs}, []int{3, 3})
	want(e, "what is left then", unknown(paid), lacks[1:])
	first := slices.MinFunc(e.runsOf(nowhere.ID), func(a, b store.Run) int { return a.Business.Compare(b.Business) })
	want(e, "Business of the first", first.Business, time.Date(2026, 2, 28, 16, 0, 0, 0, time.UTC))
}

func joinRepeated(e *env) {
	o := e.owner("a")
	one, two := e.newJob(), e.newJob()
	join := e.newJob(behind(one.ID, two.ID))
	for range 3 {
		o.succeedsAt(one.ID, noon())
		want(e, "paid for one again", o.payAll(), store.Paid{Owed: 1})
	}
	o.succeedsAt(two.ID, noon())
	want(e, "paid for the other", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	e.wantRuns("four successes of two jobs", join.ID, 1)
}

func joinOnce(e *env) {
	o := e.owner("a")
	one, two := e.newJob(), e.newJob()
	join := e.newJob(behind(one.ID, two.ID))
	for round := range 3 {
		o.succeedsAt(one.ID, noon())
		o.succeedsAt(two.ID, noon().Add(time.Hour))
		want(e, "paid", o.payAll(), store.Paid{Owed: 2, Runs: map[bool]int{true: 1}[round == 0]})
	}
	e.wantRuns("each has succeeded three times", join.ID, 1)
	o.succeeded(e.only("one run", join.ID))
	o.succeedsAt(one.ID, noon())
	o.succeedsAt(two.ID, noon())
	want(e, "paid once the run has ended", o.payAll(), store.Paid{Owed: 2})
	want(e, "windows that are open", o.mustExpire(o.later(), 9), store.Expired{})
	o.succeedsAt(one.ID, noon().AddDate(0, 0, 1))
	o.succeedsAt(two.ID, noon().AddDate(0, 0, 1))
	want(e, "paid for the next day", o.payAll(), store.Paid{Owed: 2, Runs: 1})
	e.wantRuns("two days", join.ID, 2)
}

func joinTwice(e *env) {
	o := e.owner("a")
	one := e.newJob()
	join := e.newJob(behind(one.ID), func(j *store.Job) { j.AfterKeys = []string{one.App + "/" + one.Key} })
	o.succeedsAt(one.ID, noon())
	want(e, "runs planned", o.payAll().Runs, 1)
	e.wantRuns("named twice", join.ID, 1)
}

func joinKey(e *env) {
	o := e.owner("a")
	one := e.newJob()
	join := e.newJob(behind(one.ID))
	o.succeedsAt(one.ID, noon())
	o.payAll()
	run := e.only("a join", join.ID)
	want(e, "the run of the window's key", e.mustAddRun(join.ID, store.Trigger{Key: store.WindowKey(midnight())}).ID, run.ID)
}

// joinEdited takes a job out that has not succeeded, and puts one in that has not.
func joinEdited(e *env) {
	o := e.owner("a")
	one, two, three := e.newJob(), e.newJob(), e.newJob()
	join := e.newJob(behind(one.ID, two.ID))
	o.succeedsAt(one.ID, noon())
	want(e, "paid for one", o.payAll(), store.Paid{Owed: 1})
	e.edit(join.ID, behind(one.ID, two.ID, three.ID))
	o.succeedsAt(two.ID, noon())
	want(e, "paid while a third is missing", o.payAll(), store.Paid{Owed: 1})
	e.wantRuns("while a third is missing", join.ID, 0)
	e.edit(join.ID, behind(one.ID, two.ID))
	o.succeedsAt(two.ID, noon())
	want(e, "paid when the third is taken out", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	e.wantRuns("when the third is taken out", join.ID, 1)
	e.edit(join.ID, func(j *store.Job) { j.After, j.AfterKeys = nil, []string{three.App + "/" + three.Key} })
	o.succeedsAt(one.ID, noon().AddDate(0, 0, 1))
	want(e, "owed by a job that is taken out", o.payAll(), store.Paid{})
	o.succeedsAt(three.ID, noon().AddDate(0, 0, 1))
	want(e, "owed by one that is named now", o.payAll(), store.Paid{Owed: 1, Runs: 1})
}

func joinNoMore(e *env) {
	o := e.owner("a")
	one, two := e.newJob(), e.newJob()
	join := e.newJob(behind(one.ID, two.ID))
	o.succeedsAt(one.ID, noon())
	o.payAll()
	o.succeedsAt(two.ID, noon())
	o.succeedsAt(two.ID, noon().AddDate(0, 0, 1))
	e.edit(join.ID, behind())
	want(e, "paid to a job that runs behind nothing any more", o.payAll(), store.Paid{Owed: 2})
	e.wantRuns("behind nothing", join.ID, 0)
	want(e, "windows that were open", o.mustExpire(o.later(), 9), store.Expired{Windows: 1})
	e.wantRuns("when the window is closed", join.ID, 0)
}

func joinRemoved(e *env) {
	o := e.owner("a")
	one, two := e.newJob(), e.newJob()
	join := e.newJob(behind(one.ID, two.ID))
	run := o.succeedsAt(one.ID, noon())
	e.must(e.RemoveJob(e.ctx, join.ID))
	want(e, "paid to a job that is removed", o.payAll(), store.Paid{Owed: 1, Absent: 1})
	got := e.mustRun(run.ID).TriggerMsg
	e.check(hasLine(got, noteOf(join.ID, "", "")), "TriggerMsg %q does not name job %d", got, join.ID)
	want(e, "windows that are open", o.mustExpire(o.later(), 9), store.Expired{})
	o.succeedsAt(two.ID, noon())
	want(e, "owed to a job that is removed", o.payAll(), store.Paid{})
}

func joinStopped(e *env) {
	o := e.owner("a")
	one := e.newJob()
	join := e.newJob(behind(one.ID))
	e.stop(join.ID)
	o.succeedsAt(one.ID, noon())
	want(e, "paid", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	want(e, "state of the run that is started", o.started(e.only("of a stopped job", join.ID)).State, store.StateStarted)
}

// joinOfChildren is a diamond: a child counts for the time of its parent.
func joinOfChildren(e *env) {
	o := e.owner("a")
	left, right := e.newJob(), e.newJob()
	join := e.newJob(behind(left.ID, right.ID))
	top := e.newJob(leading(left.ID, right.ID))
	o.succeedsAt(top.ID, noon())
	want(e, "paid at the top", o.payAll(), store.Paid{Owed: 2, Runs: 2})
	o.succeeded(e.only("left", left.ID))
	want(e, "paid for the left", o.payAll(), store.Paid{Owed: 1})
	last := o.succeeded(e.only("right", right.ID))
	want(e, "paid for the right", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	run := e.only("below", join.ID)
	want(e, "Business, Depth, ParentID", []any{run.Business, run.Depth, run.ParentID}, []any{midnight(), 2, last.ID})
}

func joinOfParts(e *env) {
	o := e.owner("a")
	one := e.newJob(retried(1))
	join := e.newJob(behind(one.ID))
	parts := o.inParts(o.one(o.claim(o.plan(one, noon()))), 2)
	retry := e.mustNext(o.one(e.mustFinish(partFailed(parts[0]))))
	e.mustFinish(overWire(parts[1].ID))
	want(e, "paid while a part waits to be tried again", o.payAll(), store.Paid{})
	o.succeeded(retry)
	want(e, "paid after its success", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	run := e.only("behind parts", join.ID)
	want(e, "Business, ParentID", []any{run.Business, run.ParentID}, []any{midnight(), retry.ID})
}
