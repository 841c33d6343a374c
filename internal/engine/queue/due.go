package queue

import (
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/internal/timering"
	"github.com/xxljob/xxljob/store"
)

// How due runs come to wait and go on again: for room, for their turn at an address, for
// earlier runs of their job, for answers.

// dueBook has the due runs of a node: those that may be started, and those that wait for
// something. Methods that do not take the lock are called with it held.
type dueBook struct {
	jobs  *jobBook
	held  *held
	start loop.Wake

	mu         *sync.Mutex      // the lock of the Queue
	ready      fairQueue        // guarded by mu: may be started
	lists      waitlists        // guarded by mu: wait
	round      int64            // guarded by mu: of those that are tried again: see dispatch/startsingly.go
	lanes      lanes            // guarded by mu
	freed      bool             // guarded by mu: see Queue.OfferFreed
	offeredAt  time.Time        // guarded by mu: when they were offered last
	serial     serialPlaces     // guarded by mu: the run that is at an address, or about to be, for a serial job
	concurrent concurrentPlaces // guarded by mu: the same for concurrent jobs with a maximum
	inTransit  inTransit        // guarded by mu: serial runs on their way to other nodes
	covers     coversWaiting    // guarded by mu: runs that may cover others and wait for room
	sends      sendOrder        // guarded by mu: started runs that wait to be sent
}

func newDueBook(cfg *core.Config, start, long loop.Wake, jobs *jobBook, held *held, mu *sync.Mutex) *dueBook {
	return &dueBook{
		jobs: jobs, held: held, start: start, mu: mu, ready: newFairQueue(), lists: waitlists{long: long},
		lanes:  newLanes(cfg.Limits.FastLane, cfg.Limits.SlowLane),
		serial: serialPlaces{}, concurrent: concurrentPlaces{}, inTransit: inTransit{}, covers: coversWaiting{}, sends: sendOrder{},
	}
}

// freeJobPlace gives up the place of a serial job's run at an address, and lets
// the next one in.
func (w *dueBook) freeJobPlace(at WaitKey, runID int64) bool {
	switch {
	case at.kind != kindJobPlace:
		return false
	case at.most > 0:
		return w.concurrent.drop(at, runID) && w.admit(at)
	case w.serial.at(at) != runID:
		return false
	}
	w.serial.free(at)
	if id := w.sends.next(at); id != 0 {
		w.serial.take(at, id)
		return false
	}
	return w.admit(at)
}

// takeJobPlace takes that place for a run; false when another run has it. One that has it
// and is not being started yet gives way to an earlier one.
func (w *dueBook) takeJobPlace(at WaitKey, r timering.Key) bool {
	switch {
	case at.kind != kindJobPlace:
		return true
	case at.most > 0:
		return w.concurrent.add(at, r.RunID)
	}
	if has := w.serial.at(at); has != 0 && has != r.RunID {
		if en := w.held.runs.Of(has); en == nil || en.starting || !r.Before(en.Run.Key()) {
			return false
		}
	}
	w.serial.take(at, r.RunID)
	return true
}

// admit moves the head of a waitlist to the due queue. At an address of
// a serial job it has the place from then on, and one that has waited for its turn
// counts as in transit, so that none overtakes it.
func (w *dueBook) admit(at WaitKey) bool {
	en := w.lists.leave(at)
	if en == nil {
		return false
	}
	switch at.kind {
	case kindJobPlace:
		if at.most > 0 {
			w.concurrent.add(at, en.Run.ID)
		} else {
			w.serial.take(at, en.Run.ID)
		}
	case kindEarlier:
		w.inTransit.add(en.Run.JobID, en.Run.Key())
	default:
		w.noteAdmitted(en, at)
	}
	w.ready.push(en)
	return true
}

// noteAdmitted notes which waitlist an entry has been let out of.
func (w *dueBook) noteAdmitted(en *Entry, at WaitKey) { en.from, en.Waited = w.lists.one(at), true }

