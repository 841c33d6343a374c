package storetest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// CaseNames returns the names of all cases, as topic/case.
func CaseNames() []string {
	var names []string
	for _, topic := range topics() {
		for _, c := range topic.cases {
			names = append(names, topic.name+"/"+c.name)
		}
	}
	return names
}

// Patience is how long a case waits for what has to come about.
const Patience = casePatience

// Failures runs one case on the store, with the given patience, and returns what it reports.
func Failures(t *testing.T, name string, s store.Store, patience time.Duration) []string {
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

// Recount returns what a recount of a store's reports finds.
func Recount(t *testing.T, s store.Store) []string {
	t.Helper()
	r := &recorder{ctx: t.Context()}
	recount(&env{tb: r, Store: s, ctx: t.Context()}, s)
	return r.failures
}
