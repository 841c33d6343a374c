package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// The record of changes. A store need not answer questions about it: then these cases say
// nothing.

func recordCases() []testCase {
	with := func(e *env, r store.ChangeRecord) *changeLog { return &changeLog{env: e, record: r} }
	return optionalCases(with, []optional[*changeLog]{
		{"EntriesOfAJobSayWhatChanged", recordsJobs},
		{"EntriesOfListsSayWhatChanged", recordsLists},
		{"EntriesOfRuns", recordsRuns},
		{"EntriesOfKills", recordsKills},
		{"RunsOfNobodyHaveNone", recordsNoRuns},
		{"EntriesOfApps", recordsApps},
		{"EntriesOfTheScheduler", recordsStops},
		{"NoneOfWhatIsRefused", recordsNothing},
		{"OneForEachChange", recordsOnce},
		{"EntriesOfOthers", recordsOthers},
		{"EntriesOfOthersAboutAJob", recordsOthersOfJob},
		{"EntriesOfOthersAreChecked", recordsChecked},
		{"EntriesAreBounded", recordsBounded},
		{"SearchFindsTheNewestFirst", changesNewest},
		{"SearchByEachField", changesByField},
		{"SearchByTime", changesByTime},
		{"SearchGoesOnWhereItStopped", changesPages},
		{"SearchLooksAtSoManyEntries", changesExamined},
		{"SearchRefusesWhatIsAbsurd", changesAbsurd},
		{"EachVersionCanBeRestored", restoresVersions},
		{"WhatIsNotRecordedIsNotFound", restoresNothing},
		{"OldEntriesAreDropped", dropsChanges},
	})
}

// changeLog is a store that answers. What a case is about is what was written since mark.
type changeLog struct {
	*env
	record store.ChangeRecord
	seen   int64
}

func (e *changeLog) search(q store.ChangeSearch) store.ChangesFound {
	e.Helper()
	found, err := e.record.SearchChanges(e.ctx, q)
	e.must(err)
	return found
}

// since are the entries that were written since it was called last, oldest first, without what
// the store makes up.
func (e *changeLog) since() []store.Change {
	e.Helper()
	var list []store.Change
	last := e.seen
	for _, c := range e.search(store.ChangeSearch{Limit: 1000}).Changes {
		if c.ID > last {
			e.check(!c.At.IsZero() && c.At.Equal(c.At.Truncate(time.Millisecond)), "At %v", c.At)
			e.seen = max(e.seen, c.ID)
			c.ID, c.At = 0, time.Time{}
			list = append(list, c)
		}
	}
	slices.Reverse(list)
	return list
}

// wantEntries checks what was written since.
func (e *changeLog) wantEntries(what string, entries ...store.Change) {
	e.Helper()
	want(e.env, what, e.since(), entries)
}

// by is the context of a call that has all of an origin.
func (e *changeLog) by(actor string) context.Context {
	return store.WithClient(store.WithActor(e.ctx, actor), "10.0.0.1:99", "r-1")
}

func ofJob(job store.Job, version int64, verb, before, after string) store.Change {
	return store.Change{Actor: "ann", Client: "10.0.0.1:99", RequestID: "r-1", Verb: verb, Object: store.ObjectJob, ObjectID: strconv.FormatInt(job.ID, 10),
		App: job.App, JobID: job.ID, Version: version, Before: before, After: after}
}

