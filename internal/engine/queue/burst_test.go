package queue

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
)

// TestRush: a herd is one for its first moments, and another one half a second later at the earliest;
// results wait while it is being started, and not for long.
func TestRush(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	var r burst
	r.Begin()
	if r.lasts(at) {
		t.Error("results wait although there was no herd")
	}
	r.End()
	for _, c := range []struct {
		due, now time.Duration
		herd     bool
	}{
		{0, burstMost, false},                   // it is late
		{0, -core.MaxLead, true},                // before its time
		{0, time.Millisecond, true},             // more of the same
		{burstEvery / 2, burstEvery / 2, false}, // soon after the last
		{burstEvery, burstEvery, true},          // another one
		{-time.Hour, -time.Hour, true},          // a clock that was set back
		{-time.Hour + 1e6, -time.Hour, false},   // and what comes after that
	} {
		if herd := r.is(at.Add(c.due), at.Add(c.now)); herd != c.herd {
			t.Errorf("many due at %v, at %v: a herd: %v", c.due, c.now, herd)
		}
	}
	var again burst
	if !again.is(at, at) || again.lasts(at) {
		t.Error("results wait for a herd that nobody starts")
	}
	again.Begin()
	again.Begin()
	again.End()
	if !again.lasts(at.Add(burstMost-1)) || again.lasts(at.Add(burstMost)) {
		t.Error("results wait for as long as burstMost at most while a herd is started")
	}
	if again.End(); again.lasts(at) {
		t.Error("results wait for a herd that has been started")
	}
}
