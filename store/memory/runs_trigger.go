package memory

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
	key := triggerKey{jobID, t.Key}
	if t.Key != "" {
		if id, ok := s.keys[key]; ok {
			return s.runs.find(id).snapshot(), nil
		}
	}
	r, run := s.newRun(j), triggered(t, clock())
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
