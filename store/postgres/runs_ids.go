package postgres

// Ids of runs, and how far down those that have not ended may lie.

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/urgent"
)

// Ids of runs are milliseconds since the beginning of 2025, shifted left by
// idBits, plus the low bits of a sequence. They stay below 2^53 until 2059, and
// grow with time, but for those of one moment and of runs that are planned far ahead
// (see runs_ahead.go), and of runs that were planned while the database's clock was ahead: these
// keep theirs, and those that come after have lesser ones. Ids that went on from there would put new runs
// into partitions of a time to come, which are kept until that is over. Nothing assumes that ids are
// committed in their order.
const (
	idBits   = 13
	idEpoch  = 1735689600000 // 2025-01-01T00:00:00Z in milliseconds
	maxRunID = math.MaxInt64
)

// noJobID reports whether no job can have the id: those of jobs have 31 bits. A caller over
// the wire may name any, and the server takes a greater one for an error.
func noJobID(id int64) bool { return id != int64(int32(id)) }

// idAt is the least id that is made at or after the time.
func idAt(t time.Time) int64 { return (t.UnixMilli() - idEpoch) << idBits }

// idTime is when an id was made.
func idTime(id int64) time.Time { return time.UnixMilli(id>>idBits + idEpoch).UTC() }

// rangeOf is the least range that holds the ids: with it the database looks into
// the partitions that it has to look into.
func rangeOf(ids []int64) (lo, hi int64) {
	if len(ids) == 0 {
		return 0, 0
	}
	return slices.Min(ids), slices.Max(ids)
}

const (
	// openMargin is how long a transaction of the host's may take to commit a run
	// that it has planned, before the run is overlooked for up to floorEvery.
	openMargin = 2 * time.Hour
	// aheadMargin is how far ids are ahead of the database's clock as it is estimated: the
	// clock itself may be ahead by an hour, and a run that was planned far ahead moves up to
	// an hour before the time of its id.
	aheadMargin = 2 * time.Hour
	// floorEvery is how often the least id of an unended run is looked for.
	floorEvery = time.Minute
	// backLeast is by how much a clock that is set back matters: what is behind a range for two
	// hours need not be looked for sooner.
	backLeast = time.Minute
)

// openRange is a range that holds the ids of all unended runs: from the least one
// as it was known a minute ago, or two hours ago, whichever is earlier, to two hours
// ahead, and up to the ids that were made while the database's clock was ahead. But for a few
// hours a day it lies in one partition.
func (s *Store) openRange() (lo, hi int64) {
	return s.floor.Load(), max(idAt(s.estimate().Add(aheadMargin)), s.ceiling.Load())
}

// setBack is for a database whose clock was ahead, and is set back: ids from before lie behind those
// that are made now, and floors that were read meanwhile above these.
func (s *Store) setBack(was, now time.Time) {
	if made := idAt(was.Add(aheadMargin)); made > s.ceiling.Load() {
		s.ceiling.Store(made)
	}
	recent := idAt(now.Add(-openMargin))
	s.lowerFloor(recent)
	s.floors.lower(recent)
	s.region.reach(time.Time{})
}

// wideRange holds the ids of all runs, whatever the clocks say. It is for statements
// that are rare, and decide.
func wideRange() (lo, hi int64) { return 0, maxRunID }

// raiseFloor looks for the least id of an unended run, older than openMargin.
func (s *Store) raiseFloor(ctx context.Context) error {
	floor, ceiling, now := s.floor.Load(), s.ceiling.Load(), s.estimate()
	recent := idAt(now.Add(-openMargin))
	var least, most int64
	if err := s.read(ctx, s.sql.openFloor.with(recent).into(scanInto(&least)),
		s.sql.openCeiling.with(idAt(now.Add(aheadMargin))).into(scanInto(&most))); err != nil {
		return failed(err, "look for the oldest unended run")
	}
	if least == 0 || least > recent {
		least = recent
	}
	// What a step of the clock, or a run that has moved late, has changed meanwhile stays.
	s.floor.CompareAndSwap(floor, least)
	s.ceiling.CompareAndSwap(ceiling, most)
	return nil
}

