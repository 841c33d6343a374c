package console

// A form that somebody else's edit has overtaken, one that could not be saved, and one whose
// sender has to log in first: nothing that was typed is lost.

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob/store"
)

// conflictView is what somebody else has changed in the meantime.
type conflictView struct {
	Version int64
	By      string
	Fields  []difference
}

// showConflict shows what was typed beside what somebody else has made of the job meanwhile, and
// offers to apply it to that.
func (q *request) showConflict(f *jobForm) error {
	now, err := q.Store.Job(q.ctx, f.job.ID)
	if err != nil {
		return err
	}
	view := &conflictView{Version: now.Version}
	if last, err := q.Store.Changes(q.ctx, now.ID, 1); err == nil && len(last) > 0 {
		view.By = last[0].Actor
	}
	mine, theirs := formTexts{&f.job, q.formZone()}, formTexts{&now, q.formZone()}
	for _, g := range formGroups() {
		for _, field := range g.fields {
			a, b := field.get(&theirs), field.get(&mine)
			if a == b {
				continue
			}
			if field.name == paramField {
				a, b = q.redacted(now.App, FieldParam, a), q.redacted(now.App, FieldParam, b)
			}
			view.Fields = append(view.Fields, difference{Field: q.text("field." + field.name), Before: a, After: b, Had: true, Has: true})
		}
	}
	f.job.Version, f.job.Ensured = now.Version, now.Ensured
	return q.showForm(http.StatusConflict, f, func(v *formView) { v.Conflict = view })
}

// keptPrefix begins the names of the fields of a form that is kept in that of the login.
const keptPrefix = "kept."

// keptField is a field of a form that is kept.
type keptField struct{ Name, Value string }

// keptNames are the fields of a job's form. No others are kept, so that there is a bound.
func keptNames() (names []string) {
	for _, g := range formGroups() {
		for _, f := range g.fields {
			names = append(names, f.name)
		}
	}
	return append(names, "version", "copyof", "restores", "stopped", "tz", "hidden", "paramempty")
}

// kept are the fields of a form that was sent, by their names with a prefix.
func kept(form url.Values, prefix string) (list []keptField) {
	for _, name := range keptNames() {
		if values := form[prefix+name]; len(values) > 0 {
			list = append(list, keptField{keptPrefix + name, values[len(values)-1]})
		}
	}
	return list
}

// keepForm answers a form that could not be taken with the form as it was typed, and reports
// whether it has: with the login before it, for who is not logged in any more.
func (q *request) keepForm(p *problem) bool {
	if q.route == nil || !q.route.keeps || q.r.PostForm == nil || q.isPart() || q.r.Header.Get("Authorization") != "" && q.Auth.ask == "" {
		return false
	}
	if p == errNobody && q.accounts != nil {
		return q.show("login", p.status, loginPage{Kept: kept(q.r.PostForm, ""), KeptFor: q.path}) == nil
	}
	if p != errNobody && p.status != http.StatusServiceUnavailable && p.status != http.StatusTooManyRequests {
		return false // what has panicked might do it again
	}
	f := &jobForm{action: q.path, faults: map[string]string{}}
	if q.job.ID != 0 {
		f.base = q.job.Definition()
	}
	f.job.ID, _ = strconv.ParseInt(q.values["id"], 10, 64)
	f.job.Name = q.field("name")
	f.copyOf, _ = strconv.ParseInt(q.field("copyof"), 10, 64)
	f.restores, _ = strconv.ParseInt(q.field("restores"), 10, 64)
	failed := &failedView{Title: q.text(p.key, p.values...), Request: q.id}
	if q.look.language.Has(p.key + ".help") {
		failed.Help = q.text(p.key+".help", p.values...)
	}
	switch {
	case p == errNobody:
		failed.Help, failed.Login = q.text("form.nobody"), q.Auth.login
	case p.cause != nil && q.user != nil:
		failed.Cause = p.cause.Error()
	}
	return q.showForm(p.status, f, func(v *formView) {
		v.Failed = failed
		if v.Version == 0 {
			v.Version, _ = strconv.ParseInt(q.field("version"), 10, 64)
		}
	}) == nil
}

// resume shows a form again that was kept in that of the login, to who has just logged in and
// may send it. It is not saved: that is for who has looked at it.
func (q *request) resume(account store.User, session *store.Session) error {
	rt, values, _ := match(q.table, http.MethodPost, q.field("kept"))
	form := url.Values{}
	for _, k := range kept(q.r.PostForm, keptPrefix) {
		form.Set(strings.TrimPrefix(k.Name, keptPrefix), k.Value)
	}
	u := ofAccount(&account)
	u.session = session
	q.user, q.values, q.r.PostForm = &u, values, form
	q.lookOf(account.Settings)
	if err := q.permit(rt); err != nil {
		return err
	}
	if rt.of == nothing && !q.mayAdd() {
		return forbidden(edit)
	}
	f, err := q.posted()
	if err != nil {
		return err
	}
	clear(f.faults)
	if v, err := strconv.ParseInt(q.field("version"), 10, 64); err == nil && q.job.ID != 0 {
		f.job.Version = v // what was read, so that a conflict is found
	}
	return q.showForm(http.StatusOK, f, func(v *formView) { v.Resumed = true })
}

// keepsForm reports whether the form of a login has another one in it, of a page of ours.
func (q *request) keepsForm() bool {
	rt, _, _ := match(q.table, http.MethodPost, q.field("kept"))
	return q.field("kept") != "" && rt != nil && rt.keeps
}
