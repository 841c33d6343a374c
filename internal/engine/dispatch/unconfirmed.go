package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Starts of which it is not known whether they took effect. Input: batches whose Start
// returned an error, and runs that could not be started since they are planned no more,
// from startbatch.go. Output: what the store has made of them.

// StartCalls calls the store for starts, and finds out what has become of those whose call
// has failed. It belongs to the start loop.
type StartCalls struct {
	*core.Core
	Engine   *queue.Queue
	Fitness  *lease.Fitness
	Doubts   *Unconfirmed
	Finisher *Finisher
	Launcher *Launcher
	Starting loop.Backoff // of Store.Start
}

// uncertain finds out what became of a batch whose Start returned an error: it
// may have taken effect. It keeps the batch until the store has told.
func (c *StartCalls) uncertain(ctx context.Context, batch []queue.Attempt) {
	ids := make([]int64, len(batch))
	for i, a := range batch {
		ids[i] = a.Run.ID
	}
	for {
		if !loop.Sleep(ctx, c.Starting.Delay()) {
			c.Engine.Undo(batch)
			c.Doubts.CutShort.Store(true)
			return
		}
		began := c.Fitness.Begin(&c.Fitness.Starts)
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return c.runsWithSiblings(ctx, ids, batch) })
		if err == nil {
			c.Fitness.Over(&c.Fitness.Starts, began)
			c.settleUncertain(batch, runs, began)
			return
		}
		c.Fitness.End(ctx, &c.Fitness.Starts, began, err)
		c.Starting.Failed(ctx, err)
	}
}

// runsWithSiblings reads the runs, and of broadcasts the parts.
func (c *StartCalls) runsWithSiblings(ctx context.Context, ids []int64, batch []queue.Attempt) ([]store.Run, error) {
	runs, err := c.Store.RunsByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, a := range batch {
		if len(a.Route.Targets) < 2 {
			continue
		}
		parts, err := c.Store.Runs(ctx, store.RunFilter{TriggerID: a.Run.TriggerID(), Limit: len(a.Route.Targets) + 1})
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			if p.ID != a.Run.ID {
				runs = append(runs, p)
			}
		}
	}
	return runs, nil
}

// settleUncertain acts on what was read.
func (c *StartCalls) settleUncertain(batch []queue.Attempt, runs []store.Run, began time.Time) {
	c.Engine.Held.RefreshRuns(runs)
	byID := make(map[int64]store.Run, len(runs))
	siblings := map[int64][]store.Run{}
	for _, r := range runs {
		byID[r.ID] = r
		if r.TriggerID != r.ID {
			siblings[r.TriggerID] = append(siblings[r.TriggerID], r)
		}
	}
	for _, a := range batch {
		r, ok := byID[a.Run.ID]
		mine := r.Owner == c.Leases.Incarnation && r.Token == a.Start.Token
		switch {
		case ok && r.State == store.StatePlanned:
			c.Engine.Retry(a, true)
		case ok && mine && r.State == store.StateStarted:
			c.Launcher.launch(a, r, began)
		default:
			c.Engine.LetGo(a)
			if r.State == store.StateCancelled {
				c.Engine.Waiters.Notify(&r)
			} else if r.State.Ended() {
				c.Finisher.Ended([]store.Run{r})
			}
		}
		// The other parts of a broadcast are under way whatever became of the first.
		for _, sibling := range siblings[a.Run.TriggerID()] {
			if sibling.ID != a.Run.ID && sibling.State == store.StateStarted && sibling.Owner == c.Leases.Incarnation && sibling.Token == a.Start.Token {
				c.Launcher.launchSibling(a, sibling, began)
			}
		}
	}
}

// Runs that could not be started, for they are planned no more.

// TakesBack takes up starts that took effect although this node did not hear of it. It
// belongs to the start loop.
type TakesBack struct {
	*core.Core
	Engine   *queue.Queue
	InDoubt  *InDoubt
	Receiver *Receiver
	Watcher  *Watcher
}

