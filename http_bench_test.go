package xxljob_test

// Load over real connections on loopback, scheduler and executors in one process.

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// benchAdmin serves a scheduler's Handler on a port that can be shut and opened again.
type benchAdmin struct {
	b       *testing.B
	handler http.Handler
	addr    string
	server  *http.Server
}

func (a *benchAdmin) open() {
	addr := a.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		a.b.Fatal(err)
	}
	a.addr = l.Addr().String()
	a.server = &http.Server{Handler: a.handler}
	go func() { _ = a.server.Serve(l) }()
}

// benchExecutors starts executors of one app, each with a port of its own.
func benchExecutors(b *testing.B, n int, admin string, cfg executor.Config, noop executor.Handler) {
	b.Helper()
	for range n {
		cfg.App, cfg.Addr, cfg.Logger = "far", "127.0.0.1:0", stage.QuietLog()
		cfg.Admins = []executor.AdminCluster{{Addresses: []string{admin}, Token: stage.Token}}
		e, err := executor.New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Handle("noop", noop); err != nil {
			b.Fatal(err)
		}
		if err := e.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := e.Stop(ctx); err != nil {
				b.Error(err)
			}
		})
	}
}

// benchFar is a scheduler with executors elsewhere, all of them registered.
func benchFar(b *testing.B, executors int, cfg executor.Config, noop executor.Handler) (xxljob.Scheduler, *memory.Store, *benchAdmin) {
	b.Helper()
	st := memory.New(memory.Retain(1<<30, 1<<30), memory.RetainBytes(1<<40))
	s := benchScheduler(b, st, xxljob.Config{Logger: stage.QuietLog(), HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {stage.Token}}}}, stage.NothingToDo)
	h, err := s.AdminHandler()
	if err != nil {
		b.Fatal(err)
	}
	admin := &benchAdmin{b: b, handler: h}
	admin.open()
	b.Cleanup(func() { _ = admin.server.Close() })
	benchExecutors(b, executors, "http://"+admin.addr, cfg, noop)
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		regs, err := st.Registrations(b.Context(), xxljob.RegistrationFilter{})
		if err == nil && len(regs) == executors {
			return s, st, admin
		}
		if time.Since(began) > 10*time.Second {
			b.Fatalf("%d of %d executors are registered: %v", len(regs), executors, err)
		}
	}
}

