package console

// Saving what the form of a job says: reading it, who may have which children, and what is
// wrong, each at its field.

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
)

// posted is the form that was sent, filled with what it says. What is no value of a field is
// among its faults.
func (q *request) posted() (f *jobForm, err error) {
	if q.job.ID == 0 {
		f, err = q.newForm(q.Field("copyof"))
	} else {
		f, err = q.editForm(q.Field("restores"))
	}
	if err != nil {
		return nil, err
	}
	q.readJob(f)
	return f, q.addPicked(f)
}

// readJob fills the form's job with what was typed.
func (q *request) readJob(f *jobForm) {
	j := &f.job
	was, is := formTexts{&f.base, q.formZone()}, formTexts{j, q.formZone()}
	hidden := q.hidesParam(&f.base)
	given := hidden && q.givesUnseen() // whatever that is, it is taken as it was typed
	for _, g := range formGroups() {
		for _, field := range g.fields {
			values, sent := q.R.PostForm[field.name]
			if !sent || field.name == "app" && j.ID != 0 {
				continue
			}
			typed := values[len(values)-1]
			switch {
			case hidden && field.name == paramField && typed == "":
				if q.Field("paramempty") != "" {
					j.Param = ""
				}
				continue // nobody has seen it, so nobody has changed it
			case asShown(field.kind, typed) == asShown(field.kind, field.get(&was)) && !(hidden && field.name == paramField):
				continue // as it was, with what the form does not show of it
			}
			if err := field.set(&is, typed); err != nil {
				f.faults[field.name] = q.text(err.Error())
			}
		}
	}
	if hidden && !given && f.copyOf != 0 && j.App != f.base.App {
		j.Param = "" // another app is no place for it
	}
	if f.base.Secret && !j.Secret && !given && j.Param == f.base.Param {
		j.Param = "" // nor a job that shows it
	}
	if !j.Schedule.GoesByClocks() {
		j.Schedule.Zone, j.Schedule.DST = "", ""
	}
	if j.Schedule.IsManual() {
		j.Schedule.Conf = ""
	}
}

// givesUnseen reports whether the form gives a parameter in place of one that it does not show.
func (q *request) givesUnseen() bool { return q.Field(paramField) != "" || q.Field("paramempty") != "" }

// Why a form is sent that is not to be saved.
const (
	showPreview = "preview" // to see what its schedule means, by who has no scripts
	showResumed = "resumed" // it was sent before, by who had to log in first
)

// onlyShows reports whether the form is not to be saved.
func (q *request) onlyShows() bool {
	show := q.Field("show")
	return show == showPreview || show == showResumed
}

// showAsSent shows a form as it was sent, with what its schedule means. One that comes back is shown
// without its faults: they are looked for when it is saved.
func (q *request) showAsSent(f *jobForm) error {
	resumed := q.Field("show") == showResumed
	if resumed {
		clear(f.faults)
	} else if err := q.limitRate(previews); err != nil {
		return err
	}
	return q.showForm(http.StatusOK, f, func(v *formView) { v.Resumed = resumed })
}

func (q *request) addJob() error {
	f, err := q.posted()
	if err != nil {
		return err
	}
	j := &f.job
	if q.onlyShows() && !q.mayAdd() {
		return forbidden(edit)
	}
	switch {
	case j.App == "": // whatever the scheduler would take it for
		f.faults["app"] = q.text("fault.required")
	case !allowed(q.user, edit, j.App):
		f.faults["app"] = q.text("fault.app")
	}
	j.Stopped = q.Field("stopped") != ""
	if q.onlyShows() {
		return q.showAsSent(f)
	}
	var added xxljob.Job
	if len(f.faults) == 0 {
		if added, err = q.Scheduler.AddJob(q.ctx, q.grantsOf(), *j); err != nil && !q.formFaults(err, f) {
			return err
		}
	} else {
		q.moreFaults(f)
	}
	if len(f.faults) > 0 {
		return q.showForm(http.StatusUnprocessableEntity, f, nil)
	}
	return q.Redirect(fmt.Sprintf("jobs/%d?said=added", added.ID))
}

