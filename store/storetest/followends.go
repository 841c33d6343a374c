package storetest

// What ends the chain of a trigger's attempts: a stop, a removal, a kill; and what does not.

import (
	"strings"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// twoRetries are waiting retries of the job: one of a run of its schedule, one of a trigger's.
func twoRetries(o *owner, job store.Job) (born, manual store.Run) {
	born = o.mustNext(o.failed(o.started(o.planned(o.mustJob(job.ID)))))
	return born, o.mustNext(o.failed(o.started(o.mustAddRun(job.ID, store.Trigger{}))))
}

func followStop(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(1))
	born, manual := twoRetries(o, job)
	e.stop(job.ID)
	e.wantState("a retry of the schedule's", born.ID, store.StateCancelled)
	want(e, "Reason", e.mustRun(born.ID).Reason, "stop")
	e.wantState("a trigger's retry", manual.ID, store.StatePlanned)
	want(e, "state of the trigger's retry that is started", o.started(manual).State, store.StateStarted)
}

func followReplan(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(1))
	born, manual := twoRetries(o, job)
	made := e.mustJob(job.ID).Runs
	_, err := e.EditJob(e.ctx, job.ID, replan("update", e.at(7200), func(j *store.Job) { j.NotBefore = e.at(3600) }))
	e.must(err)
	want(e, "Runs", e.mustJob(job.ID).Runs, made)
	_, err = e.EditJob(e.ctx, job.ID, replan("update", e.at(7200), func(j *store.Job) { j.Schedule = schedule.Cron("5 0 0 * * ?") }))
	e.must(err)
	e.wantState("a retry of the schedule's", born.ID, store.StatePlanned)
	e.wantState("a trigger's retry", manual.ID, store.StatePlanned)
	_, err = e.EditJob(e.ctx, job.ID, replan("update", time.Time{}, func(j *store.Job) { j.Schedule = schedule.Manual() }))
	e.must(err)
	want(e, "state of one that is started without a schedule", o.started(born).State, store.StateStarted)
}

func followRemove(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(1))
	born, manual := twoRetries(o, job)
	e.must(e.RemoveJob(e.ctx, job.ID))
	e.wantState("a retry of the schedule's", born.ID, store.StateCancelled)
	e.wantState("a trigger's retry", manual.ID, store.StateCancelled)
}

func followStopped(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(1))
	born, manual := o.started(o.planned(job)), o.started(e.mustAddRun(job.ID, store.Trigger{}))
	e.stop(job.ID)
	ended := o.failed(born)
	e.wantNone("of a stopped job's schedule", ended)
	e.check(strings.Contains(ended.TriggerMsg, "stopped"), "TriggerMsg %q does not say why nothing follows", ended.TriggerMsg)
	want(e, "Attempt of a trigger's", e.mustNext(o.failed(manual)).Attempt, 1)
}

// followStale: a job that the scheduler itself has stopped cancels nothing (Plan.Stop).
func followStale(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(1))
	born, manual := twoRetries(o, job)
	p := o.plan(e.mustJob(job.ID))
	p.Stop = "broken"
	o.claim(p)
	e.wantState("a retry of the schedule's", born.ID, store.StatePlanned)
	want(e, "start of the schedule's", o.tryStart(o.startOf(born)).Status, store.StartStale)
	want(e, "start of the trigger's", o.tryStart(o.startOf(manual)).Status, store.StartOK)
}

func followRemoved(e *env) {
	o := e.owner("a")
	run := o.started(o.planned(e.newJob(retried(1))), func(s *store.Start) { s.Retries = 1 })
	e.must(e.RemoveJob(e.ctx, run.JobID))
	ended := o.failed(run)
	e.wantNone("of a removed job", ended)
	e.check(strings.Contains(ended.TriggerMsg, "removed"), "TriggerMsg %q does not say why nothing follows", ended.TriggerMsg)
}

func followKilled(e *env) {
	o := e.owner("a")
	run := o.started(o.planned(e.newJob(retried(1))))
	e.mustKill(run.ID, "unwanted")
	e.wantNone("of a run that failed by itself, and was to be killed", o.failed(run))
}

func followKill(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(3))
	first := o.failed(o.started(o.planned(job)))
	second := o.failed(o.started(e.mustNext(first)))
	third := e.mustNext(second)
	running := o.started(third)
	got := e.mustKill(first.ID, "unwanted")
	want(e, "the run that is to be killed", []any{got.ID, got.State, got.KillReason}, []any{third.ID, store.StateStarted, "unwanted"})
	e.wantNone("after the kill", o.failed(running))
	want(e, "kill of a chain that is over", e.mustKill(first.ID, "again"), e.mustRun(first.ID))

	waits := o.failed(o.started(o.planned(e.mustJob(job.ID))))
	got = e.mustKill(waits.ID, "unwanted")
	want(e, "a retry that waits", []any{got.ID, got.State, got.Reason}, []any{e.mustNext(waits).ID, store.StateCancelled, "unwanted"})
}

func followKillPart(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(1))
	addresses := []string{remote, remoteToo}
	a := o.tryStart(o.startOf(o.planned(job), func(s *store.Start) { s.Targets = addresses; s.Address = remote }))
	var next []store.Run
	for _, part := range []store.Run{a.Run, a.Siblings[0]} {
		r := overWire(part.ID)
		r.State = store.StateFailed
		next = append(next, e.mustNext(o.one(e.mustFinish(r))))
	}
	want(e, "killed", e.mustKill(a.Siblings[0].ID, "").ID, next[1].ID)
	e.wantState("the other part", next[0].ID, store.StatePlanned)
}
