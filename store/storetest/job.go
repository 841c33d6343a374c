package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

func jobCases() []testCase {
	return []testCase{
		{"AddGivesIDVersionAndShard", addGivesIDVersionAndShard},
		{"AddKeepsEveryField", addKeepsEveryField},
		{"AddKeepsNextAndStopped", addKeepsNextAndStopped},
		{"ManualIsNotStoppedForThat", manualIsNotStopped},
		{"AddAsksForTheFirstInstant", addFirstInstant},
		{"AddDuplicateKey", addDuplicateKey},
		{"AddConcurrentlyGivesOneOfAKey", addConcurrentKey},
		{"EmptyKeyIsNeverADuplicate", emptyKey},
		{"KeyIsFreeAfterRemoval", keyAfterRemoval},
		{"JobNotFound", jobNotFound},
		{"JobByKey", jobByKey},
		{"JobsFilters", jobsFilters},
		{"JobsNameIsLiteralAndIgnoresCase", jobsNameLiteral},
		{"JobsPagesCoverAllOnce", jobsPages},
		{"JobsLimitDefaultsTo100", jobsDefaultLimit},
		{"RemoveCancelsPlannedRunsOfEveryType", removeCancels},
		{"RemoveKeepsRunsReadable", removeKeepsRuns},
		{"ChangesNewestFirstWithActor", changesNewestFirst},
		{"ChangesOutliveTheJob", changesOutlive},
	}
}

func addGivesIDVersionAndShard(e *env) {
	seen := map[int64]bool{}
	for range 8 {
		job := e.newJob(func(j *store.Job) { j.ID, j.Version, j.Shard = 77, 9, 2 })
		e.check(job.ID > 0 && job.ID < 1<<31, "ID %d: want positive and below 2^31", job.ID)
		e.check(!seen[job.ID], "ID %d was given twice", job.ID)
		seen[job.ID] = true
		want(e, "Version", job.Version, 1)
		want(e, "Shard", job.Shard, int(job.ID%numShards))
		e.check(!job.Added.IsZero() && !job.Updated.IsZero(), "Added %v, Updated %v: want both set", job.Added, job.Updated)
		want(e, "Job", e.mustJob(job.ID), job)
	}
}

// manualIsNotStopped: having no schedule and being stopped are two things.
func manualIsNotStopped(e *env) {
	manual := func(j *store.Job) { j.Schedule, j.Next = schedule.Manual(), time.Time{} }
	job, other := e.newJob(manual), e.newJob(manual, stopped)
	want(e, "Stopped", []bool{job.Stopped, other.Stopped}, []bool{false, true})
	listed := func(what string, is bool, ids ...int64) {
		e.Helper()
		jobs, err := e.Jobs(e.ctx, store.JobFilter{Stopped: &is})
		e.must(err)
		var got []int64
		for _, j := range jobs {
			want(e, what+": Stopped", j.Stopped, is)
			got = append(got, j.ID)
		}
		slices.Sort(ids)
		want(e, what, got, ids)
	}
	listed("the one that is not", false, job.ID)
	listed("the one that is", true, other.ID)
	done, err := e.EditJob(e.ctx, job.ID, replan("stop", time.Time{}, stopped))
	e.must(err)
	want(e, "stopped by somebody", []any{done.Stopped, done.StopReason}, []any{true, ""})
	want(e, "Job", e.mustJob(job.ID), done)
	listed("both", true, job.ID, other.ID)
	done, err = e.EditJob(e.ctx, job.ID, replan("start", e.at(60), func(j *store.Job) { j.Stopped, j.Schedule = false, schedule.FixedRate(time.Hour) }))
	e.must(err)
	want(e, "with a schedule", []any{done.Stopped, done.StopReason, done.Next}, []any{false, "", e.at(60)})
	want(e, "Job", e.mustJob(job.ID), done)
}

