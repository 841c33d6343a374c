package xxljob

// The passage of an entry from waiting to running, in the engine's books.

import (
	"time"
)

// pop takes up to n entries from a lot whose jobs are known, and names the jobs that have
// to be read first; their entries stay there.
func (e *engine) pop(from lot, n int) (batch []attempt, unknown []int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var later []*entry
	var asked map[int64]bool
	for len(batch) < n && len(asked) < n {
		en := e.leave(from)
		if en == nil {
			break
		}
		if e.held[en.run.ID] != en {
			e.release(en) // forgotten meanwhile, by shed
			continue
		}
		ref := e.jobs[en.run.JobID]
		if ref.gone {
			e.release(en)
			continue
		}
		if ref.stale {
			if asked == nil {
				asked = map[int64]bool{}
			}
			if !asked[en.run.JobID] {
				asked[en.run.JobID] = true
				unknown = append(unknown, en.run.JobID)
			}
			later = append(later, en)
			continue
		}
		if batch == nil {
			batch = make([]attempt, 0, min(n, e.lenOf(from)+1))
		}
		batch = append(batch, attempt{entry: en, job: ref.job})
	}
	for _, en := range later {
		e.comeBack(from, en)
	}
	return batch, unknown
}

// putBack puts entries back that have no places yet.
func (e *engine) putBack(from lot, batch []attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range batch {
		e.comeBack(from, a.entry)
	}
}

// leave takes the next entry of a lot, or of the due queue.
func (e *engine) leave(from lot) *entry {
	if from.kind == lotDue {
		return e.due.pop()
	}
	return e.lots.leave(from)
}

// lenOf is how many wait in a lot, or are due.
func (e *engine) lenOf(at lot) int {
	if at.kind == lotDue {
		return e.due.len()
	}
	if t := e.lots[at]; t != nil {
		return t.len()
	}
	return 0
}

// comeBack undoes leave.
func (e *engine) comeBack(from lot, en *entry) {
	if from.kind == lotDue {
		e.due.push(en)
	} else {
		e.lots.park(from, en)
	}
}

// undo gives back the places of attempts, and has their entries tried again.
func (e *engine) undo(batch []attempt) {
	for _, a := range batch {
		e.retry(a, false)
	}
}

// retry has an entry tried again after a start that did not take effect: at once, or when
// its turn comes where it goes apart. With stale its job is read, and the run routed, anew.
func (e *engine) retry(a attempt, stale bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.giveBackPlaces(a)
	a.turned = false
	if ref := e.jobs[a.run.JobID]; stale && ref != nil && ref.job.Version <= a.job.Version {
		ref.stale = true
	}
	if a.goesApart() {
		e.parkTried(a.entry)
		return
	}
	e.keepAhead(a.entry)
	e.due.push(a.entry)
}

// giveUp forgets an entry whose run is not this node's to start any more.
func (e *engine) giveUp(a attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.giveBackPlaces(a)
	e.release(a.entry)
}

// abandon forgets an entry that has no places.
func (e *engine) abandon(en *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.release(en)
}

// giveBackPlaces undoes reserve, but for the place of a serial job, which the
// entry keeps until it starts or is given up.
func (e *engine) giveBackPlaces(a attempt) {
	a.starting = false
	if a.route.refused != "" || a.start.RunID == 0 {
		return
	}
	for _, at := range e.lanes.answered(a.route.lane, a.route.key(a.run.App)) {
		e.admit(at)
	}
	if a.route.places > 0 {
		e.freed = e.freed || a.route.exec != nil
		e.admit(e.lanes.ended(a.route.key(a.run.App)))
	}
}

// hasFreed reports whether starts that came to nothing have given back places at this
// node's executors; takeFreed does so once.
func (e *engine) hasFreed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.freed
}

func (e *engine) takeFreed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	freed := e.freed
	e.freed = false
	return freed
}

// changeSerial gives up the place of a serial job at the address that the entry
// was routed to before.
func (e *engine) changeSerial(en *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.freeSerial(en.route.serial, en.run.ID)
}

// jobGone notes that a job was removed; its runs were cancelled with it.
func (e *engine) jobGone(id int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ref := e.jobs[id]; ref != nil {
		ref.gone = true
	}
}

// awaitRun parks an entry behind a run that is in its way. It keeps its place as
// the next serial run at its address.
func (e *engine) awaitRun(a attempt, blocker Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.giveBackPlaces(a)
	e.parkBehindRun(blocker, a.entry)
}

func (e *engine) parkBehindRun(blocker Run, en *entry) {
	if _, away := e.away[blocker.ID]; !away && e.flights[blocker.ID] == nil {
		e.away[blocker.ID] = awayAt(blocker)
	}
	e.park(lot{kind: lotRun, runID: blocker.ID}, en)
}

// parkFirst parks an entry and reports whether it is the first of the lot.
func (e *engine) parkFirst(at lot, en *entry) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := e.lots[at] == nil
	e.park(at, en)
	return first
}

// refreshRuns is entry.refresh for those of the runs that are held.
func (e *engine) refreshRuns(runs []Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range runs {
		if en := e.held[runs[i].ID]; en != nil {
			en.refresh(&runs[i])
		}
	}
}

// job returns what is known of a job, nil when nothing is.
func (e *engine) job(id int64) *Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ref := e.jobs[id]; ref != nil && !ref.stale {
		return ref.job
	}
	return nil
}

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
	if took > e.cfg.SlowAfter {
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

// admitAll lets everybody out of a lot.
func (e *engine) admitAll(at lot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.admitAllOf(at)
}

func (e *engine) admitAllOf(at lot) (any bool) {
	for en := e.lots.leave(at); en != nil; en = e.lots.leave(at) {
		en.from, en.waited = at, true
		e.due.push(en)
		any = true
	}
	return any
}

// rerouted has an entry tried again at another address, for its own is no more.
func (e *engine) rerouted(a attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.giveBackPlaces(a)
	e.freeSerial(a.entry.route.serial, a.run.ID)
	apart := a.goesApart()
	a.entry.route, a.turned = routed{}, false
	if apart {
		e.parkTried(a.entry)
		return
	}
	e.due.push(a.entry)
}

// landings remember the latest flights that have landed: what was read of a run
// a moment ago may still show it under way, and must not put it up again.
type landings struct {
	latest, before map[landing]struct{}
}

// landing is one start of a run.
type landing struct{ runID, token int64 }

// landingsKept is how many are remembered at least.
const landingsKept = 10_000

func (l *landings) add(r Run) {
	if len(l.latest) >= landingsKept || l.latest == nil {
		l.latest, l.before = make(map[landing]struct{}), l.latest
	}
	l.latest[landing{r.ID, r.Token}] = struct{}{}
}

func (l *landings) has(r Run) bool {
	k := landing{r.ID, r.Token}
	_, latest := l.latest[k]
	_, before := l.before[k]
	return latest || before
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
