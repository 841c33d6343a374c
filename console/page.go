package console

// A page, and what all pages have: the frame around their content.

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/console/internal/lang"
	"github.com/xxljob/xxljob/console/internal/look"
	"github.com/xxljob/xxljob/console/internal/web"
)

// sharedTemplates are what pages have in common.
var sharedTemplates = []string{"template/frame.html", "template/signs.html", "template/table.html", "template/parts.html", "template/runparts.html", "template/jobparts.html"}

// ownPart is where a template is named of which each page has its own. In a set of all pages its
// name has that of the page before it.
var ownPart = regexp.MustCompile(`\{\{(define|template) "(title|scripts|content|region)"`)

// parsePages reads all pages, for each language. They are one set, so that what they have in
// common is in memory once.
func parsePages(langs map[string]*lang.Language) (map[string]*template.Template, error) {
	names, err := fs.Glob(files, "template/*.html")
	if err != nil {
		return nil, err
	}
	read := template.New("").Funcs(functions(nil))
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(sharedTemplates, name) {
			text = ownPart.ReplaceAll(text, []byte(`{{$1 "`+pageOf(name)+` $2"`))
		}
		if _, err := read.New(name).Parse(string(text)); err != nil {
			return nil, err
		}
	}
	all := map[string]*template.Template{}
	for tag, l := range langs {
		set, err := read.Clone()
		if err != nil {
			return nil, err
		}
		all[tag] = set.Funcs(functions(l))
	}
	return all, nil
}

// pageOf is the page that a file has.
func pageOf(file string) string { return strings.TrimSuffix(path.Base(file), ".html") }

// Own is a part of a page of which each has its own, or nothing where this one has none.
func (p *page) Own(name string) (template.HTML, error) {
	return p.q.part(p.Name+" "+name, p)
}

// part is what a template makes of data, or nothing where there is no such template.
func (q *request) part(name string, data any) (template.HTML, error) {
	own := q.pages[q.look.Language.Tag].Lookup(name)
	if own == nil {
		return "", nil
	}
	var b strings.Builder
	err := own.Execute(&b, data)
	return template.HTML(b.String()), err // of the template, which has escaped it
}

// functions are what templates call, besides the methods of what they are given.
func functions(l *lang.Language) template.FuncMap {
	return template.FuncMap{
		"t":      func(key string, values ...any) string { return l.Text(key, seenValues(values)...) },
		"number": func(n any) string { return lang.Number(toInt(n)) },
		"plain":  web.Visible,
		"dict":   dict,
		"list":   func(items ...any) []any { return items },
		"lower":  strings.ToLower,
		"brief":  func(s string) string { return web.CutTo(s, mostInACell) },
		"line":   func(s string) string { return web.CutTo(s, mostInALine) },
		"join":   strings.Join,
	}
}

// seenValues are values of a text, in which each character is seen: they are of others.
func seenValues(values []any) []any {
	out := make([]any, len(values))
	for i, v := range values {
		if s, is := v.(string); is {
			v = web.Visible(s)
		}
		out[i] = v
	}
	return out
}

// toInt is a whole number of whichever type.
func toInt(n any) int64 {
	switch v := n.(type) {
	case int:
		return int64(v)
	case int64:
		return v
	case int32:
		return int64(v)
	}
	return 0
}

// dict is several values for a part of a page, by name.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict of %d values", len(pairs))
	}
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		out[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return out, nil
}

// page is what a template is given. Body is the page's own.
type page struct {
	q    *request
	Body any
	Name string // of the template
	Now  time.Time

	compared int           // bytes of changes that the page has shown so far
	troubled *troubledView // once the frame has asked

	Region    template.HTML // the content of the region that is refreshed
	Tag, Poll string        // by which it is known, and where it is asked for; Poll is "" at rest
	Packed    int           // bytes of the region as they are sent, at most
}

func (q *request) page(name string, body any) *page {
	return &page{q: q, Body: body, Name: name, Now: time.Now()}
}

// show answers with a page. It is made whole before the answer begins, so that a fault in it is
// none of half a page.
func (q *request) show(name string, status int, body any) error {
	start := "frame"
	if q.IsPart() {
		start = name + " content"
	}
	return q.write(status, start, q.page(name, body))
}

// write answers with a template of a page.
func (q *request) write(status int, start string, p *page) error {
	var b bytes.Buffer
	if err := q.pages[q.look.Language.Tag].ExecuteTemplate(&b, start, p); err != nil {
		return &web.Problem{Status: http.StatusInternalServerError, Key: "problem.panic", Cause: err}
	}
	q.SendPage(status, b.Bytes())
	return nil
}

// problemView is what the page about something that went wrong says.
type problemView struct {
	Status      int
	Title, Help string
	Cause       string
	Request     string
	Retry       bool
	Login       string // where one logs in, and comes back from
	Away        *awayView
}

