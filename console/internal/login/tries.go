package login

// How often somebody may try to log in. What is counted where is bounded: networks in this process,
// all else in the store's buckets.

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/internal/slots"
	"github.com/xxljob/xxljob/store"
)

// aloneCounters is by how many counters in turn tries for a name are counted, wherever they come
// from: each has store.FreeTries, and waits of its own. So a name has twenty times as many as a name
// and a network have.
const aloneCounters = 20

// Checked is what came of a try with a password.
type Checked struct {
	Wait time.Duration // how long it has to wait: nothing was checked. 0 where it need not
	Is   bool          // it is the password, of a user who may log in
	By   slots.Holder  // for whom further hashes count

	stale bool // the hash should be made anew
}

// Check tries a password for a name. account is that of the name, empty for one that nobody has: that
// takes as long. One that is wrong is recorded, and counts against those after it.
func (a *Authenticator) Check(ctx context.Context, x *web.Exchange, name string, account *store.User, given string) (c Checked, err error) {
	t := &try{name: name, at: time.Now(), from: x.Client.Network(), secret: hasLoggedIn(x, account)}
	if c.Wait, err = a.mayTry(ctx, t); err != nil || c.Wait > 0 {
		return c, err
	}
	c.By = a.hashesFor(t)
	is, stale, err := a.Hasher.Matches(ctx, c.By, account.Password, given)
	if err != nil {
		return c, err
	}
	if !is || account.Disabled {
		a.note(ctx, x, name, "login-failed")
		return c, nil
	}
	c.Is, c.stale = true, stale
	return c, a.passed(ctx, t)
}

// LogIn begins a session of the user whose password was checked, in place of the former one, nil for
// none. ErrOvertaken and ErrNotFound where what was checked is not so any more.
func (a *Authenticator) LogIn(ctx context.Context, x *web.Exchange, account *store.User, given string, c Checked, former *store.Session) (*store.Session, error) {
	if c.stale {
		a.rehash(ctx, account, given, c.By)
	}
	if former != nil { // it is another one from now on
		_ = a.Accounts.EndSession(ctx, former.User, former.ID)
	}
	if err := a.record(ctx, x, account.Name, "login"); err != nil {
		return nil, err
	}
	return a.Begin(ctx, x, account, given, c.By)
}

// rehash keeps the password that was just given under a hash that costs more. That it does not
// succeed matters to nobody.
func (a *Authenticator) rehash(ctx context.Context, account *store.User, given string, who slots.Holder) {
	hash, err := a.Hasher.Hash(ctx, who, given)
	if err != nil {
		return
	}
	err = a.Accounts.RehashPassword(ctx, account.Name, account.Password, hash)
	switch {
	case err == nil:
		account.Password = hash
	case !errors.Is(err, store.ErrConflict): // which is another login, or another password
		a.Logger.Warn("console: a password could not be hashed anew", "user", account.Name, "error", err)
	}
}

// try is a try to log in, and what it counts for.
type try struct {
	name   string
	at     time.Time
	from   netip.Prefix
	secret string   // of a cookie of an earlier login as that user; empty without one
	keys   []string // what it was counted by in the store
}

// hashesFor is for whom a place for hashing counts: strangers share half of them, each network having
// one at a time, and those who have logged in before have others left.
func (a *Authenticator) hashesFor(t *try) slots.Holder {
	switch {
	case t.secret != "":
		return slots.Holder{Proved: "user " + t.name}
	case a.failures.hasPassed(t.from):
		return slots.Holder{Proved: "network " + t.from.String()}
	}
	return slots.Holder{Named: t.from.String()}
}

// HashFrom returns what is kept of a password that is made, and not checked. The place for that counts
// for where the request comes from.
func (a *Authenticator) HashFrom(ctx context.Context, x *web.Exchange, password string) (string, error) {
	return a.Hasher.Hash(ctx, a.hashesFor(&try{from: x.Client.Network()}), password)
}

// mayTry says how long a try has to wait. It goes by the browser alone where that has logged in as
// the user before, so that nobody else keeps the user out; else by the network that it comes from, by
// the name and the network, and by the name alone. It counts for the network while the store is asked,
// so that of many at once no more are counted there than may try; one that has to wait was none, and
// counts for nothing before it.
func (a *Authenticator) mayTry(ctx context.Context, t *try) (wait time.Duration, err error) {
	if t.secret != "" {
		return a.count(ctx, t, t.name+"\x00browser\x00"+HashOf(t.secret))
	}
	if wait := a.failures.wait(t.from, t.at); wait > 0 {
		return wait, nil
	}
	wait, err = a.count(ctx, t, PairKey(t.name, t.from))
	if wait == 0 && err == nil {
		wait, err = a.count(ctx, t, fmt.Sprintf("%s\x00%d", t.name, a.alone.Add(1)%aloneCounters))
	}
	if wait > 0 {
		a.failures.takeBack(t.from, t.at)
		if passErr := a.forget(ctx, t); err == nil {
			err = passErr
		}
	}
	return wait, err
}

// PairKey is what tries for a name from a network are counted by.
func PairKey(name string, from netip.Prefix) string { return name + "\x00network\x00" + from.String() }

// count counts a try by a key, unless it has to wait.
func (a *Authenticator) count(ctx context.Context, t *try, key string) (time.Duration, error) {
	wait, err := a.Accounts.TryLogin(ctx, key)
	if wait == 0 && err == nil {
		t.keys = append(t.keys, key)
	}
	return wait, err
}

// passed says that the try has succeeded.
func (a *Authenticator) passed(ctx context.Context, t *try) error {
	if t.secret == "" {
		a.failures.takeBack(t.from, t.at)
	}
	a.failures.pass(t.from, t.at)
	return a.forget(ctx, t)
}

// forget forgets what the store has counted for the try.
func (a *Authenticator) forget(ctx context.Context, t *try) error {
	for _, key := range t.keys {
		if err := a.Accounts.PassLogin(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
