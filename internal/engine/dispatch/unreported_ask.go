package dispatch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Questions about runs that executors have accepted and nobody has reported, and the end of
// those that are lost. Input: runs of one address, from unreported.go. Output: results, to
// finish.go; when to ask again, in their list.

// askPass is one go of questions about the runs of one address.
type askPass struct {
	said map[int64]reply      // by job, where the answer was about the job
	jobs map[int64]*store.Job // as far as their timeouts were needed
	turn map[int64]bool       // jobs whose answers it was asked about whether they take turns
	look bool                 // who is registered was looked up once more
}

// askAbout asks about some runs of one address, one after the other. Where it does not answer,
// the first question is for all, and where nobody is there, for all of the address; where it
// takes its time, the others are left for another time. Runs of one job share a question whose
// answer is about the job.
func (u *unreported) askAbout(ctx context.Context, key registry.SiteKey, runs []*askedRun) {
	exec, there := u.calledAt(ctx, runs[0].run)
	several := u.book.IsShared(runs[0].run)
	began, p := time.Now(), askPass{map[int64]reply{}, map[int64]*store.Job{}, map[int64]bool{}, false}
	defer tellShared(u.Core, u.book, runs[0].run)
	for i, o := range runs {
		r, shared := p.said[o.run.JobID]
		switch {
		case shared:
		case there.err != nil:
			r = there
		case time.Since(began) > askPatience:
			u.putOff(runs[i:])
			return
		default:
			r = replyOf(askAboutRun(ctx, u.Core, exec, o.run, o.lacks > 0 || several))
			if there.err = r.err; r.err != nil {
				there = r
			} else if r.unnamed() {
				p.said[o.run.JobID] = r
			}
		}
		if ctx.Err() != nil {
			return
		}
		u.weigh(ctx, &p, o, r)
	}
	if there.nobody {
		u.tellAll(ctx, &p, u.list.ofAddress(key), there, began)
	}
}

// tellAll has the answer that nobody is there weighed for all runs of an address: there may be
// many more than are asked about in one go, and each question takes its time there.
func (u *unreported) tellAll(ctx context.Context, p *askPass, runs []*askedRun, r reply, since time.Time) {
	for _, o := range runs {
		if ctx.Err() != nil {
			return
		}
		if o.heard.Before(since) {
			u.weigh(ctx, p, o, r)
		}
	}
}

// calledAt returns the executor that a run was sent to. An address that is none of its app's
// any more is asked nothing, since the question has the app's token: nobody is there then.
// Where it is not known whether it is, that is no answer either, and no more.
func (u *unreported) calledAt(ctx context.Context, r store.Run) (exec wire.Executor, there reply) {
	known, err := u.book.KnewLately(ctx, r.App, r.Address)
	switch {
	case err != nil:
		return nil, reply{err: err}
	case !known:
		return nil, reply{err: fmt.Errorf("%s is not an address of app %s any more", r.Address, r.App), nobody: true}
	}
	remote, err := u.book.Remotes.Get(r.App, r.Address)
	if err != nil {
		return nil, reply{err: err, nobody: true}
	}
	return remote, reply{}
}

// putOff leaves runs for another time, behind those that have waited longer.
func (u *unreported) putOff(runs []*askedRun) {
	for _, o := range runs {
		u.list.at(o, time.Now().Add(time.Second))
	}
}

// weigh takes in what has come of a question about a run, and acts on it.
func (u *unreported) weigh(ctx context.Context, p *askPass, o *askedRun, r reply) {
	now, key := time.Now(), registry.LivenessKey(o.run.App, o.run.Address)
	o.heard = now
	r.nobody = !o.justUnavailable(r.err, now) && r.nobody
	if s := u.book.Memory.Liveness.Of(key, o.run.BootID, now); s.Since.After(o.since) {
		o.since, o.lackedSince = s.Since, time.Time{} // after a gap in this node's looks everything counts anew
		o.lacks, o.firstLack, o.deaf = 0, time.Time{}, time.Time{}
	}
	o.note(r, o.bootFor(r, u.book.Memory.Liveness.Of(key, o.run.BootID, now)), now)
	if r.err == nil {
		u.book.Memory.StillThere(o.run.App, o.run.Address)
	}
	if r.err == nil && r.boot != "" {
		u.book.Memory.Liveness.Answered(key, r.boot, now)
	}
	if r.state == wire.RunHeld && o.run.BootID == "" && r.boot != "" {
		u.list.isOf(o, r.boot)
	}
	if r.unnamed() && r.busy {
		u.busyAgain(ctx, p, o, key, now)
	}
	e := u.evidence(ctx, p, o, r, now)
	c := u.bounds.conclude(e, r)
	if c.lost != "" && e.Replaced > 0 && !p.look { // unless it has registered since the last look
		p.look = true
		u.lookAt(ctx, []string{o.run.App}, now)
		e = u.evidence(ctx, p, o, r, now)
		c = u.bounds.conclude(e, r)
	}
	switch {
	case c.reread:
		u.reread(ctx, o)
	case c.lost != "":
		u.end(o, o.run, c.lost)
	case c.overdue && (o.warned.IsZero() || now.Sub(o.warned) >= u.Cfg.Limits.Overdue):
		o.warned = now
		u.Logger.Warn("xxljob: a run is overdue, and its executor says that it still has it", "run", o.run.ID, "job", o.run.JobID, "address", o.run.Address, "started", o.run.Started)
	}
	u.list.at(o, now.Add(u.bounds.next(e)))
}

