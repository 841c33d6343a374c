package core

import (
	"math"
	"sync"
	"time"
)

// Clock estimates the store's time. The store's clock is the cluster's; an
// estimate of it is a lower bound, so that no run starts early by it.
//
// Each sample was read by the store before it arrived here, so at the moment of
// arrival the store's clock is at least the sample. The greatest of the last
// samples' offsets is the tightest bound, less what the clocks may have drifted
// apart since. Offsets are against this process's monotonic clock: a step of the
// local wall clock changes nothing.
type Clock struct {
	mu      sync.Mutex
	known   bool      // guarded by mu: the store has told its clock, or that it has none
	base    time.Time // with a monotonic reading; zero until the first sample
	samples [8]clockSample
	n       int
}

// clockSample is one reading of the store's clock.
type clockSample struct {
	offset time.Duration // the store's clock less the local one
	at     time.Duration // since base
}

// maxDrift is how far two sound clocks drift apart in a second of each other.
const maxDrift = 500 * time.Microsecond

// Sample takes in what the store's clock was, as read by a call that was made at
// the time asked and has just returned. The zero time says that the store goes by
// this process's clock.
//
// The store read its clock after it was asked, so the offset is at most what it
// would be had it read it then. Samples that say more are from before the store's
// clock was set back, or before another server took over: they are forgotten.
func (c *Clock) Sample(store, asked time.Time) {
	arrived := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = true
	if store.IsZero() {
		return
	}
	if c.base.IsZero() {
		c.base = arrived
	}
	at := arrived.Sub(c.base)
	if most := store.Sub(c.base.Round(0)) - asked.Sub(c.base); c.best(at) > most+time.Millisecond {
		c.n = 0
	}
	c.samples[c.n%len(c.samples)] = clockSample{offset: store.Sub(c.base.Round(0)) - at, at: at}
	c.n++
}

// Now returns the estimate, in UTC.
func (c *Clock) Now() time.Time {
	local := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base.IsZero() {
		return local.UTC()
	}
	at := local.Sub(c.base)
	return c.base.Round(0).Add(at + c.best(at)).UTC()
}

// Offset is how far the store's clock is ahead of this process's, at least; zero where that is
// not known.
func (c *Clock) Offset() time.Duration {
	now, local := c.Now(), time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base.IsZero() {
		return 0
	}
	return now.Sub(local.Round(0))
}

// best is the tightest lower bound of the offset that the samples give, the least
// duration where there are none. It is called with mu held.
func (c *Clock) best(at time.Duration) time.Duration {
	best := time.Duration(math.MinInt64)
	for _, s := range c.samples[:min(c.n, len(c.samples))] {
		age := at - s.at
		best = max(best, s.offset-time.Duration(age.Seconds()*float64(maxDrift)))
	}
	return best
}

// Sooner is the sooner of two times.
func Sooner(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Later is the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Earlier is the earlier of two times, of which the zero time is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
