package alarms

import (
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/store"
)

// Alarms that are not done with, as a node has them that tells of them. It belongs to one
// loop, and is pure. Input: alarms as the store has them, the ends of messages. Output: messages
// that are due, and what is to be noted in the store.

const (
	alarmEvents = 10             // that a message tells of
	alarmAge    = 24 * time.Hour // for which an alarm is tried to be told
	// alarmMost is how many alarms a book has at most. More wait in the store: a day of an
	// alarmer that is away costs bounded memory, about 100 bytes each.
	alarmMost = 1 << 20
)

// alarmBook has the alarms of each job. What it does for one costs the same however many
// others there are.
type alarmBook struct {
	Rules []alarmRule
	node  string
	jobs  map[int64]*alarmJob
	size  int     // alarms
	most  int     // of them
	fresh []int64 // jobs of which the store was not asked yet, at least
	turns alarmTurns
	texts alarmTexts

	marks store.AlarmMarks // what the store does not have yet
	ends  []*alarmJob      // whose alarms marks.Told are, nil where the book has them no more
	noted []*alarmJob      // whose alarms marks.Done are

	mutes []store.Mute      // that are not over, as they were read last
	kept  []store.AlarmRule // the rules of all nodes, as they were then
	said  map[string]int64  // by the key of a mute when it began: its last message was sent

	troubles map[int64]time.Time // when troubles of a kind and app were told of last, see bookID

	givenUp map[int64]bool // alarms that were told, which the store does not let be noted

	epochs map[int]int64 // of the shards that are owned
	flown  int64         // messages so far
}

func newAlarmBook(rules []alarmRule, node string) *alarmBook {
	return &alarmBook{Rules: rules, node: node, most: alarmMost, jobs: map[int64]*alarmJob{}, turns: newAlarmTurns(len(rules)), texts: newAlarmTexts()}
}

// full reports whether no more is to be read.
func (b *alarmBook) full() bool { return b.size >= b.most }

// keep forgets the jobs of shards that are not given any more, or not with that epoch. When a rule
// has told of them last is for the store to say.
func (b *alarmBook) keep(shards []store.Shard) {
	now := make(map[int]int64, len(shards))
	for _, s := range shards {
		now[s.ID] = s.Epoch
	}
	gone := func(shard int) bool {
		epoch, owned := now[shard]
		return !owned || b.epochs[shard] != epoch
	}
	for _, j := range b.jobs {
		if gone(j.shard) {
			b.size -= len(j.rows)
			b.drop(j)
		}
	}
	b.marks.Jobs = slices.DeleteFunc(b.marks.Jobs, func(t store.JobTold) bool { return gone(t.Shard) })
	b.epochs = now
}

// job is the entry of a job.
func (b *alarmBook) job(id int64, shard int) *alarmJob {
	j := b.jobs[id]
	if j == nil {
		j = &alarmJob{id: id, shard: shard, rows: map[int64]*alarmRow{}, rules: make([]alarmState, len(b.Rules))}
		b.jobs[id] = j
		if id >= 0 {
			b.fresh = append(b.fresh, id)
		} else { // troubles, of which the store keeps no such rows
			j.known = true
			for i := range j.rules {
				j.rules[i].told.At = b.troubles[id]
			}
		}
	}
	return j
}

// tellsElse notes that the rule need not tell of an alarm, which it is told of in another way.
func (b *alarmBook) tellsElse(id int64) {
	b.marks.Told, b.ends = append(b.marks.Told, store.AlarmTold{ID: id, Rule: b.Rules[0].kept.Key}), append(b.ends, nil)
}

// take takes an alarm in, unless it is there.
func (b *alarmBook) take(a store.Alarm) {
	if b.givenUp[a.ID] {
		return
	}
	id := bookID(&a)
	if j := b.jobs[id]; j != nil && j.rows[a.ID] != nil {
		return
	}
	row := &alarmRow{id: a.ID, at: a.At.UnixMilli(), cause: alarm.Cause(a.Cause)}
	for i := range b.Rules {
		r, bit := &b.Rules[i], uint32(1)<<i
		if slices.Contains(a.Told, r.kept.Key) {
			row.told |= bit
		}
		if !r.concerns(a.App, a.JobKey) || !r.wants(row.cause) {
			continue
		}
		row.wanted |= bit
	}
	if row.wanted&^row.told == 0 {
		return
	}
	j := b.job(id, a.Shard)
	for i := range b.Rules {
		if (row.wanted&^row.told)>>i&1 == 1 {
			j.rules[i].add(a.ID)
			b.turns.queue(j, i)
		}
	}
	j.rows[a.ID] = row
	b.size++
	b.texts.add(a)
	if a.ID > j.last.ID {
		j.last, j.last.Text, j.last.Told = a, "", nil
	}
}

