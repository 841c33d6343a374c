package stage

import (
	"context"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store/memory"
)

// Waiting is a scheduler whose handler "work" calls what the test gives it.
type Waiting struct {
	xxljob.Scheduler
	Store  *memory.Store
	Within chan func(ctx context.Context, task *xxljob.Task)
}

// NewWaiting starts one on a store of its own.
func NewWaiting(t *testing.T) *Waiting {
	t.Helper()
	return NewWaitingNode(t, memory.New(), "")
}

// NewWaitingNode starts one on a store that it may share.
func NewWaitingNode(t *testing.T, st *memory.Store, name string) *Waiting {
	t.Helper()
	w := &Waiting{Store: st, Within: make(chan func(context.Context, *xxljob.Task), 1)}
	s, err := xxljob.New(st, xxljob.Config{App: "app", Node: name, Logger: QuietLog(), Routers: map[string]xxljob.Router{"USERS": route.NewFirst()}})
	Must(t, err)
	w.Scheduler = s
	Must(t, s.Handle("work", w.Serve))
	Must(t, s.Start(context.Background()))
	t.Cleanup(func() { Must(t, s.Stop(context.Background())) })
	return w
}

// Serve is its handler.
func (w *Waiting) Serve(ctx context.Context, task *xxljob.Task) error {
	select {
	case f := <-w.Within:
		f(ctx, task)
	default:
	}
	return nil
}

// Do triggers the job, calls f inside of its handler, and waits until that has returned.
func (w *Waiting) Do(t *testing.T, job xxljob.Job, f func(ctx context.Context, task *xxljob.Task)) {
	t.Helper()
	done := make(chan struct{})
	w.Within <- func(ctx context.Context, task *xxljob.Task) {
		defer close(done)
		f(ctx, task)
	}
	Trigger(t, w, job)
	<-done
}
