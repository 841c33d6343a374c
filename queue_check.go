package xxljob

// Whether what a node holds in memory is consistent, for tests and for whoever hunts a fault.

import (
	"fmt"
	"maps"
)

// check says what is wrong at a moment at which nothing is being called: runs that wait for
// what will not come, and places that nobody holds. Probing says whether the executors of a job
// are being asked, settling whether shards are still to be settled or loaded.
func (e *engine) check(probing func(jobID int64) bool, settling bool) (faults []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for at := range e.room.lots.all() {
		_, away := e.under.away[at.runID]
		switch {
		case at.kind == lotRunning && e.room.lanes.running[addressKey{at.app, at.address}] == 0,
			at.kind == lotAddress && e.room.lanes.address[addressLane{addressKey{at.app, at.address}, at.lane}] == 0,
			at.kind == lotApp && e.room.lanes.apps[appLane{at.app, at.lane}] == 0,
			at.kind == lotLane && e.room.lanes.used[at.lane] == 0,
			at.kind == lotSerial && at.most == 0 && e.room.serial.at(at) == 0,
			at.kind == lotSerial && at.most > 0 && len(e.room.beside[at]) < at.most,
			at.kind == lotProbe && !probing(at.jobID),
			at.kind == lotRun && !away && e.under.flights.Of(at.runID) == nil,
			at.kind == lotOrder && len(e.room.transit[at.jobID]) == 0,
			at.kind == lotSettle && !settling:
			bad("runs wait for nothing in lot %+v", at)
		}
	}
	for at, l := range e.room.lots.all() {
		for _, q := range l.apps {
			for _, w := range *q {
				en := w.entry
				if (at.kind == lotOrder || at.kind == lotSettle) && e.room.serial.at(en.route.serial) == en.run.ID {
					bad("run %d waits in lot %+v with the place of a serial job in its hands", en.run.ID, at)
				}
			}
		}
	}
	places := map[addressKey]int{}
	for id, f := range e.under.flights.All() {
		if f.state.counts {
			places[f.at()]++
		}
		if f.serial.kind == lotSerial && f.serial.most == 0 && !f.remote && e.room.serial.at(f.serial) != id {
			bad("flight %d does not have its place in %+v", id, f.serial)
		}
		if _, has := e.room.beside[f.serial][id]; f.serial.most > 0 && !f.remote && !has {
			bad("flight %d does not have its place in %+v", id, f.serial)
		}
	}
	for _, a := range e.under.away {
		if a.places.app != "" {
			places[a.places]++
		}
	}
	for job, runs := range e.room.transit {
		for _, r := range runs {
			id := r.runID
			if _, away := e.under.away[id]; !away && e.held.runs.Of(id) == nil {
				bad("run %d of job %d is in transit to nowhere", id, job)
			}
		}
	}
	if !maps.Equal(places, e.room.lanes.running) {
		bad("places held are %v, and by the runs under way %v", e.room.lanes.running, places)
	}
	for at, runs := range e.room.beside {
		for id := range runs {
			if _, away := e.under.away[id]; !away && e.under.flights.Of(id) == nil && e.held.runs.Of(id) == nil {
				bad("run %d, which is not here, has a place in %+v", id, at)
			}
		}
	}
	for at, id := range e.room.serial.all() {
		_, away := e.under.away[id]
		if !away && e.under.flights.Of(id) == nil && e.held.runs.Of(id) == nil {
			bad("run %d, which is not here, has the place %+v", id, at)
		}
	}
	return faults
}

// heldOf is how many planned runs of an app are held, and whether there are more in the store
// alone.
func (e *engine) heldOf(app string) (n int, bounded bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.held.apps[app]; h != nil {
		return h.n, h.bounded
	}
	return 0, false
}
