// Command metrics runs a few jobs and shows them: metrics for Prometheus at /metrics, and with
// -traces each span as a line of JSON on the standard output. dashboard.json beside this file is
// a dashboard for Grafana over these metrics. It is a module of its own, so that neither the
// scheduler nor module otelxxl depends on an SDK or an exporter.
//
//	cd examples/metrics
//	go run . -traces
//	curl localhost:9464/metrics
//
// Scraped by a Prometheus, the metrics are those that the dashboard asks for: import
// dashboard.json in Grafana and choose that Prometheus as its source. To see exemplars too, the
// Prometheus has to be started with exemplar-storage enabled.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	alarmlog "github.com/xxljob/xxljob/alarm/log"
	"github.com/xxljob/xxljob/otelxxl"
	"github.com/xxljob/xxljob/store/memory"
)

func main() {
	addr := flag.String("addr", "localhost:9464", "`address` to listen on")
	traces := flag.Bool("traces", false, "write each span to the standard output")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	spans := io.Discard
	if *traces {
		spans = os.Stdout
	}
	log.Printf("metrics are at http://%s/metrics; Ctrl-C ends it", ln.Addr())
	if err := run(ctx, ln, spans); err != nil {
		log.Fatal(err)
	}
}

// providers are the SDK's, and what serves the metrics.
type providers struct {
	traces  *trace.TracerProvider
	metrics *metric.MeterProvider
	handler http.Handler
}

// mostSeries is how many series an instrument may have: 200 apps with ten types of triggers and
// ten states each. By default they are 2,000, and what is beyond them loses its attributes.
const mostSeries = 25_000

// newProviders sends spans to w, a few at a time, and metrics to whoever asks.
func newProviders(w io.Writer) (*providers, error) {
	spans, err := stdouttrace.New(stdouttrace.WithWriter(w))
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	return &providers{
		traces:  trace.NewTracerProvider(trace.WithBatcher(spans)),
		metrics: metric.NewMeterProvider(metric.WithReader(reader), metric.WithCardinalityLimit(mostSeries)),
		handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}), // which has exemplars
	}, nil
}

// run serves until ctx ends.
func run(ctx context.Context, ln net.Listener, spans io.Writer) (err error) {
	p, err := newProviders(spans)
	if err != nil {
		return err
	}
	defer func() { // what was recorded last is not to be lost
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, p.traces.Shutdown(late), p.metrics.Shutdown(late))
	}()
	tel := otelxxl.New(otelxxl.Config{TracerProvider: p.traces, MeterProvider: p.metrics})
	s, err := xxljob.New(memory.New(), tel.Configure(xxljob.Config{
		App:    "shop",
		Alarms: tel.Alarms([]alarm.Rule{{Name: "log", To: alarmlog.New(nil), Window: time.Minute}}),
	}))
	if err != nil {
		return err
	}
	if err := addJobs(ctx, s); err != nil {
		return err
	}
	if err := tel.Observe(ctx, s); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", p.handler)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	err = s.Run(ctx)
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err = errors.Join(err, server.Shutdown(late))
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve: %w", ended))
	}
	return err
}
