package storetest

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

func claimCases() []testCase {
	return []testCase{
		{"AdvancesTheJobAndInsertsRuns", claimAdvances},
		{"InsertsSkippedRecords", claimSkipped},
		{"ComparesNext", claimComparesNext},
		{"ComparesVersion", claimComparesVersion},
		{"NeedsAnEnabledJob", claimNeedsEnabled},
		{"NeedsAJob", claimNeedsJob},
		{"OldEpochInsertsNone", claimOldEpoch},
		{"ComparesTheEpochOfTheJobsShard", claimOtherShard},
		{"EditBetweenScanAndClaimDefeatsIt", claimAfterEdit},
		{"TwiceWithOneReadInsertsOneSet", claimTwice},
		{"AnswersInOrderOfThePlans", claimOrder},
		{"FailedPlansLeaveOthersAlone", claimMixed},
		{"WaitMakesTheJobWait", claimWait},
		{"StopStopsAndCancelsNothing", claimStop},
		{"NextIsKeptToTheMillisecond", claimMillisecond},
		{"ZeroDueMatchesNoJob", claimZeroDue},
		{"LastIsTheLatestInstantOfTheRuns", claimLast},
	}
}

func claimAdvances(e *env) {
	o := e.owner("a")
	job := e.newJob(func(j *store.Job) { j.App = "mine" })
	p := o.plan(job, e.at(0), e.at(60))
	p.Next = e.at(120)
	runs := o.claim(p)
	if len(runs) != 2 {
		e.Fatalf("Claim inserted %d runs, want 2", len(runs))
	}
	for i, run := range runs {
		e.check(run.ID > 0 && run.ID < 1<<53 && !run.Created.IsZero(), "ID %d, Created %v", run.ID, run.Created)
		want(e, "Claim", run, store.Run{ID: run.ID, JobID: job.ID, App: "mine", Shard: job.Shard, TriggerID: run.ID,
			Type: store.TriggerCron, Born: true, Scheduled: e.at(60 * i), State: store.StatePlanned, Retries: -1,
			PlanEpoch: o.epoch(job.Shard), Created: run.Created})
		e.wantRun("Claim", run)
	}
	e.check(runs[0].ID < runs[1].ID, "IDs %d and %d do not grow", runs[0].ID, runs[1].ID)
	after := e.mustJob(job.ID)
	job.Next, job.Last, job.Runs, job.Updated = e.at(120), e.at(60), 2, after.Updated
	want(e, "job after the claim", after, job)
	want(e, "changes", len(e.mustChanges(job.ID)), 1)
}

func claimSkipped(e *env) {
	o := e.owner("a")
	job := e.newJob()
	p := o.plan(job)
	p.Runs = []store.NewRun{
		{At: e.at(0), Type: store.TriggerCron, State: store.StateSkipped, First: e.at(-600), Last: e.at(0), Count: store.CountCap, Reason: store.ReasonBacklog},
		{At: e.at(0), Type: store.TriggerMisfire, First: e.at(-60), Last: e.at(0), Count: 2},
	}
	runs := o.claim(p)
	if len(runs) != 2 {
		e.Fatalf("Claim inserted %d runs, want 2", len(runs))
	}
	for i, run := range runs {
		n := p.Runs[i]
		want(e, "inserted run", store.NewRun{At: run.Scheduled, Type: run.Type, State: run.State,
			First: run.First, Last: run.Last, Count: run.Count, Reason: run.Reason}, n)
		want(e, "Ended is set", !run.Ended.IsZero(), n.State == store.StateSkipped)
		e.wantRun("inserted run", run)
	}
}

// claimed reports what a claim that must not take effect did.
func (o *owner) wantNoClaim(what string, p store.Plan) {
	o.Helper()
	before, runs := o.snapshot(), o.claim(p)
	want(o.env, what+": inserted runs", len(runs), 0)
	want(o.env, what+": state after it", o.snapshot(), before)
}

func claimComparesNext(e *env) {
	o := e.owner("a")
	job := e.newJob()
	p := o.plan(job, job.Next)
	for _, due := range []time.Time{e.at(-60), e.at(60), e.now.Add(time.Millisecond), {}} {
		p.Due = due
		o.wantNoClaim("a claim of an instant that is not Next", p)
	}
}

