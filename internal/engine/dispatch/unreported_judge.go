package dispatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// When a run that its executor has accepted, and nobody has reported, is over. All of it is
// pure: in go what is known of the run and what its executor has just said, out goes whether
// it is lost, and when to ask again.
//
// Neither silence nor a question without an answer is enough by itself: an executor that
// registers nowhere may be asked, and one that cannot be reached may run on. A process that
// has another at its address has ended, but the other one delivers first what it has found on
// the spool. An executor of others says whether the job is idle, and no more.

// unreportedBounds are what the judge goes by.
type unreportedBounds struct {
	dead, lostAfter time.Duration // of Config.Cluster
	every           time.Duration // how often a run is looked at that there may be news of
}

func newUnreportedBounds(c *core.ClusterConfig) unreportedBounds {
	return unreportedBounds{dead: c.Dead, lostAfter: c.LostAfter, every: min(unreportedEvery, max(c.LostAfter/3, time.Millisecond))}
}

// unreportedEvery is how often, at most, there is a look at runs that nobody has reported.
const unreportedEvery = 10 * time.Second

// unreportedRarely is how often, at least, a run is asked about that is where it should be.
const unreportedRarely = 10 * time.Minute

// evidence is what is known of such a run at a moment.
type evidence struct {
	registry.Standing               // of its address
	boot              string        // the process that it was started for; empty at executors of others
	watched           time.Duration // for how long this node has looked after the run
	age               time.Duration // since its start
	overdue           time.Duration // the age from which on it is overdue
	absent            time.Duration // since its executor was first known not to have it
	deaf              time.Duration // for how long nobody has answered at the address
}

// reply is what has come of a question.
type reply struct {
	answerAbout
	err    error // there is no answer
	nobody bool  // and nobody is there who might give one
}

// replyOf is what an answer, or an error, says.
func replyOf(said answerAbout, err error) reply {
	r := reply{answerAbout: said, err: err}
	var failed *wire.CallError
	if !errors.As(err, &failed) {
		return r // it has refused to be asked, for example
	}
	switch failed.Status {
	case 0, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		r.nobody = true
	}
	return r
}

// unnamed reports whether the answer is about the job, and not about the run.
func (r reply) unnamed() bool { return r.err == nil && r.state == "" }

// speaksFor reports whether the process has answered that has the run, if anybody has it: one
// of others, or of a run of which it is not known, is the one that is there.
func (r reply) speaksFor(boot string) bool { return r.err == nil && (boot == "" || r.boot == boot) }

// lacks reports whether the answer says that the run is not there, or not any more.
func (r reply) lacks(boot string) bool {
	switch {
	case r.unnamed():
		return !r.busy
	case r.state == wire.RunUnknown || r.state == wire.RunForgotten:
		return r.speaksFor(boot)
	}
	return false
}

// note takes in what has come of a question. That a job is idle counts from the second such
// answer in a row: an executor takes a run from its queue and then says that it is busy.
func (o *runInDoubt) note(r reply, now time.Time) {
	said := &o.accepted
	if said.deaf = laterOf(said.deaf, now, r.nobody); r.err != nil {
		return
	}
	if !r.lacks(o.run.BootID) {
		said.absences = 0
		if r.state == wire.RunHeld {
			o.idle = time.Time{}
		}
		return
	}
	if said.absences++; said.absences == 1 {
		said.absent = now
	}
	if said.absences > 1 || !r.unnamed() {
		errs.SetDefault(&o.idle, said.absent)
	}
}

// laterOf is since when something is so, where it is.
func laterOf(since, now time.Time, is bool) time.Time {
	switch {
	case !is:
		return time.Time{}
	case since.IsZero():
		return now
	}
	return since
}

// conclusion is what is to be done about a run.
type conclusion struct {
	lost    string // why it is lost; empty where it may not be
	reread  bool   // its result was acknowledged: the store tells
	overdue bool   // its executor has it, and should not any more
}

