package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestRingUsesMemoryAgain: what slots were emptied of serves those that fill next, in bounds, and
// none of what was in it comes up again.
func TestRingUsesMemoryAgain(t *testing.T) {
	ring, random := NewTimeRing().(*timeRing), rand.New(rand.NewPCG(19, 26))
	start := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	next, waiting := int64(0), map[int64]time.Time{}
	for second := range 300 {
		now := start.Add(time.Duration(second) * time.Second)
		n := 1 + random.IntN(300)
		if second%50 == 0 {
			n = 2*SpareEntries + 1
		}
		for range n {
			next++
			at := now.Add(time.Duration(1+random.IntN(5000)) * time.Millisecond).Truncate(time.Millisecond)
			if second%50 == 0 {
				at = now.Add(time.Second)
			}
			ring.Push(at, next)
			waiting[next] = at
		}
		due := ring.Pop(now)
		for _, id := range due {
			if at, ok := waiting[id]; !ok || at.After(now) {
				t.Fatalf("run %d of %v comes up at %v: it was held: %t", id, at, now, ok)
			}
			delete(waiting, id)
		}
		for id, at := range waiting {
			if !at.After(now) {
				t.Fatalf("run %d of %v does not come up at %v", id, at, now)
			}
		}
		if len(ring.spare) > spareSlots || slices.ContainsFunc(ring.spare, func(s slot) bool { return len(s) > 0 || cap(s) > SpareEntries }) {
			t.Fatalf("%d spare slots", len(ring.spare))
		}
	}
	if len(ring.spare) == 0 {
		t.Error("no memory is used again")
	}
}
