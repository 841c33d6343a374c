package queue

import (
	"iter"
	"slices"

	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/store"
)

// The places that a job has at an address, and which runs have them. A due run whose job has no place left
// where it is to go waits for one (reserve.go).

// JobPlaceAt is the place of a job's run at an address. At a remote one a run has it until its
// trigger was answered, so that the triggers of a job arrive in order; how a job is blocked there
// is the executor's to decide. At an attached one it has it until it ends, where the job is a
// serial one. Of a concurrent job with a maximum several have that place at an attached executor,
// so that the others wait in the store; a concurrent job has no order.
func JobPlaceAt(job *store.Job, address string) WaitKey {
	remote, rule := store.IsRemote(address), blockrule.Of(job.Block)
	switch {
	case rule.KeepsOrder, remote && rule.SentInOrder:
		return OnePlaceAt(job, address)
	case rule.SideBySide && job.MaxPerExecutor > 0 && !remote:
		return WaitKey{kind: kindJobPlace, jobID: job.ID, address: address, most: job.MaxPerExecutor}
	}
	return WaitKey{}
}

// PartAt is the place of the parts of one trigger that wait at an address.
func PartAt(job *store.Job, triggerID int64, address string) WaitKey {
	return WaitKey{kind: kindJobPlace, jobID: job.ID, runID: triggerID, address: address}
}

// OnePlaceAt is the one place that a job has at an address.
func OnePlaceAt(job *store.Job, address string) WaitKey {
	return WaitKey{kind: kindJobPlace, jobID: job.ID, address: address}
}

// AwaitsAnswer reports whether a run has its place at the address until its trigger was answered,
// and not until it ends.
func (d *Destination) AwaitsAnswer() bool {
	return d.JobPlace.kind == kindJobPlace && d.JobPlace.most == 0 && d.JobPlace.runID == 0 && (d.Remote || !d.Ordered)
}

// concurrentPlaces are the runs of concurrent jobs with a maximum that are at an attached executor, or
// about to be, by their place. They are guarded by the lock of the Queue, as serialPlaces are.
type concurrentPlaces map[WaitKey]map[int64]struct{}

// add gives a run its place, unless as many others have it as may.
func (p concurrentPlaces) add(at WaitKey, runID int64) bool {
	runs := p[at]
	if _, has := runs[runID]; has {
		return true
	}
	if len(runs) >= at.most {
		return false
	}
	if runs == nil {
		runs = map[int64]struct{}{}
		p[at] = runs
	}
	runs[runID] = struct{}{}
	return true
}

// drop takes it away, and reports whether the run had it.
func (p concurrentPlaces) drop(at WaitKey, runID int64) bool {
	if _, has := p[at][runID]; !has {
		return false
	}
	if delete(p[at], runID); len(p[at]) == 0 {
		delete(p, at)
	}
	return true
}

// serialPlaces are the runs that are at addresses, or about to be, for serial jobs, by job: most
// have one place at most. Places that several may have at once are in concurrentPlaces.
type serialPlaces map[int64]placesOfJob

// placesOfJob are the places of one job that are taken. The first is apart, so that one alone
// takes no memory of its own.
type placesOfJob struct {
	first serialPlace
	rest  []serialPlace
}

// serialPlace is one of them. Its part is the RunID of its WaitKey.
type serialPlace struct {
	address     string
	part, runID int64
}

func (p *serialPlace) isAt(at WaitKey) bool { return p.part == at.runID && p.address == at.address }

// at is the run that has a place, 0 where it is free.
func (s serialPlaces) at(at WaitKey) int64 {
	places, any := s[at.jobID]
	switch {
	case !any:
		return 0
	case places.first.isAt(at):
		return places.first.runID
	}
	for i := range places.rest {
		if places.rest[i].isAt(at) {
			return places.rest[i].runID
		}
	}
	return 0
}

// take gives a place to a run, whoever has it.
func (s serialPlaces) take(at WaitKey, runID int64) {
	places, any := s[at.jobID]
	switch i := slices.IndexFunc(places.rest, func(p serialPlace) bool { return p.isAt(at) }); {
	case !any || places.first.isAt(at):
		places.first = serialPlace{at.address, at.runID, runID}
	case i >= 0:
		places.rest[i].runID = runID
		return
	default:
		places.rest = append(places.rest, serialPlace{at.address, at.runID, runID})
	}
	s[at.jobID] = places
}

// free gives a place back.
func (s serialPlaces) free(at WaitKey) {
	places, any := s[at.jobID]
	last := len(places.rest) - 1
	switch {
	case !any:
		return
	case !places.first.isAt(at):
		places.rest = slices.DeleteFunc(places.rest, func(p serialPlace) bool { return p.isAt(at) })
	case last < 0:
		delete(s, at.jobID)
		return
	default:
		places.first, places.rest = places.rest[last], places.rest[:last]
	}
	s[at.jobID] = places
}

// all are the places that are taken, and by whom.
func (s serialPlaces) all() iter.Seq2[WaitKey, int64] {
	return func(yield func(WaitKey, int64) bool) {
		for jobID, places := range s {
			for _, p := range append([]serialPlace{places.first}, places.rest...) {
				if !yield(WaitKey{kind: kindJobPlace, jobID: jobID, runID: p.part, address: p.address}, p.runID) {
					return
				}
			}
		}
	}
}
