package xxljob

// What a book of alarms has of a job.

import (
	"slices"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

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
	failed       bool   // some rule has given up
	done         bool   // the store is to be told, or has been
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
		at = later(at, s.told.At.Add(window))
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
