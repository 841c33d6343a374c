package xxljob

// Runs at other nodes, which this node has started there or somebody here waits for. Input:
// signals of the store. Output: that they were taken, have ended or are planned again, to
// the books.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

// watcher asks the store about runs at other nodes.
type watcher struct {
	*shared
	engine *engine
	teller *teller
	desk   *logDesk

	jobsRead time.Time // of the loop: see watchJobs
}

// watchDuty notices the end of runs at other nodes: of those that this node has
// started there, and of those that somebody here waits for. Those who wait for
// lines of a log it tells of each signal, which may stand for their answer.
func (w *watcher) watchDuty(signals store.Signals) duty {
	return duty{
		what: "looking after runs at other nodes", wakes: []<-chan struct{}{w.life.wakes.watch, signals.Ended},
		once: func(ctx context.Context) (time.Duration, error) {
			w.desk.tell()
			ids := w.engine.awayIDs()
			wait := time.Duration(forever)
			if poll, _ := w.store.Poll(); len(ids) > 0 && poll > 0 {
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
	retries := w.engine.awaitedRetries()
	if len(retries) == 0 {
		return forever, nil
	}
	if ago := time.Since(w.jobsRead); ago < awaitedJobsEvery {
		return awaitedJobsEvery - ago, nil
	}
	jobs, err := w.readJobs(ctx, jobsOf(retries))
	w.engine.jobs.remember(jobs)
	if err != nil {
		return 0, err
	}
	for _, r := range retries {
		if job := jobs[r.JobID]; job == nil || !mustNotStart(&r, job) {
			continue
		}
		if _, err := call(ctx, func(ctx context.Context) (Run, error) { return w.store.Kill(ctx, r.ID, jobIsStopped) }); err != nil && !isNotFound(err) {
			return 0, err
		}
	}
	w.jobsRead = time.Now()
	return awaitedJobsEvery, nil
}

// watch asks the store about runs at other nodes.
func (w *watcher) watch(ctx context.Context, ids []int64) error {
	for len(ids) > 0 {
		page := ids[:min(len(ids), storeBatch)]
		ids = ids[len(page):]
		runs, err := call(ctx, func(ctx context.Context) ([]Run, error) { return w.store.RunsByID(ctx, page) })
		if err != nil {
			return err
		}
		there := make(map[int64]bool, len(runs))
		for _, r := range runs {
			there[r.ID] = true
			if w.engine.isAwaited(r.ID) {
				if r.State == StatePlanned {
					continue
				}
				w.engine.passed(r.ID)
			}
			switch {
			case r.State.Ended():
				w.engine.land(r.ID)
				w.engine.waiters.notify(&r)
			case r.State == StatePlanned:
				w.teller.found([]Run{r}) // before a scan did: somebody waits for it
				w.engine.plannedAgain(r, false)
			case !inTransit(r):
				w.engine.taken(r)
			}
		}
		for _, id := range page {
			if !there[id] { // it is over, and its record dropped
				w.engine.land(id)
				w.engine.passed(id)
				w.engine.waiters.notify(&Run{ID: id})
			}
		}
	}
	return nil
}

// goneAway has the store asked about a run at another node: it may have been taken or have
// ended before this node knew that it waits for that, and others may wait for it.
func (w *watcher) goneAway(r Run) {
	w.life.wakes.watch.poke()
	w.life.wakes.transit.pokeIf(w.engine.room.waits(lotOrderOf(r.JobID)))
}

// transitPoll is how often the store is asked about a run in transit that others wait
// for: no signal says that a run was taken.
const transitPoll = 50 * time.Millisecond

// transitLoop asks about runs that serial ones wait for, as long as some do, until ctx ends.
// What comes to wait meanwhile is asked about with the next look: many may, and each look is
// a call of the store.
func (w *watcher) transitLoop(ctx context.Context) {
	backoff := backoff{log: w.log, what: "looking after runs that others wait for"}
	for sleep(ctx, forever, w.life.wakes.transit) {
		for ids := w.engine.inTheWay(); len(ids) > 0; ids = w.engine.inTheWay() {
			pause := transitPoll * time.Duration(1+len(ids)/storeBatch) // the more there are the more it costs
			if backoff.failed(ctx, w.watch(ctx, ids)) {
				pause = backoff.delay()
			}
			if !sleep(ctx, pause) {
				return
			}
		}
	}
}
