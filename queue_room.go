package xxljob

// How due runs come to wait and go on again: for room, for their turn at an address, for
// earlier runs of their job, for answers.

import "sync"

// waitingRoom has the due runs of a node: those that may be started, and those that wait for
// something. Methods that do not take the lock are called with it held.
type waitingRoom struct {
	jobs  *jobBook
	held  *heldRuns
	start wake

	mu      *sync.Mutex  // the engine's
	due     turns        // guarded by mu: may be started
	lots    lots         // guarded by mu: wait
	round   int64        // guarded by mu: of those that are tried again: see apart.go
	lanes   lanes        // guarded by mu
	freed   bool         // guarded by mu: see hasFreed
	serial  serialPlaces // guarded by mu: the run that is at an address, or about to be, for a serial job
	beside  beside       // guarded by mu: the same for concurrent jobs with a maximum
	transit transit      // guarded by mu: serial runs on their way to other nodes
}

func newWaitingRoom(cfg *Config, start wake, jobs *jobBook, held *heldRuns, mu *sync.Mutex) *waitingRoom {
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
	w.start.pokeIf(w.admitAllOf(at))
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
