package postgres

import (
	"context"
	"log/slog"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/guard"
)

// tracing asks Config.Tracer about runs that a host plans in its own transaction. It is nil
// where there is no tracer.
type tracing struct {
	tracer xxljob.Tracer
	calls  guard.Bounded
}

func newTracing(t xxljob.Tracer, log *slog.Logger) *tracing {
	if t == nil {
		return nil
	}
	return &tracing{t, guard.Bounded{
		Patience: 100 * time.Millisecond, Pause: 10 * time.Second, Most: 1000, Log: guard.NewLog(func() *slog.Logger { return log }),
	}}
}

// triggering is Triggering of the tracer for a trigger that is in no trace yet, which it puts
// into one. Done is called with what has become of it.
func (t *tracing) triggering(ctx context.Context, jobID int64, trigger *xxljob.Trigger) (done func(int64, error)) {
	if t == nil || trigger.Trace != "" {
		return func(int64, error) {}
	}
	type answer struct {
		trace string
		done  func(int64, error)
	}
	a, _ := guard.Ask(&t.calls, "Tracer.Triggering", func() (a answer) {
		a.trace, a.done = t.tracer.Triggering(ctx, jobID)
		return a
	})
	if with := (xxljob.Trigger{Trace: a.trace}); with.Validate() == nil {
		trigger.Trace = a.trace
	}
	return func(id int64, err error) {
		if a.done != nil {
			t.calls.Tell("Tracer.Triggering done", func() { a.done(id, err) })
		}
	}
}
