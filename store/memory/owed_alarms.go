package memory

// Alarms: inserted with what causes them, and kept until they are done with.

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// jobRule is a job and a rule.
type jobRule struct {
	job  int64
	rule string
}

// alarmOf inserts the alarm that a run is which has ended, or one that is late, if it is one.
func (s *Store) alarmOf(r *run, late bool, now time.Time) bool {
	if len(s.rules) == 0 || r.State == store.StateSucceeded {
		return false
	}
	a, ok := r.snapshot().Alarm(r.followed, late)
	if ok {
		ok = s.insertAlarm(r.job, a, now)
	}
	return ok
}

// insertAlarm inserts an alarm about the job, if a rule wants it.
func (s *Store) insertAlarm(j *job, a store.Alarm, now time.Time) bool {
	a.At, a.Shard, a.App, a.JobID = now, j.shard.id, j.app, j.id
	if !j.removed {
		if j.def.secret() && a.OfAResult() {
			a.Text = store.SecretText
		}
		a.JobVersion, a.JobKey, a.JobName, a.Email = j.version, j.def.key, j.def.name, j.def.common.Value().email
	}
	return s.putAlarm(a)
}

// putAlarm inserts an alarm, if a rule wants it that has not told it.
func (s *Store) putAlarm(a store.Alarm) bool {
	if !s.anyWants(func(r *keptRule) bool { return r.Gone.IsZero() && r.untold(&a) }) {
		return false
	}
	s.lastAlarm++
	a.ID = s.lastAlarm
	s.alarms[a.ID] = &a
	s.shards[a.Shard].alarms.insert(0, a.ID, &a)
	s.tellAlarms()
	return true
}

// Alarms returns those that are not done with.
func (s *Store) Alarms(ctx context.Context, shards []store.Shard, rules []string, after int64, limit int) ([]store.Alarm, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var open merged[store.Alarm]
	for _, q := range shards {
		if sh := s.shardAt(q.ID); sh != nil {
			open.add(&sh.alarms, 0, after)
		}
	}
	list := []store.Alarm{}
	for ; open.peek() != nil && len(list) < limit; open.next() {
		a := open.peek().of
		if rules == nil || slices.ContainsFunc(rules, func(key string) bool { return s.rules[key] != nil && s.rules[key].untold(a) }) {
			list = append(list, *a)
			list[len(list)-1].Told = copied(a.Told)
		}
	}
	return list, nil
}

// MarkAlarms notes what became of alarms.
func (s *Store) MarkAlarms(ctx context.Context, m store.AlarmMarks) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	for _, t := range m.Told {
		t.Rule = store.PlainText(t.Rule)
		a := s.alarms[t.ID]
		if a == nil {
			continue
		}
		a.GaveUp = a.GaveUp || t.GaveUp
		if !slices.Contains(a.Told, t.Rule) {
			a.Told = append(copied(a.Told), t.Rule)
		}
		if s.anyWants(func(r *keptRule) bool { return (r.Gone.IsZero() || !r.Gone.Before(a.At)) && r.untold(a) }) {
			continue
		}
		status := store.AlarmSent
		if a.GaveUp {
			status = store.AlarmFailed
		}
		s.endAlarm(store.AlarmDone{ID: a.ID, Status: status})
	}
	for _, d := range m.Done {
		s.endAlarm(d)
	}
	for _, t := range m.Jobs {
		t.Rule = store.PlainText(t.Rule)
		j := s.live(t.JobID)
		if j == nil {
			delete(s.told, jobRule{t.JobID, t.Rule})
			continue
		}
		t.Shard, t.At, t.Recovered = j.shard.id, stored(t.At), time.Time{}
		s.told[jobRule{t.JobID, t.Rule}] = t
	}
	return nil
}

func (s *Store) endAlarm(d store.AlarmDone) {
	if a := s.alarms[d.ID]; a != nil {
		delete(s.alarms, d.ID)
		s.shards[a.Shard].alarms.remove(0, d.ID)
		if r := s.runs.find(a.RunID); r != nil {
			r.AlarmStatus = max(r.AlarmStatus, int8(d.Status))
		}
	}
}

// ToldJobs returns what is known of the jobs.
func (s *Store) ToldJobs(ctx context.Context, jobs []int64) ([]store.JobTold, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.toldWhere(func(t *store.JobTold) bool { return slices.Contains(jobs, t.JobID) }), nil
}

