package scenario_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// TestHangingExecutor lets one app, with 1,000 due runs, hang for 30 s in every
// call: the runs of another app behind a remote-like executor, and those of the
// scheduler's own, are not later by a millisecond.
func TestHangingExecutor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "a", j)
		hung := &stage.SlowExecutor{Of: "hung", Delay: func(wire.TriggerRequest) time.Duration { return 30 * time.Second }}
		quick := &stage.SlowExecutor{Of: "quick", Delay: func(wire.TriggerRequest) time.Duration { return time.Millisecond }}
		stage.Must(t, n.Attach(hung))
		stage.Must(t, n.Attach(quick))
		at := time.Now().Add(10 * time.Second)
		for i := range 1000 {
			_, err := n.AddJob(t.Context(), xxljob.Job{App: "hung", Name: fmt.Sprint(i), Handler: "work", Schedule: xxljob.At(at)})
			stage.Must(t, err)
		}
		other, err := n.AddJob(t.Context(), xxljob.Job{App: "quick", Name: "quick", Handler: "work", Schedule: xxljob.Cron("* * * * * ?")})
		stage.Must(t, err)
		own := stage.AddSeconds(t, n, 3)
		from := time.Now()
		time.Sleep(60 * time.Second)
		to := time.Now()
		time.Sleep(30 * time.Minute) // the hanging app gets through its runs
		stage.RequireEnded(t, st)
		stage.Stop(t, n)
		if got := stage.AuditSeconds(t, st, j, own, from, to); got != (stage.Audit{}) {
			t.Errorf("own executor: %+v", got)
		}
		for _, s := range j.All() {
			if !s.At.Equal(s.Due) {
				t.Errorf("a run of the own executor due %v was started at %v", s.Due, s.At)
			}
		}
		quick.Mu.Lock()
		defer quick.Mu.Unlock()
		calls := quick.Lanes[other.ID]
		for i, at := range calls {
			if want := from.Add(time.Duration(i+1) * time.Second); !at.Equal(want) {
				t.Fatalf("run %d of the quick app was triggered at %v, want %v", i, at, want)
			}
		}
		if len(calls) < 60 {
			t.Errorf("%d runs of the quick app", len(calls))
		}
		hung.Mu.Lock()
		defer hung.Mu.Unlock()
		if hung.Most > 50 {
			t.Errorf("%d calls of the hanging executor at once, a quarter of the lane is 50", hung.Most)
		}
		if len(hung.Lanes) != 1000 {
			t.Errorf("%d of 1,000 jobs of the hanging app were triggered", len(hung.Lanes))
		}
	})
}

// TestHangingAddress lets one node's executor hang for 30 s: the runs that go to
// the app's executors on other nodes are not later.
func TestHangingAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		a, b := stage.StartNode(t, st, "a", j), stage.StartNode(t, st, "b", j)
		hung := &stage.SlowExecutor{Of: "both", Delay: func(wire.TriggerRequest) time.Duration { return 30 * time.Second }}
		quick := &stage.SlowExecutor{Of: "both", Delay: func(wire.TriggerRequest) time.Duration { return 0 }}
		stage.Must(t, a.Attach(hung))
		stage.Must(t, b.Attach(quick))
		time.Sleep(10 * time.Second)
		from := time.Now()
		for i := range 40 {
			_, err := a.AddJob(t.Context(), xxljob.Job{App: "both", Name: fmt.Sprint(i), Handler: "work", Route: "ROUND", Schedule: xxljob.Cron("* * * * * ?")})
			stage.Must(t, err)
		}
		time.Sleep(20 * time.Second)
		quick.Mu.Lock()
		late, calls := 0, 0
		for _, times := range quick.Lanes {
			for _, at := range times {
				calls++
				if at.Sub(from)%time.Second != 0 {
					late++
				}
			}
		}
		quick.Mu.Unlock()
		if late > 0 || calls < 40*18/2 {
			t.Errorf("the quick address: %d calls, %d late", calls, late)
		}
		stage.Must(t, stopJobs(t, a, st))
		time.Sleep(time.Hour)
		stage.RequireEnded(t, st)
		stage.Stop(t, a, b)
	})
}

func stopJobs(t *testing.T, s xxljob.Scheduler, st xxljob.Store) error {
	jobs, err := st.Jobs(t.Context(), xxljob.JobFilter{Stopped: new(false), Limit: 1000})
	for _, j := range jobs {
		if err == nil {
			err = s.StopJob(t.Context(), j.ID)
		}
	}
	return err
}

