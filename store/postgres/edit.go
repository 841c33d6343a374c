package postgres

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/xxljob/xxljob"
)

// EditJob changes one job. It is the one transaction that computes while it is
// open: edit.Change and edit.Next are pure.
func (s *Store) EditJob(ctx context.Context, id int64, edit xxljob.Edit) (xxljob.Job, error) {
	e := editing{store: s, edit: edit, id: id}
	once := func() error {
		return s.withPartitions(ctx, func() error {
			e = editing{store: s, edit: edit, id: id}
			return s.inTx(ctx, bounds{name: "edit_job"}, func(t *tx) error { return e.run(ctx, t) })
		})
	}
	var err error
	if edit.Guard == nil {
		err = once()
	} else {
		err = pastHead(ctx, once)
	}
	if e.refused != nil {
		return xxljob.Job{}, e.refused
	}
	if err != nil {
		return xxljob.Job{}, failed(err, "%s job %d", edit.Verb, id)
	}
	if e.replan || e.before.Stopped {
		s.wakeScan(e.after.Shard, e.after.Next)
	}
	s.wakeEnded(len(e.cancelled))
	return e.after, nil
}

// editing is an edit under way.
type editing struct {
	store         *Store
	edit          xxljob.Edit
	id            int64
	before, after xxljob.Job
	replan        bool
	cancelled     []xxljob.Run
	refused       error // of the edit's own functions
}

func (e *editing) run(ctx context.Context, t *tx) error {
	s := e.store
	if err := s.guard(ctx, t, e.edit.Guard); err != nil {
		return err
	}
	var err error
	if e.before, err = s.lockJob(ctx, t, e.id); err != nil {
		return err
	}
	if err := s.guardJob(ctx, t, e.edit.Guard, &e.before); err != nil {
		return err
	}
	if e.edit.Version != 0 && e.edit.Version != e.before.Version {
		return conflict(e.edit.Version, e.before.Version)
	}
	if err := e.change(); err != nil {
		return err
	}
	if !e.replan && reflect.DeepEqual(e.before, e.after) {
		return nil
	}
	now, err := s.nowIn(ctx, t)
	if err != nil {
		return err
	}
	e.after.Version, e.after.Updated = e.before.Version+1, now
	if e.after.GlueSource != e.before.GlueSource {
		e.after.GlueUpdated = now
	}
	if e.replan {
		if err := e.record(ctx, t); err != nil {
			return err
		}
		if err := e.plan(ctx, t); err != nil {
			return err
		}
	}
	if err := t.do(ctx, statement{sql: s.sql.updateJob, args: definitionArgs(&e.after)},
		statement{sql: s.sql.updateNext, args: s.insertNext(&e.after).args},
		s.note(ctx, &e.after, e.edit.Verb)); err != nil {
		return keyTaken(err)
	}
	if len(e.cancelled) == 0 {
		return nil
	}
	return e.finished(ctx, t)
}

// nowIn reads the server's clock in a statement of its own. So it is the time after
// whatever the transaction has waited for, which a column of the statement that locks a
// row is not: that may have been worked out before the wait.
func (s *Store) nowIn(ctx context.Context, t *tx) (time.Time, error) {
	now := time.Time{}
	err := t.do(ctx, statement{s.sql.now, nil, scanInto(&now)})
	return now.UTC(), err
}

// change applies edit.Change to a copy of the job; what is the store's stays.
func (e *editing) change() error {
	e.after = e.before
	e.after.Children = slices.Clone(e.before.Children)
	if e.edit.Change == nil {
		return nil
	}
	changed := e.after
	replan, err := e.edit.Change(&changed)
	if err != nil {
		e.refused = err
		return err
	}
	e.replan = replan
	b := &e.before
	changed.Children = append([]int64(nil), changed.Children...)
	changed.ID, changed.Version, changed.Shard = b.ID, b.Version, b.Shard
	changed.Next, changed.Last, changed.WaitRun = b.Next, b.Last, b.WaitRun
	changed.Added, changed.Updated, changed.GlueUpdated = b.Added, b.Updated, b.GlueUpdated
	e.after = changed
	return nil
}

// plan cancels what is planned, reads how far the schedule has been started, and
// has the next instant computed.
func (e *editing) plan(ctx context.Context, t *tx) error {
	s := e.store
	lo, hi := wideRange()
	if err := t.do(ctx, statement{s.sql.cancelPlanned, []any{e.id, e.edit.Verb, false, lo, hi}, readRuns(&e.cancelled)}); err != nil {
		return err
	}
	e.after.Next, e.after.WaitRun = time.Time{}, 0
	if e.edit.Next == nil {
		return nil
	}
	started := int64(0)
	if err := t.do(ctx, statement{s.sql.startedFor, []any{e.id, e.before.Shard}, scanInto(&started)}); err != nil {
		return err
	}
	given := e.after
	given.Children = slices.Clone(e.after.Children)
	next, err := e.edit.Next(given, fromMilli(started), e.after.Updated)
	e.refused = err
	e.after.Next = stored(next)
	return err
}

// record inserts the record of instants that nothing is planned for, if there are
// any.
func (e *editing) record(ctx context.Context, t *tx) error {
	b := &e.before
	if e.edit.Missed == nil || b.Stopped || b.Next.IsZero() {
		return nil
	}
	given := *b
	given.Children = slices.Clone(b.Children)
	n, missed := e.edit.Missed(given, e.after.Updated)
	if !missed || !n.State.Ended() {
		return nil
	}
	return t.do(ctx, statement{e.store.sql.insertRecord, []any{b.ID, b.Shard, b.App, string(n.Type), int16(n.State), milli(stored(n.At)),
		nonzero(milli(stored(n.First))), nonzero(milli(stored(n.Last))), nonzero(int64(n.Count)), nonempty(n.Reason)}, nil})
}

// finished follows the rule for a job whose last planned runs were cancelled.
func (e *editing) finished(ctx context.Context, t *tx) error {
	a := &e.after
	if a.Stopped || !a.Next.IsZero() {
		return nil
	}
	armed, err := e.store.arm(ctx, t, nil, []int64{e.id})
	if err == nil && slices.Contains(armed.stopped, e.id) {
		a.Stopped, a.StopReason, a.Updated = true, xxljob.StopFinished, armed.now
	}
	return err
}
