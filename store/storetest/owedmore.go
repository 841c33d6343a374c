package storetest

// What a child is given, and how far children lead.

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xxljob/xxljob/store"
)

func owedTwice(e *env) {
	o := e.owner("a")
	child := e.newJob()
	ref := child.App + "/" + child.Key
	o.succeeds(e.newJob(func(j *store.Job) {
		j.Children, j.ChildKeys = []int64{child.ID, child.ID}, []string{ref, ref}
	}).ID)
	want(e, "paid", o.payAll(), store.Paid{Owed: 4, Runs: 1})
	e.wantRuns("named four times", child.ID, 1)
}

func owedParams(e *env) {
	o := e.owner("a")
	for param, given := range map[store.ChildParam][]any{
		"": {"", false}, store.ChildParamParent: {"p — 错", true}, store.ChildParamResult: {"result\n果", true},
	} {
		child := e.newJob(func(j *store.Job) { j.Param = "own" })
		parent := e.newJob(leading(child.ID), func(j *store.Job) { j.ChildParam = param })
		r := success(o.started(o.planned(parent), func(s *store.Start) { s.Param = "p — 错" }))
		r.HandleMsg = "result\n果"
		e.mustFinish(r)
		o.payAll()
		run := e.only("a child", child.ID)
		want(e, "Param, ParamSet where ChildParam is "+string(param), []any{run.Param, run.ParamSet}, given)
	}
	child := e.newJob(func(j *store.Job) { j.Param = "own" })
	o.succeeds(e.newJob(leading(child.ID), func(j *store.Job) { j.ChildParam = store.ChildParamParent }).ID)
	o.payAll()
	run := e.only("a child", child.ID)
	want(e, "a parameter that is empty is given as well", []any{run.Param, run.ParamSet}, []any{"", true})
}

func owedSecret(e *env) {
	o := e.owner("a")
	secret := func(j *store.Job) { j.Secret = true }
	handing := func(by store.ChildParam, children ...int64) func(*store.Job) {
		return func(j *store.Job) { j.Children, j.ChildParam = children, by }
	}
	for _, by := range []store.ChildParam{store.ChildParamParent, store.ChildParamResult} {
		elsewhere := e.newJob(func(j *store.Job) { j.App, j.Param = "another", "own" }, secret)
		further := e.newJob(func(j *store.Job) { j.App, j.Param = "another", "own" })
		open := e.newJob(func(j *store.Job) { j.Param = "own" })
		openFurther := e.newJob(func(j *store.Job) { j.Param = "own" })
		beside := e.newJob(handing(by, further.ID, openFurther.ID), secret)
		parent := e.newJob(handing(by, elsewhere.ID, open.ID, beside.ID), secret)
		succeed := func(run store.Run) {
			r := success(o.started(run, func(s *store.Start) { s.Param = "a secret" }))
			r.HandleMsg = "a secret"
			e.mustFinish(r)
			o.payAll()
		}
		top := o.planned(parent)
		succeed(top)
		run := e.only("a child of another app", elsewhere.ID)
		line := (&store.Owed{RunID: top.ID}).Withheld()
		want(e, "Param, ParamSet and TriggerMsg of a child of another app", []any{run.Param, run.ParamSet, run.TriggerMsg}, []any{"", false, line})
		run = e.only("a child that is not secret", open.ID)
		want(e, "Param, ParamSet and TriggerMsg of a child that is not secret", []any{run.Param, run.ParamSet, run.TriggerMsg}, []any{"", false, line})
		read, err := e.Run(e.ctx, top.ID)
		e.must(err)
		want(e, "Secret of a run of the job", read.Secret, true)
		given := e.only("a secret child of the app", beside.ID)
		want(e, "Param, ParamSet and TriggerMsg of a secret child of the app", []any{given.Param, given.ParamSet, given.TriggerMsg}, []any{"a secret", true, ""})
		beside = e.edit(beside.ID, func(j *store.Job) { j.Secret = false })
		succeed(given)
		for _, led := range []store.Job{further, openFurther} {
			run = e.only("a child of that", led.ID)
			want(e, "Param and ParamSet of what that leads to in app "+led.App, []any{run.Param, run.ParamSet}, []any{"", false})
		}
		succeed(e.mustAddRun(beside.ID, store.Trigger{Param: new("a secret")}.Repeating(&run)))
		for _, led := range []store.Job{further, openFurther} {
			runs := e.runsOf(led.ID)
			again := runs[len(runs)-1]
			want(e, "how many there are, and Param and ParamSet of what that leads to in app "+led.App+" when it is repeated", []any{len(runs), again.Param, again.ParamSet}, []any{2, "", false})
		}
		succeed(o.planned(beside))
		for _, led := range []store.Job{further, openFurther} {
			runs := e.runsOf(led.ID)
			want(e, "Param of what the same job leads to by itself in app "+led.App, runs[len(runs)-1].Param, "a secret")
		}
	}
}

