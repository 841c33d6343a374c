package router

import (
	"context"
	"errors"
	"time"

	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/store"
)

// Troubles of routing: due runs that go nowhere. Input: what Route has refused. Output: a
// trouble for each app or job, until somebody is there.

// errNobody: the app has no executor, and the run waits for one.
var errNobody = errors.New("xxljob: the app has no live executor, and the run waits for one")

// waitsForAnyone reports whether a run waits for an executor of an app that has none. A run that was
// sent to certain addresses does not, and one of a shard that this node has lost is let go of by
// its start.
func (ro *Router) waitsForAnyone(en *queue.Entry, job *store.Job) bool {
	if len(en.Run.Addresses()) > 0 || !ro.Serving.HoldsUpRun(job, time.UnixMilli(en.Run.Created), en.Run.Scheduled()) {
		return false
	}
	_, owned := ro.Leases.Epoch(int(en.Run.Shard))
	return owned
}

// refusedKept is for how long such a trouble is named without another run that is refused, unless
// it is over before.
const refusedKept = time.Hour

// SayRefused names the app whose run has found nobody, the job whose handler nobody has, or the one
// whose routing strategy is not known here. It is told of runs that have ended so.
func (ro *Router) SayRefused(r *queue.Routed, job *store.Job) {
	x := store.Trouble{App: job.App, JobID: job.ID, Late: 1, Detail: r.Refused, Seen: registry.NobodyFor(job, r.Refused)}
	switch {
	case r.Unknown:
		x = troubleOfRouter(job.App, job.ID, store.Seen{What: store.SeenRouterEnded, Names: job.Route, For: RouterWait}) // it was late before
	case !r.Nobody:
		return
	case registry.IsNoExecutor(job.App, r.Refused) && ro.Serving.IsSaid(job.App):
		return // the trouble says how many wait, among whom this one is not any more
	case registry.IsNoExecutor(job.App, r.Refused):
		x.Cause, x.JobID, x.Remedy = store.TroubleNoExecutor, 0, "start an executor of this app, or stop its jobs; see whether executors reach this address to register"
	default:
		x.Cause, x.Remedy = store.TroubleNoExecutor, "start an executor that has this handler, or correct the job's handler"
	}
	ro.Troubles.Saw(x.Cause, ro.Clock.Now(), refusedKept, x)
}

// Mended are those of the two kinds of troubles that are over: somebody is there, or the job does
// not ask for it any more.
func (ro *Router) Mended(ctx context.Context, of []store.Trouble) (over []store.Trouble) {
	for _, x := range of {
		if ctx.Err() == nil && ro.isMended(ctx, &x) {
			over = append(over, x)
		}
	}
	return over
}

// isMissing reports whether runs of the job wait for somebody who tells its strategy. A node that has it and
// does not answer is no help: a run that waits is tried again every routerPause. Of a job that is stopped
// those wait that somebody has triggered.
func (ro *Router) isMissing(job *store.Job) bool {
	last := ro.missing.lastOf(job.ID)
	lately := ro.Clock.Now().Sub(last) <= 2*routerPause+ro.Asks.patience()
	return lately && ro.Strategies.IsUsers(job.Route) && (!job.Stopped || last.After(job.Updated))
}

func (ro *Router) isMended(ctx context.Context, x *store.Trouble) bool {
	if x.JobID == 0 {
		return !ro.Serving.IsAbsent(x.App) // which knows it before, and looks for whoever comes
	}
	jobs, err := ro.ReadJobs(ctx, []int64{x.JobID})
	if err != nil {
		return false
	}
	job := jobs[x.JobID]
	if job == nil {
		return true
	}
	if _, owned := ro.Leases.Epoch(job.Shard); !owned {
		return true
	}
	if x.Cause == store.TroubleUnknownRouter {
		ended := x.Seen.What == store.SeenRouterEnded
		return !ro.isMissing(job) && (job.Stopped || !ended && ro.Lookup.Queue.LateByRouter(job.ID) == 0 || ro.Strategies.ByName[job.Route] != nil || len(ro.Leases.Knowing(job.Route, job.App, job.ID, lease.Lacks)) > 0)
	}
	if job.Stopped {
		return true
	}
	addrs, why, err := ro.Lookup.Book.Lookup(ctx, job, nil)
	return err == nil && (len(addrs) > 0 || registry.IsNoExecutor(job.App, why))
}
