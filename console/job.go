package console

// The page of a job, and what one does with it there.

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
)

const (
	nextOnAPage    = 10
	runsOfAJob     = 20
	changesOfAJob  = 20
	mostTriggerArg = 64 << 10 // bytes of a parameter
)

// jobPage is the page of a job.
type jobView struct {
	Job     xxljob.Job
	Words   string
	Status  string
	Own     string      // the zone of its schedule, where that is not the viewer's
	Next    []time.Time // its next instants
	NextErr string
	Runs    []xxljob.Run
	Changes []xxljob.Change
	Param   string // as it is shown
	Said    string // what has just been done
	Trigger triggerForm
}

// triggerForm is the form to run a job once.
type triggerForm struct {
	Param, Addresses string
	Fault            string
}

func (q *request) jobPage() error { return q.showJob(http.StatusOK, triggerForm{Param: q.job.Param}) }

// showJob shows the page of the request's job.
func (q *request) showJob(status int, form triggerForm) error {
	j := &q.job
	v := jobView{Job: *j, Words: j.Schedule.DescribeIn(q.look.language.Tag), Status: statusOf(j), Param: q.redacted(j.App, FieldParam, j.Param), Trigger: form, Said: q.said()}
	if zone := j.Schedule.Zone; zone != "" && zone != q.look.zone.String() {
		v.Own = zone
	}
	now := time.Now()
	next, err := j.Schedule.Upcoming(now, nextOnAPage)
	if v.Next = next; err != nil && !errors.Is(err, xxljob.ErrNeverFires) {
		v.NextErr = err.Error()
	}
	if v.Runs, err = q.Store.Runs(q.ctx, xxljob.RunFilter{JobID: j.ID, Limit: runsOfAJob}); err != nil {
		return err
	}
	if v.Changes, err = q.Store.Changes(q.ctx, j.ID, changesOfAJob); err != nil {
		return err
	}
	return q.show("job", status, v)
}

// said is what has just been done, as the address of the page says: one of a few keys.
func (q *request) said() string {
	if key := "said." + q.query("said"); q.query("said") != "" && q.look.language.Has(key) {
		return q.text(key)
	}
	return ""
}

func (q *request) startJob() error {
	return q.actOnJob("started", func() error { return q.Scheduler.StartJob(q.ctx, q.job.ID) })
}

func (q *request) stopJob() error {
	return q.actOnJob("stopped", func() error { return q.Scheduler.StopJob(q.ctx, q.job.ID) })
}

// actOnJob does something with the job, and goes back to its page.
func (q *request) actOnJob(said string, act func() error) error {
	err := act()
	switch {
	case errors.Is(err, xxljob.ErrManual):
		return &problem{status: http.StatusUnprocessableEntity, key: "problem.manual"}
	case errors.Is(err, xxljob.ErrNeverFires):
		return &problem{status: http.StatusUnprocessableEntity, key: "problem.neverfires"}
	case err != nil:
		return err
	}
	return q.redirect("jobs/" + strconv.FormatInt(q.job.ID, 10) + "?said=" + said)
}

func (q *request) triggerJob() error {
	f := triggerForm{Param: q.field("param"), Addresses: q.field("addresses")}
	t := xxljob.Trigger{}
	if f.Param != q.job.Param || q.r.PostForm.Has("own") {
		t.Param = &f.Param
	}
	for line := range strings.FieldsFuncSeq(f.Addresses, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' || r == ' ' }) {
		t.Addresses = append(t.Addresses, line)
	}
	ids, err := q.Scheduler.Trigger(q.ctx, q.job.ID, t)
	if err != nil {
		if list := xxljob.FieldErrors(err); len(list) > 0 {
			f.Fault = list[0].Err.Error()
			return q.showJob(http.StatusUnprocessableEntity, f)
		}
		return err
	}
	return q.redirect("runs/" + strconv.FormatInt(ids[0], 10))
}

// redacted is a text as the host lets it be shown. What the host's function does not return for
// is hidden.
func (q *request) redacted(app string, field Field, text string) (shown string) {
	if q.Redact == nil || text == "" {
		return text
	}
	defer func() {
		if v := recover(); v != nil {
			q.Logger.Error("console: Config.Redact has panicked", "request", q.id, "panic", v)
			shown = "●●●"
		}
	}()
	return q.Redact(app, field, text)
}

// stateKey is a state as addresses and texts name it.
func stateKey(s xxljob.State) string { return strings.ReplaceAll(s.String(), " ", "_") }
