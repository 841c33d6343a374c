package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
)

// Type is XXL-JOB's schedule_type, with three values of ours.
type Type string

// The schedule types as they are stored.
const (
	TypeNone     Type = "NONE"
	TypeCron     Type = "CRON"
	TypeFixRate  Type = "FIX_RATE"
	TypeFixDelay Type = "FIX_DELAY"
	TypeCrontab  Type = "CRONTAB" // ours
	TypeOnce     Type = "ONCE"    // ours
	// TypeCronSeconds is ours too; nodes of releases that do not know it leave such jobs alone.
	TypeCronSeconds Type = "CRON_SECONDS"
)

// DST says what a schedule with an expression does when a zone's clocks change.
type DST string

const (
	// DSTCivil, the default: a fixed local time that falls in a gap fires once,
	// at the first instant after the gap, and in an overlap at the first of the
	// two; a schedule with a wildcard, range or step in the hour follows the
	// wall clock through both. Never twice for one instant.
	DSTCivil DST = ""
	// DSTQuartz does what Quartz does: it skips the gap and is silent in the
	// first of two repeated hours.
	DSTQuartz DST = "QUARTZ"
)

// scheduleTypes are the types that there are.
func scheduleTypes() []string {
	return []string{string(TypeNone), string(TypeCron), string(TypeFixRate), string(TypeFixDelay), string(TypeCrontab), string(TypeCronSeconds), string(TypeOnce)}
}

// Schedule says when a job is due. It is a comparable value, stored as
// XXL-JOB's schedule_type and schedule_conf plus a zone. Make one with Cron,
// Crontab, CronSeconds, FixedRate, FixedDelay, At or Manual; the zero value is Manual().
// An invalid one is found by Next and by every call that saves a job, with a *Error; a
// zone or a DST policy of a type that has none by the latter alone.
type Schedule struct {
	Type Type
	// Conf is the expression, or seconds, or for ONCE a time (RFC 3339).
	Conf string
	// Zone is an IANA name for Cron, Crontab and CronSeconds; empty means UTC (in a Job:
	// Config.Location).
	Zone string
	// DST is the policy for days on which the zone's clocks change.
	DST DST
}

// Cron returns a schedule in Quartz's dialect: six or seven fields (second
// minute hour day-of-month month day-of-week [year]), 1 = SUN, exactly one ?.
// For six fields as robfig/cron, gocron and Spring write them there is CronSeconds.
func Cron(expr string) Schedule { return Schedule{Type: TypeCron, Conf: strings.TrimSpace(expr)} }

// Crontab returns a schedule in the five-field dialect of crontab, or one of
// its @tags; 0 and 7 are Sunday. A job with an expression that gronx, another library,
// reads differently is saved with a warning in the log that shows both readings.
func Crontab(expr string) Schedule {
	return Schedule{Type: TypeCrontab, Conf: strings.TrimSpace(expr)}
}

// CronSeconds returns a schedule in the six-field dialect of robfig/cron and gocron (second minute
// hour day-of-month month day-of-week), or one of its @tags: 0 and 7 are Sunday, ? is *, and
// where both fields of days are set a day matches when either does. A field of days with the
// item *, or */1, is not set. Steps that are longer than their field are refused.
func CronSeconds(expr string) Schedule {
	return Schedule{Type: TypeCronSeconds, Conf: strings.TrimSpace(expr)}
}

// FixedRate returns a schedule that is due every d of elapsed time. d is a
// whole number of milliseconds, at least one second unless
// Config.Limits.AllowSubSecond.
func FixedRate(d time.Duration) Schedule {
	return Schedule{Type: TypeFixRate, Conf: formatSeconds(d)}
}

// FixedDelay returns a schedule that is due d after the end of its previous
// run (XXL-JOB announces it; here it works), and first d after the job is
// started. The same limits as for FixedRate hold.
func FixedDelay(d time.Duration) Schedule {
	return Schedule{Type: TypeFixDelay, Conf: formatSeconds(d)}
}

// At returns a schedule with the one instant t, to the millisecond.
func At(t time.Time) Schedule {
	return Schedule{Type: TypeOnce, Conf: t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)}
}

// Manual returns the schedule that is never due: such a job runs when
// something triggers it.
func Manual() Schedule { return Schedule{} }

// In returns s in the IANA zone, for instance "Asia/Shanghai". It is for Cron,
// Crontab and CronSeconds: a job is not saved whose schedule of another type has a zone.
func (s Schedule) In(zone string) Schedule { s.Zone = zone; return s }

