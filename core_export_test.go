package xxljob

import "time"

// Clock is a node's estimate of the store's time.
type Clock struct{ clock clock }

// Sample takes in what the store's clock was, as read after it was asked for.
func (c *Clock) Sample(store, asked time.Time) { c.clock.sample(store, asked) }

// Now is the estimate.
func (c *Clock) Now() time.Time { return c.clock.now() }
