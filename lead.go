package xxljob

// How long before its time a run is marked started.

import (
	"sync"
	"time"
)

// lead is how long before its time a run is marked started: twice what the
// store's answers take, at most maxLead.
type lead struct {
	mu   sync.Mutex
	took time.Duration // guarded by mu: a moving average
}

func (l *lead) sample(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took += (took - l.took) / 8
}

func (l *lead) get() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.took < time.Millisecond/2 {
		return 0 // a store in memory: nothing to make up for
	}
	return min(2*l.took, maxLead)
}
