package console

// When a job runs next.

import (
	"errors"
	"slices"
	"time"

	"github.com/xxljob/xxljob"
)

// nextOf are the next instants of a job: those that are planned, the one that is to be planned
// next, and what its schedule says from there on, within its bounds. For one that is stopped it
// is what would be if it were started now.
func (q *request) nextOf(j *xxljob.Job, now time.Time) (list []time.Time, err error) {
	from, most := now, nextOnAPage
	if j.NotBefore.After(now) {
		from = j.NotBefore.Add(-time.Millisecond)
	}
	if !j.Stopped {
		if list, err = q.plannedOf(j.ID); err != nil {
			return nil, err
		}
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
		return nil, badSchedule{err}
	}
	list = append(list, more...)
	slices.SortFunc(list, time.Time.Compare)
	list = slices.CompactFunc(list, time.Time.Equal)
	list = slices.DeleteFunc(list, func(t time.Time) bool { return !j.NotAfter.IsZero() && t.After(j.NotAfter) })
	return list[:min(len(list), nextOnAPage)], nil
}

// badSchedule is a schedule that is stored and cannot be evaluated.
type badSchedule struct{ error }

// plannedOf are the instants of the schedule that are planned and not started.
func (q *request) plannedOf(id int64) (list []time.Time, err error) {
	runs, err := q.Store.Runs(q.ctx, xxljob.RunFilter{JobID: id, States: []xxljob.State{xxljob.StatePlanned}, Limit: mostPlanned})
	for _, r := range runs {
		if r.Born && r.Attempt == 0 {
			list = append(list, r.Scheduled)
		}
	}
	return list, err
}
