package console

// The form of a job: a new one, a copy, an edit, and an edit back to what it was.

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/look"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

// jobForm is a form on its way: where it is sent, what it began with, and what was made of that.
type jobForm struct {
	action   string
	base     xxljob.Job // a field in which nobody has typed anything is as here, to the last digit
	job      xxljob.Job // what is shown, and saved
	faults   map[string]string
	choices  map[string][]jobLink // which jobs a name may mean, by field
	copyOf   int64                // the job that it is a copy of
	restores int64                // the version that it began with, where that is not the present one
	script   bool                 // that version has another script, which is not put back
}

// formView is the page with the form.
type formView struct {
	Job              xxljob.Job // the one that is edited; its ID is zero for a new one
	Action           string     // where the form is sent
	Groups           []groupView
	Version          int64
	Apps             []string // that the user may add jobs to
	Handlers         []string
	Other            string // what is wrong with the job as a whole
	Faulty           bool
	Conflict         *conflictView
	Restores, CopyOf int64
	Script           bool
	Stopped          bool
	Zone             string // that of the times in the form
	Preview          preview
	Failed           *failedView // it could not be saved, and nobody knows whether it was
	Resumed          bool        // somebody has had to log in
}

// failedView is why a form could not be saved.
type failedView struct {
	Title, Help, Cause, Request string
	Login                       string // where one logs in
}

type groupView struct {
	Name   string
	Fields []fieldView
	Folded bool
	Open   bool   // there is a fault in it
	Differ string // what is not as it is for a new job
}

// fieldView is a field as it is shown: what was typed, be it a value or not.
type fieldView struct {
	Name, Kind, Value string
	Most              int
	Options           []optionView
	Fault             string
	Fixed             bool // it cannot be changed
	First             bool // the first that is faulty
	Hidden            bool // what is stored is not to be shown
	Help, Zone        string
	Tip               string // what stands beside the label where somebody points at it

	Picks   bool      // jobs are added to it by name
	Named   []jobLink // those that it has
	Adds    string    // what was typed to add one
	Choices []jobLink // which of them may be meant
}

type optionView struct {
	Value, Text string
	Chosen      bool
}

func (q *request) newJob() error {
	if !q.mayAdd() {
		return forbidden(edit)
	}
	f, err := q.newForm(q.Query("copy"))
	if err != nil {
		return err
	}
	if f.copyOf != 0 {
		q.job.ID, q.job.App = f.copyOf, f.base.App // of which this shows the parameter
	}
	if app := q.Query("app"); app != "" {
		f.job.App = app
	}
	return q.showForm(http.StatusOK, f, nil)
}

// newDefinition is the definition that a form of a new job begins with.
func (q *request) newDefinition() xxljob.Job {
	return xxljob.Job{Schedule: xxljob.Cron("0 0 3 * * ?").In(q.look.Zone.String()), Misfire: xxljob.MisfireDoNothing, Route: xxljob.RouteRound, Block: xxljob.BlockSerial}
}

// differs is what a field says, with its name.
func (q *request) differs(f *fieldView) string {
	name, value := q.text("field."+f.Name), f.Value
	for _, o := range f.Options {
		if o.Chosen {
			value = o.Text
		}
	}
	if f.Kind == string(aCheck) {
		return name
	}
	return name + ": " + strings.ReplaceAll(value, "\n", ", ")
}

// newForm is the form of a new job, or of a copy of one that the user sees.
func (q *request) newForm(copyOf string) (*jobForm, error) {
	f := &jobForm{action: "jobs/new", faults: map[string]string{}}
	f.base = q.newDefinition()
	if id, err := strconv.ParseInt(copyOf, 10, 64); err == nil && id > 0 {
		from, err := q.Store.Job(q.ctx, id)
		if err != nil {
			return nil, err
		}
		if !allowed(q.user, see, from.App) {
			return nil, errNotThere
		}
		if from.IsScript() { // whoever copies a script has written one
			return nil, &web.Problem{Status: http.StatusForbidden, Key: "problem.script"}
		}
		f.copyOf, f.base = id, from.Definition()
		f.base.ID, f.base.Key, f.base.Name = 0, "", q.text("form.copyof", "name", from.Name)
	}
	f.job = f.base.Clone()
	return f, nil
}

func (q *request) editJob() error {
	f, err := q.editForm(q.Query("version"))
	if err != nil {
		return err
	}
	return q.showForm(http.StatusOK, f, nil)
}

// editForm is the form of the request's job as it is, or as it was at a version. A script stays
// what it is: it is not edited here.
func (q *request) editForm(version string) (*jobForm, error) {
	f := &jobForm{action: q.formPath(), base: q.job.Definition(), faults: map[string]string{}}
	if v, err := strconv.ParseInt(version, 10, 64); err == nil && v != q.job.Version {
		if q.record == nil {
			return nil, notOffered("xxljob.ChangeRecord")
		}
		if f.base, err = q.record.JobAt(q.ctx, q.job.ID, v); err != nil {
			return nil, err
		}
		now := &q.job
		f.restores = v
		f.script = f.base.GlueType != now.GlueType || f.base.GlueSource != now.GlueSource || f.base.GlueRemark != now.GlueRemark
		f.base.ID, f.base.App, f.base.Secret = now.ID, now.App, f.base.Secret || now.Secret
		f.base.GlueType, f.base.GlueSource, f.base.GlueRemark = now.GlueType, now.GlueSource, now.GlueRemark
	}
	f.base.Version = q.job.Version
	f.job = f.base.Clone()
	f.job.Ensured = q.job.Ensured
	return f, nil
}

