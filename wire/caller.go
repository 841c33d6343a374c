package wire

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
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
// HandlerConfig.MaxBodies.
type Authorize func(ctx context.Context, app, token string) (scope string, ok bool)

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
