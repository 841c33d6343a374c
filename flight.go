package xxljob

// The passage of an entry from waiting to running, in the engine's books.

import (
	"context"
	"time"
)

// takeOff turns a started entry into a flight of this process; nil when the run
// is another node's.
func (e *engine) takeOff(a attempt, run Run, acked time.Time) *flight {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held[run.ID] == a.entry {
		e.unhold(a.entry)
	}
	if f := e.flights[run.ID]; f != nil {
		// It is under way here already: what was taken for it is given back.
		e.giveBackPlaces(a)
		if f.serial != a.route.serial {
			e.freeSerial(a.route.serial, run.ID)
		}
		e.arrived(run.JobID, run.ID)
		return nil
	}
	return e.fly(a.route, run, a.job, acked)
}

// takeOffSibling is takeOff for a further part of a broadcast.
func (e *engine) takeOffSibling(r routed, run Run, job *Job, acked time.Time) *flight {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.flights[run.ID] != nil || e.landed.has(run) {
		return nil
	}
	e.lanes.enter(r.lane, r.key(run.App), r.places)
	if !e.takeSerial(r.serial, &run) {
		r.serial = lot{} // the executor's own queue keeps the parts in order
	}
	return e.fly(r, run, job, acked)
}

// hasLanded reports whether this very start of the run was under way here and is
// over.
func (e *engine) hasLanded(run Run) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.landed.has(run)
}

func (e *engine) fly(r routed, run Run, job *Job, acked time.Time) *flight {
	// The run may have been at another node before, and put back by yet another.
	e.landAway(run.ID, r.serial)
	if r.exec == nil {
		away := awayAt(run)
		away.serial = r.serial
		if r.places > 0 {
			away.places = r.key(run.App)
		}
		e.away[run.ID] = away
		if r.ordered {
			e.transit.add(&run)
		}
		return nil
	}
	e.arrived(run.JobID, run.ID)
	e.ref(run.JobID, job)
	f := &flight{
		run: run, job: job, exec: r.exec, remote: r.remote, fanned: r.fanned, lane: r.lane, key: r.key(run.App), serial: r.serial,
		counts: r.places > 0, acked: acked, choices: r.choices,
	}
	e.flights[run.ID] = f
	return f
}

// answered takes in that the executor has answered a trigger, how long it took
// and when.
func (e *engine) answered(f *flight, took time.Duration, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if took > e.cfg.Limits.SlowAfter {
		ref := e.jobs[f.run.JobID]
		if ref == nil { // its result was quicker than the answer
			ref = &jobRef{job: f.job}
			e.jobs[f.run.JobID] = ref
		}
		ref.slow.add(now)
	}
	freed := false
	if f.remote { // the next run of a serial job may be sent
		freed = e.freeSerial(f.serial, f.run.ID)
	}
	for _, at := range e.lanes.answered(f.lane, f.key) {
		freed = e.admit(at) || freed
	}
	e.wakes.start.pokeIf(freed)
}

// flight returns the flight of a run, nil when it is not under way here.
func (e *engine) flight(runID int64) *flight {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.flights[runID]
}

// send marks the flight as handed to its executor; false when it was killed or
// taken away before.
func (e *engine) send(f *flight) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.killed || e.flights[f.run.ID] != f {
		return false
	}
	f.sent = true
	return true
}

// intercept keeps a flight from being sent; false when it has been.
func (e *engine) intercept(f *flight) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.sent || f.killed || e.flights[f.run.ID] != f {
		return false
	}
	f.killed = true
	return true
}

// kill notes that a flight is to be killed, and reports whether its executor can
// be asked now: it has accepted the run, and was not asked before.
func (e *engine) kill(f *flight, reason string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := f.kill == ""
	f.kill = reason
	return f.accepted && first
}

// accepted notes that the executor has the run, and returns the reason if it is
// to be killed.
func (e *engine) accepted(f *flight) (kill string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f.accepted = true
	return f.kill
}

// knows reports whether this node holds the run or has it under way.
func (e *engine) knows(runID int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held[runID] != nil || e.flights[runID] != nil
}

