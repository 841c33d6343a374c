package console

// What pages say of runs and changes.

import (
	"cmp"
	"encoding/json"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/diff"
	"github.com/xxljob/xxljob/console/internal/look"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// State is a state as texts name it.
func (p *page) State(s xxljob.State) string { return stateKey(s) }

// One is a list of one run.
func (p *page) One(r *xxljob.Run) []runRow { return []runRow{p.q.runRow(*r)} }

// Next is the number behind another.
func (p *page) Next(n int) int { return n + 1 }

// Part reports whether only a part of the page is wanted.
func (p *page) Part() bool { return p.q.IsPart() }

// Took is how long a run took, or takes so far; "–" for one that has not begun.
func (p *page) Took(r xxljob.Run) string {
	switch {
	case r.Started.IsZero():
		return "–"
	case r.Ended.IsZero():
		return p.Span(max(0, p.Now.Sub(r.Started)).Truncate(time.Second)) + " …" // the clock may have been set back since
	}
	return p.Span(r.Ended.Sub(r.Started))
}

// Told is what is to be said of a run beside its result: which retry and which part of a broadcast
// it is, which instant it stands for, and why it came to nothing.
func (p *page) Told(r xxljob.Run) string {
	words := p.tryAndPart(&r)
	if !r.StandsFor.IsZero() {
		words = append(words, p.T("run.standsfor")+": "+p.q.look.Stamp(r.StandsFor))
	}
	if r.Reason != "" {
		words = append(words, p.Reason(r.Reason))
	}
	return strings.Join(words, " · ")
}

// Reason is why instants were skipped or a run was cancelled, in words where it is one of those that are
// known.
func (p *page) Reason(reason string) string {
	switch reason {
	case wire.StopKill:
		return p.T("reason.killed")
	case store.ReasonMisfire, store.ReasonBacklog, store.ReasonEdit, store.ReasonDepth, store.ReasonJoin:
		return p.T("reason." + reason)
	}
	return web.Visible(reason)
}

// Branch is which part of a broadcast and which try a run of a trigger is.
func (p *page) Branch(r xxljob.Run) string {
	if words := p.tryAndPart(&r); len(words) > 0 {
		return strings.Join(words, " · ")
	}
	return p.T("run.first")
}

// tryAndPart says which retry a run is, of how many where that is known, and which part of a broadcast,
// counted from 1; nothing for the only part of a first try.
func (p *page) tryAndPart(r *xxljob.Run) (words []string) {
	switch {
	case r.Attempt == 0:
	case r.Retries >= 0 && r.Reruns == 0 && !r.Started.IsZero():
		words = append(words, p.T("runs.attempt.of", "n", r.Attempt, "of", r.Attempt+r.Retries))
	default:
		words = append(words, p.T("runs.attempt", "n", r.Attempt))
	}
	if r.Sharding.Total > 0 {
		words = append(words, p.T("runs.part", "part", r.Sharding.Index+1, "of", r.Sharding.Total))
	}
	return words
}

// Type is what made a run.
func (p *page) Type(r xxljob.Run) string {
	if key := "type." + string(r.Type); p.q.look.Language.Has(key) {
		return p.T(key)
	}
	return web.Visible(string(r.Type))
}

// TimeIn is a moment in a zone of its own.
func (p *page) TimeIn(t time.Time, zone string) string {
	loc := look.Zone(zone)
	if loc == nil {
		return ""
	}
	return t.In(loc).Format("2006-01-02 15:04:05 -07:00")
}

// Verb is what was done, in words if there are any.
func (p *page) Verb(verb string) string {
	if key := "verb." + verb; p.q.look.Language.Has(key) {
		return p.T(key)
	}
	return web.Visible(verb)
}

// Object is what an entry is about, with a link to it where there is a page.
func (p *page) Object(c xxljob.Change) template.HTML {
	kind := c.Object
	if key := "object." + c.Object; p.q.look.Language.Has(key) {
		kind = p.T(key)
	}
	name := c.ObjectID
	if c.Object == store.ObjectToken {
		var made struct{ Name string }
		_ = json.Unmarshal([]byte(cmp.Or(c.After, c.Before)), &made)
		name = cmp.Or(made.Name, name)
	}
	if b, is := p.Body.(changesPage); is && (c.Object == store.ObjectJob || c.Object == store.ObjectRun) {
		var gone struct{ Name string } // what was removed is told in its entry
		_ = json.Unmarshal([]byte(c.Before), &gone)
		name = cmp.Or(b.Names[c.JobID], gone.Name, name)
	}
	text := template.HTMLEscapeString(kind + " " + web.Visible(name))
	to := map[string]string{store.ObjectJob: "jobs/", store.ObjectRun: "runs/"}[c.Object]
	if c.Object == store.ObjectJob && c.Verb == "remove" {
		to = "" // it is not there any more
	}
	if id, err := strconv.ParseInt(c.ObjectID, 10, 64); to != "" && err == nil {
		return template.HTML(`<a href="` + template.HTMLEscapeString(p.Root()) + to + strconv.FormatInt(id, 10) + `" title="` + strconv.FormatInt(id, 10) + `">` + text + `</a>`)
	}
	return template.HTML(text)
}

// difference is a field that a change has changed.
type difference struct {
	Field, Before, After string
	Had, Has             bool
	Lines                []diff.Line // where it is a text of several lines
	Long                 bool        // they are too many to be compared
}

// linesAround is how many lines are shown around those that differ.
const linesAround = 2

// The bounds of what a page shows of changes, since an entry has up to 64 KiB before and after it.
const (
	mostCompared = 384 << 10 // of all fields on a page, by costOf; behind that, values are cut
	mostOfFields = 200       // of an entry
)

// costOf is what a value costs a page, in bytes: a field has a frame, and so has each line.
func costOf(value string) (n int) {
	for _, r := range value {
		n += web.WidthInPage(r)
	}
	return 128 + n + 64*strings.Count(value, "\n")
}

// Diff are the fields that a change has changed, in order.
func (p *page) Diff(c xxljob.Change) []difference {
	before, after := fieldsOf(c.Before), fieldsOf(c.After)
	names := slices.Sorted(maps.Keys(before))
	for name := range after {
		if _, both := before[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var list []difference
	for _, name := range names[:min(len(names), mostOfFields)] {
		if c.Object == store.ObjectToken && name == "Name" { // which it is called by
			continue
		}
		was, had := before[name]
		is, has := after[name]
		text, label := valueText, p.fieldName(name)
		if c.Object == store.ObjectJob || c.Object == store.ObjectUser || c.Object == store.ObjectToken || c.Object == store.ObjectAppToken {
			text = func(v json.RawMessage) string { return p.fieldText(name, v) }
		}
		d := difference{Field: label, Before: p.hidden(&c, name, text(was)), After: p.hidden(&c, name, text(is)), Had: had && c.Before != "", Has: has}
		if c.Object == store.ObjectRun {
			_, d.Before = p.fieldOfRun(name, d.Before)
			d.Field, d.After = p.fieldOfRun(name, d.After)
		}
		if p.compared += costOf(d.Before) + costOf(d.After); p.compared > mostCompared {
			d.Before, d.After = web.CutTo(d.Before, mostInACell), web.CutTo(d.After, mostInACell)
		} else if d.Had && d.Has && (strings.Contains(d.Before, "\n") || strings.Contains(d.After, "\n")) {
			lines, ok := diff.Lines(d.Before, d.After, linesAround)
			d.Lines, d.Long = lines, !ok
		}
		list = append(list, d)
	}
	return list
}

// hidden is the value of a field as the host lets it be shown.
func (p *page) hidden(c *xxljob.Change, field, text string) string {
	switch field {
	case "Param":
		return p.q.unless(text != "" && p.q.secretChange(c), c.App, FieldParam, text)
	case "GlueSource": // pages of scripts are not everybody's
		if text == "" {
			return ""
		}
		return p.T("job.script.size", "n", len(text))
	case "KillReason":
		return p.q.redacted(c.App, FieldResult, text)
	}
	return text
}

// What a line says of a change: so many fields, and so much of their values.
const (
	brieflyShown = 2
	mostBriefly  = 60 // bytes of a value
)

// Briefly is what an entry has changed, as a line has room for it: its first fields, of one line each,
// with what they were and are. A definition that is new has no such fields.
func (p *page) Briefly(c xxljob.Change) (list []string) {
	if c.Before == "" {
		return nil
	}
	more := 0
	for _, d := range p.Diff(c) {
		switch {
		case len(list) == brieflyShown:
			more++
		case len(d.Lines) > 0 || d.Long:
			list = append(list, d.Field)
		default:
			list = append(list, d.Field+": "+cmp.Or(web.CutTo(d.Before, mostBriefly), "–")+" → "+cmp.Or(web.CutTo(d.After, mostBriefly), "–"))
		}
	}
	if more > 0 {
		list = append(list, "+"+strconv.Itoa(more))
	}
	return list
}

func fieldsOf(object string) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal([]byte(object), &fields) // what is none has no fields
	return fields
}

// valueText is a value of JSON as a person reads it.
func valueText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}
