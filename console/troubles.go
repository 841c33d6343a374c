package console

// What keeps runs from being run: the troubles of the node that the console belongs to, and what
// it cannot do itself.

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/lang"
	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/store"
)

// troublesPage lists them.
type troublesPage struct {
	Troubles []troubleLine
	NotReady []unready
	Node     string
}

// troubleLine is one of them. Texts of the scheduler are in English; Title, Remedy and Saw are in the
// user's language where there are words for them.
type troubleLine struct {
	xxljob.Trouble
	Title, Remedy, Saw string
}

// troubles shows them, the oldest first.
func (q *request) troubles() error {
	b := troublesPage{Troubles: q.troublesSeen(), NotReady: q.notReady()}
	q.told.all = true
	if q.Scheduler != nil {
		b.Node = q.Scheduler.Stats().Node
	}
	return q.showLive("troubles", "troubles", time.Time{}, b)
}

// troublesSeen are those that the user may see. What is about no app is about all of them; who
// holds what others wait for is for who sees all apps, as it names users and programs.
func (q *request) troublesSeen() (list []troubleLine) {
	if q.Scheduler == nil || q.user == nil {
		return nil
	}
	_, all := visible(q.user, nil)
	for _, x := range q.Scheduler.Troubles() {
		if x.App != "" && !allowed(q.user, see, x.App) {
			continue
		}
		if !all {
			x.Holder = ""
		}
		if !q.user.Admin && x.Cause == xxljob.TroubleRefused {
			x.Detail, x.Seen = q.text("problem.store"), store.Seen{}
		}
		if x.App != "" { // it may have a text of one of its runs in it
			if left := q.redacted(x.App, FieldResult, x.Detail); left != x.Detail {
				x.Detail, x.Seen = left, store.Seen{}
			}
			if x.Seen.Said != "" {
				x.Seen.Said = q.redacted(x.App, FieldResult, x.Seen.Said)
			}
		}
		t := troubleLine{Trouble: x, Title: string(x.Cause), Remedy: x.Remedy, Saw: q.sawOf(&x)}
		if key := "trouble." + t.Title; q.look.Language.Has(key) {
			t.Title = q.text(key)
		}
		if key := "trouble.do." + string(x.Cause); q.look.Language.Has(key) {
			t.Remedy = q.text(key)
		}
		list = append(list, t)
	}
	return list
}

// sawOf is what is seen of a trouble, in the user's language; as the scheduler says it where there are no
// words for that.
func (q *request) sawOf(x *xxljob.Trouble) string {
	key, s := "seen."+string(x.Seen.What), x.Seen
	if !q.look.Language.Has(key) {
		return x.Detail
	}
	if !q.user.Admin && x.Cause == xxljob.TroubleStuckRuns && s.Said != "" { // the store has said it
		s.Said = q.text("problem.store")
	}
	return q.text(key, "jobs", lang.Number(int64(s.Jobs)), "runs", lang.Number(int64(s.Runs)), "run", s.RunID, "for", q.look.Span(s.For.Round(time.Second)),
		"at", q.look.Stamp(s.At.Truncate(time.Second)), "names", s.Names, "said", s.Said)
}

// unready is something of its part that this process cannot do: the scheduler's reason, and its words.
type unready struct{ Reason, Words string }

// notReady is what this process cannot do of its part; nothing where it was not started, or is being
// stopped.
func (q *request) notReady() (list []unready) {
	var not *xxljob.NotReadyError
	if q.Scheduler == nil || q.user == nil || !errors.As(q.Scheduler.Ready(), &not) {
		return nil
	}
	for i, reason := range not.Reasons {
		if i < len(not.Errs) && !slices.Contains([]string{"not-started", "stopped"}, reason) && !slices.Contains(store.TroubleCauses(), store.TroubleCause(reason)) {
			words := not.Errs[i].Error()
			if !q.user.Admin && slices.Contains([]string{"store-away", "failing", "results"}, reason) { // it says what the store says
				words = q.text("problem.store")
			}
			list = append(list, unready{reason, words})
		}
	}
	return list
}

// told is what a page says of troubles in its own place, with more of each: the frame does not say it again.
type told struct {
	all     bool
	unready bool // what this process cannot do
	found   []finding.Finding
}

// tells reports whether the page says what a trouble is.
func (t *told) tells(x *xxljob.Trouble) bool {
	return t.all || slices.ContainsFunc(t.found, func(f finding.Finding) bool { return isTrouble(&f, x) })
}

// tellsUnready reports whether the page says that this process, which is a node, cannot do something.
func (t *told) tellsUnready(u unready, node string) bool {
	return t.all || t.unready || u.Reason == nodeFails && slices.ContainsFunc(t.found, func(f finding.Finding) bool { return isFailing(&f, node) })
}

// isTrouble reports whether a finding is a trouble: as it is, or as finding.Attention has it.
func isTrouble(f *finding.Finding, x *xxljob.Trouble) bool {
	switch t := f.Trouble; {
	case t != nil:
		return t.Cause == x.Cause && t.App == x.App && t.JobID == x.JobID && t.Address == x.Address
	case x.Cause != xxljob.TroubleNoExecutor:
		return false
	case x.JobID != 0:
		return f.Cause == finding.NoHandler && slices.Contains(f.Jobs, x.JobID)
	}
	return f.Cause == finding.NoExecutor && f.App == x.App
}

// nodeFails is the reason that a node tells the others, who find it as finding.NodeFailing.
const nodeFails = "failing"

// isFailing reports whether a finding is that a node fails.
func isFailing(f *finding.Finding, node string) bool {
	return f.Cause == finding.NodeFailing && f.Detail == node
}

// notReadyHere is the cause of what this process cannot do, as a line of what needs attention.
const notReadyHere finding.Cause = "not-ready"

// attentionHere is what needs attention as this node sees it: what it cannot do itself comes first. That
// is nobody's to mute, since it is of this process alone.
func (q *request) attentionHere(w finding.World) []finding.Finding {
	found, list := q.attention(w), q.notReady()
	if len(list) == 0 {
		return found
	}
	node := q.Scheduler.Stats().Node
	var words []string
	for _, u := range list {
		words = append(words, u.Words)
		if u.Reason == nodeFails {
			found = slices.DeleteFunc(found, func(f finding.Finding) bool { return isFailing(&f, node) })
		}
	}
	return append([]finding.Finding{{Cause: notReadyHere, Detail: strings.Join(words, "; ") + " · " + node}}, found...)
}

// troubledView is what the frame says of troubles: how many there are, how many of these the page does not
// say itself, and the titles of the first of them, each once.
type troubledView struct {
	All, N int
	Titles []string
}

// Troubled is what the frame of the page says of them.
func (p *page) Troubled() *troubledView {
	if p.troubled != nil {
		return p.troubled
	}
	t := &troubledView{}
	p.troubled = t
	if not := p.q.notReady(); len(not) > 0 {
		node := p.q.Scheduler.Stats().Node
		for _, u := range not {
			if t.All++; !p.q.told.tellsUnready(u, node) {
				t.N++
			}
		}
		if t.N > 0 {
			t.Titles = append(t.Titles, p.T("troubles.notready"))
		}
	}
	most := len(t.Titles) + 3
	for _, x := range p.q.troublesSeen() {
		if t.All++; p.q.told.tells(&x.Trouble) {
			continue
		}
		if t.N++; !slices.Contains(t.Titles, x.Title) && len(t.Titles) < most {
			t.Titles = append(t.Titles, x.Title)
		}
	}
	return t
}
