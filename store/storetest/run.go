package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

func runCases() []testCase {
	return []testCase{
		{"AddInsertsAPlannedRun", addRunPlanned},
		{"AddKeepsTheTrigger", addRunKeepsTrigger},
		{"AddDueNowOrLater", addRunDue},
		{"AddWorksForAStoppedJob", addRunStopped},
		{"AddWithKeyIsIdempotent", addRunKey},
		{"AddWithKeyFrom50Callers", addRunKeyConcurrent},
		{"KillCancelsAPlannedRun", killPlanned},
		{"KillMarksAStartedOrDispatchedRun", killStarted},
		{"KillLeavesAnEndedRunAlone", killEnded},
		{"KillKeepsTheFirstReason", killFirstReason},
		{"KillWithoutAReasonIsKilled", killNoReason},
		{"NotFound", runNotFound},
		{"RunsByIDInOrder", runsByID},
		{"RunsFilters", runsFilters},
		{"RunsEndedSinceAmongThoseLookedAt", runsEndedSince},
		{"RunsNewestFirstPagesCoverAllOnce", runsPages},
		{"RunsLimitDefaultsTo100", runsDefaultLimit},
		{"RunsHaveTheNamesOfTheirJobs", runsNames},
	}
}

func addRunPlanned(e *env) {
	job := e.newJob()
	run := e.mustAddRun(job.ID, store.Trigger{})
	e.check(run.ID > 0 && run.ID < 1<<53, "ID %d: want positive and below 2^53", run.ID)
	e.check(!run.Created.IsZero() && !run.Scheduled.IsZero(), "Created %v, Scheduled %v: want both set", run.Created, run.Scheduled)
	want(e, "AddRun", run, store.Run{ID: run.ID, JobID: job.ID, App: job.App, Shard: job.Shard, TriggerID: run.ID,
		Type: store.TriggerManual, Scheduled: run.Scheduled, State: store.StatePlanned, Retries: -1, Created: run.Created})
	e.wantRun("AddRun", run)
	want(e, "the job after AddRun", e.mustJob(job.ID), job)
	later := e.mustAddRun(job.ID, store.Trigger{})
	e.check(later.ID > run.ID, "a later run has ID %d after %d: want growing with time", later.ID, run.ID)
}

func addRunKeepsTrigger(e *env) {
	job := e.newJob()
	param, retries := "", 4
	t := store.Trigger{Param: &param, Addresses: []string{"http://b", "http://a"}, Shard: store.Sharding{Index: 1, Total: 3},
		Retries: &retries, At: e.at(3600), Type: store.TriggerAPI, Key: "k"}
	run := e.mustAddRun(job.ID, t)
	want(e, "AddRun", run, store.Run{ID: run.ID, JobID: job.ID, App: job.App, Shard: job.Shard, TriggerID: run.ID,
		Type: store.TriggerAPI, Scheduled: e.at(3600), Sharding: t.Shard, ParamSet: true, Addresses: t.Addresses,
		Retries: 4, RetriesSet: true, Created: run.Created})
	e.wantRun("AddRun", run)
	param = "given"
	run = e.mustAddRun(job.ID, store.Trigger{Param: &param})
	e.check(run.ParamSet && run.Param == "given", "Param %q, ParamSet %t: want the trigger's", run.Param, run.ParamSet)
}

func addRunDue(e *env) {
	job := e.newJob()
	past := e.at(-3600)
	run := e.mustAddRun(job.ID, store.Trigger{At: past})
	e.check(run.Scheduled.After(past), "a run for a past time is scheduled at %v: want now", run.Scheduled)
	run = e.mustAddRun(job.ID, store.Trigger{At: e.at(3600)})
	want(e, "Scheduled of a run for later", run.Scheduled, e.at(3600))
}

func addRunStopped(e *env) {
	o := e.owner("a")
	job := e.newJob(stopped)
	want(e, "state", o.started(e.mustAddRun(job.ID, store.Trigger{})).State, store.StateStarted)
}

