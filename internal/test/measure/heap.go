package measure

import (
	"runtime/metrics"
	"time"
)

// HeapWatch looks at the heap of this process over and over, and remembers the most that it
// has seen.
type HeapWatch struct {
	stop chan struct{}
	done chan uint64
}

// WatchHeap begins to look, now and then once in every interval, which has to be positive. The
// caller has to call Stop.
func WatchHeap(every time.Duration) *HeapWatch {
	w := &HeapWatch{stop: make(chan struct{}), done: make(chan uint64, 1)}
	go w.watch(every) // until Stop, which waits for it
	return w
}

func (w *HeapWatch) watch(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	most := Heap()
	for {
		select {
		case <-t.C:
			most = max(most, Heap())
		case <-w.stop:
			w.done <- max(most, Heap())
			return
		}
	}
}

// Stop ends the watch and returns the most bytes of objects that were seen, garbage that was
// not yet swept included. It must be called once.
func (w *HeapWatch) Stop() uint64 {
	close(w.stop)
	return <-w.done
}

// Heap is how many bytes of objects the heap of this process has, garbage that is not yet
// swept included. It does not stop the world.
func Heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}