// unknown are the jobs of which the store is to be asked when they were told of last.
func (b *alarmBook) unknown() []int64 {
	b.fresh = slices.DeleteFunc(b.fresh, func(id int64) bool { return b.jobs[id] == nil || b.jobs[id].known })
	slices.Sort(b.fresh)
	b.fresh = slices.Compact(b.fresh)
	return b.fresh
}

// know takes in the answer about jobs.
func (b *alarmBook) know(ids []int64, told []store.JobTold) {
	for _, t := range slices.Concat(told, b.marks.Jobs) { // what the store does not have yet is newer
		if i, j := b.place(t.Rule), b.jobs[t.JobID]; i >= 0 && j != nil && !j.known {
			j.rules[i].told = t
		}
	}
	for _, id := range ids {
		j := b.jobs[id]
		j.known = true
		for i := range b.Rules {
			b.turns.queue(j, i)
		}
	}
}

// place is that of the rule with the key, -1 where there is none.
func (b *alarmBook) place(key string) int {
	return slices.IndexFunc(b.Rules, func(r alarmRule) bool { return r.kept.Key == key })
}

// due returns the messages that are to be sent now, as far as there is room, which it takes,
// and when the next will be: the zero time for none.
func (b *alarmBook) due(now time.Time, room func(rule int) bool) (list []alarmMessage, next time.Time) {
	b.turns.pass(now, b.Rules)
	for i := range b.Rules {
		for {
			j := b.turns.first(i)
			if j != nil && b.hush(j, i) {
				b.turns.serve(i)
				continue
			}
			if j == nil || !room(i) {
				break
			}
			b.turns.serve(i)
			list = append(list, b.message(j, i))
		}
	}
	return list, b.turns.next()
}

// hush notes the alarms that somebody has muted, and reports whether nothing is left to tell. The first
// since a rule has told of the job or, of a cause, of that one is told: it is the last message, which
// says so.
func (b *alarmBook) hush(j *alarmJob, rule int) bool {
	if len(b.mutes) == 0 {
		return false
	}
	s := &j.rules[rule]
	var muted []int64
	for _, id := range s.untold {
		if m := b.muteOf(j, id); m != nil && (b.said[m.Key] == m.At.UnixMilli() || m.JobID != 0 && s.told.At.After(m.At)) {
			muted = append(muted, id)
		}
	}
	if len(muted) == 0 {
		return false
	}
	s.remove(muted)
	for _, id := range muted {
		j.rows[id].told |= 1 << rule
		if b.othersWant(j, id) { // by which the last message about it may be
			b.marks.Told, b.ends = append(b.marks.Told, store.AlarmTold{ID: id, Rule: b.Rules[rule].kept.Key}), append(b.ends, j)
		} else {
			b.marks.Done, b.noted = append(b.marks.Done, store.AlarmDone{ID: id, Status: store.AlarmNotNeeded}), append(b.noted, j)
		}
	}
	return len(s.untold) == 0
}

// othersWant reports whether another rule has to tell of an alarm.
func (b *alarmBook) othersWant(j *alarmJob, id int64) bool {
	a := b.alarmOf(j, id)
	return slices.ContainsFunc(b.kept, func(r store.AlarmRule) bool {
		return r.Gone.IsZero() && b.place(r.Key) < 0 && r.Wants(&a) && !slices.Contains(a.Told, r.Key)
	})
}

// muteOf is the mute that an alarm comes under, nil for none.
func (b *alarmBook) muteOf(j *alarmJob, id int64) *store.Mute {
	return finding.MutedAlarm(b.mutes, b.alarmOf(j, id))
}

// alarmOf is an alarm as far as it is known: of one whose text the book has no more, its cause and job.
func (b *alarmBook) alarmOf(j *alarmJob, id int64) store.Alarm {
	a, kept := b.texts.byID[id]
	if !kept {
		a = j.last
		a.Cause, a.State = string(j.rows[id].cause), ""
	}
	return a
}

