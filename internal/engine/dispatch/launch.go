package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Runs that the store has as started, on their way to be sent. Input: those that this node has
// started, from startbatch.go; parts of broadcasts; runs that it has taken from its inbox, or
// has to run although nobody here knew of them. Output: flights of this process, to send.go, or
// runs that other nodes take, to watch.go.

// launcher makes flights of started runs.
type launcher struct {
	*core.Core
	queue       *queue.Queue
	bus         *events.Bus
	resolver    *router.Resolver
	unconfirmed *unconfirmed
	finisher    *finisher
	sender      *sender
	killer      *killer
}

// launchAll is launch for those runs of a batch that were started.
func (l *launcher) launchAll(batch []queue.Attempt, answers []store.Started, flights []*queue.Flight) {
	here := make([]*queue.Flight, 0, len(batch))
	for i := range batch {
		if !queue.DidStart(&answers[i]) {
			continue
		}
		l.bus.Started(&answers[i].Run, batch[i].Job)
		if flights[i] != nil {
			here = append(here, flights[i])
		}
	}
	l.sender.sendAllAtTime(here)
}

// launch moves an entry from the held runs to the flights, which are sent at their time, or to
// the runs at other nodes.
func (l *launcher) launch(a queue.Attempt, run store.Run, covered []store.Run, began time.Time) {
	answer := store.Started{Status: store.StartOK, Run: run, Covered: covered}
	f := l.queue.TakeOffAll([]queue.Attempt{a}, []store.Started{answer}, began)[0]
	l.bus.Started(&run, a.Job)
	if f != nil {
		l.sender.sendAtTime(f)
	}
}

// launchPart does the same for a further part of a broadcast. It takes its
// place without asking: the parts of a broadcast start together.
func (l *launcher) launchPart(a queue.Attempt, run store.Run, began time.Time) {
	r := queue.Destination{Address: run.Address}
	_ = l.resolver.Equip(&r, a.Job) // one that is refused has no executor
	if r.Remote {
		r.Lane, r.Fanned = queue.LaneNone, true // takes its turn in fanOut instead
	}
	l.bus.Started(&run, a.Job)
	if f := l.queue.TakeOffSibling(r, run, a.Job, began); f != nil {
		l.sender.sendAtTime(f)
	}
}

// launchFound is launchTaken for runs whose jobs are not at hand: they were found in the store after
// all, after a call that had failed.
func (l *launcher) launchFound(ctx context.Context, taken []store.Run, began time.Time) error {
	l.unconfirmed.launching(taken, 1)
	defer l.unconfirmed.launching(taken, -1)
	ids := core.JobsOf(taken)
	backoff := loop.Backoff{Log: l.Logger, What: "reading the jobs of taken runs"}
	read := func(ctx context.Context) (map[int64]*store.Job, error) { return l.ReadJobs(ctx, ids) }
	jobs, err := loop.CallUntil(ctx, &backoff, read, read)
	if err != nil {
		l.unconfirmed.lookNow()
		return err
	}
	l.launchTaken(taken, jobs, began)
	return nil
}

// launchTaken makes flights of runs that this node has taken from its inbox.
func (l *launcher) launchTaken(taken []store.Run, jobs map[int64]*store.Job, began time.Time) {
	l.unconfirmed.launching(taken, 1)
	defer l.unconfirmed.launching(taken, -1)
	slices.SortFunc(taken, func(a, b store.Run) int { return compact.KeyOf(&a).Compare(compact.KeyOf(&b)) })
	for _, r := range taken {
		switch {
		case r.State.Ended(): // killed before it was taken
			l.finisher.ended([]store.Run{r})
		case l.queue.InFlight.Of(r.ID) != nil:
		default:
			l.launchOne(r, jobs[r.JobID], began)
		}
	}
}

// launchOne makes a flight of a run that was started before, here or by another node.
func (l *launcher) launchOne(r store.Run, job *store.Job, began time.Time) {
	if job == nil {
		// The job was removed: the run goes on with what the row says.
		job = &store.Job{ID: r.JobID, App: r.App, Handler: r.Handler, Block: r.Block, GlueType: store.GlueBean}
	}
	to := queue.Destination{Address: r.Address}
	refused := l.resolver.Equip(&to, job)
	switch {
	case refused != "":
		l.finisher.finishAsync(concluded(r, store.Result{State: store.StateRefused, HandleMsg: refused, TriggerMsg: refused}))
		return
	case to.Exec == nil:
		why := "app " + r.App + " is not attached any more"
		l.finisher.finishAsync(store.Result{RunID: r.ID, Incarnation: l.Leases.Incarnation, Token: r.Token, State: store.StateRefused, HandleMsg: why, TriggerMsg: why})
		return
	}
	if !to.AwaitsAnswer() {
		to.JobPlace = queue.WaitKey{} // the node that has started it keeps serial runs apart
	}
	switch f := l.queue.TakeOffSibling(to, r, job, began); {
	case f == nil:
	case l.killer.over.Load() && !f.Remote: // looked at now: either killAll has seen it, or this does
		l.killer.cutOff(l.Life.Loops.Work.Ctx, f)
	default:
		l.sender.sendAtTime(f)
	}
}
