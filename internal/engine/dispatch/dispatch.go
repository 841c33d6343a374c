package dispatch

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/internal/engine/runlog"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Deps are what a Dispatcher is given of the other rooms.
type Deps struct {
	*core.Core
	Queue   *queue.Queue
	Bus     *events.Bus
	Book    *registry.Addresses
	Router  *router.Router
	Logs    *runlog.Reader   // answers questions for lines that other nodes have left in the inbox
	Lines   *runlog.Writer   // nil where Config.Logs names nothing
	Fitness *lease.Fitness   // is told how starts go
	Reload  *lease.ReloadSet // takes the shards whose planned runs are to be read again
}

// Dispatcher takes runs from due to ended. It is the list of the parts of this room, and has
// what other rooms call.
type Dispatcher struct {
	all *core.Core

	starter     *starter
	sender      *sender
	marker      *dispatchMarker
	inbox       *inbox
	finisher    *finisher
	attached    attachedAdmin
	progress    *progress
	watcher     *watcher
	killer      *killer
	waiter      *waiter
	inDoubt     *inDoubt
	unreported  *unreported
	unconfirmed *unconfirmed
	recovery    *recovery
}

// New makes the parts, each with those that it needs; no part knows the Dispatcher.
func New(of Deps) *Dispatcher {
	all, q, book, resolver := of.Core, of.Queue, of.Book, of.Router.Resolver
	d := &Dispatcher{all: all}
	d.unconfirmed = newUnconfirmed(all.Life.Wakes.Lease)
	d.finisher = newFinisher(all, q, of.Bus)
	d.progress = newProgress(all, q)
	d.attached = attachedAdmin{finisher: d.finisher, progress: d.progress, lines: of.Lines}
	d.watcher = &watcher{Core: all, queue: q, bus: of.Bus, desk: of.Logs.Desk}
	d.waiter = &waiter{Core: all, queue: q, book: book, strategies: of.Router.Strategies}
	d.killer = &killer{Core: all, queue: q, bus: of.Bus, finisher: d.finisher, book: book}
	d.marker = &dispatchMarker{Core: all, queue: q, killer: d.killer, dispatching: loop.NewBatch[acceptance]()}
	d.inDoubt = &inDoubt{Core: all, queue: q, book: book, finisher: d.finisher, marker: d.marker, most: inDoubtMost}
	d.unreported = &unreported{Core: all, book: book, finisher: d.finisher, inDoubt: d.inDoubt, bounds: newUnreportedBounds(&all.Cfg.Cluster)}
	d.sender = &sender{
		Core: all, queue: q, finisher: d.finisher, killer: d.killer, inDoubt: d.inDoubt, marker: d.marker,
		book: book, resolver: resolver, fanOut: make(fanOut, max(1, all.Cfg.Limits.FastLane/2)), callers: loop.NewPool(),
	}
	launch := &launcher{Core: all, queue: q, bus: of.Bus, resolver: resolver, unconfirmed: d.unconfirmed, finisher: d.finisher, sender: d.sender, killer: d.killer}
	d.starter = &starter{
		Core: all, queue: q, router: of.Router, book: book, fitness: of.Fitness, unconfirmed: d.unconfirmed, launcher: launch,
		inDoubt: d.inDoubt, finisher: d.finisher,
		lookups:  of.Router.Parked,
		starting: loop.Backoff{Log: all.Logger, What: "starting runs"},
	}
	d.inbox = &inbox{Core: all, queue: q, attached: book.Attached, killer: d.killer, logs: of.Logs, routers: of.Router.Asks, unconfirmed: d.unconfirmed, launcher: launch, taking: make(chan struct{}, 1)}
	d.recovery = &recovery{
		Core: all, queue: q, finisher: d.finisher, inDoubt: d.inDoubt, launcher: launch,
		unconfirmed: d.unconfirmed, reload: of.Reload, sightings: sightings{ended: map[int64]bool{}},
	}
	return d
}

// Duties are the loops of the stages plan and work.
func (d *Dispatcher) Duties(signals store.Signals) (plan, work []loop.Duty) {
	plan = []loop.Duty{d.starter.duty(), d.sender.duty()}
	work = []loop.Duty{
		{Loop: d.finisher.loop}, {Loop: d.finisher.lockedLoop}, d.watcher.duty(signals), {Loop: d.watcher.transitLoop}, d.inbox.duty(signals),
		{Loop: d.marker.loop}, {Loop: d.inDoubt.loop}, d.unreported.duty(), {Loop: d.progress.loop, Aside: true},
	}
	return plan, work
}

// Kill ends a run, wherever it is.
func (d *Dispatcher) Kill(ctx context.Context, runID int64) error { return d.killer.kill(ctx, runID) }

// Wait waits for the end of a run.
func (d *Dispatcher) Wait(ctx context.Context, runID int64) (store.Run, error) {
	return d.waiter.wait(ctx, runID)
}

// StoppedFromInside is an error where ctx is that of a handler whose end Stop waits for.
func (d *Dispatcher) StoppedFromInside(ctx context.Context) error {
	return d.waiter.stoppedFromInside(ctx)
}

// RunsInDoubt is how many runs there are whose executor may or may not have them.
func (d *Dispatcher) RunsInDoubt() int { return d.inDoubt.count() }

// What executors say.

// AttachedAdmin is what executors of this process are bound to.
func (d *Dispatcher) AttachedAdmin() wire.Admin { return d.attached.asAdmin() }

// HeardProgress takes in how far a run is, by an executor elsewhere that was asked for its log.
func (d *Dispatcher) HeardProgress(run store.Run, said wire.Progress) {
	d.progress.elsewhere(run, said)
}

// Unstored is how many results the store has not taken so far although it was asked, and since
// when.
func (d *Dispatcher) Unstored() (n int, since time.Time) { return d.finisher.unstored.oldest() }

// LogTextsDropped says that the store has taken a result without its texts only.
func (d *Dispatcher) LogTextsDropped(ctx context.Context, r *store.Result, why error) {
	d.finisher.logTextsDropped(ctx, r, why)
}

// Ended acts on runs whose final state this node has stored.
func (d *Dispatcher) Ended(runs []store.Run) { d.finisher.ended(runs) }

// AsSent are the runs that are as this node has sent them, within a time.
func (d *Dispatcher) AsSent(ids []int64, within time.Duration) []*store.Run {
	return d.finisher.asSent(ids, within)
}

// LetGather waits a moment before an executor hears that its results are stored.
func (d *Dispatcher) LetGather(ctx context.Context, results int) { d.finisher.letGather(ctx, results) }

// What the heartbeat calls.

// SettleGone settles the runs of nodes that are gone, and AdoptOrphans those of this node that
// nobody here knows of.
func (d *Dispatcher) SettleGone(ctx context.Context) error   { return d.recovery.settleGone(ctx) }
func (d *Dispatcher) AdoptOrphans(ctx context.Context) error { return d.recovery.adoptOrphans(ctx) }

// LookForOrphans has orphans looked for in the next time, since the store may have forgotten
// what it had acknowledged. LooksAgain reports whether they are to be looked for, or whether runs of
// nodes that are gone are left about which the store lets nobody decide.
func (d *Dispatcher) LookForOrphans() { d.unconfirmed.lookLater() }
func (d *Dispatcher) LooksAgain() bool {
	return d.recovery.mayHaveOrphans() || d.recovery.verdictRefused
}
