//go:build unix

package siege

import (
	"context"
	"sync"
	"time"
)

// every calls f at once and then each period until ctx ends. A period in which f is still
// busy is left out.
func every(ctx context.Context, period time.Duration, f func()) {
	t := time.NewTicker(period)
	defer t.Stop()
	for {
		f()
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// paced has n connections take turns until ctx ends, so that together they act at a rate,
// which is a second's. One that is still busy when its turn has come misses it.
func paced(ctx context.Context, n int, rate float64, act func(i int)) {
	if n == 0 || rate == 0 {
		return
	}
	turn := time.Duration(float64(time.Second) / rate)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if pause(ctx, time.Duration(i)*turn) {
				every(ctx, time.Duration(n)*turn, func() { act(i) })
			}
		})
	}
	all.Wait()
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
