package xxljob_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// benchScheduler returns a started scheduler with a no-op handler "noop".
func benchScheduler(b *testing.B, st xxljob.Store, cfg xxljob.Config, noop func(context.Context, *xxljob.Task) error) xxljob.Scheduler {
	b.Helper()
	s, err := xxljob.New(st, cfg)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Handle("noop", noop); err != nil {
		b.Fatal(err)
	}
	if err := s.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			b.Error(err)
		}
	})
	return s
}

// BenchmarkEndToEnd measures b.N triggered runs from the insert of the planned
// row to the recorded success: insert, scan, start, handler, result.
func BenchmarkEndToEnd(b *testing.B) {
	var done atomic.Int64
	all := make(chan struct{})
	st := memory.New(memory.Retain(1<<30, 1<<30), memory.RetainBytes(1<<40))
	cfg := xxljob.Config{Logger: stage.QuietLog(), Hooks: xxljob.Hooks{RunEnded: func(r xxljob.Run) {
		if r.State != xxljob.StateSucceeded {
			b.Errorf("run %d: %v %s", r.ID, r.State, r.TriggerMsg)
		}
		if done.Add(1) == int64(b.N) {
			close(all)
		}
	}}}
	s := benchScheduler(b, st, cfg, stage.NothingToDo)
	ctx := context.Background()
	var ids []int64
	for i := range 5000 {
		j, err := s.AddJob(ctx, xxljob.Job{Name: strconv.Itoa(i), Handler: "noop"})
		if err != nil {
			b.Fatal(err)
		}
		ids = append(ids, j.ID)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := s.Trigger(ctx, ids[i%len(ids)], xxljob.Trigger{}); err != nil {
			b.Fatal(err)
		}
	}
	<-all
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
	if got := len(stage.Succeeded(b, st, 0)); got != b.N {
		b.Errorf("%d runs are recorded, want %d", got, b.N)
	}
}

// BenchmarkScheduled measures how many scheduled runs a second a node keeps up
// with: jobs due every second for ten seconds, none of which may be missed.
func BenchmarkScheduled(b *testing.B) {
	for _, jobs := range []int{10_000, 30_000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			for range b.N {
				lateness(b, jobs, 10*time.Second, true)
			}
		})
	}
}

// BenchmarkLateness measures start minus scheduled instant, with 1,000 one-second
// jobs spread over the second.
func BenchmarkLateness(b *testing.B) {
	for range b.N {
		lateness(b, 1000, 10*time.Second, true)
	}
}

// BenchmarkHerd measures 10,000 jobs that are due in the same second.
func BenchmarkHerd(b *testing.B) {
	for range b.N {
		lateness(b, 10_000, 3*time.Second, false)
	}
}

// lateness runs one-second jobs for a while and reports the percentiles of
// their lateness, seen from inside the handler.
func lateness(b *testing.B, jobs int, during time.Duration, spread bool) {
	b.Helper()
	var mu sync.Mutex
	var late []time.Duration
	var early, runs int
	s := benchScheduler(b, memory.New(), xxljob.Config{Logger: stage.QuietLog()}, func(_ context.Context, t *xxljob.Task) error {
		d := time.Since(t.ScheduledAt)
		mu.Lock()
		defer mu.Unlock()
		late = append(late, d)
		runs++
		if d < 0 {
			early++
		}
		return nil
	})
	ctx := context.Background()
	list := make([]xxljob.Job, jobs)
	for i := range list {
		list[i] = xxljob.Job{Name: strconv.Itoa(i), Handler: "noop", Schedule: xxljob.Cron("* * * * * ?")}
		if spread {
			list[i].Schedule = xxljob.FixedRate(time.Second)
		}
	}
	gap := time.Second / time.Duration(jobs)
	began := time.Now()
	for i, j := range list {
		if spread {
			// A fixed rate counts from when the job is added: spread the adding.
			for time.Since(began) < time.Duration(i)*gap {
				runtime.Gosched()
			}
		}
		if _, err := s.AddJob(ctx, j); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(2 * time.Second)
	mu.Lock()
	late, runs = late[:0], 0
	mu.Unlock()
	cpu := cpuTime()
	time.Sleep(during)
	cpu = cpuTime() - cpu
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(late)
	at := func(p float64) float64 {
		return float64(late[min(int(p*float64(len(late))), len(late)-1)].Microseconds()) / 1000
	}
	b.ReportMetric(float64(runs)/during.Seconds(), "runs/s")
	b.ReportMetric(at(0.50), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
	b.ReportMetric(at(0.999), "p99.9-ms")
	b.ReportMetric(at(1), "max-ms")
	b.ReportMetric(float64(early), "early")
	b.ReportMetric(cpu.Seconds()/during.Seconds()*100, "%cpu")
}

// BenchmarkStoppedJobs measures the CPU time of 1,000 one-second jobs alone, and
// beside a million stopped ones.
func BenchmarkStoppedJobs(b *testing.B) {
	for _, stopped := range []int{0, 1_000_000} {
		b.Run(fmt.Sprintf("stopped=%d", stopped), func(b *testing.B) {
			for range b.N {
				st := memory.New()
				s := benchScheduler(b, st, xxljob.Config{Logger: stage.QuietLog()}, stage.NothingToDo)
				ctx := context.Background()
				for i := range 1000 + stopped {
					j := xxljob.Job{App: "bench", Key: strconv.Itoa(i), Name: "job", Handler: "noop", Schedule: xxljob.Cron("* * * * * ?"), Stopped: i >= 1000}
					if i < 1000 {
						j.App = ""
						if _, err := s.AddJob(ctx, j); err != nil {
							b.Fatal(err)
						}
					} else if _, err := st.AddJob(ctx, j, nil); err != nil {
						b.Fatal(err)
					}
				}
				// What the building left behind is collected and given back first, or
				// the runtime does that while the CPU time is measured.
				debug.FreeOSMemory()
				time.Sleep(time.Second)
				cpu := cpuTime()
				time.Sleep(20 * time.Second)
				b.ReportMetric((cpuTime()-cpu).Seconds()/20*100, "%cpu")
				b.ReportMetric(float64(stage.Heap()>>20), "MiB")
			}
		})
	}
}
