package xxljob

// Runs that this node has taken, or has to run although nobody here knows of them. Output:
// flights, to deliver.go.

import (
	"context"
	"time"
)

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
func (in *receiver) receiveAfterAll(ctx context.Context, taken []Run, began time.Time) error {
	in.doubts.received(taken, 1)
	defer in.doubts.received(taken, -1)
	ids := jobsOf(taken)
	backoff := backoff{log: in.log, what: "reading the jobs of taken runs"}
	read := func(ctx context.Context) (map[int64]*Job, error) { return in.readJobs(ctx, ids) }
	jobs, err := callUntil(ctx, &backoff, read, read)
	if err != nil {
		in.doubts.lookNow()
		return err
	}
	in.receive(taken, jobs, began)
	return nil
}

// receive sends taken runs to their executors.
func (in *receiver) receive(taken []Run, jobs map[int64]*Job, began time.Time) {
	in.doubts.received(taken, 1)
	defer in.doubts.received(taken, -1)
	for _, r := range taken {
		switch {
		case r.State.Ended(): // killed before it was taken
			in.finisher.ended([]Run{r})
		case in.engine.under.flight(r.ID) != nil:
		default:
			in.receiveOne(r, jobs[r.JobID], began)
		}
	}
}

func (in *receiver) receiveOne(r Run, job *Job, began time.Time) {
	if job == nil {
		// The job was removed: the run goes on with what the row says.
		job = &Job{ID: r.JobID, App: r.App, Handler: r.Handler, Block: r.Block, GlueType: GlueBean}
	}
	to := routed{address: r.Address}
	in.callees.equip(&to, job)
	switch {
	case to.refused != "":
		in.finisher.finishAsync(concluded(r, Result{State: StateRefused, HandleMsg: to.refused, TriggerMsg: to.refused}))
		return
	case to.exec == nil:
		why := "app " + r.App + " is not attached any more"
		in.finisher.finishAsync(Result{RunID: r.ID, Incarnation: in.leases.incarnation, Token: r.Token, State: StateRefused, HandleMsg: why, TriggerMsg: why})
		return
	}
	to.serial = lot{} // the starter keeps serial runs apart
	if f := in.engine.takeOffSibling(to, r, job, began); f != nil {
		in.deliverer.deliverAt(f)
	}
}
