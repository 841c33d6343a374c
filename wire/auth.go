package wire

// Who a request comes from: callers, what their tokens are good for, and how tokens are compared.

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Caller is who a request comes from, as far as its headers prove or, where it says so,
// show it.
type Caller struct {
	// App is the app the caller may speak for, and "" when it may speak for every
	// one: it has shown a token that all share, and no name.
	App string
	// Scope is what the token is good for that was shown: the name of its app, which the
	// token proves, or "" for one that apps share, and with Insecure.
	Scope string
	// Named says that the caller has named its app in HeaderApp, as peers of G4
	// and ours do.
	Named bool
	// Java says that the request has the look of XXL-JOB's own Java library, of any
	// generation. Nothing proves it, and a proxy may hide it: nothing may be allowed for it.
	Java bool
}

// looksJava reports whether a request is of XXL-JOB's own library: it is sent by the
// JDK's client, with one of two values of a header that this client does not send by
// itself (docs/xxl-job.md, headers). Other programs have other values, such as the list of all
// charsets that Spring's client sends.
func looksJava(h http.Header) bool {
	if !strings.HasPrefix(h.Get("User-Agent"), "Java/") {
		return false
	}
	charset := h.Get("Accept-Charset")
	return strings.EqualFold(charset, "application/json;charset=utf-8") || strings.EqualFold(charset, "utf-8")
}

// MaySpeakFor reports whether the caller may register, report and manage for an
// app.
func (c Caller) MaySpeakFor(app string) bool { return c.App == "" || c.App == app }

// refusal is the answer to a caller that may not do what it asked for, in the
// words of its generation.
func (c Caller) refusal() Return {
	if c.Named {
		return Failf(MsgIdentityInvalid)
	}
	return Failf(MsgTokenWrong)
}

type callerKey struct{}

// WithCaller returns a context that carries the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns the caller of a request that came through one of the
// handlers. A call within the process has none: it may do everything.
func CallerFrom(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// Authorize decides whether a request is answered. app and token are the values
// of HeaderApp and HeaderToken as they came, "" when absent; peers up to G3 do
// not send an app. It returns the app that the token is good for, "" for one
// that is good for every app. It is called for each request, concurrently,
// before the body is read, so it answers from memory. A token must be compared
// by SameToken or by a Keyring, and must be neither logged nor returned. An app that
// it is asked about is UTF-8 of 64 bytes at most without control characters, and a
// token has 4096 bytes at most: others were refused before. The scopes it returns are
// those of tokens that there are, and not what callers name: each scope has a share of
// HandlerConfig.MaxBodies. Where it cannot tell at this moment whether a token is right it returns
// ScopeUnknown and false.
type Authorize func(ctx context.Context, app, token string) (scope string, ok bool)

// ScopeUnknown is the scope that an Authorize returns, with false, for a token that may be right and of
// which it cannot tell at this moment, as it has not read yet which there are. The request is answered
// with HTTP 503, as by an admin that starts, which peers take for no answer: they come again soon. Such
// answers are paced as refusals are, so that nobody tries out more tokens by them.
const ScopeUnknown = "\x00unknown" // no app is called so

// Insecure is an Authorize that lets everybody do everything: every process
// that can reach the handler can run, kill and read. It is for closed networks
// and tests.
func Insecure(context.Context, string, string) (scope string, ok bool) { return "", true }

// maxToken bounds a token, in bytes. Those in use are below 100; there is room for signed
// ones that carry claims.
const maxToken = 4 << 10

// maxApp bounds the name of an app, in bytes, as XXL-JOB does.
const maxApp = 64

// sendable reports whether an app and a token could be those of anybody.
func sendable(app, token string) bool { return len(token) <= maxToken && validApp(app) }

// validApp reports whether an app could be called so, or is not named.
func validApp(app string) bool {
	return len(app) <= maxApp && utf8.ValidString(app) && !strings.ContainsFunc(app, unicode.IsControl)
}

// SameToken compares two tokens in a time that tells nothing about them. Empty
// tokens, and those above 4096 bytes, are the same as nothing, not even each other.
func SameToken(a, b string) bool {
	return a != "" && b != "" && len(a) <= maxToken && len(b) <= maxToken && sameHash(hashToken(a), hashToken(b))
}

func hashToken(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

func sameHash(a, b [sha256.Size]byte) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }

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
