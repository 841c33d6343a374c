package storetest

import (
	"errors"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

func editCases() []testCase {
	return []testCase{
		{"RecordsWhatNothingWasPlannedFor", editMissed},
		{"GivesTheTimeOfTheEdit", editTime},
		{"RaisesVersionAndReturnsTheJob", editRaisesVersion},
		{"VersionIsCompared", editVersionCompared},
		{"ErrorsChangeNothing", editErrorsChangeNothing},
		{"NoChangeWritesNothing", editNoChange},
		{"NoChangeWithReplanIsWritten", editReplanOnly},
		{"IgnoresTheStoresFields", editIgnoresStoreFields},
		{"WithoutReplanKeepsPlannedRuns", editKeepsPlanned},
		{"ReplanCancelsScheduleBornRunsOnly", replanCancels},
		{"ReplanCallsNextWithTheChangedJob", replanNextArgument},
		{"ReplanGivesTheLatestStartedInstant", replanStartedInstant},
		{"ReplanGivesTheLatestRefusedInstant", replanRefusedInstant},
		{"ReplanClearsTheWait", replanClearsWait},
		{"GlueUpdatedFollowsTheSource", glueUpdated},
	}
}

// editTime: what is overdue and what comes next are both told by one reading of the
// store's clock, which is also when the job was updated.
func editTime(e *env) {
	job := e.newJob()
	for range 3 {
		var missed, next time.Time
		edit := replan("update", time.Time{}, func(*store.Job) {})
		edit.Missed = func(_ store.Job, now time.Time) (store.NewRun, bool) { missed = now; return store.NewRun{}, false }
		edit.Next = func(_ store.Job, _, now time.Time) (time.Time, error) { next = now; return now.Add(time.Hour), nil }
		got, err := e.EditJob(e.ctx, job.ID, edit)
		e.must(err)
		want(e, "the time that Next was told", next, got.Updated)
		want(e, "the time that Missed was told", missed, got.Updated)
		want(e, "the new Next", got.Next, got.Updated.Add(time.Hour))
		e.check(!next.Before(job.Updated), "the time went back from %v to %v", job.Updated, next)
		job = got
	}
}

func editRaisesVersion(e *env) {
	job := e.newJob()
	change := func(j *store.Job) {
		j.Name, j.Children, j.ChildKeys, j.ChildParam = "new", []int64{9, 8}, []string{"b/k", "a/k"}, store.ChildParamParent
		j.After, j.AfterKeys, j.AfterWindow, j.AfterZone = []int64{7, 6}, []string{"d/k", "c/k"}, time.Hour, "Asia/Shanghai"
		j.Secret, j.CatchUp, j.CatchUpMost, j.CatchUpAge = true, store.CatchUpEveryMissed, 9, 61*time.Second
		j.AfterTimeout, j.LateAfter, j.Tags, j.KeepRuns = 90*time.Minute, 1500*time.Millisecond, []string{"b", "a"}, 90*time.Minute
	}
	got := e.edit(job.ID, change)
	want(e, "stored job", e.mustJob(job.ID), got)
	e.check(!got.Updated.Before(job.Updated), "Updated went back from %v to %v", job.Updated, got.Updated)
	change(&job)
	job.Version, job.Updated = 2, got.Updated
	want(e, "EditJob", got, job)
}

func editVersionCompared(e *env) {
	job := e.newJob()
	rename := func(version int64, name string) error {
		_, err := e.EditJob(e.ctx, job.ID, store.Edit{Version: version, Verb: "update",
			Change: func(j *store.Job) (bool, error) { j.Name = name; return false, nil }})
		return err
	}
	e.must(rename(1, "a"))
	e.wantErr("an edit of an old version", rename(1, "b"), store.ErrConflict)
	e.wantErr("an edit of a later version", rename(3, "b"), store.ErrConflict)
	want(e, "name after the conflicts", e.mustJob(job.ID).Name, "a")
	e.must(rename(0, "c"))
	want(e, "name after an edit without a version", e.mustJob(job.ID).Name, "c")
	want(e, "changes", len(e.mustChanges(job.ID)), 3)
}

func editErrorsChangeNothing(e *env) {
	o := e.owner("a")
	e.newJob(func(j *store.Job) { j.Key = "taken" })
	job := e.newJob()
	run := o.planned(job)
	job = e.mustJob(job.ID)
	mine := errors.New("mine")
	next := func(store.Job, time.Time, time.Time) (time.Time, error) { return e.at(99), nil }
	cases := []struct {
		name string
		edit store.Edit
		want error
	}{
		{"an error of Change", store.Edit{Next: next, Change: func(j *store.Job) (bool, error) { j.Name = "x"; return true, mine }}, mine},
		{"an error of Next", store.Edit{Change: func(j *store.Job) (bool, error) { j.Name = "x"; return true, nil },
			Next: func(store.Job, time.Time, time.Time) (time.Time, error) { return e.at(99), mine }}, mine},
		{"a taken key", store.Edit{Next: next, Change: func(j *store.Job) (bool, error) { j.Key = "taken"; return true, nil }}, store.ErrDuplicateKey},
		{"a conflict", store.Edit{Version: 9, Next: next, Change: func(j *store.Job) (bool, error) { j.Name = "x"; return true, nil }}, store.ErrConflict},
	}
	for _, c := range cases {
		c.edit.Verb = "update"
		_, err := e.EditJob(e.ctx, job.ID, c.edit)
		e.wantErr(c.name, err, c.want)
		if c.want == mine {
			e.check(err == mine, "%s: %v, want it returned as it is", c.name, err)
		}
		want(e, "job after "+c.name, e.mustJob(job.ID), job)
		e.wantRun("after "+c.name, run)
		want(e, "changes after "+c.name, len(e.mustChanges(job.ID)), 1)
	}
}

func editNoChange(e *env) {
	job := e.newJob(func(j *store.Job) {
		j.Children, j.ChildKeys, j.After, j.AfterKeys = []int64{1}, []string{"a/k"}, []int64{2}, []string{"b/k"}
		j.Tags = []string{"t"}
	})
	for name, change := range map[string]func(*store.Job){
		"nothing": func(*store.Job) {},
		"the same values": func(j *store.Job) {
			j.Name, j.Children, j.ChildKeys, j.After, j.AfterKeys = job.Name, []int64{1}, []string{"a/k"}, []int64{2}, []string{"b/k"}
			j.Tags = []string{"t"}
		},
		"the store's field only": func(j *store.Job) { j.Next, j.Version = e.at(500), 50 },
	} {
		want(e, "EditJob with "+name, e.edit(job.ID, change), job)
		want(e, "job after "+name, e.mustJob(job.ID), job)
	}
	want(e, "changes", len(e.mustChanges(job.ID)), 1)
}

func editReplanOnly(e *env) {
	job := e.newJob()
	got, err := e.EditJob(e.ctx, job.ID, replan("start", e.at(60), func(*store.Job) {}))
	e.must(err)
	want(e, "Version", got.Version, 2)
	want(e, "Next", got.Next, e.at(60))
	want(e, "stored job", e.mustJob(job.ID), got)
}

func editIgnoresStoreFields(e *env) {
	job := e.newJob()
	got := e.edit(job.ID, func(j *store.Job) {
		j.Name = "new"
		j.ID, j.Version, j.Shard, j.WaitRun, j.Runs = 99, 50, j.Shard+1, 7, 5
		j.Next, j.Last, j.Added, j.Updated = e.at(1), e.at(2), e.at(3), e.now.Add(-24*time.Hour)
	})
	e.check(!got.Updated.Before(job.Updated), "Updated is what Change set: %v", got.Updated)
	job.Name, job.Version, job.Updated = "new", 2, got.Updated
	want(e, "EditJob", got, job)
	want(e, "stored job", e.mustJob(job.ID), job)
}

func editKeepsPlanned(e *env) {
	o := e.owner("a")
	job := e.newJob()
	run, manual := o.planned(job), e.mustAddRun(job.ID, store.Trigger{})
	before := e.mustJob(job.ID)
	after := e.edit(job.ID, func(j *store.Job) { j.Param = "new" })
	want(e, "Next", after.Next, before.Next)
	want(e, "Last", after.Last, before.Last)
	e.wantRun("a planned run after an edit", run)
	e.wantRun("a manual run after an edit", manual)
	want(e, "status of its start", o.tryStart(o.startOf(run)).Status, store.StartOK)
}

func replanCancels(e *env) {
	o := e.owner("a")
	job := e.newJob()
	p := o.plan(job, job.Next)
	for _, typ := range []store.TriggerType{store.TriggerFixRate, store.TriggerFixDelay, store.TriggerOnce, store.TriggerMisfire} {
		p.Runs = append(p.Runs, store.NewRun{At: job.Next, Type: typ})
	}
	p.Runs = append(p.Runs, store.NewRun{At: job.Next, Type: store.TriggerCron})
	born := o.claim(p)
	running := o.started(born[len(born)-1])
	born = born[:len(born)-1]
	manual := []store.Run{e.mustAddRun(job.ID, store.Trigger{}), e.mustAddRun(job.ID, store.Trigger{Type: store.TriggerAPI})}
	other := o.planned(e.newJob())

	e.stop(job.ID)
	for _, run := range born {
		got := e.mustRun(run.ID)
		want(e, "state of a planned "+string(run.Type)+" run", got.State, store.StateCancelled)
		e.check(!got.Ended.IsZero(), "a cancelled run has no Ended")
	}
	for _, run := range append(manual, running, other) {
		e.wantRun("a run that a stop leaves alone", run)
	}
}

func replanNextArgument(e *env) {
	job := e.newJob(func(j *store.Job) { j.Children = []int64{1} })
	var seen store.Job
	started := e.now
	got, err := e.EditJob(e.ctx, job.ID, store.Edit{Verb: "update",
		Change: func(j *store.Job) (bool, error) { j.Schedule = schedule.FixedRate(time.Minute); return true, nil },
		Next: func(j store.Job, s, _ time.Time) (time.Time, error) {
			seen, started = j, s
			return e.at(60).Add(999 * time.Microsecond).In(time.FixedZone("", 3600)), nil
		}})
	e.must(err)
	want(e, "schedule that Next saw", seen.Schedule, schedule.FixedRate(time.Minute))
	want(e, "job that Next saw", seen.ID, job.ID)
	want(e, "started instant where there is none", started, time.Time{})
	want(e, "Next", got.Next, e.at(60))
	got, err = e.EditJob(e.ctx, job.ID, replan("stop", time.Time{}, stopped))
	e.must(err)
	e.check(got.Next.IsZero(), "Next %v after Next returned the zero time", got.Next)
}

func replanStartedInstant(e *env) {
	o := e.owner("a")
	job := e.newJob()
	runs := o.claim(o.plan(job, e.at(10), e.at(20), e.at(30), e.at(40)))
	o.started(runs[0])
	done := o.started(runs[1])
	e.mustFinish(success(done))
	manual := e.mustAddRun(job.ID, store.Trigger{At: e.at(600)})
	o.started(manual)
	want(e, "latest started instant", e.toldByReplan(job.ID), e.at(20))
}

// toldByReplan plans the job anew, a minute on, and returns the started instant
// that Next was given.
func (e *env) toldByReplan(id int64) (started time.Time) {
	e.Helper()
	edit := replan("update", time.Time{}, func(*store.Job) {})
	edit.Next = func(_ store.Job, s, _ time.Time) (time.Time, error) { started = s; return e.at(60), nil }
	_, err := e.EditJob(e.ctx, id, edit)
	e.must(err)
	return started
}

func replanRefusedInstant(e *env) {
	o := e.owner("a")
	job := e.newJob()
	runs := o.claim(o.plan(job, e.at(10), e.at(20), e.at(30), e.at(40)))
	o.started(runs[2], refused)
	o.started(runs[0])
	o.started(runs[1], refused)
	e.mustKill(runs[3].ID, "x")
	o.started(e.mustAddRun(job.ID, store.Trigger{At: e.at(600)}), refused)
	want(e, "latest started instant, where it was refused", e.toldByReplan(job.ID), e.at(30))
	want(e, "latest started instant, told again", e.toldByReplan(job.ID), e.at(30))
	run := o.planned(e.mustJob(job.ID))
	s := o.startOf(run, refused)
	s.JobVersion--
	o.wantNoStart("a refusal of an old version", s, store.StartStale)
	want(e, "latest started instant after a refusal without effect", e.toldByReplan(job.ID), e.at(30))
	o.started(o.planned(e.mustJob(job.ID)), refused)
	want(e, "latest started instant after a refusal", e.toldByReplan(job.ID), e.at(60))
}

func replanClearsWait(e *env) {
	o := e.owner("a")
	job := e.newJob(delayed(time.Minute))
	run := o.started(o.waited(job))
	want(e, "WaitRun", e.mustJob(job.ID).WaitRun, run.ID)
	got, err := e.EditJob(e.ctx, job.ID, replan("start", e.at(500), func(*store.Job) {}))
	e.must(err)
	want(e, "WaitRun after a replan", got.WaitRun, int64(0))
	e.mustFinish(success(run))
	want(e, "Next after the run it had waited for", e.mustJob(job.ID).Next, e.at(500))
}

func glueUpdated(e *env) {
	job := e.newJob(func(j *store.Job) { j.GlueType, j.GlueSource = "GLUE_SHELL", "1" })
	same := e.edit(job.ID, func(j *store.Job) { j.Name = "new" })
	want(e, "GlueUpdated after another change", same.GlueUpdated, job.GlueUpdated)
	changed := e.edit(job.ID, func(j *store.Job) { j.GlueSource, j.GlueUpdated = "2", e.now.Add(-time.Hour) })
	e.check(!changed.GlueUpdated.Before(job.GlueUpdated), "GlueUpdated went back from %v to %v", job.GlueUpdated, changed.GlueUpdated)
}

// editMissed: the record is inserted with the edit, and only where the schedule of
// an enabled job with a next instant is planned anew.
func editMissed(e *env) {
	record := store.NewRun{At: e.at(-20), Type: store.TriggerCron, State: store.StateSkipped,
		First: e.at(-20), Last: e.at(-10), Count: 11, Reason: store.ReasonEdit}
	var was []store.Job
	var recorded store.Run
	edit := func(replans bool) store.Edit {
		ed := replan("stop", time.Time{}, func(*store.Job) {})
		ed.Change = func(j *store.Job) (bool, error) { j.Param += "x"; return replans, nil }
		ed.Missed = func(j store.Job, _ time.Time) (store.NewRun, bool) { was = append(was, j); return record, true }
		ed.Recorded = &recorded
		return ed
	}
	for _, c := range []struct {
		name    string
		job     store.Job
		replans bool
		want    int
	}{
		{"a plain change", e.newJob(), false, 0},
		{"a stopped job", e.newJob(stopped), true, 0},
		{"a job without a next instant", e.newJob(noNext), true, 0},
		{"a job that is due", e.newJob(), true, 1},
	} {
		was, recorded = nil, store.Run{}
		_, err := e.EditJob(e.ctx, c.job.ID, edit(c.replans))
		e.must(err)
		runs := e.runsOf(c.job.ID)
		want(e, "records of "+c.name, len(runs), c.want)
		if c.want == 0 || len(runs) == 0 {
			want(e, "calls of Missed for "+c.name, len(was), 0)
			want(e, "the record that is given for "+c.name, recorded, store.Run{})
			continue
		}
		want(e, "the job that Missed got", was[len(was)-1], c.job)
		r := runs[0]
		want(e, "the record", []any{r.State, r.Type, r.Scheduled, r.First, r.Last, r.Count, r.Reason, r.Ended.IsZero()},
			[]any{record.State, record.Type, record.At, record.First, record.Last, record.Count, record.Reason, false})
		e.wantRun("the record that is given", recorded)
		want(e, "whose it is", recorded.ID, r.ID)
	}
	failing := edit(true)
	failing.Next = func(store.Job, time.Time, time.Time) (time.Time, error) { return time.Time{}, store.ErrConflict }
	job := e.newJob()
	if _, err := e.EditJob(e.ctx, job.ID, failing); err == nil {
		e.Errorf("an error of Next was lost")
	}
	want(e, "records of an edit that failed", len(e.runsOf(job.ID)), 0)
}
