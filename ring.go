package xxljob

import (
	"time"

	"github.com/xxljob/xxljob/internal/timering"
)

// TimeRing holds the planned runs of this node until their time. The scheduler
// bounds what it pushes; a ring itself is not bounded. An implementation must be
// safe for concurrent use.
type TimeRing interface {
	// Push puts a run on the ring. Its time may be past.
	Push(at time.Time, runID int64)
	// Pop removes and returns the runs whose time is at or before now, the
	// earliest first. However long ago it was last called, it returns all of
	// them.
	Pop(now time.Time) []int64
	// Len returns the number of runs on the ring.
	Len() int
}

// NewTimeRing returns the ring that a Scheduler uses when Config.Ring is nil: 60
// slots of one second, each ordered by millisecond. It starts no goroutine.
func NewTimeRing() TimeRing { return timering.New() }
