package login

// The first user: made with a code that only who sees the process's output has.

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/store"
)

// codeCounts is how long a code for the first user counts.
const codeCounts = 24 * time.Hour

// SetupCode makes a code with which the first user can be made within a day; "" where there is one.
func SetupCode(ctx context.Context, accounts store.AccountStore) (code string, err error) {
	code = rand.Text()[:26] // 130 bits
	err = accounts.AddSetupCode(ctx, HashOf(code), codeCounts)
	if errors.Is(err, store.ErrUserExists) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return code, nil
}

// setup is about the code of this process, which is made once, and remembers that there are users.
type setup struct {
	users atomic.Bool   // there are some
	turn  chan struct{} // of who asks the store: others wait no longer than they have time
	until time.Time     // guarded by turn: the code of this process counts
}

// counts reports whether the code of this process still counts. A clock that was set back does not
// make it count for longer.
func (s *setup) counts(now time.Time) bool {
	left := s.until.Sub(now)
	return left > 0 && left <= codeCounts
}

// OwnSetup counts a code that the host has made by now as that of this process. It is called before
// anything else is.
func (a *Authenticator) OwnSetup() { a.setup.until = time.Now().Add(codeCounts) }

// HasUsers reports whether there is a user. Where there is none it has told the log a code.
func (a *Authenticator) HasUsers(ctx context.Context) (bool, error) {
	s := &a.setup
	if s.users.Load() {
		return true, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	list, err := a.Accounts.Users(ctx, "", 1)
	if err != nil {
		return false, err
	}
	if s.users.Store(len(list) > 0); len(list) > 0 || s.counts(time.Now()) {
		return len(list) > 0, nil
	}
	code, err := SetupCode(ctx, a.Accounts)
	if err != nil || code == "" {
		s.users.Store(err == nil)
		return err == nil, err
	}
	s.until = time.Now().Add(codeCounts)
	a.Logger.Warn("console: nobody can log in yet; open the console and make the first user with this code", "code", code, "page", "setup")
	return false, nil
}

// TryCode counts a try with a code, or says how long it has to wait. It counts as one that has failed
// until the first user is added.
func (a *Authenticator) TryCode(x *web.Exchange) (tried time.Time, wait time.Duration) {
	tried = time.Now()
	return tried, a.failures.wait(x.Client.Network(), tried)
}

// AddFirst adds the first user with a code and a try. Errors are those of AccountStore.AddFirstUser.
func (a *Authenticator) AddFirst(ctx context.Context, x *web.Exchange, u store.User, code string, tried time.Time) error {
	_, err := a.Accounts.AddFirstUser(ctx, u, HashOf(code))
	if err == nil {
		a.failures.takeBack(x.Client.Network(), tried)
	}
	return err
}
