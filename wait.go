package xxljob

// Those who wait for the end of a run, and those who would wait for themselves. Comes
// in: calls of Wait, from handlers of this process too. Goes out: runs that have ended.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/internal/inside"
)

// ErrWaitsForItself: a handler has called Wait for a run that cannot end, or not begin,
// before its own has ended.
var ErrWaitsForItself = errors.New("xxljob: a handler cannot wait for itself")

// watchPoll is how often Wait looks by itself.
const watchPoll = time.Second

// Wait registers before it reads, so that an end in between is not missed.
func (s *scheduler) Wait(ctx context.Context, runID int64) (Run, error) {
	if ctx == nil {
		return Run{}, errNoContext
	}
	if s.stopped() {
		return Run{}, fmt.Errorf("xxljob: wait for run %d: %w", runID, ErrStopped)
	}
	w := s.engine.addWaiter(runID)
	defer func() { s.engine.dropWaiter(runID, w) }()
	look := time.NewTicker(watchPoll)
	defer look.Stop()
	over := s.life.over
	for {
		run, err := s.store.Run(ctx, runID)
		if err != nil || run.State.Ended() {
			return run, absent("wait", fmt.Sprintf("run %d", runID), err)
		}
		if err := s.waitsForItself(ctx, run); err != nil {
			return run, err
		}
		s.watchWake.poke()
		tick := look.C
		if poll, _ := s.store.Poll(); s.running() && poll == 0 {
			tick = nil // the watch loop hears of every end
		}
		select {
		case run := <-w:
			if run.State.Ended() {
				return run, nil
			}
			w = s.engine.addWaiter(runID) // its record is gone: the store says so
		case <-tick:
		case <-over:
			over = nil // from here on look oneself: the run may be another node's
		case <-ctx.Done():
			return run, ctx.Err()
		}
	}
}

// waitsForItself refuses a handler of this node that waits for its own run, or for one
// that is or may be queued behind it: a planned run of the same serial job, unless it was
// triggered for other addresses. Where there are several addresses such a run may go to
// another one; whether it does, only its start tells, and by then this handler hangs.
func (s *scheduler) waitsForItself(ctx context.Context, run Run) error {
	caller, ok := inside.From(ctx)
	if !ok || caller.JobID != run.JobID {
		return nil
	}
	// Another scheduler of the process may have a run of the same id.
	own := s.engine.flight(caller.RunID)
	if own == nil || any(own.exec) != caller.Executor {
		return nil
	}
	if run.ID == caller.RunID {
		return fmt.Errorf("xxljob: wait for run %d, which is the caller's own: %w", run.ID, ErrWaitsForItself)
	}
	elsewhere := len(run.Addresses) > 0 && !slices.Contains(run.Addresses, own.run.Address)
	sibling := run.TriggerID == own.run.TriggerID // parts of one broadcast do not queue behind each other
	if run.State != StatePlanned || elsewhere || sibling {
		return nil
	}
	job, err := s.store.Job(ctx, run.JobID)
	switch {
	case isNotFound(err):
		return nil // its planned runs are cancelled
	case err != nil:
		return fmt.Errorf("xxljob: wait for run %d: %w", run.ID, err)
	case job.Block != block.SerialExecution:
		return nil
	}
	return fmt.Errorf("xxljob: wait for run %d, which is queued behind the caller's own, %d, of the serial job %d %q: %w",
		run.ID, caller.RunID, job.ID, shorten(job.Name, 40), ErrWaitsForItself)
}
