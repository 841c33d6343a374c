package timering

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestRingUsesMemoryAgain: what slots were emptied of serves those that fill next, in bounds, and
// none of what was in it comes up again.
func TestRingUsesMemoryAgain(t *testing.T) {
	ring, random := New(), rand.New(rand.NewPCG(19, 26))
	start := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	next, waiting := int64(0), map[int64]time.Time{}
	for second := range 300 {
		now := start.Add(time.Duration(second) * time.Second)
		n := 1 + random.IntN(300)
		if second%50 == 0 {
			n = 2*SpareCap + 1
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
		if len(ring.spare) > spareSlots || slices.ContainsFunc(ring.spare, func(s slot) bool { return len(s) > 0 || cap(s) > SpareCap }) {
			t.Fatalf("%d spare slots", len(ring.spare))
		}
	}
	if len(ring.spare) == 0 {
		t.Error("no memory is used again")
	}
}

// TestRingKnowsWhatIsNext: when the next run is due, and how many are due then, whatever was pushed and
// taken off before: late ones, those of the same millisecond, and those that are minutes ahead.
func TestRingKnowsWhatIsNext(t *testing.T) {
	for seed := range uint64(5) {
		ring, random := Ring{}, rand.New(rand.NewPCG(seed, 7))
		now := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
		waiting := map[int64]int{} // the model: how many are due at each millisecond
		for id := int64(1); id < 3000; id++ {
			switch random.IntN(4) {
			case 0:
				now = now.Add(time.Duration(random.IntN(1+random.IntN(1+random.IntN(150_000)))) * time.Millisecond)
				ring.Pop(now)
				maps.DeleteFunc(waiting, func(ms int64, _ int) bool { return ms <= now.UnixMilli() })
			default:
				at := now.Add(time.Duration(random.IntN(1+random.IntN(200_000))-1000) * time.Millisecond).Truncate(100 * time.Millisecond)
				ring.Push(at, id)
				waiting[at.UnixMilli()]++
			}
			if random.IntN(3) == 0 {
				continue // nobody asks
			}
			ms, n, ok := ring.Next()
			if ok != (len(waiting) > 0) {
				t.Fatalf("seed %d: something is due: %t, with %d", seed, ok, len(waiting))
			}
			if !ok {
				continue
			}
			if first := slices.Min(slices.Collect(maps.Keys(waiting))); ms != first || n != waiting[ms] {
				t.Fatalf("seed %d: %d are due at %d, want %d at %d", seed, n, ms, waiting[first], first)
			}
		}
	}
}
