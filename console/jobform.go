package console

// The form of a job: a new one, a copy, an edit, and an edit back to what it was.

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob"
)

// formView is the page with the form.
type formView struct {
	Job      xxljob.Job // the one that is edited; its ID is zero for a new one
	Action   string     // where the form is sent
	Groups   []groupView
	Version  int64
	Apps     []string // that the user may add jobs to
	Handlers []string
	Other    string // what is wrong with the job as a whole
	Faulty   bool
	Conflict *conflictView
	Restores int64 // the version that the form shows, if it is not the present one
}

type groupView struct {
	Name   string
	Fields []fieldView
}

// fieldView is a field as it is shown: what was typed, be it a value or not.
type fieldView struct {
	Name, Kind, Value string
	Most              int
	Options           []optionView
	Fault             string
	Fixed             bool // it cannot be changed
	First             bool // the first that is faulty
	Help              string
}

type optionView struct {
	Value, Text string
	Chosen      bool
}

// conflictView is what somebody else has changed in the meantime.
type conflictView struct {
	Version int64
	By      string
	Fields  []difference
}

func (q *request) newJob() error {
	if !q.mayAdd() {
		return forbidden(edit)
	}
	j := xxljob.Job{Schedule: xxljob.Cron("0 0 3 * * ?").In(q.look.zone.String()), Misfire: xxljob.MisfireDoNothing, Route: xxljob.RouteRound, Block: xxljob.BlockSerial}
	if id, err := strconv.ParseInt(q.query("copy"), 10, 64); err == nil {
		from, err := q.Store.Job(q.ctx, id)
		if err != nil {
			return err
		}
		if !allowed(q.user, see, from.App) {
			return errNotThere
		}
		j = from.Definition()
		j.ID, j.Key, j.Name = 0, "", q.text("form.copyof", "name", from.Name)
	}
	if app := q.query("app"); app != "" {
		j.App = app
	}
	return q.showForm(http.StatusOK, "jobs/new", &j, nil, nil)
}

func (q *request) editJob() error {
	j := q.job.Definition()
	j.Version = q.job.Version
	if v, err := strconv.ParseInt(q.query("version"), 10, 64); err == nil && v != j.Version {
		if q.record == nil {
			return notOffered("xxljob.ChangeRecord")
		}
		if j, err = q.record.JobAt(q.ctx, q.job.ID, v); err != nil {
			return err
		}
		j.ID, j.Version = q.job.ID, q.job.Version
		return q.showForm(http.StatusOK, q.formPath(), &j, nil, func(v2 *formView) { v2.Restores = v })
	}
	return q.showForm(http.StatusOK, q.formPath(), &j, nil, nil)
}

func (q *request) formPath() string { return "jobs/" + strconv.FormatInt(q.job.ID, 10) + "/edit" }

// showForm shows the form for a job. typed are the texts that were sent, if it was sent.
func (q *request) showForm(status int, action string, j *xxljob.Job, faults map[string]string, more func(*formView)) error {
	v := formView{Job: *j, Action: action, Version: j.Version, Other: faults[""], Faulty: len(faults) > 0}
	texts := formTexts{j, q.look.zone}
	first := true
	for _, g := range formGroups() {
		view := groupView{Name: g.name}
		for _, f := range g.fields {
			fv := fieldView{Name: f.name, Kind: string(f.kind), Value: f.get(&texts), Most: f.most, Fault: faults[f.name], Fixed: f.name == "app" && j.ID != 0}
			if typed, sent := q.r.PostForm[f.name]; sent && !fv.Fixed {
				fv.Value = typed[0]
			}
			if fv.Fault != "" && first {
				fv.First, first = true, false
			}
			if key := "help." + f.name; q.look.language.Has(key) {
				fv.Help = q.text(key)
			}
			if f.options != nil {
				fv.Options = q.options(&f, fv.Value)
			}
			view.Fields = append(view.Fields, fv)
		}
		v.Groups = append(v.Groups, view)
	}
	var err error
	if v.Apps, err = q.editableApps(); err != nil {
		return err
	}
	if reader, ok := q.Store.(xxljob.JobReader); ok {
		if v.Handlers, err = reader.JobValues(q.ctx, "handler", "", 200); err != nil {
			return err
		}
	}
	if more != nil {
		more(&v)
	}
	return q.show("form", status, v)
}

