package wire

// What both clients have in common: an address, how it is called, and the errors of that.

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// ClientConfig says how a client calls its peer. The zero value means the
// defaults named at each field.
type ClientConfig struct {
	// Transport keeps the connections; several clients should share one. Default:
	// one for this client.
	Transport *Transport
	// App is the name of the executor app that calls or is called. G4 needs it,
	// earlier peers ignore it.
	App string
	// Token is the access token. It is sent to this client's address only. Where the peer
	// answers with it, the texts and errors that the client returns have "[token]" in its
	// place, unless it is shorter than six bytes.
	Token string
	// Secrets are further tokens that the peer may know, and are dealt with in the same
	// way: the other one while tokens are changed over, say.
	Secrets []string
	// Timeout bounds a call, connecting included. The context of a call may end
	// it earlier. Default: 6 s, which is XXL-JOB's 3 s to connect and 3 s to
	// wait.
	Timeout time.Duration
	// MaxAnswer bounds the answer, in bytes. Default: 1 MiB.
	MaxAnswer int64
	// MaxLog bounds the answer to a log request: Java executors answer with all
	// the rest of a log at once. Default: 16 MiB.
	MaxLog int64
}

// peer is one address and how it is called.
type peer struct {
	cfg  ClientConfig
	base string                 // ends with a slash
	made atomic.Pointer[outfit] // nil until it is called: of ten thousand addresses of an app few are
	last atomic.Pointer[target] // what was called last
}

// outfit is what is the same in all calls of a peer.
type outfit struct {
	header http.Header // of every request; it never changes
	late   error       // why a call ends that takes longer than ClientConfig.Timeout
	tokens secrets
}

// outfit is that of the peer.
func (p *peer) outfit() *outfit {
	o := p.made.Load()
	if o == nil {
		o = &outfit{
			header: headerOf(p.cfg),
			late:   fmt.Errorf("no answer within %v: %w", p.cfg.Timeout, context.DeadlineExceeded),
			tokens: newSecrets(append(slices.Clone(p.cfg.Secrets), p.cfg.Token)...),
		}
		p.made.Store(o) // one that another call makes at the same moment is as good
	}
	return o
}

func newPeer(addr string, cfg ClientConfig) (*peer, error) {
	u, err := ParseAddress(addr)
	if err != nil {
		return nil, err
	}
	for name, v := range map[string]string{"token": cfg.Token, "app": cfg.App} {
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.TrimSpace(v) != v {
			return nil, fmt.Errorf("xxljob: the %s cannot be sent in a header", name)
		}
	}
	if cfg.Transport == nil {
		cfg.Transport = NewTransport(TransportConfig{})
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, 6*time.Second)
	cfg.MaxAnswer = cmp.Or(cfg.MaxAnswer, 1<<20)
	cfg.MaxLog = cmp.Or(cfg.MaxLog, 16<<20)
	return &peer{cfg: cfg, base: withSlash(u)}, nil
}

func withSlash(u *url.URL) string { return strings.TrimSuffix(u.String(), "/") + "/" }

// headerOf returns the headers of every request. The token's is there even when
// it is empty: admins of 3.3.0 and 3.3.1 insist (docs/xxl-job.md, headers). The
// names are spelled as Java peers spell them.
func headerOf(cfg ClientConfig) http.Header {
	h := http.Header{
		"Content-Type":   {"application/json;charset=UTF-8"},
		"Accept-Charset": {"UTF-8"},
		"User-Agent":     {"xxljob"},
		HeaderToken:      {cfg.Token},
	}
	if cfg.App != "" {
		h[HeaderApp] = []string{cfg.App}
	}
	return h
}

// post sends a request and returns the body of its answer, of limit bytes at
// most, in the memory of buf where there is room. The error is a *CallError. ctx is one of
// within. A request that met a connection which the peer had closed meanwhile, so that
// nothing was written, is sent once more.
func (p *peer) post(ctx context.Context, to *target, body *payload, limit int64, buf []byte) ([]byte, error) {
	answer, again, err := p.once(ctx, to, body, limit, buf)
	if again && ctx.Err() == nil {
		answer, _, err = p.once(ctx, to, body, limit, buf)
	}
	return answer, p.failed(err)
}

// failed is the error of a call, without tokens in it.
func (p *peer) failed(err error) error {
	var call *CallError
	if errors.As(err, &call) {
		p.outfit().tokens.hideIn(&call.Text, &call.From)
		call.Text, call.From = cut([]byte(call.Text), maxText), cut([]byte(call.From), maxText)
		call.Err = p.outfit().tokens.hideErr(call.Err)
	}
	return err
}

// within bounds a call.
func (p *peer) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, p.cfg.Timeout, p.outfit().late)
}

