package console

// What has happened to a run and to what belongs to it, for the eye.

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
)

// step is a moment in the life of a run.
type step struct {
	Name string // a key of words
	At   time.Time
	Took time.Duration // since the step before
}

// codes are what XXL-JOB stores of a run: 200 for a success, 500 for a failure, 502 for a timeout, 0 for
// what is not known yet.
type codes struct{ Trigger, Handle int }

// stepsOf are what has happened to a run so far.
func stepsOf(r *xxljob.Run) (list []step) {
	var last time.Time
	for _, s := range []step{{Name: "step.planned", At: r.Created}, {Name: "step.due", At: r.Scheduled}, {Name: "step.started", At: r.Started}, {Name: "step.taken", At: r.Taken}, {Name: "step.ended", At: r.Ended}} {
		if s.At.IsZero() {
			continue
		}
		if !last.IsZero() {
			s.Took = s.At.Sub(last)
		}
		last = s.At
		list = append(list, s)
	}
	return list
}

// branch is an attempt or a part, with its place in the time that all of them took, in
// thousandths.
type branch struct {
	xxljob.Run
	This     bool
	From, To int
}

// Wide is how wide the bar is.
func (b branch) Wide() int { return b.To - b.From }

// branches are the attempts and parts of a trigger, as many as a page has room for, and how many
// more there are. One that has not ended goes on until now.
func branches(tree []xxljob.Run, this int64) (list []branch, more int) {
	if n := len(tree); n > partsOfARun {
		tree, more = tree[:partsOfARun], n-partsOfARun
	}
	var first, last time.Time
	for _, r := range tree {
		if r.Started.IsZero() {
			continue
		}
		if first.IsZero() || r.Started.Before(first) {
			first = r.Started
		}
		if end := endOf(&r); end.After(last) {
			last = end
		}
	}
	all := max(last.Sub(first), time.Millisecond)
	for _, r := range tree {
		b := branch{Run: r, This: r.ID == this}
		if !r.Started.IsZero() {
			b.From = min(int(1000*r.Started.Sub(first)/all), 994)
			b.To = max(int(1000*endOf(&r).Sub(first)/all), b.From+6) // so that it is seen
		}
		list = append(list, b)
	}
	return list, more
}

func endOf(r *xxljob.Run) time.Time {
	if r.Ended.IsZero() {
		return time.Now()
	}
	return r.Ended
}

// textView is a text of a run: as it is and, where it is JSON, with its lines indented.
type textView struct{ Text, Pretty string }

const mostPretty = 256 << 10 // bytes

func (q *request) textView(app string, field Field, text string) textView {
	v := textView{Text: q.redacted(app, field, text)}
	if trimmed := strings.TrimSpace(v.Text); len(trimmed) <= mostPretty && (strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")) {
		var b bytes.Buffer
		if json.Indent(&b, []byte(trimmed), "", "  ") == nil && b.Len() <= 4*mostPretty {
			v.Pretty = b.String()
		}
	}
	return v
}
