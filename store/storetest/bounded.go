package storetest

import (
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// The bounds of a job: how its runs are counted, and what ends it.
func boundedCases() []testCase {
	return []testCase{
		{"BoundsAreKeptToTheMillisecond", boundsKept},
		{"AddBeginsAtZero", addUncounted},
		{"ClaimCountsPlannedRuns", claimCounts},
		{"ScanTellsTheCount", scanCounts},
		{"WhatBecomesOfARunChangesNothing", endsCount},
		{"ReplanTakesCancelledRunsOut", replanUncounts},
		{"EditWithoutReplanKeepsTheCount", editKeepsCount},
		{"AnotherScheduleBeginsAtZero", scheduleBeginsAnew},
		{"RunsOfTheFormerScheduleAreNotTakenOut", formerRunsStay},
		{"GivenBackToAStoppedJobIsTakenOut", settleUncounts},
		{"KillCountsUnlessTheJobIsStopped", killCounts},
		{"PartsOfABroadcastAreNotTakenOut", partsStay},
		{"NotRearmedAfterNotAfter", notRearmedLate},
		{"NotRearmedWhenAllRunsWereMade", notRearmedUsedUp},
		{"FinishedBySaysWhich", finishedBy},
		{"ReplanWithoutNextFinishes", replanFinishes},
	}
}

func bounded(maxRuns int) func(*store.Job) {
	return func(j *store.Job) { j.MaxRuns = maxRuns }
}

func until(at time.Time) func(*store.Job) {
	return func(j *store.Job) { j.NotAfter = at }
}

// wantMade checks Job.Runs.
func (e *env) wantMade(what string, job int64, n int) {
	e.Helper()
	want(e, what+": Runs", e.mustJob(job).Runs, n)
}

func boundsKept(e *env) {
	zone := time.FixedZone("east", 8*3600)
	from, to := e.at(10).Add(1234*time.Microsecond), e.at(20).Add(5678*time.Microsecond)
	set := func(j *store.Job) { j.NotBefore, j.NotAfter, j.MaxRuns = from.In(zone), to.In(zone), 1<<31-1 }
	check := func(what string, j store.Job) {
		e.Helper()
		want(e, what, []any{j.NotBefore, j.NotAfter, j.MaxRuns}, []any{e.at(10).Add(time.Millisecond), e.at(20).Add(5 * time.Millisecond), 1<<31 - 1})
	}
	added := e.newJob(set)
	check("AddJob", added)
	check("Job after AddJob", e.mustJob(added.ID))
	job := e.newJob()
	check("EditJob", e.edit(job.ID, set))
	edited := e.mustJob(job.ID)
	check("Job after EditJob", edited)
	want(e, "an edit that sets the same", e.edit(job.ID, set), edited)
}

func addUncounted(e *env) { want(e, "Runs", e.newJob(func(j *store.Job) { j.Runs = 7 }).Runs, 0) }

// records are runs of a plan that are none.
func (o *owner) records(n int) (list []store.NewRun) {
	for i := range n {
		list = append(list, store.NewRun{At: o.at(i), Type: store.TriggerCron, State: store.StateSkipped,
			First: o.at(i), Last: o.at(i), Count: 9, Reason: store.ReasonBacklog})
	}
	return list
}

func claimCounts(e *env) {
	o := e.owner("a")
	job, other := e.newJob(), e.newJob(bounded(100))
	made := 0
	for _, n := range []int{1, 0, 3} {
		p, q := o.plan(e.mustJob(job.ID)), o.plan(e.mustJob(other.ID))
		p.Runs, q.Runs = o.records(n), o.records(2-n%2)
		for i := range n {
			p.Runs = append(p.Runs, store.NewRun{At: e.at(10 + i), Type: store.TriggerMisfire, First: e.at(10), Last: e.at(20), Count: 11})
		}
		o.claim(q, p)
		made += n
		e.wantMade("a job with planned runs and records", job.ID, made)
		e.wantMade("a job with records", other.ID, 0)
		o.claim(q, p)
		e.wantMade("after the same claim once more", job.ID, made)
	}
	e.mustAddRun(job.ID, store.Trigger{})
	e.wantMade("after a trigger", job.ID, made)
}

func scanCounts(e *env) {
	o := e.owner("a")
	job := e.newJob(bounded(5))
	for made := range 3 {
		due := o.mustScan(o.scan(e.at(1))).Jobs
		if len(due) != 1 {
			e.Fatalf("a scan found %d jobs", len(due))
		}
		want(e, "Runs and MaxRuns of a due job", []int{due[0].Runs, due[0].MaxRuns}, []int{made, 5})
		p := o.plan(due[0].Job, job.Next)
		p.Next = job.Next.Add(time.Duration(made+1) * time.Millisecond)
		o.claim(p)
	}
}

func endsCount(e *env) {
	o := e.owner("a")
	for _, end := range ends() {
		run := o.planned(e.newJob())
		end.do(o, run)
		e.wantMade(end.name, run.JobID, 1)
	}
	run := o.planned(e.newJob())
	o.mustSettle(o.verdict(o.started(run, o.over("b")), store.StatePlanned))
	e.wantMade("a run that was put back", run.JobID, 1)
	o.mustFinish(success(o.started(run)))
	e.wantMade("a run that was put back, and ran", run.JobID, 1)
}

func replanUncounts(e *env) {
	o := e.owner("a")
	job := e.newJob(bounded(10))
	runs := o.claim(o.plan(job, e.at(0), e.at(1), e.at(2), e.at(3), e.at(4)))
	o.mustFinish(success(o.started(runs[0])))
	o.started(runs[1])
	back := o.started(runs[2], o.over("b"))
	o.mustSettle(o.verdict(back, store.StatePlanned))
	e.mustAddRun(job.ID, store.Trigger{At: e.at(600)})
	seen := -1
	edit := replan("update", time.Time{}, func(j *store.Job) { j.MaxRuns, j.Runs = 3, 99 })
	edit.Next = func(j store.Job, _, _ time.Time) (time.Time, error) { seen = j.Runs; return e.at(60), nil }
	got, err := e.EditJob(e.ctx, job.ID, edit)
	e.must(err)
	want(e, "Runs that Next saw, with one run ended, one under way and three cancelled", seen, 2)
	want(e, "Runs after the edit", got.Runs, 2)
	want(e, "stored job", e.mustJob(job.ID), got)
	o.claim(o.plan(got, e.at(60)))
	want(e, "Runs of a job that is stopped", e.stop(job.ID).Runs, 2)
}

func editKeepsCount(e *env) {
	o := e.owner("a")
	run := o.planned(e.newJob())
	change := func(j *store.Job) { j.Param, j.MaxRuns, j.Runs = "new", 5, 99 }
	want(e, "Runs after an edit", e.edit(run.JobID, change).Runs, 1)
	want(e, "Runs after an edit of the schedule that plans nothing anew", e.edit(run.JobID, delayed(time.Hour)).Runs, 1)
	e.wantMade("the stored job", run.JobID, 1)
}

// anew gives a job another schedule and plans it.
func (e *env) anew(job int64, every time.Duration) store.Job {
	e.Helper()
	got, err := e.EditJob(e.ctx, job, replan("update", e.at(60), func(j *store.Job) { j.Schedule = schedule.FixedRate(every) }))
	e.must(err)
	return got
}

func scheduleBeginsAnew(e *env) {
	o := e.owner("a")
	job := e.newJob(bounded(3))
	runs := o.claim(o.plan(job, e.at(0), e.at(1), e.at(2)))
	o.mustFinish(success(o.started(runs[0])))
	o.started(runs[1])
	got := e.anew(job.ID, time.Hour)
	want(e, "Runs with another schedule", got.Runs, 0)
	o.claim(o.plan(got, e.at(60), e.at(61)))
	e.wantMade("after its first claim", job.ID, 2)
	want(e, "Runs after a stop", e.stop(job.ID).Runs, 0)
}

// formerRunsStay: a run that was under way when its job was given another schedule, and is
// planned again since, is none of those that are counted.
func formerRunsStay(e *env) {
	o := e.owner("a")
	for name, end := range map[string]func(back store.Run){
		"a stop": func(back store.Run) { e.mustSettle(o.verdict(back, store.StatePlanned)); e.stop(back.JobID) },
		"giving back to a stopped job": func(back store.Run) {
			e.edit(back.JobID, stopped)
			e.mustSettle(o.verdict(back, store.StatePlanned))
		},
	} {
		back := o.started(o.planned(e.newJob()), o.over("b"))
		job := e.anew(back.JobID, time.Hour)
		o.started(o.planned(job))
		e.wantMade("with another schedule, after a claim", job.ID, 1)
		end(back)
		e.wantState("the run of the former schedule", back.ID, store.StateCancelled)
		e.wantMade("after "+name+" has cancelled a run of the former schedule", job.ID, 1)
	}
}

func settleUncounts(e *env) {
	o := e.owner("a")
	job, other := e.newJob(), e.newJob()
	runs := o.claim(o.plan(job, e.at(0), e.at(1), e.at(2)), o.plan(other, e.at(0)))
	var verdicts []store.Verdict
	for _, run := range []store.Run{runs[0], runs[1], runs[3]} {
		verdicts = append(verdicts, o.verdict(o.started(run, o.over("b")), store.StatePlanned))
	}
	manual := o.started(e.mustAddRun(job.ID, store.Trigger{}), o.over("b"))
	e.edit(job.ID, stopped)
	want(e, "runs settled", len(e.mustSettle(append(verdicts, o.verdict(manual, store.StatePlanned))...)), 4)
	e.wantState("a run of the stopped job", runs[1].ID, store.StateCancelled)
	e.wantMade("a stopped job of which two runs were given back", job.ID, 1)
	e.wantMade("a job that is not stopped", other.ID, 1)
}

func killCounts(e *env) {
	o := e.owner("a")
	job := e.newJob()
	runs := o.claim(o.plan(job, e.at(0), e.at(1)))
	e.mustKill(runs[0].ID, "x")
	e.wantMade("after the kill of a planned run", job.ID, 2)
	e.edit(job.ID, stopped)
	e.mustKill(e.mustAddRun(job.ID, store.Trigger{At: e.at(600)}).ID, "x")
	e.wantMade("after the kill of a trigger's run", job.ID, 2)
	for range 2 {
		e.mustKill(runs[1].ID, "x")
		e.wantMade("after the kill of a planned run of a stopped job", job.ID, 1)
	}
}

func partsStay(e *env) {
	o := e.owner("a")
	for _, targets := range []int{1, 3} {
		run := o.planned(e.newJob())
		a := o.tryStart(o.startOf(run, o.over("b"), func(s *store.Start) {
			for range targets {
				s.Targets = append(s.Targets, s.Address)
			}
		}))
		want(e, "status of a broadcast's start", a.Status, store.StartOK)
		e.wantMade("a broadcast", run.JobID, 1)
		parts := append([]store.Run{a.Run}, a.Siblings...)
		want(e, "its parts", len(parts), targets)
		e.mustSettle(o.verdict(parts[0], store.StatePlanned))
		e.stop(run.JobID)
		e.wantState("a part that was put back", parts[0].ID, store.StateCancelled)
		for _, part := range parts[1:] {
			e.mustSettle(o.verdict(part, store.StatePlanned))
		}
		e.wantMade("a broadcast whose parts were cancelled", run.JobID, 1)
	}
}

// notRearmedLate: the end of the run plus the delay may be NotAfter, and no later.
func notRearmedLate(e *env) {
	o := e.owner("a")
	for _, end := range ends() {
		late := o.waited(e.newJob(delayed(time.Hour), until(e.at(60))))
		inTime := o.waited(e.newJob(delayed(time.Hour), until(e.at(24*3600))))
		before := e.mustJob(late.JobID)
		end.do(o, late)
		end.do(o, inTime)
		e.wantFinishedBy(end.name, before, store.ByNotAfter)
		want(e, end.name+": Next within NotAfter", e.mustJob(inTime.JobID).Next, e.mustRun(inTime.ID).Ended.Add(time.Hour))
	}
}

func notRearmedUsedUp(e *env) {
	o := e.owner("a")
	for _, end := range ends() {
		last := o.waited(e.newJob(delayed(time.Hour), bounded(1)))
		notYet := o.waited(e.newJob(delayed(time.Hour), bounded(2)))
		before := e.mustJob(last.JobID)
		end.do(o, last)
		end.do(o, notYet)
		e.wantFinishedBy(end.name, before, store.ByMaxRuns)
		e.check(!e.mustJob(notYet.JobID).Next.IsZero(), "%s: a job of which a run is left has no Next", end.name)
	}
}

// wantFinishedBy checks that the job was stopped for want of instants, and why.
func (e *env) wantFinishedBy(what string, before store.Job, by string) {
	e.Helper()
	got := e.mustJob(before.ID)
	want(e, what+": stopped, reason, version, next", []any{got.Stopped, got.StopReason, got.Version, got.Next},
		[]any{true, store.StopFinished + by, before.Version, time.Time{}})
}

func finishedBy(e *env) {
	o := e.owner("a")
	once := func(j *store.Job) { j.Schedule = schedule.At(e.at(10)) }
	for _, c := range []struct {
		what   string
		change []func(*store.Job)
		by     string
	}{
		{"no bound", nil, ""},
		{"all runs made", []func(*store.Job){bounded(1)}, store.ByMaxRuns},
		{"a run left", []func(*store.Job){bounded(2)}, ""},
		{"instants after NotAfter", []func(*store.Job){until(e.at(10))}, store.ByNotAfter},
		{"instants after NotAfter, a run left", []func(*store.Job){bounded(2), until(e.at(10))}, store.ByNotAfter},
		{"both", []func(*store.Job){bounded(1), until(e.at(10))}, store.ByMaxRuns},
		{"no instant after NotAfter", []func(*store.Job){once, until(e.at(10))}, ""},
		{"an instant after NotAfter", []func(*store.Job){once, until(e.at(9))}, store.ByNotAfter},
	} {
		run := o.last(e.newJob(c.change...))
		before := e.mustJob(run.JobID)
		o.mustFinish(success(o.started(run)))
		e.wantFinishedBy("Finish, "+c.what, before, c.by)
	}
	swept := []store.Job{e.newJob(noNext), e.newJob(noNext, until(e.at(10))), e.newJob(noNext, bounded(1))}
	e.must(e.Sweep(e.ctx, o.shards))
	for i, by := range []string{"", store.ByNotAfter, ""} {
		e.wantFinishedBy("Sweep", swept[i], by)
	}
}

// replanFinishes: an edit that leaves an enabled job no instant stops it, unless a run of
// it is under way.
func replanFinishes(e *env) {
	o := e.owner("a")
	cut := func(job int64) store.Job {
		got, err := e.EditJob(e.ctx, job, replan("update", time.Time{}, bounded(1)))
		e.must(err)
		want(e, "stored job", e.mustJob(job), got)
		return got
	}
	idle := e.newJob()
	e.wantFinishedBy("without runs", cut(idle.ID), "")
	want(e, "changes", len(e.mustChanges(idle.ID)), 3)
	run := o.planned(e.newJob())
	e.wantFinishedBy("with a planned run", cut(run.JobID), "")
	run = o.started(o.planned(e.newJob()))
	job := cut(run.JobID)
	want(e, "Stopped with a run under way", job.Stopped, false)
	o.mustFinish(success(run))
	e.wantFinishedBy("after it", job, store.ByMaxRuns)
	stop, err := e.EditJob(e.ctx, e.newJob().ID, replan("stop", time.Time{}, stopped))
	e.must(err)
	want(e, "reason of a stop", stop.StopReason, "")
}