// inFlight returns the flights of this process.
func (e *engine) inFlight() []*flight {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*flight, 0, len(e.flights))
	for _, f := range e.flights {
		all = append(all, f)
	}
	return all
}

// awayIDs returns the runs of other nodes whose end this node waits for.
func (e *engine) awayIDs() []int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := make([]int64, 0, len(e.away)+len(e.waiters))
	for id := range e.away {
		ids = append(ids, id)
	}
	for id := range e.waiters {
		if e.flights[id] == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// moved turns a flight into a run of another node, after a refusal here.
func (e *engine) moved(f *flight, run Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.flights[f.run.ID] != f {
		return
	}
	e.landFlight(run.ID)
	e.away[run.ID] = awayAt(run)
	if inTransit(run) {
		e.transit.add(&run)
	}
}

// redirected turns a flight into one to another executor that this node itself calls,
// after a refusal; nil when it has landed meanwhile. It takes its places without
// asking: it has waited for its turn already.
func (e *engine) redirected(f *flight, run Run, r routed) *flight {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.flights[run.ID] != f {
		return nil
	}
	e.landFlight(run.ID)
	e.lanes.enter(r.lane, r.key(run.App), r.places)
	return e.fly(r, run, f.job, f.acked)
}

// adopt makes this node wait for the end of a run that it now owns.
func (e *engine) adopt(r Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.flights[r.ID] != nil {
		return
	}
	if _, known := e.away[r.ID]; !known {
		e.away[r.ID] = awayAt(r)
	}
	if inTransit(r) {
		e.transit.add(&r)
	}
}

// land frees what the run held, wherever it was.
func (e *engine) land(runID int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.landRun(runID)
}

// landStart is land for one start of a run: a later one that is under way here by now goes
// on.
func (e *engine) landStart(runID, token int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.flights[runID]; f == nil || token == 0 || f.run.Token == token {
		e.landRun(runID)
	}
}

// landRun is land with mu held.
func (e *engine) landRun(runID int64) {
	freed := e.landFlight(runID)
	freed = e.landAway(runID, lot{}) || freed
	e.wakes.start.pokeIf(freed)
	e.wakes.inbox.pokeIf(e.inboxFull.Load())
}

// landFlight frees what a run held that was under way here.
func (e *engine) landFlight(runID int64) (freed bool) {
	f := e.flights[runID]
	if f == nil {
		return false
	}
	delete(e.flights, runID)
	e.landed.add(f.run)
	e.unref(f.run.JobID)
	if f.counts {
		freed = e.admit(e.lanes.ended(f.key))
	}
	freed = e.freeSerial(f.serial, runID) || freed
	freed = e.admitAllOf(lot{kind: lotRun, runID: runID}) || freed
	if len(e.flights) == 0 && e.quiet != nil {
		close(e.quiet)
		e.quiet = nil
	}
	return freed
}

// landAway frees what a run at another node held, but for the lot kept.
func (e *engine) landAway(runID int64, kept lot) (freed bool) {
	a, ok := e.away[runID]
	if !ok {
		return false
	}
	delete(e.away, runID)
	freed = e.arrived(a.jobID, runID)
	if a.places.app != "" {
		freed = e.admit(e.lanes.ended(a.places)) || freed
	}
	if a.serial != kept {
		freed = e.freeSerial(a.serial, runID) || freed
	}
	return e.admitAllOf(lot{kind: lotRun, runID: runID}) || freed
}

// idle waits until no run is under way in this process.
func (e *engine) idle(ctx context.Context) error {
	e.mu.Lock()
	if len(e.flights) == 0 {
		e.mu.Unlock()
		return nil
	}
	if e.quiet == nil {
		e.quiet = make(chan struct{})
	}
	quiet := e.quiet
	e.mu.Unlock()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fitting returns the runs that there is room for, by the places of each app, and
// whether some have to wait.
func (e *engine) fitting(runs []Run, places map[string]int) (ids []int64, full bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	more := map[addressKey]int{}
	for _, r := range runs {
		k := addressKey{r.App, r.Address}
		if e.lanes.running[k]+more[k] >= places[r.App] {
			full = true
			continue
		}
		more[k]++
		ids = append(ids, r.ID)
	}
	return ids, full
}
