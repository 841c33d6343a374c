package memory

import (
	"context"
	"time"

	"github.com/xxljob/xxljob"
)

// triggerKey is a Trigger.Key that was used for a job.
type triggerKey struct {
	job int64
	key string
}

// AddRun inserts a planned run outside the schedule.
func (s *Store) AddRun(ctx context.Context, jobID int64, t xxljob.Trigger) (xxljob.Run, error) {
	return s.addRun(ctx, jobID, t, nil)
}

// addRun adds a run, which is kept apart where it is given a time to move.
func (s *Store) addRun(ctx context.Context, jobID int64, t xxljob.Trigger, move *time.Time) (xxljob.Run, error) {
	if err := s.begin(ctx); err != nil {
		return xxljob.Run{}, err
	}
	defer s.done()
	j := s.live(jobID)
	if j == nil {
		return xxljob.Run{}, failed(xxljob.ErrNotFound, "add run of job %d", jobID)
	}
	key := triggerKey{jobID, t.Key}
	if t.Key != "" {
		if id, ok := s.keys[key]; ok {
			return s.runs.find(id).snapshot(), nil
		}
	}
	r := s.runs.add()
	fillTriggered(r, t, clock())
	if t.Key != "" {
		r.key = t.Key
		s.keys[key] = r.ID
	}
	if move != nil {
		r.ahead, r.foreign, r.move = true, false, toMilli(stored(*move))
		s.insertRun(j, r)
		s.tellAhead(j)
	} else {
		s.insertRun(j, r)
		s.tellScan(j)
	}
	run, c := r.snapshot(), xxljob.Change{}
	if c.OfTrigger(ctx, &run, &t) {
		s.write(c, nil, r.Created)
	}
	return run, nil
}

// fillTriggered sets what the trigger says.
func fillTriggered(r *run, t xxljob.Trigger, now time.Time) {
	r.State = xxljob.StatePlanned
	r.foreign = true
	r.Created = now
	r.Type = t.Type
	if r.Type == "" {
		r.Type = xxljob.TriggerManual
	}
	r.Scheduled = now
	if at := stored(t.At); at.After(now) {
		r.Scheduled = at
	}
	r.Sharding = t.Shard
	if t.Param != nil {
		r.Param, r.ParamSet = *t.Param, true
	}
	r.Addresses = copied(t.Addresses)
	r.Trace = t.Trace
	r.Retries = retriesOfJob
	if t.Retries != nil {
		r.Retries, r.RetriesSet = *t.Retries, true
	}
}

// retriesOfJob stands for the job's own number, until the run starts.
const retriesOfJob = -1
