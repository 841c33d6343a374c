package xxljob

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Starts of which it is not known whether they took effect. Input: batches whose Start
// returned an error, and runs that could not be started since they are planned no more,
// from dispatch_start.go. Output: what the store has made of them.

// startCalls calls the store for starts, and finds out what has become of those whose call
// has failed. It belongs to the start loop.
type startCalls struct {
	*shared
	engine   *engine
	fitness  *fitness
	doubts   *doubts
	finisher *finisher
	launcher *launcher
	starting loop.Backoff // of Store.Start
}

// uncertain finds out what became of a batch whose Start returned an error: it
// may have taken effect. It keeps the batch until the store has told.
func (c *startCalls) uncertain(ctx context.Context, batch []attempt) {
	ids := make([]int64, len(batch))
	for i, a := range batch {
		ids[i] = a.run.ID
	}
	for {
		if !loop.Sleep(ctx, c.starting.Delay()) {
			c.engine.undo(batch)
			c.doubts.cutShort.Store(true)
			return
		}
		began := c.fitness.begin(&c.fitness.starts)
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return c.runsWithSiblings(ctx, ids, batch) })
		if err == nil {
			c.fitness.over(&c.fitness.starts, began)
			c.settleUncertain(batch, runs, began)
			return
		}
		c.fitness.end(ctx, &c.fitness.starts, began, err)
		c.starting.Failed(ctx, err)
	}
}

// runsWithSiblings reads the runs, and of broadcasts the parts.
func (c *startCalls) runsWithSiblings(ctx context.Context, ids []int64, batch []attempt) ([]store.Run, error) {
	runs, err := c.store.RunsByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, a := range batch {
		if len(a.route.targets) < 2 {
			continue
		}
		parts, err := c.store.Runs(ctx, store.RunFilter{TriggerID: a.run.triggerID(), Limit: len(a.route.targets) + 1})
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			if p.ID != a.run.ID {
				runs = append(runs, p)
			}
		}
	}
	return runs, nil
}

// settleUncertain acts on what was read.
func (c *startCalls) settleUncertain(batch []attempt, runs []store.Run, began time.Time) {
	c.engine.held.refreshRuns(runs)
	byID := make(map[int64]store.Run, len(runs))
	siblings := map[int64][]store.Run{}
	for _, r := range runs {
		byID[r.ID] = r
		if r.TriggerID != r.ID {
			siblings[r.TriggerID] = append(siblings[r.TriggerID], r)
		}
	}
	for _, a := range batch {
		r, ok := byID[a.run.ID]
		mine := r.Owner == c.leases.incarnation && r.Token == a.start.Token
		switch {
		case ok && r.State == store.StatePlanned:
			c.engine.retry(a, true)
		case ok && mine && r.State == store.StateStarted:
			c.launcher.launch(a, r, began)
		default:
			c.engine.letGo(a)
			if r.State == store.StateCancelled {
				c.engine.waiters.notify(&r)
			} else if r.State.Ended() {
				c.finisher.ended([]store.Run{r})
			}
		}
		// The other parts of a broadcast are under way whatever became of the first.
		for _, sibling := range siblings[a.run.triggerID()] {
			if sibling.ID != a.run.ID && sibling.State == store.StateStarted && sibling.Owner == c.leases.incarnation && sibling.Token == a.start.Token {
				c.launcher.launchSibling(a, sibling, began)
			}
		}
	}
}

// Runs that could not be started, for they are planned no more.

// takesBack takes up starts that took effect although this node did not hear of it. It
// belongs to the start loop.
type takesBack struct {
	*shared
	engine   *engine
	inDoubt  *inDoubt
	receiver *receiver
	watcher  *watcher
}

// takeBack acts on a run that could not be started because it is planned no
// more. Where an earlier start of this node took effect behind its back, it is
// this node's to run.
func (t *takesBack) takeBack(r store.Run, job *store.Job, began time.Time) {
	switch {
	case r.State.Ended():
		t.engine.waiters.notify(&r)
	case r.State != store.StateStarted || r.Owner != t.leases.incarnation || t.engine.under.flight(r.ID) != nil:
	case r.Address == store.LocalAddress(t.leases.incarnation), store.IsRemote(r.Address) && !t.inDoubt.list.has(r.ID) && !t.engine.under.hasLanded(r):
		t.life.mishaps.adopted.Add(1)
		t.receiver.receiveOne(r, job, began)
	case store.IsRemote(r.Address):
	default:
		t.engine.adopt(r)
		t.watcher.goneAway(r)
	}
}

// Starts and takes of this node of which it is in doubt whether they took effect.

// doubts are the starts and takes whose calls ended with an error, and may have
// taken effect all the same; and the takes that had none, on their way to the
// executors. The former are kept for as long as one of them may turn up.
// It is safe for concurrent use.
type doubts struct {
	mu     sync.Mutex
	starts map[int64]bool // guarded by mu: by token
	takes  map[int64]bool // guarded by mu: by run
	latest time.Time      // guarded by mu: the last error
	// receiving are runs of calls without an error that are not yet with their executors.
	receiving map[int64]int // guarded by mu

	until atomic.Int64 // until when to look for orphans, in Unix nanoseconds
	lease loop.Wake    // of the loop that looks

	cutShort atomic.Bool // a start may have taken effect that Stop cut short
}

func newDoubts(lease loop.Wake) *doubts {
	return &doubts{lease: lease, starts: map[int64]bool{}, takes: map[int64]bool{}, receiving: map[int64]int{}}
}

// doubtsKept is how long they are kept after the last error: until the last of them
// has turned up, been looked for, and seen for long enough to be settled.
const doubtsKept = 2*doubtLasts + 2*orphansEvery

// maxDoubts bounds them.
const maxDoubts = 100_000

func (d *doubts) start(batch []attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropOld()
	for _, a := range batch {
		d.starts[a.start.Token] = true
	}
}

func (d *doubts) take(ids []int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropOld()
	for _, id := range ids {
		d.takes[id] = true
	}
}

// received notes that runs, taken or parts of a broadcast, are on their way to their
// executors, or with delta -1 that they are there.
func (d *doubts) received(runs []store.Run, delta int) {
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

func (d *doubts) underWay(runID int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.receiving[runID] > 0
}

// dropOld is called with mu held. A commit may hang for as long as the server does: so
// none goes while there are errors.
func (d *doubts) dropOld() {
	if time.Since(d.latest) > doubtsKept || len(d.starts)+len(d.takes) > maxDoubts {
		clear(d.starts)
		clear(d.takes)
	}
	d.latest = time.Now()
}

// about reports whether a run that is under way by the store may not have been
// received here.
func (d *doubts) about(r store.Run, incarnation string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.takes[r.ID] || d.starts[r.Token] && r.Owner == incarnation
}

// lookNow makes the lease loop look for orphans.
func (d *doubts) lookNow() {
	d.lookLater()
	d.lease.Poke()
}

// lookLater makes it look when it next comes by.
func (d *doubts) lookLater() { d.until.Store(time.Now().Add(doubtLasts).UnixNano()) }

// any reports whether there may be orphans.
func (d *doubts) any() bool {
	return time.Now().UnixNano() < d.until.Load()
}

// orphansEvery is how often a node looks for orphans without a reason: a database
// may fail over between two calls, and nobody has noticed.
const orphansEvery = time.Minute
