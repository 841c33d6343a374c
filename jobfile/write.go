package jobfile

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Marshal writes a job as a file has it, in one line; a file is a list of them. What the store sets, such
// as the ID, is not written. LeftOut names fields that the job has and the file is not to have, or not all
// of.
func Marshal(j store.Job, leftOut ...string) ([]byte, error) {
	return object(fieldsOf(&j, &leftOut))
}

// field is a field of an object: a pointer to what it is, or the fields of an object within.
type field struct {
	name   string
	value  any  // a pointer, or []field
	always bool // it is written where it is zero, too
}

// fieldsOf are the fields of a job: all of its definition, in the order in which they are written.
func fieldsOf(j *store.Job, leftOut *[]string) []field {
	s, b := &j.Schedule, &j.RetryBackoff
	return []field{
		{"app", &j.App, true}, {"key", &j.Key, false}, {"name", &j.Name, true}, {"author", &j.Author, false},
		{"alarmEmail", &j.AlarmEmail, false}, {"tags", &j.Tags, false},
		{"schedule", []field{{"type", &s.Type, true}, {"conf", &s.Conf, false}, {"zone", &s.Zone, false}, {"dst", &s.DST, false}}, true},
		{"misfire", &j.Misfire, false}, {"catchUp", &j.CatchUp, false}, {"catchUpMost", &j.CatchUpMost, false},
		{"catchUpAge", (*length)(&j.CatchUpAge), false}, {"onNoExecutor", &j.OnNoExecutor, false},
		{"notBefore", (*moment)(&j.NotBefore), false}, {"notAfter", (*moment)(&j.NotAfter), false}, {"maxRuns", &j.MaxRuns, false},
		{"route", &j.Route, false}, {"handler", &j.Handler, false}, {"param", &j.Param, false}, {"secret", &j.Secret, false},
		{"block", &j.Block, false}, {"maxPerExecutor", &j.MaxPerExecutor, false}, {"timeout", (*length)(&j.Timeout), false},
		{"retries", &j.Retries, false},
		{"retryBackoff", []field{{"first", (*length)(&b.First), false}, {"max", (*length)(&b.Max), false}, {"jitter", &b.Jitter, false}}, false},
		{"retryAside", &j.RetryAside, false}, {"onLost", &j.OnLost, false}, {"maxReruns", &j.MaxReruns, false}, {"maxSnoozes", &j.MaxSnoozes, false},
		{"children", &j.Children, false}, {"childKeys", &j.ChildKeys, false}, {"childParam", &j.ChildParam, false},
		{"after", &j.After, false}, {"afterKeys", &j.AfterKeys, false}, {"afterWindow", (*length)(&j.AfterWindow), false},
		{"afterZone", &j.AfterZone, false}, {"afterTimeout", (*length)(&j.AfterTimeout), false},
		{"lateAfter", (*length)(&j.LateAfter), false}, {"keepRuns", (*length)(&j.KeepRuns), false},
		{"glueType", &j.GlueType, false}, {"glueSource", &j.GlueSource, false}, {"glueRemark", &j.GlueRemark, false},
		{"stopped", &j.Stopped, false},
		{"leftOut", leftOut, false},
	}
}

func object(fields []field) ([]byte, error) {
	text := []byte{'{'}
	for _, f := range fields {
		var value []byte
		var err error
		if inner, ok := f.value.([]field); ok {
			if value, err = object(inner); string(value) == "{}" && !f.always {
				continue
			}
		} else if isZero(f.value) && !f.always {
			continue
		} else {
			value, err = json.Marshal(f.value)
		}
		if err != nil {
			return nil, err
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(append(append(text, '"'), f.name...), '"', ':'), value...)
	}
	return append(text, '}'), nil
}

// isZero reports whether a field has nothing to write.
func isZero(pointer any) bool {
	v := reflect.ValueOf(pointer).Elem()
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

// length is a length of time in a file.
type length time.Duration

func (d *length) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = length(v)
	return err
}

// MarshalText writes "10m" and not "10m0s".
func (d length) MarshalText() ([]byte, error) {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return []byte(text), nil
}

// moment is a time in a file.
type moment time.Time

func (m *moment) UnmarshalJSON(text []byte) error { return (*time.Time)(m).UnmarshalJSON(text) }

func (m moment) MarshalText() ([]byte, error) {
	return []byte(time.Time(m).UTC().Format(TimeFormat)), nil
}
