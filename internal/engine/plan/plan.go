package plan

import (
	"errors"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// Planning is pure: it sees a job and the time, and says what to insert. It
// neither reads nor writes the store, so no transaction waits for it. Input:
// due jobs, from scan/claim.go. Output: a Plan, with which that calls Store.Claim.

// planner turns due jobs into plans. It is a value: one for each scan.
type planner struct {
	now, before time.Time     // instants up to before are planned
	preRead     time.Duration // of jobs with a shorter period one instant more is planned
	threshold   time.Duration
	catchUp     store.CatchUp
	maxPlanned  int
	Scratch     *Scratch // memory for the runs of its plans; nil: they have their own
}

// PlanAt is the planner of a scan at a time.
func PlanAt(s *core.Core, now, before time.Time) planner {
	return planner{now: now, before: before, preRead: s.Cfg.PreRead, threshold: s.Cfg.MisfireThreshold, catchUp: s.Cfg.CatchUp, maxPlanned: s.Cfg.Limits.MaxPlanned}
}

// Next is the instant of the first run that would be planned of a job that is due, or else of
// the first that is not due yet.
func (p planner) Next(job *store.Job) time.Time {
	plan := p.Plan(&store.DueJob{Job: *job}, 0)
	for _, r := range plan.Runs {
		if r.State == store.StatePlanned {
			return r.At
		}
	}
	return plan.Next
}

// errNotAdvancing guards the loop against a schedule that stands still.
var errNotAdvancing = errors.New("the schedule does not advance")

// Plan covers every instant of the job up to p.before: each is in exactly one
// of its runs. The plan's Next is the first instant that is not.
func (p planner) Plan(j *store.DueJob, epoch int64) store.Plan {
	plan := store.Plan{JobID: j.ID, Shard: j.Shard, Epoch: epoch, Version: j.Version, Due: j.Next}
	plan.Runs = p.Scratch.begin()
	b := planBuilder{planner: p, job: j, plan: &plan, left: runsLeft(&j.Job), spare: p.maxPlanned - j.Waiting}
	err := b.build()
	plan.Runs = p.Scratch.end(plan.Runs)
	if err != nil {
		plan.Runs, plan.Next, plan.Wait = nil, time.Time{}, false
		plan.Stop = errs.Shorten(err.Error(), 400)
	}
	return plan
}

// planBuilder holds one plan in the making.
type planBuilder struct {
	planner
	job   *store.DueJob
	plan  *store.Plan
	spare int // how many more runs may wait
	left  int // how many more the schedule makes
}

func (b *planBuilder) build() error {
	at := b.job.Next
	if _, err := b.job.Schedule.Every(); err != nil {
		return err
	}
	if b.left == 0 {
		return nil
	}
	if b.isDelay() && at.Before(b.job.NotBefore) { // which was set while a run was waited for
		b.plan.Next = b.job.NotBefore
		return nil
	}
	if !Within(&b.job.Job, at) { // set by a node that knows nothing of bounds
		next, err := b.next(at)
		b.plan.Next = next
		return err
	}
	ahead := b.windowSize()
	if b.preRead > 0 {
		ahead++
	}
	if b.spare < ahead {
		b.spare += ahead // runs planned ahead of their time are not a backlog
	}
	if b.job.CatchUp == store.CatchUpEveryMissed && b.late(at) {
		return b.missed(at)
	}
	if b.now.Sub(at) > b.threshold {
		return b.misfire(at, b.now)
	}
	if b.late(at) && b.catchUpOnce() && b.spare > 0 {
		s, err := b.span(at, b.now)
		if err != nil {
			return err
		}
		run := b.run(s.last)
		if s.count > 1 {
			run.First, run.Last, run.Count = s.first, s.last, s.count
		}
		return b.add(run, s.next)
	}
	return b.ahead(at)
}

// ahead plans one run for each instant from at on, up to the window's end. Of a job
// that comes round within a pre-read it plans one more: it is claimed half as often
// then, or less, and to claim a job costs more than to plan a run.
func (b *planBuilder) ahead(at time.Time) error {
	end := b.before
	for b.left > 0 && !at.IsZero() && !at.After(end) && len(b.plan.Runs) < maxPlan {
		if b.spare <= 0 {
			return b.backlog(at)
		}
		if b.isDelay() {
			b.take(b.run(at))
			b.plan.Wait = true
			return nil
		}
		next, err := b.next(at)
		if err != nil {
			return err
		}
		b.take(b.run(at))
		if b.spare > 0 && end.Equal(b.before) && next.After(end) && next.Sub(at) <= b.preRead && next.Sub(b.now) <= core.MaxPreRead {
			end = next
		}
		at = next
	}
	if b.left > 0 {
		b.plan.Next = at
	}
	return nil
}

// take plans a run.
func (b *planBuilder) take(run store.NewRun) {
	b.plan.Runs = append(b.plan.Runs, run)
	b.spare--
	b.left--
}

// missed plans a run for each late instant within the bounds of the job, the latest
// CatchUpMost of those that are no older than CatchUpAge, and makes one record of those before.
// Those ahead have room for a window of their own behind them.
func (b *planBuilder) missed(at time.Time) error {
	if b.spare <= 0 {
		return b.misfire(at, b.now)
	}
	spare, most := b.spare, min(b.job.MostCatchUp(), b.spare)
	b.spare = 0 // the size is told whatever room there is
	b.spare = max(spare, most+b.windowSize()+2)
	first, err := b.firstCaughtUp(at, most)
	switch {
	case err != nil:
		return err
	case first.IsZero() || first.After(b.now):
		return b.misfire(at, b.now)
	case first.After(at):
		return b.misfire(at, first.Add(-time.Millisecond))
	}
	return b.ahead(at)
}

// firstCaughtUp is the first of the late instants from at on that are within the bounds of the job;
// one that is not late, or none, says that all of them are too old. However many there are, it looks
// at few more than most: it counts from the oldest that may be caught up, and where there are more it
// goes back from the latest.
func (b *planBuilder) firstCaughtUp(at time.Time, most int) (first time.Time, err error) {
	first = at
	if oldest := b.now.Add(-b.job.CatchUpAge); b.job.CatchUpAge > 0 && at.Before(oldest) {
		if b.isDelay() {
			return time.Time{}, nil
		}
		if first, err = instantInStep(&b.job.Job, at, oldest.Add(-time.Millisecond)); err != nil {
			return time.Time{}, err
		}
	}
	if b.isDelay() || first.IsZero() || first.After(b.now) {
		return first, nil
	}
	end := b.now
	if last := b.job.NotAfter; !last.IsZero() && last.Before(end) {
		end = last
	}
	if d, err := b.job.Schedule.Every(); err != nil || d > 0 {
		return first.Add(max(end.Sub(first)/d-time.Duration(most-1), 0) * d), err
	}
	n := 0
	for at = first; !at.IsZero() && !at.After(b.now) && n <= most; n++ {
		if at, err = b.next(at); err != nil {
			return time.Time{}, err
		}
	}
	if n <= most {
		return first, nil
	}
	end = end.Add(time.Millisecond)
	for range most {
		if end, err = b.job.Schedule.Previous(end); err != nil {
			return time.Time{}, err
		}
	}
	return end, nil
}

// misfire makes one record of all instants from at up to end, which are past: they are later than
// the threshold, or than the job catches up.
func (b *planBuilder) misfire(at, end time.Time) error {
	s, err := b.span(at, end)
	if err != nil {
		return err
	}
	if b.job.Misfire == store.MisfireFireOnceNow && b.spare > 0 {
		run := s.record(store.TriggerMisfire, store.StatePlanned, "")
		run.At = s.last
		return b.add(run, s.next)
	}
	run := s.record(b.triggerType(), store.StateSkipped, store.ReasonMisfire)
	b.plan.Runs = append(b.plan.Runs, run)
	if b.isDelay() {
		// Nothing runs, so nothing is waited for: a delay counts from now.
		b.plan.Next, err = b.next(b.now)
		return err
	}
	return b.ahead(s.next)
}

// backlog makes one record of all instants up to the window's end: too many
// runs of the job wait already.
func (b *planBuilder) backlog(at time.Time) error {
	s, err := b.span(at, b.before)
	if err != nil {
		return err
	}
	b.plan.Runs = append(b.plan.Runs, s.record(b.triggerType(), store.StateSkipped, store.ReasonBacklog))
	b.plan.Next = s.next
	return nil
}

// add plans a run that is due at once, then goes on with the instants after it.
func (b *planBuilder) add(run store.NewRun, next time.Time) error {
	b.take(run)
	if b.isDelay() {
		b.plan.Wait = true
		return nil
	}
	return b.ahead(next)
}

// maxPlan is how many runs one plan has at most: a store makes their ids at one
// moment, and a moment has no more than 7680. The next plan goes on behind them.
const maxPlan = 4096

// span is a stretch of instants that become one record.
type span struct {
	first, last, next time.Time
	count             int
}

func (s span) record(t store.TriggerType, state store.State, reason string) store.NewRun {
	return store.NewRun{At: s.first, Type: t, State: state, First: s.first, Last: s.last, Count: s.count, Reason: reason}
}

// span counts the job's instants from at up to and including end. It stops counting
// at store.CountCap: the span then goes on to end, or to NotAfter.
func (b *planBuilder) span(at, end time.Time) (s span, err error) {
	s.first = at
	if last := b.job.NotAfter; !last.IsZero() && last.Before(end) {
		end = last
	}
	if d, err := b.job.Schedule.Every(); err != nil {
		return s, err
	} else if d > 0 {
		n := end.Sub(at) / d
		s.last, s.count = at.Add(n*d), int(min(n+1, store.CountCap))
		s.next, err = b.next(s.last)
		return s, err
	}
	for !at.IsZero() && !at.After(end) {
		if s.count == store.CountCap {
			s.last = end.Truncate(time.Millisecond)
			at, err = b.next(end)
			break
		}
		s.last, s.count = at, s.count+1
		if at, err = b.next(at); err != nil {
			return s, err
		}
	}
	s.next = at
	return s, err
}

// windowSize is the number of instants that a window of the pre-read holds;
// zero where there is room for as many as it could hold.
func (b *planBuilder) windowSize() int {
	window := b.before.Sub(b.now)
	if d, err := b.job.Schedule.Every(); err != nil || d > 0 {
		return int(window/max(d, 1)) + 1
	}
	if b.spare > int(window/time.Second) {
		return 0
	}
	n := 0
	for at := b.now; n < int(window/time.Second)+1; n++ {
		next, err := b.next(at)
		if err != nil || next.IsZero() || next.After(b.before) {
			break
		}
		at = next
	}
	return n
}

// next is the job's next instant, never one that does not advance.
func (b *planBuilder) next(after time.Time) (time.Time, error) {
	next, err := instantAfter(&b.job.Job, after)
	if err == nil && !next.IsZero() && !next.After(after) {
		err = fmt.Errorf("xxljob: schedule %v after %v: %w", b.job.Schedule, after, errNotAdvancing)
	}
	return next, err
}

func (b *planBuilder) run(at time.Time) store.NewRun {
	return store.NewRun{At: at, Type: b.triggerType(), State: store.StatePlanned}
}

func (b *planBuilder) late(at time.Time) bool { return !at.After(b.now) }

func (b *planBuilder) isDelay() bool { return b.job.Schedule.Type == schedule.TypeFixDelay }

func (b *planBuilder) catchUpOnce() bool {
	c := b.job.CatchUp
	errs.SetDefault(&c, b.catchUp)
	return c == store.CatchUpOnce
}

func (b *planBuilder) triggerType() store.TriggerType {
	switch b.job.Schedule.Type {
	case schedule.TypeFixRate:
		return store.TriggerFixRate
	case schedule.TypeFixDelay:
		return store.TriggerFixDelay
	case schedule.TypeOnce:
		return store.TriggerOnce
	default:
		return store.TriggerCron
	}
}

// Overdue is Edit.Missed: a record of the job's instants that are past and not planned.
// After an outage there may be some, and an edit of the schedule or a stop leaves them
// behind.
func Overdue(job store.Job, now time.Time) (record store.NewRun, missed bool) {
	if job.Next.After(now) || !Within(&job, job.Next) {
		return store.NewRun{}, false
	}
	b := planBuilder{planner: planner{now: now, before: now}, job: &store.DueJob{Job: job}, plan: &store.Plan{}}
	s, err := b.span(job.Next, now)
	if err != nil || s.count <= 0 {
		return store.NewRun{}, false // a schedule that cannot be evaluated has no instants
	}
	return s.record(b.triggerType(), store.StateSkipped, store.ReasonEdit), true
}

// Memory for the runs of many plans, which the claims of a node use again.

// Scratch is that memory. What it has lent is its own again with Reset.
type Scratch struct{ loop.Scratch[store.NewRun] }

// Reset takes back what was lent.
func (s *Scratch) Reset() { s.Again() }

// begin lends memory for the runs of one plan. A nil Scratch has none.
func (s *Scratch) begin() []store.NewRun {
	if s == nil {
		return nil
	}
	return s.List[len(s.List):]
}

// end takes in how much of it the plan has used, and returns its runs; nil where it has none. A
// plan that has outgrown it has memory of its own by now, and the next ones are lent more.
func (s *Scratch) end(runs []store.NewRun) []store.NewRun {
	n := len(runs)
	switch {
	case n == 0:
		return nil
	case s == nil:
		return runs
	case n <= cap(s.List)-len(s.List):
		s.List = s.List[:len(s.List)+n]
	default:
		s.List = make([]store.NewRun, 0, max(2*cap(s.List), scratchLeast))
	}
	return runs[:n:n]
}

// scratchLeast is for how many runs it has memory at least.
const scratchLeast = 1000
