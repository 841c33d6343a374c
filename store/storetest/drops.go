package storetest

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

// Ended runs that are deleted when somebody says so. A store need not do it: then these cases
// say nothing.

func dropCases() []testCase {
	with := func(e *env, r store.RunDropper) *dropper {
		e.deletes = true
		return &dropper{e, r, e.owner("a")}
	}
	return optionalCases(with, []optional[*dropper]{
		{"EndedRunsGo", dropAll},
		{"RunsOfTheAppsAndJobs", dropChosen},
		{"RunsOfRemovedJobs", dropRemoved},
		{"RunsFromBeforeATime", dropBefore},
		{"RunsThatEndedBeforeATime", dropEndedBefore},
		{"TheNewestStay", dropNewest},
		{"TheNewestOfEachJobStay", dropNewestOfEach},
		{"ADryRunDeletesNothing", dropDry},
		{"SoManyRunsAreLookedAt", dropPages},
		{"TheKeyOfARunGoesWithIt", dropKey},
		{"ThePagesOfALogGoWithItsRun", dropLog},
		{"WhatIsAbsurdIsRefused", dropAbsurd},
		{"NothingThatIsNotThere", dropNothing},
		{"RunsThatHaveNotEndedStay", dropUnended},
		{"PartsStayWhileOneHasNotEnded", dropParts},
		{"AttemptsStayWhileOneIsToCome", dropAttempts},
		{"WhatIsSnoozedStays", dropSnoozed},
		{"WhatIsOwedIsNeeded", dropOwed},
		{"WhatIsSecretStaysSoWhenItsParentIsDeleted", dropSecret},
		{"WhatAnOpenWindowHasCountedIsNeeded", dropWindow},
		{"TheRunOfAWindowIsNeeded", dropJoin},
		{"WhatAnAlarmIsAboutIsNeeded", dropAlarm},
		{"WhatWasToldIsNeeded", dropTold},
		{"ARecoveryIsNeeded", dropRecovered},
		{"AnInstantThatIsToComeIsNeeded", dropToCome},
		{"RunsThatAreKeptApartStay", dropAhead},
		{"JobsKeepTheirRunsForSoLong", dropExpired},
		{"JobsThatKeepTheirRunsAreWalkedThrough", dropExpiredPages},
		{"ExpiredRunsThatAreNeededStay", dropExpiredNeeded},
	})
}

// dropper is a store that deletes, and the owner of all its shards.
type dropper struct {
	*env
	drops store.RunDropper
	o     *owner
}

func (e *dropper) drop(q store.RunDrop) store.Dropped {
	e.Helper()
	got, err := e.drops.DropEnded(e.ctx, q)
	e.must(err)
	return got
}

// dropped deletes all that the question chooses, page by page, and returns the sums.
func (e *dropper) dropped(q store.RunDrop) (runs, kept int) {
	e.Helper()
	for range 1000 {
		got := e.drop(q)
		runs, kept = runs+got.Runs, kept+got.Kept
		if !got.More {
			want(e.env, "Next where there is no more", got.Next, store.DropMark{})
			return runs, kept
		}
		q.After = got.Next
	}
	e.Fatalf("there is more after a thousand calls")
	return 0, 0
}

// wantThere checks which of the runs can be read.
func (e *dropper) wantThere(what string, there bool, runs ...store.Run) {
	e.Helper()
	for _, run := range runs {
		list, err := e.RunsByID(e.ctx, []int64{run.ID})
		e.must(err)
		want(e.env, what+": the run is there", len(list) == 1, there)
	}
}

// wantKept checks that nothing may delete the runs.
func (e *dropper) wantKept(what string, runs ...store.Run) {
	e.Helper()
	e.dropped(store.RunDrop{All: true})
	e.wantThere(what, true, runs...)
}

// wantGone checks that they can be deleted.
func (e *dropper) wantGone(what string, runs ...store.Run) {
	e.Helper()
	e.dropped(store.RunDrop{All: true})
	e.wantThere(what, false, runs...)
}

