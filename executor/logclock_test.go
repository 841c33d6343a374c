package executor

import (
	"testing"
	"time"
)

// TestWallClock: a step of the host's clock by more than a minute keeps old logs for an hour.
func TestWallClock(t *testing.T) {
	const day = 24 * time.Hour
	var c wallClock
	for _, tt := range []struct {
		name       string
		gone, wall time.Duration
		step       time.Duration
		steady     bool
	}{
		{"at first", time.Second, time.Second, 0, true},
		{"a little fast", day, day + time.Second, 0, true},
		{"a month ahead", day + time.Minute, 32*day + time.Minute, 31*day - time.Second, false},
		{"still", day + 2*time.Minute, 32*day + 2*time.Minute, 0, false},
		{"set right", day + 3*time.Minute, day + 3*time.Minute, -31 * day, false},
		{"nearly an hour later", day + 62*time.Minute, day + 62*time.Minute, 0, false},
		{"an hour later", day + 63*time.Minute, day + 63*time.Minute, 0, true},
		{"set back", 2 * day, 2*day - time.Hour, -time.Hour, false},
		{"it stays there", 2*day + time.Hour, 2 * day, 0, true},
	} {
		if step, steady := c.look(tt.wall, tt.gone); step != tt.step || steady != tt.steady {
			t.Errorf("%s: %v, %t; want %v, %t", tt.name, step, steady, tt.step, tt.steady)
		}
	}
}
