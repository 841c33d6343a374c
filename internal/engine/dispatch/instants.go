package dispatch

import (
	"strconv"
	"time"

	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// What a handler may ask about the instants beside that of its run. Input: a run under way, with
// the job as it was when the run was started. Output: the instants of the schedule. It is pure.

// instantsOf are the instants that a run makes up for, as wire.TriggerRequest.Instants has them:
// empty where they are not more than First and Last say. A run that a schedule has made is started
// with the schedule that it was planned with, since another one cancels it; but a retry, a run that
// repeats another and one that was given back may come behind an edit. So what the schedule says
// now has to agree with what the row says: from First to Last, and Count of them.
func instantsOf(r *store.Run, job *store.Job) string {
	if r.Count <= 2 {
		return ""
	}
	text, n, at := make([]byte, 0, 14*r.Count), 0, r.First
	last, err := r.First, error(nil)
	for ; !at.IsZero() && !at.After(r.Last) && n < store.CountCap; n++ {
		if n > 0 {
			text = append(text, ',')
		}
		text, last = strconv.AppendInt(text, at.UnixMilli(), 10), at
		if at, err = job.Schedule.Next(at); err != nil || !at.IsZero() && !at.After(last) {
			return ""
		}
	}
	if first, err := job.Schedule.Next(r.First.Add(-time.Millisecond)); err != nil || job.Schedule.GoesByClocks() && !first.Equal(r.First) {
		return ""
	}
	if n != r.Count || n < store.CountCap && !last.Equal(r.Last) {
		return ""
	}
	return string(text)
}

// previousOf is the instant of the schedule before those that a run stands for; zero for none.
func previousOf(f *queue.Flight) time.Time {
	at, born := time.UnixMilli(f.Run.Instant()).UTC(), f.Run.Planned.RunType().ScheduleBorn()
	if r := f.Run.Planned.Rest; r != nil {
		born = r.Born
		if r.Count > 0 {
			at = r.First
		}
	}
	return previousInstant(f.Job, at, born)
}

// previousInstant is the last instant of a job before one, zero for none: nothing outside of its
// bounds is one. A FixedDelay has no instants but those of its runs. A FixedRate is in step with its
// next instant, and with one that it has made.
func previousInstant(job *store.Job, at time.Time, born bool) time.Time {
	s := &job.Schedule
	if s.Type == schedule.TypeFixDelay {
		return time.Time{}
	}
	if last := job.NotAfter; !last.IsZero() && at.After(last) && s.GoesByClocks() {
		at = last.Add(time.Millisecond)
	}
	if d, err := s.Every(); err != nil || d > 0 && !born {
		if err != nil || job.Next.IsZero() {
			return time.Time{}
		}
		behind := (at.UnixMilli() - job.Next.UnixMilli()) % d.Milliseconds()
		if behind <= 0 {
			behind += d.Milliseconds()
		}
		at = at.Add(-time.Duration(behind) * time.Millisecond)
		at = at.Add(d)
	}
	before, err := s.Previous(at)
	if err != nil || before.Before(job.NotBefore) || !job.NotAfter.IsZero() && before.After(job.NotAfter) {
		return time.Time{}
	}
	return before
}

// Previous is asked by executors of ours about a run that came by Run: see executor.Executor.Bind.
func (a attachedAdmin) Previous(logID, logDateTim int64) time.Time {
	if f := attachedFlight(a.finisher.queue, logID, logDateTim); f != nil {
		return previousOf(f)
	}
	return time.Time{}
}
