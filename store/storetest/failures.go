package storetest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/storetest/internal/own"
)

// Failures is for the tests of this package, which prove that each case can fail: it runs one case on
// the store, with the given patience, and returns what it reports. It is here, and not among the tests,
// so that the suite is compiled once for all packages.
func Failures(_ own.Tests, t *testing.T, name string, s store.Store, patience time.Duration) []string {
	t.Helper()
	for _, topic := range topics() {
		for _, c := range topic.cases {
			if topic.name+"/"+c.name != name {
				continue
			}
			r := &recorder{ctx: t.Context()}
			done := make(chan struct{})
			go func() { // ends with the case; Failures waits for it
				defer close(done)
				e := newEnv(r, s)
				e.patience = patience
				c.run(e)
			}()
			<-done
			return r.failures
		}
	}
	t.Fatalf("there is no case %s", name)
	return nil
}

// recorder is a tb that notes failures instead of failing.
type recorder struct {
	ctx context.Context

	mu       sync.Mutex
	failures []string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Logf(string, ...any)      {}
func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// Recount is for the tests of this package too: it returns what a recount of a store's reports finds.
func Recount(_ own.Tests, t *testing.T, s store.Store) []string {
	t.Helper()
	r := &recorder{ctx: t.Context()}
	recount(&env{tb: r, Store: s, ctx: t.Context()}, s)
	return r.failures
}
