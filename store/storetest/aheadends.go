package storetest

import (
	"fmt"
	"time"

	"github.com/xxljob/xxljob/store"
)

// What becomes of runs that are kept apart: keys that lead to them, and those that are
// killed, removed with their job, edited, or moved too late for their IDs.

func aheadKey(e *env) {
	o := e.owner("a")
	job, other := e.newJob(), e.newJob()
	at, move := e.far(0)
	keyed := func(job int64, key string) store.Run {
		e.Helper()
		return e.mustAddAhead(job, store.Trigger{At: at, Key: key}, move)
	}
	run, gone := keyed(job.ID, "k"), keyed(job.ID, "gone")
	near := e.mustAddRun(job.ID, store.Trigger{Key: "near"})
	same := func(when string) {
		e.Helper()
		for key, id := range map[string]int64{"k": run.ID, "gone": gone.ID, "near": near.ID} {
			want(e, fmt.Sprintf("key %q far ahead %s", key, when), keyed(job.ID, key).ID, id)
			want(e, fmt.Sprintf("key %q at once %s", key, when), e.mustAddRun(job.ID, store.Trigger{Key: key}).ID, id)
		}
		want(e, "runs of the job "+when, len(e.runsOf(job.ID)), 3)
	}
	want(e, "run of the second call", keyed(job.ID, "k"), run)
	same("while it waits")
	want(e, "the run that was cancelled", e.mustKill(gone.ID, "x").State, store.StateCancelled)
	want(e, "run of a call after its end", keyed(job.ID, "gone"), e.mustRun(gone.ID))
	same("when one was cancelled")
	o.mustMove(move, 9)
	same("when it has moved")
	e.mustFinish(success(o.started(run)))
	same("when it has ended")
	e.check(keyed(other.ID, "k").ID != run.ID, "a key of one job stands for a run of another")
	without := keyed(job.ID, "")
	e.check(keyed(job.ID, "").ID != without.ID, "an empty key made a call idempotent")
}

func aheadKeyConcurrent(e *env) {
	const n = 50
	job := e.newJob()
	at, move := e.far(0)
	var got [n]int64
	var errs [n]error
	var calls []func()
	for i := range n {
		calls = append(calls, func() {
			add := func() (store.Run, error) { return e.AddAhead(e.ctx, job.ID, store.Trigger{At: at, Key: "k"}, move) }
			if i%2 == 1 {
				add = func() (store.Run, error) { return e.AddRun(e.ctx, job.ID, store.Trigger{Key: "k"}) }
			}
			run, err := add()
			got[i], errs[i] = run.ID, err
		})
	}
	e.race(calls...)
	for i := range n {
		e.must(errs[i])
		want(e, "run of a concurrent call", got[i], got[0])
	}
	want(e, "runs inserted", ids(e.runsOf(job.ID)), []int64{got[0]})
}

func aheadKilled(e *env) {
	o := e.owner("a")
	job := e.newJob()
	run, move := e.ahead(job.ID, 0)
	got := e.mustKill(run.ID, "")
	e.check(!got.Ended.IsZero(), "Ended is not set")
	run.State, run.Reason, run.Ended = store.StateCancelled, "killed", got.Ended
	run.TriggerMsg, run.AlarmStatus = got.TriggerMsg, got.AlarmStatus // a store may note that no alarm is due
	want(e, "Kill", got, run)
	e.wantRun("a killed run", run)
	want(e, "Kill again", e.mustKill(run.ID, "again"), run)
	o.wantMoved("a move", o.mustMove(move, 9), 0, time.Time{})
	want(e, "planned runs", len(o.plannedEver()), 0)
	e.wantRun("a killed run whose time has come", run)
	moved, move := e.ahead(job.ID, 1)
	o.mustMove(move, 9)
	want(e, "state of a run that is killed after it has moved", e.mustKill(moved.ID, "x").State, store.StateCancelled)
	want(e, "planned runs", len(o.plannedEver()), 0)
}

func aheadKillRace(e *env) {
	o := e.owner("a")
	job := e.newJob()
	for i := range rounds {
		run, move := e.ahead(job.ID, i)
		e.race(func() { e.mustKill(run.ID, "x") }, func() { o.mustMove(move, 9) })
		o.mustMove(move, 9)
		e.wantState("a run that was killed", run.ID, store.StateCancelled)
	}
	want(e, "planned runs", len(o.plannedEver()), 0)
	want(e, "runs of the job", len(e.runsOf(job.ID)), rounds)
}

func aheadRemoved(e *env) {
	o := e.owner("a")
	job, other := e.newJob(), e.newJob()
	one, move := e.ahead(job.ID, 0)
	two := e.mustAddAhead(job.ID, store.Trigger{At: one.Scheduled, Type: store.TriggerAPI}, move)
	kept, _ := e.ahead(other.ID, 0)
	e.must(e.RemoveJob(e.ctx, job.ID))
	for _, id := range []int64{one.ID, two.ID} {
		got := e.mustRun(id)
		want(e, "state and Reason", []any{got.State, got.Reason}, []any{store.StateCancelled, "remove"})
		e.check(!got.Ended.IsZero(), "Ended is not set")
	}
	e.wantRun("a run of another job", kept)
	want(e, "runs moved", o.mustMove(move, 9).Runs, 1)
}

func aheadEdited(e *env) {
	o := e.owner("a")
	job := e.newJob()
	run, move := e.ahead(job.ID, 0)
	_, err := e.EditJob(e.ctx, job.ID, replan("update", e.at(60), func(*store.Job) {}))
	e.must(err)
	e.wantRun("after another schedule", run)
	e.stop(job.ID)
	e.wantRun("after a stop", run)
	want(e, "runs moved", o.mustMove(move, 9).Runs, 1)
	want(e, "state", o.started(run).State, store.StateStarted)
}

func aheadNotFound(e *env) {
	at, move := e.far(0)
	job := e.newJob()
	e.must(e.RemoveJob(e.ctx, job.ID))
	for _, id := range []int64{job.ID, 0, -1, 12345, 1 << 40} {
		for _, key := range []string{"", "k"} {
			_, err := e.AddAhead(e.ctx, id, store.Trigger{At: at, Key: key}, move)
			e.wantErr(fmt.Sprintf("AddAhead for job %d, key %q", id, key), err, store.ErrNotFound)
		}
	}
}

// aheadOldest: a store whose IDs are made of times may have to give a run another one.
func aheadOldest(e *env) {
	o := e.owner("a")
	job := e.newJob()
	at, move := e.far(0)
	run := e.mustAddAhead(job.ID, store.Trigger{At: at, Key: "k"}, move)
	moved, err := e.MoveAhead(e.ctx, store.AheadQuery{Shards: o.shards, Before: move, Oldest: e.now.AddDate(0, 1, 0), Limit: 9})
	e.must(err)
	o.wantMoved("MoveAhead", moved, 1, time.Time{})
	got := o.one(e.runsOf(job.ID))
	want(e, "the run of the key", e.mustAddRun(job.ID, store.Trigger{Key: "k"}).ID, got.ID)
	if got.ID != run.ID {
		_, err := e.Run(e.ctx, run.ID)
		e.wantErr("Run by the former ID", err, store.ErrNotFound)
	}
	run.ID, run.TriggerID = got.ID, got.ID
	want(e, "a run that has moved", got, run)
	want(e, "state", o.started(got).State, store.StateStarted)
}
