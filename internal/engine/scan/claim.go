package scan

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/plan"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Claims: the plans of due jobs, written to the store.

// claimer plans due jobs. It belongs to the scan loop.
type claimer struct {
	*core.Core
	queue       *queue.Queue
	bus         *events.Bus
	reload      *lease.ReloadSet
	unconfirmed unconfirmedClaim
	claiming    claimCalls
	waiting     waitingJobs
	unable      int              // jobs of the last scan that were left as they are
	stopping    map[int64]string // jobs that were to be stopped, with the reasons, until it is known whether they are
	refusals    loop.Refusals    // jobs whose claims the store has refused
}

// claim plans the jobs and writes the plans. It returns the earliest instant
// that is not planned yet; missed reports that some jobs were not as they had
// been read.
func (c *claimer) claim(ctx context.Context, shards []store.Shard, due []store.DueJob, now, before time.Time) (next time.Time, missed bool, err error) {
	c.noteStopped(ctx, due)
	var left []core.UnableJob
	defer func() {
		c.unable = len(left)
		c.TellUnable(core.UnableDue, now, left)
	}()
	if len(due) == 0 {
		return next, false, nil
	}
	epochs := make(map[int]int64, len(shards))
	for _, sh := range shards {
		epochs[sh.ID] = sh.Epoch
	}
	p := plan.PlanAt(c.Core, now, before)
	c.claiming.scratch.Reset()
	p.Scratch = &c.claiming.scratch
	plans := slices.Grow(c.claiming.plans.Again(), len(due))
	var apart []store.Plan // of jobs whose claims were refused: each goes alone, behind the others
	jobs := make(map[int64]*store.Job, len(due))
	for i := range due {
		j := &due[i]
		if c.refusals.Rests(j.ID) {
			continue
		}
		if c.waiting.has(ctx, &j.Job) {
			continue
		}
		planned := p.Plan(j, epochs[j.Shard])
		if planned.Stop != "" {
			if found, is := unable(&j.Job); is {
				if !j.Next.After(now) {
					found.Late = 1
				}
				left = append(left, found)
				continue
			}
			c.stopping[j.ID] = planned.Stop
		}
		if c.refusals.IsKnown(j.ID) {
			apart = append(apart, planned)
		} else {
			plans = append(plans, planned)
		}
		jobs[j.ID] = &j.Job
		next = core.Earlier(next, planned.Next)
	}
	c.claiming.plans.Used(plans)
	if !c.Leases.Trusted(time.Now()) {
		return next, false, nil
	}
	refused := refusedClaims{since: c.refusals.Taken()}
	for rest := plans; len(rest) > 0 && !refused.all; {
		some := rest[:claimSize(rest)]
		rest = rest[len(some):]
		began := time.Now()
		done, err := c.claimHalves(ctx, shards, some, jobs, &refused)
		if err != nil {
			return next, false, err
		}
		missed = missed || !done
		if len(rest) > 0 && !c.rest(ctx, time.Since(began), rest[0].Due) {
			return next, true, nil
		}
	}
	for len(apart) > 0 && !refused.all {
		i := rand.IntN(len(apart)) // else the same few might always use up the tries
		apart[0], apart[i] = apart[i], apart[0]
		some := apart[:1]
		apart = apart[1:]
		done, err := c.claimHalves(ctx, shards, some, jobs, &refused)
		if err != nil {
			return next, false, err
		}
		missed = missed || !done
	}
	if err := c.judgeRefused(ctx, shards, jobs, &refused); err != nil {
		return next, false, err
	}
	c.noteStopped(ctx, nil) // of all of them: what a later call stops is not stopped before
	return next, missed, nil
}

// Claims that the store refuses: one of them holds up no other.

// refusedClaims are the plans of one scan that were refused alone.
type refusedClaims struct {
	plans []refusedClaim
	since uint64 // how many were taken before the scan
	all   bool   // it seems that all are refused: no more are tried
}

type refusedClaim struct {
	store.Plan
	why error
}

// add adds one of them.
func (r *refusedClaims) add(c *claimer, p *store.Plan, why error) {
	r.plans = append(r.plans, refusedClaim{*p, why})
	r.all = len(r.plans) >= loop.RefusedFew && c.refusals.Taken() == r.since
}

