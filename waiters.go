package xxljob

// Those who wait for the end of a run, in the engine's books.

import "slices"

func (e *engine) addWaiter(runID int64) chan Run {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := make(chan Run, 1)
	e.waiters[runID] = append(e.waiters[runID], w)
	return w
}

func (e *engine) dropWaiter(runID int64, w chan Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	rest := slices.DeleteFunc(e.waiters[runID], func(o chan Run) bool { return o == w })
	if len(rest) == 0 {
		delete(e.waiters, runID)
		return
	}
	e.waiters[runID] = rest
}

// notify tells those who wait for the run, once.
func (e *engine) notify(r Run) {
	e.mu.Lock()
	waiters := e.waiters[r.ID]
	delete(e.waiters, r.ID)
	e.mu.Unlock()
	for _, w := range waiters {
		w <- r // has a buffer of one, and is sent to once
	}
}
