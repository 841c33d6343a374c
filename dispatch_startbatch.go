package xxljob

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"golang.org/x/sync/errgroup"
)

// One call of the store that starts many runs, and what each of its answers means.

// startBatcher has the store start what is collected. It belongs to the start loop.
type startBatcher struct {
	*shared
	engine    *engine
	calls     *startCalls
	takesBack *takesBack
	reads     *startReads
	memory    *addressMemory
	buffers   *startBuffers
}

// startBatch asks the store and acts on each answer. locked reports that some
// rows have to be tried again after a pause. prompt says that how long the store takes
// tells how long before their time such runs are to be started.
func (b *startBatcher) startBatch(ctx context.Context, batch []attempt, prompt bool) (locked bool, err error) {
	starts := b.buffers.startsOf(batch)
	began := b.calls.fitness.begin(&b.calls.fitness.starts)
	answers, err := loop.Detached(ctx, func(ctx context.Context) ([]store.Started, error) {
		return b.store.Start(ctx, b.buffers.answers, starts)
	})
	b.calls.fitness.end(ctx, &b.calls.fitness.starts, began, err)
	if b.calls.starting.Failed(ctx, err) {
		b.buffers.drop() // the call may still be under way
		b.calls.doubts.start(batch)
		b.calls.doubts.lookNow()
		b.calls.uncertain(ctx, batch)
		return false, nil
	}
	defer b.buffers.answered(answers)
	acked := time.Now()
	if prompt {
		b.engine.lead.sample(len(batch), acked.Sub(began))
	}
	for i := range answers {
		b.calls.doubts.received(answers[i].Siblings, 1) // a hook may take its time before they take off
	}
	b.calls.launcher.launchAll(batch, answers, b.engine.takeOffAll(batch, answers, began))
	var stale, busy []attempt
	for i, a := range batch {
		switch answers[i].Status {
		case store.StartOK:
			b.startedOK(a, &answers[i], began)
		case store.StartGone:
			b.engine.letGo(a)
			b.takesBack.takeBack(answers[i].Run, a.job, began)
		case store.StartStale:
			stale = append(stale, a)
			b.engine.retry(a, true)
		case store.StartBusy:
			if retry := answers[i].Run; retry.ID != 0 {
				b.engine.awaitRetry(a, retry)
				b.life.wakes.watch.Poke()
				continue
			}
			busy = append(busy, a)
		case store.StartFenced:
			b.engine.letGo(a)
			b.leases.lose(int(a.run.Shard), a.start.Epoch)
			b.life.wakes.lease.Poke()
		case store.StartNoNode:
			b.memory.forget()
			b.life.wakes.lease.Poke() // it brings the news of the other nodes
			b.engine.rerouted(a)
			locked = true
		case store.StartLocked:
			locked = true
			b.engine.retry(a, false)
		}
	}
	// What is started is under way by now: the reads below hold up no handler.
	locked = b.reads.awaitBlockers(ctx, busy) || locked
	return locked, b.reads.readAgain(ctx, stale)
}

// startedOK goes on with a run that the store has marked: it is this process's
// to run, or waits in another node's inbox, or was refused.
func (b *startBatcher) startedOK(a attempt, answer *store.Started, began time.Time) {
	if answer.Run.State.Ended() {
		b.engine.giveUp(a)
		b.calls.finisher.ended([]store.Run{answer.Run})
		return
	}
	for _, sibling := range answer.Siblings {
		b.calls.launcher.launchSibling(a, sibling, began)
	}
	b.calls.doubts.received(answer.Siblings, -1)
}

// Memory that the start loop uses again for each batch.

// startBuffers has it. It belongs to the start loop: what it has lent is its own again when the
// next batch begins.
type startBuffers struct {
	attempts []attempt
	runs     []store.Run
	starts   []store.Start
	answers  []store.Started
	msg      struct{ routed, said string } // of the run before
}

