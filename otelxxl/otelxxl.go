package otelxxl

import (
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/xxljob/xxljob"
)

// scope is the name of the instrumentation.
const scope = "github.com/xxljob/xxljob/otelxxl"

// Config says where telemetry goes. The zero value is complete: the global providers.
type Config struct {
	// TracerProvider makes the spans. Nil means otel.GetTracerProvider().
	TracerProvider trace.TracerProvider
	// MeterProvider makes the instruments. Nil means otel.GetMeterProvider().
	MeterProvider metric.MeterProvider
	// JobKeys adds xxljob.job.key to the metrics of runs: the key of the job, or its ID. That
	// makes as many series as there are jobs, times states and types; of more than 1,000 jobs
	// the further ones are "other". The SDK has to be told: see the package, on series.
	JobKeys bool
	// Logger receives what goes wrong with the providers. Nil means slog.Default().
	Logger *slog.Logger
}

// Telemetry is the telemetry of one process. Make one with New. It is an xxljob.Tracer, and all
// of its methods are safe for concurrent use.
type Telemetry struct {
	cfg    Config
	log    *slog.Logger
	calls  calls
	tracer trace.Tracer
	meter  metric.Meter
	work   work    // instruments of executors
	sent   spanLog // what this node has sent
	apps   names
	jobs   names
	places names // of panics
}

var _ xxljob.Tracer = (*Telemetry)(nil)

// New makes the tracer and the instruments of executors. A provider that panics or hangs is
// logged, and none is used in its place.
func New(cfg Config) *Telemetry {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	t := &Telemetry{cfg: cfg, log: cfg.Logger, apps: names{most: 200}, jobs: names{most: 1000}, places: names{most: 200}}
	t.calls.guard(t.log)
	t.tracer = made(t, "TracerProvider.Tracer", func() trace.Tracer { return cfg.TracerProvider.Tracer(scope) }, trace.Tracer(tracenoop.Tracer{}))
	t.meter = made(t, "MeterProvider.Meter", func() metric.Meter { return cfg.MeterProvider.Meter(scope) }, metric.Meter(metricnoop.Meter{}))
	t.work = made(t, "Meter of executors", func() work { return newWork(t.meter, t.instrumentFailed) }, newWork(metricnoop.Meter{}, t.instrumentFailed))
	return t
}

// made is what a provider makes, or else what stands in for it.
func made[T any](t *Telemetry, place string, f func() T, instead T) T {
	if got, ok := ask(&t.calls.instruments, place, f, nil); ok && any(got) != nil {
		return got
	}
	t.log.Warn("xxljob: a provider of telemetry did not answer; nothing is recorded with it", "place", place)
	return instead
}

func (t *Telemetry) instrumentFailed(name string, err error) {
	t.log.Warn("xxljob: an instrument could not be made", "instrument", name, "error", err)
}

// Configure returns the configuration with its Tracer and, as the outermost of its Middleware,
// this Telemetry's.
func (t *Telemetry) Configure(cfg xxljob.Config) xxljob.Config {
	if cfg.App != "" {
		t.apps.of(cfg.App)
	}
	cfg.Tracer = t
	cfg.Middleware = slices.Insert(slices.Clone(cfg.Middleware), 0, t.Middleware)
	return cfg
}
