package xxljob

import (
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// The passage of an entry from waiting to running, in the engine's books.

// takeOffAll turns started entries into flights of this process, where they are not nil already;
// nil for runs that are other nodes'.
func (e *engine) takeOffAll(batch []attempt, answers []store.Started, acked time.Time) []*flight {
	flights := make([]*flight, len(batch))
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range batch {
		if started(&answers[i]) {
			flights[i] = e.takeOff(&batch[i], &answers[i].Run, acked)
		}
	}
	return flights
}

// started reports whether an answer says that a run was started, and not refused.
func started(a *store.Started) bool { return a.Status == store.StartOK && !a.Run.State.Ended() }

// takeOff turns a started entry into a flight of this process; nil when the run
// is another node's. Caller holds mu.
func (e *engine) takeOff(a *attempt, run *store.Run, acked time.Time) *flight {
	held := a.entry.held
	defer func() {
		if held { // last, so that the job is not forgotten and known anew
			e.held.unhold(a.entry)
		}
	}()
	e.letPass(run.ID)
	if f := e.under.flights.Of(run.ID); f != nil {
		// It is under way here already: what was taken for it is given back.
		e.room.giveBackPlaces(*a)
		if f.serial != a.route.serial {
			e.room.freeSerial(a.route.serial, run.ID)
		}
		e.room.arrived(run.JobID, run.ID)
		return nil
	}
	ref := a.ref
	if !held { // nobody keeps it in use
		ref = nil
	}
	return e.fly(a.route, run, a.job, ref, acked)
}

// takeOffSibling is takeOff for a further part of a broadcast.
func (e *engine) takeOffSibling(r routed, run store.Run, job *store.Job, acked time.Time) *flight {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.under.flights.Of(run.ID) != nil || e.under.landed.has(&run) {
		return nil
	}
	e.room.lanes.enter(r.lane, r.key(run.App), r.places)
	if !e.room.takeSerial(r.serial, keyOfRun(&run)) {
		r.serial = lot{} // the executor's own queue keeps the parts in order
	}
	return e.fly(&r, &run, job, nil, acked)
}

// fly makes a started run a flight. ref is the job's as somebody uses it, nil for nobody.
func (e *engine) fly(r *routed, run *store.Run, job *store.Job, ref *jobRef, acked time.Time) *flight {
	// The run may have been at another node before, and put back by yet another.
	e.landAway(run.ID, r.serial)
	if r.exec == nil {
		away := awayAt(*run)
		away.serial = r.serial
		if r.places > 0 {
			away.places = r.key(run.App)
		}
		e.under.away[run.ID] = away
		if r.ordered {
			e.room.transit.add(run.JobID, keyOfRun(run))
		}
		return nil
	}
	e.room.arrived(run.JobID, run.ID)
	f := &flight{
		routed: r, run: startedOf(run, job, e.under.lately), job: job, ref: e.jobs.share(ref, job), acked: acked, state: flightState{counts: r.places > 0},
	}
	e.under.flights.Set(run.ID, f)
	return f
}

// answered takes in that the executor has answered a trigger, and how long it took.
func (e *engine) answered(f *flight, took time.Duration) {
	if f.lane == laneNone && !f.remote && took <= e.jobs.slowAfter {
		return // it holds nothing until then
	}
	now := e.clock.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.jobs.took(f.run.planned.JobID, f.job, took, now)
	freed := false
	if f.remote { // the next run of a serial job may be sent
		freed = e.room.freeSerial(f.serial, f.run.planned.ID)
	}
	var lots [3]lot
	for _, at := range e.room.lanes.answered(lots[:0], f.lane, f.at()) {
		freed = e.room.admit(at) || freed
	}
	e.wakes.start.PokeIf(freed)
}

// knows reports whether this node holds the run or has it under way.
func (e *engine) knows(runID int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held.runs.Of(runID) != nil || e.under.flights.Of(runID) != nil
}

// awayIDs returns the runs of other nodes whose end this node waits for.
func (e *engine) awayIDs() []int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := slices.AppendSeq(slices.Collect(maps.Keys(e.under.away)), maps.Keys(e.under.retries.runs))
	for _, id := range e.waiters.runs() {
		if e.under.flights.Of(id) == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// moved turns a flight into a run of another node, after a refusal here.
func (e *engine) moved(f *flight, run store.Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.under.flights.Of(f.run.planned.ID) != f {
		return
	}
	e.landFlight(run.ID)
	e.under.away[run.ID] = awayAt(run)
	if inTransit(run) {
		e.room.transit.add(run.JobID, keyOfRun(&run))
	}
	e.wakes.start.Poke()
}

// redirected turns a flight into one to another executor that this node itself calls,
// after a refusal; nil when it has landed meanwhile. It takes its places without
// asking: it has waited for its turn already.
func (e *engine) redirected(f *flight, run store.Run, r routed) *flight {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.under.flights.Of(run.ID) != f {
		return nil
	}
	e.landFlight(run.ID)
	e.room.lanes.enter(r.lane, r.key(run.App), r.places)
	e.wakes.start.Poke()
	return e.fly(&r, &run, f.job, nil, f.acked)
}

// adopt makes this node wait for the end of a run that it now owns.
func (e *engine) adopt(r store.Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.under.flights.Of(r.ID) != nil {
		return
	}
	if _, known := e.under.away[r.ID]; !known {
		e.under.away[r.ID] = awayAt(r)
	}
	if inTransit(r) {
		e.room.transit.add(r.JobID, keyOfRun(&r))
	}
}

// land frees what the run held, wherever it was.
func (e *engine) land(runID int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.landRun(runID)
}

// landAll is land for many, which have ended.
func (e *engine) landAll(runs []store.Run) {
	for some := range slices.Chunk(runs, landMost) { // others want the lock too
		e.mu.Lock()
		freed := false
		for i := range some {
			e.under.noteOver(&some[i])
			freed = e.freeRun(some[i].ID) || freed
		}
		e.pokeFreed(freed)
		e.mu.Unlock()
	}
}

// landMost is how many runs land while the lock is held.
const landMost = 100

// landStart is land for one start of a run: a later one that is under way here by now goes
// on.
func (e *engine) landStart(runID, token int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.under.flights.Of(runID); f == nil || token == 0 || f.run.Token == token {
		e.landRun(runID)
	}
}

// landRun is land with mu held.
func (e *engine) landRun(runID int64) {
	e.pokeFreed(e.freeRun(runID))
}

// freeRun frees what a run held, and reports whether another may start by it.
func (e *engine) freeRun(runID int64) bool {
	freed := e.landFlight(runID)
	return e.landAway(runID, lot{}) || freed
}

func (e *engine) pokeFreed(freed bool) {
	e.wakes.start.PokeIf(freed)
	e.wakes.inbox.PokeIf(e.inboxFull.Load())
}

// landFlight frees what a run held that was under way here.
func (e *engine) landFlight(runID int64) (freed bool) {
	f := e.under.flights.Of(runID)
	if f == nil {
		return false
	}
	e.under.flights.Delete(runID)
	f.state.landed = true
	e.under.landed.add(f.run.planned.ID, f.run.Token)
	e.jobs.unref(f.ref)
	switch {
	case f.state.left:
		e.room.lanes.stored(f.at())
	case f.state.counts:
		freed = e.room.admit(e.room.lanes.ended(f.at()))
	}
	freed = e.room.freeSerial(f.serial, runID) || freed
	freed = e.room.admitAllOf(lot{kind: lotRun, runID: runID}) || freed
	if e.under.flights.Len() == 0 && e.under.quiet != nil {
		close(e.under.quiet)
		e.under.quiet = nil
	}
	return freed
}

// leavePlaces frees the places of flights, nil ones among them, whose handlers have returned: while
// their results are stored, others are started, once as many as there are places. A run of a serial
// job waits for the store.
func (e *engine) leavePlaces(flights []*flight) {
	e.mu.Lock()
	defer e.mu.Unlock()
	freed := false
	for _, f := range flights {
		if f != nil {
			freed = e.leavePlace(f) || freed
		}
	}
	e.pokeFreed(freed)
}

// leavePlace frees the place of a flight that still has one. Caller holds mu.
func (e *engine) leavePlace(f *flight) (freed bool) {
	if !f.state.counts {
		return false
	}
	at, leaves := e.room.lanes.leave(f.at(), f.places)
	if !leaves {
		return false
	}
	f.state.counts, f.state.left = false, true
	return e.room.admit(at)
}

// landAway frees what a run at another node held, but for the lot kept.
func (e *engine) landAway(runID int64, kept lot) (freed bool) {
	a, ok := e.under.away[runID]
	if !ok {
		return false
	}
	delete(e.under.away, runID)
	freed = e.room.arrived(a.jobID, runID)
	if a.places.app != "" {
		freed = e.room.admit(e.room.lanes.ended(a.places)) || freed
	}
	if a.serial != kept {
		freed = e.room.freeSerial(a.serial, runID) || freed
	}
	return e.room.admitAllOf(lot{kind: lotRun, runID: runID}) || freed
}

// Starts that were under way here and are over.

// landings remember the latest flights that have landed: what was read of a run
// a moment ago may still show it under way, and must not put it up again.
type landings struct {
	latest, before map[landing]struct{}
}

// landing is one start of a run.
type landing struct{ runID, token int64 }

// landingsKept is how many are remembered at least.
const landingsKept = 10_000

func (l *landings) add(runID, token int64) {
	if len(l.latest) >= landingsKept || l.latest == nil {
		l.latest, l.before = l.before, l.latest
		if clear(l.latest); l.latest == nil {
			l.latest = map[landing]struct{}{}
		}
	}
	l.latest[landing{runID, token}] = struct{}{}
}

func (l *landings) has(r *store.Run) bool {
	k := landing{r.ID, r.Token}
	_, latest := l.latest[k]
	_, before := l.before[k]
	return latest || before
}