// begin lends room for the attempts of the next batch.
func (b *startBuffers) begin(most int) []attempt {
	if cap(b.runs) < most {
		b.runs = make([]store.Run, 0, most)
	}
	clear(b.attempts)
	b.attempts, b.runs = slices.Grow(b.attempts[:0], most), b.runs[:0]
	return b.attempts
}

// lent notes how much of that room is used.
func (b *startBuffers) lent(attempts int) { b.attempts = b.attempts[:min(attempts, cap(b.attempts))] }

// nextRun lends a Run.
func (b *startBuffers) nextRun() *store.Run {
	if len(b.runs) == cap(b.runs) { // those that are lent stay where they are
		b.runs = make([]store.Run, 0, loop.StoreBatch)
	}
	b.runs = b.runs[:len(b.runs)+1]
	return &b.runs[len(b.runs)-1]
}

// said is the message of a run that was routed with one, as the store takes it. Runs that are
// started together mostly have the same one.
func (b *startBuffers) said(routed string) string {
	if b.msg.routed != routed {
		b.msg.routed, b.msg.said = routed, errs.Shorten(errs.PlainText(routed), maxStartMsg-len("..."))
	}
	return b.msg.said
}

// startsOf lends what the store is asked for.
func (b *startBuffers) startsOf(batch []attempt) []store.Start {
	b.starts = slices.Grow(b.starts[:0], len(batch))
	for i := range batch {
		b.starts = append(b.starts, batch[i].start)
	}
	return b.starts
}

// answered takes the answers of the store back, for those of the next batch, once they were acted on.
func (b *startBuffers) answered(answers []store.Started) {
	clear(answers)
	b.answers = answers[:0]
}

// drop leaves the memory to whoever still uses it.
func (b *startBuffers) drop() { *b = startBuffers{} }

// Runs that the store has marked started. Output: flights of this process, to dispatch_send.go, or
// runs that other nodes take, to dispatch_watch.go.

// launcher has started runs go on. It belongs to the start loop.
type launcher struct {
	*shared
	engine    *engine
	teller    *teller
	callees   *callees
	deliverer *deliverer
	watcher   *watcher
}

// launch moves an entry from the held to the flights, or to the away runs, and
// sends it when its time has come.
func (l *launcher) launch(a attempt, run store.Run, began time.Time) {
	answer := store.Started{Status: store.StartOK, Run: run}
	l.launched(&run, a.job, l.engine.takeOffAll([]attempt{a}, []store.Started{answer}, began)[0])
}

// launched goes on with a run that is a flight of this process by now, or, without one, another
// node's.
func (l *launcher) launched(run *store.Run, job *store.Job, f *flight) {
	l.teller.started(run, job)
	if f != nil {
		l.deliverer.deliverAt(f)
	} else {
		l.watcher.goneAway(*run)
	}
}

// launchAll is launched for those runs of a batch that were started.
func (l *launcher) launchAll(batch []attempt, answers []store.Started, flights []*flight) {
	here := make([]*flight, 0, len(batch))
	for i := range batch {
		if !started(&answers[i]) {
			continue
		}
		l.teller.started(&answers[i].Run, batch[i].job)
		if flights[i] != nil {
			here = append(here, flights[i])
		} else {
			l.watcher.goneAway(answers[i].Run)
		}
	}
	l.deliverer.deliverAllAt(here)
}

// launchSibling does the same for a further part of a broadcast. It takes its
// place without asking: the parts of a broadcast start together.
func (l *launcher) launchSibling(a attempt, run store.Run, began time.Time) {
	r := routed{address: run.Address}
	l.callees.equip(&r, a.job)
	if r.remote {
		r.lane, r.fanned = laneNone, true // takes its turn in fanOut instead
	}
	l.teller.started(&run, a.job)
	if f := l.engine.takeOffSibling(r, run, a.job, began); f != nil {
		l.deliverer.deliverAt(f)
	} else {
		l.watcher.goneAway(run)
	}
}

