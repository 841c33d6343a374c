package xxljob

// Alarms that are not done with, as a node has them that owns their shards. It belongs to one
// loop, and is pure. In: alarms as the store has them, the ends of messages. Out: messages
// that are due, and what is to be noted in the store.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

const (
	alarmEvents   = 10             // that a message tells of
	alarmAge      = 24 * time.Hour // for which an alarm is tried to be told
	alarmBackoff  = time.Second
	alarmBackoffs = 10 * time.Minute
)

// alarmBook has the alarms of each job.
type alarmBook struct {
	rules []alarmRule
	node  string
	jobs  map[int64]*alarmJob
	marks store.AlarmMarks // what the store does not have yet

	epochs map[int]int64 // of the shards that are owned
	flown  int64         // messages so far
	served int64         // the job of the last message: the others come before it again
}

// alarmJob is a job of which something is to be told.
type alarmJob struct {
	id     int64
	shard  int
	rows   map[int64]*alarmRow
	newest []store.Alarm // ten at most, the newest first
	rules  []alarmState  // by the place of the rule
	known  bool          // the store was asked when its rules have told last
}

// alarmRow is an alarm: few bytes, since a storm has many.
type alarmRow struct {
	id, at       int64
	cause        alarm.Cause
	wanted, told uint32 // bits by the place of the rule
	failed       bool   // some rule has given up
	done         bool   // the store is to be told, or has been
}

// alarmState is a rule and a job.
type alarmState struct {
	told   store.JobTold
	flying int64 // the number of the message that is on its way, 0 for none
	fails  int
	next   time.Time // not before
}

func newAlarmBook(rules []alarmRule, node string) *alarmBook {
	return &alarmBook{rules: rules, node: node, jobs: map[int64]*alarmJob{}}
}

// keep forgets the jobs of shards that are not owned any more, or that were another node's for
// a while. When a rule has told of them last is for that node to say.
func (b *alarmBook) keep(shards []store.Shard) {
	now := make(map[int]int64, len(shards))
	for _, s := range shards {
		now[s.ID] = s.Epoch
	}
	gone := func(shard int) bool {
		epoch, owned := now[shard]
		return !owned || b.epochs[shard] != epoch
	}
	maps.DeleteFunc(b.jobs, func(_ int64, j *alarmJob) bool { return gone(j.shard) })
	b.marks.Jobs = slices.DeleteFunc(b.marks.Jobs, func(t store.JobTold) bool { return gone(t.Shard) })
	b.epochs = now
}

// job is the entry of a job.
func (b *alarmBook) job(id int64, shard int) *alarmJob {
	j := b.jobs[id]
	if j == nil {
		j = &alarmJob{id: id, shard: shard, rows: map[int64]*alarmRow{}, rules: make([]alarmState, len(b.rules))}
		b.jobs[id] = j
	}
	return j
}

// take takes an alarm in, unless it is there.
func (b *alarmBook) take(a store.Alarm) {
	j := b.job(a.JobID, a.Shard)
	if j.rows[a.ID] != nil {
		return
	}
	row := &alarmRow{id: a.ID, at: a.At.UnixMilli(), cause: alarm.Cause(a.Cause)}
	for i := range b.rules {
		r, bit := &b.rules[i], uint32(1)<<i
		if r.concerns(a.App, a.JobKey) && r.wants(row.cause) {
			row.wanted |= bit
		}
		if slices.Contains(a.Told, r.Name) {
			row.told |= bit
		}
	}
	j.rows[a.ID] = row
	at, _ := slices.BinarySearchFunc(j.newest, a.ID, func(n store.Alarm, id int64) int { return cmp.Compare(id, n.ID) })
	j.newest = slices.Insert(j.newest, at, a)
	j.newest = j.newest[:min(len(j.newest), alarmEvents)]
	b.finish(j, row)
}

