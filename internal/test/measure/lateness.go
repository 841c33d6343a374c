package measure

import (
	"math"
	"time"
)

// Lateness records how late handlers are called, each value exactly, in microseconds. The zero
// value is empty and ready; its methods may be called concurrently.
type Lateness struct{ values Shards[int32] }

// Record notes that what has the key, such as the id of a job, was late by d; early ones are
// negative. What is beyond 35 minutes is recorded as that.
func (l *Lateness) Record(key int64, d time.Duration) { l.values.Add(key, Microseconds(d)) }

// Distribution is that of all values up to now.
func (l *Lateness) Distribution() Distribution { return NewDistribution(l.values.All()) }

// Microseconds are those of d in 32 bits, rounded down, so that what is early is negative; the
// least or the greatest number where it has more.
func Microseconds(d time.Duration) int32 {
	us := d / time.Microsecond
	if d%time.Microsecond < 0 {
		us--
	}
	return int32(min(max(us, math.MinInt32), math.MaxInt32))
}
