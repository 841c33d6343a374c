package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// Which instant comes first for a job that is added, edited or started. Pure: a job and a
// time of the store's clock come in, an instant goes out, to be stored as its Next.

// FiresAfter refuses a job without an instant after the given time.
func FiresAfter(job store.Job, now time.Time) error {
	next, err := instantAfter(&job, now)
	if job.Schedule.IsManual() || err != nil || !next.IsZero() {
		return nil
	}
	return neverFires(job, now)
}

// neverFires says why a job has no instant after the given time.
func neverFires(job store.Job, now time.Time) error {
	never := errs.ErrNeverFires
	next, _ := job.Schedule.Next(now)
	first, _ := job.Schedule.Next(time.Unix(0, 0))
	switch {
	case !next.IsZero() && !job.NotAfter.IsZero() && !job.NotAfter.After(now):
		never = errs.Reword(fmt.Sprintf("NotAfter, %s, is past", errs.InWords(job.NotAfter)), errs.ErrNeverFires)
	case !next.IsZero():
		never = errs.Reword("it has no instant within its bounds: "+boundsInWords(&job), errs.ErrNeverFires)
	case job.Schedule.Type == schedule.TypeOnce:
		never = errs.Reword("the instant is past", errs.ErrNeverFires)
	case !first.IsZero():
		never = errs.Reword("all its instants are past", errs.ErrNeverFires)
	}
	return errs.In(fmt.Sprintf("%s: Schedule %q", store.Called(job), job.Schedule), never)
}

// FirstInstant is the next instant of a job that is added at a time of the store's
// clock. A schedule that has none any more is refused.
func FirstInstant(job store.Job, now time.Time) (time.Time, error) {
	if err := FiresAfter(job, now); err != nil {
		return time.Time{}, err
	}
	return nextInstant(job, now)
}

// Replanned is Edit.Next: the first instant strictly after the edit, and after the
// latest one that has run, which is not to run again.
func Replanned(job store.Job, started, now time.Time) (time.Time, error) {
	return nextInstant(job, core.Later(started, now))
}

// rescheduled is replanned for a job that gets another schedule, or is started: one
// whose schedule has no instant any more is refused.
func rescheduled(job store.Job, started, now time.Time) (time.Time, error) {
	if err := FiresAfter(job, now); err != nil {
		return time.Time{}, err
	}
	return Replanned(job, started, now)
}

// Restarted is rescheduled for a job that somebody starts: one whose runs were all made is
// refused too. An edit that leaves none over finishes the job.
func Restarted(job store.Job, started, now time.Time) (time.Time, error) {
	if runsLeft(&job) == 0 {
		why := fmt.Sprintf("its schedule has made %d runs already", job.Runs)
		return time.Time{}, errs.In(fmt.Sprintf("%s: MaxRuns %d", store.Called(job), job.MaxRuns), errs.Reword(why, errs.ErrNeverFires))
	}
	return rescheduled(job, started, now)
}

// rebounded is replanned for a job that keeps its schedule and gets other bounds: a period
// goes on in step. Without an instant within NotBefore and NotAfter the job is refused
// where these are new; MaxRuns refuses nothing.
func rebounded(was, def *store.Job) NextInstants {
	step, same := stepOf(was), sameInstants(was, def)
	return func(job store.Job, started, now time.Time) (time.Time, error) {
		if next, err := instantInStep(&job, step, now); err == nil && next.IsZero() && !same {
			return time.Time{}, neverFires(job, now)
		}
		if core.Unscheduled(&job) || runsLeft(&job) == 0 {
			return time.Time{}, nil
		}
		return instantInStep(&job, step, core.Later(started, now))
	}
}

// Redated is the next instant of a job whose Next its schedule does not explain: one that lies more
// than a minute behind the first instant after now and after the latest one that has a row. A clock
// that was ahead, and is set back, leaves such. The zero time says that there is nothing to mend.
func Redated(job *store.Job, now time.Time) time.Time {
	after := core.Later(now, job.Last)
	if core.Unscheduled(job) || !job.Next.After(after.Add(redatedLeast)) {
		return time.Time{}
	}
	next, err := instantAfter(job, after)
	if job.Schedule.Type == schedule.TypeFixRate {
		next, err = instantInStep(job, job.Next, after)
	}
	if err != nil || next.IsZero() || !job.Next.After(next.Add(redatedLeast)) {
		return time.Time{}
	}
	return next.Truncate(time.Millisecond)
}

// redatedLeast is by how much a Next is too late, at least: a node's estimate of the store's clock
// is a lower bound, and other nodes plan as far ahead as they are configured to.
const redatedLeast = time.Minute

// NextInstants is the type of Edit.Next.
type NextInstants = func(job store.Job, started, now time.Time) (time.Time, error)

// nextInstant is the first instant of an enabled job strictly after a time.
func nextInstant(job store.Job, after time.Time) (time.Time, error) {
	if core.Unscheduled(&job) || runsLeft(&job) == 0 {
		return time.Time{}, nil
	}
	next, err := instantAfter(&job, after)
	return next.Truncate(time.Millisecond), err
}

// Define gives j the definition of def. It reports whether the schedule has to be planned
// anew, and by what. A stop that was the schedule's own doing ends with the schedule, and
// one that its bounds may have brought about with these. Now is a lower bound of the
// store's time.
func Define(j *store.Job, def store.Job, now time.Time) (replan bool, next NextInstants) {
	was := *j
	*j = def
	j.ID, j.Stopped, j.StopReason, j.Ensured = was.ID, was.Stopped, was.StopReason, was.Ensured
	again := false
	switch {
	case was.Schedule != def.Schedule:
		next, again = rescheduled, j.StopReason != "" && j.StopReason != store.StopPruned
	case sameInstants(&was, &def) && was.MaxRuns == def.MaxRuns, goesOnWaiting(&was, &def, now):
		return false, nil
	default:
		next, again = rebounded(&was, &def), strings.HasPrefix(j.StopReason, store.StopFinished)
	}
	if j.Stopped && again {
		j.Stopped, j.StopReason = false, ""
	}
	return true, next
}

// goesOnWaiting reports whether a job that waits for a run may go on to do so where it
// keeps its schedule and gets other bounds: the run is not behind these, and neither is it
// one that is planned for later and would come too early. Its end arms the job by them; a
// later NotBefore is waited for when it comes up then.
func goesOnWaiting(was, def *store.Job, now time.Time) bool {
	behind := !def.NotAfter.IsZero() && was.Last.After(def.NotAfter)
	early := was.Last.Before(def.NotBefore) && was.Last.After(now)
	return was.WaitRun != 0 && was.Schedule == def.Schedule && !behind && !early && (def.MaxRuns == 0 || was.Runs <= def.MaxRuns)
}

// MayFire reports whether a stored job may get a definition that by itself has no instant
// after the given time: it has the instants already, and some have passed; or it is in step
// for one.
func MayFire(has, def *store.Job, now time.Time) bool {
	next, err := instantInStep(def, stepOf(has), now)
	return sameInstants(has, def) || goesOnWaiting(has, def, now) || has.Schedule == def.Schedule && err == nil && !next.IsZero()
}