func claimComparesVersion(e *env) {
	o := e.owner("a")
	job := e.newJob()
	e.edit(job.ID, func(j *store.Job) { j.Name = "new" })
	for _, version := range []int64{0, 1, 3} {
		p := o.plan(job, job.Next)
		p.Version = version
		o.wantNoClaim("a claim of another version", p)
	}
}

func claimNeedsEnabled(e *env) {
	o := e.owner("a")
	job := e.newJob(stopped)
	o.wantNoClaim("a claim of a stopped job", o.plan(job, job.Next))

	finished := o.one(o.claim(func() store.Plan { p := o.skip(e.newJob()); p.Next = time.Time{}; return p }()))
	job = e.mustJob(finished.JobID)
	e.check(job.Stopped, "the job has not finished")
	o.wantNoClaim("a claim of a finished job, whose version is as before", o.plan(job, e.at(60)))
}

func claimNeedsJob(e *env) {
	o := e.owner("a")
	job := e.newJob()
	p := o.plan(job, job.Next)
	e.must(e.RemoveJob(e.ctx, job.ID))
	o.wantNoClaim("a claim of a removed job", p)
	p.JobID += 4000
	o.wantNoClaim("a claim of a job that never was", p)
}

func claimOldEpoch(e *env) {
	o := e.owner("a")
	job := e.newJob()
	b := o.overtakenBy("b")
	o.wantNoClaim("a claim of the former owner", o.plan(job, job.Next))
	p := b.plan(job, job.Next)
	p.Epoch++
	b.wantNoClaim("a claim with an epoch that is not yet", p)
	b.planned(job)
}

// claimOtherShard names a shard that the claimer owns, but not the job's.
func claimOtherShard(e *env) {
	o := e.owner("a")
	job := e.jobIn(1)
	e.join("b")
	taken, err := e.TakeShards(e.ctx, "b", o.shards[1:2])
	e.must(err)
	want(e, "shards taken", len(taken), 1)
	p := o.plan(job, job.Next)
	p.Shard, p.Epoch = 2, o.epoch(2)
	o.wantNoClaim("a claim under the epoch of another shard", p)
}

func claimAfterEdit(e *env) {
	o := e.owner("a")
	edits := map[string]func(id int64){
		"an edit":     func(id int64) { e.edit(id, func(j *store.Job) { j.Param = "x" }) },
		"a stop":      func(id int64) { e.stop(id) },
		"a removal":   func(id int64) { e.must(e.RemoveJob(e.ctx, id)) },
		"a new start": func(id int64) { e.EditJob(e.ctx, id, replan("start", e.now, func(*store.Job) {})) },
	}
	for name, edit := range edits {
		job := e.newJob()
		p := o.plan(job, job.Next)
		edit(job.ID)
		o.wantNoClaim("a claim read before "+name, p)
	}
}

func claimTwice(e *env) {
	o := e.owner("a")
	job := e.newJob()
	p := o.plan(job, job.Next)
	p.Next = e.at(60)
	want(e, "runs that two plans of one claim inserted", len(o.claim(p, p)), 1)
	o.wantNoClaim("the same claim again", p)
}

func claimOrder(e *env) {
	o := e.owner("a")
	var plans []store.Plan
	var order []string
	for i := range 9 {
		job := e.newJob()
		plans = append(plans, o.plan(job, e.at(20), e.at(10-i)))
		order = append(order, job.Name, job.Name)
	}
	var got []string
	var instants []time.Time
	for _, run := range o.claim(plans...) {
		got = append(got, e.mustJob(run.JobID).Name)
		instants = append(instants, run.Scheduled)
	}
	want(e, "jobs of the inserted runs", got, order)
	e.check(len(instants) == 18 && instants[0].Equal(e.at(20)) && instants[17].Equal(e.at(2)), "runs of a plan are not in its order: %v", instants)
}

func claimMixed(e *env) {
	o := e.owner("a")
	good, moved, fenced, last := e.newJob(), e.newJob(), e.newJob(), e.newJob()
	plans := []store.Plan{o.plan(good, e.now), o.plan(moved, e.now), o.plan(fenced, e.now), o.plan(last, e.now)}
	e.edit(moved.ID, func(j *store.Job) { j.Param = "x" })
	plans[2].Epoch--
	var jobs []int64
	for _, run := range o.claim(plans...) {
		jobs = append(jobs, run.JobID)
	}
	want(e, "jobs claimed", jobs, []int64{good.ID, last.ID})
	want(e, "Next of the job that had moved", e.mustJob(moved.ID).Next, e.now)
	want(e, "Next of the job under another epoch", e.mustJob(fenced.ID), fenced)
}

