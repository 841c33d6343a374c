// Package login says who is logged in at a console that has users of its own, and how one comes to be
// that: by a session or a token, with a password or, for the first user, with a code; and how often one
// may try. What a user may do it does not know, nor what pages say of it.
package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"sync/atomic"

	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/internal/slots"
	"github.com/xxljob/xxljob/store"
)

// Config is what an Authenticator is made with.
type Config struct {
	Accounts store.AccountStore // all but who has none of its users asks for it
	Record   store.ChangeRecord // nil where the store has none
	Logger   *slog.Logger
	Refused  *atomic.Uint64 // counts the tokens that are nobody's
	Doubted  func() bool    // whether the clock is doubted at this moment: by such a one no session is deleted
}

// Authenticator says who is logged in. Its methods may be called by many goroutines at once.
type Authenticator struct {
	Config
	Hasher *Hasher

	refused  *slots.Refusals
	lookups  *slots.Slots
	failures failures
	alone    atomic.Uint64 // by which counter of a name the next try is counted
	known    known         // whose sessions the store has confirmed
	setup    setup
}

// lookupsAtOnce is for how many it is found out at a time who they are: half of them, as nobody is known
// yet, a quarter for a network.
const lookupsAtOnce = 16

// New makes one.
func New(cfg Config) *Authenticator {
	return &Authenticator{Config: cfg, Hasher: NewHasher(), refused: slots.NewRefusals(cfg.Refused), lookups: slots.New(lookupsAtOnce), setup: setup{turn: make(chan struct{}, 1)}}
}

// NewSecret is a secret of 256 bits.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// HashOf is what the store knows a secret by.
func HashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return string(sum[:])
}

// record writes an entry about a login of a user into the record of changes, if the store has one, and a
// line into the log: it is no change of the store's own.
func (a *Authenticator) record(ctx context.Context, x *web.Exchange, name, verb string) error {
	a.Logger.Info("console: "+verb, "user", name, "client", x.Client.Text, "request", x.ID)
	if a.Record == nil {
		return nil
	}
	_, err := a.Record.RecordChange(ctx, store.Change{Verb: verb, Object: store.ObjectLogin, ObjectID: store.Shown(name, store.MostUserName)})
	return err
}

// note is record for what has happened already, whether it can be recorded or not.
func (a *Authenticator) note(ctx context.Context, x *web.Exchange, name, verb string) {
	if err := a.record(ctx, x, name, verb); err != nil {
		a.Logger.Warn("console: an entry of the record of changes could not be written", "verb", verb, "user", name, "error", err)
	}
}
