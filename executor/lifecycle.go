package executor

// The way up and down: Start, Stop and Serve, and the HTTP side that admins elsewhere reach.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/executor/internal/spool"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/inside"
	"github.com/xxljob/xxljob/wire"
)

// ErrStarted is returned by Start when the executor was started before.
var ErrStarted = errors.New("xxljob: executor: started already")

var errNoContext = errors.New("xxljob: executor: the context is nil")

// Start makes an executor known to Config.Admins: it opens Config.Addr and the
// spool, begins to deliver what an earlier process has left there, and registers
// at once and then every Config.Beat until Stop. It does not wait for an admin:
// one that is away is told when it is there again.
//
// It returns ErrStarted when called again after a success, ErrStopped after Stop,
// and otherwise why the address, the spool or a token cannot be used; then nothing
// was started, and it may be called again. ctx is for Start only: what it has
// started goes on until Stop. A nil ctx is an error, here and for Serve and Stop. An
// executor that serves only the admin it is bound to needs no Start.
func (e *Executor) Start(ctx context.Context) (err error) {
	if ctx == nil {
		return errNoContext
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	switch {
	case e.leaving:
		err = ErrStopped
	case e.started || e.starting:
		err = ErrStarted
	default:
		e.starting = true
	}
	e.mu.Unlock()
	if err != nil {
		return err
	}
	p, err := e.prepare(ctx)
	return e.begin(p, err)
}

// prepared is what Start opens and Stop closes.
type prepared struct {
	server    *server
	addresses []string // of e.origins[1:], as are
	spools    []*spool.Spool
	left      [][]spool.Parcel
}

// prepare opens everything, or nothing.
func (e *Executor) prepare(ctx context.Context) (p prepared, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, p.undo())
		}
	}()
	if e.cfg.Addr != "" {
		if p.server, err = e.listen(ctx); err != nil {
			return p, err
		}
	}
	if len(e.cfg.Admins) > 0 {
		if p.addresses, err = e.addresses(ctx, p.server); err != nil {
			return p, err
		}
	}
	for _, o := range e.origins[1:] {
		var s *spool.Spool
		var left []spool.Parcel
		if e.cfg.SpoolDir != "" {
			if s, left, err = e.openSpool(o); err != nil {
				return p, err
			}
		}
		p.spools, p.left = append(p.spools, s), append(p.left, left)
	}
	return p, nil
}

