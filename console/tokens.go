package console

// Tokens of apps: secrets by which executors and programs elsewhere speak for apps. They are kept by their
// hashes, and each is shown once, in the answer to the form that has made it.

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/login"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

// tokenSpans are for how long a token lasts by a choice.
var tokenSpans = []time.Duration{7 * 24 * time.Hour, 30 * 24 * time.Hour, 90 * 24 * time.Hour, 365 * 24 * time.Hour}

// tokensPage is the list of tokens, with the form for another one.
type tokensPage struct {
	Kept   bool // the store keeps any
	Said   string
	Secret string // of the one that was just made
	Made   string // its name
	Tokens []store.AppToken
	Config []configToken
	Form   tokenForm
}

// tokenForm is what somebody has typed who makes one.
type tokenForm struct {
	Name, Apps, Until, Zone string
	Spans                   []muteSpan
	Chosen, Proved          bool // one of the spans is chosen; the password is asked for
	Faults                  map[string]string
}

// configToken is an app that has tokens in the configuration of the scheduler, and how many.
type configToken struct {
	App string // empty for those that all share
	N   int
}

// factsOf is what the scheduler says of itself, by name; nothing where the host has wrapped it.
func (c *console) factsOf() map[string]any {
	if c.Scheduler == nil {
		return nil
	}
	if says, is := c.Scheduler.s.(interface{ Facts() map[string]any }); is {
		return says.Facts()
	}
	return nil
}

func (q *request) tokens() error {
	return q.showTokens(http.StatusOK, tokensPage{Said: q.said()}, "") // nothing bounds how long one lasts: who makes it says so
}

func (q *request) showTokens(status int, p tokensPage, lasts string) (err error) {
	inConfig, _ := q.factsOf()["tokens"].(map[string]int)
	for _, app := range slices.Sorted(maps.Keys(inConfig)) {
		p.Config = append(p.Config, configToken{app, inConfig[app]})
	}
	if p.Kept = q.appTokens != nil; p.Kept {
		if p.Tokens, err = q.appTokens.AppTokens(q.ctx); err != nil && p.Secret == "" { // which is not lost for that
			return err
		}
	}
	q.offer(&p.Form, lasts)
	return q.show("tokens", status, p)
}

// offer fills in what the form offers, with the choice of how long a token lasts.
func (q *request) offer(f *tokenForm, lasts string) {
	f.Zone, f.Proved = q.formZone().String(), q.accounts != nil
	for _, d := range tokenSpans {
		f.Chosen = f.Chosen || d.String() == lasts
		f.Spans = append(f.Spans, muteSpan{d.String(), q.look.Span(d), d.String() == lasts})
	}
}

// typedToken is what somebody has typed who makes a token, and when that one ends by the store's clock, which
// decides later; with a fault where the form does not say so, or it is later than most from now, 0 for no bound.
func (q *request) typedToken(most time.Duration) (f tokenForm, ends time.Time, err error) {
	now, err := q.storeNow()
	if err != nil {
		return f, ends, err
	}
	f = tokenForm{Name: strings.TrimSpace(q.Field("name")), Apps: strings.TrimSpace(q.Field("apps")), Until: q.Field("until"), Faults: map[string]string{}}
	lasts, noSpan := time.ParseDuration(q.Field("for"))
	switch {
	case f.Until != "":
		var noTime error
		if ends, noTime = momentIn(f.Until, q.formZone()); noTime != nil {
			f.Faults["until"] = q.text("mute.fault.time")
		} else if !ends.After(now) {
			f.Faults["until"] = q.text("mute.fault.past")
		} else if most > 0 && ends.After(now.Add(most)) {
			f.Faults["until"] = q.text("usertokens.fault.long")
		}
	case noSpan == nil && slices.Contains(tokenSpans, lasts):
		ends = now.Add(lasts)
	default:
		f.Faults["until"] = q.text("tokens.fault.none")
	}
	return f, ends, nil
}

// prove has who makes a token, a user or a password for one say the own password, where the console knows it:
// these go on where a session that somebody else has got hold of is ended. What is wrong is added to the faults
// of the form, and status is what a form with any is answered with. A form with other faults is not looked at
// for it.
func (q *request) prove(faults map[string]string) (status int, err error) {
	status = http.StatusUnprocessableEntity
	if len(faults) > 0 || q.accounts == nil {
		return status, nil
	}
	checked, fault, err := q.checkOwn("password")
	if fault != "" {
		if faults["password"] = fault; checked.Wait > 0 {
			status = http.StatusTooManyRequests
		}
	}
	return status, err
}

