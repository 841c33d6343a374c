package postgres

import (
	"context"
	"math"
	"slices"
	"time"
)

// Ids of runs are milliseconds since the beginning of 2025, shifted left by
// idBits, plus the low bits of a sequence. They stay below 2^53 until 2059, and
// grow with time, but for those of one moment; nothing assumes that they are
// committed in their order.
const (
	idBits   = 13
	idEpoch  = 1735689600000 // 2025-01-01T00:00:00Z in milliseconds
	maxRunID = math.MaxInt64
)

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
	openMargin = 25 * time.Hour
	// aheadMargin is how far the database's clock may be ahead of its estimate.
	aheadMargin = 25 * time.Hour
	// floorEvery is how often the least id of an unended run is looked for.
	floorEvery = time.Minute
)

// openRange is a range that holds the ids of all unended runs: from the least one
// as it was known a minute ago, or a day ago, whichever is earlier, to tomorrow.
func (s *Store) openRange() (lo, hi int64) {
	return s.floor.Load(), idAt(s.estimate().Add(aheadMargin))
}

// raiseFloor looks for the least id of an unended run, beyond a day ago.
func (s *Store) raiseFloor(ctx context.Context) error {
	recent := idAt(s.estimate().Add(-openMargin))
	var least int64
	if err := s.read(ctx, statement{s.sql.openFloor, []any{recent}, scanInto(&least)}); err != nil {
		return failed(err, "look for the oldest unended run")
	}
	if least == 0 || least > recent {
		least = recent
	}
	s.floor.Store(least)
	return nil
}
