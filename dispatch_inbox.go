package xxljob

import (
	"context"
	"errors"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// The inbox of a node. Input: runs that other nodes have started at an executor
// attached here, requests to kill, and questions for lines of logs (runlog_reader.go). A run
// is taken, by a committed compare-and-set, before its handler is called.

// inboxLimit is how many runs are taken at once.
const inboxLimit = 500

// inbox takes what other nodes have left for this one.
type inbox struct {
	*shared
	engine *engine
	killer *killer
	logs   *logs
	taker  *taker
}

// inboxDuty looks into the inbox at each hint, and by itself where hints can be lost.
func (b *inbox) inboxDuty(signals store.Signals) loop.Duty {
	return loop.Duty{
		What: "looking into the inbox", Wakes: []<-chan struct{}{signals.Inbox, b.life.wakes.inbox},
		Once: func(ctx context.Context) (time.Duration, error) {
			wait := time.Duration(loop.Forever)
			if _, poll := b.store.Poll(); poll > 0 {
				wait = poll
			}
			return wait, b.lookIntoInbox(ctx)
		},
	}
}

// lookIntoInbox goes through the inbox: it kills what is to be killed, has questions
// answered, and takes what there is room for.
func (b *inbox) lookIntoInbox(ctx context.Context) error {
	if !b.leases.trusted(time.Now()) {
		return nil
	}
	full := false
	var failed error
	for after := int64(0); ; {
		box, err := loop.Call(ctx, func(ctx context.Context) (store.Inbox, error) {
			return b.store.Inbox(ctx, b.leases.incarnation, after, inboxLimit)
		})
		if err != nil {
			return err
		}
		for _, r := range box.Kills {
			b.killer.killHere(ctx, r)
		}
		if after == 0 {
			b.logs.answerLogs(box.Asks)
		}
		some, err := b.taker.takeSome(ctx, box.Runs)
		full = full || some
		b.engine.inboxFull.Store(full)
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
	*shared
	engine   *engine
	attached *attachedSet
	receiver *receiver
	doubts   *doubts
	taking   chan struct{} // full while runs are taken
}

func newTaker(s *shared, e *engine, attached *attachedSet, receiver *receiver, doubts *doubts) *taker {
	return &taker{s, e, attached, receiver, doubts, make(chan struct{}, 1)}
}

// takeSome takes those of the runs that there is room for, and sends them to
// their executors. full reports that there was not room for all.
func (t *taker) takeSome(ctx context.Context, runs []store.Run) (full bool, err error) {
	t.taking <- struct{}{}
	defer func() { <-t.taking }()
	if t.life.draining.Load() {
		return false, nil // the owners put back what waits here
	}
	places := map[string]int{} // asked for before the engine is locked
	for _, r := range runs {
		if _, asked := places[r.App]; !asked {
			places[r.App] = t.attached.placesOf(r.App)
		}
	}
	fit, full := t.engine.room.fitting(runs, places)
	if len(fit) == 0 {
		return full, nil
	}
	// First, so that nothing but the answer to Take is between it and the handlers.
	jobs, err := t.readJobs(ctx, jobsOf(runs))
	if err != nil {
		return full, err
	}
	began := time.Now()
	taken, err := loop.Detached(ctx, func(ctx context.Context) ([]store.Run, error) { return t.store.Take(ctx, t.leases.incarnation, fit) })
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
	backoff := loop.Backoff{Log: t.log, What: "taking runs"}
	var began time.Time
	runs, err := loop.CallUntil(ctx, &backoff,
		func(context.Context) ([]store.Run, error) { return nil, cause },
		func(ctx context.Context) ([]store.Run, error) {
			began = time.Now()
			return t.store.RunsByID(ctx, ids)
		})
	if err != nil {
		return err
	}
	var taken []store.Run
	for _, r := range runs {
		if r.State == store.StateStarted && r.Address == store.LocalAddress(t.leases.incarnation) && !r.Taken.IsZero() {
			taken = append(taken, r)
		}
	}
	if err := t.receiver.receiveAfterAll(ctx, taken, began); err != nil || len(taken) == len(ids) {
		return err
	}
	return cause // no hint comes for the others a second time: the loop looks again
}

// Runs that this node has taken, or has to run although nobody here knows of them. Output:
// flights, to dispatch_deliver.go.

// receiver has runs go on that were started before, here or by another node.
type receiver struct {
	*shared
	engine    *engine
	callees   *callees
	finisher  *finisher
	deliverer *deliverer
	doubts    *doubts
}

// receiveAfterAll is receive for runs whose jobs are not at hand.
func (in *receiver) receiveAfterAll(ctx context.Context, taken []store.Run, began time.Time) error {
	in.doubts.received(taken, 1)
	defer in.doubts.received(taken, -1)
	ids := jobsOf(taken)
	backoff := loop.Backoff{Log: in.log, What: "reading the jobs of taken runs"}
	read := func(ctx context.Context) (map[int64]*store.Job, error) { return in.readJobs(ctx, ids) }
	jobs, err := loop.CallUntil(ctx, &backoff, read, read)
	if err != nil {
		in.doubts.lookNow()
		return err
	}
	in.receive(taken, jobs, began)
	return nil
}

// receive sends taken runs to their executors.
func (in *receiver) receive(taken []store.Run, jobs map[int64]*store.Job, began time.Time) {
	in.doubts.received(taken, 1)
	defer in.doubts.received(taken, -1)
	for _, r := range taken {
		switch {
		case r.State.Ended(): // killed before it was taken
			in.finisher.ended([]store.Run{r})
		case in.engine.under.flight(r.ID) != nil:
		default:
			in.receiveOne(r, jobs[r.JobID], began)
		}
	}
}

func (in *receiver) receiveOne(r store.Run, job *store.Job, began time.Time) {
	if job == nil {
		// The job was removed: the run goes on with what the row says.
		job = &store.Job{ID: r.JobID, App: r.App, Handler: r.Handler, Block: r.Block, GlueType: store.GlueBean}
	}
	to := routed{address: r.Address}
	in.callees.equip(&to, job)
	switch {
	case to.refused != "":
		in.finisher.finishAsync(concluded(r, store.Result{State: store.StateRefused, HandleMsg: to.refused, TriggerMsg: to.refused}))
		return
	case to.exec == nil:
		why := "app " + r.App + " is not attached any more"
		in.finisher.finishAsync(store.Result{RunID: r.ID, Incarnation: in.leases.incarnation, Token: r.Token, State: store.StateRefused, HandleMsg: why, TriggerMsg: why})
		return
	}
	to.serial = lot{} // the starter keeps serial runs apart
	if f := in.engine.takeOffSibling(to, r, job, began); f != nil {
		in.deliverer.deliverAt(f)
	}
}
