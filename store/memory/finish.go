package memory

// Ends of runs: results, kills, verdicts, and what follows in the same transaction.

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// Finish stores results.
func (s *Store) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	now := toMilli(s.clock())
	accepted := slices.Grow(dst, len(results))
	for i := range results {
		res := &results[i]
		r := s.runs.find(res.RunID)
		switch {
		case r == nil:
		case accepts(r, res):
			r.HandleMsg, r.NoRetry = store.PlainText(res.HandleMsg), res.NoRetry
			r.say(res.TriggerMsg)
			if res.Progress != 0 || res.ProgressText != "" {
				r.setProgress(res.Progress, res.ProgressText)
			}
			accepted = append(accepted, store.Run{})
			s.concludeTo(ctx, &accepted[len(accepted)-1], r, ending{res.State, res.After}, now)
		case r.takesNote() && res.State.Ended() && res.State != store.StateLost && res.Owner == "":
			r.LateNoted = true
			s.sayLater(r, "a result came after the run was "+r.State.String()+": "+res.State.String())
		}
	}
	return accepted, nil
}

// takesNote reports whether it is worth a note where a result comes all the same: of a run that
// is lost, or that was refused elsewhere.
func (r *run) takesNote() bool {
	return !r.LateNoted && (r.State == store.StateLost || r.State == store.StateRefused && store.IsRemote(r.snapshot().Address))
}

// accepts is the compare of the compare-and-set.
func accepts(r *run, res *store.Result) bool {
	if !res.State.Ended() || !r.State.CanBecome(res.State) || r.State == store.StatePlanned {
		return false
	}
	switch {
	case res.Owner != "":
		return r.terms.owner == res.Owner && r.Token == res.Token
	case res.Incarnation == "" && res.Token == 0:
		return true
	}
	return r.State == store.StateStarted && r.Token == res.Token &&
		r.addressee != nil && r.addressee.incarnation == res.Incarnation
}

// Kill asks for the end of a run.
func (s *Store) Kill(ctx context.Context, runID int64, reason string) (store.Run, error) {
	if err := s.begin(ctx); err != nil {
		return store.Run{}, err
	}
	defer s.done()
	if reason == "" {
		reason = "killed" // an empty KillReason would be: nobody asked
	}
	reason = store.PlainText(reason)
	r := s.runs.find(runID)
	if r != nil && r.State.Ended() {
		r = r.latest()
	}
	if r == nil {
		return store.Run{}, failed(store.ErrNotFound, "kill run %d", runID)
	}
	before, now := r.snapshot(), s.clock()
	after := s.kill(ctx, r, reason, now)
	var c store.Change
	if c.OfKill(ctx, &before, &after) {
		s.write(c, nil, now)
	}
	return after, nil
}

func (s *Store) kill(ctx context.Context, r *run, reason string, now time.Time) store.Run {
	switch {
	case r.State == store.StatePlanned:
		r.setReason(reason)
		s.uncount(r)
		return s.conclude(ctx, r, ending{state: store.StateCancelled}, toMilli(now))
	case !r.State.Ended():
		if r.extra().killReason == "" { // the first reason stays
			s.leave(r)
			r.own().killReason = reason
			s.enter(r)
		}
		s.tellKill(r)
	}
	return r.snapshot()
}

// Settle decides about started runs.
func (s *Store) Settle(ctx context.Context, verdicts []store.Verdict) ([]store.Run, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	now := toMilli(s.clock())
	var changed []store.Run
	for i := range verdicts {
		v := &verdicts[i]
		if r := s.runs.find(v.RunID); r != nil && s.applies(v, r) {
			changed = append(changed, s.settle(ctx, v, r, now))
		}
	}
	return changed, nil
}

// applies is the compare of the compare-and-set.
func (s *Store) applies(v *store.Verdict, r *run) bool {
	switch v.To {
	case store.StatePlanned, store.StateLost, store.StateStarted:
	default:
		return false
	}
	return r.State == store.StateStarted && r.job.shard == s.fenced(v.Shard, v.Epoch) &&
		r.terms.owner == v.Owner && r.Token == v.Token && (r.taken == noTime) == !v.Taken
}

