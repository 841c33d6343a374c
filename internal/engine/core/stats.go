package core

// What a scheduler says of itself: Scheduler.Stats.

import (
	"time"
)

// Stats is xxljob.Stats.
type Stats struct {
	Node, Incarnation string
	At                time.Time

	Held, Due     int
	Waiting       map[string]int
	Fast, Slow    LaneStats
	Running       map[string]int
	Calling, Away int
	PlacesHeld    int

	Shards      int
	LeaseLeft   time.Duration
	ClockOffset time.Duration
	FaultStats
	Logs     LogStats
	Troubles map[string]int

	Calls map[string]CallStats
}

// FaultStats is xxljob.FaultStats.
type FaultStats struct {
	PickedUp                             uint64
	Adopted, Forgotten                   uint64
	Unplannable                          uint64
	Endless, Absent                      uint64
	AlarmsFailed                         uint64
	EventsDropped                        uint64
	ResultsRefused, RegistrationsRefused uint64
	Unread                               uint64
	TokensRefused                        uint64
	Untraced                             uint64
	Panics                               map[string]uint64
}

// LaneStats is a lane: of Size places, Used are taken by triggers that have no answer yet.
type LaneStats struct{ Size, Used int }

// CallStats is xxljob.CallStats.
type CallStats struct {
	Calls, Errors  uint64
	Total, Longest time.Duration
	Rows           uint64
	Largest        int
}

func (c *CallStats) count(took time.Duration, rows int, err error) {
	c.Calls++
	if err != nil {
		c.Errors++
	}
	c.Total += took
	c.Longest = max(c.Longest, took)
	c.Rows += uint64(rows)
	c.Largest = max(c.Largest, rows)
}
