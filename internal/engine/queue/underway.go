package queue

import (
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/store"
)

// How an entry comes from waiting to running, in the books.

// TakeOffAll turns started entries into flights of this process, where they are not nil already;
// nil for runs that are other nodes'.
func (q *Queue) TakeOffAll(batch []Attempt, answers []store.Started, acked time.Time) []*Flight {
	flights := make([]*Flight, len(batch))
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range batch {
		if DidStart(&answers[i]) {
			q.splitCovered(batch[i].Entry, answers[i].Covered)
			flights[i] = q.takeOff(&batch[i], &answers[i].Run, acked)
		}
	}
	return flights
}

// DidStart reports whether an answer says that a run was started, and not refused.
func DidStart(a *store.Started) bool { return a.Status == store.StartOK && !a.Run.State.Ended() }

// takeOff turns a started entry into a flight of this process; nil when the run
// is another node's. Caller holds mu.
func (q *Queue) takeOff(a *Attempt, run *store.Run, acked time.Time) *Flight {
	held := a.Entry.held
	defer func() {
		if held { // last, so that the job is not forgotten and known anew
			q.Held.unhold(a.Entry)
		}
	}()
	q.admitBehindRetry(run.ID)
	if f := q.InFlight.here.Of(run.ID); f != nil {
		// It is under way here already: what was taken for it is given back.
		q.Due.giveBackPlaces(*a)
		if f.JobPlace != a.Route.JobPlace {
			q.Due.freeJobPlace(a.Route.JobPlace, run.ID)
		}
		q.Due.leaveTransit(run.JobID, run.ID)
		return nil
	}
	ref := a.Ref
	if !held { // nobody keeps it in use
		ref = nil
	}
	return q.fly(&a.Route.Destination, run, a.Job, ref, acked)
}

// TakeOffSibling is takeOff for a further part of a broadcast.
func (q *Queue) TakeOffSibling(r Destination, run store.Run, job *store.Job, acked time.Time) *Flight {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.InFlight.here.Of(run.ID) != nil || q.InFlight.ended.has(&run) {
		return nil
	}
	q.Due.lanes.enter(r.Lane, r.key(run.App), r.Places)
	if !q.Due.takeJobPlace(r.JobPlace, compact.KeyOf(&run)) && !r.AwaitsAnswer() {
		r.JobPlace = WaitKey{} // the executor's own queue keeps the parts in order
	}
	return q.fly(&r, &run, job, nil, acked)
}

// fly makes a started run a flight. ref is the job's as somebody uses it, nil for nobody.
func (q *Queue) fly(r *Destination, run *store.Run, job *store.Job, ref *jobRef, acked time.Time) *Flight {
	// The run may have been at another node before, and put back by yet another.
	q.landRemote(run.ID, r.JobPlace)
	if r.Exec == nil {
		away := remoteAt(*run)
		away.jobPlace = r.JobPlace
		if r.Places > 0 {
			away.places = r.key(run.App)
		}
		q.InFlight.remote[run.ID] = away
		if r.Ordered {
			q.Due.inTransit.add(run.JobID, compact.KeyOf(run))
		}
		q.lookAfter(run.JobID)
		return nil
	}
	q.Due.leaveTransit(run.JobID, run.ID)
	f := &Flight{
		Destination: r, Run: compact.StartedOf(run, job, q.InFlight.lately), Job: job, ref: q.Jobs.share(ref, job), Acked: acked, state: flightState{counts: r.Places > 0},
	}
	q.InFlight.here.Set(run.ID, f)
	return f
}

// lookAfter has the store asked about runs at other nodes, since one of a job has come to be there: it
// may have been taken, or have ended, before this node knew that it waits for that, and others may
// wait for it. Caller holds mu.
func (q *Queue) lookAfter(jobID int64) {
	q.wakes.Watch.Poke()
	q.wakes.Transit.PokeIf(q.Due.lists.at(forEarlier(jobID)) != nil)
}

// Answered takes in that the executor has answered a trigger, and how long it took.
func (q *Queue) Answered(f *Flight, took time.Duration) {
	if f.Lane == LaneNone && !f.Remote && took <= q.Jobs.slowAfter {
		return // it holds nothing until then
	}
	now := q.clock.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Jobs.took(f.Run.Planned.JobID, f.Job, took, now)
	freed := false
	if f.Remote || f.AwaitsAnswer() { // the next run of the job may be sent
		freed = q.Due.freeJobPlace(f.JobPlace, f.Run.Planned.ID)
	}
	var freeing [3]WaitKey
	for _, at := range q.Due.lanes.answered(freeing[:0], f.Lane, f.at()) {
		freed = q.Due.admit(at) || freed
	}
	q.wakes.Start.PokeIf(freed)
}

// Knows reports whether this node holds the run or has it under way.
func (q *Queue) Knows(runID int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.Held.runs.Of(runID) != nil || q.InFlight.here.Of(runID) != nil
}