func (s *Store) settle(ctx context.Context, v *store.Verdict, r *run, now int64) store.Run {
	r.say(v.Msg)
	j := r.job
	switch {
	case v.To == store.StateLost:
		return s.conclude(ctx, r, ending{state: store.StateLost}, now)
	case v.To == store.StateStarted:
		s.leave(r)
		t := *r.terms
		t.owner = v.NewOwner
		r.agree(t)
		r.Token = v.NewToken
		s.enter(r)
		s.tellInbox(r)
	case r.extra().killReason != "":
		return s.conclude(ctx, r, ending{state: store.StateKilled}, now)
	case j.removed:
		r.setReason("remove")
		return s.conclude(ctx, r, ending{state: store.StateCancelled}, now)
	case r.heldBack():
		r.setReason("stop")
		s.uncount(r)
		return s.conclude(ctx, r, ending{state: store.StateCancelled}, now)
	default:
		s.putBack(r)
	}
	return r.snapshot()
}

// putBack makes a started run planned again, as if it had not been started: the
// next start says anew what it is started with. The number of retries stays, for
// the run's own was replaced by the start. It counts as not loaded, so that the
// owner's next scan finds it.
func (s *Store) putBack(r *run) {
	s.leave(r)
	r.State = store.StatePlanned
	r.PlanEpoch, r.foreign = 0, true
	t := terms{app: r.terms.app, retries: r.terms.retries}
	if r.ParamSet {
		t.param = r.terms.param
	}
	r.agree(t)
	r.Token = 0
	r.setProgress(0, "")
	r.started, r.taken = noTime, noTime
	s.enter(r)
	s.tellScan(r.job)
}

// ending is how a run ends.
type ending struct {
	state store.State
	after time.Duration // see store.Result
}

// conclude ends a run, inserts the one that follows it, and goes by the rules for its job. It
// returns the run, with what its end did to the job.
func (s *Store) conclude(ctx context.Context, r *run, by ending, now int64) (out store.Run) {
	s.concludeTo(ctx, &out, r, by, now)
	return out
}

// concludeTo is conclude that puts the run into one that is empty.
func (s *Store) concludeTo(ctx context.Context, out *store.Run, r *run, by ending, now int64) {
	j := r.job
	switch by.state {
	case store.StateSucceeded:
		s.succeed(r, now)
	case store.StateSnoozed:
		if r.snapshot().SnoozedTooOften(j.mayFollow()) {
			by.state, r.NoRetry, r.HandleMsg = store.StateFailed, true, store.TooManySnoozes
		}
		s.follow(r, by, now)
	case store.StateFailed, store.StateTimedOut, store.StateRefused, store.StateLost:
		s.follow(r, by, now)
	}
	s.endTo(out, r, by.state, now)
	out.StoppedJob = s.stopFinished(ctx, j, now)
}

// mayFollow is the job as store.Run.Follow wants it.
func (j *job) mayFollow() *store.Job {
	if j.removed {
		return nil
	}
	def := j.snapshot()
	return &def
}

// follow inserts the run that follows one which is about to end.
func (s *Store) follow(r *run, by ending, now int64) {
	j := r.job
	ended := r.snapshot()
	ended.State, ended.Ended = by.state, fromMilli(now)
	def := j.mayFollow()
	next, note := ended.Follow(def, by.after, r.first.since(), s.retention)
	r.say(note)
	if left := ended.RetriesLeft(def, next.JobID != 0); left != ended.Retries {
		t := *r.terms
		t.retries = int32(left)
		r.agree(t)
	}
	if next.JobID == 0 {
		return
	}
	f := s.newRun(j)
	r.followed = true
	next.Created = fromMilli(now)
	f.keep(&next)
	f.foreign = true
	s.insertRun(f)
	if j.waitRun == r.ID {
		j.waitRun = f.ID
	}
	s.tellScan(j)
}

// since is when the run was inserted or, where it was kept apart, when its time to move came.
func (r *run) since() time.Time {
	if moved := fromMilli(r.extra().move); moved.After(r.createdAt()) {
		return moved
	}
	return r.createdAt()
}

// latest is the newest run of the trigger, and of the same part of it, that has not ended; the
// run itself where all have.
func (r *run) latest() *run {
	for x := r.job.runs.tail; x != nil && x.ID > r.ID; x = x.links[ofJob].prev {
		if x.TriggerID == r.TriggerID && x.extra().sharding == r.extra().sharding && !x.State.Ended() {
			return x
		}
	}
	return r
}

// KnowRetention is store.RetentionAware: nothing follows a run whose trigger is older, as in a
// store that drops runs by their age.
func (s *Store) KnowRetention(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d > 0 && (s.retention == 0 || d < s.retention) {
		s.retention = d
	}
}

// Tree returns the runs of a run's trigger.
func (s *Store) Tree(ctx context.Context, runID int64) ([]store.Run, error) {
	tree, _, err := s.Branches(ctx, runID, store.MostTree)
	return tree, err
}

