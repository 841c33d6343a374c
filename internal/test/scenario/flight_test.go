package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/bent"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestSerialBroadcastWaits: A serial broadcast waits while any part of the one before still runs, also where
// that is not the first.
func TestSerialBroadcastWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		var n atomic.Int64
		a := stage.StartNode(t, bent.StoreOf(st, startGuard{st, &n}), "a", j, oneShard)
		time.Sleep(time.Second)
		b := stage.StartNode(t, st, "b", j, oneShard)
		stage.Must(t, a.Handle("bc", func(context.Context, *xxljob.Task) error { return nil }))
		stage.Must(t, b.Handle("bc", func(context.Context, *xxljob.Task) error { time.Sleep(5 * time.Second); return nil }))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "bc", Handler: "bc", Route: "SHARDING_BROADCAST"})
		stage.Must(t, err)
		stage.Trigger(t, a, job)
		time.Sleep(time.Second)
		stage.WaitFor(t, a, stage.Trigger(t, a, job), time.Minute)
		time.Sleep(time.Minute)
		if n.Load() > 100 {
			t.Errorf("%d calls of Start for two triggers", n.Load())
		}
		stage.Stop(t, a, b)
	})
}

// startGuard counts the calls of Start, and slows them once there are too many.
type startGuard struct {
	st xxljob.Store
	n  *atomic.Int64
}

func (s startGuard) Start(ctx context.Context, dst []store.Started, st []store.Start) ([]store.Started, error) {
	if s.n.Add(1) > 10_000 {
		time.Sleep(time.Second)
	}
	return s.st.Start(ctx, dst, st)
}

// afterStore lets time pass between a call's effect and its answer.
type afterStore struct {
	st     xxljob.Store
	settle time.Duration
}

func (s afterStore) Settle(ctx context.Context, v []store.Verdict) ([]xxljob.Run, error) {
	runs, err := s.st.Settle(ctx, v)
	time.Sleep(s.settle)
	return runs, err
}

// TestSettleKeepsNewFlight: A run that this node has put back may be found by its scan, and started here,
// before the lease loop has the answer of Settle: the new flight stays.
func TestSettleKeepsNewFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a := stage.StartNode(t, bent.StoreOf(st, afterStore{st, 100 * time.Millisecond}), "a", j, oneShard)
		time.Sleep(time.Second)
		b := stage.StartNode(t, st, "b", j, oneShard)
		stage.Must(t, b.Handle("slow", func(context.Context, *xxljob.Task) error { return nil }))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "slow", Handler: "slow"})
		stage.Must(t, err)
		stage.Must(t, a.Handle("nothing", func(context.Context, *xxljob.Task) error { return nil }))
		b.Pause() // dies with the run in its inbox
		id := stage.Trigger(t, a, job)
		time.Sleep(time.Second)
		stage.Must(t, a.Handle("slow", func(context.Context, *xxljob.Task) error { time.Sleep(time.Second); return nil }))
		stage.WaitFor(t, a, id, 3*time.Minute)
		b.Resume()
		stage.StopShort(a)
		stage.StopShort(b)
	})
}

// lateStore gives up on a call before it takes effect.
type lateStore struct {
	st          xxljob.Store
	start, take *atomic.Bool
}

func (s lateStore) Start(ctx context.Context, dst []store.Started, st []store.Start) ([]store.Started, error) {
	if s.start.Swap(false) {
		time.AfterFunc(200*time.Millisecond, func() { s.st.Start(context.Background(), nil, st) })
		return nil, errors.New("connection lost")
	}
	time.Sleep(300 * time.Millisecond)
	return s.st.Start(ctx, dst, st)
}

func (s lateStore) Take(ctx context.Context, inc string, ids []int64) ([]xxljob.Run, error) {
	if s.take.Swap(false) {
		time.AfterFunc(200*time.Millisecond, func() { s.st.Take(context.Background(), inc, ids) })
		return nil, errors.New("connection lost")
	}
	return s.st.Take(ctx, inc, ids)
}

// TestLateStart: A Start that returned an error may take effect after the row was read again: the
// run is run.
func TestLateStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		late := lateStore{st, &atomic.Bool{}, &atomic.Bool{}}
		a := stage.StartNode(t, bent.StoreOf(st, late), "a", j, oneShard)
		time.Sleep(time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "work"})
		stage.Must(t, err)
		late.start.Store(true)
		stage.WaitFor(t, a, stage.Trigger(t, a, job), 5*time.Minute)
		stage.StopShort(a)
	})
}

