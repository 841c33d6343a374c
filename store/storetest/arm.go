package storetest

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// The rules that hold in every transaction that ends a run: a job that waits
// for the run gets its next instant, and a job without further instants is
// stopped as finished.
func armCases() []testCase {
	return []testCase{
		{"EveryEndRearmsAWaitingJob", rearm},
		{"ARecordRearmsAtOnce", rearmRecord},
		{"ACancelRearms", rearmCancelled},
		{"AnotherRunsEndDoesNot", rearmOtherRun},
		{"AStoppedJobStaysDisarmed", rearmStopped},
		{"EveryEndFinishesAJobWithoutNext", finished},
		{"TheRunSaysThatItsEndStoppedTheJob", finishedSaid},
		{"OfRunsThatEndTogetherOneSaysIt", finishedSaidOnce},
		{"ClaimWithoutRunsFinishes", finishedByClaim},
		{"NotFinishedWhileARunIsLeft", finishedNotYet},
		{"NotFinishedWithNextOrWait", finishedNever},
		{"ManualRunsDoNotHoldIt", finishedManual},
		{"AManualJobIsNeverFinished", finishedNoSchedule},
		{"SweepFinishes", sweepFinishes},
		{"SweepLeavesTheRest", sweepLeaves},
	}
}

// end is one of the ways in which a planned run ends.
type end struct {
	name string
	do   func(o *owner, run store.Run)
}

func ends() []end {
	return []end{
		{"Finish", func(o *owner, run store.Run) { o.mustFinish(success(o.started(run))) }},
		{"Finish without a message", func(o *owner, run store.Run) {
			r := success(o.started(run))
			r.HandleMsg = ""
			o.mustFinish(r)
		}},
		{"Finish over the wire", func(o *owner, run store.Run) { o.mustFinish(overWire(o.started(run, to(remote)).ID)) }},
		{"Finish with a failure", func(o *owner, run store.Run) {
			r := success(o.started(run))
			r.State = store.StateFailed
			o.mustFinish(r)
		}},
		{"Start refused", func(o *owner, run store.Run) { o.started(run, refused) }},
		{"Kill of a planned run", func(o *owner, run store.Run) { o.mustKill(run.ID, "x") }},
		{"Settle to lost", func(o *owner, run store.Run) { o.mustSettle(o.verdict(o.started(run), store.StateLost)) }},
		{"Settle of a killed run", func(o *owner, run store.Run) {
			run = o.started(run, o.over("b"))
			o.mustKill(run.ID, "x")
			o.mustSettle(o.verdict(run, store.StatePlanned))
		}},
		{"Take of a killed run", func(o *owner, run store.Run) {
			run = o.started(run, o.over("b"))
			o.mustKill(run.ID, "x")
			o.mustTake("b", run.ID)
		}},
	}
}

func rearm(e *env) {
	o := e.owner("a")
	for _, end := range ends() {
		run := o.waited(e.newJob(delayed(90 * time.Second)))
		before := e.mustJob(run.JobID)
		end.do(o, run)
		got, ended := e.mustJob(run.JobID), e.mustRun(run.ID).Ended
		e.check(!ended.IsZero(), "%s: the run has not ended", end.name)
		before.Next, before.WaitRun, before.Updated = ended.Add(90*time.Second), 0, got.Updated
		want(e, "job after "+end.name, got, before)
	}
}

// rearmRecord: a run that is ended when it is claimed has an end like others.
func rearmRecord(e *env) {
	o := e.owner("a")
	p := o.skip(e.newJob(delayed(time.Minute)))
	p.Next, p.Wait = time.Time{}, true
	run := o.one(o.claim(p))
	check := func(after string) {
		got := e.mustJob(p.JobID)
		want(e, after+": Next, WaitRun, Stopped", []any{got.Next, got.WaitRun, got.Stopped}, []any{run.Ended.Add(time.Minute), int64(0), false})
	}
	check("Claim")
	e.must(e.Sweep(e.ctx, o.shards))
	check("Sweep")
}

// rearmCancelled ends the run that a job waits for by giving it back while the
// job is stopped, by an edit that does not plan anew.
func rearmCancelled(e *env) {
	o := e.owner("a")
	run := o.started(o.waited(e.newJob(delayed(time.Minute))), o.over("b"))
	job := e.edit(run.JobID, stopped)
	want(e, "WaitRun of the stopped job", job.WaitRun, run.ID)
	ended := o.one(e.mustSettle(o.verdict(run, store.StatePlanned)))
	want(e, "state", ended.State, store.StateCancelled)
	got := e.mustJob(job.ID)
	job.Next, job.WaitRun, job.Runs, job.Updated = ended.Ended.Add(time.Minute), 0, 0, got.Updated
	want(e, "the stopped job", got, job)
}

