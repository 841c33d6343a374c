package cron

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// Describe returns the schedule in plain English, such as "at 12:00:00 on the
// last Friday of every month".
func (e *Expr) Describe() string { return e.describe(true) }

// Describe returns the schedule in plain English, such as "at 04:30 on Monday to
// Friday".
func (c *Crontab) Describe() string { return c.describe(c.withSeconds) }

// describe puts together the time, the days and the years. Schedules that fire
// at set times say "every day" when they do; the others say how often instead.
func (c *calendar) describe(withSeconds bool) string {
	when, set := c.describeTime(withSeconds)
	days := c.describeDays()
	if days == "" && set {
		days = "every day"
	}
	text := when
	if days != "" {
		text += " " + days
	}
	if years := c.describeYears(); years != "" {
		text += " " + years
	}
	if c.months == 0 || c.years == (bitset{}) {
		text += " (never)"
	}
	return text
}

// describeTime returns the times themselves when they are few, and reports that;
// otherwise it goes from the smallest unit to the largest: "every 5 minutes of
// hours 9 to 17".
func (c *calendar) describeTime(withSeconds bool) (text string, set bool) {
	hours, minutes, seconds, few := c.times()
	if few {
		return "at " + list(clockTimes(hours, minutes, seconds, withSeconds)), true
	}
	units := []unit{{"second", seconds, 60}, {"minute", minutes, 60}, {"hour", hours, 24}}
	for len(units) > 1 && len(units[0].values) == 1 && units[0].values[0] == 0 {
		units = units[1:]
	}
	text = units[0].often()
	for i, u := range units[1:] {
		// "every 5 minutes of every hour" says no more than "every 5 minutes".
		if restFull(units[i+1:]) && !strings.HasPrefix(text, "at ") {
			break
		}
		text += " of " + u.within()
		if restFull(units[i+1:]) {
			break
		}
	}
	return text, false
}

// times are the values of the time fields, and whether they make few times of a day.
func (c *calendar) times() (hours, minutes, seconds []int, few bool) {
	hours, minutes, seconds = members(uint64(c.hours)), members(c.minutes), members(c.seconds)
	return hours, minutes, seconds, len(hours)*len(minutes)*len(seconds) <= 4
}

func restFull(units []unit) bool {
	for _, u := range units {
		if len(u.values) != u.size {
			return false
		}
	}
	return true
}

func clockTimes(hours, minutes, seconds []int, withSeconds bool) (times []string) {
	for _, h := range hours {
		for _, m := range minutes {
			for _, s := range seconds {
				if withSeconds {
					times = append(times, fmt.Sprintf("%02d:%02d:%02d", h, m, s))
				} else {
					times = append(times, fmt.Sprintf("%02d:%02d", h, m))
				}
			}
		}
	}
	return times
}

// A unit is one time field with its matching values.
type unit struct {
	noun   string
	values []int
	size   int
}

// often describes the smallest unit of a schedule, the one that sets its pace.
func (u unit) often() string {
	if len(u.values) == u.size {
		return "every " + u.noun
	}
	if step := progression(u.values); step > 1 {
		return fmt.Sprintf("every %d %ss", step, u.noun) + u.limits(step)
	}
	if u.noun == "hour" {
		return "on the hour in " + u.named()
	}
	return "at " + u.named()
}

// within describes a unit that holds smaller ones.
func (u unit) within() string {
	if len(u.values) == u.size {
		return "every " + u.noun
	}
	if step := progression(u.values); step > 1 {
		return "every " + ordinal(step) + " " + u.noun + u.limits(step)
	}
	return u.named()
}

// limits says where a progression begins and ends, unless it fills the field.
func (u unit) limits(step int) (text string) {
	first, last := u.values[0], u.values[len(u.values)-1]
	if first != 0 || last+step < u.size {
		text = fmt.Sprintf(" from %s %d", u.noun, first)
	}
	if last+step < u.size {
		text += fmt.Sprintf(" to %d", last)
	}
	return text
}

func (u unit) named() string {
	noun := u.noun
	if len(u.values) > 1 {
		noun += "s"
	}
	return noun + " " + runs(u.values, func(v int) string { return fmt.Sprint(v) })
}

// describeDays returns "" when every day matches.
func (c *calendar) describeDays() string {
	r := &c.rule
	months := members(uint64(c.namedMonths))
	within := " of every month"
	in := ""
	if len(months) < 12 {
		names := runs(months, func(m int) string { return time.Month(m).String() })
		within, in = " of "+names, " in "+names
	}
	switch {
	case r.anyDay && r.anyWeekday:
		if in == "" {
			return ""
		}
		return "every day" + in
	case r.anyDay:
		return r.describeWeekdays(within, in)
	case r.anyWeekday:
		return r.describeDates(months, within)
	case r.either:
		return r.describeDates(months, within) + " or " + r.describeWeekdays(within, in)
	}
	return r.describeDates(months, within) + " when that falls " + r.describeWeekdays(within, in)
}

