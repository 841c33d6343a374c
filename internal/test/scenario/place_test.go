package scenario_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
	"github.com/xxljob/xxljob/wire"
)

// TestAPlaceIsForAHandler: where there is one place, the next run begins while the result of the
// one before is stored, unless it is one of the same serial job: that waits for the end.
func TestAPlaceIsForAHandler(t *testing.T) {
	t.Parallel()
	const work, storing = 100 * time.Millisecond, time.Second
	for name, same := range map[string]bool{"of another job": false, "of the same serial job": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &stage.Journal{}
				n := stage.NewNode(t, memory.New(), "a", j, func(c *xxljob.Config) { c.Executor.Places = 1 })
				stage.Must(t, n.Handle("slow", func(_ context.Context, task *xxljob.Task) error {
					j.Note("a", task)
					time.Sleep(work)
					return nil
				}))
				stage.Must(t, n.Start(context.Background()))
				n.Faults.Inject("Finish", storetest.Fault{Delay: storing})
				var jobs []int64
				for _, name := range []string{"one", "two"} {
					job, err := n.AddJob(t.Context(), xxljob.Job{Name: name, Handler: "slow", Block: xxljob.BlockSerial})
					stage.Must(t, err)
					jobs = append(jobs, job.ID)
				}
				if same {
					jobs[1] = jobs[0]
				}
				for _, id := range jobs {
					_, err := n.Trigger(t.Context(), id, xxljob.Trigger{})
					stage.Must(t, err)
				}
				time.Sleep(10 * time.Second)
				stage.Stop(t, n)
				calls := j.All()
				if len(calls) != 2 {
					t.Fatalf("%d handlers were called, want 2", len(calls))
				}
				if after := calls[1].At.Sub(calls[0].At); after < work || same != (after >= work+storing) {
					t.Errorf("the second handler was called %v after the first", after)
				}
			})
		})
	}
}

// TestPlacesBoundWhatIsStored: while results cannot be stored, at most as many runs more begin as
// there are places, be it that the store is slow or that others have locked the runs.
func TestPlacesBoundWhatIsStored(t *testing.T) {
	t.Parallel()
	const places, runs = 2, 50
	for name, fault := range map[string]storetest.Fault{
		"slow":   {Delay: 4 * time.Second},
		"locked": {Before: true, Err: store.ErrLocked},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := stage.NewNode(t, memory.New(), "a", &stage.Journal{})
				var called atomic.Int64
				e := &placed{stage.UserExecutor{Of: "user"}, places}
				e.OnRun = func(ctx context.Context, admin wire.Admin, r wire.TriggerRequest) (wire.Return, error) {
					called.Add(1)
					go admin.Callback(context.WithoutCancel(ctx), []wire.CallbackRequest{{LogID: r.LogID, HandleCode: wire.CodeSuccess}})
					return wire.Success(), nil
				}
				stage.Must(t, n.Attach(e))
				stage.Must(t, n.Start(context.Background()))
				mend := n.Faults.Inject("Finish", fault)
				for i := range runs {
					job, err := n.AddJob(t.Context(), xxljob.Job{App: "user", Name: fmt.Sprint("job ", i), Handler: "work"})
					stage.Must(t, err)
					_, err = n.Trigger(t.Context(), job.ID, xxljob.Trigger{})
					stage.Must(t, err)
				}
				time.Sleep(3 * time.Second)
				if c := called.Load(); c != 2*places {
					t.Errorf("%d runs have begun while no result was stored, want %d", c, 2*places)
				}
				mend()
				time.Sleep(time.Minute)
				if c := called.Load(); c != runs {
					t.Errorf("%d runs have begun in the end, want %d", c, runs)
				}
				stage.Stop(t, n)
			})
		})
	}
}

// placed is a user's executor that says how many places it has.
type placed struct {
	stage.UserExecutor
	places int
}

func (p *placed) Places() int { return p.places }
