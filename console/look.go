package console

// How pages look to somebody: language, theme and zone, as chosen, or as the browser says.

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/console/internal/lang"
)

// look is how a page looks.
type look struct {
	language *lang.Language
	theme    string // "light", "dark", or "" for what the system of the viewer has
	zone     *time.Location
	zoned    bool // somebody has chosen the zone
}

// chosen is what a user has chosen, as the store keeps it, or a cookie.
type chosen struct {
	Language string `json:"language,omitempty"`
	Theme    string `json:"theme,omitempty"`
	Zone     string `json:"zone,omitempty"`
}

// The cookies of who has no account. lookCookie has what was chosen; zoneCookie is set by a
// script to the zone of the browser.
const (
	lookCookie = "xxljob_look"
	zoneCookie = "xxljob_zone"
)

// themes are those there are; the first is that of the viewer's system.
var themes = []string{"", "light", "dark"}

// defaultLook is how pages look to who has no account, or has chosen nothing.
func (c *console) defaultLook(r *http.Request) look {
	tag := lang.Accepted(r.Header.Get("Accept-Language"))
	if tag == "" {
		tag = c.Language
	}
	l := look{language: c.langs[tag], zone: c.Location}
	if cookie, err := r.Cookie(zoneCookie); err == nil {
		if zone := zoneOf(strings.ReplaceAll(cookie.Value, "%2F", "/")); zone != nil {
			l.zone = zone
		}
	}
	if cookie, err := r.Cookie(lookCookie); err == nil {
		tag, rest, _ := strings.Cut(cookie.Value, ".")
		theme, zone, _ := strings.Cut(rest, ".")
		l.choose(c, chosen{tag, theme, zone})
	}
	return l
}

// lookOf takes over what the settings of an account say.
func (q *request) lookOf(settings string) {
	var ch chosen
	if settings != "" && json.Unmarshal([]byte(settings), &ch) == nil {
		q.look.choose(q.console, ch)
	}
}

// choose takes over what was chosen, as far as there is such a thing.
func (l *look) choose(c *console, ch chosen) {
	if language := c.langs[ch.Language]; language != nil {
		l.language = language
	}
	if slices.Contains(themes, ch.Theme) && ch.Theme != "" {
		l.theme = ch.Theme
	}
	if zone := zoneOf(ch.Zone); zone != nil {
		l.zone, l.zoned = zone, true
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

// setLook takes over a choice of language, theme or zone, and goes back to the page.
func (q *request) setLook() error {
	ch := chosen{Language: q.look.language.Tag, Theme: q.look.theme}
	if q.look.zoned {
		ch.Zone = q.look.zone.String()
	}
	if v := q.field("language"); v != "" {
		ch.Language = v
	}
	if v, given := q.r.PostForm["theme"]; given {
		ch.Theme = v[0]
	}
	if v, given := q.r.PostForm["zone"]; given {
		ch.Zone = strings.TrimSpace(v[0])
	}
	if q.langs[ch.Language] == nil || !slices.Contains(themes, ch.Theme) || ch.Zone != "" && zoneOf(ch.Zone) == nil {
		return &problem{status: http.StatusUnprocessableEntity, key: "problem.look"}
	}
	if q.user != nil && q.user.account != nil && q.user.token == "" {
		if err := q.saveChosen(ch); err != nil {
			return err
		}
	}
	q.setCookie(lookCookie, ch.Language+"."+ch.Theme+"."+ch.Zone, 365*24*time.Hour)
	return q.redirect(ownPage(q.field("next")))
}

// saveChosen keeps a choice with the account, beside what else is in its settings.
func (q *request) saveChosen(ch chosen) error {
	all := map[string]any{}
	if s := q.user.account.Settings; s != "" {
		_ = json.Unmarshal([]byte(s), &all)
	}
	all["language"], all["theme"], all["zone"] = ch.Language, ch.Theme, ch.Zone
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return q.accounts.SaveSettings(q.ctx, q.user.Name, string(text))
}

// text is a text in the viewer's language.
func (q *request) text(key string, values ...any) string {
	return q.look.language.Text(key, values...)
}