func recordsJobs(e *changeLog) {
	ctx := e.by("ann")
	job, err := e.AddJob(ctx, store.Job{App: "app", Key: "k", Name: "n", Schedule: schedule.Cron("0 * * * * ?"), Next: e.now}, nil)
	e.must(err)
	const whole = `{"App":"app","Key":"k","Name":"n","Schedule":{"Type":"CRON","Conf":"0 * * * * ?","Zone":"","DST":""}`
	e.wantEntries("after add", ofJob(job, 1, "add", "", whole+"}"))
	_, err = e.EditJob(ctx, job.ID, store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) {
		j.Param, j.Retries, j.Tags = "p<q>", 3, []string{"a"}
		return false, nil
	}})
	e.must(err)
	e.wantEntries("after update", ofJob(job, 2, "update", `{"Param":"","Retries":0,"Tags":null}`, `{"Param":"p\u003cq\u003e","Retries":3,"Tags":["a"]}`))
	_, err = e.EditJob(ctx, job.ID, replan("stop", time.Time{}, func(j *store.Job) { j.Stopped, j.StopReason = true, "why" }))
	e.must(err)
	e.wantEntries("after stop", ofJob(job, 3, "stop", `{"StopReason":"","Stopped":false}`, `{"StopReason":"why","Stopped":true}`))
	_, err = e.EditJob(ctx, job.ID, replan("start", e.now, func(j *store.Job) { j.Stopped, j.StopReason, j.Param = false, "", "" }))
	e.must(err)
	e.wantEntries("after start", ofJob(job, 4, "start", `{"Param":"p\u003cq\u003e","StopReason":"why","Stopped":true}`, `{"Param":"","StopReason":"","Stopped":false}`))
	e.must(e.RemoveJob(ctx, job.ID))
	e.wantEntries("after remove", ofJob(job, 4, "remove", strings.Replace(whole, `"Schedule"`, `"Retries":3,"Schedule"`, 1)+`,"Tags":["a"]}`, ""))
}

func recordsLists(e *changeLog) {
	o := e.owner("a")
	l := list(1, "x", "y")
	o.putList("a", l, store.ApplyNewer)
	e.since()
	jobs, err := e.AddJobs(e.by("ann"), l.ID(), []store.Job{{App: "app", Key: "x", Name: "x"}, {App: "app", Key: "y", Name: "y", Param: "p"}}, nil)
	e.must(err)
	e.wantEntries("after AddJobs", ofJob(jobs[0], 1, "add", "", `{"App":"app","Key":"x","Name":"x"}`), ofJob(jobs[1], 1, "add", "", `{"App":"app","Key":"y","Name":"y","Param":"p"}`))
	_, err = e.AddJobs(e.by("ann"), l.ID(), []store.Job{{App: "app", Key: "x", Name: "x"}}, nil)
	e.must(err)
	e.wantEntries("after AddJobs of one that is there")
}

func ofRun(run store.Run, verb, before, after string) store.Change {
	return store.Change{Actor: "ann", Client: "10.0.0.1:99", RequestID: "r-1", Verb: verb, Object: store.ObjectRun, ObjectID: strconv.FormatInt(run.ID, 10),
		App: run.App, JobID: run.JobID, Before: before, After: after}
}

func recordsRuns(e *changeLog) {
	job := e.newJob()
	e.since()
	ctx, param := e.by("ann"), "of the trigger"
	run, err := e.AddRun(ctx, job.ID, store.Trigger{Param: &param, Addresses: []string{"http://a"}, Key: "key", Retries: new(2)})
	e.must(err)
	e.wantEntries("after a trigger", ofRun(run, "trigger", "", `{"Addresses":["http://a"],"Key":"key","Param":"of the trigger","Retries":2}`))
	_, err = e.AddRun(ctx, job.ID, store.Trigger{Key: "key"})
	e.must(err)
	e.wantEntries("after a trigger whose run is there")
	again, err := e.AddRun(store.WithAgain(ctx, run.ID), job.ID, store.Trigger{})
	e.must(err)
	e.wantEntries("after a run was asked for again", ofRun(again, "again", "", fmt.Sprintf(`{"Again":%d}`, run.ID)))
	at := e.now.Add(1000 * time.Hour)
	far, err := e.AddAhead(ctx, job.ID, store.Trigger{At: at, Key: "far"}, at.Add(-24*time.Hour))
	e.must(err)
	e.wantEntries("after a trigger far ahead", ofRun(far, "trigger", "", fmt.Sprintf(`{"At":%q,"Key":"far"}`, at.Format(time.RFC3339Nano))))
	_, err = e.AddAhead(ctx, job.ID, store.Trigger{At: at, Key: "far"}, at.Add(-24*time.Hour))
	e.must(err)
	e.wantEntries("after the same trigger far ahead")
}

