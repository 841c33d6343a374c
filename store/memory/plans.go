package memory

// From due jobs to planned runs: what is due is found, and claimed.

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// Scan finds what is due. Its cost goes with what it finds and with the number
// of shards, not with how many jobs and runs there are. A run that it returns
// under the shard's epoch counts as loaded and is not returned again.
func (s *Store) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (store.ScanResult, error) {
	due, out, err := s.scan(ctx, dst.Runs, q)
	if err != nil {
		return store.ScanResult{}, err
	}
	var added []store.DueJob
	out.Jobs, added = extended(dst.Jobs, len(due))
	for i := range due {
		due[i].put(&added[i].Job)
		added[i].Waiting = due[i].waiting
	}
	return out, nil
}

// dueJob is a due job before its snapshot is made.
type dueJob struct {
	jobState
	waiting int
}

// scan is the part of Scan that needs the lock.
func (s *Store) scan(ctx context.Context, runs []store.Run, q store.ScanQuery) ([]dueJob, store.ScanResult, error) {
	if err := s.look(ctx); err != nil {
		return nil, store.ScanResult{}, err
	}
	defer s.mu.Unlock()
	before, from := toMilli(stored(q.Before)), noID
	if !q.From.IsZero() {
		from = toMilli(stored(q.From)) - 1
	}

	var due merged[job]
	var foreign merged[run]
	for _, sh := range q.Shards {
		if own := s.shardAt(sh.ID); own != nil {
			due.add(&own.due, from, noID)
			foreign.add(own.foreignTo(sh.Epoch, before, q.Runs), noID, noID)
		}
	}
	jobs, fullJobs := due.take(before, q.Jobs)
	found, fullRuns := foreign.take(before, q.Runs)
	states := make([]dueJob, len(jobs))
	for i, j := range jobs {
		states[i] = dueJob{j.jobState, len(j.planned.members) - j.retrying}
	}

	next := s.nextPlanned(q.Shards, before)
	if e := due.peek(); e != nil && (next == noTime || e.at < next) {
		next = e.at
	}
	if fullJobs || fullRuns {
		next = before
	}
	return states, store.ScanResult{Runs: s.load(runs, found, q.Shards), Next: fromMilli(next)}, nil
}

// foreignTo returns the planned runs that were not loaded under the epoch. For
// an epoch that is not the shard's, that is, for a former owner, they are
// searched, at most one more than limit.
func (sh *shard) foreignTo(epoch, before int64, limit int) *order[run] {
	if epoch == sh.epoch {
		return &sh.foreign
	}
	var found order[run]
	n := 0
	for c := sh.planned.after(noID, noID); c.peek() != nil && n <= limit; c.next() {
		e := c.peek()
		if e.at > before {
			break
		}
		if e.of.PlanEpoch != epoch {
			found.insert(e.at, e.id, e.of)
			n++
		}
	}
	return &found
}

// load stamps the runs with the epochs under which they are returned, where
// those are their shards', and copies them.
func (s *Store) load(dst []store.Run, found []*run, shards []store.Shard) []store.Run {
	dst, out := extended(dst, len(found))
	for i, r := range found {
		sh := r.job.shard
		if r.foreign && asked(shards, sh) {
			sh.foreign.remove(r.scheduled, r.ID)
			r.foreign = false
			r.PlanEpoch = sh.epoch
		}
		r.put(&out[i])
	}
	return dst
}

// asked reports whether the query names the shard under its own epoch.
func asked(shards []store.Shard, sh *shard) bool {
	// Mostly the query names all shards, in order.
	if sh.id < len(shards) && shards[sh.id].ID == sh.id {
		return shards[sh.id].Epoch == sh.epoch
	}
	for _, q := range shards {
		if q.ID == sh.id {
			return q.Epoch == sh.epoch
		}
	}
	return false
}

// nextPlanned returns the earliest time of a planned run behind the given one.
func (s *Store) nextPlanned(shards []store.Shard, before int64) int64 {
	next := noTime
	for _, q := range shards {
		sh := s.shardAt(q.ID)
		if sh == nil {
			continue
		}
		c := sh.planned.after(before, anyID)
		if e := c.peek(); e != nil && (next == noTime || e.at < next) {
			next = e.at
		}
	}
	return next
}

// Planned returns a page of planned runs.
func (s *Store) Planned(ctx context.Context, dst []store.Run, q store.PlannedQuery) ([]store.Run, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	before, at, id := toMilli(stored(q.Before)), toMilli(stored(q.After)), q.AfterID
	var m merged[run]
	for _, sh := range q.Shards {
		if own := s.shardAt(sh.ID); own != nil {
			m.add(&own.planned, at, id)
		}
	}
	var found []*run // first, so that the copies are made in one place of the right size
	for e := m.peek(); e != nil && e.at <= before && len(found) < q.Limit; e = m.peek() {
		if q.App == "" || e.of.terms.app == q.App {
			found = append(found, e.of)
		}
		m.next()
	}
	dst, page := extended(dst, len(found))
	for i, r := range found {
		r.put(&page[i])
	}
	return dst, nil
}

