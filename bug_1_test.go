package xxljob_test

import (
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
)

// TestRingOrderAfterStall: "Pop removes and returns the runs whose time is at or
// before now, the earliest first. However long ago it was last called, it
// returns all of them." After a stall of a minute or more the slots are visited
// from the one behind now's on, whatever is in them.
func TestRingOrderAfterStall(t *testing.T) {
	ring := xxljob.NewTimeRing()
	base := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ring.Pop(base)
	ring.Push(base.Add(1*time.Second), 1)
	ring.Push(base.Add(50*time.Second), 2)
	if got := ring.Pop(base.Add(100 * time.Second)); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("after a stall of 100 s: %v, want [1 2]", got)
	}
}
