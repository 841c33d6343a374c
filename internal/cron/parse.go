package cron

import "strings"

func monthNames() []string {
	return []string{"JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE", "JULY",
		"AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER"}
}

func weekdayNames() []string {
	return []string{"SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"}
}

// quartzFields describes the seven fields of a Quartz expression.
func quartzFields() [7]field {
	return [7]field{
		{name: "seconds", position: 1, max: 59, maxStep: 59, noun: "a second", wraps: true, bareStep: true},
		{name: "minutes", position: 2, max: 59, maxStep: 59, noun: "a minute", wraps: true, bareStep: true},
		{name: "hours", position: 3, max: 23, maxStep: 23, noun: "an hour", wraps: true, bareStep: true},
		{name: "day-of-month", position: 4, min: 1, max: 31, maxStep: 31, noun: "a day", wraps: true, bareStep: true},
		{name: "month", position: 5, min: 1, max: 12, maxStep: 12, noun: "a month", wraps: true, bareStep: true,
			names: monthNames(), fullName: true},
		{name: "day-of-week", position: 6, min: 1, max: 7, maxStep: 7, noun: "a weekday", wraps: true, bareStep: true,
			names: weekdayNames(), fullName: true},
		// Years before 1970 are legal and never come. Two digits are a slip.
		{name: "year", position: 7, min: 1000, max: lastYear, maxStep: lastYear, noun: "a year", base: firstYear, bareStep: true},
	}
}

// Parse compiles an expression of the Quartz dialect, of six or seven fields. An
// expression that can never fire, such as one for the 30th of February, is
// accepted; its Next is the zero time. The error is a [*FieldError].
func Parse(expr string) (*Expr, error) {
	texts, err := split(expr)
	if err == nil {
		err = dialectError(expr)
	}
	if err != nil {
		return nil, err
	}
	if err := checkCount(expr, texts); err != nil {
		return nil, err
	}
	e := &Expr{source: strings.Clone(expr)}
	if err := e.compile(texts); err != nil {
		return nil, of(expr, unixDays(err, texts))
	}
	e.finish()
	return e, nil
}

func checkCount(expr string, texts []string) error {
	const want = "6 or 7 fields: seconds minutes hours day-of-month month day-of-week [year]"
	n := len(texts)
	if n == 6 || n == 7 {
		return nil
	}
	if n == 5 || n == 1 && texts[0][0] == '@' {
		return countError(expr, codeIsCrontab, n, want+"; for crontab's five fields and tags use xxljob.Crontab")
	}
	return countError(expr, codeFields, n, want)
}

func (c *calendar) compile(texts []string) error {
	f := quartzFields()
	var sets [7]bitset
	var plain [7]bool
	for i, text := range texts {
		if i == 3 || i == 5 {
			continue
		}
		var err error
		if sets[i], plain[i], err = f[i].parse(text); err != nil {
			return err
		}
	}
	if len(texts) == 6 {
		sets[6], _, _ = f[6].parse("*")
	}
	c.seconds, c.minutes, c.hours = sets[0].low(), sets[1].low(), uint32(sets[2].low())
	c.months, c.years = uint16(sets[4].low()), sets[6]
	c.fixedHours = plain[2]
	return c.rule.parseQuartz(&f[3], texts[3], &f[5], texts[5])
}

// parseQuartz reads the two day fields, of which exactly one is "?".
func (r *dayRule) parseQuartz(days *field, dayText string, weekdays *field, weekdayText string) error {
	r.anyDay, r.anyWeekday = dayText == "?", weekdayText == "?"
	switch {
	case r.anyDay && r.anyWeekday:
		return weekdays.bounded(codeTwoMarks, weekdayText, 0, 0)
	case r.anyDay:
		return r.parseQuartzWeekdays(weekdays, weekdayText)
	case r.anyWeekday:
		return r.parseQuartzDays(days, dayText)
	}
	return weekdays.bounded(codeNoMark, weekdayText, 0, 0)
}

func (r *dayRule) parseQuartzDays(f *field, text string) error {
	for item := range strings.SplitSeq(text, ",") {
		if special, err := r.lastDay(f, item); special {
			if err != nil {
				return err
			}
			continue
		}
		if err := r.plainDay(f, item); err != nil {
			return err
		}
	}
	r.anyDay = r.days == 1<<32-2
	return nil
}

// plainDay reads an item both dialects know: values, ranges, steps and nW.
func (r *dayRule) plainDay(f *field, item string) error {
	if day, ok := strings.CutSuffix(item, "W"); ok {
		n, _, ok := f.value(day)
		if !ok {
			return f.fault(codeNearest, item)
		}
		r.near |= 1 << n
		return nil
	}
	s, err := f.item(item)
	if err != nil {
		return err
	}
	var set bitset
	f.fill(&set, s)
	r.days |= uint32(set.low())
	return nil
}

// lastDay reads L, LW, L-n and L-nW, and reports whether the item was meant to
// be one of them.
func (r *dayRule) lastDay(f *field, item string) (special bool, err error) {
	rest, ok := strings.CutPrefix(item, "L")
	if !ok {
		return false, nil
	}
	rest, near := strings.CutSuffix(rest, "W")
	n := 0
	if rest != "" {
		offset, dashed := strings.CutPrefix(rest, "-")
		n, ok = number(offset)
		if !dashed || !ok || n > 30 {
			return true, f.bounded(codeLast, item, 0, 30)
		}
	}
	if near {
		r.nearLast |= 1 << n
	} else {
		r.fromLast |= 1 << n
	}
	return true, nil
}

func (r *dayRule) parseQuartzWeekdays(f *field, text string) error {
	if text == "L" { // without a weekday it is the last day of the week
		r.weekdays = 1 << 6
		return nil
	}
	if strings.HasSuffix(text, "L") || strings.Contains(text, "#") {
		if strings.Contains(text, ",") {
			return f.bounded(codeAlone, text, 0, 0)
		}
		return r.countedWeekday(f, text)
	}
	set, _, err := f.parse(text)
	if err != nil {
		return err
	}
	r.weekdays = uint8(set.low() >> 1)
	r.anyWeekday = r.weekdays == 1<<7-1
	return nil
}

// countedWeekday reads nL, the last such weekday of a month, and n#k, the k-th.
func (r *dayRule) countedWeekday(f *field, item string) error {
	if day, ok := strings.CutSuffix(item, "L"); ok {
		n, _, ok := f.value(day)
		if !ok {
			return f.fault(codeLastWeekday, item)
		}
		r.lastWeekday |= 1 << ((n - f.min) % 7)
		return nil
	}
	day, count, _ := strings.Cut(item, "#")
	n, _, ok := f.value(day)
	k, counts := number(count)
	if !ok || !counts || k < 1 || k > 5 {
		return f.fault(codeNth, item)
	}
	r.nth[(n-f.min)%7] |= 1 << k
	return nil
}
