package core

import (
	"time"
)

// TimeRing is xxljob.TimeRing.
type TimeRing interface {
	Push(at time.Time, runID int64)
	Pop(now time.Time) []int64
	Len() int
}
