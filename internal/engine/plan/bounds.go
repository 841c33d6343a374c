package plan

import (
	"math"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// The bounds of a schedule: which of its instants exist for a job, and how many of them
// become runs.

// boundsInWords are NotBefore and NotAfter, where they are set.
func boundsInWords(j *store.Job) string {
	var list []string
	if !j.NotBefore.IsZero() {
		list = append(list, "NotBefore "+errs.InWords(j.NotBefore))
	}
	if !j.NotAfter.IsZero() {
		list = append(list, "NotAfter "+errs.InWords(j.NotAfter))
	}
	return strings.Join(list, ", ")
}

// sameInstants reports whether the schedules of two jobs have the same instants for them.
func sameInstants(j, other *store.Job) bool {
	return j.Schedule == other.Schedule && j.NotBefore.Equal(other.NotBefore) && j.NotAfter.Equal(other.NotAfter)
}

// Within reports whether an instant is within the job's bounds.
func Within(j *store.Job, at time.Time) bool {
	return !at.Before(j.NotBefore) && (j.NotAfter.IsZero() || !at.After(j.NotAfter))
}

// runsLeft is how many more runs the schedule makes.
func runsLeft(j *store.Job) int {
	if j.MaxRuns == 0 {
		return math.MaxInt
	}
	return max(j.MaxRuns-j.Runs, 0)
}

// instantAfter is the job's first instant strictly after a time, zero for none: that of its
// Schedule, of which nothing before NotBefore and after NotAfter exists. How many runs are
// left is another matter.
func instantAfter(j *store.Job, after time.Time) (time.Time, error) {
	return instantInStep(j, after, after)
}

// instantInStep is instantAfter where a FixedRate keeps step with an instant, before or
// behind that time, and a FixedDelay is due at that instant, unless it is past.
func instantInStep(j *store.Job, with, after time.Time) (next time.Time, err error) {
	period, err := j.Schedule.Every()
	if err != nil {
		return time.Time{}, err
	}
	if with.IsZero() {
		with = after
	}
	from := after // the first instant after it is not before NotBefore
	if before := j.NotBefore.Add(-time.Millisecond); before.After(after) {
		from = before
	}
	switch j.Schedule.Type {
	case schedule.TypeFixRate:
		next = stepAfter(with, period, from)
	case schedule.TypeFixDelay:
		if next = after.UTC().Add(period); with.After(after) {
			next = with
		}
		if next.Before(j.NotBefore) {
			next = j.NotBefore
		}
	default:
		next, err = j.Schedule.Next(from)
	}
	if err != nil || !Within(j, next) {
		return time.Time{}, err
	}
	return next, nil
}

// stepAfter is the first time strictly after another that is a whole number of periods away
// from the given one. It counts in milliseconds, since a time.Duration ends at 292 years.
func stepAfter(with time.Time, period time.Duration, after time.Time) time.Time {
	d := period.Milliseconds()
	ahead := (with.UnixMilli() - after.UnixMilli()) % d
	if ahead <= 0 {
		ahead += d
	}
	return time.UnixMilli(after.UnixMilli() + ahead).UTC()
}

// stepOf is the instant that the schedule keeps step with where only its bounds change: the
// next one, else the one planned last, zero for none.
func stepOf(j *store.Job) time.Time {
	if j.Next.IsZero() {
		return j.Last
	}
	return j.Next
}