func recordsKills(e *changeLog) {
	o := e.owner("a")
	ctx := e.by("ann")
	planned, running := e.mustAddRun(e.newJob().ID, store.Trigger{}), o.running()
	at := e.now.Add(1000 * time.Hour)
	far, err := e.AddAhead(e.ctx, e.newJob().ID, store.Trigger{At: at}, at.Add(-24*time.Hour))
	e.must(err)
	e.since()
	for _, c := range []struct {
		run           store.Run
		before, after string
	}{
		{planned, `{"Reason":"","State":"planned"}`, `{"Reason":"enough","State":"cancelled"}`},
		{running, `{"KillReason":""}`, `{"KillReason":"enough"}`},
		{far, `{"Reason":"","State":"planned"}`, `{"Reason":"enough","State":"cancelled"}`},
	} {
		for range 2 { // the second changes nothing
			_, err := e.Kill(ctx, c.run.ID, "enough")
			e.must(err)
		}
		e.wantEntries("after two kills", ofRun(c.run, "kill", c.before, c.after))
	}
	ended := o.running()
	e.mustFinish(success(ended))
	e.since()
	_, err = e.Kill(ctx, ended.ID, "enough")
	e.must(err)
	e.wantEntries("after a kill of a run that has ended")
}

func recordsNoRuns(e *changeLog) {
	o := e.owner("a")
	job := e.newJob()
	e.since()
	e.mustKill(e.mustAddRun(job.ID, store.Trigger{}).ID, "x")
	p := o.plan(job, e.at(0))
	p.Next = e.at(60)
	run := o.one(o.claim(p))
	e.mustFinish(success(o.started(run)))
	e.wantEntries("after runs without an actor")
}

func recordsApps(e *changeLog) {
	app := func(verb, before, after string) store.Change {
		return store.Change{Actor: "ann", Client: "10.0.0.1:99", RequestID: "r-1", Verb: verb, Object: store.ObjectApp, ObjectID: "b", App: "b", Before: before, After: after}
	}
	ctx := e.by("ann")
	e.must(e.EnsureGroup(ctx, "b"))
	e.wantEntries("after EnsureGroup", app("add", "", "{}"))
	e.must(e.EnsureGroup(ctx, "b"))
	e.must(e.SaveGroup(ctx, store.Group{App: "b"}))
	e.wantEntries("after what changes nothing")
	e.must(e.SaveGroup(ctx, store.Group{App: "b", Title: "B", Manual: true, Addresses: []string{"http://a"}}))
	e.wantEntries("after SaveGroup", app("update", `{"Addresses":null,"Manual":false,"Title":""}`, `{"Addresses":["http://a"],"Manual":true,"Title":"B"}`))
	e.must(e.RemoveGroup(ctx, "b"))
	e.wantEntries("after RemoveGroup", app("remove", `{"Addresses":["http://a"],"Manual":true,"Title":"B"}`, ""))
	e.must(e.SaveGroup(ctx, store.Group{App: "b", Title: "B"}))
	e.wantEntries("after SaveGroup of a new one", app("add", "", `{"Title":"B"}`))
}