// fullJob sets every field that the caller of AddJob may set.
func fullJob() store.Job {
	return store.Job{App: "app", Key: "key", Name: "name — 名", Author: "author", AlarmEmail: "a@x, b@x", Tags: []string{"nightly", "账单"},
		Schedule: schedule.Cron("0 0 3 * * ?").In("Asia/Shanghai").WithDST(schedule.DSTQuartz),
		Misfire:  store.MisfireFireOnceNow, CatchUp: store.CatchUpEveryMissed, CatchUpMost: 7, CatchUpAge: 90 * time.Second, OnNoExecutor: store.OnNoExecutorWait, Route: "FAILOVER", Handler: "handler",
		NotBefore: time.UnixMilli(1_700_000_000_123).UTC(), NotAfter: time.UnixMilli(1_900_000_000_456).UTC(), MaxRuns: 7,
		Param: "line\nline", Secret: true, Block: "CONCURRENT", MaxPerExecutor: 7, Timeout: 90 * time.Second, Retries: 3, Children: []int64{5, 3, 4},
		ChildKeys: []string{"b/k", "a/k/名"}, ChildParam: store.ChildParamResult, After: []int64{9, 7}, AfterKeys: []string{"d/k", "c/k"},
		AfterWindow: 90 * time.Second, AfterZone: "Europe/Berlin", AfterTimeout: 1500 * time.Millisecond, LateAfter: 31 * 24 * time.Hour, KeepRuns: 90 * time.Second,
		GlueType: "GLUE_SHELL", GlueSource: "echo 1", GlueRemark: "first", Stopped: true, StopReason: "because",
		Ensured: "digest"}
}

func addKeepsEveryField(e *env) {
	given := fullJob()
	job, err := e.AddJob(e.ctx, given, nil)
	e.must(err)
	e.check(!job.GlueUpdated.IsZero(), "GlueUpdated is not set for a job with a GlueSource")
	want(e, "Job", e.mustJob(job.ID), job)
	given.ID, given.Version, given.Shard = job.ID, job.Version, job.Shard
	given.Added, given.Updated, given.GlueUpdated = job.Added, job.Updated, job.GlueUpdated
	want(e, "AddJob", job, given)
}

func addKeepsNextAndStopped(e *env) {
	next := e.at(3600)
	for _, stop := range []bool{false, true} {
		job := e.newJob(func(j *store.Job) { j.Next, j.Stopped = next, stop })
		want(e, "Next", job.Next, next)
		want(e, "Stopped", job.Stopped, stop)
	}
}

// addFirstInstant: the first instant is worked out with the store's clock, which is
// also when the job was added; where that fails there is no job.
func addFirstInstant(e *env) {
	var seen store.Job
	var told time.Time
	given := store.Job{App: "app", Key: "k", Name: "n", Next: e.at(-500), Children: []int64{1, 2}}
	mine := errors.New("mine")
	_, err := e.AddJob(e.ctx, given, func(store.Job, time.Time) (time.Time, error) { return e.now, mine })
	e.check(err == mine, "an error of the function: %v, want it returned as it is", err)
	jobs, err := e.Jobs(e.ctx, store.JobFilter{})
	e.must(err)
	want(e, "jobs after it", len(jobs), 0)

	job, err := e.AddJob(e.ctx, given, func(j store.Job, now time.Time) (time.Time, error) {
		seen, told = j, now
		seen.Children = slices.Clone(j.Children)
		j.Children[0] = 9
		return now.Add(time.Hour + 999*time.Microsecond).In(time.FixedZone("", 3600)), nil
	})
	e.must(err)
	want(e, "the time that was told", told, job.Added)
	want(e, "Next", job.Next, told.Add(time.Hour))
	want(e, "stored job", e.mustJob(job.ID), job)
	seen.Next = job.Next
	want(e, "the job that was shown", seen, job)

	none, err := e.AddJob(e.ctx, store.Job{App: "app", Name: "n", Next: e.now}, func(store.Job, time.Time) (time.Time, error) { return time.Time{}, nil })
	e.must(err)
	e.check(e.mustJob(none.ID).Next.IsZero(), "Next %v where there is no instant", none.Next)
}

func addDuplicateKey(e *env) {
	first := e.newJob(func(j *store.Job) { j.Key = "k" })
	_, err := e.AddJob(e.ctx, store.Job{App: "app", Key: "k", Name: "other"}, nil)
	e.wantErr("AddJob with a taken key", err, store.ErrDuplicateKey)
	jobs, err := e.Jobs(e.ctx, store.JobFilter{})
	e.must(err)
	want(e, "jobs after it", jobs, []store.Job{first})

	_, err = e.AddJob(e.ctx, store.Job{App: "other", Key: "k", Name: "other"}, nil)
	e.check(err == nil, "the same key in another app: error %v, want none", err)
}

