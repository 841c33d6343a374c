package xxljob

import (
	"slices"
	"sync"

	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// How due runs come to wait and go on again: for room, for their turn at an address, for
// earlier runs of their job, for answers.

// waitingRoom has the due runs of a node: those that may be started, and those that wait for
// something. Methods that do not take the lock are called with it held.
type waitingRoom struct {
	jobs  *jobBook
	held  *heldRuns
	start loop.Wake

	mu      *sync.Mutex  // the engine's
	due     turns        // guarded by mu: may be started
	lots    lots         // guarded by mu: wait
	round   int64        // guarded by mu: of those that are tried again: see dispatch_start.go
	lanes   lanes        // guarded by mu
	freed   bool         // guarded by mu: see hasFreed
	serial  serialPlaces // guarded by mu: the run that is at an address, or about to be, for a serial job
	beside  beside       // guarded by mu: the same for concurrent jobs with a maximum
	transit transit      // guarded by mu: serial runs on their way to other nodes
}

func newWaitingRoom(cfg *Config, start loop.Wake, jobs *jobBook, held *heldRuns, mu *sync.Mutex) *waitingRoom {
	return &waitingRoom{
		jobs: jobs, held: held, start: start, mu: mu, due: newTurns(), lots: lots{},
		lanes:  newLanes(cfg.Limits.FastLane, cfg.Limits.SlowLane),
		serial: serialPlaces{}, beside: beside{}, transit: transit{},
	}
}

// freeSerial gives up the place of a serial job's run at an address, and lets
// the next one in.
func (w *waitingRoom) freeSerial(at lot, runID int64) bool {
	switch {
	case at.kind != lotSerial:
		return false
	case at.most > 0:
		return w.beside.drop(at, runID) && w.admit(at)
	case w.serial.at(at) != runID:
		return false
	}
	w.serial.free(at)
	return w.admit(at)
}

// takeSerial takes that place for a run; false when another run has it. One that has it
// and is not being started yet gives way to an earlier one.
func (w *waitingRoom) takeSerial(at lot, r ringEntry) bool {
	switch {
	case at.kind != lotSerial:
		return true
	case at.most > 0:
		return w.beside.add(at, r.runID)
	}
	if has := w.serial.at(at); has != 0 && has != r.runID {
		if en := w.held.runs.Of(has); en == nil || en.starting || !r.before(en.run.key()) {
			return false
		}
	}
	w.serial.take(at, r.runID)
	return true
}

// admit moves the head of a lot to the due queue. At an address of
// a serial job it has the place from then on, and one that has waited for its turn
// counts as in transit, so that none overtakes it.
func (w *waitingRoom) admit(at lot) bool {
	en := w.lots.leave(at)
	if en == nil {
		return false
	}
	switch at.kind {
	case lotSerial:
		if at.most > 0 {
			w.beside.add(at, en.run.ID)
		} else {
			w.serial.take(at, en.run.ID)
		}
	case lotOrder:
		w.transit.add(en.run.JobID, en.run.key())
	default:
		w.letOut(en, at)
	}
	w.due.push(en)
	return true
}

// letOut notes which lot an entry has been let out of.
func (w *waitingRoom) letOut(en *entry, at lot) { en.from, en.waited = w.lots.one(at), true }

// park makes an entry wait in a lot. If it came from another one, the room it
// was let in for goes to the next there. The later runs of a serial job do not wait for
// one that waits for room, but for one that waits to be told where to go, and for a
// broadcast: they might get at one of its addresses before it, where the one at which it
// waits is not among theirs any more.
func (w *waitingRoom) park(at lot, en *entry) {
	switch ahead := w.transit.has(en.run.JobID, en.run.ID); at.kind {
	case lotProbe, lotRoute, lotAsk, lotSettle:
		w.keepAhead(en)
	case lotOrder:
		w.transit.drop(en.run.JobID, en.run.ID)
	default:
		if ahead && len(en.route.targets) == 0 {
			w.arrived(en.run.JobID, en.run.ID)
		}
	}
	if !en.cameFrom(at) {
		w.letGoOn(en)
	}
	en.waited = false
	if !at.isRoom() && at.kind != lotAsk && at.kind != lotProbe && at.kind != lotRoute {
		// What it was told may be old when it goes on. One that is let in for room would lose
		// that by asking again.
		en.turned = false
	}
	w.lots.park(at, en)
}

// letGoOn gives the room that an entry was let in for, if it was, to the next.
func (w *waitingRoom) letGoOn(en *entry) {
	if en.waited && en.from.isRoom() {
		en.waited = false
		w.admit(*en.from)
	}
	en.waited = false
}

// admitAll lets everybody out of a lot.
func (w *waitingRoom) admitAll(at lot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start.PokeIf(w.admitAllOf(at))
}

func (w *waitingRoom) admitAllOf(at lot) (any bool) {
	for en := w.lots.leave(at); en != nil; en = w.lots.leave(at) {
		w.letOut(en, at)
		w.due.push(en)
		any = true
	}
	return any
}

// changeSerial gives up the place of a serial job at the address that the entry
// was routed to before.
func (w *waitingRoom) changeSerial(en *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.freeSerial(en.route.serial, en.run.ID)
}

// parkFirst parks an entry and reports whether it is the first of the lot.
func (w *waitingRoom) parkFirst(at lot, en *entry) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.lots.at(at) == nil
	w.park(at, en)
	return first
}

