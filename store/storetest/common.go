package storetest

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// The rules that hold for every method. That an ended ctx changes nothing is
// checked for each method in faulty.go.
func commonCases() []testCase {
	return []testCase{
		{"JobsAreCopied", copyJobs},
		{"ListsOfJobsAreCopied", copyLists},
		{"RunsAreCopied", copyRuns},
		{"GroupsAreCopied", copyGroups},
		{"NodesAreCopied", copyNodes},
		{"RegistrationsAreCopied", copyRegistrations},
		{"TimesAreUTCMilliseconds", timesKept},
		{"TimesGivenAreCut", timesCut},
		{"ConcurrentUse", concurrentUse},
		{"EmptyBatches", emptyBatches},
		{"NilContexts", nilContexts},
		{"FailedCallsReturnNothing", failedCalls},
	}
}

// failedCalls: what is appended to memory of the caller is nothing where there is an error.
func failedCalls(e *env) {
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	runs, shards := make([]store.Run, 1, 9), []store.Shard{{ID: 0}}
	started, err := e.Start(ctx, make([]store.Started, 1, 9), []store.Start{{RunID: 1}})
	want(e, "Start, answers and error", []any{len(started), err != nil}, []any{0, true})
	for name, call := range map[string]func() ([]store.Run, error){
		"Finish": func() ([]store.Run, error) { return e.Finish(ctx, runs, []store.Result{{RunID: 1}}) },
		"Claim":  func() ([]store.Run, error) { return e.Claim(ctx, runs, []store.Plan{{JobID: 1}}) },
		"Planned": func() ([]store.Run, error) {
			return e.Planned(ctx, runs, store.PlannedQuery{Shards: shards, Before: e.now, Limit: 1})
		},
		"Planned of no shards": func() ([]store.Run, error) { return e.Planned(ctx, runs, store.PlannedQuery{Before: e.now, Limit: 1}) },
		"Scan": func() ([]store.Run, error) {
			res, err := e.Scan(ctx, store.ScanResult{Runs: runs}, store.ScanQuery{Shards: shards, Before: e.now, Jobs: 1, Runs: 1})
			return res.Runs, err
		},
	} {
		answer, err := call()
		want(e, name+", answers and error", []any{len(answer), err != nil}, []any{0, true})
	}
}

// nilContexts calls every method with a nil ctx and with nothing else either.
func nilContexts(e *env) {
	before := e.snapshot()
	of := reflect.ValueOf(e.Store)
	for _, name := range methods() {
		m := of.MethodByName(name)
		args := make([]reflect.Value, m.Type().NumIn())
		for i := range args {
			args[i] = reflect.Zero(m.Type().In(i))
		}
		e.check(isError(func() error {
			out := m.Call(args)
			err, _ := out[len(out)-1].Interface().(error)
			return err
		}), "%s: a nil ctx is no error", name)
	}
	want(e, "state after calls with a nil ctx", e.snapshot(), before)
	var none context.Context
	s := e.Watch(none, "a")
	e.mustAddRun(e.newJob().ID, store.Trigger{})
	e.ahead(e.newJob().ID, 0)
	o := e.owner("a")
	o.succeeds(e.newJob(leading(e.newJob().ID)).ID)
	for name, ch := range map[string]<-chan struct{}{"Scan": s.Scan, "Ahead": s.Ahead, "Owed": s.Owed, "Inbox": s.Inbox, "Nodes": s.Nodes, "Ended": s.Ended} {
		select {
		case <-ch:
			e.Errorf("%s is signalled to a nil ctx", name)
		default:
		}
	}
}

