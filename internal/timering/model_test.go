package timering_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/timering"
)

// slowRing is what a TimeRing promises, as plainly as it can be written: a
// sorted slice.
type slowRing []slowEntry

type slowEntry struct {
	at time.Time
	id int64
}

func (r *slowRing) push(at time.Time, id int64) {
	*r = append(*r, slowEntry{at, id})
	slices.SortStableFunc(*r, func(a, b slowEntry) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id))
	})
}

func (r *slowRing) pop(now time.Time) (due []int64) {
	for len(*r) > 0 && !(*r)[0].at.After(now) {
		due = append(due, (*r)[0].id)
		*r = (*r)[1:]
	}
	return due
}

// TestRingAgainstModel pushes and pops at random: times of the next second, of
// the next minute, beyond it, and past ones; a clock that creeps, stalls for
// minutes and goes backwards. The ring returns what the sorted slice returns.
func TestRingAgainstModel(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds /= 10 // it all happens on one goroutine
	}
	for range rounds {
		seed := rand.Uint64()
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { ringAgainstModel(t, seed) }) {
			return
		}
	}
}

func ringAgainstModel(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	ring, model := timering.New(), slowRing{}
	// Also before 1970, where the milliseconds are negative.
	now := time.UnixMilli(r.Int64N(4e12) - 1e12).UTC()
	id := int64(0)
	times := map[int64]time.Time{}
	for step := range 400 {
		for range r.IntN(6) {
			id++
			at := now.Add(randomDistance(r)).Truncate(time.Millisecond)
			ring.Push(at, id)
			model.push(at, id)
			times[id] = at
		}
		if ring.Len() != len(model) {
			t.Fatalf("step %d: Len is %d, want %d", step, ring.Len(), len(model))
		}
		switch r.IntN(20) {
		case 0:
			now = now.Add(time.Duration(r.Int64N(int64(10 * time.Minute)))) // a stall
		case 1:
			now = now.Add(-time.Duration(r.Int64N(int64(2 * time.Minute))))
		default:
			now = now.Add(time.Duration(r.Int64N(int64(1500 * time.Millisecond))))
		}
		samePop(t, fmt.Sprintf("step %d: Pop(%v)", step, now), ring.Pop(now), model.pop(now), times)
	}
	now = now.Add(24 * time.Hour)
	samePop(t, "the last Pop", ring.Pop(now), model.pop(now), times)
	if n := ring.Len(); n != 0 {
		t.Errorf("%d runs are left", n)
	}
}

// samePop compares what was popped: the same runs, the earliest first. Runs of
// one millisecond may come in any order.
func samePop(t *testing.T, what string, got, want []int64, times map[int64]time.Time) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s returns %v, want %v", what, got, want)
	}
	for i := range want {
		if !times[got[i]].Equal(times[want[i]]) {
			t.Fatalf("%s: number %d is run %d of %v, want one of %v", what, i, got[i], times[got[i]], times[want[i]])
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%s returns, sorted, %v, want %v", what, got, want)
	}
}

func randomDistance(r *rand.Rand) time.Duration {
	switch r.IntN(5) {
	case 0:
		return -time.Duration(r.Int64N(int64(3 * time.Minute)))
	case 1:
		return time.Duration(r.Int64N(int64(time.Second)))
	case 2:
		return time.Duration(r.Int64N(int64(time.Hour)))
	case 3:
		return 0
	}
	return time.Duration(r.Int64N(int64(time.Minute)))
}

// TestRingCatchesUp stalls for lengths around the size of the ring and far
// beyond: one Pop returns everything that is due, in order of time, and nothing
// that is not.
func TestRingCatchesUp(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 30, 250e6, time.UTC)
	for _, stall := range []time.Duration{
		0, time.Millisecond, time.Second, 59 * time.Second, 60 * time.Second, 61 * time.Second,
		2 * time.Minute, 2*time.Minute + 749*time.Millisecond, time.Hour, 1000 * time.Hour,
	} {
		ring := timering.New()
		ring.Pop(start)
		// One run for each second of the stall, at most an hour of them, and one
		// that is not due.
		end := start.Add(stall)
		var want []int64
		for id := int64(0); id < 3600; id++ {
			at := start.Add(time.Duration(id) * time.Second)
			ring.Push(at, id)
			if !at.After(end) {
				want = append(want, id)
			}
		}
		ring.Push(end.Add(time.Millisecond), 9999)
		if got := ring.Pop(end); !slices.Equal(got, want) {
			t.Errorf("after %v: %d runs, want %d; in order: %t", stall, len(got), len(want), slices.IsSorted(got))
		}
		if got := ring.Pop(end.Add(time.Millisecond)); !slices.Contains(got, 9999) {
			t.Errorf("after %v and a millisecond: %v", stall, got)
		}
	}
}

