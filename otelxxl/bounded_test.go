package otelxxl_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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

// lines is a log whose lines can be read.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// wants checks that there are so many lines, each with its text.
func (l *lines) wants(t *testing.T, texts ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	got := strings.Split(strings.TrimSuffix(l.text.String(), "\n"), "\n")
	if l.text.Len() == 0 {
		got = nil
	}
	bad := len(got) != len(texts)
	for i := range texts {
		bad = bad || !strings.Contains(got[i], texts[i])
	}
	if bad {
		t.Errorf("the log has %d lines, want %q:\n%s", len(got), texts, l.text.String())
	}
}

// TestGuard: what each call costs, what the log says of it, and who hears of answers that come
// late.
func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, release := &lines{}, make(chan struct{})
		b := otelxxl.NewBounded(100*time.Millisecond, log.logger())
		var late atomic.Int64
		ask := func(what string, f func() int, want int, ok bool, took time.Duration) {
			t.Helper()
			began := time.Now()
			if got, answered := b.Ask(f, func(n int) { late.Store(int64(n)) }); got != want || answered != ok || time.Since(began) != took {
				t.Errorf("%s: %d, %t after %v, want %d, %t after %v", what, got, answered, time.Since(began), want, ok, took)
			}
		}
		answer := func() int { return 7 }
		ask("one that answers", answer, 7, true, 0)
		for range 2 {
			ask("one that panics", func() int { panic("no") }, 0, false, 0)
			ask("one that ends its goroutine", func() int { runtime.Goexit(); return 0 }, 0, false, 0)
		}
		for range 3 {
			ask("one that hangs", func() int { <-release; return 8 }, 0, false, 100*time.Millisecond)
			ask("one in the pause", answer, 0, false, 0)
			time.Sleep(10 * time.Second)
		}
		if late.Load() != 0 {
			t.Error("somebody has heard of an answer that is not there")
		}
		ask("one that answers again", answer, 7, true, 0)
		close(release)
		synctest.Wait()
		if late.Load() != 8 || b.Left() != 3 {
			t.Errorf("the late answer is %d and %d calls were left out, want 8 and 3", late.Load(), b.Left())
		}
		log.wants(t, "panic: no", "has not returned in time", "leftOut=3")
	})
}

// TestGuardOfMany: of calls that hang there are so many, and what ends something is among them,
// but is called in a pause too.
func TestGuardOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, release := otelxxl.NewBounded(100*time.Millisecond, quiet()), make(chan struct{})
		var ended atomic.Int64
		began := time.Now()
		for range otelxxl.MostAsks + 10 {
			b.End(func() { <-release; ended.Add(1) })
		}
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("that took %v, want the patience of one", took)
		}
		close(release)
		synctest.Wait()
		if ended.Load() != otelxxl.MostAsks || b.Left() != 10 {
			t.Errorf("%d have ended and %d were left out, want %d and 10", ended.Load(), b.Left(), otelxxl.MostAsks)
		}
	})
}

// slowMeters count what is recorded, by the name of the instrument; the fifth time takes as long
// as it is told for that name.
type slowMeters struct {
	metricnoop.MeterProvider
	slow map[string]time.Duration
	mu   *sync.Mutex
	n    map[string]int // guarded by mu
}

func newSlowMeters(name string, slow time.Duration) slowMeters {
	return slowMeters{slow: map[string]time.Duration{name: slow}, mu: &sync.Mutex{}, n: map[string]int{}}
}

func (p slowMeters) Meter(string, ...metric.MeterOption) metric.Meter { return slowMeter{p: p} }

func (p slowMeters) record(name string, v float64) {
	p.mu.Lock()
	if v != 0 {
		p.n[name]++
	}
	fifth := p.n[name] == 5
	p.mu.Unlock()
	if fifth {
		time.Sleep(p.slow[name])
	}
}

func (p slowMeters) of(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n[name]
}

type slowMeter struct {
	metricnoop.Meter
	p slowMeters
}

func (m slowMeter) Float64Counter(name string, _ ...metric.Float64CounterOption) (metric.Float64Counter, error) {
	return slowCounter{p: m.p, name: name}, nil
}

func (m slowMeter) Float64Histogram(name string, _ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return slowHistogram{p: m.p, name: name}, nil
}

