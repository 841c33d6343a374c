package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/runlog"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Runs at other nodes, which this node has started there or somebody here waits for. Input:
// signals of the store. Output: that they were taken, have ended or are planned again, to
// the queue.

// watcher asks the store about runs at other nodes.
type watcher struct {
	*core.Core
	queue *queue.Queue
	bus   *events.Bus
	desk  *runlog.Desk

	jobsRead time.Time // of the loop: see watchJobs
}

// duty notices the end of runs at other nodes: of those that this node has
// started there, and of those that somebody here waits for. Those who wait for
// lines of a log it tells of each signal, which may stand for their answer.
func (w *watcher) duty(signals store.Signals) loop.Duty {
	return loop.Duty{
		What: "looking after runs at other nodes", Wakes: []<-chan struct{}{w.Life.Wakes.Watch, signals.Ended},
		Once: func(ctx context.Context) (time.Duration, error) {
			w.desk.Tell()
			ids := w.queue.RemoteIDs()
			wait := time.Duration(loop.Forever)
			if poll, _ := w.Store.Poll(); len(ids) > 0 && poll > 0 {
				wait = poll
			}
			again, err := w.watchJobs(ctx)
			if err != nil {
				return 0, err
			}
			return min(wait, again), w.watch(ctx, ids)
		},
	}
}

// awaitedJobsEvery is how often the definitions are read of jobs whose runs wait for a retry.
const awaitedJobsEvery = 2 * time.Second

// watchJobs reads these definitions anew, where it is time to, and returns in how long it is
// the next time: another node may have changed one so that the runs need not wait any more, or
// the job may have stopped without its retry, which would be found out when that is due.
func (w *watcher) watchJobs(ctx context.Context) (time.Duration, error) {
	retries := w.queue.AwaitedRetries()
	if len(retries) == 0 {
		return loop.Forever, nil
	}
	if ago := time.Since(w.jobsRead); ago < awaitedJobsEvery {
		return awaitedJobsEvery - ago, nil
	}
	jobs, err := w.ReadJobs(ctx, core.JobsOf(retries))
	w.queue.Jobs.Remember(jobs)
	if err != nil {
		return 0, err
	}
	for _, r := range retries {
		if job := jobs[r.JobID]; job == nil || !core.MustNotStart(&r, job) {
			continue
		}
		_, err := loop.Call(ctx, func(ctx context.Context) (store.Run, error) { return w.Store.Kill(ctx, r.ID, core.JobIsStopped) })
		switch {
		case errors.Is(err, store.ErrRefused): // it waits, as those do whose job is not stopped
			w.Core.Troubles.Refused(w.Clock.Now(), r.App, r.JobID, store.SeenRefusesCancel, r.ID, err)
		case err != nil && !errs.IsNotFound(err):
			return 0, err
		}
	}
	w.jobsRead = time.Now()
	return awaitedJobsEvery, nil
}

// watch asks the store about runs at other nodes.
func (w *watcher) watch(ctx context.Context, ids []int64) error {
	for page := range slices.Chunk(ids, loop.StoreBatch) {
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return w.Store.RunsByID(ctx, page) })
		if err != nil {
			return err
		}
		there := core.IdsOf(runs)
		for _, r := range runs {
			if r.State == store.StatePlanned {
				if w.queue.IsAwaited(r.ID) {
					continue
				}
				w.bus.Found([]store.Run{r}) // before a scan did: somebody waits for it
			}
			w.queue.Saw(&r)
		}
		for _, id := range page {
			if !there[id] {
				w.queue.SawGone(id)
			}
		}
	}
	return nil
}

// transitPoll is how often the store is asked about a run in transit that others wait
// for: no signal says that a run was taken.
const transitPoll = 50 * time.Millisecond

// transitLoop asks about runs that serial ones wait for, as long as some do, until ctx ends.
// What comes to wait meanwhile is asked about with the next look: many may, and each look is
// a call of the store.
func (w *watcher) transitLoop(ctx context.Context) {
	backoff := loop.Backoff{Log: w.Logger, What: "looking after runs that others wait for"}
	for loop.Sleep(ctx, loop.Forever, w.Life.Wakes.Transit) {
		for ids := w.queue.InTheWay(); len(ids) > 0; ids = w.queue.InTheWay() {
			pause := transitPoll * time.Duration(1+len(ids)/loop.StoreBatch) // the more there are the more it costs
			if backoff.Failed(ctx, w.watch(ctx, ids)) {
				pause = backoff.Delay()
			}
			if !loop.Sleep(ctx, pause) {
				return
			}
		}
	}
}
