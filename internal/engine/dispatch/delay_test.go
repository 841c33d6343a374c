package dispatch

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/internal/engine/queue"
)

// TestEarlyFlights: flights come out at their time, the earliest first, and none before.
func TestEarlyFlights(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var e delayQueue
	var waiting []int64 // the model
	now := int64(0)
	for range 20_000 {
		if r.IntN(3) > 0 {
			at := now + r.Int64N(50)
			sooner := len(waiting) == 0 || at < slices.Min(waiting)
			if e.add(&queue.Flight{Destination: &queue.Destination{}, Run: compact.Started{Planned: compact.Planned{At: at}}}) != sooner {
				t.Fatalf("at %d a flight at %d came before the others: %t, want %t", now, at, !sooner, sooner)
			}
			waiting = append(waiting, at)
			continue
		}
		now += r.Int64N(10)
		slices.Sort(waiting)
		n, _ := slices.BinarySearch(waiting, now+1)
		var got []int64
		for _, f := range e.pop(time.UnixMilli(now)) {
			got = append(got, f.Run.Planned.Scheduled().UnixMilli())
		}
		if !slices.Equal(got, waiting[:n]) {
			t.Fatalf("at %d came %v, want %v", now, got, waiting[:n])
		}
		waiting = slices.Delete(waiting, 0, n)
		if next, any := e.next(); any != (len(waiting) > 0) || any && next.UnixMilli() != waiting[0] {
			t.Fatalf("the next comes at %v, want %v", next, waiting)
		}
	}
}