// claimHalves is claimSome, and of plans that the store refuses together each half by itself. Those
// that are refused alone are judged when the others have had their turn.
func (c *claimer) claimHalves(ctx context.Context, shards []store.Shard, plans []store.Plan, jobs map[int64]*store.Job, refused *refusedClaims) (done bool, err error) {
	done, err = c.claimSome(ctx, shards, plans, jobs)
	switch {
	case !errors.Is(err, store.ErrRefused):
		return done, err
	case len(plans) == 1:
		refused.add(c, &plans[0], err)
		return true, nil
	}
	c.reload.Add(shards) // some may have been taken before others were refused
	done = true
	_, _, err = loop.Halve(plans, func(part []store.Plan) error {
		all, err := c.claimSome(ctx, shards, part, jobs)
		done = done && (all || err != nil)
		if len(part) > 1 || !errors.Is(err, store.ErrRefused) {
			return err
		}
		if refused.add(c, &part[0], err); refused.all {
			return errAllRefused
		}
		return err
	})
	if err == errAllRefused {
		err = nil
	}
	return done, err
}

// errAllRefused ends the halving of a batch.
var errAllRefused = errors.New("all are refused")

// judgeRefused stops the jobs whose claims the store has refused for ever. Where it has taken none
// it may be refusing them all, which is an error of the scan, and no fault of theirs.
func (c *claimer) judgeRefused(ctx context.Context, shards []store.Shard, jobs map[int64]*store.Job, refused *refusedClaims) error {
	var unclear error
	for i := range refused.plans {
		p := &refused.plans[i]
		again := c.refusals.IsKnown(p.JobID)
		switch times := c.refusals.Alone(p.JobID, refused.since); {
		case times == 0:
			unclear = p.why
		case times >= loop.RefusedTries:
			if err := c.stopRefused(ctx, shards, p, jobs); err != nil {
				return err
			}
		case again:
			c.Core.Troubles.Refused(c.Clock.Now(), jobs[p.JobID].App, p.JobID, store.SeenRefusesPlan, 0, p.why)
		}
	}
	if unclear == nil {
		return nil
	}
	err := fmt.Errorf("nothing is taken: %v", unclear) // and no refusal of a single one any more
	c.claiming.Failed(ctx, err)
	return err
}

// stopRefused stops a job whose claim the store refuses for ever. Where it refuses even that, the
// job stays as it is, and is tried again when it has rested.
func (c *claimer) stopRefused(ctx context.Context, shards []store.Shard, p *refusedClaim, jobs map[int64]*store.Job) error {
	stop := store.Plan{
		JobID: p.JobID, Shard: p.Shard, Epoch: p.Epoch, Version: p.Version, Due: p.Due,
		Stop: core.RefusedText("the runs of its schedule", p.why),
	}
	c.stopping[p.JobID] = stop.Stop
	_, err := c.claimSome(ctx, shards, []store.Plan{stop}, jobs)
	if !errors.Is(err, store.ErrRefused) {
		return err
	}
	c.Core.Troubles.Refused(c.Clock.Now(), jobs[p.JobID].App, p.JobID, store.SeenRefusesStop, 0, err)
	return nil
}

// claimSome writes some of the plans. done reports that all of their jobs were as they had been
// read.
func (c *claimer) claimSome(ctx context.Context, shards []store.Shard, plans []store.Plan, jobs map[int64]*store.Job) (done bool, err error) {
	memory := c.claiming.answers.Again()
	runs, err := loop.Detached(ctx, func(ctx context.Context) ([]store.Run, error) {
		return c.Store.Claim(ctx, memory, plans)
	})
	if errors.Is(err, store.ErrRefused) {
		return false, err // the store has answered: nothing is under way any more
	}
	if c.claiming.Failed(ctx, err) {
		// The claim may have taken effect, or may yet: what it planned has to be read.
		c.claiming.drop()
		c.reload.Add(shards)
		c.unconfirmed.until = time.Now().Add(core.DoubtLasts)
		return false, err
	}
	c.claiming.answers.Used(runs)
	c.refusals.Took(len(runs))
	c.tell(plans, runs, jobs)
	c.queue.Hold(runs, jobs)
	for i := range runs {
		delete(jobs, runs[i].JobID)
		c.refusals.Over(runs[i].JobID)
	}
	done = true
	for i := range plans {
		p := &plans[i]
		if _, none := jobs[p.JobID]; none && len(p.Runs) > 0 {
			done = false
			c.LockedOut.Job(p.JobID, p.Due)
		}
	}
	return done, nil
}