func owedLongResult(e *env) {
	o := e.owner("a")
	child := e.newJob()
	r := success(o.started(o.planned(e.newJob(leading(child.ID), func(j *store.Job) { j.ChildParam = store.ChildParamResult }))))
	r.HandleMsg = "x" + strings.Repeat("错", 70<<10/3)
	e.mustFinish(r)
	o.payAll()
	got := e.only("a child", child.ID).Param
	e.check(utf8.ValidString(got) && strings.HasPrefix(r.HandleMsg, got), "the parameter is no beginning of the result")
	want(e, "bytes of it", len(got), 1+((64<<10)-1)/3*3)
}

func owedBusiness(e *env) {
	o := e.owner("a")
	last := e.newJob()
	child := e.newJob(leading(last.ID))
	parent := e.newJob(leading(child.ID), retried(1))
	p := o.plan(parent, e.at(-60))
	p.Runs[0].First, p.Runs[0].Last, p.Runs[0].Count = e.at(-600), e.at(-60), 10
	first := o.failed(o.started(o.one(o.claim(p))))
	o.succeeded(e.mustNext(first))
	o.payAll()
	run := e.only("a child", child.ID)
	want(e, "Business, Depth", []any{run.Business, run.Depth}, []any{e.at(-600), 1})
	o.succeeded(run)
	o.payAll()
	grandchild := e.only("a child of a child", last.ID)
	want(e, "Business, Depth, ParentID of that", []any{grandchild.Business, grandchild.Depth, grandchild.ParentID}, []any{e.at(-600), 2, run.ID})
}