func TestLateTake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		late := lateStore{st, &atomic.Bool{}, &atomic.Bool{}}
		a := stage.StartNode(t, st, "a", j, oneShard)
		time.Sleep(time.Second)
		b := stage.StartNode(t, bent.StoreOf(st, late), "b", j, oneShard)
		stage.Must(t, b.Handle("onb", func(context.Context, *xxljob.Task) error { return nil }))
		time.Sleep(5 * time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "onb"})
		stage.Must(t, err)
		late.take.Store(true)
		stage.WaitFor(t, a, stage.Trigger(t, a, job), 5*time.Minute)
		stage.StopShort(a)
		stage.StopShort(b)
	})
}

// TestAwayRunEvicted: A node that was away while the record of an ended run was dropped does not wait for
// that run.
func TestAwayRunEvicted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(memory.Retain(20, 1000)), &stage.Journal{}
		a := stage.StartNode(t, st, "a", j, oneShard)
		time.Sleep(time.Second)
		b := stage.StartNode(t, st, "b", j, oneShard)
		stage.Must(t, b.Handle("onb", func(_ context.Context, task *xxljob.Task) error {
			time.Sleep(600 * time.Millisecond)
			j.Note("b", task)
			return nil
		}))
		time.Sleep(5 * time.Second)
		_, err := a.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "onb", Schedule: xxljob.Cron("* * * * * ?")})
		stage.Must(t, err)
		time.Sleep(5*time.Second + 300*time.Millisecond)
		a.Pause()
		time.Sleep(60 * time.Second)
		a.Resume()
		time.Sleep(60 * time.Second)
		before := len(j.All())
		time.Sleep(60 * time.Second)
		if n := len(j.All()) - before; n < 59 {
			t.Errorf("%d runs in the last minute", n)
		}
		stage.Stop(t, a, b)
	})
}

// TestUnknownBroadcast: the Start of a broadcast has an unknown outcome, and its first part, at another
// node, has ended by the time it is read: the part here is run all the same.
func TestUnknownBroadcast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		two := func(c *xxljob.Config) { c.Cluster.Shards = 2 }
		a := stage.StartNode(t, st, "a", j, two)
		time.Sleep(time.Second)
		b := stage.StartNode(t, st, "b", j, two)
		time.Sleep(5 * time.Second)
		b.Faults.Inject("Start", storetest.Fault{After: true, Calls: 1})
		for i := range 2 { // one of them is of a shard of b's
			job, err := a.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint(i), Handler: "work", Route: "SHARDING_BROADCAST"})
			stage.Must(t, err)
			stage.Trigger(t, a, job)
		}
		time.Sleep(5 * time.Minute)
		for _, r := range stage.AllRuns(t, st) {
			if !r.State.Ended() {
				t.Errorf("run %d (%v) is %v", r.ID, r.Sharding, r.State)
			}
		}
		stage.StopShort(a)
		stage.StopShort(b)
	})
}

// TestStoppedByPlan: A claim that stops a job cancels nothing; what it had planned before is cancelled
// when it comes up.
func TestStoppedByPlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		var n atomic.Int64
		a := stage.StartNode(t, bent.StoreOf(st, startGuard{st, &n}), "a", j, oneShard)
		time.Sleep(time.Second)
		job, err := a.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "work", Schedule: xxljob.Cron("* * * * * ?")})
		stage.Must(t, err)
		time.Sleep(2500 * time.Millisecond)
		job, err = st.Job(t.Context(), job.ID)
		stage.Must(t, err)
		v, err := st.Beat(t.Context(), "obs", nil)
		stage.Must(t, err)
		// what the planner asks for when the schedule cannot be evaluated any more
		_, err = st.Claim(context.Background(), nil, []store.Plan{{JobID: job.ID, Shard: 0, Epoch: v.Shards[0].Epoch, Version: job.Version, Due: job.Next, Stop: "broken"}})
		stage.Must(t, err)
		time.Sleep(20 * time.Second)
		if n.Load() > 100 {
			t.Errorf("%d calls of Start", n.Load())
		}
		stage.StopShort(a)
	})
}
