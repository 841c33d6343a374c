package dispatch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"golang.org/x/sync/errgroup"
)

// One call of the store that starts many runs, and what each of its answers means.

// StartBatcher has the store start what is collected. It belongs to the start loop.
type StartBatcher struct {
	*core.Core
	Engine    *queue.Queue
	Calls     *StartCalls
	TakesBack *TakesBack
	Reads     *StartReads
	Memory    *registry.Memory
	Buffers   *StartBuffers
}

// startBatch asks the store and acts on each answer. locked reports that some
// rows have to be tried again after a pause. prompt says that how long the store takes
// tells how long before their time such runs are to be started.
func (b *StartBatcher) startBatch(ctx context.Context, batch []queue.Attempt, prompt bool) (locked bool, err error) {
	starts := b.Buffers.startsOf(batch)
	began := b.Calls.Fitness.Begin(&b.Calls.Fitness.Starts)
	answers, err := loop.Detached(ctx, func(ctx context.Context) ([]store.Started, error) {
		return b.Store.Start(ctx, b.Buffers.answers, starts)
	})
	b.Calls.Fitness.End(ctx, &b.Calls.Fitness.Starts, began, err)
	if b.Calls.Starting.Failed(ctx, err) {
		b.Buffers.drop() // the call may still be under way
		b.Calls.Doubts.start(batch)
		b.Calls.Doubts.lookNow()
		b.Calls.uncertain(ctx, batch)
		return false, nil
	}
	defer b.Buffers.answered(answers)
	acked := time.Now()
	if prompt {
		b.Engine.Lead.Sample(len(batch), acked.Sub(began))
	}
	for i := range answers {
		b.Calls.Doubts.received(answers[i].Siblings, 1) // a hook may take its time before they take off
	}
	b.Calls.Launcher.launchAll(batch, answers, b.Engine.TakeOffAll(batch, answers, began))
	var stale, busy []queue.Attempt
	for i, a := range batch {
		switch answers[i].Status {
		case store.StartOK:
			b.startedOK(a, &answers[i], began)
		case store.StartGone:
			b.Engine.LetGo(a)
			b.TakesBack.takeBack(answers[i].Run, a.Job, began)
		case store.StartStale:
			stale = append(stale, a)
			b.Engine.Retry(a, true)
		case store.StartBusy:
			if retry := answers[i].Run; retry.ID != 0 {
				b.Engine.AwaitRetry(a, retry)
				b.Life.Wakes.Watch.Poke()
				continue
			}
			busy = append(busy, a)
		case store.StartFenced:
			b.Engine.LetGo(a)
			b.Leases.Lose(int(a.Run.Shard), a.Start.Epoch)
			b.Life.Wakes.Lease.Poke()
		case store.StartNoNode:
			b.Memory.Forget()
			b.Life.Wakes.Lease.Poke() // it brings the news of the other nodes
			b.Engine.Rerouted(a)
			locked = true
		case store.StartLocked:
			locked = true
			b.LockedOut.Run(a.Run.ID, a.Run.Scheduled(), b.Clock.Now())
			b.Engine.Retry(a, false)
		}
	}
	// What is started is under way by now: the reads below hold up no handler.
	locked = b.Reads.awaitBlockers(ctx, busy) || locked
	return locked, b.Reads.readAgain(ctx, stale)
}

// startedOK goes on with a run that the store has marked: it is this process's
// to run, or waits in another node's inbox, or was refused.
func (b *StartBatcher) startedOK(a queue.Attempt, answer *store.Started, began time.Time) {
	if answer.Run.State.Ended() {
		b.Engine.GiveUp(a)
		b.Calls.Finisher.Ended([]store.Run{answer.Run})
		return
	}
	for _, sibling := range answer.Siblings {
		b.Calls.Launcher.launchSibling(a, sibling, began)
	}
	b.Calls.Doubts.received(answer.Siblings, -1)
}

// Memory that the start loop uses again for each batch.

// StartBuffers has it. It belongs to the start loop: what it has lent is its own again when the
// next batch begins.
type StartBuffers struct {
	attempts []queue.Attempt
	runs     []store.Run
	starts   []store.Start
	answers  []store.Started
	msg      struct{ routed, said string } // of the run before
}

