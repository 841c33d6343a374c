package xxljob

// The order of a serial job's runs that are handed to other nodes. A run is in transit
// from when it is about to be started until it is started here, another node has taken
// it, it has ended or waits for room, or this node gives it up; also while it waits to be
// told where to go, or for its turn (apart.go); and, where it waits for room, while a
// broadcast waits for it. While an earlier run of a job is in transit no later one is
// started: should the node be gone, the earlier one is put back, and is still the first.
// All of it is guarded by the engine's mutex.

import (
	"github.com/xxljob/xxljob/block"
)

// transit holds, by job, the runs that are in transit, with their place in the order.
type transit map[int64]map[int64]ringEntry

func (t transit) add(r *Run) {
	if t[r.JobID] == nil {
		t[r.JobID] = map[int64]ringEntry{}
	}
	t[r.JobID][r.ID] = keyOfRun(r)
}

func (t transit) has(r *Run) bool {
	_, ok := t[r.JobID][r.ID]
	return ok
}

func (t transit) drop(jobID, runID int64) {
	if runs := t[jobID]; runs != nil {
		if delete(runs, runID); len(runs) == 0 {
			delete(t, jobID)
		}
	}
}

// isBehind reports whether an earlier run of the job is in transit.
func (t transit) isBehind(r *Run) bool {
	key := keyOfRun(r)
	for id, ahead := range t[r.JobID] {
		if id != r.ID && ahead.before(key) {
			return true
		}
	}
	return false
}

// inTransit reports whether a started run is in transit, as its row says.
func inTransit(r Run) bool {
	return r.State == StateStarted && r.Block == block.SerialExecution && !isRemote(r.Address) && r.Taken.IsZero()
}

// isSerial reports whether a job is known to be a serial one.
func (e *engine) isSerial(jobID int64) bool {
	ref := e.jobs[jobID]
	return ref != nil && ref.job.Block == block.SerialExecution
}

// keepAhead keeps the later runs of a serial job behind one that has to come again: they
// might find at once what it waits for.
func (e *engine) keepAhead(en *entry) {
	if e.isSerial(en.run.JobID) {
		e.transit.add(&en.run)
	}
}

// lotOrderOf is where the later runs of a job wait.
func lotOrderOf(jobID int64) lot { return lot{kind: lotOrder, jobID: jobID} }

// parkBehind parks an entry that an earlier one has to pass. It holds nothing then that
// the earlier one might wait for, and is routed anew when it goes on, as those are that
// come after it.
func (e *engine) parkBehind(at lot, en *entry) {
	e.freeSerial(en.route.serial, en.run.ID)
	en.route = routed{}
	e.park(at, en)
}

// arrived notes that a run is in transit no more, or never was, and lets the next of its
// job try. It reports whether there was one.
func (e *engine) arrived(jobID, runID int64) bool {
	e.transit.drop(jobID, runID)
	return e.admit(lotOrderOf(jobID))
}

// taken notes that the node to which a run was handed has taken it.
func (e *engine) taken(r Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wakes.start.pokeIf(e.transit.has(&r) && e.arrived(r.JobID, r.ID))
}

// inTheWay are the runs in transit that others wait for.
func (e *engine) inTheWay() (ids []int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for job, runs := range e.transit {
		if e.lots[lotOrderOf(job)] == nil {
			continue
		}
		for id := range runs {
			if e.held[id] == nil {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// plannedAgain takes in that a run which was under way, of a serial job or not as far as
// that is known, is planned again. The owner of its shard holds it from then on: no scan
// need find it, and who put it back may have done so before the answer to its start had
// arrived here. One of a serial job stays ahead of the later ones.
func (e *engine) plannedAgain(r Run, serial bool) {
	_, owned := e.leases.epoch(r.Shard)
	e.mu.Lock()
	defer e.mu.Unlock()
	serial = serial || e.transit.has(&r)
	freed, sooner := e.landAway(r.ID, lot{}), false
	if owned {
		sooner = e.holdSome([]Run{r}, nil)
	}
	if serial && e.held[r.ID] != nil {
		e.transit.add(&r)
	}
	e.wakes.start.pokeIf(sooner || freed)
}

// evict lets everybody out of the lots of an address at which nobody should wait any
// more: they are routed anew.
func (e *engine) evict(address string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	any := false
	for at := range e.lots {
		away, isAway := e.away[at.runID]
		if at.address == address || at.kind == lotRun && isAway && away.address == address {
			any = e.clearOut(at) || any
		}
	}
	e.wakes.start.pokeIf(any)
}

// clearOut empties a lot.
func (e *engine) clearOut(at lot) (any bool) {
	for en := e.lots.leave(at); en != nil; en = e.lots.leave(at) {
		e.freeSerial(en.route.serial, en.run.ID)
		en.route = routed{}
		e.due.push(en)
		any = true
	}
	return any
}
