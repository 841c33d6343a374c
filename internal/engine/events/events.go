package events

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Telling of what happens. Input: runs, jobs, shards and the store, from all loops. Output:
// calls of hooks, and events to those who have subscribed, with the names of jobs. Each of the
// two has a queue of its own, so that a hook which hangs keeps nothing from those who have
// subscribed.

// Bus tells of events.
type Bus struct {
	*core.Core
	panics         *guard.Log
	hooks, readers *sink
	subs           *subscriptions
	news           func([]store.Run) []store.Run // those that are not held yet
	lines          *endLines
	follow         *follower
	other          *otherLines
}

// sink is one way to those who are told.
type sink struct {
	queue *eventQueue
	names *jobNames
	give  func(*core.Event)
}

func NewBus(s *core.Core, panics *guard.Log, news func([]store.Run) []store.Run, job func(int64) *store.Job) *Bus {
	t := &Bus{Core: s, panics: panics, subs: &subscriptions{}, news: news, lines: newEndLines(s.Cfg.Logs.FailuresEvery)}
	t.follow = &follower{Bus: t, wake: loop.NewWake()}
	t.other = &otherLines{Bus: t, wake: loop.NewWake()}
	t.subs.joined = t.follow.wake.Poke
	t.hooks = &sink{names: newJobNames(s, job), give: t.callHook}
	t.hooks.queue = &eventQueue{log: s.Logger, tell: t.hooks.tell, slow: hooksSlow, again: hooksAgain, left: hooksLeft,
		first: func(k core.EventKind) slog.Attr { return slog.String("hook", "Hooks."+string(k)) }}
	t.readers = &sink{names: newJobNames(s, job), give: func(e *core.Event) { t.subs.tell(*e) }}
	t.readers.queue = &eventQueue{log: s.Logger, tell: t.readers.tell, slow: namesSlow, again: namesAgain, left: namesLeft, lost: t.subs.miss,
		first: func(k core.EventKind) slog.Attr { return slog.String("event", string(k)) }}
	return t
}

// Dropped is how many events were dropped so far, of hooks and of subscriptions.
func (t *Bus) Dropped() uint64 { return t.hooks.queue.dropped() + t.readers.queue.dropped() }

// wants reports whether anybody wants to hear of the kind.
func (t *Bus) wants(kind core.EventKind) bool { return t.isRead() || t.Cfg.Hooks.Has(kind) }

// isRead reports whether anybody has subscribed.
func (t *Bus) isRead() bool { return t.subs.count.Load() > 0 }

// Happened has an event told of.
func (t *Bus) Happened(e core.Event) {
	e.Node, e.Here = t.Cfg.Node, true
	t.add(waitingEvent{Event: e})
}

// add gives an event to those who want to hear of it. Each fills in the names in a run of its
// own.
func (t *Bus) add(w waitingEvent) {
	if t.isRead() {
		own := w
		if w.Run != nil {
			run := *w.Run
			own.Run = &run
		}
		t.readers.queue.add(own)
	}
	if !t.Cfg.Hooks.Has(w.Kind) {
		w.Event = core.Event{}
	}
	if !t.Cfg.Hooks.Has(core.EventJobStopped) {
		w.look = 0
	}
	if w.Kind != "" || w.look != 0 {
		t.hooks.queue.add(w)
	}
}

// Found tells of planned runs that were read, as far as they are not held yet.
func (t *Bus) Found(runs []store.Run) {
	if len(runs) > 0 && t.wants(core.EventRunPlanned) {
		t.Planned(t.news(runs), nil)
	}
}

// Planned tells of runs that were planned, whose jobs may be known.
func (t *Bus) Planned(runs []store.Run, jobs map[int64]*store.Job) {
	if !t.wants(core.EventRunPlanned) {
		return
	}
	for i := range runs {
		if r := &runs[i]; r.State == store.StatePlanned {
			t.run(core.EventRunPlanned, r, jobs[r.JobID])
		}
	}
}

func (t *Bus) Started(r *store.Run, job *store.Job) { t.run(core.EventRunStarted, r, job) }

// Ended tells of a run in its final state, and of its job, if this was its last.
func (t *Bus) Ended(r *store.Run, job *store.Job) {
	kind := core.EventRunEnded
	if r.State == store.StateSkipped {
		kind = core.EventRunSkipped
	}
	t.Line(r, job)
	t.run(kind, r, job)
}

// Line logs an end that this node has stored, where it has a line, and tells nobody else: that an edit
// leaves instants behind is known to whoever edits.
func (t *Bus) Line(r *store.Run, job *store.Job) {
	if t.lines.wants(r) {
		t.lines.stored(r.ID)
		t.say(r, job)
	}
}

// say logs an end, unless too many came before it. Where the job's key is not in memory the line
// waits for it beside the loops, as what hooks are told does.
func (t *Bus) say(r *store.Run, job *store.Job) {
	more, now := t.lines.add(r, time.Now())
	if !now {
		return
	}
	if job != nil && job.Name != "" {
		logEnd(t.Logger, r, job.Key, more)
		return
	}
	if _, key, known := t.hooks.names.inMemory(r.JobID); known {
		logEnd(t.Logger, r, key, more)
		return
	}
	run := *r
	t.hooks.queue.add(waitingEvent{Event: core.Event{Run: &run}, line: func(key string) { logEnd(t.Logger, &run, key, more) }})
}

