package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/internal/engine/runlog"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// The inbox of a node. Input: runs that other nodes have started at an executor
// attached here, requests to kill, and questions for lines of logs (runlog/reader.go). A run
// is taken, by a committed compare-and-set, before its handler is called.

// inboxLimit is how many runs are taken at once.
const inboxLimit = 500

// Inbox takes what other nodes have left for this one.
type Inbox struct {
	*core.Core
	Engine *queue.Queue
	Killer *Killer
	Logs   *runlog.Reader
	Taker  *taker
}

// InboxDuty looks into the inbox at each hint, and by itself where hints can be lost.
func (b *Inbox) InboxDuty(signals store.Signals) loop.Duty {
	return loop.Duty{
		What: "looking into the inbox", Wakes: []<-chan struct{}{signals.Inbox, b.Life.Wakes.Inbox},
		Once: func(ctx context.Context) (time.Duration, error) {
			wait := time.Duration(loop.Forever)
			if _, poll := b.Store.Poll(); poll > 0 {
				wait = poll
			}
			return wait, b.lookIntoInbox(ctx)
		},
	}
}

// lookIntoInbox goes through the inbox: it kills what is to be killed, has questions
// answered, and takes what there is room for.
func (b *Inbox) lookIntoInbox(ctx context.Context) error {
	if !b.Leases.Trusted(time.Now()) {
		return nil
	}
	full := false
	var failed error
	for after := int64(0); ; {
		box, err := loop.Call(ctx, func(ctx context.Context) (store.Inbox, error) {
			return b.Store.Inbox(ctx, b.Leases.Incarnation, after, inboxLimit)
		})
		if err != nil {
			return err
		}
		for _, r := range box.Kills {
			b.Killer.killHere(ctx, r)
		}
		if after == 0 {
			b.Logs.AnswerLogs(box.Asks)
		}
		some, err := b.Taker.takeSome(ctx, box.Runs)
		full = full || some
		b.Engine.InboxFull.Store(full)
		failed = errors.Join(failed, err)
		if len(box.Runs) < inboxLimit {
			return failed
		}
		after = box.Runs[len(box.Runs)-1].ID
	}
}

// Taking what other nodes have left for this one. A run is taken, by a committed
// compare-and-set, before its handler is called.

// taker takes runs that there is room for.
type taker struct {
	*core.Core
	engine   *queue.Queue
	attached *registry.AttachedSet
	receiver *Receiver
	doubts   *Unconfirmed
	Taking   chan struct{} // full while runs are taken
}

func NewTaker(s *core.Core, e *queue.Queue, attached *registry.AttachedSet, receiver *Receiver, doubts *Unconfirmed) *taker {
	return &taker{s, e, attached, receiver, doubts, make(chan struct{}, 1)}
}

// takeSome takes those of the runs that there is room for, and sends them to
// their executors. full reports that there was not room for all.
func (t *taker) takeSome(ctx context.Context, runs []store.Run) (full bool, err error) {
	t.Taking <- struct{}{}
	defer func() { <-t.Taking }()
	if t.Life.Draining.Load() {
		return false, nil // the owners put back what waits here
	}
	places := map[string]int{} // asked for before the engine is locked
	for _, r := range runs {
		if _, asked := places[r.App]; !asked {
			places[r.App] = t.attached.PlacesOf(r.App)
		}
	}
	fit, full := t.engine.Room.Fitting(runs, places)
	if len(fit) == 0 {
		return full, nil
	}
	// First, so that nothing but the answer to Take is between it and the handlers.
	jobs, err := t.ReadJobs(ctx, core.JobsOf(runs))
	if err != nil {
		return full, err
	}
	began := time.Now()
	taken, err := loop.Detached(ctx, func(ctx context.Context) ([]store.Run, error) { return t.Store.Take(ctx, t.Leases.Incarnation, fit) })
	if err != nil {
		t.doubts.take(fit)
		t.doubts.lookNow()
		return full, t.takenAfterAll(ctx, fit, err)
	}
	t.receiver.receive(taken, jobs, began)
	return full, nil
}

