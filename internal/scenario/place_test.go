package scenario_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestAPlaceIsForAHandler: where there is one place, the next run begins while the result of the
// one before is stored, unless it is one of the same serial job: that waits for the end.
func TestAPlaceIsForAHandler(t *testing.T) {
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
