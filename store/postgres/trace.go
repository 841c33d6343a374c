package postgres

import (
	"context"
	"log/slog"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/guard"
)

// tracing asks Config.Tracer about runs that a host plans in its own transaction. It is nil
// where there is no tracer.
type tracing struct {
	tracer xxljob.Tracer
	spans  *guard.Spans
}

func newTracing(t xxljob.Tracer, log *slog.Logger) *tracing {
	if t == nil {
		return nil
	}
	return &tracing{t, guard.NewSpans(guard.NewLog(func() *slog.Logger { return log }))}
}

// triggering is Triggering of the tracer for a trigger that is in no trace yet, which it puts
// into one. Done is called with what has become of it.
func (t *tracing) triggering(ctx context.Context, jobID int64, trigger *xxljob.Trigger) (done func(int64, error)) {
	if t == nil || trigger.Trace != "" {
		return func(int64, error) {}
	}
	trace, done := t.spans.Triggering(ctx, t.tracer, jobID)
	if with := (xxljob.Trigger{Trace: trace}); with.Validate() == nil {
		trigger.Trace = trace
	}
	return done
}
