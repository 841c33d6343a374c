package wire

// What the HTTP sides of both have in common.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/slots"
)

// HandlerConfig is what both handlers are told. Only Authorize is required.
type HandlerConfig struct {
	// Authorize decides who is answered: that of a Keyring, one of the host's
	// own, or in so many words Insecure.
	Authorize Authorize
	// RequireApp refuses requests that lack one of the two headers, as peers of
	// G4 do. Default: peers up to G3, which send no HeaderApp, are answered too.
	RequireApp bool
	// MaxBody bounds the body of a request, in bytes, and what it is unpacked to where its
	// Content-Encoding is gzip. Default: at an executor 5
	// MiB, which is what Java ones take; at an admin 4 MiB for callbacks and 1
	// MiB for the rest.
	MaxBody int64
	// MaxBodies is how many requests of each kind with a large body are read and served
	// at a time, so that the bodies fit into memory. A body is large above 64 KiB, or
	// when its length is not sent ahead. One caller has a quarter of MaxBodies at most,
	// and at least one: by Caller.Scope, and among those whose Scope is empty, which have
	// half together, by the app that they name. Further requests wait for 2 s, and are
	// then refused with MsgTooMany; peers send such a request again. Of bodies above 1 MiB, which executors
	// send where dozens of results have the longest texts, an eighth of MaxBodies are read at a time, and at least one,
	// shared out in the same way. Default: 64.
	MaxBodies int
	// BodyTimeout is how long the body of a request may take to arrive. Default:
	// 10 s.
	BodyTimeout time.Duration
	// MinBodyRate is how fast a body has to arrive, in bytes a second, counted from two
	// seconds after the request's header, or after a slot was there for it: one that
	// falls behind is refused. Default: 16 KiB, so that a line of 128 kbit/s will do, and
	// any line that carries a body within the two seconds.
	MinBodyRate int64
	// Logger receives what a peer is not told: panics and errors of the
	// implementation, and from which address something came that was not understood, for
	// one host and endpoint once a minute. Default: slog.Default().
	Logger *slog.Logger
	// Unread, if not nil, counts the requests, and the results in a batch, that were not
	// understood.
	Unread *atomic.Uint64
	// Refused, if not nil, counts the requests whose token, or app, was refused. An address is
	// answered ten of them a second; twenty wait for their turn, and the connections of further ones
	// end without an answer. So may those of executors that show a token which was just taken out of
	// use: they come again, as after any connection that has failed.
	Refused *atomic.Uint64
}

// answer is what a request is answered with.
type answer interface {
	Encode(dst []byte) []byte
}

// endpoint serves one kind of request.
type endpoint struct {
	maxBody int64
	serve   service
	slots   *slots.Slots // for large bodies, of its own, so that no kind keeps out another
	widest  *slots.Slots // for those among them above wideBody
}

// service answers a request by its body, which it does not keep. Beside an answer the error
// is a *partlyRead.
type service func(ctx context.Context, body []byte) (answer, error)

// server is what both handlers have in common: the order in which a request is
// looked at, and that every answer is HTTP 200 with a code, but for those of whose sender it cannot be
// told yet who that is.
type server struct {
	cfg       HandlerConfig
	endpoints map[string]endpoint // by the last element of the path; never changed
	buffers   buffers             // for bodies and answers
	unread    unreadable
	refused   *slots.Refusals

	isAdmin bool // a blank body is refused before the token; xxl-rpc is told from JSON
	maxBody int64
	failure string                // the format of failures in the protocol's words
	reply   func(r Return) answer // how this side writes a Return
}