// begin lends room for the attempts of the next batch.
func (b *StartBuffers) begin(most int) []queue.Attempt {
	if cap(b.runs) < most {
		b.runs = make([]store.Run, 0, most)
	}
	clear(b.attempts)
	b.attempts, b.runs = slices.Grow(b.attempts[:0], most), b.runs[:0]
	return b.attempts
}

// lent notes how much of that room is used.
func (b *StartBuffers) lent(attempts int) { b.attempts = b.attempts[:min(attempts, cap(b.attempts))] }

// nextRun lends a Run.
func (b *StartBuffers) nextRun() *store.Run {
	if len(b.runs) == cap(b.runs) { // those that are lent stay where they are
		b.runs = make([]store.Run, 0, loop.StoreBatch)
	}
	b.runs = b.runs[:len(b.runs)+1]
	return &b.runs[len(b.runs)-1]
}

// said is the message of a run that was routed with one, as the store takes it. Runs that are
// started together mostly have the same one.
func (b *StartBuffers) said(routed string) string {
	if b.msg.routed != routed {
		b.msg.routed, b.msg.said = routed, errs.Shorten(errs.PlainText(routed), core.MaxStartMsg-len("..."))
	}
	return b.msg.said
}

// startsOf lends what the store is asked for.
func (b *StartBuffers) startsOf(batch []queue.Attempt) []store.Start {
	b.starts = slices.Grow(b.starts[:0], len(batch))
	for i := range batch {
		b.starts = append(b.starts, batch[i].Start)
	}
	return b.starts
}

// answered takes the answers of the store back, for those of the next batch, once they were acted on.
func (b *StartBuffers) answered(answers []store.Started) {
	clear(answers)
	b.answers = answers[:0]
}

// drop leaves the memory to whoever still uses it.
func (b *StartBuffers) drop() { *b = StartBuffers{} }

// Runs that the store has marked started. Output: flights of this process, to send.go, or
// runs that other nodes take, to watch.go.

// Launcher has started runs go on. It belongs to the start loop.
type Launcher struct {
	*core.Core
	Engine    *queue.Queue
	Teller    *events.Bus
	Callees   *router.Resolver
	Deliverer *Deliverer
	Watcher   *Watcher
}

// launch moves an entry from the held to the flights, or to the away runs, and
// sends it when its time has come.
func (l *Launcher) launch(a queue.Attempt, run store.Run, began time.Time) {
	answer := store.Started{Status: store.StartOK, Run: run}
	l.launched(&run, a.Job, l.Engine.TakeOffAll([]queue.Attempt{a}, []store.Started{answer}, began)[0])
}

// launched goes on with a run that is a flight of this process by now, or, without one, another
// node's.
func (l *Launcher) launched(run *store.Run, job *store.Job, f *queue.Flight) {
	l.Teller.Started(run, job)
	if f != nil {
		l.Deliverer.deliverAt(f)
	} else {
		l.Watcher.goneAway(*run)
	}
}

// launchAll is launched for those runs of a batch that were started.
func (l *Launcher) launchAll(batch []queue.Attempt, answers []store.Started, flights []*queue.Flight) {
	here := make([]*queue.Flight, 0, len(batch))
	for i := range batch {
		if !queue.Started(&answers[i]) {
			continue
		}
		l.Teller.Started(&answers[i].Run, batch[i].Job)
		if flights[i] != nil {
			here = append(here, flights[i])
		} else {
			l.Watcher.goneAway(answers[i].Run)
		}
	}
	l.Deliverer.deliverAllAt(here)
}

// launchSibling does the same for a further part of a broadcast. It takes its
// place without asking: the parts of a broadcast start together.
func (l *Launcher) launchSibling(a queue.Attempt, run store.Run, began time.Time) {
	r := queue.Routed{Address: run.Address}
	l.Callees.Equip(&r, a.Job)
	if r.Remote {
		r.Lane, r.Fanned = queue.LaneNone, true // takes its turn in fanOut instead
	}
	l.Teller.Started(&run, a.Job)
	if f := l.Engine.TakeOffSibling(r, run, a.Job, began); f != nil {
		l.Deliverer.deliverAt(f)
	} else {
		l.Watcher.goneAway(run)
	}
}

