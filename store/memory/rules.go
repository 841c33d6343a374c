package memory

import (
	"context"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// The two rules for a job whose run has ended. Every transaction that ends runs
// follows them, through end and stopFinished.

// rearm makes the job, whose awaited run ended at the given time, due again. A
// job whose schedule has no delay any more is left without a next instant.
func (s *Store) rearm(j *job, ended int64) {
	j.unindex()
	j.waitRun = 0
	if j.delay > 0 {
		j.next = ended + j.delay.Milliseconds()
	}
	j.index()
	s.tellScan(j)
}

// finished reports whether nothing will come of the schedule any more. Nothing
// is to come of a manual one.
func (j *job) finished() bool {
	return !j.removed && !j.unscheduled() && j.next == noTime && j.waitRun == 0 && j.open == 0
}

// stopFinished stops the job if it is finished. Its version stays: nobody has
// changed it.
func (s *Store) stopFinished(ctx context.Context, j *job, now int64) {
	if j.finished() {
		s.stop(ctx, j, xxljob.StopFinished, now)
	}
}

// stop is a stop by the scheduler itself.
func (s *Store) stop(ctx context.Context, j *job, reason string, now int64) {
	j.unindex()
	j.stopped, j.stopReason, j.updated = true, reason, now
	j.index()
	j.note(ctx, "stop", fromMilli(now))
}

// Sweep stops what Finish would call finished: jobs that were added or edited
// to have no next instant. It finds none to arm again, for here no job waits for
// a run that has ended: the transaction that ended it has seen to that, and only
// ended runs are dropped.
func (s *Store) Sweep(ctx context.Context, shards []store.Shard) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	now := toMilli(clock())
	for _, q := range shards {
		sh := s.fenced(q.ID, q.Epoch)
		if sh == nil {
			continue
		}
		for i := len(sh.idle.members) - 1; i >= 0; i-- {
			s.stopFinished(ctx, sh.idle.members[i], now)
		}
	}
	return nil
}