func addRunKey(e *env) {
	o := e.owner("a")
	job, other := e.newJob(), e.newJob()
	first := e.mustAddRun(job.ID, store.Trigger{Key: "k"})
	want(e, "run of the second call", e.mustAddRun(job.ID, store.Trigger{Key: "k", At: e.at(60)}).ID, first.ID)
	e.mustFinish(success(o.started(first)))
	want(e, "run of a call after its end", e.mustAddRun(job.ID, store.Trigger{Key: "k"}).ID, first.ID)
	want(e, "runs of the job", len(e.runsOf(job.ID)), 1)
	e.check(e.mustAddRun(other.ID, store.Trigger{Key: "k"}).ID != first.ID, "a key of one job stands for a run of another")
	e.check(e.mustAddRun(job.ID, store.Trigger{Key: "K"}).ID != first.ID, "keys are compared regardless of case")
	without := e.mustAddRun(job.ID, store.Trigger{})
	e.check(e.mustAddRun(job.ID, store.Trigger{}).ID != without.ID, "an empty key made a call idempotent")
}

func addRunKeyConcurrent(e *env) {
	const n = 50
	job := e.newJob()
	var got [n]int64
	var errs [n]error
	var calls []func()
	for i := range n {
		calls = append(calls, func() {
			run, err := e.AddRun(e.ctx, job.ID, store.Trigger{Key: "k"})
			got[i], errs[i] = run.ID, err
		})
	}
	e.race(calls...)
	for i := range n {
		e.must(errs[i])
		want(e, "run of a concurrent call", got[i], got[0])
	}
	want(e, "runs inserted", ids(e.runsOf(job.ID)), []int64{got[0]})
}

func killPlanned(e *env) {
	o := e.owner("a")
	run := o.planned(e.newJob())
	got := e.mustKill(run.ID, "unwanted")
	e.check(!got.Ended.IsZero(), "Ended is not set")
	run.State, run.Reason, run.Ended = store.StateCancelled, "unwanted", got.Ended
	got.TriggerMsg, got.AlarmStatus = run.TriggerMsg, run.AlarmStatus // a store may note that no alarm is due
	want(e, "Kill", got, run)
	e.wantState("a killed planned run", run.ID, store.StateCancelled)
	want(e, "status of its start", o.tryStart(o.startOf(run)).Status, store.StartGone)
}

func killStarted(e *env) {
	o := e.owner("a")
	for name, run := range map[string]store.Run{"started": o.running(), "handed over": o.running(o.over("b")), "dispatched": o.dispatched()} {
		got := e.mustKill(run.ID, "unwanted")
		want(e, "KillReason of a "+name+" run", got.KillReason, "unwanted")
		want(e, "state of a "+name+" run", got.State, run.State)
		e.check(got.Ended.IsZero(), "a %s run has ended by the mere wish", name)
		e.wantRun("a "+name+" run", got)
	}
}

func killEnded(e *env) {
	o := e.owner("a")
	run := o.running()
	e.mustFinish(success(run))
	skipped := o.one(o.claim(o.skip(e.newJob())))
	cancelled := o.planned(e.newJob())
	e.mustKill(cancelled.ID, "first")
	for _, id := range []int64{run.ID, skipped.ID, cancelled.ID} {
		before := e.mustRun(id)
		want(e, "Kill of a run that is "+before.State.String(), e.mustKill(id, "second"), before)
		e.wantRun("a run that is "+before.State.String(), before)
	}
}

// killable returns runs that a kill marks.
func (o *owner) killable() map[string]store.Run {
	taken := o.handedOver()
	o.mustTake("b", taken.ID)
	return map[string]store.Run{"started": o.running(), "handed over": o.handedOver(), "taken": taken,
		"remote": o.running(to(remote)), "dispatched": o.dispatched()}
}

func killFirstReason(e *env) {
	for name, run := range e.owner("a").killable() {
		first := e.mustKill(run.ID, "first")
		for _, reason := range []string{"second", "", "first"} {
			want(e, "Kill again of a "+name+" run", e.mustKill(run.ID, reason), first)
			e.wantRun("a "+name+" run", first)
		}
	}
}

func killNoReason(e *env) {
	o := e.owner("a")
	for name, run := range o.killable() {
		for _, reason := range []string{"", "second"} {
			want(e, "KillReason of a "+name+" run", e.mustKill(run.ID, reason).KillReason, "killed")
			want(e, "stored KillReason of a "+name+" run", e.mustRun(run.ID).KillReason, "killed")
		}
	}
	for _, run := range []store.Run{o.planned(e.newJob()), e.mustAddRun(e.newJob().ID, store.Trigger{})} {
		got := e.mustKill(run.ID, "")
		want(e, "state and Reason of a planned run", []any{got.State, got.Reason}, []any{store.StateCancelled, "killed"})
		e.wantRun("a planned run", got)
	}
}

