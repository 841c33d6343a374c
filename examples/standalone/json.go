package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xxljob/xxljob"
)

// fields are the keys of an object and what they are read into: a pointer, or
// fields for an object in the object.
type fields map[string]any

// durations are those of a job, as texts such as "30s".
type durations struct {
	timeout, pause, mostPause, window, windowTimeout, late, keep, catchAge duration
}

// set gives the job its durations.
func (d *durations) set(j *xxljob.Job) {
	j.Timeout = time.Duration(d.timeout)
	j.RetryBackoff.First, j.RetryBackoff.Max = time.Duration(d.pause), time.Duration(d.mostPause)
	j.AfterWindow, j.AfterTimeout, j.LateAfter = time.Duration(d.window), time.Duration(d.windowTimeout), time.Duration(d.late)
	j.KeepRuns, j.CatchUpAge = time.Duration(d.keep), time.Duration(d.catchAge)
}

// fieldsOf are the fields of a job: all of its definition. Durations are kept beside it.
func fieldsOf(j *xxljob.Job, d *durations) fields {
	return fields{
		"app": &j.App, "key": &j.Key, "name": &j.Name, "author": &j.Author, "alarmEmail": &j.AlarmEmail, "tags": &j.Tags,
		"schedule": fields{"type": &j.Schedule.Type, "conf": &j.Schedule.Conf, "zone": &j.Schedule.Zone, "dst": &j.Schedule.DST},
		"misfire":  &j.Misfire, "catchUp": &j.CatchUp, "catchUpMost": &j.CatchUpMost, "catchUpAge": &d.catchAge, "onNoExecutor": &j.OnNoExecutor,
		"notBefore": &j.NotBefore, "notAfter": &j.NotAfter, "maxRuns": &j.MaxRuns,
		"route": &j.Route, "handler": &j.Handler, "param": &j.Param, "block": &j.Block,
		"maxPerExecutor": &j.MaxPerExecutor,
		"timeout":        &d.timeout, "retries": &j.Retries,
		"children": &j.Children, "childKeys": &j.ChildKeys, "childParam": &j.ChildParam,
		"after": &j.After, "afterKeys": &j.AfterKeys, "afterWindow": &d.window, "afterZone": &j.AfterZone, "afterTimeout": &d.windowTimeout,
		"lateAfter": &d.late, "keepRuns": &d.keep,
		"retryBackoff": fields{"first": &d.pause, "max": &d.mostPause, "jitter": &j.RetryBackoff.Jitter},
		"retryAside":   &j.RetryAside, "onLost": &j.OnLost, "maxReruns": &j.MaxReruns, "maxSnoozes": &j.MaxSnoozes,
		"glueType": &j.GlueType, "glueSource": &j.GlueSource, "glueRemark": &j.GlueRemark,
		"stopped": &j.Stopped,
	}
}

// parseJSON reads a list of jobs. encoding/json alone would stop at the first fault
// and not say where an unknown field is, so objects are read key by key.
func (p *parser) parseJSON(data []byte) {
	r := reader{p: p, data: data}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		at := len(data)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && !strings.HasPrefix(err.Error(), "unexpected end") {
			at = int(syntax.Offset) - 1 // Offset is behind the fault
		}
		r.fault(at, "%v", err)
		return
	}
	start := len(data) - len(bytes.TrimLeft(data, " \t\r\n"))
	if data[start] != '[' {
		r.fault(start, "want a list of jobs, not %s", shown(bytes.TrimSpace(data)))
		return
	}
	dec := r.open(start)
	for dec.More() {
		var raw json.RawMessage
		_ = dec.Decode(&raw) // cannot fail: the syntax is right
		r.job(start+int(dec.InputOffset())-len(raw), raw)
	}
}

// reader reads what is known to be JSON.
type reader struct {
	p    *parser
	data []byte
}

// fault reports something at an offset.
func (r *reader) fault(at int, format string, args ...any) {
	line, column := r.place(at)
	r.p.fault(line, column, format, args...)
}

// place turns an offset into line and column, both from 1.
func (r *reader) place(at int) (line, column int) {
	before := r.data[:min(max(at, 0), len(r.data))]
	lastLine := before[bytes.LastIndexByte(before, '\n')+1:]
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(lastLine) + 1
}

// open returns a decoder inside the list or object that begins at an offset.
func (r *reader) open(at int) *json.Decoder {
	dec := json.NewDecoder(bytes.NewReader(r.data[at:]))
	_, _ = dec.Token()
	return dec
}

// job reads the job that begins at an offset. One with faults is left out of the
// further checks, which would only repeat them.
func (r *reader) job(at int, raw json.RawMessage) {
	var j xxljob.Job
	var d durations
	had := len(r.p.faults)
	r.object(at, raw, "a job", fieldsOf(&j, &d))
	if len(r.p.faults) > had {
		return
	}
	d.set(&j)
	line, _ := r.place(at)
	r.p.add(line, j)
}

// object reads an object into its fields.
func (r *reader) object(at int, raw json.RawMessage, what string, f fields) {
	if raw[0] != '{' {
		r.fault(at, "want %s as an object, not %s", what, shown(raw))
		return
	}
	seen := map[string]bool{}
	dec := r.open(at)
	for dec.More() {
		keyAt := at + int(dec.InputOffset())
		keyAt += bytes.IndexByte(r.data[keyAt:], '"') // a comma and blanks come before it
		token, _ := dec.Token()
		key, _ := token.(string)
		var raw json.RawMessage
		_ = dec.Decode(&raw)
		valueAt := at + int(dec.InputOffset()) - len(raw)
		target, known := f[key]
		switch {
		case !known:
			r.fault(keyAt, "unknown field %q of %s; there are %s", key, what, strings.Join(slices.Sorted(maps.Keys(f)), ", "))
		case seen[key]:
			r.fault(keyAt, "field %q is given twice", key)
		default:
			r.value(valueAt, key, raw, target)
		}
		seen[key] = true
	}
}

// value reads one field.
func (r *reader) value(at int, key string, raw json.RawMessage, target any) {
	if inner, ok := target.(fields); ok {
		r.object(at, raw, key, inner)
		return
	}
	err := json.Unmarshal(raw, target)
	if bytes.Equal(raw, []byte("null")) {
		err = errors.New("null")
	}
	if err == nil {
		return
	}
	want := "text"
	switch target.(type) {
	case *duration:
		want = `a duration such as "30s"`
	case *int:
		want = "a whole number"
	case *[]int64:
		want = "a list of whole numbers"
	case *bool:
		want = "true or false"
	case *time.Time:
		want = `a time such as "2027-01-31T18:30:00+01:00"`
	}
	r.fault(at, "field %q: want %s, not %s", key, want, shown(raw))
}

// shown is a value in an error: itself, or what it is when it is long.
func shown(raw []byte) string {
	switch {
	case len(raw) <= 40 && !bytes.ContainsRune(raw, '\n'):
		return string(raw)
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "a list"
	default:
		return "a long text or number"
	}
}
