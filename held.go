package xxljob

// What a node holds of an app's planned runs. Memory is bounded: of an app with
// more runs than that the node holds the earliest, up to a horizon, and reads on
// in the store when they run low. All of it is guarded by the engine's mutex.

import (
	"slices"
	"time"
)

// hold puts planned runs on the ring, as far as their apps have room.
func (e *engine) hold(runs []Run, jobs map[int64]*Job) {
	if len(runs) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wakes.start.pokeIf(e.holdSome(runs, jobs))
}

// holdSome is hold with the mutex held. It reports whether one of the runs is now the next
// to become due.
func (e *engine) holdSome(runs []Run, jobs map[int64]*Job) (sooner bool) {
	before, had := e.dueTimes.next()
	for i := range runs {
		r := &runs[i]
		switch en := e.held[r.ID]; {
		case r.State != StatePlanned:
		case en != nil:
			en.refresh(r)
		case e.hasRoom(r):
			e.holdOne(r, jobs[r.JobID])
		}
	}
	after, has := e.dueTimes.next()
	return has && (!had || after < before)
}

func (e *engine) holdOne(r *Run, job *Job) {
	e.ref(r.JobID, job)
	e.held[r.ID] = &entry{run: *r}
	e.apps[r.App].n++
	e.pushRing(r.Scheduled, r.ID)
	e.dueTimes.add(r.Scheduled.UnixMilli())
}

// hasRoom reports whether a run is to be held: it is not behind the horizon, or
// there is none. A full app gets one.
func (e *engine) hasRoom(r *Run) bool {
	h := e.apps[r.App]
	if h == nil {
		h = &holding{}
		e.apps[r.App] = h
	}
	key := keyOfRun(r)
	if h.n >= e.cfg.Limits.MaxHeld && (!h.bounded || !h.horizon.before(key)) {
		e.shed(r.App, h)
	}
	return !h.bounded || !h.horizon.before(key)
}

// shed forgets the later half of what is on the ring for an app. The ring goes
// on holding their ids, which mean nothing any more when they come up.
func (e *engine) shed(app string, h *holding) {
	var keys []ringEntry
	for _, en := range e.held {
		if en.run.App == app && !en.due {
			keys = append(keys, keyOfRun(&en.run))
		}
	}
	h.bounded = true
	if len(keys) < 2 {
		h.horizon = ringEntry{} // all that is held is due: nothing else fits
		return
	}
	slices.SortFunc(keys, func(a, b ringEntry) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	h.horizon = keys[len(keys)/2-1]
	for _, k := range keys[len(keys)/2:] {
		en := e.held[k.runID]
		e.unhold(en)
		e.arrived(en.run.JobID, en.run.ID)
	}
	e.wakes.scan.poke()
}

// unhold takes an entry out of the books.
func (e *engine) unhold(en *entry) {
	delete(e.held, en.run.ID)
	e.unref(en.run.JobID)
	h := e.apps[en.run.App]
	h.n--
	switch {
	case h.n == 0 && !h.bounded:
		delete(e.apps, en.run.App)
	case h.n <= e.cfg.Limits.MaxHeld/2 && h.bounded:
		e.wakes.scan.poke()
	}
}

// thirsty returns the apps that have runs in the store only and too few here,
// with the key behind which to read on.
func (e *engine) thirsty() map[string]ringEntry {
	e.mu.Lock()
	defer e.mu.Unlock()
	var apps map[string]ringEntry
	for app, h := range e.apps {
		if h.bounded && h.n <= e.cfg.Limits.MaxHeld/2 {
			if apps == nil {
				apps = map[string]ringEntry{}
			}
			apps[app] = h.horizon
		}
	}
	return apps
}

// holdNext holds a page of an app's runs from behind its horizon, which moves on
// with them; last says that nothing comes behind the page. It reports whether
// there is room for another page. Where the horizon is not any more where the
// page begins, some of what was held is forgotten: the page is not held.
func (e *engine) holdNext(app string, from ringEntry, runs []Run, last bool) (more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.apps[app]
	if h == nil || h.horizon != from {
		return false
	}
	for i := range runs {
		if e.held[runs[i].ID] == nil {
			e.holdOne(&runs[i], nil)
		}
		h.horizon = keyOfRun(&runs[i])
	}
	if last {
		h.bounded = false
		if h.n == 0 {
			delete(e.apps, app)
		}
	}
	return !last && h.n < e.cfg.Limits.MaxHeld-scanRuns
}

// takeDue moves what is due at or before t from the ring to the due queue.
func (e *engine) takeDue(t time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dueTimes.popUpTo(t.UnixMilli())
	for _, id := range e.popRing(t) {
		en := e.held[id]
		switch {
		case en == nil || en.due: // forgotten, or forgotten and held again
		case en.run.Scheduled.After(t):
			// A ring of the user's was early; P2 does not rest on it.
			e.pushRing(en.run.Scheduled, id)
			e.dueTimes.add(en.run.Scheduled.UnixMilli())
		default:
			en.due = true
			e.due.push(en)
		}
	}
	if _, armed := e.dueTimes.next(); !armed && e.lenRing() > 0 {
		// A ring of the user's is late with something.
		e.dueTimes.add(t.Add(lockedRetry).UnixMilli())
	}
}

// release forgets a held entry that will not start; what it had in its hands
// goes to the next.
func (e *engine) release(en *entry) {
	if e.held[en.run.ID] == en {
		e.unhold(en)
	}
	e.unkeep(en)
	e.letGoOn(en)
	f, flies := e.flights[en.run.ID]
	a, away := e.away[en.run.ID]
	// It was held by a stale reading where it is under way: that has its place then.
	if at := en.route.serial; !(flies && f.serial == at || away && a.serial == at) {
		e.freeSerial(at, en.run.ID)
	}
	if !away {
		e.arrived(en.run.JobID, en.run.ID)
	}
}
