package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/runlog"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// The inbox of a node. Input: runs that other nodes have started at an executor
// attached here, requests to kill, questions for lines of logs (runlog/reader.go), and for where runs
// go (router/elsewhere.go). A run
// is taken, by a committed compare-and-set, before its handler is called. Output: taken runs, to
// launch.go.

// inboxLimit is how many runs are taken at once.
const inboxLimit = 500

// inbox takes what other nodes have left for this one.
type inbox struct {
	*core.Core
	queue       *queue.Queue
	attached    *registry.AttachedSet
	killer      *killer
	logs        *runlog.Reader
	routers     interface{ AnswerRoutes([]store.Ask) }
	unconfirmed *unconfirmed
	launcher    *launcher
	taking      chan struct{} // full while runs are taken
	refusals    loop.Refusals // guarded by taking: runs that the store has refused to have taken
}

// duty looks into the inbox at each hint, and by itself where hints can be lost.
func (b *inbox) duty(signals store.Signals) loop.Duty {
	return loop.Duty{
		What: "looking into the inbox", Wakes: []<-chan struct{}{signals.Inbox, b.Life.Wakes.Inbox},
		Once: func(ctx context.Context) (time.Duration, error) {
			wait := time.Duration(loop.Forever)
			if _, poll := b.Store.Poll(); poll > 0 {
				wait = poll
			}
			err := b.look(ctx)
			if b.anyRefused() { // no hint comes for these
				wait = min(wait, loop.RefusedPause)
			}
			return wait, err
		},
	}
}

// look goes through the inbox: it kills what is to be killed, has questions
// answered, and takes what there is room for.
func (b *inbox) look(ctx context.Context) error {
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
			b.killer.killHere(ctx, r)
		}
		if after == 0 {
			routes, lines := asksByKind(box.Asks)
			b.logs.AnswerLogs(lines)
			b.routers.AnswerRoutes(routes)
		}
		some, err := b.take(ctx, box.Runs)
		full = full || some
		b.queue.InboxFull.Store(full)
		failed = errors.Join(failed, err)
		if len(box.Runs) < inboxLimit {
			return failed
		}
		after = box.Runs[len(box.Runs)-1].ID
	}
}

// asksByKind tells questions for addresses from those for lines of logs.
func asksByKind(asks []store.Ask) (routes, lines []store.Ask) {
	for _, ask := range asks {
		if ask.Route != "" {
			routes = append(routes, ask)
		} else {
			lines = append(lines, ask)
		}
	}
	return routes, lines
}

// take takes those of the runs that there is room for, and has them launched. full reports that there was not room for all.
func (b *inbox) take(ctx context.Context, runs []store.Run) (full bool, err error) {
	b.taking <- struct{}{}
	defer func() { <-b.taking }()
	if b.Life.Draining.Load() {
		return false, nil // the owners put back what waits here
	}
	places := map[string]int{} // asked for before the queue is locked
	for _, r := range runs {
		if _, asked := places[r.App]; !asked {
			places[r.App] = b.attached.PlacesOf(r.App)
		}
	}
	if b.refusals.Len() > 0 {
		runs = slices.DeleteFunc(slices.Clone(runs), func(r store.Run) bool { return b.refusals.Rests(r.ID) })
	}
	fit, full := b.queue.Due.Fitting(runs, places)
	if len(fit) == 0 {
		return full, nil
	}
	// First, so that nothing but the answer to Take is between it and the handlers.
	jobs, err := b.ReadJobs(ctx, core.JobsOf(runs))
	if err != nil {
		return full, err
	}
	since := b.refusals.Taken()
	var apart [][]int64
	if b.refusals.Len() > 0 {
		fit = slices.DeleteFunc(fit, func(id int64) bool {
			known := b.refusals.IsKnown(id)
			if known {
				apart = append(apart, []int64{id})
			}
			return known
		})
	}
	if len(fit) > 0 {
		err = b.takeSome(ctx, fit, jobs)
	}
	switch {
	case errors.Is(err, store.ErrRefused):
		apart = append(apart, fit)
	case err != nil || len(apart) == 0:
		return full, err
	}
	return full, b.takeHalves(ctx, apart, jobs, since)
}

