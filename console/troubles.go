package console

// What keeps runs from being run: the troubles of the node that the console belongs to, and what
// it cannot do itself.

import (
	"errors"
	"slices"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/lang"
	"github.com/xxljob/xxljob/store"
)

// troublesPage lists them.
type troublesPage struct {
	Troubles []troubleLine
	NotReady []string // in the words of the scheduler
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

// notReady is what this process cannot do of its part, in the scheduler's words; nothing where it
// was not started, or is being stopped.
func (q *request) notReady() (list []string) {
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
			list = append(list, words)
		}
	}
	return list
}

// Troubled is what the frame of each page says of them: how many there are, and the titles of the
// first, each once.
func (p *page) Troubled() (t struct {
	N      int
	Titles []string
}) {
	if p.Section() == "troubles" {
		return t
	}
	seen := p.q.troublesSeen()
	t.N = len(seen)
	for _, x := range seen {
		if !slices.Contains(t.Titles, x.Title) && len(t.Titles) < 3 {
			t.Titles = append(t.Titles, x.Title)
		}
	}
	if not := p.q.notReady(); len(not) > 0 {
		t.N += len(not)
		t.Titles = append([]string{p.T("troubles.notready")}, t.Titles...)
	}
	return t
}
