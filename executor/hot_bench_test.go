package executor_test

// What a run costs on its whole way, from Run to the callback of an admin in this process
// that takes results at once.

import (
	"context"
	"testing"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// window is an admin that lets one more run begin for each result.
type window struct {
	admin
	free chan int // how many results came
}

func (w *window) Callback(_ context.Context, batch []wire.CallbackRequest) (wire.Return, error) {
	w.free <- len(batch)
	return wire.Success(), nil
}

// planned is a run as a scheduler in this process sends it: dated, with names, and an id
// that is greater than those before.
func planned(id, jobs int64, now time.Time) wire.TriggerRequest {
	job := id % jobs
	return wire.TriggerRequest{
		JobID: job, LogID: id + 1, LogDateTime: now.UnixMilli(), ScheduledAt: now.UnixMilli(),
		ExecutorHandler: "h", GlueType: wire.GlueBean, BroadcastTotal: 1, StartToken: 1,
		App: "app", JobName: "a job", Route: "FIRST", JobVersion: 1, TriggerType: "CRON",
	}
}

// benchWindow has b.N runs go through an executor, of which at most so many are under way at
// once, and tells the CPU time of one beside the time. They are handed over in batches.
func benchWindow(b *testing.B, inFlight, batch int, jobs int64, h executor.Handler) {
	e, err := executor.New(executor.Config{Places: inFlight, App: "app"})
	if err != nil {
		b.Fatal(err)
	}
	w := &window{free: make(chan int, inFlight)}
	e.Bind(w)
	if err := e.Handle("h", h); err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	b.ReportAllocs()
	b.ResetTimer()
	began := cpuTime()
	free := inFlight
	var reqs []wire.TriggerRequest
	var answers []wire.Return
	for id := int64(0); id < int64(b.N); {
		for free == 0 {
			free = <-w.free
		}
		reqs = reqs[:0]
		for range min(free, batch, b.N-int(id)) {
			reqs = append(reqs, planned(id, jobs, now))
			id++
		}
		free -= len(reqs)
		if answers = answers[:0]; batch == 1 {
			ret, _ := e.Run(b.Context(), reqs[0])
			answers = append(answers, ret)
		} else {
			answers = e.RunAll(b.Context(), answers, reqs)
		}
		for _, ret := range answers {
			if !ret.OK() {
				b.Fatal(ret)
			}
		}
	}
	for free < inFlight {
		free += <-w.free
	}
	b.ReportMetric(float64(cpuTime()-began)/float64(b.N), "cpu-ns/op")
	b.StopTimer()
	if err := e.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkWhole(b *testing.B) {
	b.Run("in-flight=1", func(b *testing.B) { benchWindow(b, 1, 1, 5000, noop) })
	b.Run("in-flight=1000", func(b *testing.B) { benchWindow(b, 1000, 1, 5000, noop) })
	b.Run("in-flight=1000,batch=100", func(b *testing.B) { benchWindow(b, 1000, 100, 5000, noop) })
	b.Run("in-flight=10000", func(b *testing.B) { benchWindow(b, 10_000, 1, 50_000, noop) })
	b.Run("context", func(b *testing.B) {
		benchWindow(b, 1000, 1, 5000, func(ctx context.Context, _ *executor.Task) error {
			select {
			case <-ctx.Done():
			default:
			}
			return nil
		})
	})
	b.Run("blocking", func(b *testing.B) {
		benchWindow(b, 1000, 1, 5000, func(context.Context, *executor.Task) error {
			time.Sleep(time.Millisecond)
			return nil
		})
	})
}