// lowerFloor is for runs that have moved late, and for a clock that was set back.
func (s *Store) lowerFloor(id int64) {
	for floor := s.floor.Load(); id < floor && !s.floor.CompareAndSwap(floor, id); floor = s.floor.Load() {
	}
}

// startFloors are ids above which that lies which a start of a serial job looks for, in shards
// that this process owns: what is started, and what waits to be tried again. Nobody else starts
// runs of the shards, or gives them back; so they are read when shards are taken and once a
// minute, and each start of an older run, and each older one that is given back, lowers them.
type startFloors struct {
	mu      sync.Mutex
	started idFloor // guarded by mu
	waiting idFloor // guarded by mu
}

// idFloor is a least id.
type idFloor struct {
	floor int64
	low   int64 // the least id that it was lowered to since the last reading began
}

func (f *idFloor) lower(id int64) { f.floor, f.low = min(f.floor, id), min(f.low, id) }

// ofStarted is the floor for a start of the given runs.
func (f *startFloors) ofStarted(ids []int64) int64 {
	least, _ := rangeOf(ids)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started.lower(least)
	return f.started.floor
}

// ofWaiting is the least id of what waits to be tried again.
func (f *startFloors) ofWaiting() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting.floor
}

// givenBack is for a run that is planned again.
func (f *startFloors) givenBack(id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting.lower(id)
}

// lower is for a clock that was set back.
func (f *startFloors) lower(id int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started.lower(id)
	f.waiting.lower(id)
}

// raise reads them anew; after an error they are as low as any unended run. What comes to wait
// has a new id, so that the floor of that is old while nothing waits.
func (f *startFloors) raise(ctx context.Context, s *Store) error {
	ctx = urgent.Mark(ctx) // for starts wait meanwhile
	<-s.serials.turn.ask() // no start is under way while they are read
	defer s.serials.turn.done()
	lo, hi := s.openRange()
	f.mu.Lock()
	f.started.low, f.waiting.low = maxRunID, maxRunID
	f.mu.Unlock()
	recent := idAt(s.estimate().Add(-openMargin))
	var started, waiting int64
	err := s.read(ctx, s.sql.startedLeast.with(lo, hi).into(scanInto(&started)), s.sql.waitingLeast.with(lo, recent).into(scanInto(&waiting)))
	switch {
	case err != nil:
		started, waiting = lo, lo
	case started == 0:
		started = lo
	}
	if waiting == 0 {
		waiting = recent
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started.floor, f.waiting.floor = min(started, f.started.low), min(waiting, f.waiting.low)
	return failed(err, "look for the oldest started run")
}

// floorQueries are the statements of this file.
type floorQueries struct {
	startedLeast, waitingLeast, openFloor, openCeiling query
}

func (q *floorQueries) define(sql template) {
	// Planned and started runs have small indexes of their own. "id + 0" keeps the
	// planner from going through all runs by id instead, until it meets one.
	q.startedLeast = sql(`select coalesce(min(l.id), 0) from {{schema}}.xxl_job_log l where l.state in ({{state.started}}, {{state.dispatched}})
	and l.id between $1 and $2`)
	q.waitingLeast = sql(`select coalesce(min(w.id + 0), 0) from {{schema}}.xxl_job_log w where ` + isRetry + ` and w.id between $1 and $2`)
	q.openFloor = sql(`select coalesce(least((select min(l.id + 0) from {{schema}}.xxl_job_log l where l.id < $1 and l.state = {{state.planned}}),
		(select min(l.id + 0) from {{schema}}.xxl_job_log l where l.id < $1 and l.state in ({{state.started}}, {{state.dispatched}}))), 0)`)
	q.openCeiling = sql(`select coalesce(greatest((select max(l.id + 0) from {{schema}}.xxl_job_log l where l.id > $1 and l.state = {{state.planned}}),
		(select max(l.id + 0) from {{schema}}.xxl_job_log l where l.id > $1 and l.state in ({{state.started}}, {{state.dispatched}}))), 0)`)
}
