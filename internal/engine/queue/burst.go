package queue

import (
	"sync/atomic"
	"time"
)

// The moments in which a herd is started.

// burst is the moments in which a herd is started: many runs that are due at one time. Where the
// store is in memory, results of this node wait meanwhile, from MaxLead before its instant until
// burstMost behind it: the next handler is late by what they would take of the processors. What follows
// a result, such as a child or the next run of a serial job, waits with it. A database has time for both.
type burst struct {
	instant atomic.Int64 // of the last herd, in milliseconds since 1970
	busy    atomic.Int32 // loops that start it, or send it
}

const (
	// burstMost is how long results wait for a herd at most, from its instant on.
	burstMost = 25 * time.Millisecond
	// burstEvery is how far herds are apart for which they wait: many runs that are due all the
	// time are no herd.
	burstEvery = time.Second / 2
)

// is takes in that many runs are taken that are due at a time, and reports whether they are a herd.
func (r *burst) is(at, now time.Time) bool {
	ms := at.UnixMilli()
	if last := r.instant.Load(); now.Sub(at) >= burstMost || last < ms && ms < last+burstEvery.Milliseconds() {
		return false
	}
	r.instant.Store(ms)
	return true
}

// Begin is called by a loop that begins with a herd; then it calls End.
func (r *burst) Begin() { r.busy.Add(1) }
func (r *burst) End()   { r.busy.Add(-1) }

// lasts reports whether results are to wait.
func (r *burst) lasts(now time.Time) bool {
	return r.busy.Load() > 0 && now.Before(time.UnixMilli(r.instant.Load()).Add(burstMost))
}
