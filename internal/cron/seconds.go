package cron

import (
	"fmt"
	"slices"
	"strings"
)

// The dialect of robfig/cron with its option for seconds, which gocron has too: the five fields
// of a crontab with seconds in front.

// ParseSeconds compiles an expression of six fields, second minute hour day-of-month month
// day-of-week, or a tag such as "@daily". 0 and 7 are Sunday, "?" is "*", and where both fields
// of days are restricted a day matches when either does. A field of days restricts nothing where
// one of its items is "*", or "*" with the step 1; unlike in a crontab "*/2" does restrict. What
// robfig takes is taken, but for steps that are longer than their field, which would be silent
// traps; beyond it 7 and what [ParseCrontab] knows of L, W and #. The error is a [*FieldError].
func ParseSeconds(expr string) (*Crontab, error) {
	texts, err := split(expr)
	if err == nil {
		err = dialectError(expr)
	}
	if err != nil {
		return nil, err
	}
	const want = "6 fields: seconds minutes hours day-of-month month day-of-week"
	if len(texts) == 1 && texts[0][0] == '@' {
		fields, ok := expandTag(texts[0])
		if !ok {
			return nil, wholeError(expr, FieldError{Code: codeTag, Value: "an unknown tag", Expected: "a tag such as @hourly or @daily"})
		}
		texts = append([]string{"0"}, strings.Fields(fields)...)
	}
	switch len(texts) {
	case 6:
	case 5:
		return nil, countError(expr, codeNoSeconds, 5, want+"; for crontab's five fields use xxljob.Crontab")
	case 7:
		return nil, countError(expr, codeIsQuartz, 7, want+"; for seven fields use xxljob.Cron")
	default:
		return nil, countError(expr, codeNoSeconds, len(texts), want+", or a tag such as @daily")
	}
	c := &Crontab{source: strings.Clone(expr), withSeconds: true}
	if err := c.compileSeconds(texts); err != nil {
		return nil, of(expr, err)
	}
	c.finish()
	return c, nil
}

func (c *calendar) compileSeconds(texts []string) error {
	texts = slices.Clone(texts)
	for i := range texts {
		texts[i] = strings.ReplaceAll(texts[i], "?", "*")
	}
	f := field{name: "seconds", position: 1, max: 59, maxStep: 60, noun: "a second"}
	seconds, _, err := f.parse(texts[0])
	if err != nil {
		return err
	}
	fields := crontabFields()
	for i := range fields {
		fields[i].position++
		fields[i].loose = true
	}
	if err := c.compileCrontab(fields, texts[1:]); err != nil {
		return err
	}
	c.seconds = seconds.low()
	r := &c.rule
	r.anyDay, r.anyWeekday, r.either = unrestricted(texts[3]), unrestricted(texts[5]), true
	return nil
}

// EitherDay reports whether both fields of days are set, and a day is one where either matches.
func (c *calendar) EitherDay() bool { return c.rule.either && !c.rule.anyDay && !c.rule.anyWeekday }

// unrestricted reports whether a field of days has an item that is all of them.
func unrestricted(text string) bool {
	for item := range strings.SplitSeq(text, ",") {
		if body, step, _ := strings.Cut(item, "/"); body == "*" && (step == "" || strings.TrimLeft(step, "0") == "1") {
			return true
		}
	}
	return false
}

// unixDays adds to a fault of an expression that lacks Quartz's "?" what to write instead, where
// it is one of [ParseSeconds]: those who come from robfig, gocron or Spring write six fields too,
// and count weekdays from Monday on. The weekdays of what is proposed have names.
func unixDays(err error, texts []string) error {
	bad, ok := err.(*FieldError)
	if !ok || bad.Code != codeNoMark || len(texts) != 6 {
		return err
	}
	expr := strings.Join(texts, " ")
	c, wrong := ParseSeconds(expr)
	if wrong != nil {
		return err
	}
	r := &c.rule
	if !unrestricted(texts[3]) && !unrestricted(texts[5]) {
		bad.Code = codeBothDays
		bad.Expected = fmt.Sprintf(`"?" in exactly one of day-of-month and day-of-week; xxljob.CronSeconds(%q) has both, and is due when either matches; where both must match, as in Spring, let the handler look at one of them`, expr)
		return err
	}
	quartz := slices.Clone(texts)
	if unrestricted(texts[5]) {
		quartz[5] = "?"
	} else {
		quartz[3], quartz[5] = "?", r.weekdayNames()
	}
	bad.Example = strings.Join(quartz, " ")
	if e, wrong := Parse(bad.Example); wrong != nil || e.Describe() != c.Describe() {
		bad.Example = ""
		return err
	}
	bad.Code = codeUnixDays
	bad.Expected = fmt.Sprintf(`"?" in exactly one of day-of-month and day-of-week: use xxljob.Cron(%q), for 1 is Sunday there, or xxljob.CronSeconds(%q), where 1 is Monday`, bad.Example, expr)
	return err
}

// weekdayNames are the weekdays that match, as Quartz's field has them.
func (r *dayRule) weekdayNames() string {
	names := weekdayNames()
	return strings.Join(spans(r.fromMonday(), "-", func(d int) string { return names[(d+1)%7][:3] }), ",")
}
