package console

// The page of a run, and what one does with it there.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/store"
)

const (
	childrenOfARun = 50  // of what a run's success has led to
	partsOfARun    = 200 // attempts, and parts of a broadcast
	doersOfARun    = 10
)

// runView is the page of a run.
type runView struct {
	Run                     xxljob.Run
	Param, Result, Messages textView // as they are shown
	Progress, KillReason    string
	Bad                     bool        // it has ended as nobody wants it to
	Cause                   string      // why, in a line
	Why                     whyView     // of one that has not ended
	LogFirst                bool        // that is what one looks for
	Job                     *xxljob.Job // as it is now; nil for one that is removed
	Tree                    []branch
	More                    int // branches that are not shown
	Whole                   *wholeView
	Attempts                *attemptsView
	Parent                  *xxljob.Run
	Children                []runRow
	MoreChildren            bool            // than are shown
	Doers                   []xxljob.Change // who has asked for it, and for its end
	MoreDoers               bool            // than are shown
	Steps                   []step
	Links                   []Link
	Log                     logView
	Codes                   codes
	Said                    string
}

// relatives is what belongs to a run, as the store has it.
type relatives struct {
	job      *xxljob.Job
	tree     []xxljob.Run
	further  int // runs behind those of the tree
	parent   *xxljob.Run
	children []xxljob.Run
	doers    []xxljob.Change
	more     bool    // entries like these
	why      reasons // of a run that has not ended
}

func (q *request) runPage() error {
	r := q.run
	v := runView{Run: r, Steps: stepsOf(&r), Said: q.said(), Links: q.linksOf(r)}
	v.Codes.Trigger, v.Codes.Handle = r.State.Codes()
	v.Param, v.Result = q.textView(&r, FieldParam, r.Param), q.textView(&r, FieldResult, r.HandleMsg)
	open := r
	open.Secret = false // what the scheduler says of the run
	v.Messages = q.textView(&open, FieldResult, r.TriggerMsg)
	v.Progress, v.KillReason = q.ofRun(&r, FieldResult, r.ProgressText), q.redacted(r.App, FieldResult, r.KillReason)
	v.Bad, v.Cause = isBad(r.State), q.causeOf(r)
	v.LogFirst = v.Bad && !r.Started.IsZero() && !q.IsPart()
	k, err := shared(q, fmt.Sprintf("run %t %q %d %d", q.user.Admin, q.user.Apps, r.ID, r.State), func(ctx context.Context) (relatives, error) { return q.relativesOf(ctx, &r) })
	if err != nil {
		return err
	}
	v.Job, v.Parent, v.Doers, v.MoreDoers = k.job, k.parent, k.doers, k.more
	if k.job != nil {
		q.look.InZoneOf(k.job.Schedule.Zone)
	}
	if v.Parent != nil && !allowed(q.user, see, v.Parent.App) {
		v.Parent = nil
	}
	v.Children = q.runRows(slices.DeleteFunc(slices.Clone(k.children), func(c xxljob.Run) bool { return !allowed(q.user, see, c.App) }))
	if !r.State.Ended() {
		v.Why = q.headOfRun(k.why, r.ID)
	}
	v.MoreChildren = len(k.children) == childrenOfARun
	v.Tree, v.More = branches(k.tree, k.further, &r)
	v.Whole = wholeOf(k.tree)
	for i := range v.Tree {
		b := &v.Tree[i]
		b.Secret = r.Secret // they are of one job
		b.Result = q.cell(&b.Run, FieldResult, b.HandleMsg)
	}
	v.Attempts = attemptsOf(v.Tree, &r)
	if v.Whole != nil {
		slices.SortStableFunc(v.Tree, func(a, b branch) int { return cmp.Compare(urgency(stateKey(a.State)), urgency(stateKey(b.State))) })
	}
	poll := ""
	if !r.State.Ended() {
		poll = q.With(map[string]string{"seen": "", "said": ""})
	}
	if !q.IsPart() { // the log is followed by itself
		if v.Log, err = q.logTail(pagePatience); err != nil {
			return err
		}
	}
	return q.showLive("run", poll, time.Time{}, v)
}

// isBad reports whether a run has ended as nobody wants it to.
func isBad(s xxljob.State) bool {
	return s == xxljob.StateFailed || s == xxljob.StateTimedOut || s == xxljob.StateLost || s == xxljob.StateRefused
}

// causeOf is why a run that has ended badly did, in a line, as it may be shown.
func (q *request) causeOf(r xxljob.Run) string {
	if !isBad(r.State) {
		return ""
	}
	r.HandleMsg, r.TriggerMsg, r.KillReason = q.ofRun(&r, FieldResult, r.HandleMsg), q.redacted(r.App, FieldResult, r.TriggerMsg), q.redacted(r.App, FieldResult, r.KillReason)
	return q.redacted(r.App, FieldResult, finding.WhyRun(finding.World{}, r)[0].Error)
}