func addConcurrentKey(e *env) {
	const n = 10
	errs := make([]error, n)
	var calls []func()
	for i := range n {
		calls = append(calls, func() {
			_, errs[i] = e.AddJob(e.ctx, store.Job{App: "app", Key: "k", Name: fmt.Sprint(i)}, nil)
		})
	}
	e.race(calls...)
	added := 0
	for _, err := range errs {
		if err == nil {
			added++
		} else {
			e.wantErr("concurrent AddJob", err, store.ErrDuplicateKey)
		}
	}
	want(e, "jobs added under one key", added, 1)
}

func emptyKey(e *env) {
	for range 3 {
		e.newJob(func(j *store.Job) { j.Key = "" })
	}
	jobs, err := e.Jobs(e.ctx, store.JobFilter{})
	e.must(err)
	want(e, "jobs without a key", len(jobs), 3)
}

func keyAfterRemoval(e *env) {
	job := e.newJob(func(j *store.Job) { j.Key = "k" })
	e.must(e.RemoveJob(e.ctx, job.ID))
	again := e.newJob(func(j *store.Job) { j.Key = "k" })
	e.check(again.ID != job.ID, "the ID %d was given again", job.ID)
}

func jobNotFound(e *env) {
	gone := e.newJob()
	e.must(e.RemoveJob(e.ctx, gone.ID))
	for _, id := range []int64{gone.ID, gone.ID + 1_000_000, 0, -1} {
		_, err := e.Job(e.ctx, id)
		e.wantErr("Job", err, store.ErrNotFound)
		e.wantErr("RemoveJob", e.RemoveJob(e.ctx, id), store.ErrNotFound)
		_, err = e.EditJob(e.ctx, id, replan("update", e.now, stopped))
		e.wantErr("EditJob", err, store.ErrNotFound)
		_, err = e.AddRun(e.ctx, id, store.Trigger{})
		e.wantErr("AddRun", err, store.ErrNotFound)
	}
	_, err := e.JobByKey(e.ctx, gone.App, gone.Key)
	e.wantErr("JobByKey", err, store.ErrNotFound)
}

func jobByKey(e *env) {
	a := e.newJob(func(j *store.Job) { j.App, j.Key = "a", "k" })
	b := e.newJob(func(j *store.Job) { j.App, j.Key = "b", "k" })
	for _, job := range []store.Job{a, b} {
		got, err := e.JobByKey(e.ctx, job.App, "k")
		e.must(err)
		want(e, "JobByKey in app "+job.App, got, job)
	}
	_, err := e.JobByKey(e.ctx, "a", "K")
	e.wantErr("JobByKey of another case", err, store.ErrNotFound)
	for _, never := range []string{"a\x00b", "\xff"} { // nothing stored is that
		_, err := e.JobByKey(e.ctx, "a", never)
		e.wantErr("JobByKey of a key that cannot be", err, store.ErrNotFound)
		_, err = e.JobByKey(e.ctx, never, "k")
		e.wantErr("JobByKey in an app that cannot be", err, store.ErrNotFound)
		_, err = e.UnnameJob(e.ctx, "a", never)
		e.wantErr("UnnameJob of a key that cannot be", err, store.ErrNotFound)
	}

	e.edit(a.ID, func(j *store.Job) { j.Key = "new" })
	_, err = e.JobByKey(e.ctx, "a", "k")
	e.wantErr("JobByKey of the former key", err, store.ErrNotFound)
	got, err := e.JobByKey(e.ctx, "a", "new")
	e.must(err)
	want(e, "JobByKey of the new key", got.ID, a.ID)
}

