package judge

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Outcome is what became of a request.
type Outcome uint8

const (
	// OK was answered with code 200.
	OK Outcome = iota
	// Refused was answered with another code, or another status.
	Refused
	// TimedOut was not answered within the time that its sender waits.
	TimedOut
	// Broken is a connection that failed.
	Broken
)

// Sample is one request: when it was due, and when what became of it was known. A request
// that its sender could not send in time counts from when it was due.
type Sample struct {
	From, To time.Duration
	Outcome  Outcome
}

// Span is a part of the run: From <= t < To.
type Span struct{ From, To time.Duration }

// meets reports whether a sample has any moment in common with the span.
func (s Span) meets(x Sample) bool { return x.From < s.To && x.To >= s.From }

// Series collects the samples of one kind of request. It is safe for concurrent use; its
// zero value is empty.
type Series struct {
	mu      sync.Mutex
	samples []Sample // guarded by mu
}

// Add adds a sample.
func (s *Series) Add(x Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = append(s.samples, x)
}

// Summary sums up the samples that were due in a span, but for those that meet one of the
// spans to leave out.
func (s *Series) Summary(in Span, except ...Span) Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	return summarize(s.samples, func(x Sample) bool {
		return x.From >= in.From && x.From < in.To && !slices.ContainsFunc(except, func(e Span) bool { return e.meets(x) })
	})
}

// Within sums up the samples that meet one of the spans.
func (s *Series) Within(spans ...Span) Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	return summarize(s.samples, func(x Sample) bool {
		return slices.ContainsFunc(spans, func(e Span) bool { return e.meets(x) })
	})
}

// Summary is what is said of many samples. The percentiles are of all of them, whatever
// became of them: who is refused at once has not been served quickly, and is counted
// beside, and who waits in vain has waited.
type Summary struct {
	N                         int
	P50, P99, Max             time.Duration
	Refused, TimedOut, Broken int
}

// Bad is how many were not answered with 200.
func (s Summary) Bad() int { return s.Refused + s.TimedOut + s.Broken }

func summarize(samples []Sample, chosen func(Sample) bool) Summary {
	var sum Summary
	var took []time.Duration
	for _, x := range samples {
		if !chosen(x) {
			continue
		}
		took = append(took, x.To-x.From)
		switch x.Outcome {
		case Refused:
			sum.Refused++
		case TimedOut:
			sum.TimedOut++
		case Broken:
			sum.Broken++
		}
	}
	slices.Sort(took)
	sum.N, sum.P50, sum.P99, sum.Max = len(took), percentile(took, 0.50), percentile(took, 0.99), percentile(took, 1)
	return sum
}

// percentile is the least of the sorted values that at least p of them do not exceed, zero
// where there are none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(int(math.Ceil(p*float64(len(sorted))))-1, 0)]
}