// relativesOf reads what belongs to a run. The texts of other runs are on their own pages, and may be long.
func (q *request) relativesOf(ctx context.Context, r *xxljob.Run) (k relatives, err error) {
	most := 2 * mostInACell
	if q.Redact != nil { // a part of a text may not be hidden as the whole is
		most = 0
	}
	short := store.WithShortTexts(ctx, most)
	ctx = store.WithShortTexts(ctx, 0)
	if k.tree, k.further, err = q.branchesOf(short, r.TriggerID); err != nil && !errors.Is(err, xxljob.ErrNotFound) {
		return k, err
	}
	job, err := q.Store.Job(ctx, r.JobID)
	switch {
	case err == nil:
		job.Param, job.GlueSource = "", ""
		k.job = &job
	case !errors.Is(err, xxljob.ErrNotFound):
		return k, err
	}
	if r.ParentID != 0 {
		parent, err := q.Store.Run(ctx, r.ParentID)
		switch {
		case err == nil:
			parent.ShortenTexts(0)
			k.parent = &parent
		case !errors.Is(err, xxljob.ErrNotFound):
			return k, err
		}
	}
	if reader, ok := q.Store.(xxljob.RunReader); ok {
		if k.children, err = reader.Children(ctx, r.ID, 0, childrenOfARun); err != nil {
			return k, err
		}
	}
	if !r.State.Ended() {
		world, err := finding.ReadJob(ctx, q.Store, r.JobID)
		if err != nil {
			return k, err
		}
		k.why = q.whyRun(world, *r)
	}
	k.doers, k.more, err = q.doersOf(ctx, r)
	return k, err
}

// branchesOf are the first of what belongs to a trigger, and how many more there are.
func (q *request) branchesOf(ctx context.Context, trigger int64) (tree []xxljob.Run, more int, err error) {
	if reader, ok := q.Store.(xxljob.RunReader); ok {
		return reader.Branches(ctx, trigger, partsOfARun)
	}
	if tree, err = q.Store.Tree(ctx, trigger); len(tree) > partsOfARun {
		tree, more = slices.Clone(tree[:partsOfARun]), len(tree)-partsOfARun
	}
	return tree, more, err
}

// doersOf are the entries of the record about a run, and about the first of its trigger, which
// is the one that somebody has asked for; the oldest first, and whether there are older ones.
func (q *request) doersOf(ctx context.Context, r *xxljob.Run) (list []xxljob.Change, more bool, err error) {
	if q.record == nil {
		return nil, false, nil
	}
	for _, id := range slices.Compact([]int64{r.ID, r.TriggerID}) {
		if id == 0 {
			continue
		}
		found, err := q.record.SearchChanges(ctx, xxljob.ChangeSearch{Object: store.ObjectRun, ObjectID: strconv.FormatInt(id, 10), Limit: doersOfARun + 1})
		if err != nil {
			return nil, false, err
		}
		if len(found.Changes) > doersOfARun {
			found.Changes, more = found.Changes[:doersOfARun], true
		}
		for _, c := range found.Changes {
			if id == r.ID || c.Verb != "kill" { // another attempt's end is that one's
				list = append(list, c)
			}
		}
	}
	slices.SortFunc(list, func(a, b xxljob.Change) int { return int(a.ID - b.ID) })
	return list, more, nil
}

// linksOf are the host's, as far as they lead to pages.
func (q *request) linksOf(r xxljob.Run) (list []Link) {
	if q.Links == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			q.Logger.Error("console: Config.Links has panicked", "request", q.ID, "panic", v)
			list = nil
		}
	}()
	for _, l := range q.Links(r) {
		if isPage(l.URL) && l.Text != "" && len(list) < 10 {
			list = append(list, l)
		}
	}
	return list
}

// killForm asks whether a run is to be killed.
func (q *request) killForm() error { return q.show("kill", http.StatusOK, q.run) }

func (q *request) killRun() error {
	if err := q.Scheduler.Kill(q.ctx, q.run.ID); err != nil {
		return err
	}
	return q.Redirect("runs/" + strconv.FormatInt(q.run.ID, 10) + "?said=killed")
}

// againForm asks whether a run is to be run again.
func (q *request) againForm() error {
	if _, err := q.Store.Job(q.ctx, q.run.JobID); err != nil {
		return err
	}
	return q.show("again", http.StatusOK, q.run)
}

func (q *request) againRun() error {
	id, err := q.Scheduler.Again(q.ctx, q.grantsOf(), q.run.ID)
	if err != nil {
		return err
	}
	return q.Redirect("runs/" + strconv.FormatInt(id, 10) + "?said=again")
}
