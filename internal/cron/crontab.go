package cron

import (
	"errors"
	"strings"
	"time"
)

// Crontab is a compiled expression of [ParseCrontab] or [ParseSeconds]. It is immutable and safe
// for concurrent use.
//
// Where both the day of the month and the weekday are restricted, a day matches
// when either does, as crontab(5) says. Two forms are exceptions, kept from
// gronx and from most cron daemons: when the day-of-month field begins with "*",
// as in "*/2", or the weekday field begins with "*/", both must match. [ParseSeconds] has
// its own rule.
type Crontab struct {
	calendar
	source      string
	withSeconds bool // it was read by ParseSeconds
}

// String returns the expression as it was given.
func (c *Crontab) String() string { return c.source }

// Next returns the first instant strictly after the given one at which the
// expression fires in a zone, in UTC, or the zero time when there is none. A nil
// location means UTC.
func (c *Crontab) Next(after time.Time, loc *time.Location, p Policy) time.Time {
	return next(&c.calendar, after, loc, p)
}

// crontabFields describes the five fields of a crontab expression.
func crontabFields() [5]field {
	return [5]field{
		{name: "minutes", position: 1, max: 59, maxStep: 60, noun: "a minute"},
		{name: "hours", position: 2, max: 23, maxStep: 24, noun: "an hour"},
		{name: "day-of-month", position: 3, min: 1, max: 31, maxStep: 31, noun: "a day"},
		{name: "month", position: 4, min: 1, max: 12, maxStep: 12, noun: "a month", names: monthNames()},
		{name: "day-of-week", position: 5, max: 7, maxStep: 7, noun: "a weekday", names: weekdayNames()},
	}
}

// expandTag returns the five fields a tag stands for. The tags are gronx's, and
// crontab's "@midnight"; its "@everysecond" is finer than a crontab goes.
func expandTag(tag string) (string, bool) {
	switch tag {
	case "@YEARLY", "@ANNUALLY":
		return "0 0 1 1 *", true
	case "@MONTHLY":
		return "0 0 1 * *", true
	case "@WEEKLY":
		return "0 0 * * 0", true
	case "@DAILY", "@MIDNIGHT":
		return "0 0 * * *", true
	case "@HOURLY":
		return "0 * * * *", true
	case "@ALWAYS":
		return "* * * * *", true
	case "@5MINUTES":
		return "*/5 * * * *", true
	case "@10MINUTES":
		return "*/10 * * * *", true
	case "@15MINUTES":
		return "*/15 * * * *", true
	case "@30MINUTES":
		return "0,30 * * * *", true
	}
	return "", false
}

// ParseCrontab compiles an expression of five fields, or a tag. It is stricter
// than gronx, which looks at an item of a list only when it gets there and so
// finds some mistakes only at certain minutes. The error is a [*FieldError].
func ParseCrontab(expr string) (*Crontab, error) {
	texts, err := crontabTexts(expr)
	if err != nil {
		return nil, err
	}
	for i, text := range texts {
		if text == "?" {
			f := crontabFields()
			return nil, of(expr, f[i].fault(codeMark, text))
		}
	}
	c := &Crontab{source: strings.Clone(expr)}
	c.seconds = 1
	if err := c.compileCrontab(crontabFields(), texts); err != nil {
		return nil, of(expr, err)
	}
	c.finish()
	return c, nil
}

// of says which expression a fault is one of.
func of(expr string, err error) error {
	var bad *FieldError
	if errors.As(err, &bad) {
		bad.Expr = shorten(expr)
	}
	return err
}

// crontabTexts returns the five fields of an expression.
func crontabTexts(expr string) ([]string, error) {
	const want = "5 fields: minutes hours day-of-month month day-of-week"
	texts, err := split(expr)
	if err == nil {
		err = dialectError(expr)
	}
	if err != nil {
		return nil, err
	}
	if len(texts) == 1 && texts[0][0] == '@' {
		fields, ok := expandTag(texts[0])
		if !ok {
			return nil, wholeError(expr, FieldError{Code: codeTag, Value: "an unknown tag", Expected: "a tag such as @hourly or @daily; for seconds use xxljob.Cron"})
		}
		texts = strings.Fields(fields)
	}
	switch len(texts) {
	case 5:
		return texts, nil
	case 6:
		return nil, countError(expr, codeHasSeconds, len(texts), want+"; for six, seconds in front, use xxljob.CronSeconds, or xxljob.Cron for Quartz's, where 1 is Sunday")
	case 7:
		return nil, countError(expr, codeIsQuartz, len(texts), want+"; for seven fields use xxljob.Cron")
	}
	return nil, countError(expr, codeTabFields, len(texts), want+", or a tag such as @daily")
}

func (c *calendar) compileCrontab(f [5]field, texts []string) error {
	minutes, _, err := f[0].parse(texts[0])
	if err != nil {
		return err
	}
	hours, plain, err := f[1].parse(texts[1])
	if err != nil {
		return err
	}
	months, _, err := f[3].parse(texts[3])
	if err != nil {
		return err
	}
	c.minutes, c.hours = minutes.low(), uint32(hours.low())
	c.months, c.fixedHours = uint16(months.low()), plain
	for year := range lastYear - firstYear + 1 {
		c.years.add(year)
	}
	return c.rule.parseCrontab(&f[2], texts[2], &f[4], texts[4])
}

// parseCrontab reads the two day fields.
func (r *dayRule) parseCrontab(days *field, dayText string, weekdays *field, weekdayText string) error {
	for item := range strings.SplitSeq(dayText, ",") {
		if item == "L" {
			r.fromLast |= 1
		} else if err := r.plainDay(days, item); err != nil {
			return err
		}
	}
	for item := range strings.SplitSeq(weekdayText, ",") {
		if err := r.crontabWeekday(weekdays, item); err != nil {
			return err
		}
	}
	r.anyDay, r.anyWeekday = dayText == "*", weekdayText == "*"
	r.either = !strings.HasPrefix(dayText, "*") && !strings.HasPrefix(weekdayText, "*/")
	return nil
}

// crontabWeekday reads one item of the weekday field, where both 0 and 7 are
// Sunday.
func (r *dayRule) crontabWeekday(f *field, item string) error {
	if strings.HasSuffix(item, "L") || strings.Contains(item, "#") {
		return r.countedWeekday(f, item)
	}
	text := sundayFirst(item)
	s, err := f.item(text)
	if err != nil {
		return err
	}
	if !strings.Contains(text, "-") && !s.plain {
		s.hi = 6 // "*" and "n/step" count Sunday once, as 0
	}
	var set bitset
	f.fill(&set, s)
	r.weekdays |= uint8(set.low()&0x7f | set.low()>>7&1)
	return nil
}

// sundayFirst has an item begin with 0 that begins with 7 and goes on from there:
// a range may end with 7, and begins with 7 only as the week begins with Sunday.
func sundayFirst(item string) string {
	i := strings.IndexAny(item, "-/")
	if i < 0 {
		return item
	}
	if first, ok := number(item[:i]); !ok || first != 7 {
		return item
	}
	if item[i] == '-' {
		end, _, _ := strings.Cut(item[i+1:], "/")
		if last, ok := number(end); !ok || last >= 7 {
			return item
		}
	}
	return "0" + item[i:]
}
