package alarms

import (
	"container/heap"
	"slices"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
)

// Whose turn it is to be told of. Input: jobs and rules that have something to tell. Output: those
// for which it is time, first come first served, so that storms of some jobs keep none of the
// others from being told of.

// alarmTurn is a rule that has something to tell of a job.
type alarmTurn struct {
	job  *alarmJob
	rule int
	at   time.Time // not before, as far as was known when it was put there
}

// alarmTurns are those that wait for their time, and those that wait for room. Each job and
// rule is in one of them once, while its state is queued.
type alarmTurns struct {
	waiting turnHeap
	ready   [][]alarmTurn // by the place of the rule
	looked  time.Time
}

func newAlarmTurns(rules int) alarmTurns { return alarmTurns{ready: make([][]alarmTurn, rules)} }

// turnHeap is in order of time.
type turnHeap []alarmTurn

func (h turnHeap) Len() int           { return len(h) }
func (h turnHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h turnHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *turnHeap) Push(t any)        { *h = append(*h, t.(alarmTurn)) }
func (h *turnHeap) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = alarmTurn{}
	*h = (*h)[:len(*h)-1]
	return last
}

// queue gives a job and a rule their turn, where there is something to tell.
func (t *alarmTurns) queue(j *alarmJob, rule int) {
	s := &j.rules[rule]
	if j.known && !s.queued && s.stands() {
		s.queued = true
		heap.Push(&t.waiting, alarmTurn{job: j, rule: rule})
	}
}

// pass makes those ready whose time has come.
func (t *alarmTurns) pass(now time.Time, rules []alarmRule) {
	if now.Before(t.looked) { // the clock was set back: no time counts that was read off it
		for i := range t.waiting {
			t.waiting[i].at = time.Time{}
		}
	}
	t.looked = now
	for len(t.waiting) > 0 && !t.waiting[0].at.After(now) {
		turn := heap.Pop(&t.waiting).(alarmTurn)
		s := &turn.job.rules[turn.rule]
		switch turn.at = s.notBefore(now, rules[turn.rule].window); {
		case turn.job.gone || !s.stands():
			s.queued = false
		case turn.at.After(now):
			heap.Push(&t.waiting, turn)
		default:
			t.ready[turn.rule] = append(t.ready[turn.rule], turn)
		}
	}
}

// first is the job whose turn it is by a rule, nil for none. It stays so until it is served.
func (t *alarmTurns) first(rule int) *alarmJob {
	for len(t.ready[rule]) > 0 {
		if j := t.ready[rule][0].job; !j.gone && j.rules[rule].stands() {
			return j
		}
		t.serve(rule)
	}
	return nil
}

// serve takes the first one's turn.
func (t *alarmTurns) serve(rule int) {
	t.ready[rule][0].job.rules[rule].queued = false
	t.ready[rule] = t.ready[rule][1:]
}

// next is when the next turn is of those that wait for their time: the zero time for none.
func (t *alarmTurns) next() (at time.Time) {
	if len(t.waiting) > 0 {
		at = t.waiting[0].at
	}
	return at
}

// What a book of alarms has of a job.

const (
	alarmBackoff  = time.Second
	alarmBackoffs = 10 * time.Minute
)

// alarmJob is a job of which something is to be told.
type alarmJob struct {
	id    int64
	shard int
	rows  map[int64]*alarmRow
	last  store.Alarm  // the newest, without its text
	rules []alarmState // by the place of the rule
	known bool         // the store was asked when its rules have told last
	gone  bool         // the book has it no more
}

// alarmRow is an alarm: few bytes, since a storm has many.
type alarmRow struct {
	id, at       int64
	cause        alarm.Cause
	wanted, told uint32 // bits by the place of the rule
}

// alarmState is a rule and a job.
type alarmState struct {
	told   store.JobTold
	untold []int64 // the alarms that the rule is to tell, in order
	queued bool    // it has its turn
	flying int64   // the number of the message that is on its way, 0 for none
	fails  int
	next   time.Time // not before
}

// add adds an alarm to those that are to be told.
func (s *alarmState) add(id int64) {
	at, _ := slices.BinarySearch(s.untold, id)
	s.untold = slices.Insert(s.untold, at, id)
}

// remove removes some of them, which are in order.
func (s *alarmState) remove(ids []int64) {
	if n := len(ids); n <= len(s.untold) && slices.Equal(ids, s.untold[:n]) {
		s.untold = s.untold[n:]
		return
	}
	s.untold = slices.DeleteFunc(s.untold, func(id int64) bool {
		_, found := slices.BinarySearch(ids, id)
		return found
	})
}

// stands reports whether a message may be made.
func (s *alarmState) stands() bool { return s.flying == 0 && len(s.untold) > 0 }

// notBefore is when a rule may tell of a job again: behind its window, and its back-off after
// failures. Times that are further ahead than these are of a clock that was set back since.
func (s *alarmState) notBefore(now time.Time, window time.Duration) (at time.Time) {
	if at = s.backoff(now); !s.told.At.IsZero() && s.told.At.Sub(now) <= window {
		at = core.Later(at, s.told.At.Add(window))
	}
	return at
}

// backoff is when it may try again after failures.
func (s *alarmState) backoff(now time.Time) (at time.Time) {
	if s.next.Sub(now) <= alarmBackoffs {
		at = s.next
	}
	return at
}

// failed notes that a message has come to nothing.
func (s *alarmState) failed(now time.Time) {
	s.fails++
	s.next = now.Add(min(alarmBackoff<<min(s.fails-1, 20), alarmBackoffs))
}

// idle reports whether nothing is to be told of the job.
func (j *alarmJob) idle() bool {
	busy := func(s alarmState) bool { return s.flying != 0 || s.fails > 0 && s.told.Open }
	return len(j.rows) == 0 && !slices.ContainsFunc(j.rules, busy)
}
