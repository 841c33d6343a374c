package otelxxl

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/xxljob/xxljob"
)

// Attributes that the conventions have no names for.
const (
	keyApp     = attribute.Key("xxljob.app")
	keyState   = attribute.Key("xxljob.run.state")
	keyType    = attribute.Key("xxljob.trigger.type")
	keyTrigger = attribute.Key("xxljob.trigger.id")
	keyAttempt = attribute.Key("xxljob.run.attempt")
	keyJob     = attribute.Key("xxljob.job.key")
	keyJobID   = attribute.Key("xxljob.job.id")
	keyHandler = attribute.Key("xxljob.handler")
	keyLane    = attribute.Key("xxljob.lane")
	keyLack    = attribute.Key("xxljob.lack")
	keyTrouble = attribute.Key("xxljob.trouble.cause")
	keyMethod  = attribute.Key("xxljob.store.method")
	keyMoved   = attribute.Key("xxljob.shard.moved")
	keyRule    = attribute.Key("xxljob.alarm.rule")
	keyCause   = attribute.Key("xxljob.alarm.cause")
	keyFault   = attribute.Key("xxljob.fault")
	keyPlace   = attribute.Key("xxljob.panic.place")
	keyLine    = attribute.Key("xxljob.log.line")
	keyLeftOut = attribute.Key("xxljob.telemetry.of")
)

// system is messaging.system.
var system = semconv.MessagingSystemKey.String("xxljob")

// maxTrace is how long a trace may be in a run's row: see xxljob.Trigger.Trace.
const maxTrace = 600

// format is the only one in which traces travel.
var format propagation.TraceContext

// inject is the trace of a context as a run carries it. A tracestate that is too long is left
// out, and the trace goes on without.
func inject(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	format.Inject(ctx, carrier)
	parent, state := carrier["traceparent"], carrier["tracestate"]
	if parent == "" || state == "" || len(parent)+1+len(state) > maxTrace || strings.ContainsAny(state, " \t") {
		return parent
	}
	return parent + " " + state
}

// extract is a context in the trace that a run carries, and nothing else.
func extract(ctx context.Context, text string) context.Context {
	parent, state, _ := strings.Cut(text, " ")
	return format.Extract(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), propagation.MapCarrier{"traceparent": parent, "tracestate": state})
}

// Triggering is the PRODUCER of a run: see xxljob.Tracer.
func (t *Telemetry) Triggering(ctx context.Context, jobID int64) (string, func(runID int64, err error)) {
	ctx, span := t.tracer.Start(ctx, "trigger", trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		system, semconv.MessagingOperationName("trigger"), semconv.MessagingOperationTypeCreate, keyJobID.Int64(jobID)))
	return inject(ctx), func(runID int64, err error) {
		if err == nil {
			span.SetAttributes(semconv.MessagingMessageID(strconv.FormatInt(runID, 10)))
		}
		end(span, err)
	}
}

// Sending is the dispatch of a run: see xxljob.Tracer.
func (t *Telemetry) Sending(ctx context.Context, run xxljob.Run) (string, func(err error)) {
	kind, address := trace.SpanKindInternal, ""
	if at, err := url.Parse(run.Address); err == nil && at.Scheme != "local" {
		kind, address = trace.SpanKindClient, at.Hostname()
	}
	attributes := append(runAttributes(run.ID, run.App, string(run.Type), run.JobKey, run.Attempt),
		semconv.MessagingOperationName("dispatch"), semconv.MessagingOperationTypeSend, keyTrigger.Int64(run.TriggerID), keyJobID.Int64(run.JobID))
	if address != "" {
		attributes = append(attributes, semconv.ServerAddress(address))
	}
	ctx, span := t.tracer.Start(extract(ctx, run.Trace), "dispatch "+t.apps.of(run.App), trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	t.sent.add(run.ID, span.SpanContext())
	return inject(ctx), func(err error) { end(span, err) }
}

// runAttributes are those of a run, for spans, whose attributes may have any value.
func runAttributes(id int64, app, kind, job string, attempt int) []attribute.KeyValue {
	list := []attribute.KeyValue{
		system, semconv.MessagingDestinationName(app), semconv.MessagingMessageID(strconv.FormatInt(id, 10)),
		keyApp.String(app), keyType.String(kind), keyAttempt.Int(attempt),
	}
	if job != "" {
		list = append(list, keyJob.String(job))
	}
	return list
}

// mostStatus is how many bytes of an error a span gets: the text is the handler's, or a peer's.
const mostStatus = 2000

// end ends a span with what has come of it.
func end(span trace.Span, err error) {
	if err != nil {
		text := err.Error()
		span.SetStatus(codes.Error, strings.ToValidUTF8(text[:min(len(text), mostStatus)], ""))
		span.SetAttributes(semconv.ErrorTypeKey.String(errorType(err)))
	}
	span.End()
}

// spanLog remembers the spans of runs that this node has sent, the last ones, so that what is
// measured at their end has them as exemplars. It is safe for concurrent use.
type spanLog struct {
	mu   sync.Mutex
	of   map[int64]trace.SpanContext // guarded by mu
	ring []int64                     // guarded by mu: the runs, oldest at next
	next int                         // guarded by mu
}

// mostSent is how many spans are remembered.
const mostSent = 10_000

func (l *spanLog) add(run int64, span trace.SpanContext) {
	if !span.IsSampled() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[int64]trace.SpanContext{}
	}
	if len(l.ring) < mostSent {
		l.ring = append(l.ring, run)
	} else {
		delete(l.of, l.ring[l.next])
		l.ring[l.next] = run
		l.next = (l.next + 1) % mostSent
	}
	l.of[run] = span
}

// context is a context in the span in which the run was sent, or else in the trace that it was
// asked for in.
func (l *spanLog) context(run *xxljob.Run) context.Context {
	l.mu.Lock()
	span, known := l.of[run.ID]
	l.mu.Unlock()
	if known {
		return trace.ContextWithSpanContext(context.Background(), span)
	}
	return extract(context.Background(), run.Trace)
}
