package otelxxl_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/otelxxl"
	"github.com/xxljob/xxljob/xxljobtest"
)

// poorMeters have no instrument of one name, register late, and count what is registered.
type poorMeters struct {
	metricnoop.MeterProvider
	without    string
	late       time.Duration
	err        error
	registered *atomic.Int64
}

func (p poorMeters) Meter(string, ...metric.MeterOption) metric.Meter { return poorMeter{p: p} }

type poorMeter struct {
	metricnoop.Meter
	p poorMeters
}

func (m poorMeter) lacks(name string) error {
	if name == m.p.without {
		return errors.New("no such instrument")
	}
	return nil
}

func (m poorMeter) Float64Counter(name string, _ ...metric.Float64CounterOption) (metric.Float64Counter, error) {
	return metricnoop.Float64Counter{}, m.lacks(name)
}

func (m poorMeter) Float64ObservableGauge(name string, _ ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	return metricnoop.Float64ObservableGauge{}, m.lacks(name)
}

func (m poorMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	m.p.registered.Add(1)
	time.Sleep(m.p.late)
	return poorRegistration{n: m.p.registered}, m.p.err
}

type poorRegistration struct {
	metricnoop.Registration
	n *atomic.Int64
}

func (r poorRegistration) Unregister() error { r.n.Add(-1); return nil }

// TestNothingStaysRegistered: neither when Observe has failed, nor when the scheduler is observed
// no longer.
func TestNothingStaysRegistered(t *testing.T) {
	for name, tt := range map[string]struct {
		poor poorMeters
		err  string
	}{
		"all is well":            {},
		"a counter is missing":   {poorMeters{without: "xxljob.run.outcomes"}, "xxljob.run.outcomes: no such instrument"},
		"a gauge is missing":     {poorMeters{without: "xxljob.shards"}, "xxljob.shards: no such instrument"},
		"it registers and fails": {poorMeters{err: errors.New("not quite")}, "not quite"},
		"it answers late":        {poorMeters{late: 200 * time.Millisecond}, "did not answer"},
		"late, and it fails":     {poorMeters{late: 200 * time.Millisecond, without: "xxljob.shards"}, "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.poor.registered = &atomic.Int64{}
				tel := otelxxl.New(otelxxl.Config{TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: tt.poor, Logger: quiet()})
				s := xxljobtest.NewWith(t, xxljobtest.Options{Config: tel.Configure(xxljob.Config{App: "shop", Logger: quiet()})})
				ctx, cancel := context.WithCancel(t.Context())
				err := tel.Observe(ctx, s)
				if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %q", err, tt.err)
				}
				if err == nil && tt.poor.registered.Load() != 1 {
					t.Error("nothing is registered")
				}
				cancel()
				time.Sleep(time.Second)
				if n := tt.poor.registered.Load(); n != 0 {
					t.Errorf("%d callbacks stay registered", n)
				}
			})
		})
	}
}
