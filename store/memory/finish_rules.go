package memory

// The two rules for a job whose run has ended. Every transaction that ends runs
// follows them, through end and stopFinished.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// rearm makes the job, whose awaited run ended at the given time, due again. A
// job whose schedule has no delay any more, or whose bounds leave no instant, is left
// without a next one.
func (s *Store) rearm(j *job, ended int64) {
	j.unindex()
	j.waitRun = 0
	delay := j.delay()
	next := ended + delay.Milliseconds()
	if last := j.def.notAfter(); delay > 0 && !j.usedUp() && (last.IsZero() || next <= toMilli(last)) {
		j.next = next
	}
	j.index()
	s.tellScan(j)
}

// delay is that of a FixedDelay schedule, else zero. An invalid one re-arms nothing.
func (j *jobState) delay() (d time.Duration) {
	if s := j.def.schedule(); s.Type == schedule.TypeFixDelay {
		d, _ = s.Every()
	}
	return d
}

// usedUp reports whether the schedule has made all of its runs.
func (j *jobState) usedUp() bool {
	most := j.def.common.Value().maxRuns
	return most > 0 && j.made >= most
}

// finished reports whether nothing will come of the schedule any more. Nothing
// is to come of a manual one.
func (j *job) finished() bool {
	return !j.removed && !j.unscheduled() && j.next == noTime && j.waitRun == 0 && j.open == 0
}

// stopFinished stops the job if it is finished, and reports whether it was. Its version
// stays: nobody has changed it.
func (s *Store) stopFinished(ctx context.Context, j *job, now int64) bool {
	finished := j.finished()
	if finished {
		s.stop(ctx, j, j.finishedBy(), now)
	}
	return finished
}

// finishedBy is the reason of a job that is stopped for being finished.
func (j *jobState) finishedBy() string {
	if j.usedUp() {
		return store.StopFinished + store.ByMaxRuns
	}
	if j.def.notAfter().IsZero() {
		return store.StopFinished
	}
	if later, err := j.def.schedule().Next(j.def.notAfter()); err != nil || later.IsZero() {
		return store.StopFinished
	}
	return store.StopFinished + store.ByNotAfter
}

// uncount takes a run that is cancelled out of what its job, which is stopped, has made.
// An edit of the job sees to that itself. A kill of a run whose job is not stopped is
// somebody's who does not want the run made up for.
func (s *Store) uncount(r *run) {
	if j := r.job; r.counts() && j.unscheduled() {
		j.made--
	}
}

// counts reports whether a run that has not begun is one of those that its job has made. A
// part of a broadcast is none: that has begun.
func (r *run) counts() bool {
	return r.Type.ScheduleBorn() && r.count == r.job.count && r.extra().sharding == store.Sharding{}
}

// stop is a stop by the scheduler itself.
func (s *Store) stop(ctx context.Context, j *job, reason string, now int64) {
	reason = store.PlainText(reason)
	j.unindex()
	j.stopped, j.stopReason, j.updated = true, reason, now
	j.index()
	s.noteStop(j, reason, fromMilli(now))
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
	now := toMilli(s.clock())
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