// takeBack acts on a run that could not be started because it is planned no
// more. Where an earlier start of this node took effect behind its back, it is
// this node's to run.
func (t *TakesBack) takeBack(r store.Run, job *store.Job, began time.Time) {
	switch {
	case r.State.Ended():
		t.Engine.Waiters.Notify(&r)
	case r.State != store.StateStarted || r.Owner != t.Leases.Incarnation || t.Engine.Under.Flight(r.ID) != nil:
	case r.Address == store.LocalAddress(t.Leases.Incarnation), store.IsRemote(r.Address) && !t.InDoubt.list.has(r.ID) && !t.Engine.Under.HasLanded(r):
		t.Life.Mishaps.Adopted.Add(1)
		t.Receiver.receiveOne(r, job, began)
	case store.IsRemote(r.Address):
	default:
		t.Engine.Adopt(r)
		t.Watcher.goneAway(r)
	}
}

// Starts and takes of this node of which it is in doubt whether they took effect.

// Unconfirmed are the starts and takes whose calls ended with an error, and may have
// taken effect all the same; and the takes that had none, on their way to the
// executors. The former are kept for as long as one of them may turn up.
// It is safe for concurrent use.
type Unconfirmed struct {
	mu     sync.Mutex
	starts map[int64]bool // guarded by mu: by token
	takes  map[int64]bool // guarded by mu: by run
	latest time.Time      // guarded by mu: the last error
	// receiving are runs of calls without an error that are not yet with their executors.
	receiving map[int64]int // guarded by mu

	until atomic.Int64 // until when to look for orphans, in Unix nanoseconds
	lease loop.Wake    // of the loop that looks

	CutShort atomic.Bool // a start may have taken effect that Stop cut short
}

func NewUnconfirmed(lease loop.Wake) *Unconfirmed {
	return &Unconfirmed{lease: lease, starts: map[int64]bool{}, takes: map[int64]bool{}, receiving: map[int64]int{}}
}

// doubtsKept is how long they are kept after the last error: until the last of them
// has turned up, been looked for, and seen for long enough to be settled.
const doubtsKept = 2*core.DoubtLasts + 2*orphansEvery

// maxDoubts bounds them.
const maxDoubts = 100_000

func (d *Unconfirmed) start(batch []queue.Attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropOld()
	for _, a := range batch {
		d.starts[a.Start.Token] = true
	}
}

func (d *Unconfirmed) take(ids []int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropOld()
	for _, id := range ids {
		d.takes[id] = true
	}
}

// received notes that runs, taken or parts of a broadcast, are on their way to their
// executors, or with delta -1 that they are there.
func (d *Unconfirmed) received(runs []store.Run, delta int) {
	if len(runs) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range runs {
		if d.receiving[r.ID] += delta; d.receiving[r.ID] == 0 {
			delete(d.receiving, r.ID)
		}
	}
}

func (d *Unconfirmed) underWay(runID int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.receiving[runID] > 0
}

// dropOld is called with mu held. A commit may hang for as long as the server does: so
// none goes while there are errors.
func (d *Unconfirmed) dropOld() {
	if time.Since(d.latest) > doubtsKept || len(d.starts)+len(d.takes) > maxDoubts {
		clear(d.starts)
		clear(d.takes)
	}
	d.latest = time.Now()
}

// about reports whether a run that is under way by the store may not have been
// received here.
func (d *Unconfirmed) about(r store.Run, incarnation string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.takes[r.ID] || d.starts[r.Token] && r.Owner == incarnation
}

// lookNow makes the lease loop look for orphans.
func (d *Unconfirmed) lookNow() {
	d.LookLater()
	d.lease.Poke()
}

// LookLater makes it look when it next comes by.
func (d *Unconfirmed) LookLater() { d.until.Store(time.Now().Add(core.DoubtLasts).UnixNano()) }

// Any reports whether there may be orphans.
func (d *Unconfirmed) Any() bool {
	return time.Now().UnixNano() < d.until.Load()
}

// orphansEvery is how often a node looks for orphans without a reason: a database
// may fail over between two calls, and nobody has noticed.
const orphansEvery = time.Minute