// options are what a field can be chosen of. What is stored and is none of them, as a strategy
// of the host's, is one as well.
func (q *request) options(f *formField, value string) (list []optionView) {
	names := f.options()
	if !slices.Contains(names, value) {
		names = append(names, value)
	}
	for _, name := range names {
		text := name
		if key := "option." + f.name + "." + name; q.look.language.Has(key) {
			text = q.text(key)
		}
		list = append(list, optionView{name, text, name == value})
	}
	return list
}

// editableApps are the apps that the user may add jobs to, as far as they are known.
func (q *request) editableApps() ([]string, error) {
	known, err := q.appNames()
	if err != nil {
		return nil, err
	}
	for app := range q.user.Apps {
		if app != "*" && !slices.Contains(known, app) {
			known = append(known, app)
		}
	}
	slices.Sort(known)
	return slices.DeleteFunc(known, func(app string) bool { return !allowed(q.user, edit, app) }), nil
}

// readJob fills a job with what the form says, and returns what is no value of a field, by its
// name.
func (q *request) readJob(j *xxljob.Job) map[string]string {
	faults := map[string]string{}
	texts := formTexts{j, q.look.zone}
	for _, g := range formGroups() {
		for _, f := range g.fields {
			values, sent := q.r.PostForm[f.name]
			if !sent || f.name == "app" && j.ID != 0 {
				continue
			}
			if err := f.set(&texts, values[0]); err != nil {
				faults[f.name] = q.text(err.Error())
			}
		}
	}
	if j.Schedule.Type != xxljob.ScheduleCron && j.Schedule.Type != xxljob.ScheduleCrontab {
		j.Schedule.Zone, j.Schedule.DST = "", ""
	}
	if j.Schedule.IsManual() {
		j.Schedule.Conf = ""
	}
	return faults
}

func (q *request) addJob() error {
	var j xxljob.Job
	if id, err := strconv.ParseInt(q.field("copyof"), 10, 64); err == nil && id > 0 {
		from, err := q.Store.Job(q.ctx, id)
		if err == nil && allowed(q.user, see, from.App) {
			j = from.Definition()
			j.ID, j.Key = 0, ""
		}
	}
	faults := q.readJob(&j)
	if !allowed(q.user, edit, j.App) {
		if j.App == "" || !q.mayAdd() {
			faults["app"] = q.text("fault.required")
		} else {
			faults["app"] = q.text("fault.app")
		}
	}
	j.Stopped = q.field("stopped") != ""
	if len(faults) > 0 {
		return q.showForm(http.StatusUnprocessableEntity, "jobs/new", &j, faults, nil)
	}
	if err := q.mayTriggerChildren(&j, nil, faults); err != nil {
		return err
	}
	var added xxljob.Job
	if len(faults) == 0 {
		var err error
		if added, err = q.Scheduler.AddJob(q.ctx, j); err != nil {
			if !q.formFaults(err, faults) {
				return err
			}
		}
	}
	if len(faults) > 0 {
		return q.showForm(http.StatusUnprocessableEntity, "jobs/new", &j, faults, nil)
	}
	return q.redirect(fmt.Sprintf("jobs/%d?said=added", added.ID))
}

func (q *request) saveJob() error {
	j := q.job.Definition()
	faults := q.readJob(&j)
	version, err := strconv.ParseInt(q.field("version"), 10, 64)
	if err != nil || version <= 0 {
		return badRequest(errors.New("the form has no version"))
	}
	j.Version = version
	if err := q.mayTriggerChildren(&j, q.job.Children, faults); err != nil {
		return err
	}
	if len(faults) == 0 {
		_, err = q.Scheduler.UpdateJob(q.ctx, j)
		switch {
		case errors.Is(err, xxljob.ErrConflict):
			return q.showConflict(&j)
		case err != nil && !q.formFaults(err, faults):
			return err
		}
	}
	if len(faults) > 0 {
		return q.showForm(http.StatusUnprocessableEntity, q.formPath(), &j, faults, nil)
	}
	return q.redirect(fmt.Sprintf("jobs/%d?said=saved", j.ID))
}

