package xxljob

// A started run as a node holds it. Nearly all are as their schedules have made them, and were
// started as their jobs say, so that the rest of a Run follows from these.

import "time"

// startedRun is a started run. It does not change.
type startedRun struct {
	planned        plannedRun // with the whole started run as its rest where more has to be known
	started, taken int64      // Run.Started and Run.Taken, in milliseconds since 1970; 0 for none
	Token          int64
	*startedWith
}

// startedWith is what runs that go to one executor mostly have in common. It does not change.
type startedWith struct {
	Address, Owner, BootID string
	msg                    string // Run.TriggerMsg
}

// startedLately has the last one of each address, so that most runs share theirs. It is guarded by
// the engine's mutex.
type startedLately map[string]*startedWith

// mostLately is how many addresses it has at most: they come and go.
const mostLately = 1000

// of returns what a run has in common with others: theirs, where the last one at its address had
// the same.
func (l startedLately) of(r *Run) *startedWith {
	is := startedWith{r.Address, r.Owner, r.BootID, r.TriggerMsg}
	if last := l[r.Address]; last != nil && *last == is {
		return last
	}
	if len(l) >= mostLately {
		clear(l)
	}
	with := new(startedWith) // not the above, which would be in the heap each time
	*with = is
	l[r.Address] = with
	return with
}

// startedOf is how a run of a job is held that was started.
func startedOf(r *Run, job *Job, lately startedLately) startedRun {
	s := startedRun{planned: plainOf(r), started: milliOf(r.Started), taken: milliOf(r.Taken), Token: r.Token, startedWith: lately.of(r)}
	if !isUsual(r, &s, job) {
		whole := *r
		s.planned.rest = &whole
	}
	return s
}

// milliOf is a time in milliseconds since 1970; 0 for the zero time.
func milliOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// timeOf is the time that milliOf has made that of.
func timeOf(milli int64) time.Time {
	if milli == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milli).UTC()
}

// isUsual reports whether nothing more is to be known of a started run than what is held of each.
func isUsual(r *Run, s *startedRun, job *Job) bool {
	return r.State == StateStarted && isBorn(r, &s.planned) && isFirst(r) && saysNothing(r) &&
		r.Started == timeOf(s.started) && r.Taken == timeOf(s.taken) && r.Ended.IsZero() &&
		r.JobVersion == job.Version && r.Handler == job.Handler && r.Block == job.Block && r.Param == job.Param && r.Retries == max(job.Retries, 0)
}

// fill makes r the run, which is one of the job.
func (s *startedRun) fill(r *Run, job *Job) {
	s.planned.fill(r)
	if s.planned.rest != nil {
		return
	}
	r.State, r.Started, r.Taken, r.TriggerMsg = StateStarted, timeOf(s.started), timeOf(s.taken), s.msg
	r.Token, r.Address, r.Owner, r.BootID = s.Token, s.Address, s.Owner, s.BootID
	r.JobVersion, r.Handler, r.Block, r.Param, r.Retries = job.Version, job.Handler, job.Block, job.Param, max(job.Retries, 0)
}

// instant is Run.Instant, in milliseconds since 1970.
func (s *startedRun) instant() int64 {
	if rest := s.planned.rest; rest != nil {
		return rest.Instant().UnixMilli()
	}
	return s.planned.at
}

// isOf reports whether a date that came with a run's result, in milliseconds since 1970, is that
// of the run, or none.
func (s *startedRun) isOf(date int64) bool { return date == 0 || date == s.planned.created }