// keepAhead keeps the later runs of a serial job behind one that has to come again: they
// might find at once what it waits for.
func (w *waitingRoom) keepAhead(en *entry) {
	if w.jobs.isSerial(en.run.JobID) {
		w.transit.add(en.run.JobID, en.run.key())
	}
}

// parkBehind parks an entry that an earlier one has to pass. It holds nothing then that
// the earlier one might wait for, and is routed anew when it goes on, as those are that
// come after it.
func (w *waitingRoom) parkBehind(at lot, en *entry) {
	w.freeSerial(en.route.serial, en.run.ID)
	en.route = &routed{}
	w.park(at, en)
}

// arrived notes that a run is in transit no more, or never was, and lets the next of its
// job try. It reports whether there was one.
func (w *waitingRoom) arrived(jobID, runID int64) bool {
	w.transit.drop(jobID, runID)
	return w.admit(lotOrderOf(jobID))
}

// clearOut empties a lot.
func (w *waitingRoom) clearOut(at lot) (any bool) {
	for en := w.lots.leave(at); en != nil; en = w.lots.leave(at) {
		w.freeSerial(en.route.serial, en.run.ID)
		en.route = &routed{}
		w.due.push(en)
		any = true
	}
	return any
}

// Entries on their way to be started, and back again where a start has come to nothing. All
// of it is guarded by the engine's mutex.

// putBack puts entries back that have no places yet.
func (w *waitingRoom) putBack(from lot, batch []attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range batch {
		w.comeBack(from, a.entry)
	}
}

// leave takes the next entry of a lot, or of the due queue.
func (w *waitingRoom) leave(from lot) *entry {
	if from.kind == lotDue {
		return w.due.pop()
	}
	return w.lots.leave(from)
}

// lenOf is how many wait in a lot, or are due.
func (w *waitingRoom) lenOf(at lot) int {
	if at.kind == lotDue {
		return w.due.len()
	}
	if t := w.lots.at(at); t != nil {
		return t.len()
	}
	return 0
}

// comeBack undoes leave.
func (w *waitingRoom) comeBack(from lot, en *entry) {
	if from.kind == lotDue {
		w.due.push(en)
	} else {
		w.lots.park(from, en)
	}
}

// hasFreed reports whether starts that came to nothing have given back places at this
// node's executors; takeFreed does so once.
func (w *waitingRoom) hasFreed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.freed
}

func (w *waitingRoom) takeFreed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	freed := w.freed
	w.freed = false
	return freed
}

// nextRound returns the lot of the round that goes on, which is the next one when this one
// is over.
func (w *waitingRoom) nextRound() lot {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lots.at(lotAgainOf(w.round)) == nil {
		w.round++
	}
	return lotAgainOf(w.round)
}

// countLot is how many wait in a lot.
func (w *waitingRoom) countLot(at lot) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lenOf(at)
}

// isLeft reports whether something is due, or waits for a start that goes apart.
func (w *waitingRoom) isLeft() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc([]lot{{kind: lotDue}, {kind: lotApart}, lotAgainOf(w.round), lotAgainOf(w.round + 1)},
		func(at lot) bool { return w.lenOf(at) > 0 })
}

// waits reports whether somebody waits in one of the lots.
func (w *waitingRoom) waits(at ...lot) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(at, func(at lot) bool { return w.lots.at(at) != nil })
}

// anyWaits reports whether a due run waits for anything.
func (w *waitingRoom) anyWaits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lots.len() > 0
}

// waitApart has an entry wait for its turn, or for its next one. The room that it was let in
// for, if it was, is kept for it: others that are due would take it meanwhile.
func (w *waitingRoom) waitApart(en *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if en.route.refused != "" {
		w.letGoOn(en)
	}
	if en.keeps = en.waited && en.from.isRoom(); en.keeps {
		w.lanes.keep(*en.from)
	}
	at := lot{kind: lotApart}
	if en.tried {
		at = lotAgainOf(w.round + 1)
	}
	w.parkApart(at, en)
}

// parkApart has an entry wait for its turn. The later runs of its job, if that is a serial
// one, wait too. Caller holds mu.
func (w *waitingRoom) parkApart(at lot, en *entry) {
	w.keepAhead(en)
	w.lots.park(at, en)
}

// parkTried is parkApart for one whose start had no effect.
func (w *waitingRoom) parkTried(en *entry) {
	en.tried = true
	w.parkApart(lotAgainOf(w.round+1), en)
}

// unkeep gives room back that is kept for an entry, which is still the one that was let in
// for it. Caller holds mu.
func (w *waitingRoom) unkeep(en *entry) {
	if en.keeps {
		en.keeps = false
		w.freed = w.freed || en.from.kind == lotRunning
		w.lanes.giveUp(*en.from)
	}
}

// giveBackPlaces undoes reserve, but for the place of a serial job, which the
// entry keeps until it starts or is given up.
func (w *waitingRoom) giveBackPlaces(a attempt) {
	a.starting = false
	if a.route.refused != "" || a.start.RunID == 0 {
		return
	}
	for _, at := range w.lanes.answered(nil, a.route.lane, a.route.key(a.run.App)) {
		w.admit(at)
	}
	if a.route.places > 0 {
		w.freed = w.freed || a.route.exec != nil
		w.admit(w.lanes.ended(a.route.key(a.run.App)))
	}
}

// fitting returns the runs that there is room for, by the places of each app, and
// whether some have to wait.
func (w *waitingRoom) fitting(runs []store.Run, places map[string]int) (ids []int64, full bool) {
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
