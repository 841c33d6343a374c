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
	for at := range e.Due.lists.all() {
		_, away := e.InFlight.remote[at.runID]
		switch {
		case at.kind == kindPlace && e.Due.lanes.running[addressKey{at.app, at.address}] == 0,
			at.kind == kindAddress && e.Due.lanes.address[addressLane{addressKey{at.app, at.address}, at.lane}] == 0,
			at.kind == kindApp && e.Due.lanes.apps[appLane{at.app, at.lane}] == 0,
			at.kind == kindLane && e.Due.lanes.used[at.lane] == 0,
			at.kind == kindJobPlace && at.most == 0 && e.Due.serial.at(at) == 0,
			at.kind == kindJobPlace && at.most > 0 && len(e.Due.concurrent[at]) < at.most,
			at.kind == kindProbes && !probing(at.jobID),
			at.kind == kindRun && !away && e.InFlight.here.Of(at.runID) == nil,
			at.kind == kindOrder && len(e.Due.inTransit[at.jobID]) == 0,
			at.kind == kindSettling && !settling:
			bad("runs wait for nothing in waitlist %+v", at)
		}
	}
	for at, l := range e.Due.lists.all() {
		for _, q := range l.apps {
			for en := range q.All() {
				if (at.kind == kindOrder || at.kind == kindSettling) && e.Due.serial.at(en.Route.JobPlace) == en.Run.ID {
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
		if f.JobPlace.kind == kindJobPlace && f.JobPlace.most == 0 && !f.Remote && !f.AwaitsAnswer() && e.Due.serial.at(f.JobPlace) != id {
			bad("flight %d does not have its place in %+v", id, f.JobPlace)
		}
		if _, has := e.Due.concurrent[f.JobPlace][id]; f.JobPlace.most > 0 && !f.Remote && !has {
			bad("flight %d does not have its place in %+v", id, f.JobPlace)
		}
	}
	for _, a := range e.InFlight.remote {
		if a.places.app != "" {
			places[a.places]++
		}
	}
	for job, runs := range e.Due.inTransit {
		for _, r := range runs {
			id := r.RunID
			if _, away := e.InFlight.remote[id]; !away && e.Held.runs.Of(id) == nil {
				bad("run %d of job %d is in transit to nowhere", id, job)
			}
		}
	}
	if !maps.Equal(places, e.Due.lanes.running) {
		bad("places held are %v, and by the runs under way %v", e.Due.lanes.running, places)
	}
	for at, runs := range e.Due.concurrent {
		for id := range runs {
			if _, away := e.InFlight.remote[id]; !away && e.InFlight.here.Of(id) == nil && e.Held.runs.Of(id) == nil {
				bad("run %d, which is not here, has a place in %+v", id, at)
			}
		}
	}
	for at, id := range e.Due.serial.all() {
		_, away := e.InFlight.remote[id]
		if !away && e.InFlight.here.Of(id) == nil && e.Held.runs.Of(id) == nil {
			bad("run %d, which is not here, has the place %+v", id, at)
		}
	}
	return faults
}

// HeldOf is how many planned runs of an app are held, and whether there are more in the store
// alone.
func (q *Queue) HeldOf(app string) (n int, bounded bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h := q.Held.apps[app]; h != nil {
		return h.n, h.bounded
	}
	return 0, false
}
