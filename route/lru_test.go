package route

import (
	"slices"
	"testing"
	"time"
)

// modelLRU is LEAST_RECENTLY_USED by walking a map of the numbers of uses.
type modelLRU struct {
	since time.Time
	clock int
	used  map[string]int // 0: never
}

func (m *modelLRU) route(now time.Time, addrs []string) string {
	if m.used == nil {
		m.since, m.used = now, map[string]int{}
	}
	if now.Sub(m.since) >= 24*time.Hour {
		m.restart(now, addrs)
	}
	for a := range m.used {
		if !slices.Contains(addrs, a) {
			delete(m.used, a)
		}
	}
	oldest := addrs[0]
	for _, a := range addrs {
		if m.used[a] < m.used[oldest] {
			oldest = a
		}
	}
	m.clock++
	m.used[oldest] = m.clock
	return oldest
}

// restart makes it as if the addresses had been used in the order of the list,
// ending with the one used last.
func (m *modelLRU) restart(now time.Time, addrs []string) {
	last := ""
	for a, n := range m.used {
		if n == m.clock {
			last = a
		}
	}
	*m = modelLRU{since: now, used: map[string]int{}}
	var order []string
	for _, a := range addrs {
		if !slices.Contains(order, a) {
			order = append(order, a)
		}
	}
	if at := slices.Index(order, last); at >= 0 {
		order = append(order[at+1:], order[:at+1]...)
	}
	for _, a := range order {
		m.clock++
		m.used[a] = m.clock
	}
}

func TestLRUAgainstModel(t *testing.T) {
	rng := seeded(t)
	const jobs = 4
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := NewLRU(func() time.Time { return now })
	models := make([]modelLRU, jobs)
	addrs := someAddrs(rng, make([]string, 0, 8))
	for step := range 20000 {
		switch rng.IntN(40) {
		case 0:
			addrs = someAddrs(rng, addrs) // the same memory
		case 1:
			now = now.Add(time.Duration(rng.IntN(20)) * time.Hour)
		case 2:
			j := rng.Int64N(jobs)
			l.Forget(j)
			models[j] = modelLRU{}
		}
		j := rng.Int64N(jobs)
		got, want := mustRoute(t, l, j, addrs), models[j].route(now, addrs)
		if got != want {
			t.Fatalf("step %d: job %d of %v goes to %s, want %s", step, j, addrs, got, want)
		}
	}
}

func TestLRUTakesTheOneUnusedForLongest(t *testing.T) {
	l := NewLRU(nil)
	for i, step := range []struct {
		addrs []string
		want  string
	}{
		{[]string{"a", "b", "c"}, "a"},
		{[]string{"a", "b", "c"}, "b"},
		{[]string{"a", "b", "c"}, "c"},
		{[]string{"a", "b", "c"}, "a"},
		{[]string{"a", "b", "c", "d"}, "d"}, // never used
		{[]string{"a", "b", "c", "d"}, "b"},
		{[]string{"a", "c"}, "c"},
		{[]string{"a", "c"}, "a"},
		{[]string{"b", "a", "c"}, "b"}, // left and came back
		{[]string{"c", "b", "a"}, "c"}, // the order of the list does not matter
		{[]string{"c", "b", "a"}, "a"},
	} {
		if got := mustRoute(t, l, 1, step.addrs); got != step.want {
			t.Fatalf("step %d: %s of %v, want %s", i, got, step.addrs, step.want)
		}
	}
}

func TestLRUDailyJobGoesRound(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := NewLRU(func() time.Time { return now })
	addrs, seen := addresses(3), map[string]int{}
	for range 9 {
		seen[mustRoute(t, l, 1, addrs)]++
		now = now.Add(24 * time.Hour)
	}
	for _, a := range addrs {
		if seen[a] != 3 {
			t.Errorf("%v, want three each", seen)
		}
	}
}

func TestLRUBoundsWhatItRemembers(t *testing.T) {
	l := NewLRU(nil)
	l.jobs = newBounded[*recency](100, 50)
	for jobID := range int64(1000) {
		mustRoute(t, l, jobID, addresses(10))
	}
	if n := len(l.jobs.entries); n != 5 || l.jobs.weight != 50 {
		t.Errorf("%d jobs of weight %d remembered, want 5 of 50", n, l.jobs.weight)
	}
}
