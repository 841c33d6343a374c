package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store/postgres"
	"github.com/xxljob/xxljob/wire"
)

// BenchmarkRegistry lets 10,000 executors register and then beat every 30 s over HTTP,
// counts the statements about the registry, times the answers, and looks whether all of
// them are registered in the end.
func BenchmarkRegistry(b *testing.B) {
	const executors, beat, rounds = 10_000, 30 * time.Second, 3
	for range b.N {
		var sent statements
		s := openOn(b, pgtest.Pool(b, traced(&sent)), postgres.Config{})
		sched, err := xxljob.New(s, xxljob.Config{App: "beats", Logger: slog.New(slog.DiscardHandler), HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {"only-for-benchmarks"}}}})
		if err != nil {
			b.Fatal(err)
		}
		handler, err := sched.AdminHandler()
		if err != nil {
			b.Fatal(err)
		}
		server := httptest.NewServer(handler)
		defer server.Close()
		if err := sched.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		defer func() { _ = sched.Stop(context.Background()) }()

		var mu sync.Mutex
		var took []time.Duration
		failed := 0
		transport := wire.NewTransport(wire.TransportConfig{})
		client, err := wire.NewAdminClient(server.URL, wire.ClientConfig{Transport: transport, Token: "only-for-benchmarks"})
		if err != nil {
			b.Fatal(err)
		}
		register := func(i int) {
			req := wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: fmt.Sprintf("app-%d", i%100),
				RegistryValue: fmt.Sprintf("http://10.%d.%d.1:9999/", i/250, i%250), BootID: fmt.Sprint(i), Capabilities: []string{wire.CapRepeat}}
			began := time.Now()
			ret, err := client.Registry(b.Context(), req)
			d := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, d)
			if err != nil || !ret.OK() {
				failed++
			}
		}
		round := func() (p50, p99, most float64, perSecond float64) {
			took = took[:0]
			before, began := registryStatements(&sent), time.Now()
			var all sync.WaitGroup
			for i := range executors {
				time.Sleep(time.Until(began.Add(time.Duration(i) * beat / executors)))
				all.Go(func() { register(i) })
			}
			all.Wait()
			during := time.Since(began)
			slices.Sort(took)
			at := func(p float64) float64 { return float64(took[int(p*float64(len(took)-1))].Microseconds()) / 1000 }
			return at(0.5), at(0.99), at(1), float64(registryStatements(&sent)-before) / during.Seconds()
		}
		p50, p99, _, rate := round()
		b.ReportMetric(p50, "first-p50-ms")
		b.ReportMetric(p99, "first-p99-ms")
		b.ReportMetric(rate, "first-statements/s")
		var most float64
		for range rounds - 1 {
			p50, p99, most, rate = round()
		}
		time.Sleep(time.Second)
		alive := 0
		for i := range 100 {
			regs, err := s.Addresses(b.Context(), fmt.Sprintf("app-%d", i), beat+5*time.Second)
			if err != nil {
				b.Fatal(err)
			}
			alive += len(regs)
		}
		b.ReportMetric(p50, "p50-ms")
		b.ReportMetric(p99, "p99-ms")
		b.ReportMetric(most, "max-ms")
		b.ReportMetric(rate, "statements/s")
		b.ReportMetric(float64(executors-alive), "lost")
		b.ReportMetric(float64(failed), "failed")
		b.ReportMetric(0, "ns/op")
		if alive != executors || failed > 0 {
			b.Errorf("%d of %d executors are alive, %d answers were no success", alive, executors, failed)
		}
	}
}

// registryStatements is how many statements about the registry were sent.
func registryStatements(sent *statements) (n int) {
	for _, sql := range counted(sent) {
		if strings.Contains(sql, "xxl_job_registry") {
			n++
		}
	}
	return n
}
