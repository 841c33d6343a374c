package executor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

// counter is an admin that only counts, and says when it has them all.
type counter struct {
	admin
	left atomic.Int64
	done chan struct{}
}

func (c *counter) Callback(_ context.Context, batch []wire.CallbackRequest) (wire.Return, error) {
	if c.left.Add(-int64(len(batch))) == 0 {
		close(c.done)
	}
	return wire.Return{Code: wire.CodeSuccess}, nil
}

// benchRun measures runs from Run until their callback; a run that meets a bound
// is sent again.
func benchRun(b *testing.B, h executor.Handler, request func(id int64) wire.TriggerRequest) {
	e, err := executor.New(executor.Config{Places: 100_000})
	if err != nil {
		b.Fatal(err)
	}
	c := &counter{done: make(chan struct{})}
	e.Bind(c)
	if err := e.Handle("h", h); err != nil {
		b.Fatal(err)
	}
	c.left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	for id := range int64(b.N) {
		for {
			ret, err := e.Run(b.Context(), request(id))
			if err == nil && ret.OK() {
				break
			}
			time.Sleep(10 * time.Microsecond)
		}
	}
	<-c.done
	b.StopTimer()
	if err := e.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkRun(b *testing.B) {
	b.Run("noop", func(b *testing.B) {
		benchRun(b, noop, func(id int64) wire.TriggerRequest { return req(id, id) })
	})
	b.Run("timeout", func(b *testing.B) {
		benchRun(b, noop, func(id int64) wire.TriggerRequest {
			r := req(id, id)
			r.ExecutorTimeout = 60
			return r
		})
	})
	b.Run("result", func(b *testing.B) {
		benchRun(b, func(_ context.Context, t *executor.Task) error { t.SetResult("done"); return nil },
			func(id int64) wire.TriggerRequest { return req(id, id) })
	})
	b.Run("log", func(b *testing.B) {
		benchRun(b, func(_ context.Context, t *executor.Task) error { t.Log().Info("line", "n", 1); return nil },
			func(id int64) wire.TriggerRequest { return req(id, id) })
	})
}

// BenchmarkRunAlone is the way of one run through an executor that is idle.
func BenchmarkRunAlone(b *testing.B) {
	e, err := executor.New(executor.Config{})
	if err != nil {
		b.Fatal(err)
	}
	got := make(chan struct{})
	e.Bind(signal{new(admin), got})
	if err := e.Handle("h", noop); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for id := int64(0); b.Loop(); id++ {
		if ret, _ := e.Run(b.Context(), req(1, id)); !ret.OK() {
			b.Fatal(ret)
		}
		<-got
	}
}

// signal is an admin that tells of each callback.
type signal struct {
	*admin
	got chan struct{}
}

func (s signal) Callback(context.Context, []wire.CallbackRequest) (wire.Return, error) {
	s.got <- struct{}{}
	return wire.Return{Code: wire.CodeSuccess}, nil
}