// Jobs and runs that were not as this node knew them, read again for the start loop.

// startReads are what the start loop reads of the store.
type startReads struct {
	*shared
	engine *engine
}

// readAgain reads the jobs and runs of starts whose job was not as this node knew it.
func (r *startReads) readAgain(ctx context.Context, stale []attempt) error {
	if len(stale) == 0 {
		return nil
	}
	jobs, ids := make([]int64, len(stale)), make([]int64, len(stale))
	for i, a := range stale {
		jobs[i], ids[i] = a.run.JobID, a.run.ID
	}
	if err := r.loadJobs(ctx, jobs); err != nil {
		return err
	}
	runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return r.store.RunsByID(ctx, ids) })
	if err != nil {
		return err
	}
	r.engine.held.refreshRuns(runs)
	return r.cancelStopped(ctx, stale)
}

// cancelStopped cancels schedule-born runs of a job that was stopped without
// them: its schedule broke after they were planned.
func (r *startReads) cancelStopped(ctx context.Context, stale []attempt) error {
	for _, a := range stale {
		job := r.engine.jobs.job(a.run.JobID)
		if run := a.run.full(); job == nil || !mustNotStart(&run, job) {
			continue
		}
		if _, err := loop.Call(ctx, func(ctx context.Context) (store.Run, error) {
			return r.store.Kill(ctx, a.run.ID, jobIsStopped)
		}); err != nil && !errs.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// loadJobs reads jobs anew. Entries of jobs that are gone are dropped: their
// runs were cancelled with them.
func (r *startReads) loadJobs(ctx context.Context, ids []int64) error {
	jobs, err := r.readJobs(ctx, ids)
	r.engine.jobs.remember(jobs)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if jobs[id] == nil {
			r.engine.jobs.jobGone(id)
		}
	}
	return nil
}

// mustNotStart reports whether the job is stopped for a run that its schedule has made, or for
// a retry of one.
func mustNotStart(r *store.Run, job *store.Job) bool {
	return r.Type.ScheduleBorn() && unscheduled(job) || r.Born && job.Stopped
}

// Serial runs that could not be started, as the store knows of another one under way
// where they go. Input: attempts that the store has refused, from dispatch_start.go. Output:
// entries parked behind the runs in their way.

// awaitBlockers parks serial runs until the runs that the store found in their way have
// ended: such as this node did not know of, for instance of the shard's former owner, or
// other parts of a broadcast. It reports whether some are to be tried again.
func (r *startReads) awaitBlockers(ctx context.Context, busy []attempt) (again bool) {
	under := r.startedOfJobs(ctx, busy)
	for _, a := range busy {
		i := slices.IndexFunc(under[a.job.ID], func(o store.Run) bool {
			return o.ID != a.run.ID && (o.Address == a.route.address || slices.Contains(a.route.targets, o.Address))
		})
		if i < 0 { // it has ended meanwhile, or the store did not tell
			r.engine.retry(a, false)
			again = true
			continue
		}
		r.engine.awaitRun(a, under[a.job.ID][i])
		r.life.wakes.watch.Poke()
	}
	return again
}

// blockerReads is how many jobs' started runs are read at the same time.
const blockerReads = 8

// startedOfJobs reads the started runs of the jobs of attempts, of each job once. Of those
// about which the store does not tell there are none.
func (r *startReads) startedOfJobs(ctx context.Context, attempts []attempt) map[int64][]store.Run {
	under := make(map[int64][]store.Run)
	var mu sync.Mutex // guards under
	var g errgroup.Group
	g.SetLimit(blockerReads)
	asked := make(map[int64]bool)
	for _, a := range attempts {
		id := a.job.ID
		if asked[id] {
			continue
		}
		asked[id] = true
		g.Go(func() error {
			runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
				return r.store.Runs(ctx, store.RunFilter{JobID: id, States: []store.State{store.StateStarted}, Limit: loop.StoreBatch})
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
