package console

// The fields of a job's form: which there are, and how each is read and shown. What is wrong
// with a value the scheduler says; here is only found out what is no value at all.

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/look"
)

// formField is a field of the form. Its label is the text "field." + name, and its help, if it
// has any, "help." + name.
type formField struct {
	name    string
	of      string // the field of xxljob.Job that errors name
	xxl     string // what XXL-JOB calls it, if it has it
	kind    fieldKind
	span    bool // it is a length of time, in seconds
	most    int  // bytes
	least   int64
	upto    int64  // of a number that is not 0
	limit   string // the text about its limits
	options func() []string
	get     func(f *formTexts) string
	set     func(f *formTexts, text string) error
	at      func(*xxljob.Job) *time.Time // of a moment
}

// fieldKind is how a field is shown.
type fieldKind string

const (
	aLine   fieldKind = "line"
	aText   fieldKind = "text"
	aNumber fieldKind = "number"
	aChoice fieldKind = "choice"
	aCheck  fieldKind = "check"
	aMoment fieldKind = "moment"
)

// formTexts is a job between its form and its definition: zone is that of the times in the form.
type formTexts struct {
	job  *xxljob.Job
	zone *time.Location
}

// formGroup is a part of the form.
type formGroup struct {
	name   string
	fields []formField
}

// called is the field with the name that XXL-JOB has for it.
func (f formField) called(xxl string) formField {
	f.xxl = xxl
	return f
}

// within is the field with what its number may be, in the unit of the form.
func (f formField) within(least, upto int64) formField {
	f.least, f.upto, f.limit = least, upto, "form.within"
	if least > 0 {
		f.limit = "form.within.orzero"
	}
	return f
}

// limits says what a field takes.
func (q *request) limits(f *formField) string {
	switch f.limit {
	case "":
		return ""
	case "form.bytes":
		return q.text(f.limit, "n", f.most)
	case "form.links":
		return q.text(f.limit, "n", mostFollowed)
	case "form.tags":
		return q.text(f.limit, "n", mostTags, "bytes", mostTagBytes)
	}
	if f.span {
		second := func(n int64) string {
			if n == 0 {
				return "0"
			}
			return q.look.Span(time.Duration(n) * time.Second)
		}
		key := "form.span"
		if f.least > 0 {
			key = "form.span.orzero"
		}
		return q.text(key, "least", second(f.least), "n", second(f.upto))
	}
	return q.text(f.limit, "least", f.least, "n", f.upto)
}

// What is no value; the texts are keys of words.
var (
	errNumber     = errors.New("fault.number")
	errSpan       = errors.New("fault.span")
	errMoment     = errors.New("fault.moment")
	errNoSuchTime = errors.New("fault.gap")
	errIDs        = errors.New("fault.ids")
)

// list are values to choose from.
func list[T ~string](values ...T) func() []string {
	return func() (names []string) {
		for _, v := range values {
			names = append(names, string(v))
		}
		return names
	}
}

// scheduleTypes are those of a schedule, manual first.
func scheduleTypes() []string {
	return []string{string(xxljob.ScheduleNone), string(xxljob.ScheduleCron), string(xxljob.ScheduleCrontab), string(xxljob.ScheduleCronSeconds), string(xxljob.ScheduleFixRate), string(xxljob.ScheduleFixDelay), string(xxljob.ScheduleOnce)}
}

func text(name, of string, kind fieldKind, most int, at func(*xxljob.Job) *string) formField {
	return formField{name: name, of: of, kind: kind, most: most, limit: "form.bytes",
		get: func(f *formTexts) string { return *at(f.job) },
		set: func(f *formTexts, s string) error {
			if kind == aLine {
				s = strings.TrimSpace(s)
			}
			*at(f.job) = lineFeeds(s)
			return nil
		}}
}

func choice[T ~string](name, of string, options func() []string, at func(*xxljob.Job) *T) formField {
	return formField{name: name, of: of, kind: aChoice, most: 64, options: options,
		get: func(f *formTexts) string { return string(*at(f.job)) },
		set: func(f *formTexts, s string) error { *at(f.job) = T(s); return nil }}
}

func number(name, of string, at func(*xxljob.Job) *int) formField {
	return formField{name: name, of: of, kind: aNumber, most: 20,
		get: func(f *formTexts) string { return strconv.Itoa(*at(f.job)) },
		set: func(f *formTexts, s string) error {
			n, err := strconv.Atoi(orZero(s))
			if err != nil {
				return errNumber
			}
			*at(f.job) = n
			return nil
		}}
}

// length is a length of time, as "1h30m"; a number alone is of seconds, with up to three decimals.
func length(name, of string, at func(*xxljob.Job) *time.Duration) formField {
	return formField{name: name, of: of, kind: aNumber, span: true, most: 20,
		get: func(f *formTexts) string { return shortSpan(*at(f.job)) },
		set: func(f *formTexts, s string) error {
			d, err := spanIn(s)
			if err == nil {
				*at(f.job) = d.Round(time.Millisecond)
			}
			return err
		}}
}

