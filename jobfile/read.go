package jobfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// What a file says of itself. A change that a reader has to know of is another version.
const (
	Format  = "xxljob-jobs"
	Version = 2
)

// MaxSize is how large a file may be, in bytes.
const MaxSize = 32 << 20

// TimeFormat is how times are written, in UTC.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Read reads a file of jobs, for EnsureJobs or AddJob. Jobs are as they were written, and valid by
// store.Job.Validate; two with the same key in an app are an error. The error is an Error with all that is
// wrong with the file, or that of r.
func Read(r io.Reader) ([]store.Job, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, err
	}
	entries, err := Parse(data, Rules{})
	if err != nil {
		return nil, err
	}
	jobs := make([]store.Job, len(entries))
	for i, e := range entries {
		jobs[i] = e.Job
	}
	return jobs, nil
}

// Entry is a job of a file, as it was written, and where it begins. Both count from 1, columns in
// characters.
type Entry struct {
	store.Job
	Line, Column int
}

// Fault is something that is wrong, at a place.
type Fault struct {
	Line, Column int
	Text         string
}

// Error has all faults of a file, in the order of their places.
type Error []Fault

// mostFaults is how many of them an error says in words.
const mostFaults = 100

func (e Error) Error() string {
	var lines []string
	for _, f := range e[:min(len(e), mostFaults)] {
		lines = append(lines, fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Text))
	}
	if more := len(e) - mostFaults; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return "xxljob: file of jobs: " + strings.Join(lines, "\n")
}

// Rules are what a scheduler checks definitions by, for Parse.
type Rules = store.Rules

// Parse reads a file of jobs by the rules of a scheduler: App is that of jobs which name none, Routes are
// all names that Job.Route may have, nil for those of package route, and where RunRetention is zero retries
// are not compared with it. The error is an Error; beside it are the jobs that were understood and
// are valid, for whoever wants to say what else is wrong with them.
func Parse(data []byte, rules Rules) ([]Entry, error) {
	rules.App = cmp.Or(rules.App, "app") // any will do for the one that Config.App stands for
	if rules.Routes == nil {
		rules.Routes = route.Names()
	}
	rules.RunRetention = cmp.Or(rules.RunRetention, schedule.MaxPeriod)
	r := reader{data: bytes.TrimPrefix(data, []byte("\ufeff")), rules: rules, keys: map[[2]string]int{}}
	r.file()
	slices.SortStableFunc(r.faults, func(a, b fault) int { return a.at - b.at })
	var faults Error
	places := ruler{data: r.data, line: 1, column: 1}
	for _, f := range r.faults {
		line, column := places.place(f.at)
		faults = append(faults, Fault{line, column, f.text})
	}
	if len(faults) > 0 {
		return r.entries, faults
	}
	return r.entries, nil
}

// reader reads a file. encoding/json alone would stop at the first fault and not say where an unknown
// field is, so objects are read key by key.
type reader struct {
	data    []byte
	rules   Rules
	entries []Entry
	faults  []fault

	jobs   ruler             // where jobs begin
	keys   map[[2]string]int // lines of jobs by app and key
	values map[string]int    // where the fields of the job are that is being read
}

// fault is something that is wrong at an offset.
type fault struct {
	at   int
	text string
}

func (r *reader) fault(at int, format string, args ...any) {
	r.faults = append(r.faults, fault{min(max(at, 0), len(r.data)), fmt.Sprintf(format, args...)})
}

// ruler turns offsets, each behind the one before, into lines and columns.
type ruler struct {
	data             []byte
	at, line, column int
}

func (p *ruler) place(at int) (line, column int) {
	passed := p.data[p.at:at]
	if n := bytes.Count(passed, []byte("\n")); n > 0 {
		p.line, p.column = p.line+n, 1
		passed = passed[bytes.LastIndexByte(passed, '\n')+1:]
	}
	p.at, p.column = at, p.column+utf8.RuneCount(passed)
	return p.line, p.column
}

func (r *reader) file() {
	r.jobs = ruler{data: r.data, line: 1, column: 1}
	if len(r.data) > MaxSize {
		r.fault(0, "the file has more than %d MiB", MaxSize>>20)
		return
	}
	for at := 0; at < len(r.data); {
		c, n := utf8.DecodeRune(r.data[at:])
		if c == utf8.RuneError && n == 1 {
			r.fault(at, "the file is no text in UTF-8")
			return
		}
		at += n
	}
	var whole json.RawMessage
	if err := json.Unmarshal(r.data, &whole); err != nil {
		at := len(r.data)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && !strings.HasPrefix(err.Error(), "unexpected end") {
			at = int(syntax.Offset) - 1 // Offset is behind the fault
		}
		r.fault(at, "%v", err)
		return
	}
	start := len(r.data) - len(bytes.TrimLeft(r.data, " \t\r\n"))
	switch r.data[start] {
	case '[':
		r.list(start)
	case '{':
		r.envelope(start, whole)
	default:
		r.fault(start, "want a list of jobs, or an object with one, not %s", shown(bytes.TrimSpace(r.data)))
	}
}

// jobs is where the list of a file begins that is an object.
type jobs struct{ at int }

