package xxljob

// Whose turn it is to be told of. In: jobs and rules that have something to tell. Out: those
// for which it is time, first come first served, so that storms of some jobs keep none of the
// others from being told of.

import (
	"container/heap"
	"time"
)

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
