package xxljob

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/store"
)

// Telling of what happens. Input: runs, jobs, shards and the store, from all loops. Output:
// calls of hooks, and events to those who have subscribed, with the names of jobs. Each of the
// two has a queue of its own, so that a hook which hangs keeps nothing from those who have
// subscribed.

// teller tells of events.
type teller struct {
	*shared
	panics         *guard.Log
	hooks, readers *outlet
	subs           *subscriptions
	news           func([]store.Run) []store.Run // those that are not held yet
}

// outlet is one way to those who are told.
type outlet struct {
	queue *eventQueue
	names *jobNames
	give  func(*Event)
}

func newTeller(s *shared, panics *guard.Log, news func([]store.Run) []store.Run, job func(int64) *store.Job) *teller {
	t := &teller{shared: s, panics: panics, subs: &subscriptions{}, news: news}
	t.hooks = &outlet{names: newJobNames(s, job), give: t.callHook}
	t.hooks.queue = &eventQueue{log: s.log, tell: t.hooks.tell, slow: hooksSlow, again: hooksAgain, left: hooksLeft,
		first: func(k EventKind) slog.Attr { return slog.String("hook", "Hooks."+string(k)) }}
	t.readers = &outlet{names: newJobNames(s, job), give: func(e *Event) { t.subs.tell(*e) }}
	t.readers.queue = &eventQueue{log: s.log, tell: t.readers.tell, slow: namesSlow, again: namesAgain, left: namesLeft, lost: t.subs.miss,
		first: func(k EventKind) slog.Attr { return slog.String("event", string(k)) }}
	return t
}

// wants reports whether anybody wants to hear of the kind.
func (t *teller) wants(kind EventKind) bool { return t.isRead() || t.cfg.Hooks.has(kind) }

// isRead reports whether anybody has subscribed.
func (t *teller) isRead() bool { return t.subs.count.Load() > 0 }

// happened has an event told of.
func (t *teller) happened(e Event) {
	e.Node = t.cfg.Node
	t.add(waitingEvent{Event: e})
}

// add gives an event to those who want to hear of it. Each fills in the names in a run of its
// own.
func (t *teller) add(w waitingEvent) {
	if t.isRead() {
		own := w
		if w.Run != nil {
			run := *w.Run
			own.Run = &run
		}
		t.readers.queue.add(own)
	}
	if !t.cfg.Hooks.has(w.Kind) {
		w.Event = Event{}
	}
	if !t.cfg.Hooks.has(EventJobStopped) {
		w.look = 0
	}
	if w.Kind != "" || w.look != 0 {
		t.hooks.queue.add(w)
	}
}

// found tells of planned runs that were read, as far as they are not held yet.
func (t *teller) found(runs []store.Run) {
	if len(runs) > 0 && t.wants(EventRunPlanned) {
		t.planned(t.news(runs), nil)
	}
}

// planned tells of runs that were planned, whose jobs may be known.
func (t *teller) planned(runs []store.Run, jobs map[int64]*store.Job) {
	if !t.wants(EventRunPlanned) {
		return
	}
	for i := range runs {
		if r := &runs[i]; r.State == store.StatePlanned {
			t.run(EventRunPlanned, r, jobs[r.JobID])
		}
	}
}

func (t *teller) started(r *store.Run, job *store.Job) { t.run(EventRunStarted, r, job) }

// ended tells of a run in its final state, and of its job, if this was its last.
func (t *teller) ended(r *store.Run, job *store.Job) {
	kind := EventRunEnded
	if r.State == store.StateSkipped {
		kind = EventRunSkipped
	}
	t.run(kind, r, job)
}

// run tells of a run; a job that is nil is one that this node may know.
func (t *teller) run(kind EventKind, r *store.Run, job *store.Job) {
	if r.StoppedJob {
		logChange(store.WithActor(context.Background(), store.Scheduler), t.log, "stop", store.ObjectJob, r.JobID, r.App)
	}
	if t.wants(kind) || r.StoppedJob && t.wants(EventJobStopped) {
		t.addRun(kind, *r, job)
	}
}