func copyJobs(e *env) {
	given := store.Job{App: "app", Key: "k", Name: "n", Schedule: schedule.Cron("0 * * * * ?"), Children: []int64{1, 2}, Next: e.now}
	job, err := e.AddJob(e.ctx, given, nil)
	e.must(err)
	keep := fmt.Sprint(job.Children)
	o := e.owner("a")
	held := []int64{1, 2}
	var seen store.Job
	spoil := map[string]func() []int64{
		"AddJob's argument": func() []int64 { return given.Children },
		"AddJob's answer":   func() []int64 { return job.Children },
		"Job":               func() []int64 { return e.mustJob(job.ID).Children },
		"JobByKey":          func() []int64 { j, err := e.JobByKey(e.ctx, "app", "k"); e.must(err); return j.Children },
		"Jobs":              func() []int64 { j, err := e.Jobs(e.ctx, store.JobFilter{}); e.must(err); return j[0].Children },
		"Scan":              func() []int64 { return o.mustScan(o.scan(e.at(1))).Jobs[0].Children },
		"EditJob": func() []int64 {
			return e.edit(job.ID, func(j *store.Job) { j.Param += "x"; j.Children = held }).Children
		},
		"EditJob's Change": func() []int64 { return held },
		"EditJob's Next": func() []int64 {
			edit := replan("update", e.now, func(*store.Job) {})
			edit.Next = func(j store.Job, _, _ time.Time) (time.Time, error) { seen = j; return e.now, nil }
			_, err := e.EditJob(e.ctx, job.ID, edit)
			e.must(err)
			return seen.Children
		},
		"a Change that failed": func() []int64 {
			e.EditJob(e.ctx, job.ID, store.Edit{Change: func(j *store.Job) (bool, error) {
				j.Children[0] = 99
				return false, store.ErrConflict
			}})
			return []int64{0}
		},
	}
	for name, values := range spoil {
		values()[0] = 99
		want(e, "Children after a change of what came from "+name, fmt.Sprint(e.mustJob(job.ID).Children), keep)
		held = []int64{1, 2}
	}
}

// copyLists is copyJobs for each of the lists that a job has.
func copyLists(e *env) {
	lists := func(j *store.Job) []any { return []any{j.Children, j.ChildKeys, j.After, j.AfterKeys, j.Tags} }
	given := store.Job{App: "app", Key: "k", Name: "n", Children: []int64{1}, ChildKeys: []string{"a/k"}, After: []int64{2}, AfterKeys: []string{"b/k"}, Tags: []string{"t"}}
	keep := fmt.Sprint(lists(&given)...)
	spoil := func(what string, job *store.Job, id int64) {
		e.Helper()
		job.Children[0], job.ChildKeys[0], job.After[0], job.AfterKeys[0] = 99, "spoilt", 99, "spoilt"
		if len(job.Tags) > 0 { // Links leaves them out
			job.Tags[0] = "spoilt"
		}
		got := e.mustJob(id)
		want(e, "lists after a change of what came from "+what, fmt.Sprint(lists(&got)...), keep)
	}
	added, err := e.AddJob(e.ctx, given, nil)
	e.must(err)
	spoil("AddJob's argument", &given, added.ID)
	spoil("AddJob's answer", &added, added.ID)
	read := e.mustJob(added.ID)
	spoil("Job", &read, added.ID)
	listed, err := e.Jobs(e.ctx, store.JobFilter{})
	e.must(err)
	spoil("Jobs", &listed[0], added.ID)
	links := e.mustLinks()
	spoil("Links", &links[0], added.ID)
	var held store.Job
	edited := e.edit(added.ID, func(j *store.Job) {
		j.Param = "x"
		held = *j
	})
	spoil("EditJob's Change", &held, added.ID)
	spoil("EditJob's answer", &edited, added.ID)
	edit := replan("update", e.now, func(*store.Job) {})
	edit.Next = func(j store.Job, _, _ time.Time) (time.Time, error) { held = j; return e.now, nil }
	_, err = e.EditJob(e.ctx, added.ID, edit)
	e.must(err)
	spoil("EditJob's Next", &held, added.ID)
}

func copyRuns(e *env) {
	o := e.owner("a")
	param, addrs := "p", []string{"http://a"}
	run := e.mustAddRun(e.newJob().ID, store.Trigger{Addresses: addrs, Param: &param, At: e.at(600)})
	check := func(name string, runs ...store.Run) {
		e.Helper()
		if len(runs) == 0 || len(runs[0].Addresses) == 0 {
			e.Errorf("%s returned no run with addresses", name)
			return
		}
		runs[0].Addresses[0] = "http://spoilt"
		got := e.mustRun(run.ID)
		want(e, "run after a change of what came from "+name, []any{got.Addresses, got.Param}, []any{[]string{"http://a"}, "p"})
	}
	param = "spoilt"
	check("AddRun's argument", store.Run{Addresses: addrs})
	check("AddRun", run)
	check("Run", e.mustRun(run.ID))
	check("Runs", e.mustRuns(store.RunFilter{})...)
	byID, err := e.RunsByID(e.ctx, []int64{run.ID})
	e.must(err)
	check("RunsByID", byID...)
	check("Planned", o.allPlanned()...)
	check("Scan", o.mustScan(o.scan(e.at(1000))).Runs...)
	started := o.started(run, o.over("b"), func(s *store.Start) { s.Param = "p" })
	check("Start", started)
	by, err := e.StartedBy(e.ctx, o.shards, []string{"a"}, 0, 10)
	e.must(err)
	check("StartedBy", by...)
	check("Inbox", e.mustInbox("b").Runs...)
	check("AskLog", e.mustAsk("b", started, 1).Run)
	check("Inbox's asks", e.mustInbox("b").Asks[0].Run)
	taken := e.mustTake("b", run.ID)
	check("Take", taken...)
	check("Kill", e.mustKill(run.ID, "x"))
	check("Inbox's kills", e.mustInbox("b").Kills...)
	check("Dispatched", e.mustDispatched(accepted(started))...)
	check("DispatchedRuns", o.mustDispatchedRuns(0, 10)...)
	check("Finish", e.mustFinish(overWire(run.ID))...)
}