// conclude says what is to be done about a run after a question.
func (b unreportedBounds) conclude(e evidence, r reply) conclusion {
	switch why := ""; {
	case r.err == nil && r.state == wire.RunHeld:
		return conclusion{overdue: e.age >= e.overdue}
	case r.err == nil && r.state == wire.RunReported:
		return conclusion{reread: true}
	default:
		if why = b.lost(e, r); why != "" && r.err != nil {
			why += ": " + errs.PlainText(errs.Shorten(r.err.Error(), core.MaxAnswer))
		}
		return conclusion{lost: why}
	}
}

// lost says why a run is lost, "" while it may not be.
func (b unreportedBounds) lost(e evidence, r reply) string {
	named := r.err == nil && !r.unnamed()
	switch {
	case r.state == wire.RunUnknown && e.boot != "" && r.boot == e.boot:
		return "lost: accepted, but its executor does not know the run"
	case e.boot != "" && e.Replaced >= b.lostAfter:
		return fmt.Sprintf("lost: the executor was restarted, and no result came within %v", b.lostAfter)
	case named && !r.speaksFor(e.boot) && !e.Manual && e.Silent >= b.dead:
		return fmt.Sprintf("lost: the executor was not heard of for %v, and another one is in its place", b.dead)
	case r.nobody && !e.Manual && e.Silent >= b.dead:
		return fmt.Sprintf("lost: the executor was not heard of for %v, and nobody answers", b.dead)
	case r.nobody && e.Manual && e.deaf >= b.dead:
		return fmt.Sprintf("lost: nobody has answered at the address for %v", b.dead)
	case r.lacks(e.boot) && e.absent >= b.dead:
		return fmt.Sprintf("lost: the executor does not have the run any more, and no result came within %v", b.dead)
	case e.age < e.overdue || e.watched < b.dead || r.lacks(e.boot) && e.absent < b.dead:
		return ""
	case r.unnamed():
		return fmt.Sprintf("lost: no result within %v, though the job is busy", e.overdue)
	}
	return fmt.Sprintf("lost: no result within %v, and its executor does not say that it has the run", e.overdue)
}

