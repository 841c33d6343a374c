package xxljob

// The second opinion on a crontab schedule. In: a job that was just saved. Out: a warning
// where gronx, which many programs read crontab expressions with, reads the job's otherwise.

import (
	"log/slog"
	"time"
)

// warnOfReadings looks whether gronx reads the crontab expressions of jobs that were saved
// as this module does, and logs both readings of each that it reads otherwise. The jobs are
// saved all the same, and fire as read here. An expression takes about a tenth of a
// millisecond, a very long one a few; equal ones are looked at once. It is not to be called
// under a lock.
func warnOfReadings(log *slog.Logger, now time.Time, jobs ...Job) {
	asked := map[string]bool{}
	for i := range jobs {
		j := &jobs[i]
		if j.Schedule.Type != ScheduleCrontab || asked[j.Schedule.Conf] {
			continue
		}
		asked[j.Schedule.Conf] = true
		c, err := compiled(j.Schedule)
		if err != nil {
			continue // and so it was not saved
		}
		if d, differ := c.crontab.SecondOpinion(now, c.loc); differ {
			log.Warn("xxljob: gronx reads the crontab expression differently; the job is saved and fires as read here",
				"job", j.Name, "app", j.App, "schedule", j.Schedule.String(), "here", d.Here, "gronx", d.Gronx)
		}
	}
}
