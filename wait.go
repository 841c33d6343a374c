package xxljob

// Those who wait for the end of a run. Comes in: calls of Wait. Goes out: runs that have
// ended, and refusals of handlers that would wait for themselves (waitself.go).

import (
	"context"
	"fmt"
	"time"
)

// waiter lets callers wait for the end of a run.
type waiter struct {
	*shared
	engine *engine
	self   *selfWait
}

// Wait registers before it reads, so that an end in between is not missed.
func (w *waiter) Wait(ctx context.Context, runID int64) (Run, error) {
	if ctx == nil {
		return Run{}, errNoContext
	}
	if w.life.stopped() {
		return Run{}, fmt.Errorf("xxljob: wait for run %d: %w", runID, ErrStopped)
	}
	told := w.engine.waiters.add(runID)
	defer func() { w.engine.waiters.drop(runID, told) }()
	look := time.NewTicker(watchPoll)
	defer look.Stop()
	over := w.life.over
	for {
		run, err := w.store.Run(ctx, runID)
		if err != nil || run.State.Ended() {
			return run, absent("wait", fmt.Sprintf("run %d", runID), err)
		}
		if err := w.self.waitsForItself(ctx, run); err != nil {
			return run, err
		}
		w.life.wakes.watch.poke()
		tick := look.C
		if poll, _ := w.store.Poll(); w.life.running() && poll == 0 {
			tick = nil // the watch loop hears of every end
		}
		select {
		case ended := <-told:
			if ended.State.Ended() {
				ended.JobName, ended.JobKey = run.JobName, run.JobKey // who has stored the end was not told them
				return ended, nil
			}
			told = w.engine.waiters.add(runID) // its record is gone: the store says so
		case <-tick:
		case <-over:
			over = nil // from here on look oneself: the run may be another node's
		case <-ctx.Done():
			return run, ctx.Err()
		}
	}
}
