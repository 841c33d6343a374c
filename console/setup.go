package console

// The page on which the first user is made, and what programs make users with.

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/login"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/internal/slots"
	"github.com/xxljob/xxljob/store"
)

// SetupCode makes a code with which the first user of a store can be made within a day, at the
// page "setup" of a console on it. It is empty where there is a user already. It is what a console
// without users does by itself, once it is asked for a page; a program that shows the code in its
// own way calls this first.
func SetupCode(ctx context.Context, accounts xxljob.AccountStore) (code string, err error) {
	return login.SetupCode(ctx, accounts)
}

// CreateUser adds a user with a password, as programs do that set up a store. The name is taken
// in lower case. Errors are those of AccountStore.AddUser, and what is wrong with the password.
func CreateUser(ctx context.Context, accounts xxljob.AccountStore, u User, password string) error {
	name := strings.ToLower(u.Name)
	if err := login.CheckPassword(name, password); err != nil {
		return err
	}
	hash, err := login.NewHasher().Hash(ctx, slots.Holder{}, password)
	if err != nil {
		return err
	}
	apps := map[string]string{}
	for app, role := range u.Apps {
		if role != None && ranks[role] == 0 {
			return errors.New("console: unknown role " + strconv.Quote(string(role)))
		}
		apps[app] = string(role)
	}
	_, err = accounts.AddUser(ctx, store.User{Name: name, Title: u.Title, Password: hash, Grants: store.Grants{Admin: u.Admin, Apps: apps, Scripts: u.Scripts}})
	return err
}

// wantsUsers sends a browser to make the first user where there is none.
func (q *request) wantsUsers() error {
	if q.accounts == nil {
		return nil
	}
	has, err := q.logins.HasUsers(q.ctx)
	if err == nil && !has {
		err = errSetup
	}
	return err
}

// wantsNewcomer refuses the page that makes the first user where there is one.
func (q *request) wantsNewcomer() error {
	has, err := q.logins.HasUsers(q.ctx)
	if err == nil && has {
		return errNotThere
	}
	return err
}

// setupPage is what the form for the first user shows.
type setupPage struct {
	Name, Title, Code string
	Faults            map[string]string // by field: texts
}

func (q *request) setupForm() error { return q.show("setup", http.StatusOK, setupPage{}) }

func (q *request) setup() error {
	f := setupPage{Name: strings.ToLower(strings.TrimSpace(q.Field("name"))), Title: strings.TrimSpace(q.Field("title")), Code: strings.ToUpper(strings.TrimSpace(q.Field("code"))), Faults: map[string]string{}}
	refuse := func(status int) error { return q.show("setup", status, f) }
	tried, wait := q.logins.TryCode(q.Exchange)
	if wait > 0 {
		f.Faults["code"] = q.text("login.wait", "n", web.Seconds(wait))
		return refuse(http.StatusTooManyRequests)
	}
	u := store.User{Name: f.Name, Title: f.Title}
	for _, e := range xxljob.FieldErrors(xxljob.ValidateUser(&u)) {
		f.Faults[strings.ToLower(e.Field)] = q.text("fault." + e.Code)
	}
	var weak login.WeakPassword
	if errors.As(login.CheckPassword(f.Name, q.Field("password")), &weak) {
		f.Faults["password"] = q.text(string(weak))
	} else if q.Field("password") != q.Field("again") {
		f.Faults["again"] = q.text("password.again")
	}
	if len(f.Faults) > 0 {
		return refuse(http.StatusUnprocessableEntity)
	}
	hash, err := q.logins.HashFrom(q.ctx, q.Exchange, q.Field("password"))
	if err != nil {
		return err
	}
	u.Password = hash
	q.ctx = xxljob.WithActor(q.ctx, f.Name)
	err = q.logins.AddFirst(q.ctx, q.Exchange, u, f.Code, tried)
	switch {
	case errors.Is(err, xxljob.ErrNotFound):
		f.Faults["code"] = q.text("setup.wrong")
		return refuse(http.StatusUnprocessableEntity)
	case errors.Is(err, store.ErrUserExists):
		return q.Redirect("login")
	case err != nil:
		return err
	}
	if _, err := q.logins.Begin(q.ctx, q.Exchange, &u, q.Field("password"), q.asker().Holder()); err != nil {
		return err
	}
	return q.Redirect("")
}
