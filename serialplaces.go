package xxljob

// Who has the place of a serial job's run at an address.

import (
	"iter"
	"slices"
)

// serialPlaces are the runs that are at addresses, or about to be, for serial jobs, by job: most
// have one place at most. Lots with a maximum are in beside.
type serialPlaces map[int64]placesOfJob

// placesOfJob are the places of one job that are taken. The first is apart, so that one alone
// takes no memory of its own.
type placesOfJob struct {
	first serialPlace
	rest  []serialPlace
}

// serialPlace is one of them. Its part is the runID of its lot.
type serialPlace struct {
	address     string
	part, runID int64
}

func (p *serialPlace) isAt(at lot) bool { return p.part == at.runID && p.address == at.address }

// at is the run that has a place, 0 where it is free.
func (s serialPlaces) at(at lot) int64 {
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
func (s serialPlaces) take(at lot, runID int64) {
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
func (s serialPlaces) free(at lot) {
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
func (s serialPlaces) all() iter.Seq2[lot, int64] {
	return func(yield func(lot, int64) bool) {
		for jobID, places := range s {
			for _, p := range append([]serialPlace{places.first}, places.rest...) {
				if !yield(lot{kind: lotSerial, jobID: jobID, runID: p.part, address: p.address}, p.runID) {
					return
				}
			}
		}
	}
}
