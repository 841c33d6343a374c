package xxljobtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// Executor is a fake executor. It serves XXL-JOB's executor protocol over HTTP, as a process
// elsewhere would, records the runs that it is asked for, and answers and reports them as the
// test decides. It runs no handlers.
//
// Its methods are safe for concurrent use. Those that may fail the test (Fatal) have to be
// called from its goroutine: Register, Unregister, ReportTo, Report, AppendLog and WaitRun.
type Executor struct {
	t        testing.TB
	o        ExecutorOptions
	url      *url.URL // its address
	listener net.Listener
	server   *http.Server
	served   chan struct{}   // closed when the server accepts no more
	ctx      context.Context // ends when it is closed
	cancel   context.CancelFunc
	work     sync.WaitGroup // requests, results and heartbeats under way; see begin

	mu      sync.Mutex
	closed  bool                   // guarded by mu: nothing begins any more
	answer  AnswerFunc             // guarded by mu
	admin   http.Handler           // guarded by mu: nil where none is known
	beating func()                 // guarded by mu: ends the heartbeats, nil where there are none
	runs    []ExecutorRun          // guarded by mu
	more    chan struct{}          // guarded by mu: closed and replaced when a run comes
	open    []*openRun             // guarded by mu: under way, oldest first
	kills   []wire.KillRequest     // guarded by mu
	logs    map[int64]*executorLog // guarded by mu: by the run's id
}

// ExecutorOptions describe a fake executor. Only App is required.
type ExecutorOptions struct {
	// App is the name of its app, at most 64 bytes. Several executors may serve one app, each
	// at its own Address.
	App string
	// Generation is the generation of XXL-JOB that it behaves like. Zero means G3.
	Generation Generation
	// Token is the access token that it demands of callers and sends to the scheduler. Empty
	// means that it checks and sends none, which G4 does not allow.
	Token string
	// Address is its base URL, with scheme http. It exists in memory only, so schedulers need
	// a Transport to reach it. Empty means a name made of App: http://reports.test:9999/ for
	// the app "reports".
	Address string
	// Listen makes it listen on a free port of the loopback interface instead, for schedulers
	// without a Transport. Address must then be empty. It does not work in a bubble, since
	// sockets do not.
	Listen bool
	// Answer decides about each run. Nil means Succeed("").
	Answer AnswerFunc
}

// NewExecutor starts a fake executor. The end of the test closes it. One that is used in a
// bubble has to be made in the same bubble.
//
// Options.Executors connects it to a scheduler of this package. Any other scheduler reaches
// it through a [Transport] and learns its address in one of two ways: the test calls
// Register, or it saves a manual group with Address and calls ReportTo.
func NewExecutor(t testing.TB, o ExecutorOptions) *Executor {
	if t == nil {
		panic("xxljobtest: NewExecutor: t is nil")
	}
	t.Helper()
	o.Generation = cmp.Or(o.Generation, G3)
	e := &Executor{t: t, o: o, answer: o.Answer.orSucceed(), more: make(chan struct{}), served: make(chan struct{}), logs: map[int64]*executorLog{}}
	if err := errors.Join(o.check(), e.listen()); err != nil {
		if e.listener != nil {
			_ = e.listener.Close()
		}
		t.Fatalf("xxljobtest: NewExecutor: app %q: %v", o.App, err)
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.server = &http.Server{
		Handler:     http.HandlerFunc(e.serve),
		IdleTimeout: 90 * time.Second,
		ErrorLog:    log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return e.ctx },
	}
	go func() { // Close waits for it
		defer close(e.served)
		_ = e.server.Serve(e.listener)
	}()
	t.Cleanup(e.Close)
	return e
}

// check returns all faults of the options except those that listen finds.
func (o ExecutorOptions) check() error {
	var errs []error
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	switch {
	case strings.TrimSpace(o.App) == "":
		errs = append(errs, errors.New("option App is required"))
	case len(o.App) > 64 || strings.ContainsFunc(o.App, control):
		errs = append(errs, errors.New("option App has more than 64 bytes, or control characters"))
	}
	switch {
	case o.Generation < G1 || o.Generation > G4:
		errs = append(errs, fmt.Errorf("option Generation %d is unknown: want G1 to G4", int(o.Generation)))
	case o.Generation == G4 && strings.TrimSpace(o.Token) == "":
		errs = append(errs, errors.New("option Token is empty: an executor of G4 does not start without one"))
	}
	if strings.ContainsFunc(o.Token, control) || strings.TrimSpace(o.Token) != o.Token {
		errs = append(errs, errors.New("option Token has control characters, or blanks around it"))
	}
	return errors.Join(errs...)
}

// listen opens the listener and sets the address.
func (e *Executor) listen() (err error) {
	address := cmp.Or(e.o.Address, defaultAddress(e.o.App))
	switch {
	case !e.o.Listen:
		e.listener = newPipes()
	case e.o.Address != "":
		return errors.New("options Address and Listen exclude each other: one that listens gets its address from its port")
	case settle():
		return errors.New("option Listen does not work in a bubble, since sockets do not: use Transport")
	default:
		if e.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
		address = "http://" + e.listener.Addr().String() + "/"
	}
	if e.url, err = wire.ParseAddress(address); err != nil {
		return fmt.Errorf("option Address %q: %w", address, err)
	}
	if e.url.Scheme != "http" {
		return fmt.Errorf("option Address %q: want http", address)
	}
	e.o.Address = address
	return nil
}

// defaultAddress makes an address from the name of an app, without what host names cannot
// contain.
func defaultAddress(app string) string {
	host := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(app))
	return "http://" + cmp.Or(strings.Trim(host, "-"), "executor") + ".test:9999/"
}

// App returns the name of the executor's app.
func (e *Executor) App() string { return e.o.App }

// Address returns the executor's base URL, as it registers it and as xxljob.Group.Addresses
// takes it.
func (e *Executor) Address() string { return e.o.Address }

// SetAnswer replaces the function that decides about runs, for those that arrive from now on.
// Nil means Succeed("").
func (e *Executor) SetAnswer(f AnswerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = f.orSucceed()
}

// Close ends the executor as a crash would: connections are cut, pending results are never
// reported, and it does not unregister. The contexts of calls of the AnswerFunc end, and
// Close waits for them to return. Closing it again does nothing.
func (e *Executor) Close() {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	e.mu.Unlock()
	if first {
		e.cancel()
		_ = e.listener.Close()
	}
	<-e.served // or a connection that was just accepted would stay
	_ = e.server.Close()
	e.work.Wait()
}

// begin registers work that Close has to wait for, and reports whether the executor is still
// open. If so, the work must end with work.Done.
func (e *Executor) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.work.Add(1)
	}
	return !e.closed
}

// logf writes to the log of the test. It is only called by work that Close waits for, since
// logging after the end of a test panics.
func (e *Executor) logf(format string, args ...any) {
	e.t.Logf("xxljobtest: executor %s (app %q): "+format, slices.Concat([]any{e.o.Address, e.o.App}, args)...)
}