// unknown are the jobs of which the store is to be asked when they were told of last.
func (b *alarmBook) unknown() (ids []int64) {
	for id, j := range b.jobs {
		if !j.known {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// know takes in the answer about jobs.
func (b *alarmBook) know(ids []int64, told []store.JobTold) {
	for _, id := range ids {
		b.jobs[id].known = true
	}
	for _, t := range told {
		if i := b.place(t.Rule); i >= 0 && b.jobs[t.JobID] != nil {
			b.jobs[t.JobID].rules[i].told = t
		}
	}
}

// place is that of the rule, -1 where there is none of that name.
func (b *alarmBook) place(rule string) int {
	return slices.IndexFunc(b.rules, func(r alarmRule) bool { return r.Name == rule })
}

// finish notes that an alarm is done with where each rule that wants it has told it.
func (b *alarmBook) finish(j *alarmJob, row *alarmRow) {
	if row.done || row.wanted&^row.told != 0 {
		return
	}
	row.done = true
	status := store.AlarmSent
	switch {
	case row.wanted == 0:
		status = store.AlarmNotNeeded
	case row.failed:
		status = store.AlarmFailed
	}
	b.marks.Done = append(b.marks.Done, store.AlarmDone{ID: row.id, Status: status})
}

// due returns the messages that are to be sent now, as far as there is room, which it takes,
// and when the next will be: the zero time for none.
func (b *alarmBook) due(now time.Time, room func(rule int) bool) (list []alarmMessage, next time.Time) {
	for _, id := range b.turns() {
		j := b.jobs[id]
		for i := range b.rules {
			s := &j.rules[i]
			if s.flying != 0 || !j.known || !j.anyUntold(i) {
				continue
			}
			at := s.next
			if window := b.rules[i].window; !s.told.At.IsZero() && s.told.At.Sub(now) <= window { // else the clock was set back
				at = later(at, s.told.At.Add(window))
			}
			switch {
			case at.After(now):
				if next.IsZero() || at.Before(next) {
					next = at
				}
			case room(i):
				b.served = id
				list = append(list, b.message(j, i, j.untold(i)))
			}
		}
	}
	return list, next
}

// turns are the jobs in the order in which they are looked at: behind the one that was served
// last, so that storms of some keep none of the others from being told of.
func (b *alarmBook) turns() []int64 {
	ids := slices.Sorted(maps.Keys(b.jobs))
	at, found := slices.BinarySearch(ids, b.served)
	if found {
		at++
	}
	return slices.Concat(ids[at:], ids[:at])
}

// fly numbers a message of a rule about a job.
func (b *alarmBook) fly(j *alarmJob, rule int) int64 {
	b.flown++
	j.rules[rule].flying = b.flown
	return b.flown
}

func (j *alarmJob) anyUntold(rule int) bool {
	for _, row := range j.rows {
		if row.wanted&^row.told&(1<<rule) != 0 {
			return true
		}
	}
	return false
}

// untold are the alarms that a rule wants to tell and has not, in order.
func (j *alarmJob) untold(rule int) (ids []int64) {
	bit := uint32(1) << rule
	for id, row := range j.rows {
		if row.wanted&^row.told&bit != 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// message makes one of alarms.
func (b *alarmBook) message(j *alarmJob, rule int, ids []int64) alarmMessage {
	if b.rules[rule].window == 0 {
		ids = ids[:1]
	}
	m := alarmMessage{flight: b.fly(j, rule), job: j.id, rule: rule, rows: ids}
	first, last := j.rows[ids[0]], j.rows[ids[len(ids)-1]]
	m.said.Count, m.said.First, m.said.Last = len(ids), time.UnixMilli(first.at).UTC(), time.UnixMilli(last.at).UTC()
	m.said.ID, m.said.Node, m.said.Cause = fmt.Sprintf("xxljob-%d-%s", last.id, b.rules[rule].Name), b.node, last.cause
	m.last = j.newest[0]
	for _, id := range ids[max(len(ids)-alarmEvents, 0):] {
		if at := slices.IndexFunc(j.newest, func(a store.Alarm) bool { return a.ID == id }); at >= 0 {
			m.found = append(m.found, j.newest[at])
		} else {
			m.missing = append(m.missing, id)
		}
	}
	m.say()
	return m
}

// sent takes in the end of a message.
func (b *alarmBook) sent(m *alarmMessage, now time.Time, err error) {
	j := b.jobs[m.job]
	if j == nil || j.rules[m.rule].flying != m.flight { // its shard has another owner, or had one, who may have told it again
		for _, id := range m.rows {
			if err == nil {
				b.marks.Told = append(b.marks.Told, store.AlarmTold{ID: id, Rule: b.rules[m.rule].Name})
			}
		}
		return
	}
	s := &j.rules[m.rule]
	s.flying = 0
	if err != nil {
		s.fails++
		s.next = now.Add(min(alarmBackoff<<min(s.fails-1, 20), alarmBackoffs))
	} else {
		s.fails, s.next = 0, time.Time{}
		b.noteJob(j, m, now)
	}
	if m.said.Cause == alarm.Recovered && err != nil && now.Sub(m.said.Last) >= alarmAge {
		b.noteJob(j, m, now) // it is given up
	}
	for _, id := range m.rows {
		row := j.rows[id]
		if row == nil || err != nil && now.Sub(time.UnixMilli(row.at)) < alarmAge {
			continue
		}
		row.told |= 1 << m.rule
		row.failed = row.failed || err != nil
		if b.finish(j, row); !row.done {
			b.marks.Told = append(b.marks.Told, store.AlarmTold{ID: id, Rule: b.rules[m.rule].Name})
		}
	}
}

// noteJob notes when a rule has told of a job, and whether it waits for the job to recover.
// That a job has recovered holds back no further alarm.
func (b *alarmBook) noteJob(j *alarmJob, m *alarmMessage, now time.Time) {
	t := &j.rules[m.rule].told
	t.JobID, t.Shard, t.Rule = j.id, j.shard, b.rules[m.rule].Name
	if m.said.Cause == alarm.Recovered {
		t.Open = false
	} else {
		t.At, t.RunID, t.TriggerID = now, m.last.RunID, m.last.TriggerID
		t.Open = b.rules[m.rule].wants(alarm.Recovered)
	}
	b.marks.Jobs = append(b.marks.Jobs, *t)
}

// recovered makes the message that a job has recovered, unless something else is to be told
// of it first, or there is no room.
func (b *alarmBook) recovered(t store.JobTold, job *Job, now time.Time, room func(rule int) bool) (m alarmMessage, ok bool) {
	i := b.place(t.Rule)
	if i < 0 {
		return m, false
	}
	j := b.job(t.JobID, t.Shard)
	s := &j.rules[i]
	if s.told.JobID == 0 {
		s.told = t
	}
	if s.flying != 0 || s.next.After(now) || j.anyUntold(i) || !room(i) {
		return m, false
	}
	m = alarmMessage{flight: b.fly(j, i), job: t.JobID, rule: i}
	m.said.Cause, m.said.Count, m.said.First, m.said.Last = alarm.Recovered, 1, t.Recovered, t.Recovered
	m.said.Events = []alarm.Event{{Cause: alarm.Recovered, At: t.Recovered}}
	m.said.ID, m.said.Node = fmt.Sprintf("xxljob-%d-%d-%s", t.JobID, t.Recovered.UnixMilli(), t.Rule), b.node
	m.fill(&store.Alarm{App: job.App, JobID: job.ID, JobKey: job.Key, JobName: job.Name, Email: job.AlarmEmail})
	return m, true
}

// saved forgets what the store has now.
func (b *alarmBook) saved(m store.AlarmMarks) {
	b.marks.Told, b.marks.Done, b.marks.Jobs = b.marks.Told[len(m.Told):], b.marks.Done[len(m.Done):], b.marks.Jobs[len(m.Jobs):]
	done := make(map[int64]bool, len(m.Done))
	for _, d := range m.Done {
		done[d.ID] = true
	}
	for id, j := range b.jobs {
		maps.DeleteFunc(j.rows, func(row int64, _ *alarmRow) bool { return done[row] })
		busy := func(s alarmState) bool { return s.flying != 0 || s.fails > 0 && s.told.Open }
		if len(j.rows) == 0 && !slices.ContainsFunc(j.rules, busy) {
			delete(b.jobs, id)
		}
	}
}