func copyGroups(e *env) {
	given := store.Group{App: "app", Manual: true, Addresses: []string{"http://a"}}
	e.must(e.SaveGroup(e.ctx, given))
	given.Addresses[0] = "http://spoilt"
	for range 2 {
		g := e.mustGroup("app")
		want(e, "addresses", g.Addresses, []string{"http://a"})
		g.Addresses[0] = "http://spoilt"
		groups, err := e.Groups(e.ctx)
		e.must(err)
		want(e, "groups", len(groups), 1)
		groups[0].Addresses[0] = "http://spoilt"
	}
}

func copyNodes(e *env) {
	given := []store.Attachment{{App: "app", Handlers: []string{"h"}}}
	keep := fmt.Sprint(given)
	v, err := e.Join(e.ctx, store.Node{ID: "n", Incarnation: "a", Attached: given})
	e.must(err)
	given[0].App, given[0].Handlers[0] = "spoilt", "spoilt"
	e.mustNode(v, "a").Attached[0].Handlers[0] = "spoilt"
	v.Shards[0].Owner = "spoilt"
	v = e.mustBeat(observer)
	want(e, "executors as another sees them", fmt.Sprint(e.mustNode(v, "a").Attached), keep)
	want(e, "owner of a shard", v.Shards[0].Owner, "")
	given = []store.Attachment{{App: "app", Handlers: []string{"h"}}}
	_, err = e.Beat(e.ctx, "a", given)
	e.must(err)
	given[0].Handlers[0] = "spoilt"
	want(e, "executors after a beat", fmt.Sprint(e.mustNode(e.mustBeat(observer), "a").Attached), keep)
}

func copyRegistrations(e *env) {
	given := registered("app", remote, "one", "two")
	e.put(given)
	spoil := map[string]func() []string{
		"PutAddresses's argument": func() []string { return given.Capabilities },
		"Addresses":               func() []string { return e.mustAddresses("app", time.Hour)[0].Capabilities },
		"Registrations":           func() []string { return e.mustRegistrations(store.RegistrationFilter{})[0].Capabilities },
	}
	for name, values := range spoil {
		values()[0] = "spoilt"
		want(e, "Capabilities after a change of what came from "+name, e.mustAddresses("app", time.Hour)[0].Capabilities, []string{"one", "two"})
	}
}