// owedRetry: retries, reruns and snoozed runs of a child are as deep as it is.
func owedRetry(e *env) {
	o := e.owner("a")
	last := e.newJob()
	child := e.newJob(leading(last.ID), func(j *store.Job) { j.Retries, j.OnLost, j.MaxReruns = 3, store.OnLostRerun, 3 })
	parent := o.succeeds(e.newJob(leading(child.ID)).ID)
	o.payAll()
	run := e.only("a child", child.ID)
	for what, end := range map[string]func(store.Run) store.Run{
		"a retry": func(r store.Run) store.Run { return o.failed(o.started(r)) },
		"a snooze": func(r store.Run) store.Run {
			return o.one(e.mustFinish(snoozing(o.started(r), time.Minute)))
		},
		"a rerun": func(r store.Run) store.Run {
			return o.one(e.mustSettle(o.verdict(o.started(r), store.StateLost)))
		},
	} {
		run = e.mustNext(end(run))
		want(e, what+": ParentID, Depth, Business", []any{run.ParentID, run.Depth, run.Business}, []any{parent.ID, 1, parent.Scheduled})
	}
	o.succeeded(run)
	want(e, "paid", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	got := e.only("a child of what follows", last.ID)
	want(e, "ParentID, Depth, Business of a child of that", []any{got.ParentID, got.Depth, got.Business}, []any{run.ID, 2, parent.Scheduled})
}

func owedChildInParts(e *env) {
	o := e.owner("a")
	last := e.newJob()
	child := e.newJob(leading(last.ID))
	parent := o.succeeds(e.newJob(leading(child.ID)).ID)
	o.payAll()
	parts := o.inParts(e.only("a child", child.ID), 3)
	for _, part := range parts {
		want(e, "ParentID, Depth, Business of a part", []any{part.ParentID, part.Depth, part.Business}, []any{parent.ID, 1, parent.Scheduled})
		e.wantRun("a part", part)
		e.mustFinish(overWire(part.ID))
	}
	want(e, "paid", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	got := e.only("a child of parts", last.ID)
	want(e, "ParentID, Depth, Business of their child", []any{got.ParentID, got.Depth, got.Business}, []any{parts[2].ID, 2, parent.Scheduled})
}

// deep is a planned run of the job to which so many successes have led.
func (o *owner) deep(job int64, depth int) store.Run {
	o.Helper()
	chain := o.newJob()
	o.edit(chain.ID, leading(chain.ID)) // whoever saves definitions refuses this
	run := o.planned(o.mustJob(chain.ID))
	for run.Depth < depth {
		if run.Depth == depth-1 {
			o.edit(chain.ID, leading(job))
		}
		o.succeeded(run)
		want(o.env, "paid on the way down", o.payAll(), store.Paid{Owed: 1, Runs: 1})
		next := o.mustRuns(store.RunFilter{JobID: chain.ID, States: []store.State{store.StatePlanned}})
		if run.Depth == depth-1 {
			next = o.mustRuns(store.RunFilter{JobID: job, States: []store.State{store.StatePlanned}})
		}
		run = o.one(next)
	}
	return run
}

func owedDepth(e *env) {
	o := e.owner("a")
	last := e.newJob()
	job := e.newJob(leading(last.ID))
	run := o.succeeded(o.deep(job.ID, store.MostDepth))
	want(e, "Depth of the last that runs", run.Depth, store.MostDepth)
	want(e, "paid", o.payAll(), store.Paid{Owed: 1, Skipped: 1})
	got := e.only("one too deep", last.ID)
	want(e, "State, Type, Reason, Count, ParentID, Depth, Business", []any{got.State, got.Type, got.Reason, got.Count, got.ParentID, got.Depth, got.Business},
		[]any{store.StateSkipped, store.TriggerParent, store.ReasonDepth, 1, run.ID, store.MostDepth + 1, run.Business})
	e.check(!got.Ended.IsZero(), "a record that has not ended")
	want(e, "paid again", o.payAll(), store.Paid{})
	want(e, "planned runs", len(o.allPlanned()), 0)
}

func owedKey(e *env) {
	o := e.owner("a")
	child := e.newJob()
	job := e.newJob(leading(child.ID), retried(1))
	first := o.failed(o.started(o.planned(job)))
	o.succeeded(e.mustNext(first))
	o.payAll()
	run := e.only("a child", child.ID)
	want(e, "the run of the trigger's key", e.mustAddRun(child.ID, store.Trigger{Key: store.ChildKey(first.ID)}).ID, run.ID)

	next := o.succeeds(job.ID)
	before := e.mustAddRun(child.ID, store.Trigger{Key: store.ChildKey(next.ID)})
	want(e, "paid where the key is taken", o.payAll(), store.Paid{Owed: 1})
	e.wantRun("the run that has it", before)
	e.wantRuns("one of each key", child.ID, 2)
}

func owedRecordKey(e *env) {
	o := e.owner("a")
	last := e.newJob()
	run := o.succeeded(o.deep(e.newJob(func(j *store.Job) {
		j.Children, j.ChildKeys = []int64{last.ID}, []string{last.App + "/" + last.Key}
	}).ID, store.MostDepth))
	want(e, "paid", o.payAll(), store.Paid{Owed: 2, Skipped: 1})
	got := e.only("named twice", last.ID)
	want(e, "the run of the trigger's key", e.mustAddRun(last.ID, store.Trigger{Key: store.ChildKey(run.TriggerID)}).ID, got.ID)
}

func owedLostAnswer(e *env) {
	o := e.owner("a")
	child := e.newJob()
	o.succeeds(e.newJob(leading(child.ID)).ID)
	f := Wrap(e.Store)
	f.Inject("PayOwed", Fault{After: true, Calls: 1})
	_, err := f.PayOwed(e.ctx, store.OwedQuery{Shards: o.shards, Limit: 9})
	e.wantErr("an answer that is lost", err, ErrInjected)
	want(e, "paid again", o.payAll(), store.Paid{})
	e.wantRuns("after both", child.ID, 1)
}

func owedStopped(e *env) {
	o := e.owner("a")
	child := e.newJob()
	e.stop(child.ID)
	parent := e.newJob(leading(child.ID))
	run := o.started(o.planned(parent))
	e.stop(parent.ID)
	e.mustFinish(success(run))
	want(e, "paid", o.payAll(), store.Paid{Owed: 1, Runs: 1})
	want(e, "state of the child that is started", o.started(e.only("of a stopped job", child.ID)).State, store.StateStarted)
}

func (e *env) mustLinks() []store.Job {
	e.Helper()
	links, err := e.Links(e.ctx)
	e.must(err)
	return links
}

func linksNamed(e *env) {
	want(e, "links where no job names another", len(e.mustLinks()), 0)
	e.newJob()
	var named []store.Job
	for _, set := range []func(*store.Job){
		leading(3, 2),
		func(j *store.Job) { j.ChildKeys, j.ChildParam = []string{"b/k", "a/k"}, store.ChildParamParent },
		func(j *store.Job) { j.After = []int64{9, 8} },
		func(j *store.Job) { j.AfterKeys, j.Key = []string{"b/k", "a/k"}, "" },
		func(j *store.Job) { j.Stopped = true; j.Children, j.AfterKeys = []int64{1}, []string{"a/k"} },
	} {
		j := e.newJob(set, func(j *store.Job) { j.GlueSource, j.Param = "echo", "param" })
		named = append(named, store.Job{ID: j.ID, App: j.App, Key: j.Key, Children: j.Children, ChildKeys: j.ChildKeys, ChildParam: j.ChildParam, After: j.After, AfterKeys: j.AfterKeys})
	}
	slices.SortFunc(named, func(a, b store.Job) int { return cmp.Compare(a.ID, b.ID) })
	want(e, "links", e.linkFields(), fieldsOf(named))
	e.must(e.RemoveJob(e.ctx, named[2].ID))
	want(e, "links without one that is removed", e.linkFields(), fieldsOf(append(named[:2:2], named[3:]...)))
}

// fieldsOf are the fields that Links fills in: what else a store returns is its own affair.
func fieldsOf(jobs []store.Job) (list []store.Job) {
	for _, j := range jobs {
		list = append(list, store.Job{ID: j.ID, App: j.App, Key: j.Key, Children: j.Children, ChildKeys: j.ChildKeys, ChildParam: j.ChildParam, After: j.After, AfterKeys: j.AfterKeys})
	}
	return list
}

func (e *env) linkFields() []store.Job {
	e.Helper()
	return fieldsOf(e.mustLinks())
}

func linksEdited(e *env) {
	job := e.newJob()
	e.edit(job.ID, func(j *store.Job) { j.AfterKeys = []string{"a/k"} })
	links := e.mustLinks()
	if len(links) != 1 {
		e.Fatalf("links %+v after an edit, want one job", links)
	}
	links[0].AfterKeys[0] = "spoilt"
	want(e, "AfterKeys after a change of what Links returned", e.mustLinks()[0].AfterKeys, []string{"a/k"})
	e.edit(job.ID, func(j *store.Job) { j.AfterKeys = nil })
	want(e, "links after another edit", len(e.mustLinks()), 0)
}
