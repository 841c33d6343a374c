package core

import "time"

// TestClock is a node's estimate of the store's time.
type TestClock struct{ clock Clock }

// Sample takes in what the store's clock was, as read after it was asked for.
func (c *TestClock) Sample(store, asked time.Time) { c.clock.Sample(store, asked) }

// Now is the estimate.
func (c *TestClock) Now() time.Time { return c.clock.Now() }
