package memory

// Runs outside the schedule, those far ahead among them, and how far runs are.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

// triggerKey is a Trigger.Key that was used for a job.
type triggerKey struct {
	job int64
	key string
}

// AddRun inserts a planned run outside the schedule.
func (s *Store) AddRun(ctx context.Context, jobID int64, t store.Trigger) (store.Run, error) {
	return s.addRun(ctx, jobID, t, nil)
}

// addRun adds a run, which is kept apart where it is given a time to move.
func (s *Store) addRun(ctx context.Context, jobID int64, t store.Trigger, move *time.Time) (store.Run, error) {
	if err := s.begin(ctx); err != nil {
		return store.Run{}, err
	}
	defer s.done()
	j := s.live(jobID)
	if j == nil {
		return store.Run{}, failed(store.ErrNotFound, "add run of job %d", jobID)
	}
	if err := store.CheckTexts("trigger", t); err != nil {
		return store.Run{}, failed(err, "add run of job %d", jobID)
	}
	key := triggerKey{jobID, t.Key}
	if t.Key != "" {
		if id, ok := s.keys[key]; ok {
			return s.runs.find(id).snapshot(), nil
		}
	}
	r, run := s.newRun(j), triggered(t, s.clock())
	r.keep(&run)
	if t.Key != "" {
		r.own().key = t.Key
		s.keys[key] = r.ID
	}
	if move != nil {
		r.ahead, r.own().move = true, toMilli(*move)
		s.insertRun(r)
		s.tellAhead(j)
	} else {
		r.foreign = true
		s.insertRun(r)
		s.tellScan(j)
	}
	run = r.snapshot()
	var c store.Change
	if c.OfTrigger(ctx, &run, &t) {
		s.write(c, nil, run.Created)
	}
	return run, nil
}

// triggered is a run as the trigger says.
func triggered(t store.Trigger, now time.Time) store.Run {
	r := store.Run{
		State: store.StatePlanned, Created: now, Type: t.Type, Scheduled: now, Sharding: t.Shard,
		Addresses: t.Addresses, Trace: t.Trace, Retries: retriesOfJob,
	}
	if r.Type == "" {
		r.Type = store.TriggerManual
	}
	if at := stored(t.At); at.After(now) {
		r.Scheduled = at
	}
	t.Stand(&r, now)
	if t.Param != nil {
		r.Param, r.ParamSet = *t.Param, true
	}
	if t.Retries != nil {
		r.Retries, r.RetriesSet = *t.Retries, true
	}
	return r
}

// retriesOfJob stands for the job's own number, until the run starts.
const retriesOfJob = -1

// Runs that are planned so far ahead that they are kept apart. Here that takes no table of
// its own: such a run is in its segment as any other, so that whoever asks for it by its id,
// its key or its job finds it; but it is in none of the sets that scans go by until it has
// moved. Its id is the next one, like that of any run, and it has not ended, so that no
// bound of Retain concerns it.

// AddAhead inserts a run that is kept apart until the time to move.
func (s *Store) AddAhead(ctx context.Context, jobID int64, t store.Trigger, move time.Time) (store.Run, error) {
	return s.addRun(ctx, jobID, t, &move)
}

// MoveAhead makes ordinary planned runs of those whose time to move has come.
func (s *Store) MoveAhead(ctx context.Context, q store.AheadQuery) (store.Moved, error) {
	if err := s.begin(ctx); err != nil {
		return store.Moved{}, err
	}
	defer s.done()
	due := merge(s, q.Shards, func(sh *shard) *order[run] { return &sh.ahead })
	found, _ := due.take(toMilli(stored(q.Before)), q.Limit)
	moved := store.Moved{Runs: len(found)}
	if e := due.peek(); e != nil {
		moved.Next = fromMilli(e.at)
	}
	for _, r := range found { // from here on due is out of date
		s.leave(r)
		r.ahead, r.foreign = false, true
		s.enter(r)
		s.tellScan(r.job)
	}
	return moved, nil
}

// SetProgress stores how far runs are.
func (s *Store) SetProgress(ctx context.Context, list []store.Progress) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	for i := range list {
		p := &list[i]
		if r := s.runs.find(p.RunID); r != nil && r.hears(p) {
			r.setProgress(p.Percent, p.Text)
		}
	}
	return nil
}

// hears is the compare of the compare-and-set.
func (r *run) hears(p *store.Progress) bool {
	switch {
	case r.Token != p.Token:
		return false
	case p.Incarnation == "":
		return r.State == store.StateStarted || r.State == store.StateDispatched
	}
	return r.State == store.StateStarted && r.addressee != nil && r.addressee.incarnation == p.Incarnation
}
