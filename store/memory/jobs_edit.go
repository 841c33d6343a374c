package memory

// Changes of jobs.

import (
	"context"
	"reflect"
	"time"

	"github.com/xxljob/xxljob/store"
)

// EditJob changes one job. edit.Change and edit.Next are called before anything
// is written, so that an error or a panic in them changes nothing.
func (s *Store) EditJob(ctx context.Context, id int64, edit store.Edit) (store.Job, error) {
	if err := s.begin(ctx); err != nil {
		return store.Job{}, err
	}
	defer s.done()
	j := s.live(id)
	if j == nil {
		return store.Job{}, failed(store.ErrNotFound, "%s job %d", edit.Verb, id)
	}
	if edit.Version != 0 && edit.Version != j.version {
		return store.Job{}, failed(store.ErrConflict, "%s job %d: version %d, not %d", edit.Verb, id, j.version, edit.Version)
	}
	if !s.guarded(j, edit.Guard) {
		return store.Job{}, failed(store.ErrSuperseded, "%s job %d", edit.Verb, id)
	}
	before := j.snapshot()
	after, replan, err := changed(before, j.snapshot(), edit)
	if err != nil {
		return store.Job{}, err
	}
	if !replan && reflect.DeepEqual(before, after) {
		return before, nil
	}
	if err := store.CheckTexts("job", after); err != nil {
		return store.Job{}, failed(err, "%s job %d", edit.Verb, id)
	}
	if err := s.keyFree(&after); err != nil {
		return store.Job{}, failed(err, "%s job %d: key %q of %q", edit.Verb, id, after.Key, after.App)
	}
	now := s.clock()
	after.GlueUpdated = glueUpdated(before, after, now)
	after.Version, after.Updated = before.Version+1, now
	if replan {
		after.Runs = j.madeWithout(before.Schedule != after.Schedule)
		if after, err = replanned(after, edit, fromMilli(j.startedFor), now); err != nil {
			return store.Job{}, err
		}
	}
	record, missed := missedBy(before, edit, replan, now)
	if missed {
		inserted := s.insertRecord(j, &record, now)
		if edit.Recorded != nil {
			*edit.Recorded = inserted
		}
	}
	s.redefine(ctx, j, &before, &after, edit.Verb, replan)
	return j.snapshot(), nil
}

// changed applies edit.Change to a copy of the job; what is the store's stays.
func changed(before, after store.Job, edit store.Edit) (store.Job, bool, error) {
	if edit.Change == nil {
		return before, false, nil
	}
	replan, err := edit.Change(&after)
	if err != nil {
		return before, false, err
	}
	after = after.Clone()
	after.ID, after.Version, after.Shard = before.ID, before.Version, before.Shard
	after.NotBefore, after.NotAfter = stored(after.NotBefore), stored(after.NotAfter)
	after.Next, after.Last, after.WaitRun, after.Runs = before.Next, before.Last, before.WaitRun, before.Runs
	after.Added, after.Updated, after.GlueUpdated = before.Added, before.Updated, before.GlueUpdated
	return after, replan, nil
}

// madeWithout is how many runs the schedule has made once those that are planned are
// cancelled. Another schedule has made none.
func (j *job) madeWithout(another bool) int {
	if another {
		return 0
	}
	made := j.made
	for _, r := range j.planned.members {
		if r.counts() {
			made--
		}
	}
	return made
}

// replanned gives the changed job its new next instant. edit.Next gets a copy.
func replanned(after store.Job, edit store.Edit, started, now time.Time) (store.Job, error) {
	after.Next, after.WaitRun = time.Time{}, 0
	if edit.Next == nil {
		return after, nil
	}
	given := after.Clone()
	next, err := edit.Next(given, started, now)
	after.Next = stored(next)
	return after, err
}

// missedBy asks for a record of instants that nothing is planned for.
func missedBy(before store.Job, edit store.Edit, replan bool, now time.Time) (record store.NewRun, missed bool) {
	if !replan || edit.Missed == nil || before.Stopped || before.Next.IsZero() {
		return record, false
	}
	record, missed = edit.Missed(before.Clone(), now)
	return record, missed && record.State.Ended()
}

// insertRecord inserts a run that has ended, and returns it.
func (s *Store) insertRecord(j *job, n *store.NewRun, now time.Time) (record store.Run) {
	r := s.newRun(j)
	s.plan(r, n, toMilli(now))
	s.insertRun(r)
	s.endTo(&record, r, n.State, toMilli(now))
	return record
}

// redefine makes the change take effect. Planned runs are cancelled under the
// new definition: one that the job waited for re-arms nothing.
func (s *Store) redefine(ctx context.Context, j *job, before, after *store.Job, verb string, replan bool) {
	wasStopped := j.stopped
	if replan && before.Schedule != after.Schedule {
		j.count++
	}
	j.unindex()
	s.unlist(j)
	s.indexLinks(j, false)
	j.define(after)
	s.list(j)
	s.indexLinks(j, true)
	j.index()
	s.note(ctx, j, verb, before, after, after.Updated)
	if replan {
		s.cancelPlanned(j, verb, after.Updated, func(r *run) bool { return r.Type.ScheduleBorn() || r.Born && after.Stopped })
		s.stopFinished(ctx, j, toMilli(after.Updated))
	}
	if replan || wasStopped {
		s.tellScan(j)
	}
}
