package bench

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/measure"
)

// sparse measures what jobs cost that only wait, and how late the few are that are due.
func (b *bench) sparse(ctx context.Context, r *Report) error {
	return b.on(ctx, func(st *backend) error {
		out := &SparseReport{Jobs: b.cfg.Jobs}
		r.Sparse = out
		before := liveHeap()
		if err := b.addWaiting(ctx, st, out); err != nil {
			return err
		}
		p := &paced{bench: b, backend: st, jobs: b.cfg.Rate, spread: true, report: r}
		took, err := p.begin(ctx)
		if err != nil {
			return err
		}
		out.StartSeconds = took.Seconds()
		if err := b.idle(ctx, out, before); err != nil {
			_, stopped := p.node.stop()
			return errors.Join(err, stopped)
		}
		return p.measure(ctx)
	})
}

// addWaiting adds jobs that are due tomorrow, spread over an hour.
func (b *bench) addWaiting(ctx context.Context, st *backend, out *SparseReport) error {
	b.say("adding %d jobs that wait", out.Jobs)
	began := time.Now()
	tomorrow := began.Add(24 * time.Hour).Truncate(time.Second)
	job := b.cfg.noop(appWaiting)
	job.Schedule = xxljob.FixedRate(24 * time.Hour)
	_, err := addJobs(ctx, st.store, out.Jobs, job, func(i int) time.Time {
		return tomorrow.Add((time.Duration(i) * time.Hour / time.Duration(out.Jobs)).Truncate(time.Millisecond))
	})
	if err != nil {
		return err
	}
	out.AddSeconds = time.Since(began).Seconds()
	return st.settle(ctx)
}

// settleIn is how long after its start a scheduler is left alone before it is idle.
const settleIn = 2 * time.Second

// idle measures while nothing is due, for as long as the load lasts later, but for ten seconds
// at most.
func (b *bench) idle(ctx context.Context, out *SparseReport, before uint64) error {
	if err := sleep(ctx, settleIn); err != nil {
		return err
	}
	out.HeapPerJob = (float64(liveHeap()) - float64(before)) / float64(out.Jobs)
	b.say("measuring while nothing is due")
	from := b.meter.Now(ctx)
	if err := sleep(ctx, min(b.cfg.Duration, 10*time.Second)); err != nil {
		return err
	}
	used := from.To(b.meter.Now(ctx))
	out.IdleCores = used.OwnCPU.Per(used.Elapsed.Seconds())
	out.IdleServerCores = used.ServerCPU.Per(used.Elapsed.Seconds())
	return nil
}

// liveHeap is the heap without garbage.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools held is gone by the second
	return measure.Heap()
}
