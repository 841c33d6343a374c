package interop_test

import (
	"fmt"
	"sync"
	"time"
)

// Peers of others keep real time, and so does what is expected of them. Where the machine
// itself stands still for seconds, a failure is to say so: it looks like a fault of
// whoever was waiting.

// stalls are times in which this process did not run though it wanted to.
var stalls stallLog

type stallLog struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

// watch notes every stall of more than a second, for as long as the process lives.
func (l *stallLog) watch() {
	const beat = 100 * time.Millisecond
	for last := time.Now(); ; {
		time.Sleep(beat)
		now := time.Now()
		if late := now.Sub(last) - beat; late > time.Second {
			l.mu.Lock()
			l.list = append(l.list, fmt.Sprintf("%v before %s", late.Round(100*time.Millisecond), now.Format("15:04:05")))
			l.mu.Unlock()
		}
		last = now
	}
}

// String is what to add to a failure: nothing where there was no stall.
func (l *stallLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) == 0 {
		return ""
	}
	return fmt.Sprintf("\nthis process stood still for %v", l.list)
}
