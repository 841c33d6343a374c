package store

import (
	"context"
	"errors"
	"slices"
	"time"
)

// AppTokenPrefix begins each secret of an AppToken, so that those who look for leaked secrets know it, and no
// other token is looked for in the store.
const AppTokenPrefix = "xt_"

// ObjectAppToken is the kind of an entry of the record about a token of apps, whose Name is its ObjectID.
const ObjectAppToken = "apptoken"

// The bounds of tokens of apps.
const (
	MostAppTokens = 1_000       // that are kept, those that have expired included
	MostTokenApps = 100         // apps of one
	AppTokenNote  = time.Minute // how old an AppToken.Used may be before it is written anew
)

// AppToken is a secret by which programs elsewhere speak for apps: executors that register and report, and
// callers of the jobs API, beside those of a scheduler's configuration.
type AppToken struct {
	// Name is what people call it, of 1 to 64 printable bytes. There are no two with one name.
	Name string
	// Apps are those that it speaks for: 1 to MostTokenApps, each once, of 1 to 64 bytes.
	Apps []string
	// Hash is the SHA-256 of the secret, HashBytes long. Nobody has what it is made of but who was shown it.
	Hash string
	// Expires is when it ends by itself, to the millisecond.
	Expires time.Time
	// Added and By are since when it is there, and who has made it; By is the actor of the context. Used is
	// when it was used last, zero for never, and may be as old as AppTokenNote. A store sets them, by its own
	// clock, and Expired, which says that Expires has passed by that when the token was read.
	Added, Used time.Time
	By          string
	Expired     bool
}

// Validate returns what is wrong with a token that is to be added now: a FieldError each, joined. It never
// says anything of the Hash.
func (t *AppToken) Validate(now time.Time) error {
	f := Faults{Of: "token"}
	f.Plain("Name", t.Name, 1, 64)
	switch n := len(t.Apps); {
	case n == 0:
		f.Add("Apps", "", coded{"required", errors.New("must not be empty")})
	case n > MostTokenApps:
		f.Add("Apps", n, coded{"too-long", errors.New("are too many")})
	default:
		for i, app := range t.Apps {
			if f.Plain("Apps", app, 1, 64); slices.Contains(t.Apps[:i], app) {
				f.Add("Apps", app, errors.New("is there twice"))
			}
		}
	}
	if CheckHash(t.Hash) != nil {
		f.Add("Hash", "", errors.New("want 32 bytes"))
	}
	f.moment("Expires", t.Expires)
	if !t.Expires.After(now) {
		f.Add("Expires", t.Expires, errors.New("want a time to come"))
	}
	return f.Err()
}

// AppTokenKeeper is what a Store is as well that keeps tokens of apps. Both stores of this module are. That
// one is added or removed is recorded, without its hash, in the same transaction.
type AppTokenKeeper interface {
	// AddAppToken keeps a token, of which Name, Apps, Hash and Expires are given, and returns it as stored.
	// ErrConflict where there is one with this name, ErrTooManyTokens where there are MostAppTokens; calls
	// at once may pass that together. Errors besides are those of AppToken.Validate.
	AddAppToken(ctx context.Context, t AppToken) (AppToken, error)
	// RemoveAppToken deletes a token. ErrNotFound where there is none with this name.
	RemoveAppToken(ctx context.Context, name string) error
	// AppTokens returns all tokens, expired ones too, in order of Name by its bytes.
	AppTokens(ctx context.Context) ([]AppToken, error)
	// UseAppToken notes that the token with this name and this hash was used, unless that is known for less
	// than AppTokenNote. It writes nothing else, and nothing where there is none.
	UseAppToken(ctx context.Context, name, hash string) error
}

// OfAppToken, for authors of stores, fills in what the entry says of a token of apps that was added, or was
// removed: all but ID and At.
func (c *Change) OfAppToken(ctx context.Context, before, after *AppToken) {
	type recorded struct {
		Apps    []string
		Expires time.Time
	}
	of := func(t *AppToken) (r recorded) {
		if t != nil {
			r = recorded{t.Apps, t.Expires}
		}
		return r
	}
	c.from(ctx)
	t := after
	if c.Verb = "add"; after == nil {
		c.Verb, t = "remove", before
	}
	c.Object, c.ObjectID = ObjectAppToken, t.Name
	if len(t.Apps) == 1 {
		c.App = t.Apps[0]
	}
	c.between(before != nil, of(before), after != nil, of(after))
}