// openSpool opens the spool of a cluster, and returns what is in it.
func (e *Executor) openSpool(o *origin) (*spool.Spool, []spool.Parcel, error) {
	s, left, err := spool.Open(spool.Config{
		Dir: filepath.Join(e.cfg.SpoolDir, o.name), Boot: e.boot, Bytes: e.cfg.SpoolBytes,
		Batch: clusterBatch.results, Logger: e.cfg.Logger.With("admin", o.name),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("xxljob: executor: Config.SpoolDir: %w", err)
	}
	return s, left, nil
}

// undo closes what was opened.
func (p *prepared) undo() error {
	var errs []error
	if p.server != nil {
		errs = append(errs, p.server.listen.Close())
	}
	for _, s := range p.spools {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// begin starts what was prepared, unless that failed or Stop was called
// meanwhile.
func (e *Executor) begin(p prepared, err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.starting = false
	if err != nil {
		return err
	}
	if e.leaving {
		return errors.Join(ErrStopped, p.undo())
	}
	if e.cfg.usesDefaultToken() {
		e.cfg.Logger.Warn("executor: the access token is the publicly known default of XXL-JOB's samples: anybody who can reach this process can run its handlers")
	}
	e.started = true
	for i, o := range e.origins[1:] {
		o.out.open(o.cluster, p.spools[i], p.left[i])
		r := newRegistration(e, o, p.addresses[i])
		o.out.onAway(r.soon)
		e.registrations = append(e.registrations, r)
		go r.loop() // Stop waits for it, in deregister
	}
	if e.server = p.server; e.server != nil {
		go e.server.serve() // Stop waits for it, at the very end
	}
	return nil
}

// Serve starts the executor, waits for the end of ctx, and stops it, giving
// running handlers Config.StopGrace. It is made for errgroup. It returns the error
// of Start, or that of Stop, nil when all went well.
func (e *Executor) Serve(ctx context.Context) error {
	if err := e.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	stop, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), e.cfg.StopGrace,
		fmt.Errorf("not ended within %v: %w", e.cfg.StopGrace, context.DeadlineExceeded))
	defer cancel()
	return e.Stop(stop)
}

// Stop ends the executor. First Config.Admins are told, so that they send no more;
// that takes 3 s at most, whatever ctx says, and runs are still accepted. From then
// on runs are refused, while those accepted before go on, waiting ones included. When
// ctx ends first, everything left is recorded as failed
// (wire.StopShutdown) and handlers are cancelled with ErrShutdown; those
// that ignore it are abandoned after Config.Grace. Then the results are delivered, until
// ctx ends, or with one last attempt when it has ended, and
// the OnDestroy functions run, the last registered first. Last of all the server of
// Config.Addr is closed, which until then has answered requests for logs, kills
// and idle beats.
//
// So Stop returns within about twice Config.Grace after the end of ctx at most, with 3 s
// more for admins and 5 s more for callers that hang, and at once when all of them
// behave. It returns the error of ctx when
// runs had to be cut off, and says how many results were not delivered; those in
// the spool are delivered by the next process, and are not counted.
// Stop may be called again, also concurrently: each call waits for the end, may
// hasten it by its own ctx, and returns the same error. An executor that has
// been stopped cannot be started again. Called by a handler with its context it is ErrInHandler,
// and stops nothing.
func (e *Executor) Stop(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	if caller, ok := inside.From(ctx); ok && caller.Executor == any(e) {
		return ErrInHandler
	}
	e.deregister()
	e.mu.Lock()
	e.stopping = true
	if e.watch.timer != nil {
		e.watch.timer.Stop()
	}
	e.checkIdle()
	e.mu.Unlock()
	e.watch.looks.Wait()

	select {
	case <-e.idle:
	case <-ctx.Done():
		e.stopAll(ctx)
		<-e.idle // all handlers return or are abandoned within the grace period
	}

	e.mu.Lock()
	first := !e.finishing
	e.finishing = true
	e.mu.Unlock()
	if first {
		e.stopErr = errors.Join(e.cutOff, e.finish(ctx))
		close(e.stopped)
		return e.stopErr
	}
	select {
	case <-e.stopped:
	case <-ctx.Done():
		for _, o := range e.origins { // the call that finishes may have all the time of the world
			o.out.hurryUp()
		}
		<-e.stopped
	}
	return e.stopErr
}

// deregister tells all admins at once that the executor goes, and returns when they
// know or it has taken too long. It is done by the first call.
func (e *Executor) deregister() {
	e.mu.Lock()
	first := !e.leaving
	e.leaving = true
	registrations := e.registrations // not changed after leaving
	e.mu.Unlock()
	if !first {
		<-e.left
		return
	}
	var wg sync.WaitGroup
	for _, r := range registrations {
		wg.Go(r.leave)
	}
	wg.Wait()
	close(e.left)
}

// finish does what remains when no handler runs. It is called once.
func (e *Executor) finish(ctx context.Context) error {
	lost := e.flush(ctx)
	for i := len(e.order) - 1; i >= 0; i-- { // not changed after stopping
		h := e.order[i]
		if h.destroy == nil || !h.inited.Load() {
			continue
		}
		// On a goroutine of its own, since it may end that, as FailNow of a test does.
		if err := guard.Apart(func() error { return protect(func() error { h.destroy(); return nil }) }); err != nil {
			e.cfg.Logger.Error("executor: OnDestroy panicked", "handler", h.name, "error", err)
		}
	}
	err := e.close()
	if lost > 0 {
		err = errors.Join(err, fmt.Errorf("xxljob: executor: %d results were not delivered", lost))
	}
	return err
}

// flush delivers what is left to all admins at once, and returns how many results
// are lost.
func (e *Executor) flush(ctx context.Context) int {
	var lost atomic.Int64
	var wg sync.WaitGroup
	for _, o := range e.origins[1:] {
		wg.Go(func() { lost.Add(int64(o.out.flush(ctx, e.cfg.Grace))) })
	}
	lost.Add(int64(e.local.out.flush(ctx, e.cfg.Grace)))
	wg.Wait()
	return int(lost.Load())
}

// close releases what is open: the server, which reads logs, before them.
func (e *Executor) close() error {
	var errs []error
	if e.server != nil { // not changed after leaving
		e.server.close()
	}
	for _, o := range e.origins[1:] {
		errs = append(errs, o.out.close())
	}
	if e.ownTransport {
		e.cfg.Transport.CloseIdle()
	}
	return errors.Join(append(errs, e.closeLogs())...)
}

// closeLogs closes the logs of all origins.
func (e *Executor) closeLogs() error {
	var errs []error
	for _, o := range e.origins {
		errs = append(errs, o.logs.close())
	}
	return errors.Join(errs...)
}

// stopAll ends everything that has not ended, because ctx has.
func (e *Executor) stopAll(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := false
	for _, o := range e.origins {
		for _, j := range o.jobs {
			found = e.stopJob(j, wire.StopShutdown, ErrShutdown) || found
		}
	}
	if found {
		e.cutOff = fmt.Errorf("xxljob: executor: runs were cut off: %w", context.Cause(ctx))
	}
	e.checkIdle()
}

// checkIdle closes idle when it is time to. mu is held.
func (e *Executor) checkIdle() {
	if !e.stopping || e.active > 0 || e.queued > 0 || e.arriving > 0 {
		return
	}
	select {
	case <-e.idle:
	default:
		close(e.idle)
	}
}

// HTTPHandler returns the executor's side of the protocol over HTTP, for the host's
// own mux or server: /beat, /idleBeat, /run, /trigger, /kill and /log below any
// prefix, stripped or not. Everything is answered with status 200 and a code, and
// nothing is ever redirected; see wire.NewExecutorHandler for what the host's
// server has to bound.
//
// A request is of the cluster that its path names, as in /jobs/<name>/run, and
// needs a token that this cluster may show. Where there are several clusters and
// the path names none, it is of the only one that has the token it shows, or else
// of the first. Without Config.Admins requests are of the admin that Bind has
// set.
//
// It is valid before Start, until which the admins of Config.Admins are refused,
// and after Stop. The error says that there is no token, unless
// Config.Insecure is set.
func (e *Executor) HTTPHandler() (http.Handler, error) {
	serving := e.origins[1:]
	if len(serving) == 0 {
		serving = e.origins
	}
	var d doors
	var errs []error
	for _, o := range serving {
		door, err := e.door(o)
		if err != nil {
			errs = append(errs, err)
		}
		d = append(d, door)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(d) == 1 {
		return d[0].handler, nil
	}
	return d, nil
}

// door is where the requests of one origin come in.
type door struct {
	name    string
	token   string // its own, "" for none
	handler http.Handler
}

func (e *Executor) door(o *origin) (door, error) {
	auth, err := e.authorize(o)
	if err != nil {
		return door{}, err
	}
	h, err := wire.NewExecutorHandler(remote{e, o}, wire.HandlerConfig{Authorize: auth, Logger: e.cfg.Logger})
	return door{name: o.name, token: e.cfg.ownToken(o.name), handler: h}, err
}

// authorize decides about the requests of one origin.
func (e *Executor) authorize(o *origin) (wire.Authorize, error) {
	app, tokens := e.cfg.App, e.cfg.Tokens
	if o.remote() {
		tokens = o.tokens
	}
	if len(tokens) > 0 {
		keys, err := e.cfg.keyring(tokens)
		if err != nil {
			return nil, fmt.Errorf("xxljob: executor: %w", err)
		}
		return keys.Authorize, nil
	}
	if !e.cfg.Insecure {
		return nil, fmt.Errorf("xxljob: executor: admin %q has no token: set Config.Tokens or its Token, or say Insecure", o.name)
	}
	return func(context.Context, string, string) (string, bool) { return app, true }, nil // and who names another app is refused
}

// keyring holds tokens for this executor's app.
func (c Config) keyring(tokens []string) (*wire.Keyring, error) {
	return wire.NewKeyring(wire.Tokens{Apps: map[string][]string{c.App: tokens}, AllowDefault: c.AllowDefaultToken})
}

// ownToken is the token of one cluster, "" for none.
func (c Config) ownToken(name string) string {
	for _, a := range c.Admins {
		if a.Name == name {
			return a.Token
		}
	}
	return ""
}

// doors serves several clusters.
type doors []door

// ServeHTTP lets a request in by the door of its cluster.
func (d doors) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.of(r).handler.ServeHTTP(w, r) }

// of finds the door of a request; whether it opens is decided behind it.
func (d doors) of(r *http.Request) door {
	name := beforeLast(r.URL.Path)
	for _, door := range d {
		if door.name == name {
			return door
		}
	}
	found := d[0]
	count := 0
	token := r.Header.Get(wire.HeaderToken)
	for _, door := range d {
		if wire.SameToken(door.token, token) {
			count++
			found = door
		}
	}
	if count != 1 {
		return d[0]
	}
	return found
}

// beforeLast returns the last element but one of a path.
func beforeLast(path string) string {
	path = strings.TrimSuffix(path, "/")
	path = path[:max(strings.LastIndexByte(path, '/'), 0)]
	return path[strings.LastIndexByte(path, '/')+1:]
}

// Limits of the server of Config.Addr. Java admins keep connections for 90 s.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = time.Minute
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
)

