package xxljob

// Entries on their way to be started, and back again where a start has come to nothing. All
// of it is guarded by the engine's mutex.

import "slices"

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

// nextRound returns the lot of the round that goes on, which is the next one when this one
// is over.
func (e *engine) nextRound() lot {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lots[lotAgainOf(e.round)] == nil {
		e.round++
	}
	return lotAgainOf(e.round)
}

// countLot is how many wait in a lot.
func (e *engine) countLot(at lot) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lenOf(at)
}

// isLeft reports whether something is due, or waits for a start that goes apart.
func (e *engine) isLeft() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc([]lot{{kind: lotDue}, {kind: lotApart}, lotAgainOf(e.round), lotAgainOf(e.round + 1)},
		func(at lot) bool { return e.lenOf(at) > 0 })
}

// waits reports whether somebody waits in one of the lots.
func (e *engine) waits(at ...lot) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(at, func(at lot) bool { return e.lots[at] != nil })
}

// choiceFor returns what a router has chosen for a run; nil when it has to be asked yet,
// or when an earlier run of the job has.
func (e *engine) choiceFor(en *entry, job *Job, addrs []string) *routeChoice {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !en.choice.fits(job, addrs) {
		en.choice = nil
		return nil
	}
	q := e.routes[routerKey{job.Route, job.ID}]
	if q != nil && len(q.waiting) > 0 && keyOfRun(&q.waiting[0].en.run).before(keyOfRun(&en.run)) {
		return nil
	}
	return en.choice
}

// openSerial lets runs of serial jobs go on that have waited until it was known what is
// ahead of them: that is due by now, where it is late.
func (e *engine) openSerial() {
	e.takeDue(e.clock.now().Add(e.lead.get()))
	e.admitAll(lot{kind: lotSettle})
	e.wakes.start.poke()
}

// openLost lets go of runs that wait for shards which were lost before it was known what is
// ahead of them: nobody else would, where no shard is left of which that is not known.
func (e *engine) openLost() {
	at := lot{kind: lotSettle}
	if e.waits(at) && len(e.leases.unloaded()) == 0 {
		e.admitAll(at)
		e.wakes.start.poke()
	}
}
