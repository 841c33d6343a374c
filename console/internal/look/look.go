// Package look is how an answer looks to somebody: its language, the zone of its times, and what else
// was chosen, as the browser says, a cookie, or the settings of an account. It has the words for times
// and lengths of time, which go by these. It knows nothing of pages, of jobs and of who may do what.
package look

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/console/internal/lang"
	"github.com/xxljob/xxljob/console/internal/web"
)

// Look is how an answer looks to somebody.
type Look struct {
	Language *lang.Language
	Zone     *time.Location
	Chosen   Chosen // what of these was chosen, and is there
}

// Text is a text in the viewer's language.
func (l *Look) Text(key string, values ...any) string { return l.Language.Text(key, values...) }

// Options are what there is to choose, and what is usual.
type Options struct {
	Languages map[string]*lang.Language // by tag
	Columns   map[string][]string       // that may be chosen, by the name of the list, in its order
	Language  string                    // for who wants none of them
	Zone      *time.Location            // for who has chosen none
}

// The cookies of who has no account. lookCookie has what was chosen; zoneCookie is set by a script to the
// zone of the browser.
const (
	lookCookie = "xxljob_look"
	zoneCookie = "xxljob_zone"
)

// mostOfACookie is how long a cookie of ours is, in bytes; browsers keep no longer one.
const mostOfACookie = 4096

// Of is how an answer looks to who has no account, as the browser says it.
func (o *Options) Of(x *web.Exchange) Look {
	tag := lang.Accepted(x.R.Header.Get("Accept-Language"))
	if tag == "" {
		tag = o.Language
	}
	l := Look{Language: o.Languages[tag], Zone: o.Zone}
	if cookie, err := x.R.Cookie(zoneCookie); err == nil {
		if zone := Zone(strings.ReplaceAll(cookie.Value, "%2F", "/")); zone != nil {
			l.Zone = zone
		}
	}
	if values := x.Cookies(lookCookie); len(values) > 0 {
		o.choose(&l, o.chosenIn(values[0]))
	}
	return l
}

// chosenIn is what a cookie says: a query, as an address has one. Nothing, where it is longer than
// any of ours: anybody may send one.
func (o *Options) chosenIn(cookie string) (ch Chosen) {
	if len(cookie) > mostOfACookie {
		return ch
	}
	values, _ := url.ParseQuery(cookie) // what is none in it is left out
	ch.Language, ch.Zone = values.Get("language"), values.Get("zone")
	for name := range choices {
		*ch.word(name) = values.Get(name)
	}
	for list := range o.Columns {
		if name := columnsOf + list; values.Has(name) {
			ch.setColumns(list, strings.FieldsFunc(values.Get(name), func(r rune) bool { return r == ',' }))
		}
	}
	return ch
}

// Keep has the browser keep what was chosen for a year.
func (ch *Chosen) Keep(x *web.Exchange) { x.SetCookie(lookCookie, ch.cookie(), 365*24*time.Hour) }

// OfSettings takes over what the settings of an account say.
func (o *Options) OfSettings(l *Look, settings string) {
	var ch Chosen
	if settings != "" {
		_ = json.Unmarshal([]byte(settings), &ch) // what is none in it is left out
		o.choose(l, ch)
	}
}

// choose takes over what was chosen, as far as there is such a thing.
func (o *Options) choose(l *Look, ch Chosen) {
	if language := o.Languages[ch.Language]; language != nil {
		l.Language, l.Chosen.Language = language, ch.Language
	}
	if zone := Zone(ch.Zone); zone != nil {
		l.Zone, l.Chosen.Zone = zone, ch.Zone
	} else if ch.Zone == jobsOwn {
		l.Chosen.Zone = jobsOwn
	}
	for name, those := range choices {
		if word := *ch.word(name); slices.Contains(those, word) && word != "" {
			*l.Chosen.word(name) = word
		}
	}
	for list := range o.Columns {
		names, is := ch.Columns[list]
		if known := o.known(list, names); is && (len(known) > 0 || len(names) == 0) {
			l.Chosen.setColumns(list, known)
		}
	}
}

// known are those of the names that are columns of the list which one may choose, in its order.
func (o *Options) known(list string, names []string) (known []string) {
	for _, column := range o.Columns[list] {
		if slices.Contains(names, column) {
			known = append(known, column)
		}
	}
	return known
}

// Take takes over what the fields of a form say, or reports that there is no such thing. What it has no
// field for stays as it is. A box that is not ticked is not sent: so a hidden field stands before it,
// and the last one counts.
func (o *Options) Take(form url.Values, ch *Chosen) bool {
	last := func(name string, into *string) {
		if v := form[name]; len(v) > 0 {
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
	return (ch.Language == "" || o.Languages[ch.Language] != nil) && (ch.Zone == "" || ch.Zone == jobsOwn || Zone(ch.Zone) != nil) && o.takeColumns(form, ch)
}

// takeColumns takes over the columns of the list that the form is about, if it is about one, or
// reports that there is no such thing.
func (o *Options) takeColumns(form url.Values, ch *Chosen) bool {
	list := form.Get("list")
	if list == "" {
		return true
	}
	_, is := o.Columns[list]
	if form.Get("usual") != "" {
		ch.setColumns(list, nil)
		delete(ch.Columns, list)
		return is
	}
	names := form["column"]
	known := o.known(list, names)
	ch.setColumns(list, known)
	return is && len(known) == len(names)
}

// Chosen is what a user has chosen, as the store keeps it, or a cookie. What is empty is as usual.
type Chosen struct {
	Language string              `json:"language,omitempty"`
	Theme    string              `json:"theme,omitempty"`   // "light" or "dark"; else that of the viewer's system
	Zone     string              `json:"zone,omitempty"`    // by its IANA name, or jobsOwn
	Density  string              `json:"density,omitempty"` // "compact"
	Live     string              `json:"live,omitempty"`    // "off" for pages that stay as they are
	Keys     string              `json:"keys,omitempty"`    // "off" for no keys of one letter
	Wrap     string              `json:"wrap,omitempty"`    // "off" for lines of logs that are as long as they are
	Columns  map[string][]string `json:"columns,omitempty"` // that lists show, by the name of the list
}

// chosenNames are the names of a choice in the settings of an account.
var chosenNames = []string{"language", "theme", "zone", "density", "live", "keys", "wrap", "columns"}

// jobsOwn is the choice of the zone in which a job's schedule is, for the pages of that job and of
// its runs. Other pages have the zone that they have for who has chosen none.
const jobsOwn = "job"

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
func (ch *Chosen) word(name string) *string {
	return map[string]*string{"theme": &ch.Theme, "density": &ch.Density, "live": &ch.Live, "keys": &ch.Keys, "wrap": &ch.Wrap}[name]
}

// setColumns chooses the columns of a list, without a change to those of who has the same map.
func (ch *Chosen) setColumns(list string, names []string) {
	others := maps.Clone(ch.Columns)
	if others == nil {
		others = map[string][]string{}
	}
	if names == nil {
		names = []string{} // none is a choice too
	}
	others[list] = names
	ch.Columns = others
}

// cookie is the cookie that says the same.
func (ch *Chosen) cookie() string {
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
