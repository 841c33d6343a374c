package xxljob

// Those who wait for the end of a run.

import (
	"maps"
	"slices"
	"sync"
)

// waiters are those of this process who wait for the ends of runs.
type waiters struct {
	mu sync.Mutex
	by map[int64][]chan Run // guarded by mu: by run
}

func newWaiters() *waiters { return &waiters{by: map[int64][]chan Run{}} }

// add returns a channel that gets the run when it has ended, if drop was not called before.
func (w *waiters) add(runID int64) chan Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := make(chan Run, 1)
	w.by[runID] = append(w.by[runID], c)
	return c
}

func (w *waiters) drop(runID int64, c chan Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := slices.DeleteFunc(w.by[runID], func(o chan Run) bool { return o == c })
	if len(rest) == 0 {
		delete(w.by, runID)
		return
	}
	w.by[runID] = rest
}

// runs are those that somebody waits for.
func (w *waiters) runs() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.by))
}

// notify tells those who wait for the run, once.
func (w *waiters) notify(r *Run) {
	w.mu.Lock()
	told := w.by[r.ID]
	delete(w.by, r.ID)
	w.mu.Unlock()
	for _, c := range told {
		c <- *r // has a buffer of one, and is sent to once
	}
}