func rearmOtherRun(e *env) {
	o := e.owner("a")
	job := e.newJob(delayed(time.Minute))
	o.waited(job)
	before := e.mustJob(job.ID)
	manual := o.started(e.mustAddRun(job.ID, store.Trigger{}))
	e.mustFinish(success(manual))
	want(e, "job after a manual run", e.mustJob(job.ID), before)
}

func rearmStopped(e *env) {
	o := e.owner("a")
	run := o.started(o.waited(e.newJob(delayed(time.Minute))))
	job := e.stop(run.JobID)
	e.mustFinish(success(run))
	want(e, "job stopped while its run was running", e.mustJob(job.ID), job)
}

// wantFinished checks that the job was stopped for want of instants.
func (e *env) wantFinished(what string, before store.Job) {
	e.Helper()
	got := e.mustJob(before.ID)
	want(e, what+": stopped, reason, version", []any{got.Stopped, got.StopReason, got.Version}, []any{true, store.StopFinished, before.Version})
	changes := e.mustChanges(before.ID)
	if len(changes) == 0 || changes[0].Verb != "stop" {
		e.Errorf("%s: changes %+v, want a stop", what, changes)
	}
}

func finished(e *env) {
	o := e.owner("a")
	for _, end := range ends() {
		run := o.last(e.newJob())
		job := e.mustJob(run.JobID)
		e.check(!job.Stopped && job.Next.IsZero(), "before %s: %+v, want enabled without a next instant", end.name, job)
		end.do(o, run)
		e.wantFinished(end.name, job)
	}
}

// endings notes of which runs the store says that their ends have stopped their jobs.
type endings struct {
	store.Store
	said []int64
}

func (s *endings) note(runs []store.Run, err error) ([]store.Run, error) {
	for i := range runs {
		if runs[i].StoppedJob {
			s.said = append(s.said, runs[i].ID)
		}
	}
	return runs, err
}

func (s *endings) Finish(ctx context.Context, dst []store.Run, results []store.Result) ([]store.Run, error) {
	return s.note(s.Store.Finish(ctx, dst, results))
}

func (s *endings) Settle(ctx context.Context, verdicts []store.Verdict) ([]store.Run, error) {
	return s.note(s.Store.Settle(ctx, verdicts))
}

func (s *endings) Take(ctx context.Context, incarnation string, ids []int64) ([]store.Run, error) {
	return s.note(s.Store.Take(ctx, incarnation, ids))
}

func (s *endings) Kill(ctx context.Context, id int64, reason string) (store.Run, error) {
	run, err := s.Store.Kill(ctx, id, reason)
	_, _ = s.note([]store.Run{run}, nil)
	return run, err
}

func (s *endings) Start(ctx context.Context, dst []store.Started, starts []store.Start) ([]store.Started, error) {
	answers, err := s.Store.Start(ctx, nil, starts)
	for i := range answers {
		_, _ = s.note([]store.Run{answers[i].Run}, nil)
	}
	return answers, err
}

func finishedSaid(e *env) {
	o := e.owner("a")
	for _, end := range ends() {
		said := &endings{Store: e.Store}
		e.Store = said
		end.do(o, o.planned(e.newJob()))
		want(e, end.name+", with instants left: runs that have stopped their jobs", said.said, nil)
		run := o.last(e.newJob())
		end.do(o, run)
		want(e, end.name+": runs that have stopped their jobs", said.said, []int64{run.ID})
		e.check(!e.mustRun(run.ID).StoppedJob, "%s: StoppedJob is stored", end.name)
		e.Store = said.Store
	}
}

func finishedSaidOnce(e *env) {
	o := e.owner("a")
	job := e.newJob()
	p := o.plan(job, e.at(0), e.at(60))
	p.Next = time.Time{}
	var results []store.Result
	for _, run := range o.claim(p) {
		results = append(results, success(o.started(run)))
	}
	said := &endings{Store: e.Store}
	e.Store = said
	want(e, "accepted results", len(e.mustFinish(results...)), 2)
	want(e, "how many have stopped the job", len(said.said), 1)
}

