package storetest

import (
	"errors"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Ended runs that something still needs, and that nothing deletes until it does not.

func dropUnended(e *dropper) {
	planned := e.mustAddRun(e.newJob().ID, store.Trigger{})
	started := e.o.running()
	dispatched := e.o.dispatched()
	want(e.env, "dropped", e.drop(store.RunDrop{All: true}).Runs, 0)
	e.wantThere("of all", true, planned, started, dispatched)
	for _, run := range []store.Run{planned, started, dispatched} {
		e.dropped(store.RunDrop{Before: e.hence(), JobIDs: []int64{run.JobID}})
	}
	e.wantThere("of their jobs", true, planned, started, dispatched)
	run := e.o.one(e.mustFinish(success(started)))
	e.wantGone("that has ended by now", run)
}

func dropParts(e *dropper) {
	child := e.newJob()
	parts := e.o.inParts(e.o.planned(e.newJob(leading(child.ID))), 3)
	e.mustFinish(overWire(parts[1].ID))
	failed := e.o.one(e.mustFinish(partFailed(parts[2])))
	e.wantKept("while a part has not ended", parts[1], failed)
	e.mustFinish(overWire(parts[0].ID))
	want(e.env, "paid for a broadcast of which a part has failed", e.o.payAll(), store.Paid{})
	e.wantGone("when all parts have ended", parts...)
}

func dropAttempts(e *dropper) {
	failed := e.fails(e.o.planned(e.newJob(retried(1))))
	retry := e.mustNext(failed)
	e.wantKept("while a retry is to come", failed)
	last := e.o.started(retry)
	e.wantKept("while a retry is under way", failed)
	e.mustFinish(success(last))
	e.wantGone("when the retry has ended", failed, last)
}

func dropSnoozed(e *dropper) {
	run := e.o.one(e.mustFinish(snoozing(e.o.running(), time.Minute)))
	next := e.mustNext(run)
	e.wantKept("while it is snoozed", run)
	e.o.succeeded(next)
	e.wantGone("when it is over", run)
}

func dropOwed(e *dropper) {
	child := e.newJob()
	parent := e.o.succeeds(e.newJob(leading(child.ID), func(j *store.Job) { j.ChildParam = store.ChildParamResult }).ID)
	e.wantKept("while something is owed", parent)
	want(e.env, "a dry run", e.drop(store.RunDrop{All: true, DryRun: true}), store.Dropped{Kept: 1, Examined: 1})
	e.o.payAll()
	e.wantGone("when it is paid", parent)
	run := e.only("the child", child.ID)
	want(e.env, "ParentID, ParamSet", []any{run.ParentID, run.ParamSet}, []any{parent.ID, true})
}

func dropSecret(e *dropper) {
	handing := func(app string, child int64, more ...func(*store.Job)) store.Job {
		return e.newJob(append(more, func(j *store.Job) { j.App, j.Children, j.ChildParam = app, []int64{child}, store.ChildParamParent })...)
	}
	for _, tt := range []struct {
		app, given string
		secret     bool
	}{{"secretive", "", true}, {"open", "given", false}} {
		elsewhere := e.newJob(func(j *store.Job) { j.App = "another" })
		marked := func(j *store.Job) { j.Secret = tt.secret }
		between := handing(tt.app, elsewhere.ID, marked)
		parent := handing(tt.app, between.ID, marked)
		e.mustFinish(success(e.o.started(e.o.planned(parent), func(s *store.Start) { s.Param = "given" })))
		e.o.payAll()
		run := e.only("the child of the app", between.ID)
		e.drop(store.RunDrop{All: true, JobIDs: []int64{parent.ID}})
		_, err := e.Run(e.ctx, run.ParentID)
		e.check(errors.Is(err, store.ErrNotFound), "the parent is there: %v", err)
		want(e.env, "what a job of the app is given: "+tt.app, run.Param, "given")
		e.edit(between.ID, func(j *store.Job) { j.Secret = false }) // so that what it was given alone makes it so
		e.mustFinish(success(e.o.started(run, func(s *store.Start) { s.Param = run.Param })))
		e.o.payAll()
		want(e.env, "what a job of another app is given: "+tt.app, e.only("the child elsewhere", elsewhere.ID).Param, tt.given)
	}
}

func dropWindow(e *dropper) {
	one, two := e.newJob(), e.newJob()
	join := e.newJob(behind(one.ID, two.ID))
	first := e.o.succeedsAt(one.ID, noon())
	e.o.payAll()
	e.wantKept("while the window is open", first)
	last := e.o.succeedsAt(two.ID, noon())
	want(e.env, "paid", e.o.payAll(), store.Paid{Owed: 1, Runs: 1})
	e.wantGone("when the window is closed", first, last)
	e.wantRuns("of the window", join.ID, 1)
}

func dropJoin(e *dropper) {
	one := e.newJob()
	join := e.newJob(behind(one.ID))
	now := e.clock()
	e.o.succeedsAt(one.ID, now)
	e.o.payAll()
	run := e.o.succeeded(e.only("of the window", join.ID))
	e.wantKept("while successes may come for the window", run)
	e.o.succeedsAt(one.ID, now)
	want(e.env, "paid for the window once more", e.o.payAll(), store.Paid{Owed: 1})
	e.wantRuns("of the window", join.ID, 1)
	e.o.succeedsAt(one.ID, noon().AddDate(-3, 0, 0))
	e.o.payAll()
	old := e.runsOf(join.ID)
	e.o.succeeded(old[len(old)-1])
	e.wantGone("of a window that has passed", old[len(old)-1])
}

func dropAlarm(e *dropper) {
	e.everyAlarm()
	run := e.fails(e.o.planned(e.newJob()))
	e.wantKept("while an alarm is not told", run)
	e.mustMark(store.AlarmMarks{Done: []store.AlarmDone{{ID: e.alarm().ID, Status: store.AlarmSent}}})
	e.wantGone("when it is", run)
}

func dropTold(e *dropper) {
	job := e.newJob()
	parts := e.o.inParts(e.o.planned(job), 2)
	failed := e.o.one(e.mustFinish(partFailed(parts[1])))
	e.mustFinish(overWire(parts[0].ID))
	t := e.opened(failed, "r")
	e.wantKept("while its job has not recovered", failed)
	t.Open = false
	e.mustMark(store.AlarmMarks{Jobs: []store.JobTold{t}})
	e.wantGone("when it has", failed)
}

func dropRecovered(e *dropper) {
	job := e.newJob()
	t := e.opened(e.fails(e.o.planned(job)), "r")
	good := e.triggered(job.ID)
	bad := e.fails(e.mustAddRun(job.ID, store.Trigger{}))
	e.wantKept("before the recovery is told", good)
	e.wantThere("that has failed since", false, bad)
	e.wantRecovered("after that", t, good)
	t.Open = false
	e.mustMark(store.AlarmMarks{Jobs: []store.JobTold{t}})
	e.wantGone("when it is told", good)
}

func dropToCome(e *dropper) {
	job, at := e.newJob(), e.hence()
	run := e.o.succeeded(e.o.one(e.o.claim(e.o.plan(job, at))))
	e.wantKept("whose instant is to come", run)
	var started time.Time
	_, err := e.EditJob(e.ctx, job.ID, store.Edit{Verb: "update", Change: func(*store.Job) (bool, error) { return true, nil },
		Next: func(_ store.Job, so, _ time.Time) (time.Time, error) { started = so; return at, nil }})
	e.must(err)
	want(e.env, "the latest instant that was started", started, run.Scheduled)
}

func dropAhead(e *dropper) {
	job := e.newJob()
	run, _ := e.ahead(job.ID, 1)
	e.mustKill(run.ID, "no")
	want(e.env, "dropped of all", e.drop(store.RunDrop{All: true}).Runs, 0)
	want(e.env, "dropped of the job", e.drop(store.RunDrop{All: true, JobIDs: []int64{job.ID}}).Runs, 0)
	e.wantThere("that was cancelled", true, run)
}

// keeping is a job that keeps its runs for so long.
func keeping(d time.Duration) func(*store.Job) { return func(j *store.Job) { j.KeepRuns = d } }

func (e *dropper) expire(q store.KeepQuery) store.Dropped {
	e.Helper()
	got, err := e.drops.DropExpired(e.ctx, q)
	e.must(err)
	return got
}

func dropExpired(e *dropper) {
	short, long, other := e.newJob(keeping(time.Hour)), e.newJob(keeping(5*time.Hour)), e.newJob()
	a, b, c := e.triggered(short.ID), e.triggered(long.ID), e.triggered(other.ID)
	now := e.clock()
	at := func(d time.Duration) store.KeepQuery {
		return store.KeepQuery{Now: now.Add(d), EndedBefore: now.Add(d)}
	}
	want(e.env, "at half its time", e.expire(at(30*time.Minute)).Runs, 0)
	q := at(3 * time.Hour)
	q.EndedBefore = a.Ended
	want(e.env, "that ended too late", e.expire(q).Runs, 0)
	want(e.env, "after the time of one", e.expire(at(3*time.Hour)).Runs, 1)
	e.wantThere("of the job that keeps them shortest", false, a)
	e.wantThere("of others", true, b, c)
	e.edit(long.ID, keeping(0))
	want(e.env, "of a job that keeps them again", e.expire(at(9*time.Hour)).Runs, 0)
	e.edit(other.ID, keeping(time.Minute))
	want(e.env, "of a job that was edited", e.expire(at(9*time.Hour)).Runs, 1)
	e.wantThere("of that", false, c)
	e.triggered(short.ID)
	e.must(e.RemoveJob(e.ctx, short.ID))
	want(e.env, "of a job that was removed", e.expire(at(9*time.Hour)).Runs, 0)
}

func dropExpiredPages(e *dropper) {
	n := 0
	for i := range 4 {
		job := e.newJob(keeping(time.Minute))
		n += len(e.several(job.ID, i))
	}
	q := store.KeepQuery{Now: e.hence(), EndedBefore: e.hence(), Limit: 2}
	sum, calls := 0, 0
	for more := true; more; calls++ {
		got := e.expire(q)
		e.check(got.Examined <= 2, "%d runs were looked at, at most 2", got.Examined)
		sum, more, q.After = sum+got.Runs, got.More, got.Next
		if calls > 20 {
			e.Fatalf("there is more after twenty calls: %+v", got)
		}
	}
	want(e.env, "dropped by all calls", sum, n)
}

func dropExpiredNeeded(e *dropper) {
	child := e.newJob()
	parent := e.o.succeeds(e.newJob(leading(child.ID), keeping(time.Minute)).ID)
	open := e.mustAddRun(parent.JobID, store.Trigger{})
	q := store.KeepQuery{Now: e.hence(), EndedBefore: e.hence()}
	want(e.env, "while something is owed", e.expire(q).Runs, 0)
	e.wantThere("while something is owed", true, parent, open)
	e.o.payAll()
	want(e.env, "when it is paid", e.expire(q).Runs, 1)
	e.wantThere("that has not ended", true, open)
}

// raceDrop: what is owed, and the parts of broadcasts, while all that has ended is deleted.
func raceDrop(e *env) {
	e.deletes = true
	drops, ok := e.Store.(store.RunDropper)
	if !ok {
		return
	}
	o := e.owner("a")
	child := e.newJob()
	paid, runs := 0, 0
	for range rounds {
		good, bad := o.inParts(o.planned(e.newJob(leading(child.ID))), 3), o.inParts(o.planned(e.newJob(leading(child.ID))), 3)
		ends := []func(){func() { e.mustFinish(partFailed(bad[1])) }, func() { e.mustFinish(overWire(bad[0].ID), overWire(bad[2].ID)) }}
		for _, part := range good {
			ends = append(ends, func() { e.mustFinish(overWire(part.ID)) })
		}
		for range 2 {
			ends = append(ends, func() {
				for range 5 {
					_, err := drops.DropEnded(e.ctx, store.RunDrop{All: true})
					e.must(err)
				}
			})
		}
		ends = append(ends, func() { p := o.payAll(); runs += p.Runs; paid += p.Owed })
		e.race(ends...)
		p := o.payUp()
		paid, runs = paid+p.Owed, runs+p.Runs
	}
	want(e, "paid for broadcasts that have succeeded", []int{paid, runs}, []int{rounds, rounds})
}
