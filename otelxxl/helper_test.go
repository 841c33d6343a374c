package otelxxl_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/otelxxl"
)

// process is what one process has of telemetry.
type process struct {
	*otelxxl.Telemetry
	spans  *tracetest.InMemoryExporter
	tracer *sdktrace.TracerProvider
	reader *metric.ManualReader
}

func newProcess(t *testing.T, change ...func(*otelxxl.Config)) *process {
	t.Helper()
	p := &process{spans: tracetest.NewInMemoryExporter(), reader: metric.NewManualReader()}
	p.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(p.spans))
	cfg := otelxxl.Config{TracerProvider: p.tracer, MeterProvider: metric.NewMeterProvider(metric.WithReader(p.reader), metric.WithCardinalityLimit(130_000)), Logger: quiet()}
	for _, c := range change {
		c(&cfg)
	}
	p.Telemetry = otelxxl.New(cfg)
	return p
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// named are the spans with the name, in the order of their ends.
func (p *process) named(name string) []tracetest.SpanStub {
	return slices.DeleteFunc(p.spans.GetSpans(), func(s tracetest.SpanStub) bool { return s.Name != name })
}

// await waits for a span, in real time.
func (p *process) await(t *testing.T, name string) tracetest.SpanStub {
	t.Helper()
	await.Until(t, "there is a span "+name, func() bool { return len(p.named(name)) > 0 })
	return p.named(name)[0]
}

// asking is a span of who asks for a run, and the context to do it in.
func (p *process) asking(t *testing.T) (context.Context, tracetest.SpanStub) {
	t.Helper()
	ctx, span := p.tracer.Tracer("test").Start(t.Context(), "request")
	span.End()
	return ctx, p.named("request")[0]
}

// chain checks that each span is the child of the one before it, in one trace.
func chain(t *testing.T, spans ...tracetest.SpanStub) {
	t.Helper()
	for i := 1; i < len(spans); i++ {
		parent, child := spans[i-1], spans[i]
		if child.SpanContext.TraceID() != parent.SpanContext.TraceID() || child.Parent.SpanID() != parent.SpanContext.SpanID() {
			t.Errorf("span %q, in trace %s under %s, is no child of %q, which is %s in trace %s", child.Name, child.SpanContext.TraceID(), child.Parent.SpanID(),
				parent.Name, parent.SpanContext.SpanID(), parent.SpanContext.TraceID())
		}
	}
}

// attributes are those of a span, as texts.
func attributes(list []attribute.KeyValue) map[string]string {
	all := map[string]string{}
	for _, kv := range list {
		all[string(kv.Key)] = kv.Value.String()
	}
	return all
}

// points are the values of an instrument, by the texts of their attributes; of a histogram,
// how many values there are.
func (p *process) points(t *testing.T, name string) map[string]float64 {
	t.Helper()
	points := map[string]float64{}
	each(t, p.collect(t, name), func(set attribute.Set, v float64, _ []metricdata.Exemplar[float64]) {
		points[set.Encoded(attribute.DefaultEncoder())] = v
	})
	return points
}

func (p *process) collect(t *testing.T, name string) metricdata.Aggregation {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := p.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if m.Name == name {
				return m.Data
			}
		}
	}
	return nil
}

func each(t *testing.T, data metricdata.Aggregation, f func(attribute.Set, float64, []metricdata.Exemplar[float64])) {
	t.Helper()
	switch d := data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			f(p.Attributes, float64(p.Count), p.Exemplars)
		}
	case metricdata.Sum[float64]:
		for _, p := range d.DataPoints {
			f(p.Attributes, p.Value, p.Exemplars)
		}
	case metricdata.Gauge[float64]:
		for _, p := range d.DataPoints {
			f(p.Attributes, p.Value, p.Exemplars)
		}
	case nil:
	default:
		t.Errorf("data %T", data)
	}
}

// with are the points whose attributes contain all of the texts, added up.
func with(points map[string]float64, texts ...string) (sum float64) {
	for key, v := range points {
		if !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(","+key+",", ","+s+",") }) {
			sum += v
		}
	}
	return sum
}

// ended waits for the end of a run.
func ended(t *testing.T, s xxljob.Scheduler, id int64, want xxljob.State) xxljob.Run {
	t.Helper()
	run, err := s.Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if run.State != want {
		t.Fatalf("run %d is %v: %v, want %v", id, run.State, run.Err(), want)
	}
	return run
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
