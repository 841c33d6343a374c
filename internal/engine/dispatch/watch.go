package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/runlog"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Runs at other nodes, which this node has started there or somebody here waits for. Input:
// signals of the store. Output: that they were taken, have ended or are planned again, to
// the books.

// Watcher asks the store about runs at other nodes.
type Watcher struct {
	*core.Core
	Engine *queue.Queue
	Teller *events.Bus
	Desk   *runlog.Desk

	jobsRead time.Time // of the loop: see watchJobs
}

// WatchDuty notices the end of runs at other nodes: of those that this node has
// started there, and of those that somebody here waits for. Those who wait for
// lines of a log it tells of each signal, which may stand for their answer.
func (w *Watcher) WatchDuty(signals store.Signals) loop.Duty {
	return loop.Duty{
		What: "looking after runs at other nodes", Wakes: []<-chan struct{}{w.Life.Wakes.Watch, signals.Ended},
		Once: func(ctx context.Context) (time.Duration, error) {
			w.Desk.Tell()
			ids := w.Engine.AwayIDs()
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
func (w *Watcher) watchJobs(ctx context.Context) (time.Duration, error) {
	retries := w.Engine.AwaitedRetries()
	if len(retries) == 0 {
		return loop.Forever, nil
	}
	if ago := time.Since(w.jobsRead); ago < awaitedJobsEvery {
		return awaitedJobsEvery - ago, nil
	}
	jobs, err := w.ReadJobs(ctx, core.JobsOf(retries))
	w.Engine.Jobs.Remember(jobs)
	if err != nil {
		return 0, err
	}
	for _, r := range retries {
		if job := jobs[r.JobID]; job == nil || !mustNotStart(&r, job) {
			continue
		}
		if _, err := loop.Call(ctx, func(ctx context.Context) (store.Run, error) { return w.Store.Kill(ctx, r.ID, core.JobIsStopped) }); err != nil && !errs.IsNotFound(err) {
			return 0, err
		}
	}
	w.jobsRead = time.Now()
	return awaitedJobsEvery, nil
}

// watch asks the store about runs at other nodes.
func (w *Watcher) watch(ctx context.Context, ids []int64) error {
	for len(ids) > 0 {
		page := ids[:min(len(ids), loop.StoreBatch)]
		ids = ids[len(page):]
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return w.Store.RunsByID(ctx, page) })
		if err != nil {
			return err
		}
		there := make(map[int64]bool, len(runs))
		for _, r := range runs {
			there[r.ID] = true
			if w.Engine.IsAwaited(r.ID) {
				if r.State == store.StatePlanned {
					continue
				}
				w.Engine.Passed(r.ID)
			}
			switch {
			case r.State.Ended():
				w.Engine.Land(r.ID)
				w.Engine.Waiters.Notify(&r)
			case r.State == store.StatePlanned:
				w.Teller.Found([]store.Run{r}) // before a scan did: somebody waits for it
				w.Engine.PlannedAgain(r, false)
			case !queue.InTransit(r):
				w.Engine.Taken(r)
			}
		}
		for _, id := range page {
			if !there[id] { // it is over, and its record dropped
				w.Engine.Land(id)
				w.Engine.Passed(id)
				w.Engine.Waiters.Notify(&store.Run{ID: id})
			}
		}
	}
	return nil
}

// goneAway has the store asked about a run at another node: it may have been taken or have
// ended before this node knew that it waits for that, and others may wait for it.
func (w *Watcher) goneAway(r store.Run) {
	w.Life.Wakes.Watch.Poke()
	w.Life.Wakes.Transit.PokeIf(w.Engine.Room.Waits(queue.LotOrderOf(r.JobID)))
}

// transitPoll is how often the store is asked about a run in transit that others wait
// for: no signal says that a run was taken.
const transitPoll = 50 * time.Millisecond

// TransitLoop asks about runs that serial ones wait for, as long as some do, until ctx ends.
// What comes to wait meanwhile is asked about with the next look: many may, and each look is
// a call of the store.
func (w *Watcher) TransitLoop(ctx context.Context) {
	backoff := loop.Backoff{Log: w.Logger, What: "looking after runs that others wait for"}
	for loop.Sleep(ctx, loop.Forever, w.Life.Wakes.Transit) {
		for ids := w.Engine.InTheWay(); len(ids) > 0; ids = w.Engine.InTheWay() {
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

// How far runs are. Input: what executors of this process say, and those elsewhere with their
// logs. Output: the runs' rows, all that is new in one call a second at most. Nobody waits for
// it, and it is best effort: what a handler has said last goes with its result, by finish.go.

const (
	// progressEvery is the time between two calls of the store.
	progressEvery = time.Second
	// maxProgress bounds the runs whose progress waits to be stored. What is said of
	// further ones is dropped.
	maxProgress = 20_000
)

// Progress stores how far runs are. It is safe for concurrent use.
type Progress struct {
	*core.Core
	engine *queue.Queue

	mu   sync.Mutex
	news map[int64]store.Progress // guarded by mu: what is not stored yet, by run
	wake loop.Wake
}

func NewProgress(s *core.Core, e *queue.Queue) *Progress {
	return &Progress{Core: s, engine: e, news: map[int64]store.Progress{}, wake: loop.NewWake()}
}

// attached takes in what an executor of this process says of a run. It returns at once.
func (p *Progress) attached(logID, logDateTim int64, said wire.Progress) {
	f := p.engine.Under.Flight(logID)
	if f == nil || f.Remote || !f.Run.IsOf(logDateTim) {
		return
	}
	percent, text := core.BoundProgress(said)
	p.add(store.Progress{RunID: logID, Incarnation: mustLocal(f.Run.Address), Token: f.Run.Token, Percent: percent, Text: text}, true)
}

// Elsewhere takes in what an executor elsewhere has said with the log of a run, which was
// read before it was asked.
func (p *Progress) Elsewhere(run store.Run, said wire.Progress) {
	percent, text := core.BoundProgress(said)
	if said == (wire.Progress{}) || percent == run.Progress && text == run.ProgressText || run.State.Ended() || !p.Life.Running() {
		return
	}
	p.add(store.Progress{RunID: run.ID, Token: run.Token, Percent: percent, Text: text}, true)
}

// add has progress stored. What is not newer gives way to what is there.
func (p *Progress) add(said store.Progress, newer bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, waits := p.news[said.RunID]; waits && !newer || !waits && len(p.news) >= maxProgress {
		return
	}
	p.news[said.RunID] = said
	p.wake.Poke()
}

// take returns what is to be stored: of runs of this process, those that are under way.
func (p *Progress) take() []store.Progress {
	p.mu.Lock()
	news := p.news
	p.news = map[int64]store.Progress{}
	p.mu.Unlock()
	list := make([]store.Progress, 0, len(news))
	for _, said := range news {
		if said.Incarnation == "" || p.engine.Under.Flight(said.RunID) != nil {
			list = append(list, said)
		}
	}
	return list
}

// Loop stores what is new, until ctx ends. What the store has not taken is tried again a
// second later, unless there is something newer by then.
func (p *Progress) Loop(ctx context.Context) {
	backoff := loop.Backoff{Log: p.Logger, What: "storing the progress of runs"}
	for loop.Sleep(ctx, loop.Forever, p.wake) {
		list := p.take()
		if backoff.Failed(ctx, p.storeAll(ctx, list)) {
			for _, said := range list {
				p.add(said, false)
			}
		}
		if !loop.Sleep(ctx, progressEvery) {
			return
		}
	}
}

func (p *Progress) storeAll(ctx context.Context, list []store.Progress) error {
	for len(list) > 0 {
		page := list[:min(len(list), loop.StoreBatch)]
		list = list[len(page):]
		if _, err := loop.Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.Store.SetProgress(ctx, page) }); err != nil {
			return err
		}
	}
	return nil
}