func (q *request) formPath() string { return "jobs/" + strconv.FormatInt(q.job.ID, 10) + "/edit" }

// hidesParam reports whether what the job's parameter says is not to be shown.
func (q *request) hidesParam(j *xxljob.Job) bool {
	return j.Param != "" && (j.Secret || q.redacted(j.App, FieldParam, j.Param) != j.Param)
}

// showForm shows a form; what was sent stands in it as it was typed.
func (q *request) showForm(status int, f *jobForm, more func(*formView)) error {
	v := formView{Job: f.job, Action: f.action, Version: f.job.Version, Other: f.faults[""], Faulty: len(f.faults) > 0, Restores: f.restores, CopyOf: f.copyOf, Script: f.script, Stopped: q.Field("stopped") != "", Zone: q.formZone().String()}
	if f.job.ID != 0 && f.base.ID == 0 { // the job could not be read: all is as it was sent
		v.Version, _ = strconv.ParseInt(q.Field("version"), 10, 64)
	}
	first, usual := true, q.newDefinition()
	named := map[string][]jobLink{}
	if more == nil || q.Field("show") != "" { // or the store has just failed, perhaps
		var err error
		if named, err = q.namedIn(&f.job); err != nil {
			return err
		}
	}
	for _, g := range formGroups() {
		view := groupView{Name: g.name, Folded: g.name != "what" && g.name != "when"}
		var differ []string
		for i := range g.fields {
			fv := q.fieldOf(&g.fields[i], f)
			fv.Named = named[fv.Name]
			fv.First = fv.Fault != "" && first
			first = first && fv.Fault == ""
			view.Fields = append(view.Fields, fv)
			view.Open = view.Open || fv.Fault != ""
			if view.Folded && fv.Value != g.fields[i].get(&formTexts{&usual, q.formZone()}) {
				differ = append(differ, q.differs(&fv))
			}
		}
		view.Differ = web.CutTo(strings.Join(differ, " · "), 160)
		v.Groups = append(v.Groups, view)
	}
	v.Preview = q.previewOf(f.job.Schedule, time.Now())
	if more != nil {
		more(&v)
	}
	if v.Failed == nil { // or the store would be asked again that has just failed
		var err error
		if v.Apps, err = q.editableApps(); err != nil {
			return err
		}
		if v.Handlers, err = q.handlers(v.Apps); err != nil {
			return err
		}
	}
	return q.show("form", status, v)
}

// fieldOf is a field of the form as it is shown.
func (q *request) fieldOf(f *formField, form *jobForm) fieldView {
	texts := formTexts{&form.job, q.formZone()}
	v := fieldView{Name: f.name, Kind: string(f.kind), Value: f.get(&texts), Most: f.most, Fault: form.faults[f.name], Fixed: f.name == "app" && form.job.ID != 0}
	if v.Hidden = f.name == paramField && (q.hidesParam(&form.base) || form.base.ID == 0 && q.Field("hidden") != ""); v.Hidden {
		v.Value = ""
	}
	if typed, sent := q.R.PostForm[f.name]; sent && (!v.Fixed || form.base.ID == 0) {
		v.Value = typed[len(typed)-1]
	}
	if key := "help." + f.name; q.look.Language.Has(key) {
		v.Help = q.text(key)
	}
	if f.xxl != "" {
		v.Tip = "XXL-JOB: " + f.xxl
	}
	if limits := q.limits(f); f.limit == "form.bytes" {
		v.Tip = strings.TrimSuffix(limits+" "+v.Tip, " ")
	} else if limits != "" {
		if v.Help != "" {
			v.Help += q.text("form.sentences")
		}
		v.Help += limits
	}
	if v.Picks = slices.Contains(pickers, f.name); v.Picks {
		v.Adds, v.Choices = q.Field(f.name+".add"), form.choices[f.name]
	}
	if f.kind == aMoment {
		v.Zone = q.formZone().String()
	}
	if f.options != nil {
		v.Options = q.options(f, v.Value)
	}
	return v
}

// formZone is the zone of the times in the form: the viewer's when it was made, so that who
// chooses another one meanwhile has not moved them.
func (q *request) formZone() *time.Location {
	if zone := look.Zone(q.Field("tz")); zone != nil {
		return zone
	}
	return q.look.Zone
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
		if key := "option." + f.name + "." + name; q.look.Language.Has(key) {
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

// mostHandlers is how many handlers a form offers.
const mostHandlers = 500

// handlers are those that nodes serve in the apps, and that jobs there have already.
func (q *request) handlers(apps []string) (names []string, err error) {
	if len(apps) == 0 {
		return nil, nil
	}
	if cluster, ok := q.Store.(xxljob.ClusterReader); ok {
		view, err := cluster.View(q.ctx)
		if err != nil {
			return nil, err
		}
		for _, n := range view.Nodes {
			for _, a := range n.Attached {
				if !n.Left && slices.Contains(apps, a.App) {
					names = append(names, a.Handlers...)
				}
			}
		}
	}
	if reader, ok := q.Store.(xxljob.JobReader); ok {
		jobs, err := reader.SearchJobs(store.WithShortTexts(q.ctx, 0), xxljob.JobSearch{Apps: apps[:min(len(apps), 1000)], Limit: mostHandlers})
		if err != nil {
			return nil, err
		}
		for _, j := range jobs {
			names = append(names, j.Handler)
		}
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
	return names[:min(len(names), mostHandlers)], nil
}
