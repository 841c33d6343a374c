package memory

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// note writes an entry of the audit for the job as it now is, in the name of
// the actor in ctx.
func (j *job) note(ctx context.Context, verb string, now time.Time) {
	if len(j.audit) == auditPerJob {
		j.audit = slices.Delete(j.audit, 0, 1)
	}
	j.audit = append(j.audit, xxljob.Change{
		At: now, JobID: j.id, Version: j.version, Actor: store.Actor(ctx), Verb: verb,
	})
}

// Changes returns what was done to the job, newest first. The last hundred
// entries are kept, those of removed jobs for the last ten thousand of them.
func (s *Store) Changes(ctx context.Context, jobID int64, limit int) ([]xxljob.Change, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	j := s.jobs[jobID]
	if j == nil || limit <= 0 {
		return nil, nil
	}
	newest := copied(j.audit[max(0, len(j.audit)-limit):])
	slices.Reverse(newest)
	return newest, nil
}
