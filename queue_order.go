package xxljob

import (
	"maps"
	"slices"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/store"
)

// The order of a serial job's runs that are handed to other nodes, and its retries.

// transit holds, by job, the runs that are in transit, in their order.
type transit map[int64][]ringEntry

func (t transit) add(jobID int64, r ringEntry) {
	runs := t[jobID]
	i, has := slices.BinarySearchFunc(runs, r, ringEntry.compare)
	if !has {
		t[jobID] = slices.Insert(runs, i, r)
	}
}

func (t transit) has(jobID, runID int64) bool { return t.place(jobID, runID) >= 0 }

// place is where a run is among those of its job; mostly it is the first.
func (t transit) place(jobID, runID int64) int {
	return slices.IndexFunc(t[jobID], func(r ringEntry) bool { return r.runID == runID })
}

func (t transit) drop(jobID, runID int64) {
	switch i := t.place(jobID, runID); {
	case i < 0:
	case len(t[jobID]) == 1:
		delete(t, jobID)
	case i == 0:
		t[jobID] = t[jobID][1:]
	default:
		t[jobID] = slices.Delete(t[jobID], i, i+1)
	}
}

// isBehind reports whether an earlier run of the job is in transit.
func (t transit) isBehind(jobID int64, r ringEntry) bool {
	runs := t[jobID]
	return len(runs) > 0 && runs[0].before(r)
}

// inTransit reports whether a started run is in transit, as its row says.
func inTransit(r store.Run) bool {
	return r.State == store.StateStarted && r.Block == block.SerialExecution && !store.IsRemote(r.Address) && r.Taken.IsZero()
}

// The order of a serial job's runs that are handed to other nodes. A run is in transit
// from when it is about to be started until it is started here, another node has taken
// it, it has ended or waits for room, or this node gives it up; also while it waits to be
// told where to go, or for its turn (dispatch_start.go); and, where it waits for room, if it is a
// broadcast or one waits for it. While an earlier run of a job is in transit no later one is
// started: should the node be gone, the earlier one is put back, and is still the first.
// All of it is guarded by the engine's mutex.

// taken notes that the node to which a run was handed has taken it.
func (e *engine) taken(r store.Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wakes.start.PokeIf(e.room.transit.has(r.JobID, r.ID) && e.room.arrived(r.JobID, r.ID))
}

// inTheWay are the runs in transit that others wait for.
func (e *engine) inTheWay() (ids []int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for job, runs := range e.room.transit {
		if e.room.lots.at(lotOrderOf(job)) == nil {
			continue
		}
		for _, r := range runs {
			if e.held.runs.Of(r.runID) == nil {
				ids = append(ids, r.runID)
			}
		}
	}
	return ids
}

// plannedAgain takes in that a run which was under way, of a serial job or not as far as
// that is known, is planned again. The owner of its shard holds it from then on: no scan
// need find it, and who put it back may have done so before the answer to its start had
// arrived here. One of a serial job stays ahead of the later ones.
func (e *engine) plannedAgain(r store.Run, serial bool) {
	_, owned := e.leases.epoch(r.Shard)
	e.mu.Lock()
	defer e.mu.Unlock()
	serial = serial || e.room.transit.has(r.JobID, r.ID)
	freed, sooner := e.landAway(r.ID, lot{}), false
	if owned {
		sooner = e.holdSome([]store.Run{r}, nil)
	}
	if serial && e.held.runs.Of(r.ID) != nil {
		e.room.transit.add(r.JobID, keyOfRun(&r))
	}
	e.wakes.start.PokeIf(sooner || freed)
}

// notMine acts on a run that was found not to be this node's to run any more.
func (e *engine) notMine(r store.Run) {
	switch {
	case r.State.Ended():
		e.waiters.notify(&r)
	case r.State == store.StatePlanned:
		e.plannedAgain(r, false)
	}
}

// Retries that are planned, perhaps for a time to come, and that later runs of their jobs wait
// for.

