package console

// The first user: made with a code that only who sees the process's output has.

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/internal/slots"
	"github.com/xxljob/xxljob/store"
)

// codeCounts is how long a code for the first user counts.
const codeCounts = 24 * time.Hour

// SetupCode makes a code with which the first user of a store can be made within a day, at the
// page "setup" of a console on it. It is empty where there is a user already. It is what a console
// without users does by itself, once it is asked for a page; a program that shows the code in its
// own way calls this first.
func SetupCode(ctx context.Context, accounts xxljob.AccountStore) (code string, err error) {
	code = rand.Text()[:26] // 130 bits
	err = accounts.AddSetupCode(ctx, hashOf(code), codeCounts)
	if errors.Is(err, store.ErrUserExists) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return code, nil
}

// CreateUser adds a user with a password, as programs do that set up a store. The name is taken
// in lower case. Errors are those of AccountStore.AddUser, and what is wrong with the password.
func CreateUser(ctx context.Context, accounts xxljob.AccountStore, u User, password string) error {
	name := strings.ToLower(u.Name)
	if err := web.CheckPassword(name, password); err != nil {
		return err
	}
	hash, err := web.NewHasher().Hash(ctx, slots.Holder{}, password)
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

// setupper makes the code of this process, once, and remembers that there are users.
type setupper struct {
	users atomic.Bool   // there are some
	turn  chan struct{} // of who asks the store: others wait no longer than they have time
	until time.Time     // guarded by turn: the code of this process counts
}

// own counts a code that the host has made by now as that of this process.
func (s *setupper) own() { s.until = time.Now().Add(codeCounts) }

// counts reports whether the code of this process still counts. A clock that was set back does not
// make it count for longer.
func (s *setupper) counts(now time.Time) bool {
	left := s.until.Sub(now)
	return left > 0 && left <= codeCounts
}

// hasUsers reports whether there is a user. Where there is none it has told the log a code.
func (q *request) hasUsers() (bool, error) {
	s := &q.setupper
	if s.users.Load() {
		return true, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-q.ctx.Done():
		return false, q.ctx.Err()
	}
	list, err := q.accounts.Users(q.ctx, "", 1)
	if err != nil {
		return false, err
	}
	if s.users.Store(len(list) > 0); len(list) > 0 || s.counts(time.Now()) {
		return len(list) > 0, nil
	}
	code, err := SetupCode(q.ctx, q.accounts)
	if err != nil || code == "" {
		s.users.Store(err == nil)
		return err == nil, err
	}
	s.until = time.Now().Add(codeCounts)
	q.Logger.Warn("console: nobody can log in yet; open the console and make the first user with this code", "code", code, "page", "setup")
	return false, nil
}

// wantsUsers sends a browser to make the first user where there is none.
func (q *request) wantsUsers() error {
	if q.accounts == nil {
		return nil
	}
	has, err := q.hasUsers()
	if err == nil && !has {
		err = errSetup
	}
	return err
}

// wantsNewcomer refuses the page that makes the first user where there is one.
func (q *request) wantsNewcomer() error {
	has, err := q.hasUsers()
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
	tried := time.Now()
	if wait := q.failures.Wait(q.Client.Network(), tried); wait > 0 {
		f.Faults["code"] = q.text("login.wait", "n", web.Seconds(wait))
		return refuse(http.StatusTooManyRequests)
	}
	u := store.User{Name: f.Name, Title: f.Title}
	for _, e := range xxljob.FieldErrors(xxljob.ValidateUser(&u)) {
		f.Faults[strings.ToLower(e.Field)] = q.text("fault." + e.Code)
	}
	var weak web.WeakPassword
	if errors.As(web.CheckPassword(f.Name, q.Field("password")), &weak) {
		f.Faults["password"] = q.text(string(weak))
	} else if q.Field("password") != q.Field("again") {
		f.Faults["again"] = q.text("password.again")
	}
	if len(f.Faults) > 0 {
		return refuse(http.StatusUnprocessableEntity)
	}
	hash, err := q.hasher.Hash(q.ctx, slots.Holder{Named: q.Client.Network().String()}, q.Field("password"))
	if err != nil {
		return err
	}
	u.Password = hash
	q.ctx = xxljob.WithActor(q.ctx, f.Name)
	_, err = q.accounts.AddFirstUser(q.ctx, u, hashOf(f.Code))
	switch {
	case errors.Is(err, xxljob.ErrNotFound):
		f.Faults["code"] = q.text("setup.wrong")
		return refuse(http.StatusUnprocessableEntity)
	case errors.Is(err, store.ErrUserExists):
		return q.Redirect("login")
	case err != nil:
		return err
	}
	q.failures.TakeBack(q.Client.Network(), tried)
	if _, err := q.begin(&u, q.Field("password")); err != nil {
		return err
	}
	return q.Redirect("")
}