// TestSlowLane moves a job to the slow lane after more than ten triggers of
// over 500 ms in a minute, and back when the minute is over. The lanes have room
// for one trigger an address (a quarter of four), so that two jobs run at once
// only in different lanes.
func TestSlowLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, j := memory.New(), &stage.Journal{}
		n := stage.StartNode(t, st, "a", j, func(c *xxljob.Config) { c.Limits.FastLane, c.Limits.SlowLane = 4, 4 })
		e := &stage.SlowExecutor{Of: "x"}
		var slow, quick int64
		e.Delay = func(r wire.TriggerRequest) time.Duration {
			if r.JobID == slow {
				return 501 * time.Millisecond
			}
			return time.Millisecond
		}
		stage.Must(t, n.Attach(e))
		add := func(name string) int64 {
			job, err := n.AddJob(t.Context(), xxljob.Job{App: "x", Name: name, Handler: "work", Stopped: true, Schedule: xxljob.Cron("* * * * * ?")})
			stage.Must(t, err)
			return job.ID
		}
		slow, quick = add("slow"), add("quick")
		// At a whole minute, both are triggered together each second: the slow one
		// first. While it is in the fast lane the quick one waits for it.
		lateness := func(second int) time.Duration {
			e.Mu.Lock()
			defer e.Mu.Unlock()
			calls := e.Lanes[quick]
			return calls[second].Sub(calls[second].Truncate(time.Second))
		}
		for range 75 {
			for _, id := range []int64{slow, quick} {
				_, err := n.Trigger(t.Context(), id, xxljob.Trigger{})
				stage.Must(t, err)
				synctest.Wait()
			}
			time.Sleep(time.Second)
		}
		for second := range 75 {
			want := 501 * time.Millisecond
			if second >= 11 && second < 60 || second >= 71 {
				want = 0
			}
			if got := lateness(second); got != want {
				t.Errorf("second %d: the quick job waited %v, want %v", second, got, want)
			}
		}
		stage.Stop(t, n)
	})
}

// TestSlowExecutorThatReportsFirst: an executor that reports a run's result before it has
// answered its trigger is found slow like any other.
func TestSlowExecutorThatReportsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := stage.StartNode(t, memory.New(), "a", &stage.Journal{}, func(c *xxljob.Config) { c.Limits.FastLane, c.Limits.SlowLane = 4, 4 })
		var slow int64
		var quick []time.Duration
		stage.Must(t, n.Attach(&stage.UserExecutor{Of: "x", OnRun: func(ctx context.Context, admin wire.Admin, r wire.TriggerRequest) (wire.Return, error) {
			if r.JobID == slow {
				time.Sleep(501 * time.Millisecond)
			} else {
				quick = append(quick, time.Since(time.Now().Truncate(time.Second)))
			}
			_, err := admin.Callback(ctx, []wire.CallbackRequest{{LogID: r.LogID, HandleCode: 200}})
			return wire.Success(), err
		}}))
		first, err := n.AddJob(t.Context(), xxljob.Job{App: "x", Name: "slow", Handler: "work"})
		stage.Must(t, err)
		second, err := n.AddJob(t.Context(), xxljob.Job{App: "x", Name: "quick", Handler: "work"})
		stage.Must(t, err)
		slow = first.ID
		for range 20 {
			stage.Trigger(t, n, first)
			synctest.Wait()
			stage.Trigger(t, n, second)
			time.Sleep(time.Second)
		}
		stage.Stop(t, n)
		for i, late := range quick {
			if want := 501 * time.Millisecond; i < 11 && late != want || i >= 11 && late != 0 {
				t.Errorf("second %d: the quick job waited %v, want %v in the first eleven and 0 then", i, late, want)
			}
		}
	})
}

// TestHerdThroughNarrowLanes runs 20,000 jobs that are due at once through lanes
// of ten: all run, and memory stays bounded.
func TestHerdThroughNarrowLanes(t *testing.T) {
	jobs := 20_000
	if stage.Detector {
		jobs = 7_000 // more than a scan finds
	}
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		n := stage.StartNode(t, st, "a", &stage.Journal{}, func(c *xxljob.Config) { c.Limits.FastLane, c.Limits.SlowLane = 10, 10 })
		e := &stage.SlowExecutor{Of: "x", Delay: func(wire.TriggerRequest) time.Duration { return time.Millisecond }}
		stage.Must(t, n.Attach(e))
		synctest.Wait() // it has set the store up
		at := time.Now().Add(time.Minute)
		for i := range jobs {
			_, err := st.AddJob(t.Context(), xxljob.Job{App: "x", Key: fmt.Sprint(i), Name: "job", Handler: "work", Route: "FIRST",
				Block: "SERIAL_EXECUTION", GlueType: "BEAN", Misfire: "DO_NOTHING", Schedule: xxljob.At(at), Next: at}, nil)
			stage.Must(t, err)
		}
		before := stage.Heap()
		time.Sleep(time.Minute + time.Millisecond)
		synctest.Wait()
		t.Logf("heap while %d runs are due: %d MiB more than before, %d bytes a run", jobs, (stage.Heap()-before)>>20, (stage.Heap()-before)/int64(jobs))
		time.Sleep(time.Hour)
		e.Mu.Lock()
		triggered, most := len(e.Lanes), e.Most
		e.Mu.Unlock()
		if triggered != jobs || most > 2 {
			t.Errorf("%d of %d jobs were triggered, %d at once; a quarter of the lane is 2", triggered, jobs, most)
		}
		if succeeded := stage.CountStates(stage.AllRuns(t, st))[xxljob.StateSucceeded]; succeeded != jobs {
			t.Errorf("%d of %d runs succeeded", succeeded, jobs)
		}
		stage.Stop(t, n)
	})
}