func (t *teller) addRun(kind EventKind, r store.Run, job *store.Job) {
	w := waitingEvent{Event: Event{Kind: kind, Node: t.cfg.Node, Run: &r}}
	if r.StoppedJob {
		w.look = r.JobID
	}
	r.StoppedJob = false // who is told hears of that as an event of its own
	if job != nil && job.Name != "" {
		r.JobName, r.JobKey = job.Name, job.Key
	} else {
		r.JobName, r.JobKey, _ = t.hooks.names.inMemory(r.JobID)
	}
	t.add(w)
}

// stopped tells of a job that this node has stopped.
func (t *teller) stopped(job store.Job) { t.happened(Event{Kind: EventJobStopped, Job: &job}) }

// mayHaveStopped tells of a job if it has stopped by itself.
func (t *teller) mayHaveStopped(id int64) {
	if t.wants(EventJobStopped) {
		t.add(waitingEvent{look: id})
	}
}

func (t *teller) callHook(e *Event) {
	if err := guard.Apart(func() error { t.cfg.Hooks.call(e); return nil }); err != nil {
		_ = t.panics.Note("Hooks."+string(e.Kind), err)
	}
}

// Events returns what happens from here on.
func (t *teller) Events(ctx context.Context) <-chan Event { return t.subs.add(ctx) }

// end tells of what waits, and of no more, at most for StopGrace and until shortly after the
// end of ctx.
func (t *teller) end(ctx context.Context) {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.cfg.StopGrace)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWords/2, cancel) })()
	t.readers.end(bound)
	t.hooks.end(bound)
	t.subs.end()
}

// tell is called by the queue, for one event after the other.
func (o *outlet) tell(w *waitingEvent) {
	if r := w.Run; r != nil && r.JobName == "" {
		r.JobName, r.JobKey = o.names.of(r.JobID)
	}
	if w.Kind != "" {
		o.give(&w.Event)
	}
	if w.look == 0 {
		return
	}
	job, known := o.names.finished(w.look)
	if job != nil {
		o.give(&Event{Kind: EventJobStopped, At: w.At, Node: o.names.cfg.Node, Job: job})
	}
	if look := w.look; !known {
		time.AfterFunc(namesPause, func() { o.lookAgain(look) })
	}
}

// lookAgain looks whether a job has stopped which the store has not told of.
func (o *outlet) lookAgain(id int64) {
	if !o.names.over.Load() {
		o.queue.add(waitingEvent{look: id})
	}
}

func (o *outlet) end(ctx context.Context) {
	o.names.over.Store(true)
	o.queue.drain(ctx)
}

// Subscriptions to events: each a channel with room for some, which counts what it drops.

// subscriptionRoom is how many events a subscription has room for.
const subscriptionRoom = 1000

// subscriptions are those who read events. It is safe for concurrent use.
type subscriptions struct {
	count atomic.Int64

	mu   sync.Mutex
	all  map[*subscription]bool // guarded by mu
	over bool                   // guarded by mu: nothing will be told any more
}

// subscription is one reader.
type subscription struct {
	events  chan Event
	dropped int // guarded by subscriptions.mu
}

// add returns the events from here on. The channel is closed once ctx has ended, or all is
// over.
func (s *subscriptions) add(ctx context.Context) <-chan Event {
	one := &subscription{events: make(chan Event, subscriptionRoom)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || ctx == nil || ctx.Err() != nil {
		close(one.events)
		return one.events
	}
	if s.all == nil {
		s.all = map[*subscription]bool{}
	}
	s.all[one] = true
	s.count.Store(int64(len(s.all)))
	context.AfterFunc(ctx, func() { s.remove(one) })
	return one.events
}

func (s *subscriptions) remove(one *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[one] {
		delete(s.all, one)
		s.count.Store(int64(len(s.all)))
		close(one.events)
	}
}

// tell gives an event to those who have room for it.
func (s *subscriptions) tell(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.all {
		e.Dropped = one.dropped
		select {
		case one.events <- e:
			one.dropped = 0
		default:
			one.dropped++
		}
	}
}

// miss counts an event that nobody was given.
func (s *subscriptions) miss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.all {
		one.dropped++
	}
}

// end closes what is left.
func (s *subscriptions) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for one := range s.all {
		close(one.events)
	}
	s.all = nil
	s.count.Store(0)
}