func newServer(s *server, cfg HandlerConfig) (*server, error) {
	if cfg.Authorize == nil {
		return nil, errors.New("xxljob: HandlerConfig.Authorize is nil: give tokens, or say wire.Insecure")
	}
	if cfg.MaxBody < 0 || cfg.BodyTimeout < 0 || cfg.MaxBodies < 0 || cfg.MinBodyRate < 0 {
		return nil, fmt.Errorf("xxljob: HandlerConfig.MaxBody %d, BodyTimeout %v, MaxBodies %d and MinBodyRate %d must not be negative", cfg.MaxBody, cfg.BodyTimeout, cfg.MaxBodies, cfg.MinBodyRate)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	cfg.BodyTimeout = cmp.Or(cfg.BodyTimeout, 10*time.Second)
	cfg.MaxBodies = cmp.Or(cfg.MaxBodies, 64)
	cfg.MinBodyRate = cmp.Or(cfg.MinBodyRate, 16<<10)
	s.cfg = cfg
	s.unread.count = cmp.Or(cfg.Unread, new(atomic.Uint64))
	s.refused = slots.NewRefusals(cmp.Or(cfg.Refused, new(atomic.Uint64)))
	return s, nil
}

// endpoint makes one for requests of a kind. Their bodies have maxBody bytes, or zero
// for what is usual at this side.
func (s *server) endpoint(serve service, maxBody int64) endpoint {
	return endpoint{maxBody: maxBody, serve: serve, slots: slots.New(s.cfg.MaxBodies), widest: slots.New(max(1, s.cfg.MaxBodies/wideBodies))}
}

// ServeHTTP answers a request. It never redirects, and never answers with
// another status than 200, but 503 while it is not known whose a token is (ScopeUnknown).
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler {
			panic(p)
		}
		s.cfg.Logger.Error("wire: a request panicked", "endpoint", shortName(lastElement(r.URL.Path)), "panic", p, "stack", string(debug.Stack()))
		s.write(w, s.internal())
	}()
	s.write(w, s.answer(w, r))
}