// shutdownWait is how long requests under way have to end.
const shutdownWait = 5 * time.Second

// server is the server of Config.Addr.
type server struct {
	http   http.Server
	listen net.Listener
	log    *slog.Logger
	done   chan struct{} // closed when it serves no more
}

// listen opens Config.Addr. Nothing is answered before serve.
func (e *Executor) listen(ctx context.Context) (*server, error) {
	h, err := e.HTTPHandler()
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", e.cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("xxljob: executor: Config.Addr: %w", err)
	}
	return &server{
		http: http.Server{
			Handler:           h,
			ReadHeaderTimeout: headerTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeader,
			ErrorLog:          slog.NewLogLogger(e.cfg.Logger.Handler(), slog.LevelDebug),
		},
		listen: l, log: e.cfg.Logger, done: make(chan struct{}),
	}, nil
}

// serve answers until close, which waits for it.
func (s *server) serve() {
	defer close(s.done)
	if err := s.http.Serve(s.listen); !errors.Is(err, http.ErrServerClosed) {
		s.log.Error("executor: the HTTP server ended unexpectedly", "error", err)
	}
}

// close lets requests under way end and ends the server. A peer that holds its
// connection open for longer is cut off, which is no fault of Stop's caller.
func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownWait)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("executor: closing connections that did not end in time", "error", errors.Join(err, s.http.Close()))
	}
	<-s.done
}
