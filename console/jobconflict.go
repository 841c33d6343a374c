package console

// A form that somebody else's edit has overtaken, one that could not be saved, and one whose
// sender has to log in first: nothing that was typed is lost.

import (
	"net/http"
	"net/url"
	"strconv"

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

// kept are the fields of a form that was sent, whose names had one prefix and get another.
func kept(form url.Values, had, get string) (list []keptField) {
	for _, name := range keptNames() {
		if values := form[had+name]; len(values) > 0 {
			list = append(list, keptField{get + name, values[len(values)-1]})
		}
	}
	return list
}

// isKept reports whether a form is kept that met such a problem: what has panicked might do it again.
func (q *request) isKept(p *problem) bool {
	return p == errNobody || p.status == http.StatusServiceUnavailable || p.status == http.StatusTooManyRequests
}

// keepForm answers a form that could not be taken with the form as it was typed, and reports
// whether it has: with the login before it, for who is not logged in any more.
func (q *request) keepForm(p *problem) bool {
	if q.route == nil || !q.route.keeps || q.r.PostForm == nil || q.isPart() || q.r.Header.Get("Authorization") != "" && q.Auth.ask == "" {
		return false
	}
	if p == errNobody && q.accounts != nil {
		return q.show("login", p.status, loginPage{Kept: kept(q.r.PostForm, "", keptPrefix), KeptFor: q.path}) == nil
	}
	if !q.isKept(p) {
		return false
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
	case q.user != nil:
		failed.Cause = p.said()
	}
	return q.showForm(p.status, f, func(v *formView) {
		v.Failed = failed
		if v.Version == 0 {
			v.Version, _ = strconv.ParseInt(q.field("version"), 10, 64)
		}
	}) == nil
}

// goOn answers a login that had a form in it with a page that sends that form, and nothing of the
// login, to the form's own address, where it is shown and not saved. So the page that somebody
// reads, reloads and shares is at the address of the form.
//
// The login cannot answer there itself: its cookie has no path and goes to the directory of the
// address that sets it, and the path of the mount, which one would have to be given, is known to
// browsers only. A redirect that has the form sent again, by 307, would send the password to
// another address than that of the login. And what is kept here would have to be kept by each
// replica, in a store that has no place for it.
func (q *request) goOn(account store.User, session *store.Session) error {
	rt, values, _ := match(q.table, http.MethodPost, q.field("kept"))
	u := ofAccount(&account)
	u.session = session
	q.user, q.values = &u, values
	q.lookOf(account.Settings)
	if err := q.permit(rt); err != nil {
		return err
	}
	if rt.of == nothing && !q.mayAdd() {
		return forbidden(edit)
	}
	return q.show("goon", http.StatusOK, loginPage{Kept: kept(q.r.PostForm, keptPrefix, ""), KeptFor: q.field("kept")})
}

// keepsForm reports whether the form of a login has another one in it, of a page of ours.
func (q *request) keepsForm() bool {
	rt, _, _ := match(q.table, http.MethodPost, q.field("kept"))
	return q.field("kept") != "" && rt != nil && rt.keeps
}
