package queue

import (
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// How an entry comes from waiting to running, in the books.

// TakeOffAll turns started entries into flights of this process, where they are not nil already;
// nil for runs that are other nodes'.
func (e *Queue) TakeOffAll(batch []Attempt, answers []store.Started, acked time.Time) []*Flight {
	flights := make([]*Flight, len(batch))
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range batch {
		if Started(&answers[i]) {
			e.letApart(batch[i].Item, answers[i].Covered)
			flights[i] = e.takeOff(&batch[i], &answers[i].Run, acked)
		}
	}
	return flights
}

// Started reports whether an answer says that a run was started, and not refused.
func Started(a *store.Started) bool { return a.Status == store.StartOK && !a.Run.State.Ended() }

// takeOff turns a started entry into a flight of this process; nil when the run
// is another node's. Caller holds mu.
func (e *Queue) takeOff(a *Attempt, run *store.Run, acked time.Time) *Flight {
	held := a.Item.held
	defer func() {
		if held { // last, so that the job is not forgotten and known anew
			e.Held.unhold(a.Item)
		}
	}()
	e.letPass(run.ID)
	if f := e.InFlight.here.Of(run.ID); f != nil {
		// It is under way here already: what was taken for it is given back.
		e.Room.giveBackPlaces(*a)
		if f.Serial != a.Route.Serial {
			e.Room.freeSerial(a.Route.Serial, run.ID)
		}
		e.Room.arrived(run.JobID, run.ID)
		return nil
	}
	ref := a.Ref
	if !held { // nobody keeps it in use
		ref = nil
	}
	return e.fly(a.Route, run, a.Job, ref, acked)
}

// TakeOffSibling is takeOff for a further part of a broadcast.
func (e *Queue) TakeOffSibling(r Routed, run store.Run, job *store.Job, acked time.Time) *Flight {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.InFlight.here.Of(run.ID) != nil || e.InFlight.ended.has(&run) {
		return nil
	}
	e.Room.lanes.enter(r.Lane, r.key(run.App), r.Places)
	if !e.Room.takeSerial(r.Serial, KeyOfRun(&run)) && !r.AwaitsAnswer() {
		r.Serial = WaitKey{} // the executor's own queue keeps the parts in order
	}
	return e.fly(&r, &run, job, nil, acked)
}

// fly makes a started run a flight. ref is the job's as somebody uses it, nil for nobody.
func (e *Queue) fly(r *Routed, run *store.Run, job *store.Job, ref *jobRef, acked time.Time) *Flight {
	// The run may have been at another node before, and put back by yet another.
	e.landRemote(run.ID, r.Serial)
	if r.Exec == nil {
		away := remoteAt(*run)
		away.serial = r.Serial
		if r.Places > 0 {
			away.places = r.key(run.App)
		}
		e.InFlight.remote[run.ID] = away
		if r.Ordered {
			e.Room.inTransit.add(run.JobID, KeyOfRun(run))
		}
		return nil
	}
	e.Room.arrived(run.JobID, run.ID)
	f := &Flight{
		Routed: r, Run: startedOf(run, job, e.InFlight.lately), Job: job, ref: e.Jobs.share(ref, job), Acked: acked, state: flightState{counts: r.Places > 0},
	}
	e.InFlight.here.Set(run.ID, f)
	return f
}

// Answered takes in that the executor has answered a trigger, and how long it took.
func (e *Queue) Answered(f *Flight, took time.Duration) {
	if f.Lane == LaneNone && !f.Remote && took <= e.Jobs.slowAfter {
		return // it holds nothing until then
	}
	now := e.clock.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Jobs.took(f.Run.Planned.JobID, f.Job, took, now)
	freed := false
	if f.Remote || f.AwaitsAnswer() { // the next run of the job may be sent
		freed = e.Room.freeSerial(f.Serial, f.Run.Planned.ID)
	}
	var freeing [3]WaitKey
	for _, at := range e.Room.lanes.answered(freeing[:0], f.Lane, f.at()) {
		freed = e.Room.admit(at) || freed
	}
	e.wakes.Start.PokeIf(freed)
}

// Knows reports whether this node holds the run or has it under way.
func (e *Queue) Knows(runID int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Held.runs.Of(runID) != nil || e.InFlight.here.Of(runID) != nil
}

// RemoteIDs returns the runs of other nodes whose end this node waits for.
func (e *Queue) RemoteIDs() []int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := slices.AppendSeq(slices.Collect(maps.Keys(e.InFlight.remote)), maps.Keys(e.InFlight.retries.runs))
	for _, id := range e.Waiters.runs() {
		if e.InFlight.here.Of(id) == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// Moved turns a flight into a run of another node, after a refusal here.
func (e *Queue) Moved(f *Flight, run store.Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.InFlight.here.Of(f.Run.Planned.ID) != f {
		return
	}
	e.landFlight(run.ID)
	e.InFlight.remote[run.ID] = remoteAt(run)
	if InTransit(run) {
		e.Room.inTransit.add(run.JobID, KeyOfRun(&run))
	}
	e.wakes.Start.Poke()
}

// Redirected turns a flight into one to another executor that this node itself calls,
// after a refusal; nil when it has landed meanwhile. It takes its places without
// asking: it has waited for its turn already.
func (e *Queue) Redirected(f *Flight, run store.Run, r Routed) *Flight {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.InFlight.here.Of(run.ID) != f {
		return nil
	}
	e.landFlight(run.ID)
	e.Room.lanes.enter(r.Lane, r.key(run.App), r.Places)
	e.wakes.Start.Poke()
	return e.fly(&r, &run, f.Job, nil, f.Acked)
}

// Adopt makes this node wait for the end of a run that it now owns.
func (e *Queue) Adopt(r store.Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.InFlight.here.Of(r.ID) != nil {
		return
	}
	if _, known := e.InFlight.remote[r.ID]; !known {
		e.InFlight.remote[r.ID] = remoteAt(r)
	}
	if InTransit(r) {
		e.Room.inTransit.add(r.JobID, KeyOfRun(&r))
	}
}

// Land frees what the run held, wherever it was.
func (e *Queue) Land(runID int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.landRun(runID)
}

// LandAll is land for many, which have ended.
func (e *Queue) LandAll(runs []store.Run) {
	for some := range slices.Chunk(runs, landMost) { // others want the lock too
		e.mu.Lock()
		freed := false
		for i := range some {
			e.InFlight.noteOver(&some[i])
			freed = e.freeRun(some[i].ID) || freed
		}
		e.pokeFreed(freed)
		e.mu.Unlock()
	}
}

// landMost is how many runs land while the lock is held.
const landMost = 100

// LandStart is land for one start of a run: a later one that is under way here by now goes
// on.
func (e *Queue) LandStart(runID, token int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.InFlight.here.Of(runID); f == nil || token == 0 || f.Run.Token == token {
		e.landRun(runID)
	}
}

// landRun is land with mu held.
func (e *Queue) landRun(runID int64) {
	e.pokeFreed(e.freeRun(runID))
}

// freeRun frees what a run held, and reports whether another may start by it.
func (e *Queue) freeRun(runID int64) bool {
	freed := e.landFlight(runID)
	return e.landRemote(runID, WaitKey{}) || freed
}

func (e *Queue) pokeFreed(freed bool) {
	e.wakes.Start.PokeIf(freed)
	e.wakes.Inbox.PokeIf(e.InboxFull.Load())
}

// landFlight frees what a run held that was under way here.
func (e *Queue) landFlight(runID int64) (freed bool) {
	f := e.InFlight.here.Of(runID)
	if f == nil {
		return false
	}
	e.InFlight.here.Delete(runID)
	f.state.landed = true
	e.InFlight.ended.add(f.Run.Planned.ID, f.Run.Token)
	e.Jobs.unref(f.ref)
	switch {
	case f.state.left:
		e.Room.lanes.stored(f.at())
	case f.state.counts:
		freed = e.Room.admit(e.Room.lanes.ended(f.at()))
	}
	freed = e.Room.freeSerial(f.Serial, runID) || freed
	freed = e.Room.admitAllOf(WaitKey{kind: kindRun, runID: runID}) || freed
	if e.InFlight.here.Len() == 0 && e.InFlight.quiet != nil {
		close(e.InFlight.quiet)
		e.InFlight.quiet = nil
	}
	return freed
}

// LeavePlaces frees the places of flights, nil ones among them, whose handlers have returned: while
// their results are stored, others are started, once as many as there are places. A run of a serial
// job waits for the store.
func (e *Queue) LeavePlaces(flights []*Flight) {
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
func (e *Queue) leavePlace(f *Flight) (freed bool) {
	if !f.state.counts {
		return false
	}
	at, leaves := e.Room.lanes.leave(f.at(), f.Places)
	if !leaves {
		return false
	}
	f.state.counts, f.state.left = false, true
	return e.Room.admit(at)
}

// landRemote frees what a run at another node held, but for the waitlist kept.
func (e *Queue) landRemote(runID int64, kept WaitKey) (freed bool) {
	a, ok := e.InFlight.remote[runID]
	if !ok {
		return false
	}
	delete(e.InFlight.remote, runID)
	freed = e.Room.arrived(a.jobID, runID)
	if a.places.app != "" {
		freed = e.Room.admit(e.Room.lanes.ended(a.places)) || freed
	}
	if a.serial != kept {
		freed = e.Room.freeSerial(a.serial, runID) || freed
	}
	return e.Room.admitAllOf(WaitKey{kind: kindRun, runID: runID}) || freed
}

// Starts that were under way here and are over.

// recentlyEnded remembers the latest flights that have landed: what was read of a run
// a moment ago may still show it under way, and must not put it up again.
type recentlyEnded struct {
	latest, before map[endedStart]struct{}
}

// endedStart is one start of a run.
type endedStart struct{ runID, token int64 }

// endedKept is how many are remembered at least.
const endedKept = 10_000

func (l *recentlyEnded) add(runID, token int64) {
	if len(l.latest) >= endedKept || l.latest == nil {
		l.latest, l.before = l.before, l.latest
		if clear(l.latest); l.latest == nil {
			l.latest = map[endedStart]struct{}{}
		}
	}
	l.latest[endedStart{runID, token}] = struct{}{}
}

func (l *recentlyEnded) has(r *store.Run) bool {
	k := endedStart{r.ID, r.Token}
	_, latest := l.latest[k]
	_, before := l.before[k]
	return latest || before
}
