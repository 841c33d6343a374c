package executor_test

// How long it takes to begin with many runs that come at once.

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// later is an admin that takes results some time after a herd, when it has counted them.
type later struct {
	admin
	herd  atomic.Int64 // when the last one came, in nanoseconds since 1970
	taken atomic.Int64
}

func (l *later) Callback(_ context.Context, batch []wire.CallbackRequest) (wire.Return, error) {
	time.Sleep(time.Until(time.Unix(0, l.herd.Load()).Add(40 * time.Millisecond)))
	l.taken.Add(int64(len(batch)))
	return wire.Success(), nil
}

func (*later) ForgetsResults() {}

// BenchmarkHerd hands 10,000 runs of as many jobs over, 256 in a call, and tells how long it takes until
// the last of them is accepted, and until the handlers of a half, of 99 %, and of all of them begin:
// medians of all herds.
func BenchmarkHerd(b *testing.B) {
	const n = 10_000
	e, err := executor.New(executor.Config{Places: n, App: "app"})
	if err != nil {
		b.Fatal(err)
	}
	l := &later{}
	e.Bind(l)
	began := make([]int64, n) // of each job, in nanoseconds since its herd
	var now time.Time
	if err := e.Handle("h", func(_ context.Context, task *executor.Task) error {
		began[task.JobID] = int64(time.Since(now))
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	var took [4][]float64
	reqs, answers := make([]wire.TriggerRequest, n), make([]wire.Return, 0, 256)
	for round := int64(0); b.Loop(); round++ {
		now = time.Now()
		for i := range reqs {
			reqs[i] = planned(round*n+int64(i), n, now)
		}
		now = time.Now()
		l.herd.Store(now.UnixNano())
		for some := range slices.Chunk(reqs, 256) {
			answers = e.RunAll(b.Context(), answers[:0], some)
		}
		accepted := time.Since(now)
		for l.taken.Load() < (round+1)*n {
			time.Sleep(time.Millisecond)
		}
		slices.Sort(began)
		for i, d := range []int64{int64(accepted), began[n/2], began[n*99/100], began[n-1]} {
			took[i] = append(took[i], float64(d)/1e6)
		}
	}
	for i, unit := range []string{"accepted-ms", "half-ms", "99%-ms", "all-ms"} {
		slices.Sort(took[i])
		b.ReportMetric(took[i][len(took[i])/2], unit)
	}
	if err := e.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
}