// park makes an entry wait in a waitlist. If it came from another one, the room it
// was let in for goes to the next there. The later runs of a serial job do not wait for
// one that waits for room, but for one that waits to be told where to go, and for a
// broadcast: they might get at one of its addresses before it, where the one at which it
// waits is not among theirs any more.
func (w *dueBook) park(at WaitKey, en *Entry) {
	switch ahead := w.inTransit.has(en.Run.JobID, en.Run.ID); at.kind {
	case kindProbes, kindAddresses, kindRegistry, kindRouter, kindExecutor, kindSettling:
		w.keepAhead(en)
	case kindEarlier:
		w.inTransit.drop(en.Run.JobID, en.Run.ID)
	default:
		if ahead && len(en.Route.Targets) == 0 {
			w.leaveTransit(en.Run.JobID, en.Run.ID)
		}
	}
	if !en.CameFrom(at) {
		w.passRoomOn(en)
	}
	en.Waited = false
	if !at.isRoom() && at.kind != kindRegistry && at.kind != kindProbes && at.kind != kindAddresses && at.kind != kindExecutor {
		// What it was told may be old when it goes on. One that is let in for room would lose
		// that by asking again.
		en.HadTurn = false
	}
	w.lists.park(at, en)
}

// passRoomOn gives the room that an entry was let in for, if it was, to the next.
func (w *dueBook) passRoomOn(en *Entry) {
	if en.Waited && en.from.isRoom() {
		en.Waited = false
		w.admit(*en.from)
	}
	en.Waited = false
}

// AdmitAll lets everybody out of a waitlist.
func (w *dueBook) AdmitAll(at WaitKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start.PokeIf(w.admitAllOf(at))
}

func (w *dueBook) admitAllOf(at WaitKey) (any bool) {
	for en := w.lists.leave(at); en != nil; en = w.lists.leave(at) {
		w.noteAdmitted(en, at)
		w.ready.push(en)
		any = true
	}
	return any
}

// FreeJobPlace gives up the place of a serial job at the address that the entry
// was routed to before.
func (w *dueBook) FreeJobPlace(en *Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.freeJobPlace(en.Route.JobPlace, en.Run.ID)
}

// ParkFirst parks an entry and reports whether it is the first of the waitlist.
func (w *dueBook) ParkFirst(at WaitKey, en *Entry) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.lists.at(at) == nil
	w.park(at, en)
	return first
}

// keepAhead keeps the later runs of a serial job behind one that has to come again: they
// might find at once what it waits for.
func (w *dueBook) keepAhead(en *Entry) {
	if w.jobs.isSerial(en.Run.JobID) {
		w.inTransit.add(en.Run.JobID, en.Run.Key())
	}
}

// parkBehind parks an entry that an earlier one has to pass. It holds nothing then that
// the earlier one might wait for, and is routed anew when it goes on, as those are that
// come after it.
func (w *dueBook) parkBehind(at WaitKey, en *Entry) {
	w.freeJobPlace(en.Route.JobPlace, en.Run.ID)
	en.Route = &Routed{}
	w.park(at, en)
}

// leaveTransit notes that a run is in transit no more, or never was, and lets the next of its
// job try. It reports whether there was one.
func (w *dueBook) leaveTransit(jobID, runID int64) bool {
	w.inTransit.drop(jobID, runID)
	return w.admit(forEarlier(jobID))
}

// clearOut empties a waitlist.
func (w *dueBook) clearOut(at WaitKey) (any bool) {
	for en := w.lists.leave(at); en != nil; en = w.lists.leave(at) {
		w.freeJobPlace(en.Route.JobPlace, en.Run.ID)
		en.Route = &Routed{}
		w.ready.push(en)
		any = true
	}
	return any
}

// Entries on their way to be started, and back again where a start has come to nothing. All
// of it is guarded by the lock of the Queue.

// PutBack puts entries back that have no places yet.
func (w *dueBook) PutBack(from WaitKey, batch []Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range batch {
		w.comeBack(from, a.Entry)
	}
}

// leave takes the next entry of a waitlist, or of the due queue.
func (w *dueBook) leave(from WaitKey) *Entry {
	if from.kind == kindDue {
		return w.ready.pop()
	}
	return w.lists.leave(from)
}

