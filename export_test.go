package xxljob

import (
	"time"

	"github.com/xxljob/xxljob/wire"
)

// What the tests, which are of package xxljob_test, see of the inside.

// Planner is the pure planner with its fields by name.
type Planner struct {
	Now, Before time.Time
	PreRead     time.Duration
	Threshold   time.Duration
	CatchUp     CatchUp
	MaxPlanned  int
}

// Plan plans one job.
func (p Planner) Plan(j *DueJob, epoch int64) Plan {
	return planner{
		now: p.Now, before: p.Before, preRead: p.PreRead, threshold: p.Threshold, catchUp: p.CatchUp, maxPlanned: p.MaxPlanned,
	}.plan(j, epoch)
}

// Complete is the config as New uses it.
func (c Config) Complete() Config { return c.withDefaults() }

// Validate is what New finds wrong with the config.
func (c Config) Validate() error { return c.withDefaults().validate() }

// TrustWindow is how long a beat is trusted.
func (c Config) TrustWindow() time.Duration {
	complete := c.withDefaults()
	return newLeases("", &complete, nil).window
}

// Check is what saving a job with the schedule finds wrong with it.
func (s Schedule) Check(subSecond bool) error { return s.check(subSecond) }

// RingSlots is the number of slots of NewTimeRing.
const RingSlots = ringSlots

// ScanPage is how many planned runs are read at a time: by so many may what a node
// holds of one app be over Config.MaxHeld.
const ScanPage = scanRuns

// Held is how many planned runs of an app a node holds, and whether there are
// more in the store only.
func Held(s Scheduler, app string) (n int, bounded bool) {
	e := s.(*scheduler).engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.apps[app]; h != nil {
		return h.n, h.bounded
	}
	return 0, false
}

// Clock is a node's estimate of the store's time.
type Clock struct{ clock clock }

// Sample takes in what the store's clock was, as read after it was asked for.
func (c *Clock) Sample(store, asked time.Time) { c.clock.sample(store, asked) }

// Now is the estimate.
func (c *Clock) Now() time.Time { return c.clock.now() }

// DialWith makes the scheduler speak to remote executors by other means than HTTP.
func DialWith(s Scheduler, dial func(app, address, token string) (wire.Executor, error)) {
	s.(*scheduler).remotes.dial = dial
}

// OpenRuns is how many runs the node has whose executor may or may not have them.
func OpenRuns(s Scheduler) int {
	o := &s.(*scheduler).open
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.runs)
}

// HooksWaiting is how many calls of hooks wait at most.
const HooksWaiting = hooksWaiting