// run tells of a run; a job that is nil is one that this node may know.
func (t *Bus) run(kind core.EventKind, r *store.Run, job *store.Job) {
	if r.StoppedJob {
		core.LogChange(store.WithActor(context.Background(), store.Scheduler), t.Logger, "stop", store.ObjectJob, r.JobID, r.App)
	}
	if t.wants(kind) || r.StoppedJob && t.wants(core.EventJobStopped) {
		if kind != core.EventRunPlanned && t.follow.did(kind, r) && t.wants(core.EventRunStarted) {
			started := *r
			started.StoppedJob = false
			t.addRun(core.EventRunStarted, started, job, false)
		}
		t.addRun(kind, *r, job, true)
	}
}

func (t *Bus) addRun(kind core.EventKind, r store.Run, job *store.Job, here bool) {
	w := waitingEvent{Event: core.Event{Kind: kind, Node: t.Cfg.Node, Run: &r, Here: here}}
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

// Stopped tells of a job that this node has stopped.
func (t *Bus) Stopped(job store.Job) { t.Happened(core.Event{Kind: core.EventJobStopped, Job: &job}) }

// MayHaveStopped tells of a job if it has stopped by itself.
func (t *Bus) MayHaveStopped(id int64) {
	if t.wants(core.EventJobStopped) {
		t.add(waitingEvent{look: id})
	}
}

// callHook calls a hook and waits for it, however long it takes: events are told of in their order,
// and what a hook that hangs keeps waiting is bounded by its queue.
func (t *Bus) callHook(e *core.Event) {
	if err := guard.Apart(func() error { t.Cfg.Hooks.Call(e); return nil }); err != nil {
		_ = t.panics.Note("Hooks."+string(e.Kind), err)
	}
}

// Subscribe returns what happens from here on, in the words of the caller. The channel is closed
// once ctx has ended, or all is over.
func Subscribe[E any](t *Bus, ctx context.Context, of func(*core.Event) E) <-chan E {
	events := make(chan E, subscriptionRoom)
	t.subs.add(ctx, &subscription{
		give: func(e *core.Event) bool {
			select {
			case events <- of(e):
				return true
			default:
				return false
			}
		},
		close: func() { close(events) },
	})
	return events
}

// End tells what is queued, and how many ends had no line, and takes nothing more. It returns after StopGrace at the latest, or shortly
// after the end of ctx.
func (t *Bus) End(ctx context.Context) {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.Cfg.StopGrace)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(core.LastWords/2, cancel) })()
	left, _ := t.lines.takeLeftOut(time.Now(), true)
	t.sayLeftOut(left)
	t.readers.end(bound)
	t.hooks.end(bound)
	t.subs.end()
}

// tell is called by the queue, for one event after the other.
func (o *sink) tell(w *waitingEvent) {
	if r := w.Run; r != nil && r.JobName == "" {
		r.JobName, r.JobKey = o.names.of(r.JobID)
	}
	if w.line != nil {
		w.line(w.Run.JobKey)
	}
	if w.Kind != "" {
		o.give(&w.Event)
	}
	if w.look == 0 {
		return
	}
	job, known := o.names.finished(w.look)
	if job != nil {
		o.give(&core.Event{Kind: core.EventJobStopped, At: w.At, Node: o.names.Cfg.Node, Here: true, Job: job})
	}
	if look := w.look; !known {
		time.AfterFunc(namesPause, func() { o.lookAgain(look) })
	}
}

// lookAgain looks whether a job has stopped which the store has not told of.
func (o *sink) lookAgain(id int64) {
	if !o.names.over.Load() {
		o.queue.add(waitingEvent{look: id})
	}
}

func (o *sink) end(ctx context.Context) {
	o.names.over.Store(true)
	o.queue.drain(ctx)
}

// Subscriptions to events: each a channel with room for some, which counts what it drops.

// subscriptionRoom is how many events a subscription has room for.
const subscriptionRoom = 1000

// subscriptions are those who read events. It is safe for concurrent use.
type subscriptions struct {
	count  atomic.Int64
	joined func() // is called behind one that was added; never changed

	mu   sync.Mutex
	all  map[*subscription]bool // guarded by mu
	over bool                   // guarded by mu: nothing will be told any more
}

// subscription is one reader: give reports whether there was room for an event.
type subscription struct {
	give    func(*core.Event) bool
	close   func()
	dropped int // guarded by subscriptions.mu
}

// add adds one that is given the events from here on, until ctx has ended.
func (s *subscriptions) add(ctx context.Context, one *subscription) {
	defer s.joined()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || ctx == nil || ctx.Err() != nil {
		one.close()
		return
	}
	if s.all == nil {
		s.all = map[*subscription]bool{}
	}
	s.all[one] = true
	s.count.Store(int64(len(s.all)))
	context.AfterFunc(ctx, func() { s.remove(one) })
}

func (s *subscriptions) remove(one *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[one] {
		delete(s.all, one)
		s.count.Store(int64(len(s.all)))
		one.close()
	}
}

// tell gives an event to those who have room for it.
func (s *subscriptions) tell(e core.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.all {
		e.Dropped = one.dropped
		if one.give(&e) {
			one.dropped = 0
		} else {
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
		one.close()
	}
	s.all = nil
	s.count.Store(0)
}