func (q *request) saveJob() error {
	version, err := strconv.ParseInt(q.Field("version"), 10, 64)
	if err != nil || version <= 0 {
		return web.BadRequest(errors.New("the form has no version"))
	}
	f, err := q.posted()
	if err != nil {
		return err
	}
	j := &f.job
	j.Version, j.Ensured = version, ""
	if q.onlyShows() {
		return q.showAsSent(f)
	}
	if q.hidesParam(&f.base) && q.givesUnseen() { // what comes of it says whether it is the same
		if err := q.limitRate(unseens); err != nil {
			return err
		}
	}
	if len(f.faults) == 0 {
		g := q.grantsOf()
		if j.Param == q.job.Param && !(q.hidesParam(&q.job) && q.givesUnseen()) {
			g = g.Keeping()
		}
		_, err = q.Scheduler.UpdateJob(q.ctx, g, *j)
		switch {
		case errors.Is(err, xxljob.ErrConflict):
			return q.showConflict(f)
		case err != nil && !q.formFaults(err, f):
			return err
		}
	} else {
		q.moreFaults(f)
	}
	if len(f.faults) > 0 {
		j.Ensured = q.job.Ensured
		return q.showForm(http.StatusUnprocessableEntity, f, nil)
	}
	said := "saved"
	if f.restores != 0 {
		said = "restored"
	}
	return q.Redirect(fmt.Sprintf("jobs/%d?said=%s", j.ID, said))
}

// moreFaults adds what else is wrong with a job that is not saved, so that one hears of it all at
// once. What the scheduler has taken before it may take again, as a strategy of the host's.
func (q *request) moreFaults(f *jobForm) {
	had := len(f.faults["route"]) + len(f.faults["conf"])
	_ = q.formFaults(f.job.Validate(), f)
	if f.job.ID == 0 || had > 0 {
		return
	}
	if f.job.Route == f.base.Route {
		delete(f.faults, "route")
	}
	if f.job.Schedule == f.base.Schedule {
		delete(f.faults, "conf")
	}
}

// jobsByID are those jobs that there are.
func (q *request) jobsByID(ids []int64) (map[int64]xxljob.Job, error) {
	found := map[int64]xxljob.Job{}
	if len(ids) == 0 {
		return found, nil
	}
	jobs, err := q.Store.Jobs(q.ctx, xxljob.JobFilter{IDs: ids, Limit: len(ids)})
	for _, j := range jobs {
		found[j.ID] = j
	}
	return found, err
}

// formFaults adds what the scheduler says of the job to the fields that it is about, and
// reports whether it was about any, or the job as a whole.
func (q *request) formFaults(err error, f *jobForm) bool {
	byField := map[string]string{}
	for _, g := range formGroups() {
		for _, field := range g.fields {
			byField[field.of] = field.name
		}
	}
	list := xxljob.FieldErrors(err)
	for _, e := range list {
		name, known := byField[cutIndex(e.Field)]
		if name == "conf" {
			name = faultyOf(e)
		}
		words := q.faultText("fault.invalid.", name, e)
		if !known {
			name = ""
		}
		if f.faults[name] == "" {
			f.faults[name] = words
		}
	}
	switch {
	case len(list) > 0:
	case errors.Is(err, xxljob.ErrDuplicateKey):
		f.faults["key"] = q.text("fault.key")
	case errors.Is(err, xxljob.ErrNeverFires):
		f.faults["conf"] = q.text("problem.neverfires")
	case errors.Is(err, xxljob.ErrCycle):
		f.faults["children"] = q.text("fault.cycle")
	case errors.Is(err, xxljob.ErrUnknownHandler):
		f.faults["handler"] = q.text("fault.handler")
	default:
		return false
	}
	return true
}

// faultText is a fault of a field in the viewer's words, which begin with the prefix where it is
// of no kind that there are words for. What is wrong with an expression only the scheduler can
// say, and what is wrong with a field that no form has.
func (q *request) faultText(prefix, name string, e *xxljob.FieldError) string {
	if key := "fault." + e.Code; name != "" && e.Code != "invalid" && q.look.Language.Has(key) {
		return q.text(key, "id", e.Value)
	}
	if key := prefix + name; name != "" && q.look.Language.Has(key) {
		return q.text(key, "why", why(e.Err))
	}
	return q.text("fault.of", "field", e.Field, "why", why(e.Err))
}

// faultyOf is the field of the form that is faulty of a schedule: the scheduler says it of the
// whole.
func faultyOf(e *xxljob.FieldError) string {
	var bad *xxljob.ScheduleError
	if !errors.As(e, &bad) || bad.Field == "Conf" {
		return "conf"
	}
	return strings.ToLower(bad.Field)
}

// cutIndex is the name of a field without which of a list it is.
func cutIndex(field string) string {
	name, _, _ := strings.Cut(field, "[")
	return name
}
