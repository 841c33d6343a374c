package console

// When a job runs next.

import (
	"errors"
	"slices"
	"time"

	"github.com/xxljob/xxljob"
)

// nextOf are the next instants of a job whose planned runs are given: those that are of its schedule, the
// one that is to be planned next, and what its schedule says from there on, within its bounds. For
// one that is stopped it is what would be if it were started now. An error says why a schedule
// that is stored cannot be evaluated.
func nextOf(j *xxljob.Job, planned []xxljob.Run, now time.Time) (list []time.Time, err error) {
	from, most := now, nextOnAPage
	if j.NotBefore.After(now) {
		from = j.NotBefore.Add(-time.Millisecond)
	}
	if !j.Stopped {
		list = plannedOf(planned)
		switch {
		case !j.Next.IsZero():
			list, from = append(list, j.Next), j.Next
		case j.Schedule.Type == xxljob.ScheduleFixDelay:
			most = 0 // it goes by when the run ends that is under way
		}
	}
	if j.MaxRuns > 0 { // which counts what is planned
		left := j.MaxRuns - j.Runs
		if from.Equal(j.Next) {
			left--
		}
		most = min(most, max(left, 0))
	}
	more, err := j.Schedule.Upcoming(from, most)
	if err != nil && !errors.Is(err, xxljob.ErrNeverFires) {
		return nil, err
	}
	list = append(list, more...)
	slices.SortFunc(list, time.Time.Compare)
	list = slices.CompactFunc(list, time.Time.Equal)
	list = slices.DeleteFunc(list, func(t time.Time) bool { return !j.NotAfter.IsZero() && t.After(j.NotAfter) })
	return list[:min(len(list), nextOnAPage)], nil
}

// isNext reports whether a run is of an instant of the schedule, and planned and not started.
func isNext(r *xxljob.Run) bool {
	return r.State == xxljob.StatePlanned && r.Born && r.Attempt == 0
}

// plannedOf are the instants of the schedule that are planned and not started.
func plannedOf(runs []xxljob.Run) (list []time.Time) {
	for _, r := range runs {
		if isNext(&r) {
			list = append(list, r.Scheduled)
		}
	}
	return list
}
