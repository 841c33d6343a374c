package xxljob

// What is wrong with a Config.

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// validate collects the faults of a config whose defaults are filled in.
func (c Config) validate() error {
	f := faults{what: "config"}
	f.text("App", c.App, 1, 64)
	known := len(f.errs)
	f.text("Node", c.Node, 1, 200)
	if at := strings.IndexFunc(c.Node, notSolid); at >= 0 && len(f.errs) == known {
		f.add("Node", c.Node, fmt.Errorf("want printable characters without blanks, not %q", []rune(c.Node[at:])[0]))
	}
	if name := c.Location.String(); name == "" {
		f.add("Location", name, errors.New("want an IANA zone, from time.LoadLocation"))
	} else if _, err := loadZone(name); err != nil {
		f.add("Location", name, err)
	}
	f.oneOf("CatchUp", string(c.CatchUp), string(CatchUpEvery), string(CatchUpOnce))
	c.validateRanges(&f)
	c.validateTokens(&f)
	c.validateJobsAPI(&f)
	if c.Executor.Addr != "" || len(c.Executor.Admins) > 0 {
		f.add("Executor", c.Executor.Addr, errors.New("one with Addr or Admins is made by executor.New, given to Attach, and started by its owner"))
	}
	for name, r := range c.Routers {
		if name == "" || r == nil {
			f.add("Routers", name, errors.New("want a name and a Router"))
		}
	}
	return f.err()
}

// validateRanges collects the durations and numbers that are out of their range.
func (c *Config) validateRanges(f *faults) {
	for _, d := range []struct {
		name     string
		d        time.Duration
		min, max time.Duration
	}{
		{"PreRead", c.PreRead, 100 * time.Millisecond, maxPreRead},
		{"MisfireThreshold", c.MisfireThreshold, time.Millisecond, maxPeriod},
		{"SlowAfter", c.SlowAfter, time.Millisecond, maxPeriod},
		{"Beat", c.Beat, 100 * time.Millisecond, maxPeriod},
		{"Dead", c.Dead, c.Beat, maxPeriod},
		{"LostAfter", c.LostAfter, c.LeaseTTL, maxPeriod},
		{"PruneAfter", c.PruneAfter, time.Second, maxPeriod},
		{"RunRetention", c.RunRetention, time.Hour, maxPeriod},
		{"LeaseTTL", c.LeaseTTL, 100 * time.Millisecond, time.Hour},
		{"LeaseMaxHold", c.LeaseMaxHold, 0, maxPeriod},
		{"StopGrace", c.StopGrace, 0, maxPeriod},
		{"Overdue", c.Overdue, c.Dead, maxPeriod},
		{"CallTimeout", c.CallTimeout, 10 * time.Millisecond, time.Hour},
		{"RouteTimeout", c.RouteTimeout, 10 * time.Millisecond, callTimeout},
	} {
		if d.d < d.min || d.d > d.max {
			f.add(d.name, d.d, fmt.Errorf("want %v to %v", d.min, d.max))
		}
	}
	for _, n := range []struct {
		name        string
		n, min, max int
	}{
		{"ScanLimit", c.ScanLimit, 1, 1 << 20}, {"MaxPlanned", c.MaxPlanned, 1, 1 << 20}, {"MaxHeld", c.MaxHeld, 2 * scanRuns, 1 << 30},
		{"FastLane", c.FastLane, 1, 1 << 20}, {"SlowLane", c.SlowLane, 1, 1 << 20},
		{"SlowCount", c.SlowCount, 1, 1 << 20}, {"ReportDays", c.ReportDays, 1, 366}, {"Shards", c.Shards, 1, 1024},
		{"MaxRegistrations", c.MaxRegistrations, 1, 100_000},
	} {
		if n.n < n.min || n.n > n.max {
			f.add(n.name, n.n, fmt.Errorf("want %d to %d", n.min, n.max))
		}
	}
}