// addToken makes a token, as one of a user is made (prove), and shows its secret, which nobody sees
// again.
func (q *request) addToken() error {
	if q.appTokens == nil {
		return notOffered("store.AppTokenKeeper")
	}
	f, ends, err := q.typedToken(0)
	if err != nil {
		return err
	}
	status, err := q.prove(f.Faults)
	if err != nil {
		return err
	}
	refuse := func() error { return q.showTokens(status, tokensPage{Form: f}, q.Field("for")) }
	if len(f.Faults) > 0 {
		return refuse()
	}
	secret := store.AppTokenPrefix + login.NewSecret()
	t, err := q.appTokens.AddAppToken(q.ctx, store.AppToken{Name: f.Name, Apps: listed(f.Apps), Hash: login.HashOf(secret), Expires: ends})
	switch list := xxljob.FieldErrors(err); {
	case err == nil:
		q.Logger.Info("console: a token was made", "token", t.Name, "apps", t.Apps, "user", q.user.Name, "client", q.Client.Text, "request", q.ID)
		return q.showTokens(http.StatusOK, tokensPage{Secret: secret, Made: t.Name}, q.Field("for"))
	case errors.Is(err, xxljob.ErrConflict):
		f.Faults["name"] = q.text("tokens.fault.taken")
	case errors.Is(err, store.ErrTooManyTokens):
		f.Faults["name"] = q.text("tokens.fault.many", "n", store.MostAppTokens)
	case len(list) == 0:
		return err
	default:
		for _, e := range list {
			field := map[string]string{"Name": "name", "Apps": "apps"}[e.Field]
			if field == "" {
				field = "until"
			}
			f.Faults[field] = q.text(map[string]string{"name": "tokens.fault.name", "apps": "tokens.fault.apps", "until": "mute.fault.past"}[field])
		}
	}
	return refuse()
}

// listed are the parts of a text that has commas between them.
func listed(text string) (parts []string) {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",，、\r\n", r) }) {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// tokenNamed finds a token by its name.
func (q *request) tokenNamed(name string) (store.AppToken, error) {
	if q.appTokens == nil {
		return store.AppToken{}, notOffered("store.AppTokenKeeper")
	}
	list, err := q.appTokens.AppTokens(q.ctx)
	at := slices.IndexFunc(list, func(t store.AppToken) bool { return t.Name == name })
	switch {
	case err != nil:
		return store.AppToken{}, err
	case at < 0:
		return store.AppToken{}, &web.Problem{Status: http.StatusUnprocessableEntity, Key: "problem.notoken"}
	}
	return list[at], nil
}

// revokeView is the question whether a token is to go.
type revokeView struct {
	Name, Help string
	Used       time.Time
	By         string // who has made it
	To, Back   string // where the form is sent, and where one goes back to
	ID, User   string // what the form names beside the name; of a token of a user
}

// revokeForm asks whether a token is to go.
func (q *request) revokeForm() error {
	if q.Query("name") == "" {
		return q.Redirect("tokens")
	}
	t, err := q.tokenNamed(q.Query("name"))
	if err != nil {
		return err
	}
	help := q.text("tokens.revoke.help", "apps", strings.Join(t.Apps, ", "))
	return q.show("revoke", http.StatusOK, revokeView{Name: t.Name, Help: help, Used: t.Used, By: t.By, To: "tokens/remove", Back: "tokens"})
}

// revokeToken deletes a token.
func (q *request) revokeToken() error {
	t, err := q.tokenNamed(q.Field("name"))
	if err != nil {
		return err
	}
	if err := q.appTokens.RemoveAppToken(q.ctx, t.Name); err != nil && !errors.Is(err, xxljob.ErrNotFound) { // it is gone by now
		return err
	}
	q.Logger.Info("console: a token was revoked", "token", t.Name, "user", q.user.Name, "client", q.Client.Text, "request", q.ID)
	return q.Redirect(saying("tokens", "revoked"))
}

// appsToChoose are the apps that there are, which the user may see, with a text in them.
func (q *request) appsToChoose(text string) ([]string, error) {
	apps, all, err := q.visibleApps()
	if err == nil && all {
		apps, err = q.appNames()
	}
	text = strings.ToLower(text)
	apps = slices.DeleteFunc(slices.Clone(apps), func(app string) bool { return !strings.Contains(strings.ToLower(app), text) })
	return apps[:min(len(apps), appsOffered)], err
}

// appsOffered is how many apps are offered at once.
const appsOffered = 100

// KnownApps are apps to choose from; others are offered while somebody types.
func (p *page) KnownApps() []string {
	ctx, cancel := context.WithTimeout(p.q.ctx, time.Second)
	defer cancel()
	apps, err := p.q.under(ctx).appsToChoose("")
	if err != nil {
		return nil // they are a help, and no more
	}
	return apps
}

// offerApps answers who types with the apps that may be meant; as a page it is the list of their jobs.
func (q *request) offerApps() error {
	text := strings.TrimSpace(q.Query("text"))
	if !q.IsPart() {
		return q.Redirect("jobs?" + url.Values{"app": {text}}.Encode())
	}
	apps, err := q.appsToChoose(text)
	if err != nil {
		return asked(err)
	}
	return q.show("appfind", http.StatusOK, apps)
}
