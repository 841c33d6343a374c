package xxljobtest_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// recorder is a testing.TB that keeps what a test would report.
type recorder struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex
	fatal    string   // guarded by mu
	logs     []string // guarded by mu
	errors   []string // guarded by mu
	cleanups []func() // guarded by mu
	out      strings.Builder
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Output() io.Writer        { return r }
func (r *recorder) Fatal(args ...any)        { r.end(fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) { r.end(fmt.Sprintf(format, args...)) }

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(p)
}

func (r *recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) end(msg string) {
	r.mu.Lock()
	r.fatal = msg
	r.mu.Unlock()
	runtime.Goexit()
}

// failure runs f as a test of its own, cleanups included, and returns the text it failed with.
func failure(t *testing.T, f func(t testing.TB)) string {
	t.Helper()
	return record(t, f).fatal
}

func record(t *testing.T, f func(t testing.TB)) *recorder {
	ctx, cancel := context.WithCancel(t.Context())
	r := &recorder{TB: t, ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	cancel()
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
	return r
}
