package queue

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Queue is what a node holds in memory: planned runs of its shards, runs that
// are under way, and the jobs they belong to. All of it can be read again from
// the store. Its methods do not call the store, and hold mu only for moments. They wake the
// loops that have something to do by what they have changed.
//
// The books have their own types, and one lock: what is asked of one book is a method of that
// one, and takes the lock where its comment does not say that the caller holds it. What
// concerns several is a method of the Queue.
type Queue struct {
	clock    *core.Clock
	leases   *lease.Leases
	wakes    core.Wakes
	LeadTime leadTime
	Burst    burst
	// InboxFull is set while runs wait in the inbox for room here.
	InboxFull atomic.Bool

	mu       sync.Mutex
	Jobs     *jobBook
	Held     *held
	Due      *dueBook
	InFlight *inFlight
	Waiters  *waiters // under a lock of its own
}

func New(s *core.Core, panics *guard.Log) *Queue {
	q := &Queue{clock: s.Clock, leases: s.Leases, wakes: s.Life.Wakes, Waiters: newWaiters()}
	q.Jobs = newJobBook(&q.mu, s.Cfg.Limits, q.admitBehindRetriesOf)
	q.Held = newHeld(&s.Cfg, s.Life.Wakes, q.Jobs, &q.mu, panics)
	q.Due = newDueBook(&s.Cfg, s.Life.Wakes.Start, s.Life.Wakes.Waiting, q.Jobs, q.Held, &q.mu)
	q.InFlight = newInFlight(&q.mu)
	return q
}

// News are the planned runs among some that are this node's and that it does not hold yet.
func (q *Queue) News(runs []store.Run) (news []store.Run) {
	for i := range runs {
		if _, owned := q.leases.Epoch(runs[i].Shard); owned && runs[i].State == store.StatePlanned {
			news = append(news, runs[i])
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.DeleteFunc(news, func(r store.Run) bool { return q.Held.runs.Of(r.ID) != nil })
}

// Hold puts planned runs on the ring, as far as their apps have room.
func (q *Queue) Hold(runs []store.Run, jobs map[int64]*store.Job) {
	if len(runs) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakes.Start.PokeIf(q.holdLocked(runs, jobs))
}

// holdLocked is hold with the mutex held. It reports whether one of the runs is now the next
// to become due.
func (q *Queue) holdLocked(runs []store.Run, jobs map[int64]*store.Job) (sooner bool) {
	before, _, had := q.Held.ring.next()
	for i := range runs {
		r := &runs[i]
		switch en := q.Held.runs.Of(r.ID); {
		case r.State != store.StatePlanned:
		case en != nil:
			en.found(r)
		case q.makeRoom(r):
			q.Held.holdOne(r, jobs[r.JobID])
		}
	}
	after, _, has := q.Held.ring.next()
	return has && (!had || after.Before(before))
}

// makeRoom reports whether a run is to be held. Runs that are forgotten for it hold nobody
// up any more.
func (q *Queue) makeRoom(r *store.Run) bool {
	has, forgotten := q.Held.hasRoom(r)
	for _, en := range forgotten {
		q.Due.leaveTransit(en.Run.JobID, en.Run.ID)
	}
	return has
}

// TakeNext moves what has to be started now, if something has to, to the due queue, with what
// is to go with it. It reports whether that is a herd.
func (q *Queue) TakeNext(now time.Time) (herd bool) {
	at, n, ok := q.Held.nextDue()
	if until := now.Add(q.LeadTime.forMany(n)); ok && !at.After(until) {
		return q.takeDue(q.LeadTime.window(now, until)) >= HerdLeast && q.Burst.is(at, now)
	}
	return false
}

// UntilNext is how long it is until TakeNext has something to move; loop.Forever where the ring is empty.
func (q *Queue) UntilNext(now time.Time) time.Duration {
	if at, n, ok := q.Held.nextDue(); ok {
		return max(at.Sub(now)-q.LeadTime.forMany(n), time.Microsecond)
	}
	return loop.Forever
}

// offerPause is how often the inbox is looked at for places that starts have given back: a start whose
// row is locked takes its place again and again.
const offerPause = 100 * time.Millisecond

// OfferFreed has the inbox looked at again where starts that came to nothing have given back places at
// this node's executors for which runs wait there. It returns after how long it is to be called again:
// loop.Forever where nothing is left to offer.
func (q *Queue) OfferFreed(now time.Time) (again time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.Due.freed {
		return loop.Forever
	}
	if wait := offerPause - now.Sub(q.Due.offeredAt); wait > 0 {
		return wait
	}
	q.Due.freed, q.Due.offeredAt = false, now
	q.wakes.Inbox.PokeIf(q.InboxFull.Load())
	return loop.Forever
}

// ResultsWait reports whether results are to wait for a herd that is being started.
func (q *Queue) ResultsWait(now time.Time) bool { return q.LeadTime.get() == 0 && q.Burst.lasts(now) }

// takeDue moves what is due at or before t from the ring to the due queue, and returns how much.
func (q *Queue) takeDue(t time.Time) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	ids := q.Held.ring.pop(t)
	for i, en := range q.Held.entries(ids) {
		id := ids[i]
		switch {
		case en == nil || en.due: // forgotten, or forgotten and held again
		case en.Run.Scheduled().After(t):
			// A ring of the user's was early; P2 does not rest on it.
			q.Held.ring.push(en.Run.Scheduled(), id)
		default:
			en.due, en.routing = true, &routing{Route: q.Held.nowhere}
			q.Due.ready.push(en)
		}
	}
	q.Held.ring.lookAgain(t)
	return len(ids)
}

// What the books say of themselves.

// Backlog is what is due and does not wait for another run, nor for an app that has no executor.
func (q *Queue) Backlog() (b core.Backlog) {
	q.mu.Lock()
	defer q.mu.Unlock()
	addTo(&b, &q.Due.ready)
	for at, waiting := range q.Due.lists.all() {
		switch at.kind {
		case kindJobPlace, kindRun, kindEarlier, kindExecutor:
		default:
			addTo(&b, waiting)
		}
	}
	return b
}

func addTo(b *core.Backlog, t *fairQueue) {
	b.Waiting += t.len()
	for _, q := range t.apps {
		if len(*q) > 0 && (b.Oldest.IsZero() || q.First().Run.Scheduled().Before(b.Oldest)) {
			b.Oldest = q.First().Run.Scheduled()
		}
	}
}

// State fills in what the Queue knows.
func (q *Queue) State(out *core.Stats) {
	q.mu.Lock()
	defer q.mu.Unlock()
	out.Held, out.Due, out.Away = q.Held.runs.Len(), q.Due.ready.len(), len(q.InFlight.remote)
	out.Waiting, out.Running = map[string]int{}, map[string]int{}
	for at, waiting := range q.Due.lists.all() {
		out.Waiting[at.kind.lacks()] += waiting.len()
	}
	lanes := &q.Due.lanes
	out.Fast, out.Slow = core.LaneStats{Size: lanes.limit[LaneFast], Used: lanes.used[LaneFast]}, core.LaneStats{Size: lanes.limit[laneSlow], Used: lanes.used[laneSlow]}
	for _, f := range q.InFlight.here.All() {
		if f.Remote {
			out.Calling++
		} else {
			out.Running[f.Run.Planned.App]++
		}
	}
}