// WithDST returns s with the given policy for days on which clocks change. Like a zone
// it is for Cron, Crontab and CronSeconds alone.
func (s Schedule) WithDST(p DST) Schedule { s.DST = p; return s }

// IsManual reports whether s is never due by itself.
func (s Schedule) IsManual() bool { return s.Type == "" || s.Type == TypeNone }

// Next returns the first instant strictly after the given one, in UTC; the
// zero time when there is none; an error when s is invalid. For FixedRate and
// FixedDelay it is after + d.
func (s Schedule) Next(after time.Time) (time.Time, error) {
	switch s.Type {
	case TypeCron, TypeCrontab, TypeCronSeconds:
		c, err := compiled(s)
		if err != nil {
			return time.Time{}, err
		}
		return c.next(after), nil
	case TypeFixRate, TypeFixDelay:
		d, err := s.Every()
		if err != nil {
			return time.Time{}, err
		}
		return after.UTC().Add(d), nil
	case TypeOnce:
		at, err := time.Parse(time.RFC3339Nano, s.Conf)
		if err != nil {
			return time.Time{}, faultyField("Conf", s.Conf, "time", "2027-03-01T08:00:00Z", fmt.Errorf("xxljob: schedule ONCE %q: want a time as RFC 3339: %w", s.Conf, err))
		}
		if at = at.Truncate(time.Millisecond); at.After(after) {
			return at.UTC(), nil
		}
		return time.Time{}, nil
	case "", TypeNone:
		return time.Time{}, nil
	}
	return time.Time{}, faultyField("Type", string(s.Type), "type", strings.Join(scheduleTypes(), ", "), fmt.Errorf("xxljob: schedule type %q is unknown: %s", s.Type, errs.OneOf(string(s.Type), scheduleTypes())))
}

// Previous returns the last instant strictly before the given one, in UTC, from 1970 on; the zero
// time when there is none; an error when s is invalid. For FixedRate and FixedDelay it is
// before - d. It takes some thirty times as long as Next.
func (s Schedule) Previous(before time.Time) (time.Time, error) {
	if !s.GoesByClocks() {
		at, err := s.Next(time.Time{})
		switch d, _ := s.Every(); {
		case err != nil, at.IsZero():
			return time.Time{}, err
		case d > 0:
			return before.UTC().Add(-d), nil
		case at.Before(before):
			return at, nil
		}
		return time.Time{}, nil
	}
	c, err := compiled(s)
	if err != nil {
		return time.Time{}, err
	}
	return lastBefore(c.next, before), nil
}

// lastBefore is the last instant before a time, by what says which is the first after one. It goes
// back until it finds one, then halves what lies between.
func lastBefore(next func(time.Time) time.Time, before time.Time) (last time.Time) {
	found := func(after time.Time) bool {
		if at := next(after); !at.IsZero() && at.Before(before) {
			last = at
			return true
		}
		return false
	}
	from, first := before, time.Unix(-1, 0)
	for back := time.Minute; !found(from); back *= 8 {
		if !from.After(first) {
			return time.Time{}
		}
		if from = before.Add(-back); from.Before(first) {
			from = first
		}
	}
	for until := before; until.Sub(last) > time.Second; {
		if mid := last.Add(until.Sub(last) / 2); !found(mid) {
			until = mid
		}
	}
	for found(last) {
	}
	return last
}

// Upcoming returns the next n instants after the given one, fewer when there
// are fewer. For FixedDelay these are the instants of runs that take no time.
func (s Schedule) Upcoming(after time.Time, n int) ([]time.Time, error) {
	var times []time.Time
	for len(times) < n {
		next, err := s.Next(after)
		if err != nil || next.IsZero() {
			return times, err
		}
		times, after = append(times, next), next
	}
	return times, nil
}

// Every returns the period of a FixedRate or FixedDelay schedule, zero for the
// other types.
func (s Schedule) Every() (time.Duration, error) {
	if s.Type != TypeFixRate && s.Type != TypeFixDelay {
		return 0, nil
	}
	d, code, why := parseSeconds(s.Conf)
	if why == nil {
		return d, nil
	}
	example := "60"
	switch {
	case code == "too-long":
		example = formatSeconds(MaxPeriod)
	case d > 0: // which was meant
		example = formatSeconds(d)
	}
	return 0, faultyField("Conf", s.Conf, code, example, fmt.Errorf("xxljob: schedule %s %q: %w", s.Type, s.Conf, why))
}

// String returns type, conf and zone as they are stored.
func (s Schedule) String() string {
	if s.IsManual() {
		return string(TypeNone)
	}
	return strings.TrimSpace(string(s.Type) + " " + s.Conf + " " + s.Zone)
}