// takeSome takes runs, and has them launched.
func (b *inbox) takeSome(ctx context.Context, ids []int64, jobs map[int64]*store.Job) error {
	began := time.Now()
	taken, err := loop.Detached(ctx, func(ctx context.Context) ([]store.Run, error) { return b.Store.Take(ctx, b.Leases.Incarnation, ids) })
	switch {
	case errors.Is(err, store.ErrRefused):
		return err
	case err != nil:
		b.unconfirmed.addTakes(ids)
		b.unconfirmed.lookNow()
		return b.takenAfterAll(ctx, ids, err)
	}
	b.refusals.Took(len(taken))
	for i := range taken {
		b.refusals.Over(taken[i].ID)
	}
	b.launcher.launchTaken(taken, jobs, began)
	return nil
}

// takeHalves takes runs that the store has refused to have taken together, each half by itself. One
// that it refuses alone stays in the inbox: it is started, and nobody's but this node's, which tries
// it again when it has rested. So it is neither lost nor run twice; should this node go, its owner
// puts it back.
func (b *inbox) takeHalves(ctx context.Context, apart [][]int64, jobs map[int64]*store.Job, since uint64) (err error) {
	why := map[int64]error{}
	for i := 0; i < len(apart) && err == nil; i++ {
		_, _, err = loop.Halve(apart[i], func(part []int64) error {
			err := b.takeSome(ctx, part, jobs)
			if errors.Is(err, store.ErrRefused) && len(part) == 1 {
				if why[part[0]] = err; len(why) >= loop.RefusedFew && b.refusals.Taken() == since {
					return errAllRefused
				}
			}
			return err
		})
	}
	var unclear error
	for id, refused := range why {
		switch times := b.refusals.Alone(id, since); {
		case times == 0:
			unclear = refused
		case times >= loop.RefusedTries:
			b.tellRefused(ctx, id, refused)
		}
	}
	if unclear != nil && (err == nil || err == errAllRefused) {
		return unclear
	}
	return err
}

// tellRefused tells of a run that this node cannot take.
func (b *inbox) tellRefused(ctx context.Context, id int64, why error) {
	if r, err := loop.Call(ctx, func(ctx context.Context) (store.Run, error) { return b.Store.Run(ctx, id) }); err == nil {
		b.Core.Troubles.Refused(b.Clock.Now(), r.App, r.JobID, store.SeenRefusesTake, id, why)
	}
}

// anyRefused reports whether runs stay in the inbox since the store has refused them.
func (b *inbox) anyRefused() bool {
	b.taking <- struct{}{}
	defer func() { <-b.taking }()
	return b.refusals.Len() > 0
}

// takenAfterAll reads runs whose Take returned an error: it may have taken
// effect, and then nobody else will call their handlers.
func (b *inbox) takenAfterAll(ctx context.Context, ids []int64, cause error) error {
	backoff := loop.Backoff{Log: b.Logger, What: "taking runs"}
	var began time.Time
	runs, err := loop.CallUntil(ctx, &backoff,
		func(context.Context) ([]store.Run, error) { return nil, cause },
		func(ctx context.Context) ([]store.Run, error) {
			began = time.Now()
			return b.Store.RunsByID(ctx, ids)
		})
	if err != nil {
		return err
	}
	var taken []store.Run
	for _, r := range runs {
		if r.State == store.StateStarted && r.Address == store.LocalAddress(b.Leases.Incarnation) && !r.Taken.IsZero() {
			taken = append(taken, r)
		}
	}
	if err := b.launcher.launchFound(ctx, taken, began); err != nil || len(taken) == len(ids) {
		return err
	}
	return cause // no hint comes for the others a second time: the loop looks again
}