// RemoteIDs returns the runs of other nodes whose end this node waits for.
func (q *Queue) RemoteIDs() []int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	ids := slices.AppendSeq(slices.Collect(maps.Keys(q.InFlight.remote)), maps.Keys(q.InFlight.retries.runs))
	for _, id := range q.Waiters.runs() {
		if q.InFlight.here.Of(id) == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// Moved turns a flight into a run of another node, after a refusal here.
func (q *Queue) Moved(f *Flight, run store.Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.InFlight.here.Of(f.Run.Planned.ID) != f {
		return
	}
	q.landFlight(run.ID)
	q.InFlight.remote[run.ID] = remoteAt(run)
	if InTransit(run) {
		q.Due.inTransit.add(run.JobID, compact.KeyOf(&run))
	}
	q.lookAfter(run.JobID)
	q.wakes.Start.Poke()
}

// Redirected turns a flight into one to another executor that this node itself calls,
// after a refusal; nil when it has landed meanwhile. It takes its places without
// asking: it has waited for its turn already.
func (q *Queue) Redirected(f *Flight, run store.Run, r Destination) *Flight {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.InFlight.here.Of(run.ID) != f {
		return nil
	}
	q.landFlight(run.ID)
	q.Due.lanes.enter(r.Lane, r.key(run.App), r.Places)
	q.wakes.Start.Poke()
	return q.fly(&r, &run, f.Job, nil, f.Acked)
}

// Adopt makes this node wait for the end of a run that it now owns.
func (q *Queue) Adopt(r store.Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.InFlight.here.Of(r.ID) != nil {
		return
	}
	if _, known := q.InFlight.remote[r.ID]; !known {
		q.InFlight.remote[r.ID] = remoteAt(r)
	}
	if InTransit(r) {
		q.Due.inTransit.add(r.JobID, compact.KeyOf(&r))
	}
	q.lookAfter(r.JobID)
}

// LandAll is Land for many, which have ended.
func (q *Queue) LandAll(runs []store.Run) {
	for some := range slices.Chunk(runs, landMost) { // others want the lock too
		q.mu.Lock()
		freed := false
		for i := range some {
			q.InFlight.noteOver(&some[i])
			freed = q.freeRun(some[i].ID) || freed
		}
		q.pokeFreed(freed)
		q.mu.Unlock()
	}
}

// landMost is how many runs land while the lock is held.
const landMost = 100

// Land frees what one start of a run held, wherever that was: a later one that is under way here by
// now goes on. With the token 0 it frees what the run holds, whichever start that is of.
func (q *Queue) Land(runID, token int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if f := q.InFlight.here.Of(runID); f == nil || token == 0 || f.Run.Token == token {
		q.landRun(runID)
	}
}

// landRun is Land for whichever start, with mu held.
func (q *Queue) landRun(runID int64) {
	q.pokeFreed(q.freeRun(runID))
}

// freeRun frees what a run held, and reports whether another may start by it.
func (q *Queue) freeRun(runID int64) bool {
	freed := q.landFlight(runID)
	return q.landRemote(runID, WaitKey{}) || freed
}

func (q *Queue) pokeFreed(freed bool) {
	q.wakes.Start.PokeIf(freed)
	q.wakes.Inbox.PokeIf(q.InboxFull.Load())
}

// landFlight frees what a run held that was under way here.
func (q *Queue) landFlight(runID int64) (freed bool) {
	f := q.InFlight.here.Of(runID)
	if f == nil {
		return false
	}
	q.InFlight.here.Delete(runID)
	f.state.landed = true
	q.InFlight.ended.add(f.Run.Planned.ID, f.Run.Token)
	q.Jobs.unref(f.ref)
	switch {
	case f.state.left:
		q.Due.lanes.stored(f.at())
	case f.state.counts:
		freed = q.Due.admit(q.Due.lanes.ended(f.at()))
	}
	freed = q.Due.freeJobPlace(f.JobPlace, runID) || freed
	freed = q.Due.admitAllOf(forRun(runID)) || freed
	if q.InFlight.here.Len() == 0 && q.InFlight.quiet != nil {
		close(q.InFlight.quiet)
		q.InFlight.quiet = nil
	}
	return freed
}

// LeavePlaces frees the places of flights, nil ones among them, whose handlers have returned: while
// their results are stored, others are started, once as many as there are places. A run of a serial
// job waits for the store.
func (q *Queue) LeavePlaces(flights []*Flight) {
	q.mu.Lock()
	defer q.mu.Unlock()
	freed := false
	for _, f := range flights {
		if f != nil {
			freed = q.leavePlace(f) || freed
		}
	}
	q.pokeFreed(freed)
}

// leavePlace frees the place of a flight that still has one. Caller holds mu.
func (q *Queue) leavePlace(f *Flight) (freed bool) {
	if !f.state.counts {
		return false
	}
	at, leaves := q.Due.lanes.leave(f.at(), f.Places)
	if !leaves {
		return false
	}
	f.state.counts, f.state.left = false, true
	return q.Due.admit(at)
}

// landRemote frees what a run at another node held, but for the waitlist kept.
func (q *Queue) landRemote(runID int64, kept WaitKey) (freed bool) {
	a, ok := q.InFlight.remote[runID]
	if !ok {
		return false
	}
	delete(q.InFlight.remote, runID)
	if _, awaited := q.InFlight.answers[runID]; awaited {
		delete(q.InFlight.answers, runID)
		q.Due.sends.drop(a.jobPlace, runID)
	}
	freed = q.Due.leaveTransit(a.jobID, runID)
	if a.places.app != "" {
		freed = q.Due.admit(q.Due.lanes.ended(a.places)) || freed
	}
	if a.jobPlace != kept {
		freed = q.Due.freeJobPlace(a.jobPlace, runID) || freed
	}
	return q.Due.admitAllOf(forRun(runID)) || freed
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
