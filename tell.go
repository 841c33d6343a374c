package xxljob

// Telling of what happens. Input: runs, jobs, shards and the store, from all loops. Output:
// calls of hooks, and events to those who have subscribed, with the names of jobs.

import (
	"context"

	"github.com/xxljob/xxljob/internal/guard"
)

// teller tells of events.
type teller struct {
	*shared
	panics *guard.Log
	queue  *eventQueue
	subs   *subscriptions
	engine *engine
	names  *jobNames
}

func newTeller(s *shared, panics *guard.Log, e *engine) *teller {
	t := &teller{shared: s, panics: panics, subs: &subscriptions{}, engine: e, names: newJobNames(s)}
	t.queue = &eventQueue{log: s.log, tell: t.tell}
	return t
}

// wants reports whether anybody wants to hear of the kind.
func (t *teller) wants(kind EventKind) bool {
	return t.subs.count.Load() > 0 || t.cfg.Hooks.has(kind)
}

// happened has an event told of.
func (t *teller) happened(e Event) {
	if t.wants(e.Kind) {
		e.Node = t.cfg.Node
		t.queue.add(waitingEvent{Event: e})
	}
}

// found tells of planned runs that were read, as far as they are not held yet.
func (t *teller) found(runs []Run) {
	if len(runs) > 0 && t.wants(EventRunPlanned) {
		t.planned(t.engine.news(runs), nil)
	}
}

// planned tells of runs that were planned, whose jobs may be known.
func (t *teller) planned(runs []Run, jobs map[int64]*Job) {
	if !t.wants(EventRunPlanned) {
		return
	}
	for i := range runs {
		if r := &runs[i]; r.State == StatePlanned {
			t.run(EventRunPlanned, *r, jobs[r.JobID])
		}
	}
}

func (t *teller) started(r Run, job *Job) { t.run(EventRunStarted, r, job) }

// ended tells of a run in its final state, and perhaps of its job, if this was its last. It
// is called while the job is in memory, if it ever was.
func (t *teller) ended(r Run, job *Job) {
	kind := EventRunEnded
	if r.State == StateSkipped {
		kind = EventRunSkipped
	}
	t.run(kind, r, job)
}

// run tells of a run; a job that is nil is one that this node may know.
func (t *teller) run(kind EventKind, r Run, job *Job) {
	ends := r.State.Ended() && r.Type.ScheduleBorn() && t.wants(EventJobStopped)
	if !ends && !t.wants(kind) {
		return
	}
	if job == nil {
		job = t.engine.jobs.job(r.JobID)
	}
	if job != nil && job.Name != "" {
		r.JobName, r.JobKey = job.Name, job.Key
	}
	e := waitingEvent{Event: Event{Kind: kind, Node: t.cfg.Node, Run: &r}}
	if ends && t.isLast(&r, job) {
		e.look = r.JobID
	}
	t.queue.add(e)
}

// isLast reports whether the schedule of a run's job may have made its last run: there is no
// further instant within its bounds, or a MaxRuns is near. How near, the store knows: a job in
// memory has the Runs from before the claim that it is there for.
func (t *teller) isLast(r *Run, job *Job) bool {
	if job == nil || job.unscheduled() {
		return r.Type == TriggerOnce
	}
	next, err := job.instantAfter(t.clock.now())
	return err == nil && next.IsZero() || job.runsLeft() <= maxPlan
}

// stopped tells of a job that this node has stopped.
func (t *teller) stopped(job Job) { t.happened(Event{Kind: EventJobStopped, Job: &job}) }

// mayHaveStopped tells of a job if it has stopped by itself.
func (t *teller) mayHaveStopped(id int64) {
	if t.wants(EventJobStopped) {
		t.queue.add(waitingEvent{look: id})
	}
}

// tell is called by the queue, for one event after the other.
func (t *teller) tell(w *waitingEvent) {
	if w.Kind != "" {
		t.tellOf(&w.Event)
	}
	if w.look == 0 {
		return
	}
	if job := t.names.finished(w.look); job != nil {
		t.tellOf(&Event{Kind: EventJobStopped, At: w.At, Node: t.cfg.Node, Job: job})
	}
}

func (t *teller) tellOf(e *Event) {
	if r := e.Run; r != nil && r.JobName == "" {
		r.JobName, r.JobKey = t.names.of(r.JobID)
	}
	if t.cfg.Hooks.has(e.Kind) {
		_ = t.panics.Call("Hooks."+string(e.Kind), func() error { t.cfg.Hooks.call(e); return nil })
	}
	if t.subs.count.Load() > 0 {
		t.subs.tell(*e)
	}
}

// Events returns what happens from here on.
func (t *teller) Events(ctx context.Context) <-chan Event { return t.subs.add(ctx) }

// end tells of what waits, and of no more.
func (t *teller) end(ctx context.Context) {
	t.queue.drain(ctx, t.cfg.StopGrace)
	t.subs.end()
}