// Jobs and runs that were not as this node knew them, read again for the start loop.

// StartReads are what the start loop reads of the store.
type StartReads struct {
	*core.Core
	Engine *queue.Queue
}

// readAgain reads the jobs and runs of starts whose job was not as this node knew it.
func (r *StartReads) readAgain(ctx context.Context, stale []queue.Attempt) error {
	if len(stale) == 0 {
		return nil
	}
	jobs, ids := make([]int64, len(stale)), make([]int64, len(stale))
	for i, a := range stale {
		jobs[i], ids[i] = a.Run.JobID, a.Run.ID
	}
	if err := r.loadJobs(ctx, jobs); err != nil {
		return err
	}
	runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return r.Store.RunsByID(ctx, ids) })
	if err != nil {
		return err
	}
	r.Engine.Held.RefreshRuns(runs)
	return r.cancelStopped(ctx, stale)
}

// cancelStopped cancels schedule-born runs of a job that was stopped without
// them: its schedule broke after they were planned.
func (r *StartReads) cancelStopped(ctx context.Context, stale []queue.Attempt) error {
	for _, a := range stale {
		job := r.Engine.Jobs.Job(a.Run.JobID)
		if run := a.Run.Full(); job == nil || !mustNotStart(&run, job) {
			continue
		}
		if _, err := loop.Call(ctx, func(ctx context.Context) (store.Run, error) {
			return r.Store.Kill(ctx, a.Run.ID, core.JobIsStopped)
		}); err != nil && !errs.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// loadJobs reads jobs anew. Entries of jobs that are gone are dropped: their
// runs were cancelled with them.
func (r *StartReads) loadJobs(ctx context.Context, ids []int64) error {
	jobs, err := r.ReadJobs(ctx, ids)
	r.Engine.Jobs.Remember(jobs)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if jobs[id] == nil {
			r.Engine.Jobs.JobGone(id)
		}
	}
	return nil
}

// mustNotStart reports whether the job is stopped for a run that its schedule has made, or for
// a retry of one.
func mustNotStart(r *store.Run, job *store.Job) bool {
	return r.Type.ScheduleBorn() && core.Unscheduled(job) || r.Born && job.Stopped
}

// Serial runs that could not be started, as the store knows of another one under way
// where they go. Input: attempts that the store has refused. Output:
// entries parked behind the runs in their way.

// awaitBlockers parks serial runs until the runs that the store found in their way have
// ended: such as this node did not know of, for instance of the shard's former owner, or
// other parts of a broadcast. It reports whether some are to be tried again.
func (r *StartReads) awaitBlockers(ctx context.Context, busy []queue.Attempt) (again bool) {
	under := r.startedOfJobs(ctx, busy)
	for _, a := range busy {
		i := slices.IndexFunc(under[a.Job.ID], func(o store.Run) bool {
			return o.ID != a.Run.ID && (o.Address == a.Route.Address || slices.Contains(a.Route.Targets, o.Address))
		})
		if i < 0 { // it has ended meanwhile, or the store did not tell
			r.Engine.Retry(a, false)
			again = true
			continue
		}
		r.Engine.AwaitRun(a, under[a.Job.ID][i])
		r.Life.Wakes.Watch.Poke()
	}
	return again
}

// blockerReads is how many jobs' started runs are read at the same time.
const blockerReads = 8

// startedOfJobs reads the started runs of the jobs of attempts, of each job once. Of those
// about which the store does not tell there are none.
func (r *StartReads) startedOfJobs(ctx context.Context, attempts []queue.Attempt) map[int64][]store.Run {
	under := make(map[int64][]store.Run)
	var mu sync.Mutex // guards under
	var g errgroup.Group
	g.SetLimit(blockerReads)
	asked := make(map[int64]bool)
	for _, a := range attempts {
		id := a.Job.ID
		if asked[id] {
			continue
		}
		asked[id] = true
		g.Go(func() error {
			runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
				return r.Store.Runs(ctx, store.RunFilter{JobID: id, States: []store.State{store.StateStarted}, Limit: loop.StoreBatch})
			})
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				under[id] = runs
			}
			return nil
		})
	}
	_ = g.Wait()
	return under
}