// lenOf is how many wait in a waitlist, or are due.
func (w *dueBook) lenOf(at WaitKey) int {
	if at.kind == kindDue {
		return w.ready.len()
	}
	if t := w.lists.at(at); t != nil {
		return t.len()
	}
	return 0
}

// comeBack undoes leave.
func (w *dueBook) comeBack(from WaitKey, en *Entry) {
	if from.kind == kindDue {
		w.ready.push(en)
	} else {
		w.lists.park(from, en)
	}
}

// NextRound returns the waitlist of the round that goes on, which is the next one when this one
// is over.
func (w *dueBook) NextRound() WaitKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lists.at(forTurnAgain(w.round)) == nil {
		w.round++
	}
	return forTurnAgain(w.round)
}

// Count is how many wait in a waitlist.
func (w *dueBook) Count(at WaitKey) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lenOf(at)
}

// IsLeft reports whether something is due, or waits for a start that is made singly.
func (w *dueBook) IsLeft() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc([]WaitKey{DueNow(), ForTurn(), forTurnAgain(w.round), forTurnAgain(w.round + 1)},
		func(at WaitKey) bool { return w.lenOf(at) > 0 })
}

// Waits reports whether somebody waits in one of the waitlists.
func (w *dueBook) Waits(at ...WaitKey) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(at, func(at WaitKey) bool { return w.lists.at(at) != nil })
}

// AnyWaits reports whether a due run waits for anything.
func (w *dueBook) AnyWaits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lists.len() > 0
}

// ParkSingly has an entry wait for its turn, or for its next one. The room that it was let in
// for, if it was, is kept for it: others that are due would take it meanwhile.
func (w *dueBook) ParkSingly(en *Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if en.Route.Refused != "" {
		w.passRoomOn(en)
	}
	if en.keeps = en.Waited && en.from.isRoom(); en.keeps {
		w.lanes.reserve(*en.from)
	}
	at := ForTurn()
	if en.tried != triedNot {
		at = forTurnAgain(w.round + 1)
	}
	w.parkSingly(at, en)
}

// parkSingly has an entry wait for its turn. The later runs of its job, if that is a serial
// one, wait too. Caller holds mu.
func (w *dueBook) parkSingly(at WaitKey, en *Entry) {
	w.keepAhead(en)
	w.lists.park(at, en)
}

// parkTried is parkSingly for one whose start had no effect.
func (w *dueBook) parkTried(en *Entry) {
	en.tried = max(en.tried, triedAlready)
	w.parkSingly(forTurnAgain(w.round+1), en)
}

// unkeep gives room back that is kept for an entry, which is still the one that was let in
// for it. Caller holds mu.
func (w *dueBook) unkeep(en *Entry) {
	if en.keeps {
		en.keeps = false
		w.freed = w.freed || en.from.kind == kindPlace
		w.lanes.unreserve(*en.from)
	}
}

// giveBackPlaces undoes reserve, but for the place of a serial job, which the
// entry keeps until it starts or is given up.
func (w *dueBook) giveBackPlaces(a Attempt) {
	a.starting = false
	if a.Route.Refused != "" || a.Start.RunID == 0 {
		return
	}
	for _, at := range w.lanes.answered(nil, a.Route.Lane, a.Route.key(a.Run.App)) {
		w.admit(at)
	}
	if a.Route.Places > 0 {
		w.freed = w.freed || a.Route.Exec != nil
		w.admit(w.lanes.ended(a.Route.key(a.Run.App)))
	}
}

// Fitting returns the runs that there is room for, by the places of each app, and
// whether some have to wait.
func (w *dueBook) Fitting(runs []store.Run, places map[string]int) (ids []int64, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	more := map[addressKey]int{}
	for _, r := range runs {
		k := addressKey{r.App, r.Address}
		if w.lanes.running[k]+more[k] >= places[r.App] {
			full = true
			continue
		}
		more[k]++
		ids = append(ids, r.ID)
	}
	return ids, full
}
