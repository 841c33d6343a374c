package console

// How pages look to somebody, as chosen, or as the browser says.

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/lang"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

// preferences are how pages look to somebody.
type preferences struct {
	language *lang.Language
	zone     *time.Location
	chosen   // what of these was chosen, and is there
}

// chosen is what a user has chosen, as the store keeps it, or a cookie. What is empty is as usual.
type chosen struct {
	Language string              `json:"language,omitempty"`
	Theme    string              `json:"theme,omitempty"`   // "light" or "dark"; else that of the viewer's system
	Zone     string              `json:"zone,omitempty"`    // by its IANA name, or jobsOwn
	Density  string              `json:"density,omitempty"` // "compact"
	Live     string              `json:"live,omitempty"`    // "off" for pages that stay as they are
	Keys     string              `json:"keys,omitempty"`    // "off" for no keys of one letter
	Wrap     string              `json:"wrap,omitempty"`    // "off" for lines of logs that are as long as they are
	Columns  map[string][]string `json:"columns,omitempty"` // that lists show, by the name of the list
}

// The cookies of who has no account. lookCookie has what was chosen; zoneCookie is set by a
// script to the zone of the browser.
const (
	lookCookie = "xxljob_look"
	zoneCookie = "xxljob_zone"
)

// mostOfACookie is how long a cookie of ours is, in bytes; browsers keep no longer one.
const mostOfACookie = 4096

// jobsOwn is the choice of the zone in which a job's schedule is, for the pages of that job and of
// its runs. Other pages have the zone that they have for who has chosen none.
const jobsOwn = "job"

// inZoneOf takes over the zone of a job, for who has chosen that.
func (l *preferences) inZoneOf(j *xxljob.Job) {
	if zone := zoneOf(j.Schedule.Zone); zone != nil && l.Zone == jobsOwn {
		l.zone = zone
	}
}

// columnsOf begins the name of the value in the cookie that has the columns of a list.
const columnsOf = "columns."

// choices are those there are, where they are a few words; the first is the usual one.
var choices = map[string][]string{
	"theme":   {"", "light", "dark"},
	"density": {"", "compact"},
	"live":    {"", "off"},
	"keys":    {"", "off"},
	"wrap":    {"", "off"},
}

// word is a choice among a few words, by its name.
func (ch *chosen) word(name string) *string {
	return map[string]*string{"theme": &ch.Theme, "density": &ch.Density, "live": &ch.Live, "keys": &ch.Keys, "wrap": &ch.Wrap}[name]
}

// defaultPreferences are how pages look to who has no account, or has chosen nothing.
func (c *console) defaultPreferences(x *web.Exchange) preferences {
	tag := lang.Accepted(x.R.Header.Get("Accept-Language"))
	if tag == "" {
		tag = c.Language
	}
	l := preferences{language: c.langs[tag], zone: c.Location}
	if cookie, err := x.R.Cookie(zoneCookie); err == nil {
		if zone := zoneOf(strings.ReplaceAll(cookie.Value, "%2F", "/")); zone != nil {
			l.zone = zone
		}
	}
	if values := x.Cookies(lookCookie); len(values) > 0 {
		l.choose(c, chosenIn(values[0]))
	}
	return l
}

// chosenIn is what a cookie says: a query, as an address has one. Nothing, where it is longer than
// any of ours: anybody may send one.
func chosenIn(cookie string) (ch chosen) {
	if len(cookie) > mostOfACookie {
		return ch
	}
	values, _ := url.ParseQuery(cookie) // what is none in it is left out
	ch.Language, ch.Zone = values.Get("language"), values.Get("zone")
	for name := range choices {
		*ch.word(name) = values.Get(name)
	}
	for list := range tables {
		if name := columnsOf + list; len(choosable(list)) > 0 && values.Has(name) {
			ch.setColumns(list, strings.FieldsFunc(values.Get(name), func(r rune) bool { return r == ',' }))
		}
	}
	return ch
}

// cookie is the cookie that says the same.
func (ch *chosen) cookie() string {
	values := url.Values{"language": {ch.Language}, "zone": {ch.Zone}}
	for name := range choices {
		values.Set(name, *ch.word(name))
	}
	for name := range values {
		if values.Get(name) == "" {
			values.Del(name)
		}
	}
	for list, columns := range ch.Columns {
		values.Set(columnsOf+list, strings.Join(columns, ","))
	}
	return values.Encode()
}