// message makes one of what a rule has not told of a job: of all, or without a window of the
// oldest alarm.
func (b *alarmBook) message(j *alarmJob, rule int) alarmMessage {
	ids := slices.Clone(j.rules[rule].untold)
	if b.Rules[rule].window == 0 {
		ids = ids[:1]
	}
	m := alarmMessage{flight: b.fly(j, rule), job: j.id, rule: rule, rows: ids, key: b.Rules[rule].kept.Key}
	first, last := j.rows[ids[0]], j.rows[ids[len(ids)-1]]
	m.said.Count, m.said.First, m.said.Last = len(ids), time.UnixMilli(first.at).UTC(), time.UnixMilli(last.at).UTC()
	m.said.ID, m.said.Node, m.said.Cause = fmt.Sprintf("xxljob-%d-%s", last.id, b.Rules[rule].kept.Key), b.node, last.cause
	m.last = j.last
	for _, id := range ids[max(len(ids)-alarmEvents, 0):] {
		if a, kept := b.texts.byID[id]; kept {
			m.found = append(m.found, a)
		} else {
			m.missing = append(m.missing, id)
		}
		if m.mute == nil {
			m.mute = b.muteOf(j, id)
		}
	}
	m.say()
	return m
}

// recovered makes the message that a job has recovered, unless something else is to be told
// of it first, or there is no room.
func (b *alarmBook) recovered(t store.JobTold, job *store.Job, now time.Time, room func(rule int) bool) (m alarmMessage, ok bool) {
	i := b.place(t.Rule)
	if i < 0 || finding.MutedAlarm(b.mutes, store.Alarm{App: job.App, JobID: job.ID}) != nil { // it is told when that is over
		return m, false
	}
	if j := b.jobs[t.JobID]; j != nil {
		if s := &j.rules[i]; s.flying != 0 || len(s.untold) > 0 || s.backoff(now).After(now) {
			return m, false
		}
	}
	if !room(i) {
		return m, false
	}
	j := b.job(t.JobID, t.Shard)
	if s := &j.rules[i]; s.told.JobID == 0 {
		s.told = t
	}
	m = alarmMessage{flight: b.fly(j, i), job: t.JobID, rule: i}
	m.said.Cause, m.said.Count, m.said.First, m.said.Last = alarm.Recovered, 1, t.Recovered, t.Recovered
	m.said.Events = []alarm.Event{{Cause: alarm.Recovered, At: t.Recovered}}
	m.said.ID, m.said.Node = fmt.Sprintf("xxljob-r%d-%d-%s", t.JobID, t.Recovered.UnixMilli(), t.Rule), b.node
	m.fill(&store.Alarm{App: job.App, JobID: job.ID, JobKey: job.Key, JobName: job.Name, Email: job.AlarmEmail})
	return m, true
}

// fly numbers a message of a rule about a job.
func (b *alarmBook) fly(j *alarmJob, rule int) int64 {
	b.flown++
	j.rules[rule].flying = b.flown
	return b.flown
}

// sent takes in the end of a message.
func (b *alarmBook) sent(m *alarmMessage, now time.Time, err error) {
	j, rule := b.jobs[m.job], b.Rules[m.rule].kept.Key
	if j == nil || j.rules[m.rule].flying != m.flight { // another node holds the rule, or has held it, and may have told it again
		for _, id := range m.rows {
			if err == nil {
				b.marks.Told, b.ends = append(b.marks.Told, store.AlarmTold{ID: id, Rule: rule}), append(b.ends, nil)
			}
		}
		return
	}
	s := &j.rules[m.rule]
	s.flying = 0
	if err != nil {
		s.failed(now)
	} else {
		s.fails, s.next = 0, time.Time{}
		if m.mute != nil {
			if b.said == nil || len(b.said) > 10_000 {
				b.said = map[string]int64{}
			}
			b.said[m.mute.Key] = m.mute.At.UnixMilli()
		}
		b.noteJob(j, m, now)
	}
	if m.said.Cause == alarm.Recovered && err != nil && now.Sub(m.said.Last) >= alarmAge {
		b.noteJob(j, m, now) // it is given up
	}
	told := m.rows
	if err != nil { // those are given up that are old
		told = slices.DeleteFunc(slices.Clone(told), func(id int64) bool { return now.Sub(time.UnixMilli(j.rows[id].at)) < alarmAge })
	}
	s.remove(told)
	for _, id := range told {
		j.rows[id].told |= 1 << m.rule
		b.marks.Told, b.ends = append(b.marks.Told, store.AlarmTold{ID: id, Rule: rule, GaveUp: err != nil}), append(b.ends, j)
	}
	b.turns.queue(j, m.rule)
}

