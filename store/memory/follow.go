package memory

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

// What follows the end of a run, in the transaction that ends it.

// ending is how a run ends.
type ending struct {
	state store.State
	after time.Duration // see store.Result
}

// conclude ends a run, inserts the one that follows it, and goes by the rules for its job. It
// returns the run, with what its end did to the job.
func (s *Store) conclude(ctx context.Context, r *run, by ending, now int64) (out store.Run) {
	s.concludeTo(ctx, &out, r, by, now)
	return out
}

// concludeTo is conclude that puts the run into one that is empty.
func (s *Store) concludeTo(ctx context.Context, out *store.Run, r *run, by ending, now int64) {
	j := r.job
	switch by.state {
	case store.StateSucceeded:
		s.succeed(r, now)
	case store.StateSnoozed:
		if r.snapshot().SnoozedTooOften(j.mayFollow()) {
			by.state, r.NoRetry, r.HandleMsg = store.StateFailed, true, store.TooManySnoozes
		}
		s.follow(r, by, now)
	case store.StateFailed, store.StateTimedOut, store.StateRefused, store.StateLost:
		s.follow(r, by, now)
	}
	s.endTo(out, r, by.state, now)
	out.StoppedJob = s.stopFinished(ctx, j, now)
}

// mayFollow is the job as store.Run.Follow wants it.
func (j *job) mayFollow() *store.Job {
	if j.removed {
		return nil
	}
	def := j.snapshot()
	return &def
}

// follow inserts the run that follows one which is about to end.
func (s *Store) follow(r *run, by ending, now int64) {
	j := r.job
	ended := r.snapshot()
	ended.State, ended.Ended = by.state, fromMilli(now)
	next, note := ended.Follow(j.mayFollow(), by.after, r.first.since(), s.retention)
	r.say(note)
	if next.JobID == 0 {
		return
	}
	f := s.newRun(j)
	r.followed = true
	next.Created = fromMilli(now)
	f.keep(&next)
	f.foreign = true
	s.insertRun(f)
	if j.waitRun == r.ID {
		j.waitRun = f.ID
	}
	s.tellScan(j)
}

// since is when the run was inserted or, where it was kept apart, when its time to move came.
func (r *run) since() time.Time {
	if moved := fromMilli(r.extra().move); moved.After(r.createdAt()) {
		return moved
	}
	return r.createdAt()
}

// latest is the newest run of the trigger, and of the same part of it, that has not ended; the
// run itself where all have.
func (r *run) latest() *run {
	for x := r.job.runs.tail; x != nil && x.ID > r.ID; x = x.links[ofJob].prev {
		if x.TriggerID == r.TriggerID && x.extra().sharding == r.extra().sharding && !x.State.Ended() {
			return x
		}
	}
	return r
}

// KnowRetention is store.RetentionAware: nothing follows a run whose trigger is older, as in a
// store that drops runs by their age.
func (s *Store) KnowRetention(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d > 0 && (s.retention == 0 || d < s.retention) {
		s.retention = d
	}
}

// Tree returns the runs of a run's trigger.
func (s *Store) Tree(ctx context.Context, runID int64) ([]store.Run, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r := s.runs.find(runID)
	if r == nil {
		return nil, failed(store.ErrNotFound, "run %d", runID)
	}
	var tree []store.Run
	first := s.runs.find(r.TriggerID)
	if first == nil {
		first = r.job.runs.head
	}
	for x := first; x != nil && len(tree) < store.MostTree; x = x.links[ofJob].next {
		if x.TriggerID == r.TriggerID {
			tree = append(tree, x.read())
		}
	}
	return tree, nil
}
