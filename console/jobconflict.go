package console

// A form that somebody else's edit has overtaken, one that could not be saved, and one whose
// sender has to log in first: nothing that was typed is lost.

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob/console/internal/login"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

// conflictView is what somebody else has changed in the meantime.
type conflictView struct {
	By      string
	Both    []conflictField // changed by both: the form has what was typed
	Theirs  []difference    // changed by somebody else alone: the form has it
	Unknown bool            // nobody knows any more how the form began, so all that differs is in Both
}

// conflictField is a field that two have changed.
type conflictField struct{ Field, Before, Theirs, Mine string }

// together are fields of which none means anything without the others: what two have changed of
// them is a conflict though it was not the same field.
var together = []string{"type", "conf", "zone", "dst"}

// showConflict shows the form with what somebody else has made of the job meanwhile where nothing
// else was typed, and says of which fields both have another mind.
func (q *request) showConflict(f *jobForm) error {
	now, err := q.Store.Job(q.ctx, f.job.ID)
	if err != nil {
		return err
	}
	view := &conflictView{Unknown: true}
	began := now
	if q.record != nil {
		if was, err := q.record.JobAt(q.ctx, now.ID, f.job.Version); err == nil {
			began, view.Unknown = was, false
		}
	}
	if last, err := q.Store.Changes(q.ctx, now.ID, 1); err == nil && len(last) > 0 {
		view.By = last[0].Actor
	}
	zone := q.formZone()
	base, mine, theirs := formTexts{&began, zone}, formTexts{&f.job, zone}, formTexts{&now, zone}
	schedules := 0 // who has changed something of the schedule: 1 is who has typed, 2 somebody else
	for _, field := range whenFields() {
		if slices.Contains(together, field.name) {
			if field.get(&mine) != field.get(&base) {
				schedules |= 1
			}
			if field.get(&theirs) != field.get(&base) {
				schedules |= 2
			}
		}
	}
	for _, g := range formGroups() {
		for _, field := range g.fields {
			was, is, typed := field.get(&base), field.get(&theirs), field.get(&mine)
			// Whether what was typed is what is stored, or was, is for who sees that.
			unseen := field.name == paramField && (q.hidesParam(&now) || q.hidesParam(&began)) && q.givesUnseen()
			if is == typed && !unseen {
				continue
			}
			both := view.Unknown || was != is && (unseen || was != typed) || schedules == 3 && slices.Contains(together, field.name)
			if !both && was == is {
				continue // as it was typed
			}
			name, hide := q.text("field."+field.name), func(text string) string {
				if field.name == paramField {
					return q.unless(now.Secret || began.Secret, now.App, FieldParam, text)
				}
				return text
			}
			if both {
				view.Both = append(view.Both, conflictField{name, hide(was), hide(is), hide(typed)})
				continue
			}
			view.Theirs = append(view.Theirs, difference{Field: name, Before: hide(was), After: hide(is), Had: true, Has: true})
			if err := field.set(&mine, is); err != nil {
				return err
			}
			if q.R.PostForm.Set(field.name, is); hide(is) != is {
				q.R.PostForm.Del(field.name) // nobody is shown it, and it stays as it is
			}
		}
	}
	f.job.Version, f.job.Ensured = now.Version, now.Ensured
	return q.showForm(http.StatusConflict, f, func(v *formView) { v.Conflict = view })
}

// keptPrefix begins the names of the fields of a form that is kept in that of the login.
const keptPrefix = "kept."

// keptFor is the field of a login that has such a form in it: where that goes on.
const keptFor = "kept"

// keptField is a field of a form that is kept.
type keptField struct{ Name, Value string }

// keptNames are the fields of the forms of a job, of a run of it, and of several jobs or runs. No others are kept, so that there
// is a bound.
func keptNames() (names []string) {
	for _, g := range formGroups() {
		for _, f := range g.fields {
			names = append(names, f.name)
		}
	}
	return append(names, "version", "copyof", "restores", "stopped", "tz", "hidden", "paramempty",
		"own", "address", "addresses", "part", "parts", "at", "do", "id", "ids", "back", "add", "off")
}

// kept are the fields of a form that was sent, whose names had one prefix and get another.
func kept(form url.Values, had, get string) (list []keptField) {
	for _, name := range keptNames() {
		values := form[had+name]
		switch name {
		case "address", "off": // those that are ticked
			values = values[:min(len(values), mostOffered)]
		case "id", "ids":
			values = []string{strings.Join(values, ",")}[:min(len(values), 1)]
		default:
			values = values[max(0, len(values)-1):]
		}
		for _, value := range values {
			list = append(list, keptField{get + name, value})
		}
	}
	return list
}

// isKept reports whether a form is kept that met such a problem: what has panicked might do it again.
func (q *request) isKept(p *web.Problem) bool {
	return p == errNobody || p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests
}

// keepForm answers a form that could not be taken with the form as it was typed, and reports
// whether it has: with the login before it, for who is not logged in any more.
func (q *request) keepForm(p *web.Problem) bool {
	if q.route == nil || !q.route.keeps || q.R.PostForm == nil || q.IsPart() || q.R.Header.Get("Authorization") != "" && q.Auth.ask == "" {
		return false
	}
	if p == errNobody && q.accounts != nil {
		return q.show("login", p.Status, loginPage{Kept: kept(q.R.PostForm, "", keptPrefix), KeptFor: q.Path}) == nil
	}
	if !q.isKept(p) {
		return false
	}
	switch {
	case q.route.several: // what it shows is in the store
		return false
	case q.route.pattern == triggerPattern:
		return p == errNobody && q.show("once", p.Status, q.onceOfNobody()) == nil
	}
	f := &jobForm{action: q.Path, faults: map[string]string{}}
	if q.job.ID != 0 {
		f.base = q.job.Definition()
	}
	f.job.ID, _ = strconv.ParseInt(q.values["id"], 10, 64)
	f.job.Name = q.Field("name")
	f.copyOf, _ = strconv.ParseInt(q.Field("copyof"), 10, 64)
	f.restores, _ = strconv.ParseInt(q.Field("restores"), 10, 64)
	failed := &failedView{Title: q.text(p.Key, p.Values...), Request: q.ID}
	if q.look.Language.Has(p.Key + ".help") {
		failed.Help = q.text(p.Key+".help", p.Values...)
	}
	switch {
	case p == errNobody:
		failed.Help, failed.Login = q.text("form.nobody"), q.Auth.login
	default:
		failed.Cause = q.saidBy(p)
	}
	return q.showForm(p.Status, f, func(v *formView) {
		v.Failed = failed
		if v.Version == 0 {
			v.Version, _ = strconv.ParseInt(q.Field("version"), 10, 64)
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
	rt, values, _ := match(q.table, http.MethodPost, q.Field(keptFor))
	u := ofIdentity(&login.Identity{User: account, Session: session})
	q.user, q.values = &u, values
	q.looks.OfSettings(&q.look, account.Settings)
	if err := q.permit(rt); err != nil {
		return err
	}
	if rt.of == nothing && !rt.several && !q.mayAdd() {
		return forbidden(edit)
	}
	return q.show("goon", http.StatusOK, loginPage{Kept: kept(q.R.PostForm, keptPrefix, ""), KeptFor: q.Field(keptFor)})
}

// keepsForm reports whether the form of a login has another one in it, of a page of ours.
func (q *request) keepsForm() bool {
	rt, _, _ := match(q.table, http.MethodPost, q.Field(keptFor))
	return q.Field(keptFor) != "" && rt != nil && rt.keeps
}