func recordsStops(e *changeLog) {
	o := e.owner("a")
	stop := func(job store.Job, version int64, reason string) store.Change {
		c := ofJob(job, version, "stop", `{"StopReason":"","Stopped":false}`, fmt.Sprintf(`{"StopReason":%q,"Stopped":true}`, reason))
		c.Actor, c.Client, c.RequestID = store.Scheduler, "", ""
		return c
	}
	run := o.started(o.last(e.newJob()))
	job := e.mustJob(run.JobID)
	e.since()
	_, err := e.Finish(e.by("ann"), nil, []store.Result{success(run)})
	e.must(err)
	e.wantEntries("after the last run", stop(job, 1, store.StopFinished))
	job = e.newJob()
	e.since()
	p := o.plan(job)
	p.Next, p.Stop = time.Time{}, "it cannot be evaluated"
	o.claim(p)
	e.wantEntries("after a stop by a claim", stop(job, 2, p.Stop))
	at, err := e.record.JobAt(e.ctx, job.ID, 2)
	e.must(err)
	want(e.env, "its definition", at.Key, job.Key)
}

func recordsNothing(e *changeLog) {
	o := e.owner("a")
	job := e.newJob()
	e.must(e.SaveGroup(e.ctx, store.Group{App: "app"}))
	l := list(1, "x")
	o.putList("a", l, store.ApplyNewer)
	e.since()
	ctx := e.by("ann")
	over, cancel := context.WithCancel(ctx)
	cancel()
	refuse := func(*store.Job) (bool, error) { return true, ErrInjected }
	for what, call := range map[string]func() error{
		"a key that is taken": func() error {
			_, err := e.AddJob(ctx, store.Job{App: "app", Key: job.Key, Name: "n"}, nil)
			return err
		},
		"a first instant that fails": func() error {
			_, err := e.AddJob(ctx, store.Job{App: "app", Key: "other", Name: "n"}, func(store.Job, time.Time) (time.Time, error) { return time.Time{}, ErrInjected })
			return err
		},
		"an edit that fails": func() error {
			_, err := e.EditJob(ctx, job.ID, store.Edit{Verb: "update", Change: refuse})
			return err
		},
		"an edit of another version": func() error {
			_, err := e.EditJob(ctx, job.ID, store.Edit{Verb: "update", Version: 9, Change: func(j *store.Job) (bool, error) { j.Name = "m"; return false, nil }})
			return err
		},
		"an edit whose next instant fails": func() error {
			edit := replan("update", e.now, func(j *store.Job) { j.Name = "m" })
			edit.Next = func(store.Job, time.Time, time.Time) (time.Time, error) { return time.Time{}, ErrInjected }
			_, err := e.EditJob(ctx, job.ID, edit)
			return err
		},
		"a removal of an absent job": func() error { return e.RemoveJob(ctx, job.ID+1_000_000) },
		"a list of jobs that fails": func() error {
			_, err := e.AddJobs(ctx, l.ID(), []store.Job{{App: "app", Key: "x", Name: "x"}}, func(store.Job, time.Time) (time.Time, error) { return time.Time{}, ErrInjected })
			return err
		},
		"a list that does not apply": func() error {
			_, err := e.AddJobs(ctx, list(2, "x").ID(), []store.Job{{App: "app", Key: "x", Name: "x"}}, nil)
			return err
		},
		"a trigger of an absent job":  func() error { _, err := e.AddRun(ctx, job.ID+1_000_000, store.Trigger{}); return err },
		"a kill of an absent run":     func() error { _, err := e.Kill(ctx, 1, "x"); return err },
		"a removal of an absent app":  func() error { return e.RemoveGroup(ctx, "nowhere") },
		"a removal of an app in use":  func() error { return e.RemoveGroup(ctx, "app") },
		"an edit after the ctx ended": func() error { _, err := e.EditJob(over, job.ID, replan("stop", time.Time{}, stopped)); return err },
		"an entry after the ctx ended": func() error {
			_, err := e.record.RecordChange(over, store.Change{Verb: "login", Object: store.ObjectLogin})
			return err
		},
	} {
		e.check(call() != nil, "%s is not refused", what)
		e.wantEntries("after " + what)
	}
	e.edit(job.ID, func(*store.Job) {})
	e.wantEntries("after an edit that leaves the job as it was")
}

