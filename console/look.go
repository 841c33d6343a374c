package console

// How pages look to somebody: what is chosen, and where that is kept. What there is to choose is in
// internal/look.

import (
	"net/http"

	"github.com/xxljob/xxljob/console/internal/look"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

// text is a text in the viewer's language.
func (q *request) text(key string, values ...any) string { return q.look.Text(key, values...) }

// setLook takes over a choice, and goes back to the page.
func (q *request) setLook() error {
	ch := q.look.Chosen
	if !q.looks.Take(q.R.PostForm, &ch) {
		return &web.Problem{Status: http.StatusUnprocessableEntity, Key: "problem.look"}
	}
	if q.user != nil && q.user.account != nil && q.user.token == "" {
		all := look.SettingsIn(q.user.account.Settings)
		if err := all.Choose(ch); err != nil {
			return err
		}
		if err := q.keepSettings(q.user.account, all); err != nil {
			return err
		}
	}
	ch.Keep(q.Exchange)
	if q.IsPart() { // a script has said so
		return q.NothingNew()
	}
	return q.Redirect(web.OwnPage(q.Field("next")))
}

// keepSettings keeps settings with an account.
func (q *request) keepSettings(u *store.User, all look.Settings) error {
	text, err := all.Text()
	if err != nil {
		return err
	}
	return q.accounts.SaveSettings(q.ctx, u.Name, text)
}

// keepSetting keeps a setting with an account beside the others, or forgets it where it is nil.
func (q *request) keepSetting(u *store.User, name string, value any) error {
	all := look.SettingsIn(u.Settings)
	if all[name] == value {
		return nil
	}
	if all[name] = value; value == nil {
		delete(all, name)
	}
	return q.keepSettings(u, all)
}