// next is when to ask again about a run of which there was nothing to conclude: when something
// is over that it is to be judged by, or there may be news.
func (b unreportedBounds) next(e evidence) time.Duration {
	wait := b.every
	switch {
	case b.settled(e):
		wait = max(b.dead, min(e.age/4, unreportedRarely))
	case e.Listed && !e.Manual && e.absent == 0 && e.deaf == 0: // that it is idle is soon enough known then
		wait = min(2*b.every, max(b.lostAfter-b.every, b.every))
	}
	for _, until := range []struct {
		is, bound time.Duration
	}{{e.Silent, b.dead}, {e.Replaced, b.lostAfter}, {e.absent, b.dead}, {e.deaf, b.dead}, {e.age, e.overdue}} {
		if left := until.bound - until.is; until.is > 0 && left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

// settled reports whether the process that has the run is one of ours and still registered:
// it reports what it has, and says good-bye.
func (b unreportedBounds) settled(e evidence) bool {
	return e.boot != "" && e.Listed && e.Replaced == 0 && !e.Several && e.absent == 0 && e.deaf == 0
}

// Questions about runs that executors have accepted and nobody has reported, and the end of
// those that are lost. Input: runs of one address, from unreported.go. Output: results, to
// finish.go; when to ask again, in their list.

// unreportedAsker asks about such runs.
type unreportedAsker struct {
	*core.Core
	bounds   unreportedBounds
	book     *registry.Addresses
	finisher *Finisher
	inDoubt  *InDoubt
	list     *unreportedList
}

// askPass is one go of questions about the runs of one address.
type askPass struct {
	said map[int64]reply      // by job, where the answer was about the job
	jobs map[int64]*store.Job // as far as their timeouts were needed
}

// askAbout asks about some runs of one address, one after the other. Where it does not answer,
// the first question is for all, and where nobody is there, for all of the address; where it
// takes its time, the others are left for another time. Runs of one job share a question whose
// answer is about the job.
func (u *unreportedAsker) askAbout(ctx context.Context, key registry.SiteKey, runs []*runInDoubt) {
	exec, there := u.calledAt(ctx, runs[0].run)
	began, p := time.Now(), askPass{map[int64]reply{}, map[int64]*store.Job{}}
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
			r = replyOf(askAboutRun(ctx, u.Core, exec, o.run))
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
func (u *unreportedAsker) tellAll(ctx context.Context, p *askPass, runs []*runInDoubt, r reply, since time.Time) {
	for _, o := range runs {
		if ctx.Err() != nil {
			return
		}
		if o.accepted.asked.Before(since) {
			u.weigh(ctx, p, o, r)
		}
	}
}

// calledAt returns the executor that a run was sent to. An address that is none of its app's
// any more is asked nothing, since the question has the app's token: nobody is there then.
// Where it is not known whether it is, that is no answer either, and no more.
func (u *unreportedAsker) calledAt(ctx context.Context, r store.Run) (exec wire.Executor, there reply) {
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
func (u *unreportedAsker) putOff(runs []*runInDoubt) {
	for _, o := range runs {
		u.list.at(o, time.Now().Add(time.Second))
	}
}

// weigh takes in what has come of a question about a run, and acts on it.
func (u *unreportedAsker) weigh(ctx context.Context, p *askPass, o *runInDoubt, r reply) {
	now, key := time.Now(), registry.PresenceKey(o.run.App, o.run.Address)
	o.accepted.asked = now
	if s := u.book.Memory.Presences.Of(key, o.run.BootID, now); s.Since.After(o.since) {
		o.since, o.idle = s.Since, time.Time{} // after a gap in this node's looks everything counts anew
		o.accepted.absences, o.accepted.absent, o.accepted.deaf = 0, time.Time{}, time.Time{}
	}
	o.note(r, now)
	if r.err == nil {
		u.book.Memory.StillThere(o.run.App, o.run.Address)
	}
	if r.err == nil && r.boot != "" && r.boot == o.run.BootID {
		u.book.Memory.Presences.Answered(key, r.boot, now)
	}
	e := u.evidence(ctx, p, o, now)
	c := u.bounds.conclude(e, r)
	switch {
	case c.reread:
		u.reread(ctx, o)
	case c.lost != "":
		u.end(o, o.run, c.lost)
	case c.overdue && (o.accepted.warned.IsZero() || now.Sub(o.accepted.warned) >= u.Cfg.Limits.Overdue):
		o.accepted.warned = now
		u.Logger.Warn("xxljob: a run is overdue, and its executor says that it still has it", "run", o.run.ID, "job", o.run.JobID, "address", o.run.Address, "started", o.run.Started)
	}
	u.list.at(o, now.Add(u.bounds.next(e)))
}

// evidence is what is known of a run.
func (u *unreportedAsker) evidence(ctx context.Context, p *askPass, o *runInDoubt, now time.Time) evidence {
	s := u.book.Memory.Presences.Of(registry.PresenceKey(o.run.App, o.run.Address), o.run.BootID, now)
	e := evidence{Standing: s, boot: o.run.BootID, watched: now.Sub(o.accepted.known), age: u.Clock.Now().Sub(o.run.Started), overdue: u.Cfg.Limits.Overdue}
	if e.age >= e.overdue {
		o.job = p.jobs[o.run.JobID]
		e.overdue = u.inDoubt.overdue(ctx, o)
		p.jobs[o.run.JobID], o.job = o.job, nil // there may be many runs, and definitions change
	}
	e.absent, e.deaf = sinceThen(o.idle, now), sinceThen(o.accepted.deaf, now)
	return e
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
func (u *unreportedAsker) reread(ctx context.Context, o *runInDoubt) {
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
func (u *unreportedAsker) end(o *runInDoubt, r store.Run, why string) {
	if _, owned := u.Leases.Epoch(r.Shard); !owned || !u.Leases.Trusted(time.Now()) {
		return
	}
	u.finisher.finishAsync(concluded(r, store.Result{State: store.StateLost, HandleMsg: why}))
	u.list.drop(o)
}