// mayTriggerChildren adds a fault where the job is to trigger one that the user may not: had
// are those that it triggers already.
func (q *request) mayTriggerChildren(j *xxljob.Job, had []int64, faults map[string]string) error {
	for _, id := range j.Children {
		if slices.Contains(had, id) {
			continue
		}
		child, err := q.Store.Job(q.ctx, id)
		if err != nil && !errors.Is(err, xxljob.ErrNotFound) {
			return err
		}
		if err != nil || !allowed(q.user, operate, child.App) {
			faults["children"] = q.text("fault.child", "id", strconv.FormatInt(id, 10))
		}
	}
	return nil
}

// formFaults adds what the scheduler says of the job to the fields that it is about, and
// reports whether it was about any, or the job as a whole.
func (q *request) formFaults(err error, faults map[string]string) bool {
	byField := map[string]string{}
	for _, g := range slices.Backward(formGroups()) {
		for _, f := range slices.Backward(g.fields) {
			byField[f.of] = f.name
		}
	}
	byField["Schedule"] = "conf"
	list := xxljob.FieldErrors(err)
	for _, e := range list {
		name, known := byField[cutIndex(e.Field)]
		words := q.text("fault." + e.Code)
		if e.Code == "invalid" || !q.look.language.Has("fault."+e.Code) {
			words = e.Err.Error()
		}
		if !known {
			name, words = "", e.Field+": "+words
		}
		if faults[name] == "" {
			faults[name] = strings.TrimPrefix(words, "xxljob: ")
		}
	}
	switch {
	case len(list) > 0:
	case errors.Is(err, xxljob.ErrDuplicateKey):
		faults["key"] = q.text("fault.key")
	case errors.Is(err, xxljob.ErrNeverFires):
		faults["conf"] = q.text("problem.neverfires")
	case errors.Is(err, xxljob.ErrCycle):
		faults["children"] = q.text("fault.cycle")
	case errors.Is(err, xxljob.ErrUnknownHandler):
		faults["handler"] = q.text("fault.handler")
	}
	return len(faults) > 0
}

// cutIndex is the name of a field without which of a list it is.
func cutIndex(field string) string {
	name, _, _ := strings.Cut(field, "[")
	return name
}

// showConflict shows what was typed beside what somebody else has made of the job meanwhile, and
// offers to apply it to that.
func (q *request) showConflict(j *xxljob.Job) error {
	now, err := q.Store.Job(q.ctx, j.ID)
	if err != nil {
		return err
	}
	view := &conflictView{Version: now.Version}
	if last, err := q.Store.Changes(q.ctx, j.ID, 1); err == nil && len(last) > 0 {
		view.By = last[0].Actor
	}
	mine, theirs := formTexts{j, q.look.zone}, formTexts{&now, q.look.zone}
	for _, g := range formGroups() {
		for _, f := range g.fields {
			if a, b := f.get(&theirs), f.get(&mine); a != b {
				view.Fields = append(view.Fields, difference{Field: q.text("field." + f.name), Before: a, After: b, Had: true, Has: true})
			}
		}
	}
	j.Version = now.Version
	return q.showForm(http.StatusConflict, q.formPath(), j, nil, func(v *formView) { v.Conflict = view })
}

// removeForm asks whether the job is to go, and for its name.
func (q *request) removeForm() error { return q.show("remove", http.StatusOK, removeView{Job: q.job}) }

// removeView is the page that asks.
type removeView struct {
	Job   xxljob.Job
	Typed string
	Fault string
}

func (q *request) removeJob() error {
	if typed := strings.TrimSpace(q.field("name")); typed != strings.TrimSpace(q.job.Name) {
		return q.show("remove", http.StatusUnprocessableEntity, removeView{q.job, typed, q.text("remove.other")})
	}
	if err := q.Scheduler.RemoveJob(q.ctx, q.job.ID); err != nil {
		return err
	}
	return q.redirect("jobs?said=removed")
}
