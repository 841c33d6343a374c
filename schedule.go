package xxljob

import (
	"time"

	"github.com/xxljob/xxljob/schedule"
)

// Schedule says when a job is due. It is a comparable value: make one with [Cron], [Crontab],
// [CronSeconds], [FixedRate], [FixedDelay], [At] or [Manual]. Its Zone is where its times are those of clocks
// on the wall, an IANA name or "" for Config.Location, and its DST what happens when these
// change. Next and Upcoming are its instants, Describe says it in words. For the rest see
// [schedule.Schedule].
type Schedule = schedule.Schedule

// ScheduleType is the Type of a Schedule: XXL-JOB's schedule_type, with three values of ours. See
// [schedule.Type].
type ScheduleType = schedule.Type

// The schedule types as they are stored.
const (
	ScheduleNone     ScheduleType = schedule.TypeNone
	ScheduleCron     ScheduleType = schedule.TypeCron
	ScheduleFixRate  ScheduleType = schedule.TypeFixRate
	ScheduleFixDelay ScheduleType = schedule.TypeFixDelay
	ScheduleCrontab  ScheduleType = schedule.TypeCrontab // ours
	ScheduleOnce     ScheduleType = schedule.TypeOnce    // ours

	ScheduleCronSeconds ScheduleType = schedule.TypeCronSeconds // ours
)

// DST says what a schedule with an expression does when a zone's clocks change. See [schedule.DST].
type DST = schedule.DST

// What happens when the clocks of a zone change.
const (
	// DSTCivil, the default: a time that falls in a gap fires once, right behind the gap, and
	// in an overlap at the first of the two; a wildcard, range or step in the hour follows the
	// clock on the wall through both.
	DSTCivil DST = schedule.DSTCivil
	// DSTQuartz skips the gap, and is silent in the first of two repeated hours, as Quartz is.
	DSTQuartz DST = schedule.DSTQuartz
)

// ScheduleError is what is wrong with a Schedule: which Field, of which kind (Code), and where
// in an expression. errors.As finds it in what calls return that save a job; In says it in
// English or Chinese. See [schedule.Error].
type ScheduleError = schedule.Error

// Cron returns a schedule in Quartz's dialect: six or seven fields (second
// minute hour day-of-month month day-of-week [year]), 1 = SUN, exactly one ?.
// For six fields as robfig/cron, gocron and Spring write them there is [CronSeconds].
func Cron(expr string) Schedule { return schedule.Cron(expr) }

// Crontab returns a schedule in the five-field dialect of crontab, or one of
// its @tags; 0 and 7 are Sunday. A job with an expression that gronx, another library,
// reads differently is saved with a warning in the log that shows both readings.
func Crontab(expr string) Schedule { return schedule.Crontab(expr) }

// CronSeconds returns a schedule in the six-field dialect of robfig/cron and gocron (second minute
// hour day-of-month month day-of-week), or one of its @tags: 0 and 7 are Sunday, ? is *, and
// where both fields of days are set a day matches when either does. A field of days with the
// item *, or */1, is not set. Steps that are longer than their field are refused.
func CronSeconds(expr string) Schedule { return schedule.CronSeconds(expr) }

// FixedRate returns a schedule that is due every d of elapsed time. d is a
// whole number of milliseconds, at least one second unless
// Config.Limits.AllowSubSecond.
func FixedRate(d time.Duration) Schedule { return schedule.FixedRate(d) }

// FixedDelay returns a schedule that is due d after the end of its previous
// run (XXL-JOB announces it; here it works), and first d after the job is
// started. The same limits as for FixedRate hold.
func FixedDelay(d time.Duration) Schedule { return schedule.FixedDelay(d) }

// At returns a schedule with the one instant t, to the millisecond.
func At(t time.Time) Schedule { return schedule.At(t) }

// Manual returns the schedule that is never due: such a job runs when
// something triggers it.
func Manual() Schedule { return schedule.Manual() }
