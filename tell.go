package xxljob

// Telling of what happens. Input: runs, jobs, shards and the store, from all loops. Output:
// calls of hooks, and events to those who have subscribed, with the names of jobs. All goes
// through one queue, in which names are looked up, and calls of hooks through another behind
// it, so that a hook which hangs keeps nothing from those who have subscribed.

import (
	"context"
	"log/slog"
	"time"

	"github.com/xxljob/xxljob/internal/guard"
)

// teller tells of events.
type teller struct {
	*shared
	panics *guard.Log
	queue  *eventQueue
	hooks  *eventQueue
	subs   *subscriptions
	engine *engine
	names  *jobNames
}

func newTeller(s *shared, panics *guard.Log, e *engine) *teller {
	t := &teller{shared: s, panics: panics, subs: &subscriptions{}, engine: e, names: newJobNames(s)}
	t.hooks = &eventQueue{log: s.log, tell: t.callHook, slow: hooksSlow, again: hooksAgain, left: hooksLeft,
		first: func(k EventKind) slog.Attr { return slog.String("hook", "Hooks."+string(k)) }}
	t.queue = &eventQueue{log: s.log, tell: t.tell, slow: namesSlow, again: namesAgain, left: namesLeft, lost: t.subs.miss,
		first: func(k EventKind) slog.Attr { return slog.String("event", string(k)) }}
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
	ends := r.StoppedJob && t.wants(EventJobStopped)
	r.StoppedJob = false // who is told hears of that as an event of its own
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
	if ends {
		e.look = r.JobID
	}
	t.queue.add(e)
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
	job, known := t.names.finished(w.look)
	if !known {
		time.AfterFunc(namesPause, func() { t.lookAgain(w.look) })
	}
	if job != nil {
		t.tellOf(&Event{Kind: EventJobStopped, At: w.At, Node: t.cfg.Node, Job: job})
	}
}

// lookAgain looks whether a job has stopped which the store has not told of.
func (t *teller) lookAgain(id int64) {
	if !t.names.over.Load() {
		t.mayHaveStopped(id)
	}
}

func (t *teller) tellOf(e *Event) {
	if r := e.Run; r != nil && r.JobName == "" {
		r.JobName, r.JobKey = t.names.of(r.JobID)
	}
	if t.subs.count.Load() > 0 {
		t.subs.tell(*e)
	}
	if t.cfg.Hooks.has(e.Kind) {
		t.hooks.add(waitingEvent{Event: *e})
	}
}

func (t *teller) callHook(w *waitingEvent) {
	_ = t.panics.Call("Hooks."+string(w.Kind), func() error { t.cfg.Hooks.call(&w.Event); return nil })
}

// Events returns what happens from here on.
func (t *teller) Events(ctx context.Context) <-chan Event { return t.subs.add(ctx) }

// end tells of what waits, and of no more, at most for StopGrace and until shortly after the
// end of ctx.
func (t *teller) end(ctx context.Context) {
	t.names.over.Store(true)
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.cfg.StopGrace)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWords/2, cancel) })()
	t.queue.drain(bound)
	t.hooks.drain(bound)
	t.subs.end()
}
