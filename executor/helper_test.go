package executor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// admin is a wire.Admin that keeps what it is told.
type admin struct {
	answer func(batch []wire.CallbackRequest) (wire.Return, error) // nil: take everything

	mu      sync.Mutex
	got     []wire.CallbackRequest
	batches []int
	calls   int
}

func (a *admin) Callback(_ context.Context, batch []wire.CallbackRequest) (wire.Return, error) {
	a.mu.Lock()
	a.calls++
	a.mu.Unlock()
	ret, err := wire.Success(), error(nil)
	if a.answer != nil {
		ret, err = a.answer(batch)
	}
	if err == nil && ret.OK() {
		a.mu.Lock()
		a.got = append(a.got, batch...)
		a.batches = append(a.batches, len(batch))
		a.mu.Unlock()
	}
	return ret, err
}

func (a *admin) Registry(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (a *admin) RegistryRemove(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (a *admin) results() []wire.CallbackRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.got)
}

func (a *admin) ids() []int64 {
	var ids []int64
	for _, r := range a.results() {
		ids = append(ids, r.LogID)
	}
	return ids
}

// result returns the result of a run, the zero value when there is none.
func (a *admin) result(t *testing.T, id int64) wire.CallbackRequest {
	t.Helper()
	var found []wire.CallbackRequest
	for _, r := range a.results() {
		if r.LogID == id {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return wire.CallbackRequest{}
	case 1:
		return found[0]
	}
	t.Errorf("run %d has %d results: %+v", id, len(found), found)
	return found[0]
}

var errBoom = errors.New("boom")

// open makes an executor that is stopped at the end of the test, and its admin.
func open(t *testing.T, cfg executor.Config) (*executor.Executor, *admin) {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	e, err := executor.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	a := new(admin)
	e.Bind(a)
	t.Cleanup(func() { _ = e.Stop(context.Background()) })
	return e, a
}

func handle(t *testing.T, e *executor.Executor, name string, h executor.Handler, opts ...executor.HandlerOption) {
	t.Helper()
	if err := e.Handle(name, h, opts...); err != nil {
		t.Fatal(err)
	}
}

// req is a run of the handler "h".
func req(job, id int64) wire.TriggerRequest {
	return wire.TriggerRequest{JobID: job, LogID: id, ExecutorHandler: "h", GlueType: wire.GlueBean, BroadcastTotal: 1}
}

func send(t *testing.T, e *executor.Executor, r wire.TriggerRequest) wire.Return {
	t.Helper()
	ret, err := e.Run(t.Context(), r)
	if err != nil {
		t.Errorf("run %d: %v", r.LogID, err)
	}
	return ret
}

func mustSend(t *testing.T, e *executor.Executor, r wire.TriggerRequest) {
	t.Helper()
	if ret := send(t, e, r); ret != wire.Success() {
		t.Fatalf("run %d: %+v", r.LogID, ret)
	}
}

func wantRefused(t *testing.T, ret wire.Return, msg string) {
	t.Helper()
	if ret.Code != wire.CodeFail || ret.Msg != msg {
		t.Errorf("answer is %d %q, want 500 %q", ret.Code, ret.Msg, msg)
	}
}

// untilDone blocks until the run is cancelled and returns the cause.
func untilDone(ctx context.Context, _ *executor.Task) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// skipOnWindows ends a test at what Windows alone may refuse; anywhere else it is a failure.
func skipOnWindows(t *testing.T, err error) {
	t.Helper()
	if runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	t.Skipf("SKIPPED: Windows refuses it: %v", err)
}

// sharedLines are the lines of a log that is written while it is read.
type sharedLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *sharedLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *sharedLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *sharedLines) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}
