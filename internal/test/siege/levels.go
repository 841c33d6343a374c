//go:build unix

package siege

import (
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/test/siege/judge"
)

// levels are what the processes have told of themselves. They are safe for concurrent use.
type levels struct {
	mu                      sync.Mutex
	heap, total, goroutines []judge.Level    // guarded by mu: of the scheduler's process
	counts                  map[string]int64 // guarded by mu: of the hostile app, the last
	tooMany                 chan struct{}    // guarded by mu: closed when the heap is above surrender
	surrendered             bool             // guarded by mu
}

// news takes in what a child has told.
func (r *runner) news(m message) {
	l := &r.levels
	at := time.Since(r.began)
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Kind == kindCounts {
		l.counts = m.Counts
		return
	}
	l.heap = append(l.heap, judge.Level{At: at, Value: m.Heap})
	l.total = append(l.total, judge.Level{At: at, Value: m.Total})
	l.goroutines = append(l.goroutines, judge.Level{At: at, Value: m.Goroutines})
	if m.Heap > surrender && !l.surrendered {
		l.surrendered = true
		close(l.channel())
	}
}

// channel returns tooMany. Caller holds mu.
func (l *levels) channel() chan struct{} {
	if l.tooMany == nil {
		l.tooMany = make(chan struct{})
	}
	return l.tooMany
}

// tooMuch is closed when the live heap is above surrender.
func (l *levels) tooMuch() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.channel()
}

func (l *levels) all() (heap, goroutines []judge.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]judge.Level(nil), l.heap...), append([]judge.Level(nil), l.goroutines...)
}

// most are the greatest levels in a span.
func (l *levels) most(in judge.Span) (heap, total, goroutines int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return judge.Most(l.heap, in), judge.Most(l.total, in), judge.Most(l.goroutines, in)
}
