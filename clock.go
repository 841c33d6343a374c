package xxljob

import (
	"sync"
	"time"
)

// clock estimates the store's time. The store's clock is the cluster's; an
// estimate of it is a lower bound, so that no run starts early by it.
//
// Each sample was read by the store before it arrived here, so at the moment of
// arrival the store's clock is at least the sample. The greatest of the last
// samples' offsets is the tightest bound. Offsets are against this process's
// monotonic clock: a step of the local wall clock changes nothing.
type clock struct {
	mu      sync.Mutex
	base    time.Time // with a monotonic reading; zero until the first sample
	offsets [8]time.Duration
	n       int
	best    time.Duration
}

// sample takes in what the store's clock was, as read by a call that has just
// returned. The zero time says that the store goes by this process's clock.
func (c *clock) sample(store time.Time) {
	if store.IsZero() {
		return
	}
	arrived := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base.IsZero() {
		c.base = arrived
	}
	// Round is by the monotonic clock, for both have one; store has none.
	c.offsets[c.n%len(c.offsets)] = store.Sub(c.base.Round(0)) - arrived.Sub(c.base)
	c.n++
	c.best = c.offsets[0]
	for _, o := range c.offsets[1:min(c.n, len(c.offsets))] {
		c.best = max(c.best, o)
	}
}

// now returns the estimate, in UTC.
func (c *clock) now() time.Time {
	local := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base.IsZero() {
		return local.UTC()
	}
	return c.base.Round(0).Add(local.Sub(c.base) + c.best).UTC()
}