func runNotFound(e *env) {
	for _, id := range []int64{0, -1, 12345, 1<<53 - 1} {
		_, err := e.Run(e.ctx, id)
		e.wantErr("Run", err, store.ErrNotFound)
		_, err = e.Kill(e.ctx, id, "x")
		e.wantErr("Kill", err, store.ErrNotFound)
	}
}

func runsByID(e *env) {
	job := e.newJob()
	a := e.mustAddRun(job.ID, store.Trigger{})
	e.mustAddRun(job.ID, store.Trigger{})
	c := e.mustAddRun(job.ID, store.Trigger{})
	got, err := e.RunsByID(e.ctx, []int64{c.ID, 1<<53 - 1, a.ID})
	e.must(err)
	want(e, "RunsByID", nameless(got...), []store.Run{a, c})
	got, err = e.RunsByID(e.ctx, nil)
	e.must(err)
	want(e, "RunsByID of none", len(got), 0)
}

func runsFilters(e *env) {
	o := e.owner("a")
	job := e.newJob(func(j *store.Job) { j.App = "one" })
	other := e.newJob(func(j *store.Job) { j.App = "two" })
	runs := o.claim(o.plan(job, e.at(10), e.at(20), e.at(30)), o.plan(other, e.at(20)))
	runs[1] = o.started(runs[1])
	wide := o.tryStart(o.startOf(runs[3], func(s *store.Start) { s.Targets = []string{s.Address, remote} }))
	want(e, "status of a broadcast", wide.Status, store.StartOK)
	runs[3] = wide.Run
	part := wide.Siblings[0]
	cases := []struct {
		name   string
		filter store.RunFilter
		want   []store.Run
	}{
		{"nothing", store.RunFilter{}, []store.Run{runs[0], runs[1], runs[2], runs[3], part}},
		{"App", store.RunFilter{App: "two"}, []store.Run{runs[3], part}},
		{"JobID", store.RunFilter{JobID: job.ID}, []store.Run{runs[0], runs[1], runs[2]}},
		{"TriggerID", store.RunFilter{TriggerID: runs[3].ID}, []store.Run{runs[3], part}},
		{"one state", store.RunFilter{States: []store.State{store.StatePlanned}}, []store.Run{runs[0], runs[2]}},
		{"two states", store.RunFilter{JobID: job.ID, States: []store.State{store.StatePlanned, store.StateStarted}}, []store.Run{runs[0], runs[1], runs[2]}},
		{"states of which there are none", store.RunFilter{JobID: job.ID, States: []store.State{}}, []store.Run{runs[0], runs[1], runs[2]}},
		{"From", store.RunFilter{JobID: job.ID, From: e.at(20)}, []store.Run{runs[1], runs[2]}},
		{"To", store.RunFilter{JobID: job.ID, To: e.at(20)}, []store.Run{runs[0]}},
		{"From and To", store.RunFilter{From: e.at(20), To: e.at(30), App: "one"}, []store.Run{runs[1]}},
		{"Before", store.RunFilter{Before: runs[1].ID, JobID: job.ID}, []store.Run{runs[0]}},
		{"what is not there", store.RunFilter{App: "one", JobID: other.ID}, nil},
	}
	for _, c := range cases {
		slices.SortFunc(c.want, func(x, y store.Run) int { return int(y.ID - x.ID) })
		want(e, "Runs by "+c.name, e.mustRuns(c.filter), c.want)
	}
}

// runsEndedSince: what ended before, or has not, is left out; it is looked at no further than Limit.
func runsEndedSince(e *env) {
	job := e.newJob()
	add := func() store.Run { return e.mustAddRun(job.ID, store.Trigger{}) }
	first := add()
	before := e.mustKill(add().ID, "x")
	newer := e.mustKill(add().ID, "x")
	for !newer.Ended.After(before.Ended) {
		time.Sleep(time.Millisecond)
		before, newer = newer, e.mustKill(add().ID, "x")
	}
	add()
	first = e.mustKill(first.ID, "x")
	over := []store.State{store.StateCancelled, store.StateSkipped}
	for _, c := range []struct {
		name   string
		filter store.RunFilter
		want   []int64
	}{
		{"all", store.RunFilter{}, []int64{newer.ID, first.ID}},
		{"a job", store.RunFilter{JobID: job.ID}, []int64{newer.ID, first.ID}},
		{"states", store.RunFilter{States: over}, []int64{newer.ID, first.ID}},
		{"the newest, which has not ended", store.RunFilter{Limit: 1}, nil},
		{"the newest in a state", store.RunFilter{States: over, Limit: 1}, []int64{newer.ID}},
		{"the one before that", store.RunFilter{States: over, Limit: 1, Before: newer.ID}, nil},
		{"all before that", store.RunFilter{States: over, Before: newer.ID}, []int64{first.ID}},
	} {
		c.filter.EndedSince = newer.Ended
		want(e, "Runs of late, of "+c.name, ids(e.mustRuns(c.filter)), c.want)
		c.filter.EndedSince = e.at(3600)
		want(e, "Runs of the future, of "+c.name, len(e.mustRuns(c.filter)), 0)
	}
}