// awaited are planned retries that others wait for.
type awaited struct {
	runs map[int64]store.Run // by id, as far as their order needs it
	of   map[int64][]int64   // those of each job
}

func newAwaited() awaited { return awaited{runs: map[int64]store.Run{}, of: map[int64][]int64{}} }

func (a awaited) has(runID int64) bool {
	_, is := a.runs[runID]
	return is
}

func (a awaited) add(retry store.Run) {
	if !a.has(retry.ID) {
		a.runs[retry.ID] = slimmed(retry)
		a.of[retry.JobID] = append(a.of[retry.JobID], retry.ID)
	}
}

func (a awaited) drop(runID int64) {
	job := a.runs[runID].JobID
	delete(a.runs, runID)
	if a.of[job] = slices.DeleteFunc(a.of[job], func(id int64) bool { return id == runID }); len(a.of[job]) == 0 {
		delete(a.of, job)
	}
}

// ahead is a retry among them that a run has to let pass, 0 where there is none: it stands for
// an earlier instant, as Start.AfterRetries has it.
func (a awaited) ahead(p *plannedRun) (runID int64) {
	retries := a.of[p.JobID]
	if len(retries) == 0 {
		return 0
	}
	r := p.full()
	for _, id := range retries {
		retry := a.runs[id]
		if at := retry.Instant().Compare(r.Instant()); at < 0 || at == 0 && retry.TriggerID < r.TriggerID {
			return id
		}
	}
	return 0
}

// slimmed is a run without what may be long and nobody asks for here.
func slimmed(r store.Run) store.Run {
	r.Param, r.TriggerMsg, r.HandleMsg, r.ProgressText, r.Addresses = "", "", "", "", nil
	return r
}

// Runs of a serial job that wait for an earlier one which is to be tried again. The store has
// found it in their way (Start.AfterRetries): it is planned, for a time to come perhaps, and
// need not be held here. They go on when it is started, which is this node's to do; when it is
// planned no more for another reason, as the watch loop finds out; when another version of
// their job is known, which may let them pass; or when their shard is another node's.

// awaitRetry parks an entry behind a retry that is in its way. It gives up its place as the next
// serial run at its address: the retry may need it.
func (e *engine) awaitRetry(a attempt, retry store.Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room.giveBackPlaces(a)
	if ref := a.ref; ref.job.Version != a.job.Version { // which may let it pass
		e.room.keepAhead(a.entry)
		e.room.due.push(a.entry)
		e.wakes.start.Poke()
		return
	}
	e.under.retries.add(retry)
	e.room.parkBehind(lot{kind: lotRun, runID: retry.ID}, a.entry)
}

// waitsForRetry parks a run behind a retry that is known to be in its way, so that the store is
// not asked for each of many that wait. Called with mu held.
func (e *engine) waitsForRetry(a *attempt) bool {
	if a.job.RetryAside {
		return false
	}
	id := e.under.retries.ahead(&a.run)
	if id != 0 {
		e.room.parkBehind(lot{kind: lotRun, runID: id}, a.entry)
	}
	return id != 0
}

// awaitedRetries are the retries that others wait for: what has come of the definitions of their
// jobs has to be found out, since no run of theirs starts that would tell.
func (e *engine) awaitedRetries() []store.Run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.under.retries.runs))
}

// passed lets those go on that wait for a retry, which is planned no more.
func (e *engine) passed(runID int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wakes.start.PokeIf(e.letPass(runID))
}

// letPass is passed with mu held.
func (e *engine) letPass(runID int64) bool {
	if !e.under.retries.has(runID) {
		return false
	}
	e.under.retries.drop(runID)
	return e.room.admitAllOf(lot{kind: lotRun, runID: runID})
}

// letPassOf lets those go on that wait for retries of a job. Called with mu held.
func (e *engine) letPassOf(jobID int64) {
	for _, id := range slices.Clone(e.under.retries.of[jobID]) {
		e.wakes.start.PokeIf(e.letPass(id))
	}
}

// isAwaited reports whether others wait for a retry.
func (e *engine) isAwaited(runID int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.under.retries.has(runID)
}
