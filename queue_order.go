package xxljob

// Runs of a serial job that wait for an earlier one which is to be tried again. The store has
// found it in their way (Start.AfterRetries): it is planned, for a time to come perhaps, and
// need not be held here. They go on when it is started, which is this node's to do; when it is
// planned no more for another reason, as the watch loop finds out; when another version of
// their job is known, which may let them pass; or when their shard is another node's.

import (
	"maps"
	"slices"
)

// awaitRetry parks an entry behind a retry that is in its way. It gives up its place as the next
// serial run at its address: the retry may need it.
func (e *engine) awaitRetry(a attempt, retry Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.room.giveBackPlaces(a)
	if ref := a.ref; ref.job.Version != a.job.Version { // which may let it pass
		e.room.keepAhead(a.entry)
		e.room.due.push(a.entry)
		e.wakes.start.poke()
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
func (e *engine) awaitedRetries() []Run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.under.retries.runs))
}

// passed lets those go on that wait for a retry, which is planned no more.
func (e *engine) passed(runID int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wakes.start.pokeIf(e.letPass(runID))
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
		e.wakes.start.pokeIf(e.letPass(id))
	}
}

// isAwaited reports whether others wait for a retry.
func (e *engine) isAwaited(runID int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.under.retries.has(runID)
}