// takenAfterAll reads runs whose Take returned an error: it may have taken
// effect, and then nobody else will call their handlers.
func (t *taker) takenAfterAll(ctx context.Context, ids []int64, cause error) error {
	backoff := loop.Backoff{Log: t.Logger, What: "taking runs"}
	var began time.Time
	runs, err := loop.CallUntil(ctx, &backoff,
		func(context.Context) ([]store.Run, error) { return nil, cause },
		func(ctx context.Context) ([]store.Run, error) {
			began = time.Now()
			return t.Store.RunsByID(ctx, ids)
		})
	if err != nil {
		return err
	}
	var taken []store.Run
	for _, r := range runs {
		if r.State == store.StateStarted && r.Address == store.LocalAddress(t.Leases.Incarnation) && !r.Taken.IsZero() {
			taken = append(taken, r)
		}
	}
	if err := t.receiver.receiveAfterAll(ctx, taken, began); err != nil || len(taken) == len(ids) {
		return err
	}
	return cause // no hint comes for the others a second time: the loop looks again
}

// Runs that this node has taken, or has to run although nobody here knows of them. Output:
// flights, to deliver.go.

// Receiver has runs go on that were started before, here or by another node.
type Receiver struct {
	*core.Core
	Engine    *queue.Queue
	Callees   *router.Resolver
	Finisher  *Finisher
	Deliverer *Deliverer
	Doubts    *Unconfirmed
}

// receiveAfterAll is receive for runs whose jobs are not at hand.
func (in *Receiver) receiveAfterAll(ctx context.Context, taken []store.Run, began time.Time) error {
	in.Doubts.received(taken, 1)
	defer in.Doubts.received(taken, -1)
	ids := core.JobsOf(taken)
	backoff := loop.Backoff{Log: in.Logger, What: "reading the jobs of taken runs"}
	read := func(ctx context.Context) (map[int64]*store.Job, error) { return in.ReadJobs(ctx, ids) }
	jobs, err := loop.CallUntil(ctx, &backoff, read, read)
	if err != nil {
		in.Doubts.lookNow()
		return err
	}
	in.receive(taken, jobs, began)
	return nil
}

// receive sends taken runs to their executors.
func (in *Receiver) receive(taken []store.Run, jobs map[int64]*store.Job, began time.Time) {
	in.Doubts.received(taken, 1)
	defer in.Doubts.received(taken, -1)
	for _, r := range taken {
		switch {
		case r.State.Ended(): // killed before it was taken
			in.Finisher.Ended([]store.Run{r})
		case in.Engine.Under.Flight(r.ID) != nil:
		default:
			in.receiveOne(r, jobs[r.JobID], began)
		}
	}
}

func (in *Receiver) receiveOne(r store.Run, job *store.Job, began time.Time) {
	if job == nil {
		// The job was removed: the run goes on with what the row says.
		job = &store.Job{ID: r.JobID, App: r.App, Handler: r.Handler, Block: r.Block, GlueType: store.GlueBean}
	}
	to := queue.Routed{Address: r.Address}
	in.Callees.Equip(&to, job)
	switch {
	case to.Refused != "":
		in.Finisher.finishAsync(concluded(r, store.Result{State: store.StateRefused, HandleMsg: to.Refused, TriggerMsg: to.Refused}))
		return
	case to.Exec == nil:
		why := "app " + r.App + " is not attached any more"
		in.Finisher.finishAsync(store.Result{RunID: r.ID, Incarnation: in.Leases.Incarnation, Token: r.Token, State: store.StateRefused, HandleMsg: why, TriggerMsg: why})
		return
	}
	to.Serial = queue.WaitKey{} // the starter keeps serial runs apart
	if f := in.Engine.TakeOffSibling(to, r, job, began); f != nil {
		in.Deliverer.deliverAt(f)
	}
}
