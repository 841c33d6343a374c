package xxljob

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/store"
)

// engine is what a node holds in memory: planned runs of its shards, runs that
// are under way, and the jobs they belong to. All of it can be read again from
// the store. Its methods do not call the store, and hold mu only for moments. They wake the
// start loop where something may start now that could not before.
//
// The books have their own types, and one lock: what is asked of one book is a method of that
// one, and takes the lock where its comment does not say that the caller holds it. What
// concerns several is a method of the engine.
type engine struct {
	clock  *clock
	leases *leases
	wakes  wakes
	lead   lead
	rush   rush
	// inboxFull is set while runs wait in the inbox for room here.
	inboxFull atomic.Bool

	mu      sync.Mutex
	jobs    *jobBook
	held    *heldRuns
	room    *waitingRoom
	under   *underWay
	waiters *waiters // under a lock of its own
}

func newEngine(s *shared, panics *guard.Log) *engine {
	e := &engine{clock: s.clock, leases: s.leases, wakes: s.life.wakes, waiters: newWaiters()}
	e.jobs = newJobBook(&e.mu, s.cfg.Limits)
	e.held = newHeldRuns(&s.cfg, s.life.wakes, e.jobs, &e.mu, panics)
	e.room = newWaitingRoom(&s.cfg, s.life.wakes.start, e.jobs, e.held, &e.mu)
	e.under = newUnderWay(&e.mu)
	return e
}

// news are the planned runs among some that are this node's and that it does not hold yet.
func (e *engine) news(runs []store.Run) (news []store.Run) {
	for i := range runs {
		if _, owned := e.leases.epoch(runs[i].Shard); owned && runs[i].State == store.StatePlanned {
			news = append(news, runs[i])
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(news, func(r store.Run) bool { return e.held.runs.Of(r.ID) != nil })
}

// hold puts planned runs on the ring, as far as their apps have room.
func (e *engine) hold(runs []store.Run, jobs map[int64]*store.Job) {
	if len(runs) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wakes.start.PokeIf(e.holdSome(runs, jobs))
}

// holdSome is hold with the mutex held. It reports whether one of the runs is now the next
// to become due.
func (e *engine) holdSome(runs []store.Run, jobs map[int64]*store.Job) (sooner bool) {
	before, _, had := e.held.ring.next()
	for i := range runs {
		r := &runs[i]
		switch en := e.held.runs.Of(r.ID); {
		case r.State != store.StatePlanned:
		case en != nil:
			en.found(r)
		case e.makeRoom(r):
			e.held.holdOne(r, jobs[r.JobID])
		}
	}
	after, _, has := e.held.ring.next()
	return has && (!had || after.Before(before))
}

// makeRoom reports whether a run is to be held. Runs that are forgotten for it hold nobody
// up any more.
func (e *engine) makeRoom(r *store.Run) bool {
	has, forgotten := e.held.hasRoom(r)
	for _, en := range forgotten {
		e.room.arrived(en.run.JobID, en.run.ID)
	}
	return has
}

// takeNext moves what has to be started now, if something has to, to the due queue, with what
// is to go with it. It reports whether that is a herd.
func (e *engine) takeNext(now time.Time) (herd bool) {
	at, n, ok := e.held.nextDue()
	if until := now.Add(e.lead.forMany(n)); ok && !at.After(until) {
		return e.takeDue(e.lead.window(now, until)) >= herdLeast && e.rush.is(at, now)
	}
	return false
}

// herdFirst reports whether results are to wait for a herd that is being started.
func (e *engine) herdFirst(now time.Time) bool { return e.lead.get() == 0 && e.rush.lasts(now) }

// takeDue moves what is due at or before t from the ring to the due queue, and returns how much.
func (e *engine) takeDue(t time.Time) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := e.held.ring.pop(t)
	for i, en := range e.held.entries(ids) {
		id := ids[i]
		switch {
		case en == nil || en.due: // forgotten, or forgotten and held again
		case en.run.scheduled().After(t):
			// A ring of the user's was early; P2 does not rest on it.
			e.held.ring.push(en.run.scheduled(), id)
		default:
			en.due, en.passage = true, &passage{route: e.held.nowhere}
			e.room.due.push(en)
		}
	}
	e.held.ring.lookAgain(t)
	return len(ids)
}

// What the engine's books say of themselves.

// lacks are the words for what is waited for in a lot.
func (k lotKind) lacks() string {
	switch k {
	case lotRunning:
		return "place"
	case lotAddress:
		return "address"
	case lotApp:
		return "app"
	case lotLane:
		return "lane"
	case lotSerial:
		return "serial"
	case lotRun:
		return "run"
	case lotOrder:
		return "order"
	case lotSettle:
		return "settle"
	case lotProbe:
		return "probe"
	case lotRoute, lotAsk:
		return "addresses"
	}
	return "turn"
}

// backlog is what is due and does not wait for another run.
func (e *engine) backlog() (b backlog) {
	e.mu.Lock()
	defer e.mu.Unlock()
	addTo(&b, &e.room.due)
	for at, waiting := range e.room.lots.all() {
		switch at.kind {
		case lotSerial, lotRun, lotOrder:
		default:
			addTo(&b, waiting)
		}
	}
	return b
}

func addTo(b *backlog, t *turns) {
	b.waiting += t.len()
	for _, q := range t.apps {
		if len(*q) > 0 && (b.oldest.IsZero() || (*q)[0].run.scheduled().Before(b.oldest)) {
			b.oldest = (*q)[0].run.scheduled()
		}
	}
}

// state fills in what the engine knows.
func (e *engine) state(out *Stats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out.Held, out.Due, out.Away = e.held.runs.Len(), e.room.due.len(), len(e.under.away)
	out.Waiting, out.Running = map[string]int{}, map[string]int{}
	for at, waiting := range e.room.lots.all() {
		out.Waiting[at.kind.lacks()] += waiting.len()
	}
	lanes := &e.room.lanes
	out.Fast, out.Slow = LaneStats{lanes.limit[laneFast], lanes.used[laneFast]}, LaneStats{lanes.limit[laneSlow], lanes.used[laneSlow]}
	for _, f := range e.under.flights.All() {
		if f.remote {
			out.Calling++
		} else {
			out.Running[f.run.planned.App]++
		}
	}
}