func jobsFilters(e *env) {
	a := e.newJob(func(j *store.Job) {
		j.App, j.Key, j.Handler, j.Author, j.Name = "a", "ka", "ha", "ann", "Nightly Report"
	})
	b := e.newJob(func(j *store.Job) {
		j.App, j.Key, j.Handler, j.Author, j.Name = "b", "kb", "hb", "bob", "hourly"
		j.Stopped = true
	})
	c := e.newJob(func(j *store.Job) { j.App, j.Key, j.Handler, j.Author, j.Name = "a", "kc", "hb", "ann", "daily" })
	all := []store.Job{a, b, c}
	inOrder := func(x, y store.Job) int { return cmp.Compare(x.ID, y.ID) } // which a store chooses
	slices.SortFunc(all, inOrder)
	ofA := []store.Job{a, c}
	slices.SortFunc(ofA, inOrder)
	cases := []struct {
		name   string
		filter store.JobFilter
		want   []store.Job
	}{
		{"none", store.JobFilter{}, []store.Job{a, b, c}},
		{"App", store.JobFilter{App: "a"}, []store.Job{a, c}},
		{"Key", store.JobFilter{Key: "kb"}, []store.Job{b}},
		{"Handler", store.JobFilter{Handler: "hb"}, []store.Job{b, c}},
		{"Author", store.JobFilter{Author: "ann"}, []store.Job{a, c}},
		{"Name", store.JobFilter{Name: "LY"}, []store.Job{a, b, c}},
		{"Name of one", store.JobFilter{Name: "night"}, []store.Job{a}},
		{"not Stopped", store.JobFilter{Stopped: new(false)}, []store.Job{a, c}},
		{"Stopped", store.JobFilter{Stopped: new(true)}, []store.Job{b}},
		{"IDs", store.JobFilter{IDs: []int64{c.ID, a.ID, 1 << 30}}, []store.Job{a, c}},
		{"IDs of which there are none", store.JobFilter{App: "a", IDs: []int64{}}, []store.Job{a, c}},
		{"Keys of which there are none", store.JobFilter{App: "a", Keys: []string{}}, []store.Job{a, c}},
		{"Keys, and IDs of which there are none", store.JobFilter{App: "a", Keys: []string{"kc"}, IDs: []int64{}}, []store.Job{c}},
		{"Keys", store.JobFilter{Keys: []string{"kc", "absent", "", "ka", "kc"}}, []store.Job{a, c}},
		{"Keys and App", store.JobFilter{App: "b", Keys: []string{"ka", "kb"}}, []store.Job{b}},
		{"Keys, App and Limit", store.JobFilter{App: "a", Keys: []string{"kc", "ka"}, Limit: 1}, ofA[:1]},
		{"Keys, App and After", store.JobFilter{App: "a", Keys: []string{"kc", "ka", ""}, After: ofA[0].ID}, ofA[1:]},
		{"Keys and IDs", store.JobFilter{App: "a", Keys: []string{"ka", "kb"}, IDs: []int64{c.ID, a.ID}}, []store.Job{a}},
		{"Keys that nobody has", store.JobFilter{App: "a", Keys: []string{"kb", ""}}, nil},
		{"After", store.JobFilter{After: all[0].ID}, all[1:]},
		{"After the last but one", store.JobFilter{After: all[1].ID}, all[2:]},
		{"After the last", store.JobFilter{After: all[2].ID}, nil},
		{"Limit", store.JobFilter{Limit: 2}, all[:2]},
		{"After and Limit", store.JobFilter{After: all[0].ID, Limit: 1}, all[1:2]},
		{"all together", store.JobFilter{App: "a", Handler: "hb", Author: "ann", Stopped: new(false), After: c.ID - 1}, []store.Job{c}},
		{"all together, After it", store.JobFilter{App: "a", Handler: "hb", Author: "ann", Stopped: new(false), After: c.ID}, nil},
		{"nothing", store.JobFilter{App: "a", Key: "kb"}, nil},
	}
	for _, c := range cases {
		slices.SortFunc(c.want, inOrder)
		got, err := e.Jobs(e.ctx, c.filter)
		e.must(err)
		want(e, "Jobs by "+c.name, got, c.want)
	}
}

func jobsNameLiteral(e *env) {
	percent := e.newJob(func(j *store.Job) { j.Name = "50% OFF_now" })
	e.newJob(func(j *store.Job) { j.Name = "50 per cent off-now" })
	for _, part := range []string{"%", "_", "off_NOW", "50% o"} {
		got, err := e.Jobs(e.ctx, store.JobFilter{Name: part})
		e.must(err)
		want(e, "Jobs whose name holds "+part, jobIDs(got), []int64{percent.ID})
	}
}