// BenchmarkHTTPTriggers sends 2,000 triggers a second to four executors for 30 s, and
// audits that each due instant has run once and is recorded.
func BenchmarkHTTPTriggers(b *testing.B) {
	const jobs, during = 2000, 30 * time.Second
	for range b.N {
		var mu sync.Mutex
		var late []time.Duration
		started := map[int64]int{}
		noop := func(_ context.Context, t *executor.Task) error {
			d := time.Since(t.ScheduledAt)
			mu.Lock()
			late = append(late, d)
			started[t.RunID]++
			mu.Unlock()
			return nil
		}
		s, st, _ := benchFar(b, 4, executor.Config{}, noop)
		ctx := context.Background()
		began := time.Now()
		ids := make([]int64, jobs)
		for i := range jobs {
			for time.Since(began) < time.Duration(i)*time.Second/jobs { // spread over the second
				time.Sleep(50 * time.Microsecond)
			}
			j, err := s.AddJob(ctx, xxljob.Job{App: "far", Name: strconv.Itoa(i), Handler: "noop", Route: "ROUND", Schedule: xxljob.FixedRate(time.Second)})
			if err != nil {
				b.Fatal(err)
			}
			ids[i] = j.ID
		}
		time.Sleep(2 * time.Second)
		mu.Lock()
		late = late[:0]
		mu.Unlock()
		cpu, from := cpuTime(), time.Now()
		time.Sleep(during)
		cpu = cpuTime() - cpu
		mu.Lock()
		n := len(late)
		slices.Sort(late)
		measured := slices.Clone(late)
		mu.Unlock()
		for _, id := range ids {
			if err := s.StopJob(ctx, id); err != nil {
				b.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		lost, double := auditFar(b, st, ids, from, during, started, &mu)
		at := func(p float64) float64 { return float64(measured[int(p*float64(n-1))].Microseconds()) / 1000 }
		b.ReportMetric(float64(n)/during.Seconds(), "runs/s")
		b.ReportMetric(at(0.50), "p50-ms")
		b.ReportMetric(at(0.99), "p99-ms")
		b.ReportMetric(at(1), "max-ms")
		b.ReportMetric(cpu.Seconds()/during.Seconds()*100, "%cpu")
		b.ReportMetric(float64(lost), "lost")
		b.ReportMetric(float64(double), "double")
		b.ReportMetric(float64(stage.Heap()>>20), "MiB")
		b.ReportMetric(0, "ns/op")
		if lost+double > 0 {
			b.Errorf("lost %d, double %d", lost, double)
		}
	}
}

// auditFar counts instants of the window without a success, and runs with two starts.
func auditFar(b *testing.B, st xxljob.Store, ids []int64, from time.Time, during time.Duration, started map[int64]int, mu *sync.Mutex) (lost, double int) {
	b.Helper()
	want := int(during / time.Second)
	mu.Lock()
	defer mu.Unlock()
	for _, id := range ids {
		ok := 0
		for _, r := range stage.AllOf(b, st, xxljob.RunFilter{JobID: id, From: from, To: from.Add(during)}) {
			if r.State == xxljob.StateSucceeded && started[r.ID] >= 1 {
				ok++
			}
			if started[r.ID] > 1 {
				double++
			}
		}
		lost += max(want-ok, 0)
	}
	return lost, double
}

// BenchmarkCallbackStorm lets 50,000 runs end while the admin is away, and measures how
// long it takes until all their results are stored once it is back, and what memory that
// costs.
func BenchmarkCallbackStorm(b *testing.B) {
	const runs = 50_000
	for range b.N {
		var ran atomic.Int64
		hold := make(chan struct{})
		noop := func(ctx context.Context, t *executor.Task) error {
			select {
			case <-hold:
			case <-ctx.Done():
			}
			ran.Add(1)
			t.SetResult("the result of run " + strconv.FormatInt(t.RunID, 10))
			return nil
		}
		cfg := executor.Config{Places: 20_000, Backlog: 100_000, SpoolDir: b.TempDir()}
		s, st, admin := benchFar(b, 4, cfg, noop)
		ctx := context.Background()
		for i := range runs {
			j, err := s.AddJob(ctx, xxljob.Job{App: "far", Name: strconv.Itoa(i), Handler: "noop", Route: "ROUND"})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := s.Trigger(ctx, j.ID, xxljob.Trigger{}); err != nil {
				b.Fatal(err)
			}
		}
		waitBench(b, "all are dispatched", func() bool { return countFar(b, st, xxljob.StateDispatched) == runs })
		_ = admin.server.Close()
		close(hold)
		waitBench(b, "all have ended", func() bool { return ran.Load() == runs })
		time.Sleep(20 * time.Second) // the outage
		before := stage.Heap()
		var most atomic.Int64
		watching, watched := context.WithCancel(ctx)
		go func() {
			for watching.Err() == nil {
				most.Store(max(most.Load(), stage.Heap()))
				time.Sleep(100 * time.Millisecond)
			}
		}()
		began := time.Now()
		admin.open()
		waitBench(b, "all are stored", func() bool { return countFar(b, st, xxljob.StateSucceeded) == runs })
		took := time.Since(began)
		watched()
		b.ReportMetric(took.Seconds(), "s-to-absorb")
		b.ReportMetric(float64(before>>20), "MiB-before")
		b.ReportMetric(float64(most.Load()>>20), "MiB-most")
		b.ReportMetric(0, "ns/op")
	}
}

func countFar(b *testing.B, st xxljob.Store, state xxljob.State) int {
	b.Helper()
	n := 0
	for before := int64(0); ; {
		page, err := st.Runs(b.Context(), xxljob.RunFilter{App: "far", States: []xxljob.State{state}, Before: before, Limit: 10_000})
		if err != nil {
			b.Fatal(err)
		}
		if n += len(page); len(page) < 10_000 {
			return n
		}
		before = page[len(page)-1].ID
	}
}

func waitBench(b *testing.B, what string, is func() bool) {
	b.Helper()
	for began := time.Now(); !is(); time.Sleep(200 * time.Millisecond) {
		if time.Since(began) > 5*time.Minute {
			b.Fatal(fmt.Sprint("not after five minutes: ", what))
		}
	}
}