// recordsOnce makes many changes at the same time.
func recordsOnce(e *changeLog) {
	job := e.newJob()
	e.since()
	var calls []func()
	for i := range 20 {
		calls = append(calls, func() {
			_, err := e.EditJob(e.by("ann"), job.ID, store.Edit{Verb: "update", Change: func(j *store.Job) (bool, error) { j.Param += "x"; return false, nil }})
			e.check(err == nil, "edit: %v", err)
			if i%4 == 0 {
				_, err := e.AddRun(e.by("ann"), job.ID, store.Trigger{})
				e.check(err == nil, "trigger: %v", err)
			}
		})
	}
	e.race(calls...)
	count, version := map[string]int{}, int64(1)
	for _, c := range e.since() {
		count[c.Verb]++
		if c.Verb == "update" {
			want(e.env, "version", c.Version, version+1)
			version++
			want(e.env, "before and after", []string{c.Before, c.After}, []string{params(int(version) - 2), params(int(version) - 1)})
		}
	}
	want(e.env, "entries", count, map[string]int{"update": 20, "trigger": 5})
}

func params(n int) string { return fmt.Sprintf(`{"Param":%q}`, strings.Repeat("x", n)) }

func recordsOthers(e *changeLog) {
	given := store.Change{Verb: "login", Object: store.ObjectLogin, ObjectID: "ann@example.org", Before: `{"a":1}`, After: `{"b":"题"}`}
	got, err := e.record.RecordChange(e.by("ann"), given)
	e.must(err)
	e.check(got.ID > 0 && !got.At.IsZero(), "the entry has no ID or time: %+v", got)
	want(e.env, "found", e.search(store.ChangeSearch{}).Changes, []store.Change{got})
	given.Actor, given.Client, given.RequestID = "ann", "10.0.0.1:99", "r-1"
	e.wantEntries("as given, but for who has asked", given)
	_, err = e.record.RecordChange(e.ctx, store.Change{ID: 7, At: e.at(7), Actor: "mallory", Client: "c", RequestID: "r", Verb: "v", Object: "thing", App: "app"})
	e.must(err)
	e.wantEntries("what the store fills in", store.Change{Verb: "v", Object: "thing", App: "app"})
}

func recordsOthersOfJob(e *changeLog) {
	job := e.newJob()
	e.edit(job.ID, func(j *store.Job) { j.Param = "x" })
	e.since()
	id := strconv.FormatInt(job.ID, 10)
	for _, c := range []store.Change{{ObjectID: id}, {JobID: job.ID}, {ObjectID: id, JobID: job.ID, Version: 1}} {
		c.Verb, c.Object = "viewed", store.ObjectJob
		given := c
		got, err := e.record.RecordChange(e.ctx, c)
		e.must(err)
		want(e.env, "the entry that is returned", got, e.search(store.ChangeSearch{Object: store.ObjectJob, ObjectID: id}).Changes[0])
		given.ObjectID, given.JobID = id, job.ID
		e.wantEntries("about a job", given)
	}
	all := e.search(store.ChangeSearch{JobID: job.ID}).Changes
	want(e.env, "what the search finds of the job", len(all), 5)
	want(e.env, "what was done to the job", e.mustChanges(job.ID), all)
	at, err := e.record.JobAt(e.ctx, job.ID, 1)
	e.must(err)
	want(e.env, "the definition behind an entry of its version", at.Definition(), job.Definition())
	e.must(e.RemoveJob(e.ctx, job.ID))
	for _, of := range []int64{job.ID, job.ID + 1_000_000} {
		before := len(e.mustChanges(of))
		_, err := e.record.RecordChange(e.ctx, store.Change{Verb: "viewed", Object: store.ObjectJob, JobID: of})
		e.must(err)
		_, err = e.record.RecordChange(e.ctx, store.Change{Verb: "viewed", Object: store.ObjectRun, JobID: of})
		e.must(err)
		want(e.env, "entries of a job that is not there", len(e.mustChanges(of)), before+1)
	}
}