// triggered is a run of the job by hand that has succeeded.
func (e *dropper) triggered(job int64) store.Run {
	e.Helper()
	return e.o.succeeded(e.mustAddRun(job, store.Trigger{}))
}

// fails is a planned run that has failed by now.
func (e *dropper) fails(planned store.Run) store.Run {
	e.Helper()
	return e.o.failed(e.o.started(planned))
}

func (e *dropper) several(job int64, n int) (runs []store.Run) {
	e.Helper()
	for range n {
		runs = append(runs, e.triggered(job))
	}
	return runs
}

func dropAll(e *dropper) {
	job := e.newJob()
	good, bad := e.triggered(job.ID), e.fails(e.mustAddRun(job.ID, store.Trigger{}))
	skipped := e.o.one(e.o.claim(e.o.skip(e.newJob())))
	killed := e.mustKill(e.mustAddRun(job.ID, store.Trigger{}).ID, "no")
	got := e.drop(store.RunDrop{All: true})
	want(e.env, "dropped", got, store.Dropped{Runs: 4, Examined: 4})
	e.wantThere("after that", false, good, bad, skipped, killed)
	want(e.env, "dropped again", e.drop(store.RunDrop{All: true}), store.Dropped{})
	e.check(e.mustJob(job.ID).ID == job.ID, "the job is gone")
}

func dropChosen(e *dropper) {
	a, b := e.newJob(), e.newJob(func(j *store.Job) { j.App = "other" })
	ofA, ofB, third := e.triggered(a.ID), e.triggered(b.ID), e.triggered(e.newJob().ID)
	runs, _ := e.dropped(store.RunDrop{All: true, Apps: []string{"other", "absent"}})
	want(e.env, "runs of an app", runs, 1)
	e.wantThere("of the app", false, ofB)
	e.wantThere("of others", true, ofA, third)
	ofB = e.triggered(b.ID)
	runs, _ = e.dropped(store.RunDrop{All: true, JobIDs: []int64{b.ID, a.ID, b.ID, 1 << 40, -1}})
	want(e.env, "runs of two jobs", runs, 2)
	e.wantThere("of the two jobs", false, ofA, ofB)
	e.wantThere("of another job", true, third)
	ofA, ofB = e.triggered(a.ID), e.triggered(b.ID)
	runs, _ = e.dropped(store.RunDrop{All: true, Apps: []string{"other"}, JobIDs: []int64{a.ID, b.ID}})
	want(e.env, "runs of an app and of two jobs", runs, 1)
	e.wantThere("of the app and a job", false, ofB)
	e.wantThere("of the job alone", true, ofA)
}

func dropRemoved(e *dropper) {
	one, two := e.newJob(), e.newJob(func(j *store.Job) { j.App = "other" })
	ofOne, ofTwo := e.triggered(one.ID), e.triggered(two.ID)
	e.must(e.RemoveJob(e.ctx, one.ID))
	e.must(e.RemoveJob(e.ctx, two.ID))
	e.dropped(store.RunDrop{All: true, JobIDs: []int64{one.ID}})
	e.wantThere("of a removed job", false, ofOne)
	e.wantThere("of another one", true, ofTwo)
	e.dropped(store.RunDrop{All: true, Apps: []string{"other"}})
	e.wantThere("of the app of a removed job", false, ofTwo)
}

// endOfTime is the last day that a question may name.
func endOfTime() time.Time { return time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC) }

// past is long before all runs of a case, hence long after them. To know the store's clock
// makes a run.
func (e *env) past() time.Time  { return e.clock().Add(-time.Hour) }
func (e *env) hence() time.Time { return e.clock().Add(time.Hour) }

