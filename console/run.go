package console

// The page of a run, and what one does with it there.

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/xxljob/xxljob"
)

// childrenOfARun is how many of what a run's success has led to are shown.
const childrenOfARun = 50

// runView is the page of a run.
type runView struct {
	Run           xxljob.Run
	Param, Result string // as they are shown
	Tree          []xxljob.Run
	Parent        *xxljob.Run
	Children      []xxljob.Run
	Steps         []step
	Links         []Link
	Log           logView
	Codes         codes
	Said          string
	Live          bool
}

// step is a moment in the life of a run.
type step struct {
	Name string // a key of words
	At   time.Time
	Took time.Duration // since the step before
}

// codes are what XXL-JOB stores of a run: 200 for a success, 500 for a failure, 502 for a timeout, 0 for
// what is not known yet.
type codes struct{ Trigger, Handle int }

func (q *request) runPage() error {
	v, err := q.runView()
	if err != nil {
		return err
	}
	return q.show("run", http.StatusOK, v)
}

func (q *request) runView() (v runView, err error) {
	r := q.run
	v = runView{Run: r, Param: q.redacted(r.App, FieldParam, r.Param), Result: q.redacted(r.App, FieldResult, r.HandleMsg), Steps: stepsOf(&r), Codes: codesOf(&r), Said: q.said(), Live: !r.State.Ended()}
	if v.Tree, err = q.Store.Tree(q.ctx, r.TriggerID); err != nil {
		return v, err
	}
	if r.ParentID != 0 {
		parent, err := q.Store.Run(q.ctx, r.ParentID)
		switch {
		case err == nil && allowed(q.user, see, parent.App):
			v.Parent = &parent
		case err != nil && !errors.Is(err, xxljob.ErrNotFound):
			return v, err
		}
	}
	if reader, ok := q.Store.(xxljob.RunReader); ok {
		if v.Children, err = reader.Children(q.ctx, r.ID, 0, childrenOfARun); err != nil {
			return v, err
		}
		v.Children = slices.DeleteFunc(v.Children, func(c xxljob.Run) bool { return !allowed(q.user, see, c.App) })
	}
	v.Links = q.linksOf(r)
	v.Log, err = q.logView(-1)
	return v, err
}

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

// codesOf are XXL-JOB's.
func codesOf(r *xxljob.Run) (c codes) {
	if !r.Started.IsZero() {
		c.Trigger = 200
	}
	switch r.State {
	case xxljob.StateSucceeded:
		c.Handle = 200
	case xxljob.StateTimedOut:
		c.Handle = 502
	case xxljob.StateRefused, xxljob.StateDiscarded:
		c.Trigger = 500
	case xxljob.StateFailed, xxljob.StateKilled, xxljob.StateLost:
		c.Handle = 500
	}
	return c
}

// linksOf are the host's, as far as they lead to pages.
func (q *request) linksOf(r xxljob.Run) (list []Link) {
	if q.Links == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			q.Logger.Error("console: Config.Links has panicked", "request", q.id, "panic", v)
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

func (q *request) killRun() error {
	if err := q.Scheduler.Kill(q.ctx, q.run.ID); err != nil {
		return err
	}
	return q.redirect("runs/" + strconv.FormatInt(q.run.ID, 10) + "?said=killed")
}

func (q *request) againRun() error {
	id, err := q.Scheduler.Again(q.ctx, q.run.ID)
	if err != nil {
		return err
	}
	return q.redirect("runs/" + strconv.FormatInt(id, 10) + "?said=again")
}
