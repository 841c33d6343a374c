package xxljob

// Taking what other nodes have left for this one. A run is taken, by a committed
// compare-and-set, before its handler is called.

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/store"
)

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
func (t *taker) takeSome(ctx context.Context, runs []Run) (full bool, err error) {
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
	taken, err := detached(ctx, func(ctx context.Context) ([]Run, error) { return t.store.Take(ctx, t.leases.incarnation, fit) })
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
	backoff := backoff{log: t.log, what: "taking runs"}
	var began time.Time
	runs, err := callUntil(ctx, &backoff,
		func(context.Context) ([]Run, error) { return nil, cause },
		func(ctx context.Context) ([]Run, error) {
			began = time.Now()
			return t.store.RunsByID(ctx, ids)
		})
	if err != nil {
		return err
	}
	var taken []Run
	for _, r := range runs {
		if r.State == StateStarted && r.Address == store.LocalAddress(t.leases.incarnation) && !r.Taken.IsZero() {
			taken = append(taken, r)
		}
	}
	if err := t.receiver.receiveAfterAll(ctx, taken, began); err != nil || len(taken) == len(ids) {
		return err
	}
	return cause // no hint comes for the others a second time: the loop looks again
}