func dropBefore(e *dropper) {
	job := e.newJob()
	run := e.triggered(job.ID)
	for _, q := range []store.RunDrop{{Before: e.past()}, {Before: e.past(), JobIDs: []int64{job.ID}}, {Before: time.Unix(0, 0)}} {
		runs, kept := e.dropped(q)
		want(e.env, "runs from before", []int{runs, kept}, []int{0, 0})
		e.wantThere("from later", true, run)
	}
	e.dropped(store.RunDrop{Before: e.hence(), JobIDs: []int64{job.ID}})
	e.wantThere("of the job from before", false, run)
	run = e.triggered(job.ID)
	e.dropped(store.RunDrop{Before: e.hence()})
	e.wantThere("of all jobs from before", false, run)
	run = e.triggered(job.ID)
	e.dropped(store.RunDrop{Before: endOfTime()})
	e.wantThere("from before the end of time", false, run)
}

func dropEndedBefore(e *dropper) {
	job := e.newJob()
	run := e.triggered(job.ID)
	for _, q := range []store.RunDrop{{}, {JobIDs: []int64{job.ID}}} {
		q.All, q.EndedBefore = true, run.Ended
		e.dropped(q)
		e.wantThere("that ended at the time", true, run)
	}
	e.dropped(store.RunDrop{All: true, EndedBefore: run.Ended.Add(time.Millisecond)})
	e.wantThere("that ended before", false, run)
}

func dropNewest(e *dropper) {
	job := e.newJob()
	runs := e.several(job.ID, 7)
	open := e.mustAddRun(job.ID, store.Trigger{})
	q := store.RunDrop{KeepNewest: 8, JobIDs: []int64{job.ID}}
	n, _ := e.dropped(q)
	want(e.env, "all but more than there are", n, 0)
	q.KeepNewest = 7
	n, _ = e.dropped(q)
	want(e.env, "all but as many as there are", n, 0)
	q.KeepNewest = 3
	n, _ = e.dropped(q)
	want(e.env, "all but the newest three", n, 4)
	e.wantThere("the oldest", false, runs[:4]...)
	e.wantThere("the newest", true, append(runs[4:], open)...)
	q.KeepNewest, q.Before = 1, e.past()
	n, _ = e.dropped(q)
	want(e.env, "and from before", n, 0)
	q.Limit, q.Before = 1, e.hence()
	n, _ = e.dropped(q)
	want(e.env, "all but the newest, one by one", n, 2)
	e.wantThere("the newest one", true, runs[6])
}

func dropNewestOfEach(e *dropper) {
	a, b, none := e.newJob(), e.newJob(), e.newJob()
	ofA, ofB := e.several(a.ID, 3), e.several(b.ID, 4)
	n, _ := e.dropped(store.RunDrop{KeepNewest: 2, JobIDs: []int64{b.ID, none.ID, a.ID, 1 << 40}})
	want(e.env, "all but two of each", n, 3)
	e.wantThere("older ones", false, ofA[0], ofB[0], ofB[1])
	e.wantThere("newer ones", true, ofA[1], ofA[2], ofB[2], ofB[3])
}

func dropDry(e *dropper) {
	job := e.newJob()
	runs := e.several(job.ID, 5)
	for _, q := range []store.RunDrop{{All: true}, {All: true, JobIDs: []int64{job.ID}}, {Before: e.hence()}} {
		q.DryRun, q.Limit = true, 2
		n, _ := e.dropped(q)
		want(e.env, "that would go", n, 5)
	}
	n, _ := e.dropped(store.RunDrop{KeepNewest: 2, JobIDs: []int64{job.ID}, DryRun: true})
	want(e.env, "that would go but for two", n, 3)
	e.wantThere("after a dry run", true, runs...)
}

func dropPages(e *dropper) {
	job, other := e.newJob(), e.newJob(func(j *store.Job) { j.App = "other" })
	for _, q := range []store.RunDrop{{All: true, Apps: []string{other.App}}, {All: true, JobIDs: []int64{other.ID, job.ID}}, {Before: endOfTime()}} {
		e.dropped(store.RunDrop{All: true})
		e.several(job.ID, 5)
		e.several(other.ID, 5)
		q.Limit = 3
		examined, calls := 0, 0
		for more := true; more; {
			got := e.drop(q)
			e.check(got.Examined <= 3, "%d runs were looked at, at most 3", got.Examined)
			examined, more, q.After, calls = examined+got.Examined, got.More, got.Next, calls+1
			if calls > 20 {
				e.Fatalf("there is more after twenty calls: %+v", got)
			}
		}
		want(e.env, "looked at by all calls", examined, 10)
		e.wantRuns("of the app", other.ID, 0)
	}
}