// describeDates describes the day-of-month field.
func (r *dayRule) describeDates(months []int, within string) string {
	days := members(uint64(r.days))
	others := r.fromLast | r.near | r.nearLast
	if len(days) == 1 && len(months) == 1 && others == 0 {
		return fmt.Sprintf("on %d %s", days[0], time.Month(months[0]))
	}
	var parts []string
	if step := progression(days); step > 1 && len(days) > 4 {
		text := fmt.Sprintf("every %s day from the %s on", ordinal(step), ordinal(days[0]))
		if last := days[len(days)-1]; last+step <= 31 {
			text = fmt.Sprintf("every %s day from the %s to the %s", ordinal(step), ordinal(days[0]), ordinal(last))
		}
		parts = append(parts, text)
	} else if len(days) > 0 {
		parts = append(parts, "the "+runs(days, ordinal))
	}
	for _, n := range members(uint64(r.fromLast)) {
		parts = append(parts, beforeLast(n))
	}
	for _, d := range members(uint64(r.near)) {
		parts = append(parts, "the working day nearest the "+ordinal(d))
	}
	for _, n := range members(uint64(r.nearLast)) {
		if n == 0 {
			parts = append(parts, "the last working day")
		} else {
			parts = append(parts, "the working day nearest "+beforeLast(n))
		}
	}
	return "on " + list(parts) + within
}

func beforeLast(n int) string {
	if n == 0 {
		return "the last day"
	}
	return counted(n, "day") + " before the last day"
}

// describeWeekdays describes the day-of-week field, its weeks from Monday on.
func (r *dayRule) describeWeekdays(within, in string) string {
	var parts []string
	if r.weekdays != 0 {
		parts = append(parts, runs(r.fromMonday(), func(d int) string { return time.Weekday((d + 1) % 7).String() }))
	}
	plain := len(parts) > 0
	for w := range 7 {
		for _, n := range members(uint64(r.nth[w])) {
			parts = append(parts, "the "+[...]string{"", "first", "second", "third", "fourth", "fifth"}[n]+" "+time.Weekday(w).String())
		}
		if r.lastWeekday>>w&1 != 0 {
			parts = append(parts, "the last "+time.Weekday(w).String())
		}
	}
	if plain && len(parts) == 1 {
		return "on " + parts[0] + in
	}
	return "on " + list(parts) + within
}

// fromMonday are the days of the week that match, 0 for Monday.
func (r *dayRule) fromMonday() []int {
	return members(uint64(r.weekdays)>>1 | uint64(r.weekdays&1)<<6)
}

// someYears are the years that match, none where all do.
func (c *calendar) someYears() (years []int) {
	for n := c.years.next(0); n >= 0; n = c.years.next(n + 1) {
		years = append(years, firstYear+n)
	}
	if len(years) == lastYear-firstYear+1 {
		return nil
	}
	return years
}

func (c *calendar) describeYears() string {
	years := c.someYears()
	if len(years) == 0 {
		return ""
	}
	first, last := years[0], years[len(years)-1]
	step := progression(years)
	switch {
	case step == 0:
		return "in " + runs(years, func(y int) string { return fmt.Sprint(y) })
	case step == 1 && last == lastYear:
		return fmt.Sprintf("from %d on", first)
	case step == 1:
		return fmt.Sprintf("from %d to %d", first, last)
	case last+step > lastYear:
		return fmt.Sprintf("every %d years from %d on", step, first)
	}
	return fmt.Sprintf("every %d years from %d to %d", step, first, last)
}

// progression returns the step of at least three values at equal distances, or 0.
func progression(values []int) int {
	if len(values) < 3 {
		return 0
	}
	step := values[1] - values[0]
	for i := range values[1:] {
		if values[i+1]-values[i] != step {
			return 0
		}
	}
	return step
}

// runs lists values, with three or more in a row as "9 to 17".
func runs(values []int, name func(int) string) string { return list(spans(values, " to ", name)) }

// spans names values, and three or more in a row by their ends.
func spans(values []int, to string, name func(int) string) (parts []string) {
	for i := 0; i < len(values); {
		end := i
		for end+1 < len(values) && values[end+1] == values[end]+1 {
			end++
		}
		if end-i >= 2 {
			parts = append(parts, name(values[i])+to+name(values[end]))
			i = end + 1
			continue
		}
		parts = append(parts, name(values[i]))
		i++
	}
	return parts
}

// list joins with commas and a last "and".
func list(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

func ordinal(n int) string {
	suffix := "th"
	if n/10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}

// members returns the values of a small set in ascending order.
func members(set uint64) []int {
	values := make([]int, 0, bits.OnesCount64(set))
	for ; set != 0; set &= set - 1 {
		values = append(values, bits.TrailingZeros64(set))
	}
	return values
}
