package xxljob

// Calls of tracers of the user's, so that one which panics or hangs costs its spans and nothing
// else.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/guard"
)

const (
	tracerPatience = 100 * time.Millisecond
	tracerPause    = 10 * time.Second
	// tracerCalls is how many calls may be under way: as many callers ask for runs as there are.
	tracerCalls = 1000
)

// tracing is a tracer that is guarded.
type tracing struct {
	tracer Tracer
	calls  guard.Bounded
}

// guardTracer guards a tracer, if there is one.
func guardTracer(t Tracer, panics *guard.Log) Tracer {
	if t == nil {
		return nil
	}
	return &tracing{t, guard.Bounded{Patience: tracerPatience, Pause: tracerPause, Most: tracerCalls, Log: panics}}
}

// traced is what a tracer answers.
type traced[F any] struct {
	trace string
	done  F
}

func (t *tracing) Triggering(ctx context.Context, jobID int64) (string, func(int64, error)) {
	a, _ := guard.Ask(&t.calls, "Tracer.Triggering", func() (a traced[func(int64, error)]) {
		a.trace, a.done = t.tracer.Triggering(ctx, jobID)
		return a
	})
	return fitTrace(a.trace), func(runID int64, err error) {
		if a.done != nil {
			t.calls.Tell("Tracer.Triggering done", func() { a.done(runID, err) })
		}
	}
}

func (t *tracing) Sending(ctx context.Context, run Run) (string, func(error)) {
	a, _ := guard.Ask(&t.calls, "Tracer.Sending", func() (a traced[func(error)]) {
		a.trace, a.done = t.tracer.Sending(ctx, run)
		return a
	})
	return fitTrace(a.trace), func(err error) {
		if a.done != nil {
			t.calls.Tell("Tracer.Sending done", func() { a.done(err) })
		}
	}
}

// fitTrace is a trace that may be stored and sent, or nothing.
func fitTrace(trace string) string {
	if !goodTrace(trace) {
		return ""
	}
	return trace
}
