package scenario_test

// Runs of a serial job that wait behind a retry: what they cost, what lets them pass, and the
// end of the whole chain.

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/store/storetest"
)

// failsFor fails runs with this parameter.
func failsFor(_ context.Context, task *xxljob.Task) error {
	if task.Param == "fails" {
		return errBoom
	}
	return nil
}

// triggerFailing triggers a run that failsFor fails.
func triggerFailing(t *testing.T, s xxljob.Scheduler, job xxljob.Job) int64 {
	t.Helper()
	param := "fails"
	id, err := s.TriggerOne(t.Context(), job.ID, xxljob.Trigger{Param: &param})
	stage.Must(t, err)
	return id
}

// TestManyBehindARetry: however many runs wait behind a retry, each attempt costs a few calls of
// the store, and other jobs are not late for it.
func TestManyBehindARetry(t *testing.T) {
	t.Parallel()
	for _, waiting := range []int{0, 1000} {
		t.Run(fmt.Sprint(waiting), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var late atomic.Int64 // how often
				f := startFailing(t, memory.New(), "a", func(ctx context.Context, task *xxljob.Task) error {
					if task.JobName == "other" && time.Since(task.ScheduledAt) > 50*time.Millisecond {
						late.Add(1)
					}
					return failsFor(ctx, task)
				})
				job, err := f.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "try", Retries: 200, RetryBackoff: xxljob.Backoff{First: time.Second}})
				stage.Must(t, err)
				triggerFailing(t, f, job)
				time.Sleep(100 * time.Millisecond)
				for range waiting {
					stage.Trigger(t, f, job)
				}
				f.Faults.Inject("Start", storetest.Fault{Delay: 2 * time.Millisecond})
				_, err = f.AddJob(t.Context(), xxljob.Job{Name: "other", Handler: "try", Schedule: xxljob.FixedRate(time.Second)})
				stage.Must(t, err)
				before := f.Faults.Calls("Start")
				time.Sleep(100 * time.Second)
				if calls := f.Faults.Calls("Start") - before; calls > 500 {
					t.Errorf("%d calls of Start for 100 attempts and 100 runs of another job", calls)
				}
				if n := late.Load(); n > 0 {
					t.Errorf("another job was late %d times", n)
				}
				stage.Stop(t, f.Node)
			})
		})
	}
}

// TestAnotherNodesEditLetsPass: RetryAside that is set by whichever node lets those pass that
// wait, soon.
func TestAnotherNodesEditLetsPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		f, g := startFailing(t, st, "a", failsFor), startFailing(t, st, "b", failsFor)
		time.Sleep(30 * time.Second)
		for i := range 8 { // in shards of both nodes
			job, err := f.AddJob(t.Context(), xxljob.Job{Name: fmt.Sprint("j", i), Handler: "try", Retries: 1, RetryBackoff: xxljob.Backoff{First: 10 * time.Hour}})
			stage.Must(t, err)
			triggerFailing(t, f, job)
			time.Sleep(time.Second)
			later := stage.Trigger(t, f, job)
			time.Sleep(time.Minute)
			requireTree(t, "the later one waits, "+job.Name, st, later, "0 planned")
			job.RetryAside = true
			_, err = []xxljob.Scheduler{f.Scheduler, g.Scheduler}[i%2].UpdateJob(t.Context(), job)
			stage.Must(t, err)
			time.Sleep(10 * time.Second)
			requireTree(t, "the later one, "+job.Name, st, later, "0 succeeded")
		}
		stage.Stop(t, f.Node, g.Node)
	})
}

// TestAStopThatLeavesARetry: a job that stops by itself cancels nothing; its waiting retry, which
// is not to be started any more, keeps nobody waiting until it is due.
func TestAStopThatLeavesARetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		f := startFailing(t, st, "a", failsFor)
		job, err := f.AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "try", Param: "fails", Schedule: xxljob.Cron("0 0 * * * ?"), Retries: 1, RetryBackoff: xxljob.Backoff{First: 10 * time.Hour}})
		stage.Must(t, err)
		time.Sleep(time.Hour + time.Minute)
		first := stage.AllRuns(t, st)[0].ID
		requireTree(t, "the schedule's", st, first, "0 failed", "1 planned")
		well := ""
		byHand, err := f.TriggerOne(t.Context(), job.ID, xxljob.Trigger{Param: &well})
		stage.Must(t, err)
		time.Sleep(time.Second)
		requireTree(t, "triggered by hand", st, byHand, "0 planned")
		_, err = st.EditJob(t.Context(), job.ID, xxljob.Edit{Verb: "stop", Change: func(j *xxljob.Job) (bool, error) { j.Stopped = true; return false, nil }})
		stage.Must(t, err)
		time.Sleep(10 * time.Second)
		requireTree(t, "the schedule's", st, first, "0 failed", "1 cancelled")
		requireTree(t, "triggered by hand", st, byHand, "0 succeeded")
		stage.Stop(t, f.Node)
	})
}

// TestKillOfARefusedBroadcast: a broadcast that was refused has no part; its retry is in parts,
// and a kill of the first run is meant for all of them.
func TestKillOfARefusedBroadcast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		hang := func(ctx context.Context, _ *xxljob.Task) error { <-ctx.Done(); return ctx.Err() }
		f, g := startFailing(t, st, "a", hang), startFailing(t, st, "b", hang)
		time.Sleep(30 * time.Second)
		job, err := stage.Elsewhere(t, st, "app").AddJob(t.Context(), xxljob.Job{Name: "j", Handler: "later", Route: xxljob.RouteShardingBroadcast, Retries: 2, RetryBackoff: xxljob.Backoff{First: time.Minute}})
		stage.Must(t, err)
		id := stage.Trigger(t, f, job)
		time.Sleep(time.Second)
		requireTree(t, "refused", st, id, "0 refused", "1 planned")
		stage.Must(t, f.Handle("later", hang))
		stage.Must(t, g.Handle("later", hang))
		time.Sleep(2 * time.Minute)
		requireTree(t, "in parts", st, id, "0 refused", "1 started", "1 started")
		stage.Must(t, f.Kill(t.Context(), id))
		time.Sleep(time.Hour)
		requireTree(t, "killed", st, id, "0 refused", "1 killed", "1 killed")
		stage.Stop(t, f.Node, g.Node)
	})
}