func finishedByClaim(e *env) {
	o := e.owner("a")
	for _, p := range []store.Plan{o.plan(e.newJob()), o.skip(e.newJob())} {
		p.Next = time.Time{}
		job := e.mustJob(p.JobID)
		o.claim(p)
		e.wantFinished("a claim without planned runs", job)
	}
}

func finishedNotYet(e *env) {
	o := e.owner("a")
	p := o.plan(e.newJob(), e.at(0), e.at(1), e.at(2), e.at(3))
	p.Next = time.Time{}
	runs := o.claim(p)
	job := e.mustJob(p.JobID)
	started := o.started(runs[0], to(remote))
	e.mustDispatched(accepted(started))
	e.mustFinish(success(o.started(runs[1])))
	e.mustFinish(success(o.started(runs[2])))
	want(e, "job with a planned and a dispatched run", e.mustJob(job.ID), job)
	e.mustKill(runs[3].ID, "x")
	want(e, "job with a dispatched run", e.mustJob(job.ID), job)
	e.mustFinish(overWire(started.ID))
	e.wantFinished("the end of its last run", job)
}

func finishedNever(e *env) {
	o := e.owner("a")
	run := o.running()
	before := e.mustJob(run.JobID)
	e.mustFinish(success(run))
	want(e, "job with a next instant", e.mustJob(before.ID), before)

	wait := o.waited(e.newJob(delayed(time.Minute)))
	before = e.mustJob(wait.JobID)
	e.mustKill(e.mustAddRun(before.ID, store.Trigger{}).ID, "x")
	want(e, "job that waits", e.mustJob(before.ID), before)
}

func finishedManual(e *env) {
	o := e.owner("a")
	run := o.last(e.newJob())
	manual := e.mustAddRun(run.JobID, store.Trigger{})
	job := e.mustJob(run.JobID)
	e.mustFinish(success(o.started(run)))
	e.wantFinished("the end of its last schedule-born run", job)
	e.wantRun("a manual run, which finishing cancels not", manual)
}

// finishedNoSchedule: a job whose schedule is Manual has no further instant, and
// never had one. The same holds where it became manual while a run was left.
func finishedNoSchedule(e *env) {
	o := e.owner("a")
	for _, schedule := range []schedule.Schedule{schedule.Manual(), {Type: schedule.TypeNone}} {
		manual := func(j *store.Job) { j.Schedule = schedule }
		job := e.newJob(manual, noNext)
		for _, end := range ends() {
			end.do(o, e.mustAddRun(job.ID, store.Trigger{}))
			want(e, "a manual job after "+end.name, e.mustJob(job.ID), job)
		}
		run := o.started(o.last(e.newJob()))
		before := e.edit(run.JobID, manual)
		o.mustFinish(success(run))
		want(e, "a job that became manual, after its run", e.mustJob(run.JobID), before)
		for _, p := range []store.Plan{o.plan(e.newJob(manual)), o.skip(e.newJob(manual))} {
			p.Next = time.Time{}
			o.claim(p)
			want(e, "Stopped after a claim without planned runs", e.mustJob(p.JobID).Stopped, false)
		}
		e.must(e.Sweep(e.ctx, o.shards))
		want(e, "a manual job after Sweep", e.mustJob(job.ID), job)
	}
}

func sweepFinishes(e *env) {
	in, out := e.jobIn(1, noNext), e.jobIn(2, noNext)
	o := e.owner("a")
	manual := e.mustAddRun(in.ID, store.Trigger{At: e.at(600)})
	e.must(e.Sweep(e.ctx, o.shards[1:2]))
	e.wantFinished("Sweep", in)
	e.wantRun("a manual run", manual)
	want(e, "a job of another shard", e.mustJob(out.ID), out)
}

func sweepLeaves(e *env) {
	o := e.owner("a")
	e.newJob()
	e.newJob(stopped, noNext)
	o.last(e.newJob())
	o.waited(e.newJob(delayed(time.Minute)))
	o.started(o.waited(e.newJob(delayed(time.Minute))))
	o.started(o.last(e.newJob()), to(remote))
	e.newJob(noNext, func(j *store.Job) { j.Schedule = schedule.Manual() })
	before := e.snapshot()
	e.must(e.Sweep(e.ctx, o.shards))
	want(e, "state after a sweep with nothing to do", e.snapshot(), before)
}
