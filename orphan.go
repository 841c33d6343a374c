package xxljob

// Runs of this node that nobody here knows of. A start or a take whose call ended
// with an error may take effect long after, when the store has been read again
// and did not show it: then the store has the run as under way here, and no
// handler was called. After such an error the node looks for them for a while.

import (
	"context"
	"sync"
	"time"
)

// suspicion is how long after an error a node looks for orphans: far longer than
// a call to the store may be under way.
const suspicion = 6 * callTimeout

// suspect makes the lease loop look for orphans.
func (s *scheduler) suspect() {
	s.doubt()
	s.wakes.lease.poke()
}

// doubt makes it look when it next comes by.
func (s *scheduler) doubt() { s.suspectUntil.Store(time.Now().Add(suspicion).UnixNano()) }

// suspicious reports whether there may be orphans.
func (s *scheduler) suspicious() bool {
	return time.Now().UnixNano() < s.suspectUntil.Load()
}

// orphansEvery is how often a node looks for orphans without a reason: a database
// may fail over between two calls, and nobody has noticed.
const orphansEvery = time.Minute

// adoptOrphans settles what is under way here by the store and unknown to this
// node. One look is not enough to tell: a start may be on its way from the store.
// What two looks find that are longer apart than a call may take is an orphan.
func (s *scheduler) adoptOrphans(ctx context.Context) error {
	now := time.Now()
	if s.draining.Load() || !s.suspicious() && len(s.orphans) == 0 && now.Sub(s.orphaned) < orphansEvery {
		return nil
	}
	s.orphaned = now
	seen := make(map[int64]time.Time)
	var ripe []Run
	for after := int64(0); ; {
		runs, err := call(ctx, func(ctx context.Context) ([]Run, error) {
			return s.store.StartedBy(ctx, s.allShards(), []string{s.incarnation}, after, 4*storeBatch)
		})
		if err != nil {
			return err
		}
		for _, r := range runs {
			if !s.mineToRun(r) || s.engine.knows(r.ID) || s.open.has(r.ID) || s.doubts.underWay(r.ID) {
				continue
			}
			first, known := s.orphans[r.ID]
			if !known {
				first = now
			}
			seen[r.ID] = first
			if now.Sub(first) > callTimeout+s.leases.ttl {
				ripe = append(ripe, r)
			}
		}
		if len(runs) < 4*storeBatch {
			break
		}
		after = runs[len(runs)-1].ID
	}
	s.orphans = seen
	return s.settleOrphans(ctx, ripe)
}

// mineToRun reports whether a started run is this node's to run, or to send to a
// remote executor.
func (s *scheduler) mineToRun(r Run) bool {
	if isRemote(r.Address) {
		return r.Owner == s.incarnation
	}
	return r.Address == LocalAddress(s.incarnation) && !r.Taken.IsZero()
}

// settleOrphans runs those whose start or take is in doubt. The calls of the others
// had no error, so their handlers were called: this node has stored their ends, and
// the store, a database that failed over perhaps, has forgotten them.
func (s *scheduler) settleOrphans(ctx context.Context, ripe []Run) error {
	var adopted []Run
	for _, r := range ripe {
		if s.doubts.about(r, s.incarnation) && !s.engine.hasLanded(r) {
			adopted = append(adopted, r)
			continue
		}
		if isRemote(r.Address) { // its executor has it perhaps, and will report
			s.adoptOpen(r)
			continue
		}
		s.finisher.finishAsync(Result{RunID: r.ID, Incarnation: s.incarnation, Token: r.Token, State: StateLost, HandleMsg: resultForgotten})
	}
	if len(adopted) == 0 {
		return nil
	}
	s.log.Warn("xxljob: running starts that took effect after their call had failed", "runs", len(adopted))
	return s.receiveAfterAll(ctx, adopted, time.Now())
}

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
}

func newDoubts() *doubts {
	return &doubts{starts: map[int64]bool{}, takes: map[int64]bool{}, receiving: map[int64]int{}}
}

// doubtsKept is how long they are kept after the last error: until the last of them
// has turned up, been looked for, and seen for long enough to be settled.
const doubtsKept = 2*suspicion + 2*orphansEvery

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
func (d *doubts) received(runs []Run, delta int) {
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
func (d *doubts) about(r Run, incarnation string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.takes[r.ID] || d.starts[r.Token] && r.Owner == incarnation
}

// allShards names every shard, whoever owns it: a run may be addressed here by any
// node.
func (s *scheduler) allShards() []Shard {
	all := make([]Shard, s.cfg.Shards)
	for i := range all {
		all[i].ID = i
	}
	return all
}
