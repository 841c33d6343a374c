package bench

import (
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/measure"
)

// call is one call of a handler. It has no pointers, so that millions are nothing to the
// collector, and its fields are exported for encoding/binary.
type call struct {
	Run  int64
	Job  int32
	At   int32 // the instant, in milliseconds since calls.base
	Late int32 // microseconds from the instant to the first line of the handler
}

// calls notes what handlers are called with.
type calls struct {
	base  int64 // Unix milliseconds
	log   measure.Shards[call]
	first atomic.Int64 // when the first handler was called, in Unix nanoseconds
}

// newCalls counts instants from the time on.
func newCalls(base time.Time) *calls { return &calls{base: base.UnixMilli()} }

// note is the first thing that a handler does.
func (c *calls) note(t *executor.Task) {
	now := time.Now()
	c.log.Add(t.RunID, call{
		Run:  t.RunID,
		Job:  int32(t.JobID), // the protocol has no larger ones
		At:   int32(t.ScheduledAt.UnixMilli() - c.base),
		Late: measure.Microseconds(now.Sub(t.ScheduledAt)),
	})
	if c.first.Load() == 0 {
		c.first.CompareAndSwap(0, now.UnixNano())
	}
}

// called is when the handler was called, in milliseconds since the base.
func (c call) called() int { return int(c.At) + int(c.Late)/1000 }
