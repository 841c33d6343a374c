package postgres

import (
	"context"
	"log/slog"

	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/store"
)

// Tracer puts runs into the trace of who asks for them. An xxljob.Tracer, which says more of it,
// is one.
type Tracer interface {
	Triggering(ctx context.Context, jobID int64) (trace string, done func(runID int64, err error))
}

// tracing asks Config.Tracer about runs that a host plans in its own transaction. It is nil
// where there is no tracer.
type tracing struct {
	tracer Tracer
	spans  *guard.Spans
}

func newTracing(t Tracer, log *slog.Logger) *tracing {
	if t == nil {
		return nil
	}
	return &tracing{t, guard.NewSpans(guard.NewLog(func() *slog.Logger { return log }))}
}

// triggering is Triggering of the tracer for a trigger that is in no trace yet, which it puts
// into one. Done is called with what has become of it.
func (t *tracing) triggering(ctx context.Context, jobID int64, trigger *store.Trigger) (done func(int64, error)) {
	if t == nil || trigger.Trace != "" {
		return func(int64, error) {}
	}
	trace, done := t.spans.Triggering(ctx, t.tracer, jobID)
	if with := (store.Trigger{Trace: trace}); with.Validate() == nil {
		trigger.Trace = trace
	}
	return done
}