// problemPage answers with what went wrong.
func (q *request) problemPage(p *web.Problem) {
	q.told = told{} // by the page that is not shown
	v := problemView{Status: p.Status, Title: q.text(p.Key, p.Values...), Request: q.ID, Retry: p.Status == http.StatusServiceUnavailable}
	if q.look.Language.Has(p.Key + ".help") {
		v.Help = q.text(p.Key+".help", p.Values...)
	}
	if q.user == nil && q.was != nil {
		q.user = q.was
		q.looks.OfSettings(&q.look, q.was.account.Settings)
	}
	if v.Away = q.away(p); v.Away != nil && v.Away.Again {
		v.Help = ""
		if v.Away.Lost {
			v.Title = q.text("problem.away")
		}
	}
	v.Cause = q.saidBy(p)
	if p == errNobody {
		v.Login = q.loginFrom(q.wayBack())
	}
	if err := q.show("problem", p.Status, v); err != nil {
		q.Logger.Error("console: the page about a fault has one", "request", q.ID, "error", err)
		http.Error(q.W, http.StatusText(p.Status), p.Status)
	}
}

// What the frame asks of a page.

// Root leads from the page to the mount.
func (p *page) Root() string { return p.q.Root() }

// Asset is the address of a file that pages refer to.
func (p *page) Asset(name string) string { return p.q.Root() + "asset/" + p.q.assets.Name(name) }

// App is the title of the console, Label what marks its environment.
func (p *page) App() string  { return p.q.Title }
func (p *page) Label() Label { return p.q.Label }

// Lang is the tag of the language, Langs those of all.
func (p *page) Lang() string    { return p.q.look.Language.Tag }
func (p *page) Langs() []string { return lang.Tags() }

// LangName is how a language calls itself.
func (p *page) LangName(tag string) string {
	return map[string]string{"en": "English", "zh-CN": "简体中文", "zh-TW": "繁體中文"}[tag]
}

// Theme, Density, Live, Keys and Wrap are what was chosen of these, or "".
func (p *page) Theme() string   { return p.q.look.Chosen.Theme }
func (p *page) Density() string { return p.q.look.Chosen.Density }
func (p *page) Live() string    { return p.q.look.Chosen.Live }
func (p *page) Keys() string    { return p.q.look.Chosen.Keys }
func (p *page) Wrap() string    { return p.q.look.Chosen.Wrap }

// Zone is the zone of the times on the page, and ChosenZone what somebody has chosen, or "".
func (p *page) Zone() string       { return p.q.look.Zone.String() }
func (p *page) ChosenZone() string { return p.q.look.Chosen.Zone }

// Offset is the zone's offset, as "UTC+8".
func (p *page) Offset() string {
	_, seconds := p.Now.In(p.q.look.Zone).Zone()
	return look.Offset(seconds)
}

// User is what the console calls who is logged in, or "".
func (p *page) User() string {
	if p.q.user == nil {
		return ""
	}
	return p.q.user.shown()
}

// Logout reports whether there is a session that can be ended.
func (p *page) Logout() bool { return p.q.user != nil && p.q.user.session != nil }

// ReadOnly reports whether nothing can be changed here.
func (p *page) ReadOnly() bool { return p.q.ReadOnly }

// Here is the page itself, as seen from the mount, so that one comes back to it; "" for one that
// answers a form and is at no address where that is.
func (p *page) Here() string {
	if rt := p.q.route; rt != nil && rt.changes() {
		if form, _, _ := match(p.q.table, http.MethodGet, p.q.Path); form == nil || form.pattern != rt.pattern {
			return ""
		}
	}
	return p.q.PathAndQuery()
}

// Clock is when the page was made.
func (p *page) Clock() string { return p.Now.In(p.q.look.Zone).Format("15:04:05") }

// LoginHere is where one logs in and comes back to the page from, "" where there is no such place.
func (p *page) LoginHere() string { return p.q.loginFrom(p.Here()) }

// Sought is the text that the list of jobs is looked through for, where the page is that.
func (p *page) Sought() string {
	if p.q.Path != "jobs" {
		return ""
	}
	return p.q.Query("text")
}

// Section is the part of the console that the page belongs to.
func (p *page) Section() string {
	first, _, _ := strings.Cut(p.q.Path, "/")
	if slices.Contains([]string{"users", "tokens"}, first) {
		return "settings"
	}
	return first
}

// SettingsPages are the pages of the settings that the user may see.
func (p *page) SettingsPages() (list []string) {
	for _, name := range []string{"users", "tokens", "settings"} {
		if rt, _, _ := match(p.q.table, http.MethodGet, name); rt != nil && (!rt.only || p.q.accounts != nil) && (rt.needs.action() == 0 || allowed(p.q.user, rt.needs.action(), "")) {
			list = append(list, name)
		}
	}
	return list
}

// NameQuery is a query that names something.
func (p *page) NameQuery(name string) string { return url.Values{"name": {name}}.Encode() }

// Sections are the parts of the console, in order.
func (p *page) Sections() []string {
	if p.q.user == nil {
		return nil
	}
	return []string{"overview", "runs", "jobs", "timetable", "executors", "changes"}
}

// May reports whether the user may do something in an app: "operate" or "edit".
func (p *page) May(do, app string) bool {
	a := map[string]action{"see": see, "operate": operate, "edit": edit, "govern": govern}[do]
	return a != 0 && allowed(p.q.user, a, app) && (a == see || !p.q.ReadOnly)
}

// Blind reports whether somebody is logged in who may see no app: each list is empty for them, whatever
// there is.
func (p *page) Blind() bool {
	u := p.q.user
	if u == nil || allowed(u, see, "*") {
		return false
	}
	for app := range u.Apps {
		if allowed(u, see, app) {
			return false
		}
	}
	return true
}

// T is a text by a key that a value has chosen.
func (p *page) T(key string, values ...any) string { return p.q.text(key, values...) }
