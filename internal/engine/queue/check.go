package queue

// Whether what a node holds in memory is consistent, for tests and for whoever hunts a fault.

import (
	"fmt"
	"maps"
)

// Check says what is wrong at a moment at which nothing is being called: runs that wait for
// what will not come, and places that nobody holds. Probing says whether the executors of a job
// are being asked, settling whether shards are still to be settled or loaded.
func (e *Queue) Check(probing func(jobID int64) bool, settling bool) (faults []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for at := range e.Room.lists.all() {
		_, away := e.InFlight.remote[at.runID]
		switch {
		case at.kind == kindPlace && e.Room.lanes.running[addressKey{at.app, at.address}] == 0,
			at.kind == kindAddress && e.Room.lanes.address[addressLane{addressKey{at.app, at.address}, at.lane}] == 0,
			at.kind == kindApp && e.Room.lanes.apps[appLane{at.app, at.lane}] == 0,
			at.kind == kindLane && e.Room.lanes.used[at.lane] == 0,
			at.kind == kindSerial && at.most == 0 && e.Room.serial.at(at) == 0,
			at.kind == kindSerial && at.most > 0 && len(e.Room.concurrent[at]) < at.most,
			at.kind == kindProbes && !probing(at.jobID),
			at.kind == kindRun && !away && e.InFlight.here.Of(at.runID) == nil,
			at.kind == kindOrder && len(e.Room.inTransit[at.jobID]) == 0,
			at.kind == kindSettling && !settling:
			bad("runs wait for nothing in waitlist %+v", at)
		}
	}
	for at, l := range e.Room.lists.all() {
		for _, q := range l.apps {
			for _, w := range *q {
				en := w.value
				if (at.kind == kindOrder || at.kind == kindSettling) && e.Room.serial.at(en.Route.Serial) == en.Run.ID {
					bad("run %d waits in waitlist %+v with the place of a serial job in its hands", en.Run.ID, at)
				}
			}
		}
	}
	places := map[addressKey]int{}
	for id, f := range e.InFlight.here.All() {
		if f.state.counts {
			places[f.at()]++
		}
		if f.Serial.kind == kindSerial && f.Serial.most == 0 && !f.Remote && !f.AwaitsAnswer() && e.Room.serial.at(f.Serial) != id {
			bad("flight %d does not have its place in %+v", id, f.Serial)
		}
		if _, has := e.Room.concurrent[f.Serial][id]; f.Serial.most > 0 && !f.Remote && !has {
			bad("flight %d does not have its place in %+v", id, f.Serial)
		}
	}
	for _, a := range e.InFlight.remote {
		if a.places.app != "" {
			places[a.places]++
		}
	}
	for job, runs := range e.Room.inTransit {
		for _, r := range runs {
			id := r.RunID
			if _, away := e.InFlight.remote[id]; !away && e.Held.runs.Of(id) == nil {
				bad("run %d of job %d is in transit to nowhere", id, job)
			}
		}
	}
	if !maps.Equal(places, e.Room.lanes.running) {
		bad("places held are %v, and by the runs under way %v", e.Room.lanes.running, places)
	}
	for at, runs := range e.Room.concurrent {
		for id := range runs {
			if _, away := e.InFlight.remote[id]; !away && e.InFlight.here.Of(id) == nil && e.Held.runs.Of(id) == nil {
				bad("run %d, which is not here, has a place in %+v", id, at)
			}
		}
	}
	for at, id := range e.Room.serial.all() {
		_, away := e.InFlight.remote[id]
		if !away && e.InFlight.here.Of(id) == nil && e.Held.runs.Of(id) == nil {
			bad("run %d, which is not here, has the place %+v", id, at)
		}
	}
	return faults
}

// HeldOf is how many planned runs of an app are held, and whether there are more in the store
// alone.
func (e *Queue) HeldOf(app string) (n int, bounded bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.Held.apps[app]; h != nil {
		return h.n, h.bounded
	}
	return 0, false
}