// write sends an answer.
func (s *server) write(w http.ResponseWriter, a answer) {
	buf := s.buffers.take()
	defer s.buffers.give(buf)
	body := a.Encode(buf.empty())
	h := w.Header()
	h.Set("Content-Type", "application/json;charset=UTF-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if _, is := a.(notYet); is {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(body) // the caller has gone: it will find out by itself
}

// notYet is the answer to who may be right, which cannot be told yet.
type notYet struct{ answer }

// holderOf returns whom a slot of a caller counts for: the app whose token was shown, or else the
// app that was named.
func holderOf(c Caller) slots.Holder {
	if c.Scope == "" {
		return slots.Holder{Named: c.App}
	}
	return slots.Holder{Proved: c.Scope}
}

// answer looks at a request in the order of XXL-JOB: method, path, body, token
// (docs/xxl-job.md, checks). Until the token is known to be right, at most firstRead bytes are read
// of the body.
func (s *server) answer(w http.ResponseWriter, r *http.Request) answer {
	name := lastElement(r.URL.Path)
	point, known := s.endpoints[name]
	body := s.open(w, r, cmp.Or(s.cfg.MaxBody, point.maxBody, s.maxBody))
	defer body.release()
	if r.Method != http.MethodPost {
		return s.fail(MsgMethod)
	}
	if name == "" || s.isAdmin && name == "api" {
		return s.fail(MsgURIEmpty)
	}
	if s.isAdmin && body.isBlank() {
		return s.fail(MsgBodyEmpty)
	}
	caller, refusal, ok := s.identify(r)
	if !ok && caller.Scope == ScopeUnknown {
		s.slow(r)
		return notYet{s.reply(Failf("it is not known yet whose token this is: try again"))}
	}
	if !ok {
		s.refuse(r)
		return s.reply(refusal)
	}
	if !known {
		return s.fail(MsgURINotFound, s.shown(r.URL.Path, name))
	}
	if !body.small { // after the token: nobody else may take up the room
		who := holderOf(caller)
		if !point.slots.Take(r.Context(), who) {
			body.leave()
			return s.reply(Return{Code: CodeTimeout, Msg: MsgTooMany})
		}
		defer point.slots.Give(who) // when it is served: its body, or what was read of it, is in memory until then
		body.restart()
		body.widen = func() bool { return point.widest.Take(r.Context(), who) }
		defer func() {
			if body.wide {
				point.widest.Give(who)
			}
		}()
	}
	src, err := body.all()
	if body.crowded {
		body.leave()
		return s.reply(Return{Code: CodeTimeout, Msg: MsgTooMany})
	}
	if err != nil {
		why := badRequest{errors.New(unread(err))}
		s.note(r, name, caller, why)
		return s.failed(name, why)
	}
	caller.Java = looksJava(r.Header)
	body.got = nil // who serves it has it, for no longer than it takes to read
	got, err := point.serve(WithCaller(r.Context(), caller), src)
	switch err.(type) {
	case nil:
		return got
	case *partlyRead:
		s.note(r, name, caller, err)
		return got
	case badRequest:
		s.note(r, name, caller, err)
	}
	return s.failed(name, err)
}

// lastElement returns the last element of a path, which names the endpoint under
// whatever prefix; a slash behind it does not matter.
func lastElement(path string) string {
	path = strings.TrimSuffix(path, "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// shown is how an unknown path is named: by executors as it came, by admins
// by what follows api/.
func (s *server) shown(path, name string) string {
	if !s.isAdmin {
		name = path
	}
	return shortName(name)
}

// shortName bounds an element of a path that is told or logged.
func shortName(name string) string { return cut([]byte(name), 100) }

// identify finds out who calls, or how to refuse the call: callers of G4, which
// name their app, in other words than the rest.
func (s *server) identify(r *http.Request) (caller Caller, refusal Return, ok bool) {
	token, app := r.Header.Get(HeaderToken), r.Header.Get(HeaderApp)
	caller.Named = app != ""
	if !sendable(app, token) {
		return caller, caller.refusal(), false // before anybody keeps, hashes or logs them
	}
	if s.isAdmin && token == "" && len(r.Header.Values(headerRPC)) > 0 {
		return caller, Failf(MsgOldExecutor), false
	}
	if s.cfg.RequireApp && (strings.TrimSpace(token) == "" || strings.TrimSpace(app) == "") {
		return caller, Failf(MsgIdentityEmpty), false
	}
	scope, ok := s.cfg.Authorize(r.Context(), app, token)
	if caller.Named && scope != "" && scope != app {
		ok = false
	}
	caller.Scope = scope
	switch {
	case ok && caller.Named:
		caller.App = app
	case ok:
		caller.App = scope
	case caller.Named && token == "":
		return caller, Failf(MsgIdentityEmpty), false
	default:
		return caller, caller.refusal(), false
	}
	return caller, Return{}, true
}

// badRequest is an error whose text is for the peer.
type badRequest struct{ error }

// failed answers an error: in words when the request is to blame, and otherwise
// without, for they are about the host's inside.
func (s *server) failed(name string, err error) answer {
	if bad, ok := err.(badRequest); ok {
		return s.fail(s.failure, bad.Error())
	}
	s.cfg.Logger.Error("wire: a request could not be served", "endpoint", name, "error", err)
	return s.internal()
}

func (s *server) internal() answer { return s.fail(s.failure, "internal error") }

func (s *server) fail(format string, args ...any) answer { return s.reply(Failf(format, args...)) }

// decoder is a message that can be read.
type decoder[T any] interface {
	*T
	Decode(src []byte) error
}

// decoded serves a request by reading its message and calling f with it.
func decoded[T any, P decoder[T]](s *server, f func(ctx context.Context, req T) (Return, error)) service {
	return func(ctx context.Context, body []byte) (answer, error) {
		var req T
		if err := P(&req).Decode(body); err != nil {
			return nil, badRequest{err}
		}
		r, err := f(ctx, req)
		if err != nil {
			return nil, err
		}
		return s.reply(r), nil
	}
}
