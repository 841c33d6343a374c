package router

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/store"
)

// Troubles of routing: due runs that go nowhere. Comes in what Route has refused, goes out a
// trouble for each app or job, until somebody is there.

// refusedKept is for how long such a trouble is named without another run that is refused, unless
// it is over before.
const refusedKept = time.Hour

// sayNobody names the app whose run has found nobody, or the job whose handler nobody has. Those
// who have chosen the addresses by hand are told by the run.
func (ro *Router) sayNobody(en *queue.Item, job *store.Job, why string) {
	if len(en.Run.Addresses()) > 0 {
		return
	}
	x := store.Trouble{App: job.App, JobID: job.ID, Late: 1, Detail: why, Remedy: "start an executor that has this handler, or correct the job's handler"}
	if registry.IsNoExecutor(job.App, why) {
		x.JobID, x.Remedy = 0, "start an executor of this app, or stop its jobs; see whether executors reach this address to register"
	}
	ro.Troubles.Saw(store.TroubleNoExecutor, ro.Clock.Now(), refusedKept, x)
}

// sayUnknown names a job whose routing strategy is not known here.
func (ro *Router) sayUnknown(job *store.Job) {
	ro.Troubles.Saw(store.TroubleUnknownRouter, ro.Clock.Now(), refusedKept, store.Trouble{
		App: job.App, JobID: job.ID, Late: 1, Detail: "routing strategy " + job.Route + " is not known on this node: " + errs.OneOf(job.Route, ro.Strategies.Names),
		Remedy: "give each node of this schema the same Config.Routers, or correct the job's routing strategy",
	})
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

func (ro *Router) isMended(ctx context.Context, x *store.Trouble) bool {
	if x.JobID == 0 {
		has, err := ro.Lookup.Book.HasExecutor(ctx, x.App)
		return has && err == nil
	}
	jobs, err := ro.ReadJobs(ctx, []int64{x.JobID})
	if err != nil {
		return false
	}
	job := jobs[x.JobID]
	if job == nil || job.Stopped {
		return true
	}
	if _, owned := ro.Leases.Epoch(job.Shard); !owned {
		return true
	}
	if x.Cause == store.TroubleUnknownRouter {
		return ro.Strategies.ByName[job.Route] != nil
	}
	addrs, why, err := ro.Lookup.Book.Lookup(ctx, job, nil)
	return err == nil && (len(addrs) > 0 || registry.IsNoExecutor(job.App, why))
}