// busyAgain takes in that a job is busy. Where it was idle a moment ago, and nothing was sent there
// in between, several processes are at the address: that it was idle says nothing then.
func (u *unreported) busyAgain(ctx context.Context, p *askPass, o *askedRun, key registry.SiteKey, now time.Time) {
	if !p.turn[o.run.JobID] && tookTurns(ctx, u.Core, o.run, o.lastIdle, now) {
		u.book.Memory.Liveness.TookTurns(key, now)
	}
	p.turn[o.run.JobID] = p.turn[o.run.JobID] || !o.lastIdle.IsZero()
	o.lastIdle = time.Time{}
	if u.book.IsShared(o.run) {
		o.lackedSince = time.Time{}
	}
}

// evidence is what is known of a run, after an answer.
func (u *unreported) evidence(ctx context.Context, p *askPass, o *askedRun, r reply, now time.Time) evidence {
	s := u.book.Memory.Liveness.Of(registry.LivenessKey(o.run.App, o.run.Address), o.run.BootID, now)
	e := evidence{Standing: s, boot: o.bootFor(r, s), watched: now.Sub(o.known), age: u.Clock.Age(o.run.Started), overdue: u.Cfg.Limits.Overdue}
	if e.age >= e.overdue {
		o.job = p.jobs[o.run.JobID]
		e.overdue = u.inDoubt.overdue(ctx, o)
		p.jobs[o.run.JobID], o.job = o.job, nil // there may be many runs, and definitions change
	}
	e.absent, e.deaf = sinceThen(o.lackedSince, now), sinceThen(o.deaf, now)
	if e.boot == "" && r.lacks("") {
		e.lacksInARow, e.lackingFor = o.lacks, sinceThen(o.firstLack, now)
	}
	if s.Several && e.boot == "" && r.lacks("") && r.boot != "" {
		e.denied = o.deniedBy(r.boot, s.Boots)
	}
	return e
}

// bootFor is the process that an answer about a run is held against. Where only answers tell
// processes apart another one may be in the place of the run's, or beside it: then the answer is
// that of whichever is there.
func (o *askedRun) bootFor(r reply, s registry.Standing) string {
	if s.Unnamed && r.boot != o.run.BootID {
		return ""
	}
	return o.run.BootID
}

// deniedBy takes in that a process does not have the run, and reports whether all have said so that
// are there.
func (o *askedRun) deniedBy(boot string, there []string) bool {
	if o.denied == nil {
		o.denied = map[string]bool{}
	}
	o.denied[boot] = true
	maps.DeleteFunc(o.denied, func(boot string, _ bool) bool { return !slices.Contains(there, boot) })
	return len(there) > 0 && len(o.denied) == len(there)
}

// sinceThen is how long something is ago, 0 where it was not.
func sinceThen(then, now time.Time) time.Duration {
	if then.IsZero() {
		return 0
	}
	return max(now.Sub(then), 1)
}

// reread ends a run as lost whose result was acknowledged and is not there: the store has
// forgotten it.
func (u *unreported) reread(ctx context.Context, o *askedRun) {
	r, err := loop.Call(ctx, func(ctx context.Context) (store.Run, error) { return u.Store.Run(ctx, o.run.ID) })
	switch {
	case err != nil && !errs.IsNotFound(err):
	case err == nil && r.State == store.StateDispatched && r.Token == o.run.Token && r.Owner == o.run.Owner:
		u.end(o, r, resultForgotten)
	default:
		u.list.drop(o)
	}
}

// end ends a run that is lost, unless it has ended otherwise, or it is not this node's to end.
func (u *unreported) end(o *askedRun, r store.Run, why string) {
	if _, owned := u.Leases.Epoch(r.Shard); !owned || !u.Leases.Trusted(time.Now()) {
		return
	}
	u.finisher.finishAsync(concluded(r, store.Result{State: store.StateLost, HandleMsg: why}))
	u.list.drop(o)
}