// lookOf takes over what the settings of an account say.
func (q *request) lookOf(settings string) {
	var ch chosen
	if settings != "" {
		_ = json.Unmarshal([]byte(settings), &ch) // what is none in it is left out
		q.look.choose(q.console, ch)
	}
}

// choose takes over what was chosen, as far as there is such a thing.
func (l *preferences) choose(c *console, ch chosen) {
	if language := c.langs[ch.Language]; language != nil {
		l.language, l.Language = language, ch.Language
	}
	if zone := zoneOf(ch.Zone); zone != nil {
		l.zone, l.Zone = zone, ch.Zone
	} else if ch.Zone == jobsOwn {
		l.Zone = jobsOwn
	}
	for name, those := range choices {
		if word := *ch.word(name); slices.Contains(those, word) && word != "" {
			*l.word(name) = word
		}
	}
	for list := range tables {
		names, is := ch.Columns[list]
		if known := knownColumns(list, names); is && len(choosable(list)) > 0 && (len(known) > 0 || len(names) == 0) {
			l.setColumns(list, known)
		}
	}
}

// zoneOf is a zone by its IANA name, or nil. A name leads to a file, so it is one of a few
// letters; the local zone of the process is nobody's.
func zoneOf(name string) *time.Location {
	if name == "" || name == "Local" || len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/_+-", r))
	}) {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return zone
}

// setLook takes over a choice, and goes back to the page. What the form has no field for stays as
// it is.
func (q *request) setLook() error {
	ch := q.look.chosen
	if !q.takeChosen(&ch) {
		return &web.Problem{Status: http.StatusUnprocessableEntity, Key: "problem.look"}
	}
	if q.user != nil && q.user.account != nil && q.user.token == "" {
		if err := q.saveChosen(ch); err != nil {
			return err
		}
	}
	q.SetCookie(lookCookie, ch.cookie(), 365*24*time.Hour)
	if q.IsPart() { // a script has said so
		return q.NothingNew()
	}
	return q.Redirect(web.OwnPage(q.Field("next")))
}

// takeChosen takes over what the fields of the form say, or reports that there is no such thing.
// A box that is not ticked is not sent: so a hidden field stands before it, and the last one counts.
func (q *request) takeChosen(ch *chosen) bool {
	last := func(name string, into *string) {
		if v := q.R.PostForm[name]; len(v) > 0 {
			*into = strings.TrimSpace(v[len(v)-1])
		}
	}
	for name := range choices {
		last(name, ch.word(name))
		if !slices.Contains(choices[name], *ch.word(name)) {
			return false
		}
	}
	last("zone", &ch.Zone)
	last("language", &ch.Language)
	return (ch.Language == "" || q.langs[ch.Language] != nil) && (ch.Zone == "" || ch.Zone == jobsOwn || zoneOf(ch.Zone) != nil) && q.takeColumns(ch)
}

// chosenNames are the names of a choice in the settings of an account.
var chosenNames = []string{"language", "theme", "zone", "density", "live", "keys", "wrap", "columns"}

// settingsOf are the settings of an account, by name.
func settingsOf(u *store.User) map[string]any {
	all := map[string]any{}
	if u.Settings != "" {
		_ = json.Unmarshal([]byte(u.Settings), &all) // what is none has no settings
	}
	return all
}

// keepSettings keeps settings with an account.
func (q *request) keepSettings(u *store.User, all map[string]any) error {
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return q.accounts.SaveSettings(q.ctx, u.Name, string(text))
}

// keepSetting keeps a setting with an account beside the others, or forgets it where it is nil.
func (q *request) keepSetting(u *store.User, name string, value any) error {
	all := settingsOf(u)
	if all[name] == value {
		return nil
	}
	if all[name] = value; value == nil {
		delete(all, name)
	}
	return q.keepSettings(u, all)
}

// saveChosen keeps a choice with the account, beside what else is in its settings.
func (q *request) saveChosen(ch chosen) error {
	all := settingsOf(q.user.account)
	one, err := json.Marshal(ch)
	if err != nil {
		return err
	}
	for _, name := range chosenNames {
		delete(all, name)
	}
	if err := json.Unmarshal(one, &all); err != nil {
		return err
	}
	return q.keepSettings(q.user.account, all)
}

// text is a text in the viewer's language.
func (q *request) text(key string, values ...any) string {
	return q.look.language.Text(key, values...)
}