func runsPages(e *env) {
	o := e.owner("a")
	var instants []time.Time
	for i := range 23 {
		instants = append(instants, e.at(100-i)) // newest by ID is not latest by instant
	}
	job := e.newJob()
	all := ids(o.claim(o.plan(job, instants...)))
	for range 7 {
		all = append(all, e.mustAddRun(job.ID, store.Trigger{}).ID)
	}
	slices.Sort(all)
	slices.Reverse(all)
	var got []int64
	for before := int64(0); ; {
		page := e.mustRuns(store.RunFilter{Before: before, Limit: 4})
		e.check(len(page) <= 4, "a page of %d, want at most 4", len(page))
		if len(page) == 0 || len(got) > len(all) {
			break
		}
		got = append(got, ids(page)...)
		before = page[len(page)-1].ID
	}
	want(e, "runs of all pages", got, all)
}

func runsDefaultLimit(e *env) {
	o := e.owner("a")
	o.claim(o.plan(e.newJob(), slices.Repeat([]time.Time{e.now}, 101)...))
	want(e, "runs without a limit", len(e.mustRuns(store.RunFilter{})), 100)
}

// runsNames: the names are the job's as it now is, wherever runs are read; a removed job
// has none.
func runsNames(e *env) {
	o := e.owner("a")
	job, other := e.newJob(), e.newJob(func(j *store.Job) { j.Key = "" })
	runs := []store.Run{o.started(e.mustAddRun(job.ID, store.Trigger{})), o.planned(job), e.mustAddRun(other.ID, store.Trigger{})}
	wantNames := func(when string, name, key string) {
		e.Helper()
		names := [][2]string{{name, key}, {name, key}, {other.Name, ""}}
		of := func(what string, got []store.Run, err error, names ...[2]string) {
			e.Helper()
			e.must(err)
			var have [][2]string
			for _, r := range got {
				have = append(have, [2]string{r.JobName, r.JobKey})
			}
			want(e, "names of jobs by "+what+", "+when, have, names)
		}
		all := ids(runs)
		slices.Sort(all)
		got, err := e.RunsByID(e.ctx, all)
		of("RunsByID", got, err, names...)
		for i, r := range runs {
			got, err := e.Run(e.ctx, r.ID)
			of("Run", []store.Run{got}, err, names[i])
		}
		got, err = e.Runs(e.ctx, store.RunFilter{})
		slices.Reverse(got)
		of("Runs", got, err, names...)
		for _, f := range []store.RunFilter{{JobID: job.ID}, {JobID: job.ID, Limit: 2}, {App: job.App, JobID: job.ID}} {
			got, err = e.Runs(e.ctx, f)
			of("Runs of a job", got, err, names[:2]...)
		}
		got, err = e.Runs(e.ctx, store.RunFilter{TriggerID: runs[0].ID})
		of("Runs of a trigger", got, err, names[0])
	}
	wantNames("as they were added", job.Name, job.Key)
	e.edit(job.ID, func(j *store.Job) { j.Name, j.Key = "another", "" })
	wantNames("after an edit", "another", "")
	e.edit(job.ID, func(j *store.Job) { j.Name, j.Key = "a third — 错", "key" })
	e.mustFinish(success(runs[0]))
	wantNames("after another, and an end", "a third — 错", "key")
	e.must(e.RemoveJob(e.ctx, job.ID))
	wantNames("after the removal", "", "")
}

// hasLine reports whether msg holds the line.
func hasLine(msg, line string) bool { return slices.Contains(strings.Split(msg, "\n"), line) }