// claimSize is how many of the plans are written by one call: those of claimRuns runs, and of
// one job at least.
func claimSize(plans []store.Plan) int {
	n, runs := 1, len(plans[0].Runs)
	for n < len(plans) && n < claimRuns && runs+len(plans[n].Runs) <= claimRuns {
		runs += len(plans[n].Runs)
		n++
	}
	return n
}

// claimRuns is about how many runs one call plans.
const claimRuns = 1000

// rest leaves the store to the starts for as long as a call has taken, where what comes next has
// the time: a window of many jobs is planned seconds ahead, and all at once would hold up what
// is due now. It reports false once this node is not to go on.
func (c *claimer) rest(ctx context.Context, took time.Duration, due time.Time) bool {
	if due.Sub(c.Clock.Now()) > c.Cfg.PreRead/4 {
		began := time.Now()
		loop.Sleep(ctx, min(took, restMost))
		c.claiming.rested += time.Since(began)
	}
	return ctx.Err() == nil && c.Leases.Trusted(time.Now())
}

// claimCalls are the calls of Store.Claim: how they are spaced, and memory that they use again.
type claimCalls struct {
	loop.Backoff
	rested  time.Duration            // between the calls of one scan
	scratch plan.Scratch             // for the plans of a scan
	plans   loop.Scratch[store.Plan] // of a scan
	answers loop.Scratch[store.Run]  // of the last call
}

// drop leaves the memory to a call that may still be under way.
func (c *claimCalls) drop() {
	c.scratch.Drop()
	c.plans.Drop()
	c.answers.Drop()
}

// restMost is how long it does so at most.
const restMost = 50 * time.Millisecond

// noteStopped counts the jobs that have stopped since their schedule cannot be evaluated, but for
// those that are due again: these are to be stopped once more. A claim may have passed a job by,
// or have taken effect although it had an error, so the jobs say.
func (c *claimer) noteStopped(ctx context.Context, due []store.DueJob) {
	var ids []int64
	for id := range c.stopping {
		if !slices.ContainsFunc(due, func(j store.DueJob) bool { return j.ID == id }) {
			ids = append(ids, id)
		}
	}
	jobs, err := c.ReadJobs(ctx, ids)
	if err != nil {
		return // they are asked again with the next scan
	}
	for _, id := range ids {
		why := c.stopping[id]
		delete(c.stopping, id)
		if job := jobs[id]; job != nil && job.Stopped && core.KeptAs(why, job.StopReason) {
			c.Life.FaultCounts.Unplannable.Add(1)
			c.Logger.Error("xxljob: stopped a job that cannot be planned", "job", id, "name", job.Name, "error", why)
		}
	}
}

// tell tells of what was planned, and of jobs that were stopped.
func (c *claimer) tell(plans []store.Plan, runs []store.Run, jobs map[int64]*store.Job) {
	c.bus.Planned(runs, jobs)
	for i := range runs {
		if runs[i].State.Ended() {
			c.bus.Ended(&runs[i], jobs[runs[i].JobID])
		}
	}
	for i := range plans {
		if ends(&plans[i]) {
			c.bus.MayHaveStopped(plans[i].JobID)
		}
	}
}

// ends reports whether the claim may stop the job: for its Stop, or since it has neither a
// next instant nor a run that is to be started.
func ends(p *store.Plan) bool {
	starts := slices.ContainsFunc(p.Runs, func(n store.NewRun) bool { return !n.State.Ended() })
	return p.Stop != "" || p.Next.IsZero() && !p.Wait && !starts
}

// unconfirmedClaim makes the loop read planned runs again and again for a while after a
// claim whose outcome is unknown: a commit that hangs in the database may land long
// after the answer was given up, and no scan returns what it has planned.
type unconfirmedClaim struct{ until, last time.Time }

func (u *unconfirmedClaim) due(now time.Time) bool {
	if u.until.IsZero() || now.Sub(u.last) < unconfirmedEvery {
		return false
	}
	u.last = now
	if now.After(u.until) {
		u.until = time.Time{} // once more, and then it is settled
	}
	return true
}

// unconfirmedEvery is how often it is read.
const unconfirmedEvery = 2 * time.Second
