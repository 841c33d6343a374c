package queue

// Whether what a node holds in memory is consistent, for tests and for whoever hunts a fault.

import (
	"fmt"
	"maps"
)

// Check says what is wrong at a moment at which nothing is being called: runs that wait for
// what will not come, and places that nobody holds. Probing says whether the executors of a job
// are being asked, settling whether shards are still to be settled or loaded.
func (q *Queue) Check(probing func(jobID int64) bool, settling bool) (faults []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	bad := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for at := range q.Due.lists.all() {
		_, away := q.InFlight.remote[at.runID]
		switch {
		case at.kind == kindPlace && q.Due.lanes.running[addressKey{at.app, at.address}] == 0,
			at.kind == kindAddress && q.Due.lanes.address[addressLane{addressKey{at.app, at.address}, at.lane}] == 0,
			at.kind == kindApp && q.Due.lanes.apps[appLane{at.app, at.lane}] == 0,
			at.kind == kindLane && q.Due.lanes.used[at.lane] == 0,
			at.kind == kindJobPlace && at.most == 0 && q.Due.serial.at(at) == 0,
			at.kind == kindJobPlace && at.most > 0 && len(q.Due.concurrent[at]) < at.most,
			at.kind == kindProbes && !probing(at.jobID),
			at.kind == kindRun && !away && q.InFlight.here.Of(at.runID) == nil,
			at.kind == kindEarlier && len(q.Due.inTransit[at.jobID]) == 0,
			at.kind == kindSettling && !settling:
			bad("runs wait for nothing in waitlist %+v", at)
		}
	}
	for at, l := range q.Due.lists.all() {
		for _, ofApp := range l.apps {
			for en := range ofApp.All() {
				if (at.kind == kindEarlier || at.kind == kindSettling) && q.Due.serial.at(en.Route.JobPlace) == en.Run.ID {
					bad("run %d waits in waitlist %+v with the place of a serial job in its hands", en.Run.ID, at)
				}
			}
		}
	}
	places := map[addressKey]int{}
	for id, f := range q.InFlight.here.All() {
		if f.state.counts {
			places[f.at()]++
		}
		if f.JobPlace.kind == kindJobPlace && f.JobPlace.most == 0 && !f.Remote && !f.AwaitsAnswer() && q.Due.serial.at(f.JobPlace) != id {
			bad("flight %d does not have its place in %+v", id, f.JobPlace)
		}
		if _, has := q.Due.concurrent[f.JobPlace][id]; f.JobPlace.most > 0 && !f.Remote && !has {
			bad("flight %d does not have its place in %+v", id, f.JobPlace)
		}
	}
	for _, a := range q.InFlight.remote {
		if a.places.app != "" {
			places[a.places]++
		}
	}
	for id := range q.InFlight.answers {
		if _, away := q.InFlight.remote[id]; !away {
			bad("run %d, which is not away, is to be answered", id)
		}
	}
	for job, runs := range q.Due.inTransit {
		for _, r := range runs {
			id := r.RunID
			if _, away := q.InFlight.remote[id]; !away && q.Held.runs.Of(id) == nil {
				bad("run %d of job %d is in transit to nowhere", id, job)
			}
		}
	}
	if !maps.Equal(places, q.Due.lanes.running) {
		bad("places held are %v, and by the runs under way %v", q.Due.lanes.running, places)
	}
	for at, runs := range q.Due.concurrent {
		for id := range runs {
			if _, away := q.InFlight.remote[id]; !away && q.InFlight.here.Of(id) == nil && q.Held.runs.Of(id) == nil {
				bad("run %d, which is not here, has a place in %+v", id, at)
			}
		}
	}
	for at, id := range q.Due.serial.all() {
		_, away := q.InFlight.remote[id]
		if !away && q.InFlight.here.Of(id) == nil && q.Held.runs.Of(id) == nil {
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
