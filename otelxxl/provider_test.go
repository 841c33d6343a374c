package otelxxl_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/otelxxl"
	"github.com/xxljob/xxljob/xxljobtest"
)

// bad is what each method of a bad provider does; later is from when on, in calls of the
// provider: its first calls may go well, so that what they have returned is bad as well.
type bad struct {
	act   func()
	depth int // 0: the providers, 1: tracer and meter, 2: spans and instruments
}

func (b bad) at(depth int) {
	if depth >= b.depth {
		b.act()
	}
}

type badTracers struct {
	tracenoop.TracerProvider
	bad
}

func (p badTracers) Tracer(string, ...trace.TracerOption) trace.Tracer {
	p.at(0)
	return badTracer{bad: p.bad}
}

type badTracer struct {
	tracenoop.Tracer
	bad
}

func (p badTracer) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	p.at(1)
	return ctx, badSpan{bad: p.bad} // whose methods panic, nil as it is within, or do what bad ones do
}

type badSpan struct {
	trace.Span // nil
	bad
}

func (p badSpan) End(...trace.SpanEndOption) { p.at(2) }

func (p badSpan) SpanContext() trace.SpanContext { p.at(2); return trace.SpanContext{} }

type badMeters struct {
	metricnoop.MeterProvider
	bad
}

func (p badMeters) Meter(string, ...metric.MeterOption) metric.Meter {
	p.at(0)
	return badMeter{bad: p.bad}
}

type badMeter struct {
	metricnoop.Meter
	bad
}

func (p badMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	p.at(1)
	return badInstrument{bad: p.bad}, nil
}

func (p badMeter) Float64Counter(string, ...metric.Float64CounterOption) (metric.Float64Counter, error) {
	p.at(1)
	return badCounter{bad: p.bad}, nil
}

func (p badMeter) RegisterCallback(f metric.Callback, _ ...metric.Observable) (metric.Registration, error) {
	p.at(1)
	_ = f(context.Background(), badObserver{bad: p.bad}) // as a collection would
	return badRegistration{bad: p.bad}, nil
}

type badObserver struct {
	metricnoop.Observer
	bad
}

func (p badObserver) ObserveFloat64(metric.Float64Observable, float64, ...metric.ObserveOption) {
	if p.depth == 2 {
		panic("an observer that panics")
	}
}

type badRegistration struct {
	metricnoop.Registration
	bad
}

func (p badRegistration) Unregister() error { p.at(2); return nil }

type badInstrument struct {
	metricnoop.Float64Histogram
	bad
}

func (p badInstrument) Record(context.Context, float64, ...metric.RecordOption) { p.at(2) }

type badCounter struct {
	metricnoop.Float64Counter
	bad
}

func (p badCounter) Add(context.Context, float64, ...metric.AddOption) { p.at(2) }

// TestBadProviders: whatever panics or hangs, runs are run at their time, and their handlers'
// errors are what they are.
func TestBadProviders(t *testing.T) {
	for depth, what := range []string{"providers", "tracer and meter", "spans and instruments"} {
		t.Run(what+" that panic", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				withProviders(t, bad{func() { panic("not today") }, depth}, 0)
			})
		})
		t.Run(what+" that hang", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				withProviders(t, bad{func() { <-release }, depth}, 2*time.Second)
				close(release)
				synctest.Wait()
			})
		})
	}
}

// withProviders runs a job each second for an hour, and triggers it now and then. None may be
// later than so much.
func withProviders(t *testing.T, b bad, latest time.Duration) {
	tel := otelxxl.New(otelxxl.Config{TracerProvider: badTracers{bad: b}, MeterProvider: badMeters{bad: b}, Logger: quiet()})
	cfg := tel.Configure(xxljob.Config{App: "shop", Logger: quiet(), Alarms: tel.Alarms([]alarm.Rule{{Name: "all", To: nobody{}}})})
	var mu sync.Mutex // guards ran and late
	ran, late := 0, time.Duration(0)
	s := xxljobtest.NewWith(t, xxljobtest.Options{Config: cfg, Handlers: map[string]xxljob.Handler{
		"mail": func(_ context.Context, task *xxljob.Task) error {
			mu.Lock()
			defer mu.Unlock()
			ran++
			late = max(late, time.Since(task.ScheduledAt))
			return nil
		},
		"fail": func(context.Context, *xxljob.Task) error { panic("a handler's own") },
	}}, xxljob.Job{Name: "each second", Handler: "mail", Schedule: xxljob.FixedRate(time.Second)}, xxljob.Job{Name: "fail", Key: "fail", Handler: "fail"})
	ctx, cancel := context.WithCancel(t.Context())
	_ = tel.Observe(ctx, s) // an error that says so, at most
	time.Sleep(time.Hour + 10*time.Second)
	mu.Lock()
	if ran < 3600 || late > latest {
		t.Errorf("%d runs in an hour, up to %v late, want 3600 and %v", ran, late, latest)
	}
	mu.Unlock()
	for range 3 {
		began := time.Now()
		ids, err := s.TriggerJob(t.Context(), "", "fail", xxljob.Trigger{})
		must(t, err)
		ended(t, s, ids[0], xxljob.StateFailed)
		if took := time.Since(began); took > 4*latest {
			t.Errorf("a run that was triggered took %v", took)
		}
	}
	cancel()
	time.Sleep(time.Minute)
}

// nobody is an alarmer.
type nobody struct{}

func (nobody) Alarm(context.Context, alarm.Message) error { return nil }
