package route

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// modelLFU is LEAST_FREQUENTLY_USED by walking a map.
type modelLFU struct {
	since  time.Time
	counts map[string]int
	intn   func(int) int
}

func (m *modelLFU) route(now time.Time, addrs []string) string {
	if m.counts == nil || now.Sub(m.since) >= 24*time.Hour {
		m.since, m.counts = now, map[string]int{}
	}
	for a := range m.counts {
		if !slices.Contains(addrs, a) {
			delete(m.counts, a)
		}
	}
	least := addrs[0]
	for _, a := range addrs {
		if _, ok := m.counts[a]; !ok {
			m.counts[a] = m.intn(len(addrs))
		}
		if m.counts[a] < m.counts[least] {
			least = a
		}
	}
	m.counts[least]++
	return least
}

// someAddrs returns up to seven addresses of a few, some perhaps twice, in
// buf's memory.
func someAddrs(rng *rand.Rand, buf []string) []string {
	buf = buf[:0]
	for range 1 + rng.IntN(7) {
		buf = append(buf, "http://"+strconv.Itoa(rng.IntN(9)))
	}
	return buf
}

func TestLFUAgainstModel(t *testing.T) {
	rng := seeded(t)
	const jobs = 4
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := NewLFU(func() time.Time { return now })
	var draws [2]*rand.Rand // the same sequence for both sides
	for i := range draws {
		draws[i] = rand.New(rand.NewPCG(1, 2))
	}
	l.intn = draws[0].IntN
	models := make([]modelLFU, jobs)
	for i := range models {
		models[i].intn = draws[1].IntN
	}
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
			models[j].counts = nil
		}
		j := rng.Int64N(jobs)
		got, want := mustRoute(t, l, j, addrs), models[j].route(now, addrs)
		if got != want {
			t.Fatalf("step %d: job %d of %v goes to %s, want %s", step, j, addrs, got, want)
		}
	}
}

func TestLFUStartsAtRandomBelowTheNumberOfAddresses(t *testing.T) {
	addrs, seen := addresses(3), map[string]bool{}
	l := NewLFU(nil)
	for jobID := range int64(200) {
		seen[mustRoute(t, l, jobID, addrs)] = true
		e, _ := l.jobs.get(jobID)
		for _, tl := range e.state.heap {
			if tl.count < 0 || tl.count > 3 { // below 3, and one used
				t.Fatalf("job %d: count %d", jobID, tl.count)
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("200 jobs began at %v only", seen)
	}
}

func TestLFUCountsRestartTogetherAboveAMillion(t *testing.T) {
	addrs := addresses(3)
	l := NewLFU(nil)
	mustRoute(t, l, 1, addrs)
	e, _ := l.jobs.get(1)
	f := e.state
	for i := range f.heap {
		f.heap[i].count = maxCount - 2
	}
	seen := map[string]int{}
	for range 30 {
		seen[mustRoute(t, l, 1, addrs)]++
	}
	for _, a := range addrs {
		if seen[a] != 10 {
			t.Errorf("%v, want ten each", seen)
		}
	}
	if c := f.heap[0].count; c > 30 {
		t.Errorf("the least count is %d: it did not restart", c)
	}
}

func TestLFUBoundsWhatItRemembers(t *testing.T) {
	l := NewLFU(nil)
	l.jobs = newBounded[*frequency](100, 50)
	for jobID := range int64(1000) {
		mustRoute(t, l, jobID, addresses(10))
	}
	if n := len(l.jobs.entries); n != 5 || l.jobs.weight != 50 {
		t.Errorf("%d jobs of weight %d remembered, want 5 of 50", n, l.jobs.weight)
	}
}