// TestRingIsExact is the promise to the millisecond: nothing at 12:00:04.999,
// the run at 12:00:05.
func TestRingIsExact(t *testing.T) {
	ring := timering.New()
	at := time.Date(2026, 3, 1, 12, 0, 5, 0, time.UTC)
	ring.Push(at, 7)
	if got := ring.Pop(at.Add(-time.Millisecond)); len(got) != 0 {
		t.Errorf("a millisecond before: %v", got)
	}
	if got := ring.Pop(at); !slices.Equal(got, []int64{7}) {
		t.Errorf("at its time: %v", got)
	}
	if got := ring.Pop(at); len(got) != 0 || ring.Len() != 0 {
		t.Errorf("again: %v, Len %d", got, ring.Len())
	}
}

// TestRingTakesLateRuns pushes a run whose second the ring has passed already,
// also while the clock stands behind: it is due at the next Pop, not a minute
// later.
func TestRingTakesLateRuns(t *testing.T) {
	ring := timering.New()
	now := time.Date(2026, 3, 1, 12, 0, 5, 0, time.UTC)
	ring.Pop(now)
	ring.Push(now.Add(-time.Hour), 1)
	ring.Push(now.Add(-time.Second), 2)
	back := now.Add(-10 * time.Minute)
	if got := ring.Pop(back); !slices.Equal(got, []int64{1}) {
		t.Errorf("ten minutes back: %v", got)
	}
	if got := ring.Pop(now); !slices.Equal(got, []int64{2}) {
		t.Errorf("now: %v", got)
	}
}

// TestRingConcurrently pushes and pops from many goroutines: each run comes out
// once, and none before its time.
func TestRingConcurrently(t *testing.T) {
	const pushers, each = 8, 2000
	ring := timering.New()
	base := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(id int64) time.Time { return base.Add(time.Duration(id*7919%180_000) * time.Millisecond) }
	var push, pop sync.WaitGroup
	var mu sync.Mutex
	seen := map[int64]int{}
	take := func(now time.Time) {
		for _, id := range ring.Pop(now) {
			if at(id).After(now) {
				t.Errorf("run %d of %v popped at %v", id, at(id), now)
			}
			mu.Lock()
			seen[id]++
			mu.Unlock()
		}
		_ = ring.Len()
	}
	for p := range int64(pushers) {
		push.Go(func() {
			for i := range int64(each) {
				id := p*each + i
				ring.Push(at(id), id)
			}
		})
		pop.Go(func() {
			for i := range 200 {
				take(base.Add(time.Duration(i) * time.Second))
			}
		})
	}
	push.Wait()
	pop.Wait()
	take(base.Add(time.Hour))
	for id := range int64(pushers * each) {
		if seen[id] != 1 {
			t.Fatalf("run %d was popped %d times", id, seen[id])
		}
	}
	if ring.Len() != 0 {
		t.Errorf("Len is %d", ring.Len())
	}
}

// BenchmarkRing pushes a run and pops one, with a million on the ring: spread
// over five seconds as a pre-read leaves them, where two hundred are due in the
// same millisecond, and a millisecond apart, where each comes alone.
func BenchmarkRing(b *testing.B) {
	const entries = 1_000_000
	for _, gap := range []time.Duration{5 * time.Microsecond, time.Millisecond} {
		b.Run(fmt.Sprintf("gap=%v", gap), func(b *testing.B) {
			ring := timering.New()
			base := time.UnixMilli(1_772_000_000_000)
			at := func(i int) time.Time { return base.Add(time.Duration(i) * gap) }
			for i := range entries {
				ring.Push(at(i), int64(i))
			}
			popped := 0
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				ring.Push(at(entries+i), int64(entries+i))
				popped += len(ring.Pop(at(i)))
			}
			b.StopTimer()
			if popped < b.N {
				b.Errorf("%d runs were popped, want %d or more", popped, b.N)
			}
		})
	}
}

// TestRingOrderAfterStall: after a stall of a minute or more the runs come out in
// the order of their times, not in that of the slots.
func TestRingOrderAfterStall(t *testing.T) {
	ring := timering.New()
	base := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ring.Pop(base)
	ring.Push(base.Add(1*time.Second), 1)
	ring.Push(base.Add(50*time.Second), 2)
	if got := ring.Pop(base.Add(100 * time.Second)); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("after a stall of 100 s: %v, want [1 2]", got)
	}
}