// Branches returns the first of the runs of a trigger, and counts the others.
func (s *Store) Branches(ctx context.Context, runID int64, limit int) (tree []store.Run, more int, err error) {
	if err := s.look(ctx); err != nil {
		return nil, 0, err
	}
	defer s.mu.Unlock()
	r := s.runs.find(runID)
	if r == nil {
		return nil, 0, failed(store.ErrNotFound, "run %d", runID)
	}
	has := listed(ctx)
	first := s.runs.find(r.TriggerID)
	if first == nil {
		first = r.job.runs.head
	}
	for x := first; x != nil && len(tree)+more < store.MostTree; x = x.links[ofJob].next {
		switch {
		case x.TriggerID != r.TriggerID:
		case len(tree) < limit:
			tree = append(tree, has.run(x))
		default:
			more++
		}
	}
	return tree, more, nil
}

// The two rules for a job whose run has ended. Every transaction that ends runs
// follows them, through end and stopFinished.

// rearm makes the job, whose awaited run ended at the given time, due again. A
// job whose schedule has no delay any more, or whose bounds leave no instant, is left
// without a next one.
func (s *Store) rearm(j *job, ended int64) {
	j.unindex()
	j.waitRun = 0
	delay := j.delay()
	next := ended + delay.Milliseconds()
	if last := j.def.notAfter(); delay > 0 && !j.usedUp() && (last.IsZero() || next <= toMilli(last)) {
		j.next = next
	}
	j.index()
	s.tellScan(j)
}

// delay is that of a FixedDelay schedule, else zero. An invalid one re-arms nothing.
func (j *jobState) delay() (d time.Duration) {
	if s := j.def.schedule(); s.Type == schedule.TypeFixDelay {
		d, _ = s.Every()
	}
	return d
}

// usedUp reports whether the schedule has made all of its runs.
func (j *jobState) usedUp() bool {
	most := j.def.common.Value().maxRuns
	return most > 0 && j.made >= most
}

// finished reports whether nothing will come of the schedule any more. Nothing
// is to come of a manual one.
func (j *job) finished() bool {
	return !j.removed && !j.unscheduled() && j.next == noTime && j.waitRun == 0 && j.open == 0
}

// stopFinished stops the job if it is finished, and reports whether it was. Its version
// stays: nobody has changed it.
func (s *Store) stopFinished(ctx context.Context, j *job, now int64) bool {
	finished := j.finished()
	if finished {
		s.stop(ctx, j, j.finishedBy(), now)
	}
	return finished
}

// finishedBy is the reason of a job that is stopped for being finished.
func (j *jobState) finishedBy() string {
	if j.usedUp() {
		return store.StopFinished + store.ByMaxRuns
	}
	if j.def.notAfter().IsZero() {
		return store.StopFinished
	}
	if later, err := j.def.schedule().Next(j.def.notAfter()); err != nil || later.IsZero() {
		return store.StopFinished
	}
	return store.StopFinished + store.ByNotAfter
}

// uncount takes a run that is cancelled out of what its job, which is stopped, has made.
// An edit of the job sees to that itself. A kill of a run whose job is not stopped is
// somebody's who does not want the run made up for.
func (s *Store) uncount(r *run) {
	if j := r.job; r.counts() && j.unscheduled() {
		j.made--
	}
}

// counts reports whether a run that has not begun is one of those that its job has made. A
// part of a broadcast is none: that has begun.
func (r *run) counts() bool {
	return r.Type.ScheduleBorn() && r.count == r.job.count && r.extra().sharding == store.Sharding{}
}

// stop is a stop by the scheduler itself.
func (s *Store) stop(ctx context.Context, j *job, reason string, now int64) {
	reason = store.PlainText(reason)
	j.unindex()
	j.stopped, j.stopReason, j.updated = true, reason, now
	j.index()
	s.noteStop(j, reason, fromMilli(now))
}

// Sweep stops what Finish would call finished: jobs that were added or edited
// to have no next instant. It finds none to arm again, for here no job waits for
// a run that has ended: the transaction that ended it has seen to that, and only
// ended runs are dropped.
func (s *Store) Sweep(ctx context.Context, shards []store.Shard) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	now := toMilli(s.clock())
	for _, q := range shards {
		sh := s.fenced(q.ID, q.Epoch)
		if sh == nil {
			continue
		}
		for i := len(sh.idle.members) - 1; i >= 0; i-- {
			s.stopFinished(ctx, sh.idle.members[i], now)
		}
	}
	return nil
}