func claimWait(e *env) {
	o := e.owner("a")
	job := e.newJob(delayed(time.Minute))
	run := o.waited(job)
	after := e.mustJob(job.ID)
	want(e, "WaitRun", after.WaitRun, run.ID)
	want(e, "Next", after.Next, time.Time{})
	want(e, "Last", after.Last, job.Next)
	e.check(!after.Stopped, "a job that waits for its run was stopped")
	want(e, "Version", after.Version, int64(1))
}

func claimStop(e *env) {
	o := e.owner("a")
	job := e.newJob()
	p := o.plan(job, e.now)
	p.Next = e.at(60)
	run := o.one(o.claim(p))
	p = o.plan(e.mustJob(job.ID))
	p.Next, p.Stop = time.Time{}, "the schedule cannot be evaluated"
	o.claim(p)
	got := e.mustJob(job.ID)
	want(e, "Stopped and reason", []any{got.Stopped, got.StopReason}, []any{true, p.Stop})
	want(e, "Version", got.Version, int64(2))
	want(e, "Next", got.Next, time.Time{})
	e.wantRun("a run planned before the stop", run)
	change := e.mustChanges(job.ID)[0]
	want(e, "verb and version of the change", []any{change.Verb, change.Version}, []any{"stop", int64(2)})
	want(e, "status of its start", o.tryStart(o.startOf(run)).Status, store.StartStale)
}

func claimMillisecond(e *env) {
	o := e.owner("a")
	zone := time.FixedZone("east", 8*3600)
	job := e.newJob(func(j *store.Job) { j.Next = e.now.Add(999 * time.Microsecond).In(zone) })
	want(e, "Next", job.Next, e.now)
	p := o.plan(job, e.at(10).In(zone))
	p.Due, p.Next = job.Next.In(zone), e.at(60).Add(1500*time.Microsecond).In(zone)
	want(e, "Scheduled", o.one(o.claim(p)).Scheduled, e.at(10))
	want(e, "Next after the claim", e.mustJob(job.ID).Next, e.at(60).Add(time.Millisecond))
}

func claimZeroDue(e *env) {
	o := e.owner("a")
	plain, waiting := e.newJob(noNext), e.newJob(delayed(time.Minute))
	run := o.waited(waiting)
	for _, id := range []int64{plain.ID, waiting.ID, run.JobID} {
		p := o.plan(e.mustJob(id), e.at(0))
		p.Next = e.at(60)
		want(e, "Due of a plan for a job without Next", p.Due, time.Time{})
		o.wantNoClaim("a claim of a job without Next", p)
	}
}

// claimLast: a run stands for its instant, and a record or a catch-up run for all
// from First to Last.
func claimLast(e *env) {
	o := e.owner("a")
	job := e.newJob()
	span := func(at, last int) store.NewRun {
		return store.NewRun{At: e.at(at), Type: store.TriggerMisfire, First: e.at(at), Last: e.at(last), Count: 2}
	}
	for _, c := range []struct {
		what string
		runs []store.NewRun
		want int
	}{
		{"runs out of order", o.plan(job, e.at(10), e.at(30), e.at(20)).Runs, 30},
		{"a run for a span", []store.NewRun{span(40, 90)}, 90},
		{"a span that ends before a later instant", []store.NewRun{span(100, 110), o.plan(job, e.at(120)).Runs[0]}, 120},
		{"a span that begins after its end", []store.NewRun{span(140, 130)}, 140},
		{"instants before those of the claim before", o.plan(job, e.at(50)).Runs, 50},
		{"a record", []store.NewRun{{At: e.at(60), Type: store.TriggerCron, State: store.StateSkipped, First: e.at(60), Last: e.at(70), Count: 2, Reason: store.ReasonMisfire}}, 70},
		{"no runs, which moves nothing", nil, 70},
	} {
		p := o.plan(e.mustJob(job.ID))
		p.Runs = c.runs
		want(e, "runs claimed", len(o.claim(p)), len(c.runs))
		want(e, "Last after a claim of "+c.what, e.mustJob(job.ID).Last, e.at(c.want))
	}
}