// shortSpan is a length of time as spanIn reads it, as "5m" and not "5m0s".
func shortSpan(d time.Duration) string {
	s := d.String()
	if d == 0 {
		return "0"
	}
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// spanIn reads a length of time.
func spanIn(s string) (time.Duration, error) {
	s = strings.ReplaceAll(orZero(s), " ", "")
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		if !(n >= -1e9 && n <= 9e9) { // what is not a number is neither
			return 0, errSpan
		}
		return time.Duration(math.Round(n*1000)) * time.Millisecond, nil
	}
	d, err := time.ParseDuration(strings.ToLower(s))
	if err != nil {
		return 0, errSpan
	}
	return d, nil
}

// momentLayout is how browsers send a moment.
const momentLayout = "2006-01-02T15:04:05"

func moment(name, of string, at func(*xxljob.Job) *time.Time) formField {
	return formField{name: name, of: of, kind: aMoment, most: 40, at: at,
		get: func(f *formTexts) string {
			if at(f.job).IsZero() {
				return ""
			}
			return at(f.job).In(f.zone).Format(momentLayout)
		},
		set: func(f *formTexts, s string) error {
			if s = strings.TrimSpace(s); s == "" {
				*at(f.job) = time.Time{}
				return nil
			}
			t, err := momentIn(s, f.zone)
			if err != nil {
				return err
			}
			*at(f.job) = t
			return nil
		}}
}

// momentIn reads a moment as browsers send it, or as a person writes it who has no control for
// it. Of a reading that comes twice it is the first.
func momentIn(s string, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{momentLayout, "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		switch t, exists, err := look.ReadingIn(layout, s, zone); {
		case err == nil && !exists:
			return time.Time{}, errNoSuchTime
		case err == nil:
			return t, nil
		}
	}
	return time.Time{}, errMoment
}

// check is what is so or not. A browser sends nothing of a box without a tick, so that the form
// has an empty value before it.
func check(name, of string, at func(*xxljob.Job) *bool) formField {
	return formField{name: name, of: of, kind: aCheck, most: 1,
		get: func(f *formTexts) string {
			if *at(f.job) {
				return "1"
			}
			return ""
		},
		set: func(f *formTexts, s string) error { *at(f.job) = s != ""; return nil }}
}

func ids(name, of string, at func(*xxljob.Job) *[]int64) formField {
	return formField{name: name, of: of, kind: aLine, most: 2000, limit: "form.links",
		get: func(f *formTexts) string {
			var parts []string
			for _, id := range *at(f.job) {
				parts = append(parts, strconv.FormatInt(id, 10))
			}
			return strings.Join(parts, ", ")
		},
		set: func(f *formTexts, s string) error {
			var list []int64
			for _, part := range separate(s) {
				id, err := strconv.ParseInt(part, 10, 64)
				if err != nil {
					return errIDs
				}
				list = append(list, id)
			}
			*at(f.job) = list
			return nil
		}}
}

// keys are jobs as "app/key", one a line: a key may have a comma in it.
func keys(name, of string, at func(*xxljob.Job) *[]string) formField {
	return formField{name: name, of: of, kind: aText, most: 40_000, limit: "form.links",
		get: func(f *formTexts) string { return strings.Join(*at(f.job), "\n") },
		set: func(f *formTexts, s string) error {
			var list []string
			for line := range strings.Lines(lineFeeds(s)) {
				if line = strings.TrimSpace(line); line != "" && !slices.Contains(list, line) {
					list = append(list, line)
				}
			}
			*at(f.job) = list
			return nil
		}}
}

func tagList(name, of string, at func(*xxljob.Job) *[]string) formField {
	return formField{name: name, of: of, kind: aLine, most: 2000, limit: "form.tags",
		get: func(f *formTexts) string { return strings.Join(*at(f.job), ", ") },
		set: func(f *formTexts, s string) error {
			var list []string
			for part := range strings.SplitSeq(s, ",") {
				if part = strings.TrimSpace(part); part != "" && !slices.Contains(list, part) {
					list = append(list, part)
				}
			}
			*at(f.job) = list
			return nil
		}}
}

// lineFeeds is a text from a browser, which ends lines as the network does.
func lineFeeds(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// asShown is a text as a browser sends it back that has shown it and in which nobody has typed
// anything.
func asShown(kind fieldKind, s string) string {
	if s = lineFeeds(s); kind != aText {
		s = strings.ReplaceAll(s, "\n", "")
	}
	return s
}

// separate are the parts of a list that somebody has written.
func separate(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ';' || r == ' ' || r == '\n' || r == '\r' || r == '\t' })
}

func orZero(s string) string {
	if s = strings.TrimSpace(s); s == "" {
		return "0"
	}
	return s
}
