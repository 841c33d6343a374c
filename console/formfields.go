package console

// The fields of a job's form: which there are, and how each is read and shown. What is wrong
// with a value the scheduler says; here is only found out what is no value at all.

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/block"
	strategies "github.com/xxljob/xxljob/route"
)

// formField is a field of the form. Its label is the text "field." + name, and its help, if it
// has any, "help." + name.
type formField struct {
	name    string
	of      string // the field of xxljob.Job that errors name
	kind    fieldKind
	most    int // bytes
	options func() []string
	get     func(f *formTexts) string
	set     func(f *formTexts, text string) error
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

// What is no value; the texts are keys of words.
var (
	errNumber = errors.New("fault.number")
	errMoment = errors.New("fault.moment")
	errIDs    = errors.New("fault.ids")
)

// formGroups are the fields of the form, in order.
func formGroups() []formGroup {
	return []formGroup{
		{"what", []formField{
			text("name", "Name", aLine, 255, func(j *xxljob.Job) *string { return &j.Name }),
			text("app", "App", aLine, 64, func(j *xxljob.Job) *string { return &j.App }),
			text("key", "Key", aLine, 255, func(j *xxljob.Job) *string { return &j.Key }),
			text("handler", "Handler", aLine, 255, func(j *xxljob.Job) *string { return &j.Handler }),
			text("param", "Param", aText, 64<<10, func(j *xxljob.Job) *string { return &j.Param }),
		}},
		{"when", []formField{
			choice("type", "Schedule", scheduleTypes, func(j *xxljob.Job) *xxljob.ScheduleType { return &j.Schedule.Type }),
			text("conf", "Schedule", aLine, 255, func(j *xxljob.Job) *string { return &j.Schedule.Conf }),
			text("zone", "Schedule", aLine, 64, func(j *xxljob.Job) *string { return &j.Schedule.Zone }),
			choice("dst", "Schedule", list(xxljob.DSTCivil, xxljob.DSTQuartz), func(j *xxljob.Job) *xxljob.DST { return &j.Schedule.DST }),
			moment("notbefore", "NotBefore", func(j *xxljob.Job) *time.Time { return &j.NotBefore }),
			moment("notafter", "NotAfter", func(j *xxljob.Job) *time.Time { return &j.NotAfter }),
			number("maxruns", "MaxRuns", func(j *xxljob.Job) *int { return &j.MaxRuns }),
		}},
		{"how", []formField{
			choice("route", "Route", strategies.Names, func(j *xxljob.Job) *string { return &j.Route }),
			choice("block", "Block", block.Names, func(j *xxljob.Job) *string { return &j.Block }),
			number("maxper", "MaxPerExecutor", func(j *xxljob.Job) *int { return &j.MaxPerExecutor }),
			seconds("timeout", "Timeout", func(j *xxljob.Job) *time.Duration { return &j.Timeout }),
			choice("misfire", "Misfire", list(xxljob.MisfireDoNothing, xxljob.MisfireFireOnceNow), func(j *xxljob.Job) *xxljob.Misfire { return &j.Misfire }),
			choice("catchup", "CatchUp", list("", xxljob.CatchUpEvery, xxljob.CatchUpOnce), func(j *xxljob.Job) *xxljob.CatchUp { return &j.CatchUp }),
			number("retries", "Retries", func(j *xxljob.Job) *int { return &j.Retries }),
			seconds("retrypause", "RetryBackoff", func(j *xxljob.Job) *time.Duration { return &j.RetryBackoff.First }),
			seconds("retrypausemax", "RetryBackoff", func(j *xxljob.Job) *time.Duration { return &j.RetryBackoff.Max }),
			choice("onlost", "OnLost", list("", xxljob.OnLostRerun), func(j *xxljob.Job) *xxljob.OnLost { return &j.OnLost }),
			ids("children", "Children", func(j *xxljob.Job) *[]int64 { return &j.Children }),
			seconds("lateafter", "LateAfter", func(j *xxljob.Job) *time.Duration { return &j.LateAfter }),
			seconds("keepruns", "KeepRuns", func(j *xxljob.Job) *time.Duration { return &j.KeepRuns }),
		}},
		{"who", []formField{
			text("author", "Author", aLine, 64, func(j *xxljob.Job) *string { return &j.Author }),
			text("alarm", "AlarmEmail", aLine, 255, func(j *xxljob.Job) *string { return &j.AlarmEmail }),
			tagList("tags", "Tags", func(j *xxljob.Job) *[]string { return &j.Tags }),
		}},
	}
}

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
	return []string{string(xxljob.ScheduleNone), string(xxljob.ScheduleCron), string(xxljob.ScheduleCrontab), string(xxljob.ScheduleFixRate), string(xxljob.ScheduleFixDelay), string(xxljob.ScheduleOnce)}
}

func text(name, of string, kind fieldKind, most int, at func(*xxljob.Job) *string) formField {
	return formField{name: name, of: of, kind: kind, most: most,
		get: func(f *formTexts) string { return *at(f.job) },
		set: func(f *formTexts, s string) error {
			if kind == aLine {
				s = strings.TrimSpace(s)
			}
			*at(f.job) = strings.ReplaceAll(s, "\r\n", "\n") // as browsers send line feeds
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

// seconds is a length of time, in seconds with up to three decimals.
func seconds(name, of string, at func(*xxljob.Job) *time.Duration) formField {
	return formField{name: name, of: of, kind: aNumber, most: 20,
		get: func(f *formTexts) string { return strconv.FormatFloat(at(f.job).Seconds(), 'f', -1, 64) },
		set: func(f *formTexts, s string) error {
			n, err := strconv.ParseFloat(orZero(s), 64)
			if err != nil || n < -1e9 || n > 1e10 {
				return errNumber
			}
			*at(f.job) = time.Duration(n*1000+0.5) * time.Millisecond
			return nil
		}}
}

// momentLayout is how browsers send a moment.
const momentLayout = "2006-01-02T15:04:05"

func moment(name, of string, at func(*xxljob.Job) *time.Time) formField {
	return formField{name: name, of: of, kind: aMoment, most: 40,
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
			if at(f.job).In(f.zone).Format(momentLayout) == s {
				return nil // as it was, with what the form does not show
			}
			for _, layout := range []string{momentLayout, "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
				if t, err := time.ParseInLocation(layout, s, f.zone); err == nil {
					*at(f.job) = t
					return nil
				}
			}
			return errMoment
		}}
}

func ids(name, of string, at func(*xxljob.Job) *[]int64) formField {
	return formField{name: name, of: of, kind: aLine, most: 2000,
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

func tagList(name, of string, at func(*xxljob.Job) *[]string) formField {
	return formField{name: name, of: of, kind: aLine, most: 2000,
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
