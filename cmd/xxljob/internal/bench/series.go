package bench

import (
	"time"

	"github.com/xxljob/xxljob/internal/test/measure"
)

// Second is one second of what was measured.
type Second struct {
	// Completed is how many runs were recorded as succeeded in it.
	Completed int `json:"completed"`
	// Called is how many handlers were called in it; P50 and P99 say how late they were, in
	// milliseconds.
	Called int     `json:"called"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
}

// series counts by the second what happens from one time to another.
type series struct {
	from, to  time.Time
	completed []int
	late      [][]int32
}

// newSeries counts from and to, the latter excluded. A second that was begun is one.
func newSeries(from, to time.Time) *series {
	n := int((to.Sub(from) + second - 1) / second)
	return &series{from: from, to: to, completed: make([]int, n), late: make([][]int32, n)}
}

// index is the second of a time; false where that is outside.
func (s *series) index(at time.Time) (int, bool) {
	if at.Before(s.from) || !at.Before(s.to) {
		return 0, false
	}
	return int(at.Sub(s.from) / second), true
}

func (s *series) ended(at time.Time) {
	if i, ok := s.index(at); ok {
		s.completed[i]++
	}
}

func (s *series) called(at time.Time, late int32) {
	if i, ok := s.index(at); ok {
		s.late[i] = append(s.late[i], late)
	}
}

// seconds are all of them, those in which nothing happened too. It sorts what it has.
func (s *series) seconds() []Second {
	out := make([]Second, len(s.completed))
	for i := range out {
		p := measure.NewDistribution(s.late[i]).Percentiles()
		out[i] = Second{Completed: s.completed[i], Called: len(s.late[i]), P50: p.P50, P99: p.P99}
	}
	return out
}

// total is how many were completed.
func (s *series) total() int {
	n := 0
	for _, c := range s.completed {
		n += c
	}
	return n
}

// thirds are the completed runs a second of the first and of the last third of the seconds.
func thirds(all []Second) (first, last float64) {
	n := max(len(all)/3, 1)
	if len(all) < n {
		return 0, 0
	}
	return perSecond(all[:n]), perSecond(all[len(all)-n:])
}

func perSecond(all []Second) float64 {
	n := 0
	for _, s := range all {
		n += s.Completed
	}
	return float64(n) / float64(len(all))
}