func recordsChecked(e *changeLog) {
	for field, c := range map[string]store.Change{
		"Verb":     {Object: "o"},
		"Object":   {Verb: "v", Object: strings.Repeat("o", 33)},
		"ObjectID": {Verb: "v", Object: "o", ObjectID: strings.Repeat("o", 256)},
		"App":      {Verb: "v", Object: "o", App: strings.Repeat("o", 65)},
		"JobID":    {Verb: "v", Object: "o", JobID: -1},
		"Version":  {Verb: "v", Object: "o", Version: -1},
		"Before":   {Verb: "v", Object: "o", Before: "[1]"},
		"After":    {Verb: "v", Object: "o", After: `{"a":"` + strings.Repeat("x", 64<<10) + `"}`},
	} {
		_, err := e.record.RecordChange(e.ctx, c)
		faults := store.FieldErrors(err)
		e.check(len(faults) == 1 && faults[0].Field == field, "%s: error %v", field, err)
	}
	for _, c := range []store.Change{{}, {ObjectID: "7x"}, {ObjectID: "07"}, {ObjectID: "-7"}, {ObjectID: "0"}, {ObjectID: "2147483648"}, {ObjectID: "7", JobID: 8}} {
		c.Verb, c.Object = "v", store.ObjectJob
		_, err := e.record.RecordChange(e.ctx, c)
		e.check(len(store.FieldErrors(err)) == 1, "about job %q, %d: error %v", c.ObjectID, c.JobID, err)
	}
	e.wantEntries("after bad ones")
}

func recordsBounded(e *changeLog) {
	ctx := store.WithClient(store.WithActor(e.ctx, strings.Repeat("题", 4000)), "a\x1b[31m\x00\xff\u202e", strings.Repeat("r", 4000))
	job, err := e.AddJob(ctx, store.Job{App: "app", Key: "k", Name: "n", Param: strings.Repeat("é", 32<<10)}, nil)
	e.must(err)
	c := e.since()[0]
	e.check(len(c.Actor) <= store.MostActor && strings.HasPrefix(c.Actor, "题题") && strings.HasSuffix(c.Actor, "题..."), "Actor of %d bytes", len(c.Actor))
	e.check(len(c.RequestID) == store.MostRequestID, "RequestID of %d bytes", len(c.RequestID))
	want(e.env, "Client", c.Client, "a?[31m???")
	after := struct{ Param string }{}
	e.must(json.Unmarshal([]byte(c.After), &after))
	e.check(len(after.Param) < 5<<10 && strings.HasPrefix(after.Param, "éé") && strings.HasSuffix(after.Param, "é... (61440 bytes more)"), "After has a Param of %d bytes: …%s", len(after.Param), after.Param[max(len(after.Param)-40, 0):])
	at, err := e.record.JobAt(e.ctx, job.ID, 1)
	e.must(err)
	e.check(at.Param == job.Param, "the definition is cut too")
}