// extended is dst with room for n more behind it, which are zero.
func extended[T any](dst []T, n int) (all, added []T) {
	all = slices.Grow(dst, n)[:len(dst)+n]
	added = all[len(dst):]
	clear(added)
	return all, added
}

// snapshots are the runs as callers get them; nil for none.
func snapshots(runs []*run) []store.Run {
	if len(runs) == 0 {
		return nil
	}
	out := make([]store.Run, len(runs))
	for i, r := range runs {
		r.put(&out[i])
	}
	return out
}

// Claim advances jobs and inserts the runs that were planned for them.
func (s *Store) Claim(ctx context.Context, dst []store.Run, plans []store.Plan) ([]store.Run, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	n := 0
	for i := range plans {
		n += len(plans[i].Runs)
	}
	now := s.clock()
	inserted := slices.Grow(dst, n)
	for i := range plans {
		p := &plans[i]
		if j := s.claimable(p); j != nil {
			inserted = s.claim(ctx, inserted, j, p, now)
		}
	}
	return inserted, nil
}

// claimable is the compare of the compare-and-set: it returns the plan's job, or nil. A job
// without a next instant is never due, whatever the plan says: else its claim could be repeated.
func (s *Store) claimable(p *store.Plan) *job {
	j := s.live(p.JobID)
	if j == nil || j.unscheduled() || j.version != p.Version ||
		j.next == noTime || j.next != toMilli(p.Due) || j.shard != s.fenced(p.Shard, p.Epoch) {
		return nil
	}
	return j
}

func (s *Store) claim(ctx context.Context, inserted []store.Run, j *job, p *store.Plan, now time.Time) []store.Run {
	j.unindex()
	j.next, j.waitRun = toMilli(stored(p.Next)), 0
	if p.Wait && len(p.Runs) > 0 {
		j.next = noTime
	}
	j.index()
	if len(p.Runs) > 0 {
		j.last = latest(p.Runs)
	}
	for i := range p.Runs {
		n := &p.Runs[i]
		r := s.newRun(j)
		r.PlanEpoch = p.Epoch
		s.plan(r, n, toMilli(now))
		if p.Wait && i == 0 {
			j.waitRun = r.ID
		}
		s.insertRun(r)
		if n.State.Ended() { // a record
			s.end(r, n.State, toMilli(now))
		} else {
			r.count = j.count
			j.made++
		}
		inserted = append(inserted, store.Run{})
		r.put(&inserted[len(inserted)-1])
	}
	if p.Stop != "" {
		j.version++
		s.stop(ctx, j, p.Stop, toMilli(now))
		s.insertAlarm(j, store.Alarm{Cause: string(alarm.Stopped), Text: store.AlarmText(p.Stop)}, now)
	}
	s.stopFinished(ctx, j, toMilli(now))
	return inserted
}

// latest returns the latest instant that one of the runs stands for.
func latest(runs []store.NewRun) int64 {
	last := noTime
	for i := range runs {
		last = max(last, toMilli(stored(runs[i].At)), toMilli(stored(runs[i].Last)))
	}
	return last
}

// plan sets in a new run what the plan says.
func (s *Store) plan(r *run, n *store.NewRun, now int64) {
	r.Type, r.State = n.Type, n.State
	r.created, r.scheduled = now, toMilli(n.At)
	s.agreePlain(r)
	if n.Count != 0 || n.Reason != "" || !n.First.IsZero() || !n.Last.IsZero() {
		x := r.own()
		x.first, x.last, x.count, x.reason = stored(n.First), stored(n.Last), n.Count, store.PlainText(n.Reason)
	}
}

// RedateRuns corrects planned runs that say to have been inserted in the future.
func (s *Store) RedateRuns(ctx context.Context, q store.RedateQuery) (int, error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.done()
	now := toMilli(stored(q.Now))
	var found []*run
	for _, sh := range q.Shards {
		own := s.fenced(sh.ID, sh.Epoch)
		if own == nil {
			continue
		}
		for c := own.planned.after(noID, noID); c.peek() != nil && len(found) < q.Limit; c.next() {
			if r := c.peek().of; !r.Type.ScheduleBorn() && r.created > now+time.Minute.Milliseconds() {
				found = append(found, r)
			}
		}
	}
	for _, r := range found {
		s.leave(r)
		switch ahead := r.created - now; {
		case r.Type == store.TriggerRetry:
			r.scheduled = max(r.scheduled-ahead, now)
		case r.scheduled == r.created:
			r.scheduled = now
		}
		r.created, r.PlanEpoch, r.foreign = now, 0, true
		s.enter(r)
		s.tellScan(r.job)
	}
	return len(found), nil
}