// WithZone gives a schedule of wall-clock times the zone that an empty one
// stands for, so that it means the same on every node.
func (s Schedule) WithZone(loc *time.Location) Schedule {
	if s.Zone == "" && loc != nil && loc != time.UTC && s.GoesByClocks() {
		s.Zone = loc.String()
	}
	if s.Type == "" {
		s.Type = TypeNone
	}
	return s
}

// EitherDay reports whether s is a Crontab or CronSeconds of which both fields of days are set, so that it
// is due on the days that either names. Of the same expression Spring takes the days that both name.
func (s Schedule) EitherDay() bool {
	if s.Type != TypeCrontab && s.Type != TypeCronSeconds {
		return false
	}
	c, err := compile(s)
	return err == nil && c.crontab.EitherDay()
}

// GoesByClocks reports whether s is of a type that has a Zone and a DST: Cron, Crontab or CronSeconds.
func (s Schedule) GoesByClocks() bool {
	return s.Type == TypeCron || s.Type == TypeCrontab || s.Type == TypeCronSeconds
}

// Validate reports what is wrong with s, whether or not it will ever be due, as a
// *Error. Rates under one second are refused unless subSecond is set.
func (s Schedule) Validate(subSecond bool) error {
	if s.DST != DSTCivil && s.DST != DSTQuartz {
		return faultyField("DST", string(s.DST), "dst", "", fmt.Errorf("DST policy %q is unknown: %s", s.DST, errs.OneOf(string(s.DST), []string{`""`, string(DSTQuartz)})))
	}
	if _, err := LoadZone(s.Zone); err != nil {
		return s.faultyZone(err)
	}
	if _, err := s.Next(time.Unix(0, 0)); err != nil {
		return err
	}
	if !s.GoesByClocks() && s.Zone != "" {
		return faultyField("Zone", s.Zone, "no-zone", string(s.Type), fmt.Errorf("a schedule of type %s has no zone, and this one has %q: only clocks on the wall differ from zone to zone", s.Type, s.Zone))
	}
	if !s.GoesByClocks() && s.DST != DSTCivil {
		return faultyField("DST", string(s.DST), "no-dst", string(s.Type), fmt.Errorf("a schedule of type %s has no DST policy, and this one has %q: only clocks on the wall are changed", s.Type, s.DST))
	}
	d, _ := s.Every()
	if d != 0 && d < time.Second && !subSecond {
		return faultyField("Conf", s.Conf, "sub-second", "", errors.New("under one second needs Config.Limits.AllowSubSecond"))
	}
	return nil
}

// faultyZone is what is wrong with the name of the zone.
func (s Schedule) faultyZone(err error) error {
	if s.Zone == "Local" {
		return faultyField("Zone", s.Zone, "zone-local", "", err)
	}
	return faultyField("Zone", s.Zone, "zone", zoneMeant(s.Zone), err)
}

// formatSeconds writes d as XXL-JOB stores it: seconds, with a fraction only
// where one is needed. The fraction is exact.
func formatSeconds(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign = "-"
	}
	whole, fraction := (d / time.Second).Abs(), (d % time.Second).Abs()
	text := sign + strconv.FormatInt(int64(whole), 10)
	if fraction == 0 {
		return text
	}
	return text + "." + strings.TrimRight(fmt.Sprintf("%09d", int64(fraction)), "0")
}

// MaxPeriod keeps sums of times and periods far from overflow: 100 years.
const MaxPeriod = 100 * 365 * 24 * time.Hour

// parseSeconds reads a period. What it has no seconds of is a fault, by the code of a
// Error, and the period that was meant, or zero.
func parseSeconds(conf string) (d time.Duration, code string, why error) {
	if strings.Trim(conf, "+-.0123456789") != "" { // ParseDuration would read units
		if d, err := time.ParseDuration(conf); err == nil {
			return d, "seconds", errors.New("want seconds: " + formatSeconds(d))
		}
		return 0, "seconds", errors.New("want seconds")
	}
	d, err := time.ParseDuration(conf + "s")
	switch {
	case err != nil:
		return 0, "seconds", errors.New("want seconds")
	case d <= 0:
		return 0, "positive", errors.New("must be positive")
	case d > MaxPeriod:
		return 0, "too-long", errors.New("more than 100 years")
	case d%time.Millisecond != 0:
		return 0, "milliseconds", errors.New("want a whole number of milliseconds")
	}
	return d, "", nil
}