// randomEdit changes some fields of a definition.
func randomEdit(j *store.Job, r *rand.Rand) {
	for range 1 + r.IntN(3) {
		switch n := r.IntN(100); n % 10 {
		case 0:
			j.Param = strings.Repeat(fmt.Sprint(n), r.IntN(10_000))
		case 1:
			j.Schedule = []schedule.Schedule{schedule.Manual(), schedule.Cron("0 0 3 * * ?"), schedule.FixedDelay(time.Minute)}[n%3]
		case 2:
			j.Children, j.ChildKeys = []int64{int64(n), 7}, []string{"app/x"}[:n/10%2]
		case 3:
			j.Tags = []string{"a", "题"}[:n/10%3]
		case 4:
			j.Timeout, j.RetryBackoff = time.Duration(n)*time.Second, store.Backoff{First: time.Duration(n) * time.Millisecond, Max: time.Minute, Jitter: n % 50}
		case 5:
			j.NotBefore, j.NotAfter = time.UnixMilli(int64(n)*1e9+1).UTC(), time.Time{}
		case 6:
			j.GlueType, j.GlueSource, j.GlueRemark = "GLUE_SHELL", strings.Repeat("echo é\n", n*100), fmt.Sprint(n)
		case 7:
			j.Name, j.Author, j.AlarmEmail = fmt.Sprint("name ", n), "题", `"<&>`
		case 8:
			j.AfterKeys, j.AfterWindow, j.AfterZone = []string{"app/y"}, time.Hour, "Europe/Berlin"
		case 9:
			j.Retries, j.OnLost, j.MaxReruns, j.LateAfter, j.RetryAside = n, store.OnLostRerun, n, time.Duration(n)*time.Second, n > 50
		}
	}
}

func restoresVersions(e *changeLog) {
	r := rand.New(rand.NewPCG(1, 2))
	job := e.newJob()
	definitions := map[int64]store.Job{1: job}
	for len(definitions) < 30 {
		changed := e.edit(job.ID, func(j *store.Job) { randomEdit(j, r) })
		definitions[changed.Version] = changed
	}
	latest := e.mustJob(job.ID)
	for version, was := range definitions {
		at, err := e.record.JobAt(e.ctx, job.ID, version)
		e.must(err)
		want(e.env, "Version", at.Version, version)
		latest, err = e.EditJob(e.ctx, job.ID, store.Edit{Verb: "restore", Change: func(j *store.Job) (bool, error) {
			id := j.ID
			*j = at
			j.ID = id
			return false, nil
		}})
		e.must(err)
		want(e.env, "what is restored", latest.Definition(), was.Definition())
	}
	e.must(e.RemoveJob(e.ctx, job.ID))
	at, err := e.record.JobAt(e.ctx, job.ID, latest.Version)
	e.must(err)
	at.Version = 0
	want(e.env, "the definition of a removed job", at, latest.Definition())
}

func restoresNothing(e *changeLog) {
	job := e.newJob()
	for _, c := range [][2]int64{{job.ID, 0}, {job.ID, 2}, {job.ID, -1}, {job.ID + 1_000_000, 1}, {0, 1}, {1 << 40, 1}} {
		_, err := e.record.JobAt(e.ctx, c[0], c[1])
		e.wantErr(fmt.Sprintf("version %d of job %d", c[1], c[0]), err, store.ErrNotFound)
	}
}

func dropsChanges(e *changeLog) {
	job := e.newJob()
	gone := e.newJob()
	e.must(e.RemoveJob(e.ctx, gone.ID))
	e.must(e.record.DropChanges(e.ctx, e.mustChanges(job.ID)[0].At))
	want(e.env, "entries of a job after dropping older ones", len(e.mustChanges(job.ID)), 1)
	var newest time.Time
	for _, c := range e.search(store.ChangeSearch{}).Changes {
		if c.At.After(newest) {
			newest = c.At
		}
	}
	e.must(e.record.DropChanges(e.ctx, newest.Add(time.Millisecond)))
	want(e.env, "entries after dropping all", len(e.search(store.ChangeSearch{}).Changes), 0)
	want(e.env, "entries of a job after dropping all", len(e.mustChanges(job.ID))+len(e.mustChanges(gone.ID)), 0)
	_, err := e.record.JobAt(e.ctx, job.ID, 1)
	e.wantErr("a version that was dropped", err, store.ErrNotFound)
	want(e.env, "the job", e.mustJob(job.ID), job)
	e.seen = 0
	e.must(e.RemoveJob(e.by("ann"), job.ID))
	want(e.env, "entries after dropping all and one more", len(e.since()), 1)
}
