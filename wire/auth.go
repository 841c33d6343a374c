package wire

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DefaultToken is the token in the sample configuration of XXL-JOB, known to
// everybody.
const DefaultToken = "default_token"

// maxTokens is how many tokens of an app are valid at a time.
const maxTokens = 2

// Tokens are the tokens of a Keyring. Two of an app, or two shared ones, may be
// valid at a time: the old one and the new one, while peers are changed over.
type Tokens struct {
	// Shared are good for every app. XXL-JOB up to 3.4 has one for all.
	Shared []string
	// Apps are good for one app each, by its name. A token belongs to one app
	// only.
	Apps map[string][]string
	// AllowDefault admits DefaultToken, for the time of a migration.
	AllowDefault bool
}

// Keyring holds the hashes of tokens and finds out which app a token is good
// for. It never changes, and is safe for concurrent use.
type Keyring struct{ keys []key }

type key struct {
	app  string // "" for a shared one
	hash [sha256.Size]byte
}

// NewKeyring makes a Keyring. Its error names everything that is wrong, by app
// and never by token: an app without a name, or whose name has more than 64 bytes or
// characters that no header can carry, an empty token, one of more than 4096 bytes,
// white space around one, more than two of an app, one token for two apps,
// DefaultToken without AllowDefault, no token at all.
func NewKeyring(t Tokens) (*Keyring, error) {
	k := &Keyring{}
	errs := []error{k.add("", t.Shared, t.AllowDefault)}
	for _, app := range slices.Sorted(maps.Keys(t.Apps)) {
		if app == "" {
			errs = append(errs, errors.New("xxljob: tokens of an app without a name: use Shared"))
			continue
		}
		errs = append(errs, k.add(app, t.Apps[app], t.AllowDefault))
	}
	err := errors.Join(errs...)
	if err == nil && len(k.keys) == 0 {
		err = errors.New("xxljob: no token given")
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}

func (k *Keyring) add(app string, tokens []string, allowDefault bool) error {
	who := fmt.Sprintf("xxljob: tokens of app %q", app)
	if app == "" {
		who = "xxljob: shared tokens"
	}
	var errs []error
	fault := func(what string) { errs = append(errs, fmt.Errorf("%s: %s", who, what)) }
	if !validApp(app) {
		fault(fmt.Sprintf("want a name of at most %d bytes, UTF-8 without control characters", maxApp))
	}
	if len(tokens) > maxTokens {
		fault(fmt.Sprintf("%d, at most %d are valid at a time", len(tokens), maxTokens))
	}
	for _, token := range tokens {
		switch {
		case token == "":
			fault("one is empty")
		case len(token) > maxToken:
			fault(fmt.Sprintf("one has %d bytes, at most %d are taken", len(token), maxToken))
		case strings.TrimSpace(token) != token:
			fault("one has white space around it, which no header can carry")
		case token == DefaultToken && !allowDefault:
			fault("one is the default of XXL-JOB's samples, which everybody knows")
		}
		hash := hashToken(token)
		for _, other := range k.keys {
			if other.hash == hash && other.app != app {
				fault(fmt.Sprintf("one is that of app %q too", other.app))
			}
		}
		k.keys = append(k.keys, key{app, hash})
	}
	return errors.Join(errs...)
}

// Authorize is an Authorize. A caller that names its app needs a token of
// that app or a shared one. A caller that does not is known by its token. The
// time it takes does not depend on how much of a token was right.
func (k *Keyring) Authorize(_ context.Context, app, token string) (scope string, ok bool) {
	if token == "" || len(token) > maxToken {
		return "", false
	}
	hash := hashToken(token)
	for _, key := range k.keys {
		mine := app == "" || key.app == "" || key.app == app
		if mine && sameHash(key.hash, hash) {
			scope, ok = key.app, true
		}
	}
	return scope, ok
}