// noteJob notes when a rule has told of a job, and whether it waits for the job to recover.
// That a job has recovered holds back no further alarm.
func (b *alarmBook) noteJob(j *alarmJob, m *alarmMessage, now time.Time) {
	t := &j.rules[m.rule].told
	if j.id < 0 {
		if b.troubles == nil || len(b.troubles) >= mostMet {
			b.troubles = map[int64]time.Time{}
		}
		t.At, b.troubles[j.id] = now, now
		return
	}
	t.JobID, t.Shard, t.Rule = j.id, j.shard, b.Rules[m.rule].kept.Key
	if m.said.Cause == alarm.Recovered {
		t.Open = false
	} else {
		t.At, t.RunID, t.TriggerID = now, m.last.RunID, m.last.TriggerID
		t.Open = b.Rules[m.rule].wants(alarm.Recovered)
	}
	b.marks.Jobs = append(b.marks.Jobs, *t)
}

// saved forgets what the store has now.
func (b *alarmBook) saved(m store.AlarmMarks) {
	b.marks.Told, b.marks.Jobs, b.marks.Done = b.marks.Told[len(m.Told):], b.marks.Jobs[len(m.Jobs):], b.marks.Done[len(m.Done):]
	for i, d := range m.Done {
		b.leave(b.noted[i], d.ID)
	}
	b.noted = b.noted[len(m.Done):]
	for i, t := range m.Told {
		j := b.ends[i]
		if j == nil {
			continue
		}
		b.leave(j, t.ID)
	}
	b.ends = b.ends[len(m.Told):]
	for i := range m.Jobs {
		if j := b.jobs[m.Jobs[i].JobID]; j != nil {
			b.forget(j)
		}
	}
}

// leave forgets an alarm of a job of which nothing more is to be told.
func (b *alarmBook) leave(j *alarmJob, id int64) {
	if row := j.rows[id]; row != nil && row.wanted&^row.told == 0 {
		delete(j.rows, id)
		if !j.gone { // else its alarms were counted when it went
			b.size--
			b.forget(j)
		}
	}
}

// giveUp notes that the store cannot be told what became of alarms: they are not taken in again.
func (b *alarmBook) giveUp(m store.AlarmMarks) {
	if b.givenUp == nil || len(b.givenUp) >= alarmGivenUp {
		b.givenUp = map[int64]bool{}
	}
	for _, t := range m.Told {
		b.givenUp[t.ID] = true
	}
	for _, d := range m.Done {
		b.givenUp[d.ID] = true
	}
}

// alarmGivenUp bounds how many of these are remembered.
const alarmGivenUp = 10_000

// forget forgets a job of which nothing is to be told.
func (b *alarmBook) forget(j *alarmJob) {
	if j.idle() {
		b.drop(j)
	}
}

func (b *alarmBook) drop(j *alarmJob) {
	j.gone = true
	delete(b.jobs, j.id)
}

// What a book of alarms has in full.

// alarmTextsMost is how many alarms are kept in full, about 3 kB each at most.
const alarmTextsMost = 4096

// alarmTexts are the alarms that were taken in last, in full. What else a message tells of is
// read again.
type alarmTexts struct {
	byID  map[int64]store.Alarm
	order []int64 // in which they came, a ring
	next  int     // the place in it of the next one
}

func newAlarmTexts() alarmTexts { return alarmTexts{byID: map[int64]store.Alarm{}} }

// add adds an alarm, in the place of the oldest where there are too many.
func (t *alarmTexts) add(a store.Alarm) {
	if len(t.order) < alarmTextsMost {
		t.order = append(t.order, a.ID)
	} else {
		delete(t.byID, t.order[t.next])
		t.order[t.next] = a.ID
		t.next = (t.next + 1) % alarmTextsMost
	}
	t.byID[a.ID] = a
}
