package xxljob

// The places that a due run needs before it is started, and what it waits for where it does
// not get them.

import (
	"time"

	"github.com/xxljob/xxljob/block"
)

// reserved is what has come of an attempt to take places.
type reserved int

const (
	reservedNot reserved = iota // the entry waits, or is forgotten
	reservedAll                 // it has its places
	reservedAsk                 // a router of the user's has to be asked first; it waits nowhere yet
)

// inTurn returns the attempts whose turn it is, in place. It forgets entries of shards that are
// another node's, and parks those of serial jobs that have to let an earlier run pass, or of
// which it is not known yet whether they have. These are routed when they go on: a strategy is
// asked once about each run.
func (e *engine) inTurn(batch []attempt) []attempt {
	turn := batch[:0]
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range batch {
		a := &batch[i]
		serial := a.job.Block == block.SerialExecution
		if _, owned := e.leases.epoch(int(a.run.Shard)); !serial && !owned {
			e.release(a.entry)
		} else if !serial || !e.waitsBehind(a) && !e.waitsForRetry(a) {
			turn = keep(turn, batch, i)
		}
	}
	return turn
}

// reserveAll is reserve for many, in their order.
func (e *engine) reserveAll(batch []attempt, now time.Time, pending func(jobID int64) bool) []reserved {
	all := make([]reserved, len(batch))
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range batch {
		all[i] = e.reserve(&batch[i], now, pending)
	}
	return all
}

// reserve takes the places that the attempt needs, or parks the entry. pending reports
// whether runs of a job wait for answers to probes. Caller holds mu.
func (e *engine) reserve(a *attempt, now time.Time, pending func(jobID int64) bool) reserved {
	r := a.route
	switch {
	case r.asks != nil && !r.probing && r.behind == nil:
		e.room.letGoOn(a.entry)
		e.room.keepAhead(a.entry)
		return reservedAsk
	case e.isNotRouted(a, pending), r.refused == "" && r.ordered && (e.waitsBehind(a) || e.waitsForPart(a)):
		return reservedNot
	}
	a.choice = nil // it is used up: one that waits behind another keeps its own
	if r.refused == "" {
		if r.lane != laneNone {
			own := *r
			r, a.route = &own, &own
			r.lane = laneFast
			if e.jobs.isSlow(a.ref, now) {
				r.lane = laneSlow
			}
		}
		if !e.room.takeSerial(r.serial, a.run.key()) {
			e.room.park(r.serial, a.entry)
			return reservedNot
		}
		if full, ok := e.room.lanes.fits(r.lane, r.key(a.run.App), r.places); !ok {
			e.room.park(full, a.entry)
			return reservedNot
		}
		e.room.lanes.enter(r.lane, r.key(a.run.App), r.places)
		if r.ordered && (r.exec == nil || len(r.targets) > 0) { // parts of a broadcast go to other nodes
			e.room.transit.add(a.run.JobID, a.run.key())
		}
	}
	if r.refused != "" || a.from == nil || !a.from.isRoomOf(r.lane, r.key(a.run.App), r.places) {
		e.room.letGoOn(a.entry)
	}
	a.waited, a.starting, a.readAgain = false, true, false
	return reservedAll
}

// isNotRouted reports whether an entry has no address yet, and parks it. Caller holds mu.
func (e *engine) isNotRouted(a *attempt, pending func(jobID int64) bool) bool {
	r := a.route
	switch {
	case r.probing && !pending(a.job.ID):
		e.room.keepAhead(a.entry)
		e.room.due.push(a.entry) // the answers have come in meanwhile
	case r.probing:
		e.room.park(lot{kind: lotProbe, jobID: a.job.ID}, a.entry)
	case r.behind != nil:
		e.parkBehindRun(*r.behind, a.entry)
		e.wakes.watch.poke()
	default:
		return false
	}
	return true
}

// waitsBehind reports whether a run of a serial job has to wait for earlier ones, and
// parks it; that of another node's shard is forgotten. Caller holds mu.
func (e *engine) waitsBehind(a *attempt) bool {
	open, owned := e.leases.isOpen(int(a.run.Shard), a.run.key())
	switch {
	case !owned: // it was lost while an address was looked for
		e.release(a.entry)
	case !open:
		e.room.parkBehind(lot{kind: lotSettle}, a.entry)
	case e.room.transit.isBehind(a.run.JobID, a.run.key()):
		e.room.parkBehind(lotOrderOf(a.run.JobID), a.entry)
		e.wakes.transit.poke()
	default:
		return false
	}
	return true
}

// waitsForPart reports whether a broadcast of a serial job has to wait for the start of an
// earlier run, which waits for room or for its turn at one of the addresses of the other
// parts, and parks it: those parts take no turn of their own. Caller holds mu.
func (e *engine) waitsForPart(a *attempt) bool {
	for _, address := range a.route.targets {
		at := serialAt(a.job, address)
		for _, en := range []*entry{e.held.runs.Of(e.room.serial.at(at)), e.room.lots.head(at, a.run.App)} {
			if address != a.route.address && en != nil && en.run.key().before(a.run.key()) {
				e.room.keepAhead(en)
				e.room.parkBehind(lotOrderOf(a.run.JobID), a.entry)
				return true
			}
		}
	}
	return false
}

// turnBegins gives back what was kept for an entry until its turn, which it has now. Where
// what was decided about it is outdated it is routed anew.
func (e *engine) turnBegins(a *attempt, outdated bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room.unkeep(a.entry)
	if outdated {
		e.room.freeSerial(a.route.serial, a.run.ID)
		a.entry.route = &routed{}
	}
	a.turned = true
}