// once sends a request at most once. again says that it was not sent because a
// kept connection was dead.
func (p *peer) once(ctx context.Context, to *target, body *payload, limit int64, buf []byte) (answer []byte, again bool, err error) {
	try := p.cfg.Transport.attempt(ctx, body)
	resp, err := p.cfg.Transport.of(ctx).RoundTrip(try.request(ctx, p, to)) // follows no redirect
	if err != nil {
		sent, reused := try.seen.close()
		return nil, !sent && reused, &CallError{URL: to.text, Sent: sent, Err: causeOf(ctx, err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, false, statusError(to.text, resp)
	}
	from := io.Reader(resp.Body)
	if packed := packing(resp.Header); packed != "" { // nobody has asked for it
		if from, err = unpacker(packed, io.LimitReader(from, limit+1)); err != nil {
			return nil, false, &CallError{URL: to.text, Sent: true, Err: fmt.Errorf("the answer cannot be unpacked: %w", causeOf(ctx, err))}
		}
	}
	answer, err = readAnswer(buf, from, limit)
	switch {
	case err != nil:
		return nil, false, &CallError{URL: to.text, Sent: true, Err: fmt.Errorf("reading the answer: %w", causeOf(ctx, err))}
	case int64(len(answer)) > limit:
		return nil, false, &CallError{URL: to.text, Sent: true, Err: fmt.Errorf("the answer is longer than %d bytes", limit), Text: string(answer)}
	}
	p.cfg.Transport.settled(try, body)
	return answer, false, nil
}

// causeOf says why a call ended, if it was for its context.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return context.Cause(ctx)
	}
	return err
}

// garbled is the error for an answer that err says cannot be understood.
func (p *peer) garbled(url string, answer []byte, err error) error {
	return p.failed(&CallError{URL: url, Sent: true, Err: err, Text: string(answer)})
}

// call posts a request that is answered by a Return.
func (p *peer) call(ctx context.Context, base, endpoint string, body []byte) (Return, error) {
	ctx, cancel := p.within(ctx)
	defer cancel()
	return p.callWithin(ctx, base, endpoint, &payload{bytes: body})
}

// callWithin is call with a context of within.
func (p *peer) callWithin(ctx context.Context, base, endpoint string, body *payload) (r Return, err error) {
	to, err := p.target(base, endpoint)
	if err != nil {
		return Return{}, err
	}
	buf := p.cfg.Transport.buffers.take()
	defer p.cfg.Transport.buffers.give(buf)
	answer, err := p.post(ctx, to, body, p.cfg.MaxAnswer, buf.empty())
	if err != nil {
		return Return{}, err
	}
	if err := r.Decode(answer); err != nil {
		if isRPC(answer) {
			return Failf(MsgOldExecutor), nil // it could not read the request
		}
		return Return{}, p.garbled(to.text, answer, err)
	}
	p.outfit().tokens.hideIn(&r.Msg, &r.Content, &r.Data, &r.BootID, (*string)(&r.RunState))
	return r, nil
}

// isRPC reports whether an answer is one of xxl-rpc, which G0 speaks: a
// serialised object with the name of its class in it.
func isRPC(answer []byte) bool { return bytes.Contains(answer, []byte("com.xxl.rpc.")) }

// target is one endpoint of a peer. It never changes.
type target struct {
	base, endpoint string
	text           string // both together
	url            *url.URL
}

// target returns the endpoint below a base. A client calls the same one most of the time: that
// one is remembered. The error is a *CallError.
func (p *peer) target(base, endpoint string) (*target, error) {
	if last := p.last.Load(); last != nil && last.endpoint == endpoint && last.base == base {
		return last, nil
	}
	to := &target{base: base, endpoint: endpoint, text: base + endpoint}
	var err error
	if to.url, err = url.Parse(to.text); err != nil {
		return nil, p.failed(&CallError{URL: to.text, Err: err})
	}
	p.last.Store(to)
	return to, nil
}

// CallError is the error of a call over HTTP. Its outcome is unknown, unless Sent
// is false. It never holds a token.
type CallError struct {
	// URL is what was called.
	URL string
	// Sent says that the peer may have received something of the request. False
	// is certain: no byte of it has left this process, nor ever will.
	Sent bool
	// Status is the status of HTTP that came instead of 200, 0 for none. Peers
	// answer everything with 200; another status comes from something in
	// between, or from no peer.
	Status int
	// From is what the answer with that status says of who has given it: its headers Server,
	// Via and Location, at most 500 bytes of UTF-8, for people.
	From string
	// Text is the beginning of an answer that could not be understood, at most
	// 500 bytes of UTF-8, for people.
	Text string
	// Err is what went wrong, nil where Status says it all. Its text may quote what the
	// peer has sent; CallError.Error has its first 500 bytes.
	Err error

	ofExecutor bool // a 403 shows that an executor has given it: see TurnedAway
}

func (e *CallError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "xxljob: POST %s: ", e.URL)
	if !e.Sent {
		b.WriteString("nothing sent: ")
	}
	switch {
	case e.Err != nil:
		b.WriteString(cut([]byte(e.Err.Error()), maxText))
	default:
		b.WriteString("HTTP status " + strconv.Itoa(e.Status))
		if e.From != "" {
			fmt.Fprintf(&b, ", by %q", e.From)
		}
	}
	if e.Text != "" {
		fmt.Fprintf(&b, ": %q", e.Text)
	}
	return b.String()
}

func (e *CallError) Unwrap() error { return e.Err }

// NotSent reports whether err is of a call that certainly has not reached its
// peer, not even in part. Its outcome is as good as refused: another peer may be
// asked. For every other error the outcome is unknown.
func NotSent(err error) bool {
	var call *CallError
	return errors.As(err, &call) && !call.Sent
}
