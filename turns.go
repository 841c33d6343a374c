package xxljob

// Entries on their way to be started, and back again where a start has come to nothing. All
// of it is guarded by the engine's mutex.

import "slices"

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
func (w *waitingRoom) fitting(runs []Run, places map[string]int) (ids []int64, full bool) {
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