func jobsPages(e *env) {
	var all []int64
	for range 23 {
		all = append(all, e.newJob().ID)
	}
	slices.Sort(all)
	var got []int64
	for after := int64(0); ; {
		page, err := e.Jobs(e.ctx, store.JobFilter{After: after, Limit: 5})
		e.must(err)
		e.check(len(page) <= 5, "a page of %d, want at most 5", len(page))
		if len(page) == 0 || len(got) > len(all) {
			break
		}
		got = append(got, jobIDs(page)...)
		after = page[len(page)-1].ID
	}
	want(e, "jobs of all pages", got, all)
}

func jobsDefaultLimit(e *env) {
	for range 101 {
		e.newJob()
	}
	jobs, err := e.Jobs(e.ctx, store.JobFilter{})
	e.must(err)
	want(e, "jobs without a limit", len(jobs), 100)
}

func removeCancels(e *env) {
	o := e.owner("a")
	job := e.newJob()
	keep := o.planned(e.newJob())
	runs := []store.Run{o.planned(job), e.mustAddRun(job.ID, store.Trigger{}), e.mustAddRun(job.ID, store.Trigger{Type: store.TriggerAPI})}
	e.must(e.RemoveJob(e.ctx, job.ID))
	for _, run := range runs {
		got := e.mustRun(run.ID)
		want(e, "state of a planned "+string(run.Type)+" run", got.State, store.StateCancelled)
		e.check(!got.Ended.IsZero(), "a cancelled run has no Ended")
	}
	e.wantRun("a run of another job", keep)
}

func removeKeepsRuns(e *env) {
	o := e.owner("a")
	run := o.running()
	e.must(e.RemoveJob(e.ctx, run.JobID))
	e.wantRun("a started run", run)
	want(e, "Runs of the job", ids(e.runsOf(run.JobID)), []int64{run.ID})
	want(e, "accepted results", ids(e.mustFinish(success(run))), []int64{run.ID})
	e.wantState("after the result", run.ID, store.StateSucceeded)
}

func changesNewestFirst(e *env) {
	ctx := store.WithActor(e.ctx, "ann")
	job, err := e.AddJob(ctx, store.Job{App: "app", Name: "n", Key: "k"}, nil)
	e.must(err)
	other := e.newJob()
	e.edit(job.ID, func(j *store.Job) { j.Name = "m" })
	_, err = e.EditJob(store.WithActor(e.ctx, "bob"), job.ID, replan("stop", time.Time{}, stopped))
	e.must(err)
	got := e.mustChanges(job.ID)
	e.check(slices.IsSortedFunc(got, func(a, b store.Change) int { return b.At.Compare(a.At) }), "Changes are not newest first: %+v", got)
	for i := range got {
		e.check(!got[i].At.IsZero(), "a change without a time: %+v", got[i])
		got[i] = store.Change{JobID: got[i].JobID, Version: got[i].Version, Actor: got[i].Actor, Verb: got[i].Verb}
	}
	want(e, "Changes", got, []store.Change{
		{JobID: job.ID, Version: 3, Actor: "bob", Verb: "stop"},
		{JobID: job.ID, Version: 2, Verb: "update"},
		{JobID: job.ID, Version: 1, Actor: "ann", Verb: "add"},
	})
	first, err := e.Changes(e.ctx, job.ID, 1)
	e.must(err)
	e.check(len(first) == 1 && first[0].Verb == "stop", "Changes with limit 1: %+v, want the newest", first)
	want(e, "changes of another job", len(e.mustChanges(other.ID)), 1)
}

func changesOutlive(e *env) {
	job := e.newJob()
	e.must(e.RemoveJob(store.WithActor(e.ctx, "ann"), job.ID))
	changes := e.mustChanges(job.ID)
	if len(changes) != 2 {
		e.Fatalf("changes of a removed job: %+v, want two", changes)
	}
	want(e, "verbs", []string{changes[0].Verb, changes[1].Verb}, []string{"remove", "add"})
	want(e, "actor", changes[0].Actor, "ann")
	want(e, "changes of an unknown job", len(e.mustChanges(job.ID+1_000_000)), 0)
}
