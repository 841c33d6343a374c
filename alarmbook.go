package xxljob

// Alarms that are not done with, as a node has them that owns their shards. It belongs to one
// loop, and is pure. In: alarms as the store has them, the ends of messages. Out: messages
// that are due, and what is to be noted in the store.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

const (
	alarmEvents   = 10 // that a message tells of
	alarmEmails   = 20
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
	flying bool
	fails  int
	next   time.Time // not before
}

// alarmMessage is one that is on its way.
type alarmMessage struct {
	alarm.Message
	job  int64
	rule int
	rows []int64 // ids; none for one that says that the job has recovered
	last store.Alarm
	// The alarms that its events are of: the newest ten of rows, as far as the book has kept
	// them, and which it has not.
	kept   []store.Alarm
	absent []int64
}

func newAlarmBook(rules []alarmRule, node string) *alarmBook {
	return &alarmBook{rules: rules, node: node, jobs: map[int64]*alarmJob{}}
}

// keep forgets the jobs of shards that are not owned any more: another node has them.
func (b *alarmBook) keep(owned func(shard int) bool) {
	maps.DeleteFunc(b.jobs, func(_ int64, j *alarmJob) bool { return !owned(j.shard) })
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

// due returns the messages that are to be sent now, at most room(rule) of each rule, and when
// the next will be: the zero time for none.
func (b *alarmBook) due(now time.Time, room func(rule int) int) (list []alarmMessage, next time.Time) {
	for _, id := range slices.Sorted(maps.Keys(b.jobs)) {
		j := b.jobs[id]
		for i := range b.rules {
			s := &j.rules[i]
			if s.flying || !j.known || !j.anyUntold(i) {
				continue
			}
			at := s.next
			if w := s.told.At.Add(b.rules[i].window); !s.told.At.IsZero() && w.After(at) {
				at = w
			}
			switch {
			case at.After(now):
				if next.IsZero() || at.Before(next) {
					next = at
				}
			case room(i) > 0:
				s.flying = true
				list = append(list, b.message(j, i, j.untold(i)))
			}
		}
	}
	return list, next
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
	m := alarmMessage{job: j.id, rule: rule, rows: ids}
	first, last := j.rows[ids[0]], j.rows[ids[len(ids)-1]]
	m.Count, m.First, m.Last = len(ids), time.UnixMilli(first.at).UTC(), time.UnixMilli(last.at).UTC()
	for _, id := range ids[max(0, len(ids)-alarmEvents):] {
		if i := slices.IndexFunc(j.newest, func(a store.Alarm) bool { return a.ID == id }); i >= 0 {
			m.kept = append(m.kept, j.newest[i])
		} else {
			m.absent = append(m.absent, id)
		}
	}
	m.last, m.Cause = j.newest[0], last.cause
	b.complete(&m, nil)
	return m
}

// complete fills a message in, with those alarms that were absent.
func (b *alarmBook) complete(m *alarmMessage, found []store.Alarm) {
	m.kept = append(m.kept, found...)
	slices.SortFunc(m.kept, func(x, y store.Alarm) int { return cmp.Compare(y.ID, x.ID) })
	m.Events = nil
	for i := range m.kept {
		m.Events = append(m.Events, eventOf(&m.kept[i]))
	}
	if len(m.kept) > 0 {
		m.last = m.kept[0]
	}
	b.fill(m, &m.last, fmt.Sprintf("xxljob-%d-%s", m.rows[len(m.rows)-1], b.rules[m.rule].Name))
}

// fill sets what each message says.
func (b *alarmBook) fill(m *alarmMessage, of *store.Alarm, id string) {
	m.ID, m.Node, m.Emails = id, b.node, nil
	m.App, m.JobID, m.JobKey, m.JobName = of.App, of.JobID, of.JobKey, of.JobName
	for part := range strings.SplitSeq(of.Email, ",") {
		if part = strings.TrimSpace(part); part != "" && len(m.Emails) < alarmEmails {
			m.Emails = append(m.Emails, part)
		}
	}
}

func eventOf(a *store.Alarm) alarm.Event {
	return alarm.Event{Cause: alarm.Cause(a.Cause), At: a.At, RunID: a.RunID, State: a.State, Attempt: a.Attempt, Instant: a.Instant, Text: a.Text}
}

// sent takes in the end of a message.
func (b *alarmBook) sent(m *alarmMessage, now time.Time, err error) {
	j := b.jobs[m.job]
	if j == nil {
		return // its shard has another owner, who tells it again
	}
	s := &j.rules[m.rule]
	s.flying = false
	if err != nil {
		s.fails++
		s.next = now.Add(min(alarmBackoff<<min(s.fails-1, 20), alarmBackoffs))
	} else {
		s.fails, s.next = 0, time.Time{}
		b.noteJob(j, m, now)
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
	if m.Cause == alarm.Recovered {
		t.Open = false
	} else {
		t.At, t.RunID, t.TriggerID = now, m.last.RunID, m.last.TriggerID
		t.Open = b.rules[m.rule].wants(alarm.Recovered)
	}
	b.marks.Jobs = append(b.marks.Jobs, *t)
}

// recovered makes the message that a job has recovered, unless something else is to be told
// of it first.
func (b *alarmBook) recovered(t store.JobTold, job *Job, now time.Time) (m alarmMessage, ok bool) {
	i := b.place(t.Rule)
	if i < 0 {
		return m, false
	}
	j := b.job(t.JobID, t.Shard)
	s := &j.rules[i]
	if s.told.JobID == 0 {
		s.told = t
	}
	if s.flying || s.next.After(now) || j.anyUntold(i) {
		return m, false
	}
	s.flying = true
	m = alarmMessage{job: t.JobID, rule: i}
	m.Cause, m.Count, m.First, m.Last = alarm.Recovered, 1, t.Recovered, t.Recovered
	m.Events = []alarm.Event{{Cause: alarm.Recovered, At: t.Recovered}}
	b.fill(&m, &store.Alarm{App: job.App, JobID: job.ID, JobKey: job.Key, JobName: job.Name, Email: job.AlarmEmail},
		fmt.Sprintf("xxljob-%d-%d-%s", t.JobID, t.Recovered.UnixMilli(), t.Rule))
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
		if len(j.rows) == 0 && !slices.ContainsFunc(j.rules, func(s alarmState) bool { return s.flying }) {
			delete(b.jobs, id)
		}
	}
}