func dropKey(e *dropper) {
	job := e.newJob()
	run := e.o.succeeded(e.mustAddRun(job.ID, store.Trigger{Key: "order 1"}))
	kept := e.mustAddRun(job.ID, store.Trigger{Key: "order 2"})
	e.wantGone("with a key", run)
	again := e.mustAddRun(job.ID, store.Trigger{Key: "order 1"})
	e.check(again.ID != run.ID, "the key leads to the run that is gone")
	want(e.env, "the run of the other key", e.mustAddRun(job.ID, store.Trigger{Key: "order 2"}).ID, kept.ID)
}

// dropLog: what the log of a run that has gone had is not counted any more.
func dropLog(e *dropper) {
	logs, ok := e.Store.(store.LogStore)
	if !ok {
		return
	}
	job, other := e.newJob(), e.newJob()
	gone, kept := e.several(job.ID, 3), e.triggered(other.ID)
	l := &logKeeper{e.env, logs, e.o}
	for _, run := range append(gone, kept) {
		l.put(anyBytes, page(run, 1, 3), page(run, 4, 4))
	}
	e.dropped(store.RunDrop{All: true, JobIDs: []int64{job.ID}})
	e.wantThere("with a log", false, gone...)
	l.wantPages("pages of a run that has gone", gone[1], 1, 100, 0)
	l.wantPages("pages of a run of another job", kept, 1, 100, 4, page(kept, 1, 3), page(kept, 4, 4))
	run := e.triggered(job.ID)
	want(e.env, "refused of a run that came later", l.put(4, page(run, 1, 1)), nil)
	want(e.env, "refused once there is as much again", l.put(4, page(run, 2, 2)), []int64{run.ID})
	want(e.env, "refused of another job", l.put(8, page(kept, 5, 5)), []int64{kept.ID})
}

func dropAbsurd(e *dropper) {
	run := e.triggered(e.newJob().ID)
	for field, q := range map[string]store.RunDrop{
		"All":         {},
		"Apps":        {All: true, Apps: make([]string, 1001)},
		"JobIDs":      {All: true, JobIDs: make([]int64, 100_000)},
		"KeepNewest":  {KeepNewest: -1, JobIDs: []int64{run.JobID}},
		"Before":      {Before: time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)},
		"EndedBefore": {All: true, EndedBefore: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"Limit":       {All: true, Limit: -1},
	} {
		_, err := e.drops.DropEnded(e.ctx, q)
		fields := store.FieldErrors(err)
		e.check(len(fields) > 0 && fields[len(fields)-1].Field == field || len(fields) > 0 && fields[0].Field == field, "%s: %v", field, err)
	}
	for _, q := range []store.RunDrop{
		{KeepNewest: 1}, {KeepNewest: 100_001, JobIDs: []int64{run.JobID}}, {All: true, KeepNewest: 1, JobIDs: []int64{run.JobID}}, {All: true, Before: e.now}, {All: true, Limit: 10_001},
	} {
		_, err := e.drops.DropEnded(e.ctx, q)
		e.check(len(store.FieldErrors(err)) == 1, "%+v: %v", q, err)
	}
	e.wantThere("after what was refused", true, run)
}

func dropNothing(e *dropper) {
	run := e.triggered(e.newJob().ID)
	far := store.DropMark{JobID: 1 << 60, RunID: -1 << 60}
	for _, q := range []store.RunDrop{
		{All: true, Apps: []string{"absent"}}, {All: true, JobIDs: []int64{0, -1, 1 << 40}}, {KeepNewest: 1, JobIDs: []int64{1 << 40}}, {All: true, JobIDs: []int64{run.JobID}, After: far},
	} {
		n, kept := e.dropped(q)
		want(e.env, "of what is not there", []int{n, kept}, []int{0, 0})
	}
	e.wantThere("of others", true, run)
}
