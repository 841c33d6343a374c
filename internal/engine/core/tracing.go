package core

import (
	"context"

	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/store"
)

// Calls of tracers of the user's, so that one which panics or hangs costs its spans and nothing
// else.

// tracing is a tracer that is guarded.
type tracing struct {
	tracer Tracer
	spans  *guard.Spans
}

// GuardTracer guards a tracer, if there is one.
func GuardTracer(t Tracer, panics *guard.Log) Tracer {
	if t == nil {
		return nil
	}
	return &tracing{t, guard.NewSpans(panics)}
}

// Untraced is how often a tracer was left alone.
func Untraced(t Tracer) uint64 {
	guarded, ok := t.(*tracing)
	if !ok {
		return 0
	}
	return guarded.spans.Left()
}

func (t *tracing) Triggering(ctx context.Context, jobID int64) (string, func(int64, error)) {
	trace, done := t.spans.Triggering(ctx, t.tracer, jobID)
	return fitTrace(trace), done
}

func (t *tracing) Sending(ctx context.Context, run store.Run) (string, func(error)) {
	trace, end := guard.Begin(t.spans, "Tracer.Sending", func() (string, func(error)) { return t.tracer.Sending(ctx, run) })
	return fitTrace(trace), func(err error) {
		end(func(done func(error)) {
			if done != nil {
				done(err)
			}
		})
	}
}

// fitTrace is a trace that may be stored and sent, or nothing.
func fitTrace(trace string) string {
	if !store.GoodTrace(trace) {
		return ""
	}
	return trace
}
