package xxljob

// How due runs come to wait and go on again: for room, for their turn at an address, for
// earlier runs of their job, for answers. All of it is guarded by the engine's mutex.

// freeSerial gives up the place of a serial job's run at an address, and lets
// the next one in.
func (e *engine) freeSerial(at lot, runID int64) bool {
	if at.kind != lotSerial || e.serial[at] != runID {
		return false
	}
	delete(e.serial, at)
	return e.admit(at)
}

// takeSerial takes that place for a run; false when another run has it. One that has it
// and is not being started yet gives way to an earlier one.
func (e *engine) takeSerial(at lot, r *Run) bool {
	if at.kind != lotSerial {
		return true
	}
	if has := e.serial[at]; has != 0 && has != r.ID {
		if en := e.held[has]; en == nil || en.starting || !keyOfRun(r).before(keyOfRun(&en.run)) {
			return false
		}
	}
	e.serial[at] = r.ID
	return true
}

// admit moves the head of a lot to the due queue. At an address of
// a serial job it has the place from then on, and one that has waited for its turn
// counts as in transit, so that none overtakes it.
func (e *engine) admit(at lot) bool {
	en := e.lots.leave(at)
	if en == nil {
		return false
	}
	switch at.kind {
	case lotSerial:
		e.serial[at] = en.run.ID
	case lotOrder:
		e.transit.add(&en.run)
	default:
		en.from, en.waited = at, true
	}
	e.due.push(en)
	return true
}

// park makes an entry wait in a lot. If it came from another one, the room it
// was let in for goes to the next there. The later runs of a serial job do not wait for
// one that waits for room, but for one that waits to be told where to go.
func (e *engine) park(at lot, en *entry) {
	switch ahead := e.transit.has(&en.run); at.kind {
	case lotProbe, lotRoute, lotAsk, lotSettle:
		e.keepAhead(en)
	case lotOrder:
		e.transit.drop(en.run.JobID, en.run.ID)
	default:
		if ahead {
			e.arrived(en.run.JobID, en.run.ID)
		}
	}
	if en.from != at {
		e.letGoOn(en)
	}
	en.waited = false
	if !at.isRoom() && at.kind != lotAsk && at.kind != lotProbe && at.kind != lotRoute {
		// What it was told may be old when it goes on. One that is let in for room would lose
		// that by asking again.
		en.turned = false
	}
	e.lots.park(at, en)
}

// letGoOn gives the room that an entry was let in for, if it was, to the next.
func (e *engine) letGoOn(en *entry) {
	if en.waited && en.from.isRoom() {
		en.waited = false
		e.admit(en.from)
	}
	en.waited = false
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

// changeSerial gives up the place of a serial job at the address that the entry
// was routed to before.
func (e *engine) changeSerial(en *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.freeSerial(en.route.serial, en.run.ID)
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

// awaitRun parks an entry behind a run that is in its way. It keeps its place as
// the next serial run at its address.
func (e *engine) awaitRun(a attempt, blocker Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.giveBackPlaces(a)
	e.parkBehindRun(blocker, a.entry)
}

// keepAhead keeps the later runs of a serial job behind one that has to come again: they
// might find at once what it waits for.
func (e *engine) keepAhead(en *entry) {
	if e.isSerial(en.run.JobID) {
		e.transit.add(&en.run)
	}
}

// parkBehind parks an entry that an earlier one has to pass. It holds nothing then that
// the earlier one might wait for, and is routed anew when it goes on, as those are that
// come after it.
func (e *engine) parkBehind(at lot, en *entry) {
	e.freeSerial(en.route.serial, en.run.ID)
	en.route = routed{}
	e.park(at, en)
}

// arrived notes that a run is in transit no more, or never was, and lets the next of its
// job try. It reports whether there was one.
func (e *engine) arrived(jobID, runID int64) bool {
	e.transit.drop(jobID, runID)
	return e.admit(lotOrderOf(jobID))
}

// evict lets everybody out of the lots of an address at which nobody should wait any
// more: they are routed anew.
func (e *engine) evict(address string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	any := false
	for at := range e.lots {
		away, isAway := e.away[at.runID]
		if at.address == address || at.kind == lotRun && isAway && away.address == address {
			any = e.clearOut(at) || any
		}
	}
	e.wakes.start.pokeIf(any)
}

// clearOut empties a lot.
func (e *engine) clearOut(at lot) (any bool) {
	for en := e.lots.leave(at); en != nil; en = e.lots.leave(at) {
		e.freeSerial(en.route.serial, en.run.ID)
		en.route = routed{}
		e.due.push(en)
		any = true
	}
	return any
}

// waitApart has an entry wait for its turn, or for its next one. The room that it was let in
// for, if it was, is kept for it: others that are due would take it meanwhile.
func (e *engine) waitApart(en *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if en.route.refused != "" {
		e.letGoOn(en)
	}
	if en.keeps = en.waited && en.from.isRoom(); en.keeps {
		e.lanes.keep(en.from)
	}
	at := lot{kind: lotApart}
	if en.tried {
		at = lotAgainOf(e.round + 1)
	}
	e.parkApart(at, en)
}

// parkApart has an entry wait for its turn. The later runs of its job, if that is a serial
// one, wait too. Caller holds mu.
func (e *engine) parkApart(at lot, en *entry) {
	e.keepAhead(en)
	e.lots.park(at, en)
}

// parkTried is parkApart for one whose start had no effect.
func (e *engine) parkTried(en *entry) {
	en.tried = true
	e.parkApart(lotAgainOf(e.round+1), en)
}

// unkeep gives room back that is kept for an entry, which is still the one that was let in
// for it. Caller holds mu.
func (e *engine) unkeep(en *entry) {
	if en.keeps {
		en.keeps = false
		e.freed = e.freed || en.from.kind == lotRunning
		e.lanes.giveUp(en.from)
	}
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
