package catalog

import (
	"log/slog"
	"time"

	"github.com/xxljob/xxljob/internal/cron"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// The second opinion on a crontab schedule. Input: a job that was just saved. Output: a warning
// where gronx, which many programs read crontab expressions with, reads the job's otherwise.

// warnOfReadings looks whether gronx reads the crontab expressions of jobs that were saved
// as this module does, and logs both readings of each that it reads otherwise. The jobs are
// saved all the same, and fire as read here. Of CronSeconds it names the expressions that Spring reads
// differently. An expression takes about a tenth of a
// millisecond, a very long one a few; equal ones are looked at once. It is not to be called
// under a lock.
func warnOfReadings(log *slog.Logger, now time.Time, jobs ...store.Job) {
	asked := map[string]bool{}
	for i := range jobs {
		j := &jobs[i]
		if asked[j.Schedule.Conf] || j.Schedule.Type != schedule.TypeCrontab && j.Schedule.Type != schedule.TypeCronSeconds {
			continue
		}
		asked[j.Schedule.Conf] = true
		if j.Schedule.Type == schedule.TypeCronSeconds {
			if j.Schedule.EitherDay() {
				log.Info("xxljob: both fields of days are set, and the job is due when either matches, as robfig/cron and gocron read it; in Spring both must, so let the handler look at one of them",
					"job", j.Name, "app", j.App, "schedule", j.Schedule.String())
			}
			continue
		}
		crontab, err := cron.ParseCrontab(j.Schedule.Conf)
		zone, zoneErr := schedule.LoadZone(j.Schedule.Zone)
		if err != nil || zoneErr != nil {
			continue // and so it was not saved
		}
		if d, differ := crontab.SecondOpinion(now, zone); differ {
			log.Warn("xxljob: gronx reads the crontab expression differently; the job is saved and fires as read here",
				"job", j.Name, "app", j.App, "schedule", j.Schedule.String(), "here", d.Here, "gronx", d.Gronx)
		}
	}
}
