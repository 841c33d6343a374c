package otelxxl

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
)

// work are the instruments of executors.
type work struct {
	processed metric.Float64Histogram
	alarms    metric.Float64Counter
}

func newWork(m metric.Meter, failed func(string, error)) work {
	return work{histogram(m, failed, processDuration), count(m, failed, alarmsTold)}
}

// Middleware puts a span around each call of a handler, in the trace of its run, and measures
// it (messaging.process.duration). It is for Config.Middleware, of a scheduler or an executor;
// Configure has put it there.
func (t *Telemetry) Middleware(next xxljob.Handler) xxljob.Handler {
	return func(ctx context.Context, task *xxljob.Task) error {
		began := time.Now()
		started, span := t.begin(ctx, task)
		err := errPanicked
		defer func() { t.processed(started, span, task, time.Since(began), err) }()
		err = next(started, task)
		return err
	}
}

// begun is a span that has begun.
type begun struct {
	ctx  context.Context
	span trace.Span
}

// begin begins the span of a handler. Where there is none, the context is that of the run.
func (t *Telemetry) begin(ctx context.Context, task *xxljob.Task) (context.Context, trace.Span) {
	attributes := append(runAttributes(task.RunID, task.App, task.TriggerType, task.JobKey, task.Attempt),
		semconv.MessagingOperationName("process"), semconv.MessagingOperationTypeProcess, keyHandler.String(task.Handler), keyJobID.Int64(task.JobID))
	name, trc := "process "+task.Handler, task.Trace // copied: the handler may change its task
	b, ok := ask(&t.calls.spans, "Tracer.Start", func() (b begun) {
		b.ctx, b.span = t.tracer.Start(extract(ctx, trc), name, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attributes...))
		return b
	}, nil)
	if !ok || b.ctx == nil || b.span == nil {
		return ctx, nil
	}
	return b.ctx, b.span
}

// processed ends the span and measures it.
func (t *Telemetry) processed(ctx context.Context, span trace.Span, task *xxljob.Task, took time.Duration, err error) {
	if _, later := snoozed(err); later {
		err = nil // it has nothing to do yet, which is no error
	}
	if cause := context.Cause(ctx); err != nil && cause != nil && cause != context.Canceled {
		err = cause // why it was made to end says more than how it has ended
	}
	attributes := []attribute.KeyValue{system, semconv.MessagingOperationName("process"), semconv.MessagingDestinationName(t.apps.of(task.App))}
	if err != nil {
		attributes = append(attributes, semconv.ErrorTypeKey.String(errorType(err)))
	}
	t.calls.handlers.tell("Histogram.Record", func() { t.work.processed.Record(ctx, took.Seconds(), metric.WithAttributes(attributes...)) })
	if span != nil {
		t.calls.spans.end("Span.End", func() { end(span, err) })
	}
}

// errPanicked is the error of a handler that has not returned.
var errPanicked = errors.New("the handler panicked or ended its goroutine")

// snoozed reports whether an error is that of Snooze.
func snoozed(err error) (time.Duration, bool) {
	var s interface{ Snoozed() time.Duration }
	if !errors.As(err, &s) {
		return 0, false
	}
	return s.Snoozed(), true
}

// errorType is error.type: of few values, as the conventions want it.
func errorType(err error) string {
	switch {
	case errors.Is(err, errPanicked):
		return "panic"
	case errors.Is(err, executor.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, executor.ErrKilled):
		return "killed"
	case errors.Is(err, executor.ErrCovered):
		return "covered"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "error"
}