// checkTimes walks a value and checks each time in it.
func (e *env) checkTimes(path string, v reflect.Value) {
	e.Helper()
	if t, ok := v.Interface().(time.Time); ok {
		switch {
		case path == "View.Now": // is a reading, and is not kept
			e.check(t.Location() == time.UTC && t == t.Round(0), "%s is %v: want UTC, no monotonic reading", path, t)
		case t.IsZero():
			e.check(t == time.Time{}, "%s is a zero time in another form: %#v", path, t)
		case t.Location() != time.UTC || !t.Equal(t.Truncate(time.Millisecond)) || t != t.Round(0):
			e.Errorf("%s is %v: want whole milliseconds, UTC, no monotonic reading", path, t)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			e.checkTimes(path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			e.checkTimes(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	}
}

func timesKept(e *env) {
	o := e.owner("a")
	job := e.newJob(func(j *store.Job) { j.GlueSource = "x" })
	e.must(e.EnsureGroup(e.ctx, "app"))
	runs := o.claim(o.plan(job, e.at(0), e.at(60)), o.skip(e.newJob()))
	done := e.mustFinish(success(o.started(runs[0])))
	cancelled := e.mustKill(runs[1].ID, "x")
	lost := e.mustSettle(o.verdict(o.running(), store.StateLost))
	all := e.mustRuns(store.RunFilter{})
	e.mustAsk("a", all[0], 1)
	e.put(registered("app", remote))
	group := e.mustGroup("app")
	for name, v := range map[string]any{"Job": e.mustJob(job.ID), "Group": group, "Claim": runs, "Finish": done,
		"Kill": cancelled, "Settle": lost, "Runs": all, "Changes": e.mustChanges(job.ID),
		"Dispatched": []store.Run{o.dispatched()}, "Addresses": e.mustAddresses("app", time.Hour),
		"Registrations": e.mustRegistrations(store.RegistrationFilter{}), "View": e.mustBeat("a"), "Scan": o.mustScan(o.scan(e.at(1e6))), "Inbox": e.mustInbox("a")} {
		e.checkTimes(name, reflect.ValueOf(v))
	}
}

func timesCut(e *env) {
	o := e.owner("a")
	odd := e.at(3600).Add(999_999 * time.Nanosecond).In(time.FixedZone("west", -5*3600))
	job := e.newJob(func(j *store.Job) { j.Next = odd })
	want(e, "Next", job.Next, e.at(3600))
	want(e, "Scheduled of an added run", e.mustAddRun(job.ID, store.Trigger{At: odd}).Scheduled, e.at(3600))
	p := o.plan(job, odd)
	p.Due = odd.Truncate(time.Millisecond)
	p.Runs[0].First, p.Runs[0].Last, p.Runs[0].Count = odd, odd, 1
	run := o.one(o.claim(p))
	want(e, "Scheduled, First and Last of a claimed run", []time.Time{run.Scheduled, run.First, run.Last}, []time.Time{e.at(3600), e.at(3600), e.at(3600)})
	early := time.Date(1, 1, 1, 0, 0, 0, 0, time.FixedZone("east", 3600)).Add(time.Hour)
	zero := e.newJob(func(j *store.Job) { j.Next = early })
	e.check(early.IsZero() && zero.Next == time.Time{}, "the zero time of another zone became %v", zero.Next)
}

// concurrentUse leads whole lives of jobs at the same time; the race detector
// listens.
func concurrentUse(e *env) {
	o := e.owner("a")
	var lives []func()
	for range 6 {
		job := e.newJob()
		lives = append(lives, func() {
			for i := range 10 {
				fresh := e.mustJob(job.ID)
				p := o.plan(fresh, fresh.Next)
				p.Next = fresh.Next.Add(time.Minute)
				run := o.one(o.claim(p))
				if i%3 == 2 {
					e.mustKill(run.ID, "x")
					continue
				}
				run = o.started(run)
				o.mustScan(o.scan(e.at(0)))
				e.mustRuns(store.RunFilter{JobID: job.ID})
				e.mustAnswer(e.mustAsk("a", run, 1).ID, store.Answer{})
				e.mustInbox("a")
				e.mustBeat("a")
				e.put(registered("app", remote), registered(job.Name, remote))
				e.drop(registered(job.Name, remote))
				e.mustAddresses("app", time.Hour)
				e.mustRegistrations(store.RegistrationFilter{})
				e.mustProgress(progressOf(run, i, "on the way"))
				want(e, "accepted results", len(e.mustFinish(success(run))), 1)
			}
		})
	}
	e.race(lives...)
	for _, run := range e.mustRuns(store.RunFilter{Limit: 1000}) {
		e.check(run.State.Ended(), "run %d is %v", run.ID, run.State)
	}
	want(e, "runs", len(e.mustRuns(store.RunFilter{Limit: 1000})), 60)
}

func emptyBatches(e *env) {
	e.owner("a")
	before := e.snapshot()
	_, err := e.Claim(e.ctx, nil, nil)
	e.must(err)
	_, err = e.Start(e.ctx, nil, nil)
	e.must(err)
	want(e, "answers to nothing", len(e.mustFinish())+len(e.mustSettle())+len(e.mustTake("a"))+len(e.mustDispatched()), 0)
	e.mustProgress()
	e.must(e.PutAddresses(e.ctx, nil))
	e.must(e.DropAddresses(e.ctx, nil))
	_, err = e.TakeShards(e.ctx, "a", nil)
	e.must(err)
	e.must(e.ReleaseShards(e.ctx, "a", nil))
	e.must(e.Sweep(e.ctx, nil))
	moved, err := e.MoveAhead(e.ctx, store.AheadQuery{})
	e.must(err)
	want(e, "runs moved for nobody", moved, store.Moved{})
	paid, err := e.PayOwed(e.ctx, store.OwedQuery{})
	e.must(err)
	want(e, "paid for nobody", paid, store.Paid{})
	expired, err := e.ExpireWindows(e.ctx, store.WindowQuery{})
	e.must(err)
	want(e, "windows closed for nobody", expired, store.Expired{})
	want(e, "state after it", e.snapshot(), before)
}