func (r *reader) envelope(at int, raw json.RawMessage) {
	var format, exported string
	var version, missing int
	list := jobs{at: -1}
	r.object(at, bytes.TrimSpace(raw), "a file", "", []field{{"format", &format, false}, {"formatVersion", &version, false}, {"exportedAt", &exported, false}, {"missing", &missing, false}, {"jobs", &list, false}})
	switch {
	case len(r.faults) > 0:
	case format == Format && version == 1:
		r.fault(at, "formatVersion 1 has lengths of time in milliseconds, which are not read any more: export the jobs again")
	case format != Format || version != Version:
		r.fault(at, "want a file with format %q and formatVersion %d, not %q and %d", Format, Version, format, version)
	case list.at < 0:
		r.fault(at, `there is no field "jobs"`)
	default:
		r.list(list.at)
	}
}

func (r *reader) list(start int) {
	dec := r.open(start)
	for dec.More() {
		var raw json.RawMessage
		_ = dec.Decode(&raw) // cannot fail: the syntax is right
		r.job(start+int(dec.InputOffset())-len(raw), raw)
	}
}

// job reads the job that begins at an offset. One with faults is left out of the further checks, which
// would only repeat them.
func (r *reader) job(at int, raw json.RawMessage) {
	var j store.Job
	var leftOut []string
	had := len(r.faults)
	r.values = map[string]int{}
	r.object(at, raw, "a job", "", fieldsOf(&j, &leftOut))
	if len(leftOut) > 0 {
		r.fault(r.values["leftout"], `the file has not all of the job: complete %s and take "leftOut" away`, strings.Join(leftOut, ", "))
	}
	if len(r.faults) > had {
		return
	}
	whole, err := store.Complete(j, r.rules)
	for _, f := range store.FieldErrors(err) {
		r.fault(r.placeOf(f, at), "%s", strings.TrimPrefix(f.Error(), "xxljob: "))
	}
	line, column := r.jobs.place(at)
	key := [2]string{whole.App, whole.Key}
	if first := r.keys[key]; first != 0 {
		r.fault(at, "%s: Key %q is that of the job in line %d", store.Called(j), whole.Key, first)
	} else {
		r.keys[key] = line
	}
	if len(r.faults) == had {
		r.entries = append(r.entries, Entry{j, line, column})
	}
}

// placeOf is where the field is that a fault is about, or the job where the file does not have it.
func (r *reader) placeOf(f *store.FieldError, job int) int {
	name, _, _ := strings.Cut(strings.ToLower(f.Field), "[")
	if bad, ok := errors.AsType[*schedule.Error](f.Err); ok && name == "schedule" {
		name += "." + strings.ToLower(bad.Field)
	}
	for name != "" {
		if at, there := r.values[name]; there {
			return at
		}
		name, _, _ = cutLast(name)
	}
	return job
}

// cutLast cuts a name in front of its last dot, and leaves nothing where there is none.
func cutLast(name string) (before, after string, found bool) {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[:i], name[i+1:], true
	}
	return "", name, false
}

// object reads an object into its fields. Prefix is in front of their names in values.
func (r *reader) object(at int, raw json.RawMessage, what, prefix string, fields []field) {
	if raw[0] != '{' {
		r.fault(at, "want %s as an object, not %s", what, shown(raw))
		return
	}
	byName := map[string]any{}
	for _, f := range fields {
		byName[f.name] = f.value
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
		target, known := byName[key]
		switch {
		case !known:
			r.fault(keyAt, "unknown field %q of %s; %s", errs.Shorten(key, 40), what, errs.Nearest(key, slices.Sorted(maps.Keys(byName))))
		case seen[key]:
			r.fault(keyAt, "field %q is given twice", key)
		default:
			if r.values != nil {
				r.values[prefix+strings.ToLower(key)] = valueAt
			}
			r.value(valueAt, key, raw, target)
		}
		seen[key] = true
	}
}

// value reads one field.
func (r *reader) value(at int, key string, raw json.RawMessage, target any) {
	switch target := target.(type) {
	case []field:
		r.object(at, raw, key, strings.ToLower(key)+".", target)
		return
	case *jobs:
		if raw[0] != '[' {
			r.fault(at, "field %q: want a list of jobs, not %s", key, shown(raw))
		}
		target.at = at
		return
	}
	err := json.Unmarshal(raw, target)
	if bytes.Equal(raw, []byte("null")) {
		err = errors.New("null")
	}
	if err == nil && halved(raw) {
		r.fault(at, "field %q: it has half of a character (\\ud800 to \\udfff come in pairs)", key)
		return
	}
	if err == nil {
		return
	}
	want := "text"
	switch target.(type) {
	case *length:
		want = `a duration such as "30s"`
	case *int:
		want = "a whole number"
	case *[]int64:
		want = "a list of whole numbers"
	case *[]string:
		want = "a list of texts"
	case *bool:
		want = "true or false"
	case *moment:
		want = `a time such as "2027-01-31T18:30:00+01:00"`
	}
	r.fault(at, "field %q: want %s, not %s", key, want, shown(raw))
}

// halved reports whether escapes of a value are half of a pair, which encoding/json replaces in silence.
func halved(raw []byte) bool {
	var first rune
	for i := 0; i < len(raw); i++ {
		var code rune
		if raw[i] == '\\' {
			if i++; raw[i] == 'u' {
				n, _ := strconv.ParseUint(string(raw[i+1:i+5]), 16, 16)
				code = rune(n)
				i += 4
			}
		}
		switch {
		case first != 0:
			if utf16.DecodeRune(first, code) == utf8.RuneError {
				return true
			}
			first = 0
		case utf16.IsSurrogate(code):
			first = code
		}
	}
	return false
}

// open returns a decoder inside the list or object that begins at an offset.
func (r *reader) open(at int) *json.Decoder {
	dec := json.NewDecoder(bytes.NewReader(r.data[at:]))
	_, _ = dec.Token()
	return dec
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
