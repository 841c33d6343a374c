package xxljob

// One call of the store that starts many runs, and what each of its answers means.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

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
	answers, err := detached(ctx, func(ctx context.Context) ([]Started, error) { return b.store.Start(ctx, b.buffers.answers, starts) })
	b.calls.fitness.end(ctx, &b.calls.fitness.starts, began, err)
	if b.calls.starting.failed(ctx, err) {
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
				b.life.wakes.watch.poke()
				continue
			}
			busy = append(busy, a)
		case store.StartFenced:
			b.engine.letGo(a)
			b.leases.lose(int(a.run.Shard), a.start.Epoch)
			b.life.wakes.lease.poke()
		case store.StartNoNode:
			b.memory.forget()
			b.life.wakes.lease.poke() // it brings the news of the other nodes
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
func (b *startBatcher) startedOK(a attempt, answer *Started, began time.Time) {
	if answer.Run.State.Ended() {
		b.engine.giveUp(a)
		b.calls.finisher.ended([]Run{answer.Run})
		return
	}
	for _, sibling := range answer.Siblings {
		b.calls.launcher.launchSibling(a, sibling, began)
	}
	b.calls.doubts.received(answer.Siblings, -1)
}