// toldWhere are the rows that are chosen, in order.
func (s *Store) toldWhere(chosen func(*store.JobTold) bool) (list []store.JobTold) {
	for _, t := range s.told {
		if chosen(&t) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, toldOrder)
	return list
}

func toldOrder(a, b store.JobTold) int {
	return cmp.Or(cmp.Compare(a.JobID, b.JobID), cmp.Compare(a.Rule, b.Rule))
}

// OpenAlarms returns the rows of jobs that have recovered.
func (s *Store) OpenAlarms(ctx context.Context, shards []store.Shard, rules []string, after store.JobTold, limit int) (list []store.JobTold, open int, err error) {
	if err := s.look(ctx); err != nil {
		return nil, 0, err
	}
	defer s.mu.Unlock()
	in := map[int]bool{}
	for _, q := range shards {
		in[q.ID] = true
	}
	for _, t := range s.toldWhere(func(t *store.JobTold) bool {
		return t.Open && in[t.Shard] && (rules == nil || slices.Contains(rules, t.Rule))
	}) {
		open++
		if len(list) >= limit || toldOrder(t, after) <= 0 {
			continue
		}
		if t.Recovered = s.recovered(&t); !t.Recovered.IsZero() {
			list = append(list, t)
		}
	}
	return list, open, nil
}

// recovered is when the first run ended that has succeeded since a rule has told of the job.
func (s *Store) recovered(t *store.JobTold) (first time.Time) {
	j := s.jobs[t.JobID]
	if j == nil {
		return first
	}
	of := s.runs.find(t.RunID)
	for x := j.runs.tail; x != nil && x.ID >= t.RunID; x = x.links[ofJob].prev {
		since := x.TriggerID > t.TriggerID || of != nil && x.TriggerID == of.TriggerID && x.extra().sharding == of.extra().sharding
		if t.RunID == 0 {
			since = fromMilli(x.ended).After(t.At)
		}
		if x.State == store.StateSucceeded && since && (first.IsZero() || fromMilli(x.ended).Before(first)) {
			first = fromMilli(x.ended)
		}
	}
	return first
}

// AddLate inserts the alarms of runs that are late.
func (s *Store) AddLate(ctx context.Context, q store.LateQuery) (store.Late, error) {
	if err := s.begin(ctx); err != nil {
		return store.Late{}, err
	}
	defer s.done()
	var late store.Late
	var found []*run
	for _, own := range q.Shards {
		sh := s.fenced(own.ID, own.Epoch)
		if sh == nil {
			continue
		}
		for id := range s.watched {
			if after := s.jobs[id].def.lateAfter(); s.jobs[id].shard == sh && (late.Least == 0 || after < late.Least) && s.wantsLate(s.jobs[id]) {
				late.Least = after
			}
		}
		if late.Least > 0 {
			found = append(found, slices.DeleteFunc(sh.late(q.Now), func(r *run) bool { return !s.wantsLate(r.job) })...)
		}
	}
	slices.SortFunc(found, func(a, b *run) int { return cmp.Compare(a.ID, b.ID) })
	now := s.clock()
	for _, r := range found[:min(len(found), max(q.Limit, 0))] {
		if s.alarmOf(r, true, now) {
			r.late = true
			late.Alarms++
		}
	}
	return late, nil
}

// wantsLate reports whether a rule is to tell of late runs of the job.
func (s *Store) wantsLate(j *job) bool {
	late := store.Alarm{App: j.app, JobKey: j.def.key, Cause: string(alarm.Late)}
	return s.anyWants(func(r *keptRule) bool { return r.Gone.IsZero() && r.Wants(&late) })
}

// late are the runs of the shard that are, and of which no alarm has said so.
func (sh *shard) late(now time.Time) (found []*run) {
	look := func(r *run) {
		if after := r.job.def.lateAfter(); after > 0 && !r.late && !fromMilli(r.due()).Add(after).After(now) {
			found = append(found, r)
		}
	}
	for c := sh.planned.after(noID, noID); c.peek() != nil; c.next() {
		look(c.peek().of)
	}
	for _, r := range sh.started.members {
		look(r)
	}
	for c := sh.dispatched.after(noID, noID); c.peek() != nil; c.next() {
		look(c.peek().of)
	}
	return found
}
