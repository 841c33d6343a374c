package wire_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

const token = "a-token-of-tests"

// body reads a golden body.
func body(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// peer is an executor and an admin that remember what they were asked, and
// answer with ret and err.
type peer struct {
	mu    sync.Mutex
	asked []any
	from  []wire.Caller

	ret  wire.Return
	log  wire.LogReturn
	err  error
	boom any // what every method panics with, if not nil
}

func newPeer() *peer {
	return &peer{ret: wire.Success(), log: wire.LogReturn{Code: wire.CodeSuccess, Msg: wire.MsgSuccess}}
}

func (p *peer) ask(ctx context.Context, what any) (wire.Return, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	caller, _ := wire.CallerFrom(ctx)
	p.asked, p.from = append(p.asked, what), append(p.from, caller)
	if p.boom != nil {
		panic(p.boom)
	}
	return p.ret, p.err
}

// last returns what was asked last, nil for nothing.
func (p *peer) last() any {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) == 0 {
		return nil
	}
	return p.asked[len(p.asked)-1]
}

func (p *peer) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

func (p *peer) Beat(ctx context.Context) (wire.Return, error) { return p.ask(ctx, "beat") }
func (p *peer) IdleBeat(ctx context.Context, req wire.IdleBeatRequest) (wire.Return, error) {
	return p.ask(ctx, req)
}
func (p *peer) Run(ctx context.Context, req wire.TriggerRequest) (wire.Return, error) {
	return p.ask(ctx, req)
}
func (p *peer) Kill(ctx context.Context, req wire.KillRequest) (wire.Return, error) {
	return p.ask(ctx, req)
}
func (p *peer) Log(ctx context.Context, req wire.LogRequest) (wire.LogReturn, error) {
	_, err := p.ask(ctx, req)
	return p.log, err
}
func (p *peer) Callback(ctx context.Context, results []wire.CallbackRequest) (wire.Return, error) {
	return p.ask(ctx, results)
}
func (p *peer) Registry(ctx context.Context, req wire.RegistryRequest) (wire.Return, error) {
	return p.ask(ctx, req)
}
func (p *peer) RegistryRemove(ctx context.Context, req wire.RegistryRequest) (wire.Return, error) {
	return p.ask(ctx, req)
}

// jobPeer is a peer that has its jobs managed, too.
type jobPeer struct{ *peer }

func (p jobPeer) AddJob(ctx context.Context, req wire.AddJobRequest) (wire.Return, error) {
	return p.ask(ctx, req)
}
func (p jobPeer) UpdateJob(ctx context.Context, req wire.UpdateJobRequest) (wire.Return, error) {
	return p.ask(ctx, req)
}
func (p jobPeer) RemoveJob(ctx context.Context, req wire.JobRequest) (wire.Return, error) {
	return p.ask(ctx, req)
}
func (p jobPeer) StartJob(ctx context.Context, req wire.JobRequest) (wire.Return, error) {
	return p.ask(ctx, req)
}
func (p jobPeer) StopJob(ctx context.Context, req wire.JobRequest) (wire.Return, error) {
	return p.ask(ctx, req)
}
func (p jobPeer) TriggerJob(ctx context.Context, req wire.TriggerJobRequest) (wire.Return, error) {
	return p.ask(ctx, req)
}

var (
	_ wire.Executor = (*peer)(nil)
	_ wire.JobAdmin = jobPeer{}
)

// config is for handlers that everybody may ask.
func config(t testing.TB) wire.HandlerConfig {
	return wire.HandlerConfig{Authorize: wire.Insecure, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

// tokensOf lets in apps by tokens of their own, and everybody by a shared one.
func tokensOf(t testing.TB, apps ...string) wire.HandlerConfig {
	t.Helper()
	tokens := wire.Tokens{Shared: []string{token}, Apps: map[string][]string{}}
	for _, app := range apps {
		tokens.Apps[app] = []string{"of-" + app}
	}
	ring, err := wire.NewKeyring(tokens)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(t)
	cfg.Authorize = ring.Authorize
	return cfg
}

func executorHandler(t testing.TB, e wire.Executor, cfg wire.HandlerConfig) http.Handler {
	t.Helper()
	h, err := wire.NewExecutorHandler(e, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func adminHandler(t testing.TB, a wire.Admin, cfg wire.HandlerConfig) http.Handler {
	t.Helper()
	h, err := wire.NewAdminHandler(a, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// post sends a body to a handler and returns the body of its answer, which has
// to come with status 200.
func post(t testing.TB, h http.Handler, path, body string, headers ...string) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://peer"+path, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Errorf("POST %s: status %d", path, w.Code)
	}
	return w.Body.String()
}

// returned decodes an answer, that to a log request without its lines.
func returned(t testing.TB, answer string) wire.Return {
	t.Helper()
	var r wire.Return
	var log wire.LogReturn
	if log.Decode([]byte(answer)) == nil {
		return wire.Return{Code: log.Code, Msg: log.Msg}
	}
	if err := r.Decode([]byte(answer)); err != nil {
		t.Fatalf("answer %q: %v", answer, err)
	}
	return r
}

// request is what a server was sent.
type request struct {
	path, body string
	header     http.Header
}

// recorder is a server that keeps what it was sent.
type recorder struct {
	*httptest.Server
	mu   sync.Mutex
	sent []request
}

// serve starts a server that answers with f, which gets the path and the number
// of the request, from 1.
func serve(t testing.TB, f func(w http.ResponseWriter, path string, n int)) *recorder {
	t.Helper()
	rec := &recorder{}
	rec.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		rec.mu.Lock()
		rec.sent = append(rec.sent, request{r.URL.Path, string(b), r.Header.Clone()})
		n := len(rec.sent)
		rec.mu.Unlock()
		f(w, r.URL.Path, n)
	}))
	t.Cleanup(rec.Close)
	return rec
}

// serveText starts a server that answers everything with one text.
func serveText(t testing.TB, text string) *recorder {
	return serve(t, func(w http.ResponseWriter, _ string, _ int) { io.WriteString(w, text) })
}

func (r *recorder) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.sent...)
}

func (r *recorder) paths() string {
	var paths []string
	for _, sent := range r.requests() {
		paths = append(paths, sent.path)
	}
	return strings.Join(paths, " ")
}

func executorClient(t testing.TB, addr string, cfg wire.ClientConfig) *wire.ExecutorClient {
	t.Helper()
	c, err := wire.NewExecutorClient(addr, withTransport(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func adminClient(t testing.TB, addr string, cfg wire.ClientConfig) *wire.AdminClient {
	t.Helper()
	c, err := wire.NewAdminClient(addr, withTransport(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// withTransport gives a client connections that end with the test.
func withTransport(t testing.TB, cfg wire.ClientConfig) wire.ClientConfig {
	if cfg.Transport == nil {
		cfg.Transport = wire.NewTransport(wire.TransportConfig{})
	}
	t.Cleanup(cfg.Transport.CloseIdle)
	return cfg
}

// callError returns the CallError of a call whose outcome is unknown.
func callError(t testing.TB, err error) *wire.CallError {
	t.Helper()
	var call *wire.CallError
	if !errors.As(err, &call) {
		t.Fatalf("error %v (%T), want a *wire.CallError", err, err)
	}
	return call
}

// pipes is a network in memory, for bubbles: real sockets do not work there.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	mine, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return mine, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