type slowCounter struct {
	metricnoop.Float64Counter
	p    slowMeters
	name string
}

func (c slowCounter) Add(_ context.Context, v float64, _ ...metric.AddOption) { c.p.record(c.name, v) }

type slowHistogram struct {
	metricnoop.Float64Histogram
	p    slowMeters
	name string
}

func (h slowHistogram) Record(context.Context, float64, ...metric.RecordOption) {
	h.p.record(h.name, 1)
}

// TestASlowInstrument: one call that takes longer than somebody waits costs what it is about, for
// ten seconds, and the log says so; where nobody waits it costs nothing.
func TestASlowInstrument(t *testing.T) {
	for name, tt := range map[string]struct {
		handled, outcomes, alarms int
		log                       []string
	}{
		"xxljob.run.outcomes":        {29, 29, 29, nil},
		"messaging.process.duration": {19, 29, 29, []string{"Histogram.Record", "leftOut=10"}},
		"xxljob.alarm.calls":         {29, 29, 20, []string{"counting an alarm", "leftOut=9"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, log := newSlowMeters(name, 120*time.Millisecond), &lines{}
				tel := otelxxl.New(otelxxl.Config{TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: p, Logger: log.logger()})
				rules := tel.Alarms([]alarm.Rule{{Name: "all", To: nobody{}, Window: -1}})
				s := xxljobtest.NewWith(t, xxljobtest.Options{
					Config: tel.Configure(xxljob.Config{App: "shop", Logger: quiet()}), Handlers: mails,
				}, xxljob.Job{Name: "each second", Handler: "fail", Schedule: xxljob.FixedRate(time.Second)})
				must(t, tel.Observe(t.Context(), s))
				for range 29 {
					time.Sleep(time.Second)
					must(t, rules[0].To.Alarm(t.Context(), alarm.Message{}))
				}
				time.Sleep(500 * time.Millisecond)
				for name, want := range map[string]int{"messaging.process.duration": tt.handled, "xxljob.run.outcomes": tt.outcomes, "xxljob.alarm.calls": tt.alarms} {
					if got := p.of(name); got != want {
						t.Errorf("%s was recorded %d times, want %d", name, got, want)
					}
				}
				log.wants(t, tt.log...)
			})
		})
	}
}

// slowTracers count spans that have begun and ended; the second takes longer to begin.
type slowTracers struct {
	tracenoop.TracerProvider
	begun, ended *atomic.Int64
}

func (p slowTracers) Tracer(string, ...trace.TracerOption) trace.Tracer { return slowTracer{p: p} }

type slowTracer struct {
	tracenoop.Tracer
	p slowTracers
}

func (t slowTracer) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t.p.begun.Add(1) == 2 {
		time.Sleep(120 * time.Millisecond)
	}
	return ctx, slowSpan{p: t.p}
}

type slowSpan struct {
	tracenoop.Span
	p slowTracers
}

func (s slowSpan) End(...trace.SpanEndOption) { s.p.ended.Add(1) }

// TestSpansOfHandlersEnd: those that have begun before the tracer hangs, too.
func TestSpansOfHandlersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, log := slowTracers{begun: &atomic.Int64{}, ended: &atomic.Int64{}}, &lines{}
		tel := otelxxl.New(otelxxl.Config{TracerProvider: p, MeterProvider: metricnoop.NewMeterProvider(), Logger: log.logger()})
		handler := tel.Middleware(func(_ context.Context, task *xxljob.Task) error {
			time.Sleep(time.Duration(task.RunID) * time.Second)
			return nil
		})
		for i := range int64(3) { // the first ends in the pause, and the third has no span
			go func() { _ = handler(t.Context(), &xxljob.Task{RunID: 5 - i}) }()
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		if p.begun.Load() != 2 || p.ended.Load() != 1 {
			t.Errorf("%d spans have begun and %d ended, want 2 and the one that has begun in time", p.begun.Load(), p.ended.Load())
		}
		must(t, handler(t.Context(), &xxljob.Task{}))
		if p.begun.Load() != 3 || p.ended.Load() != 2 {
			t.Errorf("later %d spans have begun and %d ended, want 3 and 2", p.begun.Load(), p.ended.Load())
		}
		log.wants(t, "Tracer.Start", "leftOut=1")
	})
}
