package console

// What has happened to a run and to what belongs to it, for the eye.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
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
	Result   string // as it may be shown, shortened
	This     bool
	From, To int
}

// Wide is how wide the bar is.
func (b branch) Wide() int { return b.To - b.From }

// branches are the attempts and parts of a trigger, as many as a page has room for, and how many
// more there are. The run that the page is about is among them, last where there are more before it.
// One that has not ended goes on until now.
func branches(tree []xxljob.Run, more int, this *xxljob.Run) (list []branch, rest int) {
	if n := len(tree); more > 0 && n > 0 && tree[n-1].ID < this.ID {
		tree = append(slices.Clone(tree), *this)
		more--
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
		b := branch{Run: r, This: r.ID == this.ID}
		if !r.Started.IsZero() {
			b.From = min(int(1000*r.Started.Sub(first)/all), 994)
			b.To = max(int(1000*endOf(&r).Sub(first)/all), b.From+6) // so that it is seen
		}
		list = append(list, b)
	}
	return list, more
}

// attemptsView says which attempt of how many a run is, and how others have ended: the first and the last, and
// those before and behind it.
type attemptsView struct {
	N, Of  int // counted from 1; Of is 0 where that is not known
	Others []attempt
}

// attempt is another one.
type attempt struct {
	xxljob.Run
	N      int
	Result string // as it may be shown, shortened
}

// attemptsOf are the attempts of what a run is one of, among those of its trigger; nil where there is no other.
func attemptsOf(tree []branch, this *xxljob.Run) *attemptsView {
	var all []branch
	for _, b := range tree {
		if b.Sharding == this.Sharding {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b branch) int { return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.ID, b.ID)) })
	at := slices.IndexFunc(all, func(b branch) bool { return b.This })
	if len(all) < 2 || at < 0 {
		return nil
	}
	v := &attemptsView{N: this.Attempt + 1}
	for i, b := range all {
		if b.Retries >= 0 && b.Reruns == 0 && !b.Started.IsZero() {
			v.Of = b.Attempt + 1 + b.Retries // the newest knows best: the job may have been edited since those before
		}
		if i != at && (i == 0 || i == at-1 || i == at+1 || i == len(all)-1) {
			v.Others = append(v.Others, attempt{b.Run, b.Attempt + 1, b.Result})
		}
	}
	return v
}

// wholeView is how a broadcast has gone as a whole: the last attempt of each of its parts counts.
type wholeView struct {
	Parts   int
	Seen    int    // of these, where not all are known
	Ends    []mark // of those that are, the failed first
	Slowest *xxljob.Run
	Took    time.Duration
}

// wholeOf is a broadcast as a whole, of runs in any order; nil where the runs are no parts of one. Behind
// a run that was snoozed comes another of the same attempt.
func wholeOf(tree []xxljob.Run) *wholeView {
	if len(tree) == 0 || tree[0].Sharding.Total == 0 {
		return nil
	}
	last := map[int]*xxljob.Run{}
	for i := range tree {
		r := &tree[i]
		if before := last[r.Sharding.Index]; before == nil || r.Attempt > before.Attempt || r.Attempt == before.Attempt && r.ID > before.ID {
			last[r.Sharding.Index] = r
		}
	}
	w := &wholeView{Parts: tree[0].Sharding.Total, Seen: len(last)}
	for _, i := range slices.Sorted(maps.Keys(last)) {
		r := last[i]
		w.Ends = append(w.Ends, mark{r.ID, stateKey(r.State), r.Scheduled})
		if took := endOf(r).Sub(r.Started); !r.Started.IsZero() && took > w.Took {
			w.Slowest, w.Took = r, took
		}
	}
	slices.SortStableFunc(w.Ends, func(a, b mark) int { return cmp.Compare(urgency(a.State), urgency(b.State)) })
	return w
}

// urgency is in which order states are told: what has ended badly, what has not ended, what is well.
func urgency(state string) int {
	list := []string{"failed", "timed_out", "lost", "refused", "killed", "started", "dispatched", "planned"}
	if i := slices.Index(list, state); i >= 0 {
		return i
	}
	return len(list)
}

func endOf(r *xxljob.Run) time.Time {
	if r.Ended.IsZero() {
		return time.Now()
	}
	return r.Ended
}

// textView is a text of a run: as it is and, where it is JSON, with its lines indented.
type textView struct{ Text, Pretty string }

// The bounds of a text that is indented: of one that is longer or deeper than this, nobody would
// read the lines.
const (
	mostPretty  = 256 << 10 // bytes, indented
	deepestJSON = 50        // objects and lists within each other
)

func (q *request) textView(r *xxljob.Run, field Field, text string) textView {
	v := textView{Text: q.ofRun(r, field, text)}
	v.Pretty = indented(strings.TrimSpace(v.Text))
	return v
}

// indented is a JSON object or list with each value on a line of its own, or "" for any other text
// and for one that would be too long or too deep. How long it gets is worked out before it is made:
// what is nested costs a line and two blanks for each level, so a short text can become a huge one.
func indented(text string) string {
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return ""
	}
	size, depth, quoted := len(text), 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
			if c == '\\' {
				i++
			}
		case c == '{', c == '[':
			depth++
			size += 1 + 2*depth
		case c == '}', c == ']':
			depth--
			size += 1 + 2*depth
		case c == ',':
			size += 1 + 2*depth
		case c == ':':
			size++
		}
		if size > mostPretty || depth > deepestJSON || depth < 0 {
			return ""
		}
	}
	var b bytes.Buffer
	b.Grow(size)
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return ""
	}
	return b.String()
}
