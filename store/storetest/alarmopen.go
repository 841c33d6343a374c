package storetest

import (
	"fmt"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// Jobs of which alarms were told, and whether they have recovered since.

func openCases() []testCase {
	return []testCase{
		{"RecoveredByALaterTrigger", openLater},
		{"NotRecoveredByAnEarlierOne", openEarlier},
		{"RecoveredByARetry", openRetry},
		{"NotRecoveredByAnotherPart", openParts},
		{"RecoveredByThatVeryRun", openLate},
		{"RecoveredWithoutARun", openWithoutRun},
		{"RecoveredByTheFirstSuccess", openFirst},
		{"OpenOfShards", openShards},
		{"OpenAtMost", openLimit},
		{"OpenBehindOne", openBehind},
	}
}

// mustOpen are those that have recovered, and how many are open.
func (e *env) mustOpen(limit int) ([]store.JobTold, int) {
	e.Helper()
	return e.mustOpenBehind(store.JobTold{}, limit)
}

// mustOpenBehind are those of them that are behind one.
func (e *env) mustOpenBehind(after store.JobTold, limit int) ([]store.JobTold, int) {
	e.Helper()
	list, open, err := e.OpenAlarms(e.ctx, everyShard(), nil, after, limit)
	e.must(err)
	return list, open
}

// opened notes that a rule has told of a run, and waits for its job to recover.
func (e *env) opened(run store.Run, rule string) store.JobTold {
	e.Helper()
	t := store.JobTold{JobID: run.JobID, Shard: run.Shard, Rule: rule, At: e.now, Open: true, RunID: run.ID, TriggerID: run.TriggerID}
	e.mustMark(store.AlarmMarks{Jobs: []store.JobTold{t}})
	return t
}

// wantOpenOnes checks which of those that are open have recovered.
func (e *env) wantOpenOnes(what string, recovered []store.JobTold, open int) {
	e.Helper()
	list, n := e.mustOpen(10)
	want(e, what, list, recovered)
	want(e, what+": how many are open", n, open)
}

// wantRecovered checks that a rule may say that its job has recovered, by the run.
func (e *env) wantRecovered(what string, t store.JobTold, by store.Run) {
	e.Helper()
	t.Recovered = by.Ended
	e.wantOpenOnes(what, []store.JobTold{t}, 1)
}

// wantOpen checks that it may not yet.
func (e *env) wantOpen(what string) {
	e.Helper()
	e.wantOpenOnes(what, nil, 1)
}

func openLater(e *env) {
	o := e.owner("a")
	job := e.newJob()
	t := e.opened(o.failed(o.started(o.planned(job))), "one")
	e.wantOpen("at first")
	later := o.planned(e.mustJob(job.ID))
	e.wantOpen("with a run that is planned")
	later = o.started(later)
	e.wantOpen("with a run that has started")
	e.mustFinish(snoozing(later, 0))
	e.wantOpen("with a run that is snoozed")
	o.failed(o.started(e.mustNext(e.mustRun(later.ID))))
	e.wantOpen("with a run that has failed")
	o.succeeded(o.planned(e.newJob()))
	e.wantOpen("with a success of another job")
	e.wantRecovered("with a success", t, o.succeeded(e.mustAddRun(job.ID, store.Trigger{})))
	want(e, "what ToldJobs has of it", e.mustTold(job.ID), []store.JobTold{t})
	t.Open = false
	e.mustMark(store.AlarmMarks{Jobs: []store.JobTold{t}})
	e.wantOpenOnes("once it is told", nil, 0)
}

func openEarlier(e *env) {
	o := e.owner("a")
	job := e.newJob()
	first := o.started(o.planned(job))
	second := o.started(o.planned(e.mustJob(job.ID)))
	e.opened(o.failed(second), "one")
	e.mustFinish(success(first))
	e.wantOpen("with a success of an earlier run")
}

func openRetry(e *env) {
	o := e.owner("a")
	run := o.failed(o.started(o.planned(e.newJob(retried(2)))))
	t := e.opened(run, "one")
	second := e.mustNext(run)
	e.wantRecovered("with a retry that has succeeded", t, o.succeeded(second))
}

func openParts(e *env) {
	o := e.owner("a")
	job := e.newJob(retried(1))
	a := o.tryStart(o.startOf(o.planned(job), func(s *store.Start) { s.Targets = []string{remote, remoteToo}; s.Address = remote }))
	r := overWire(a.Run.ID)
	r.State = store.StateFailed
	failed := o.one(e.mustFinish(r))
	t := e.opened(failed, "one")
	e.mustFinish(overWire(a.Siblings[0].ID))
	e.wantOpen("with a success of another part")
	next := o.started(e.mustNext(failed), to(remote))
	e.wantRecovered("with a success of the same part", t, o.one(e.mustFinish(overWire(next.ID))))
}

func openLate(e *env) {
	o := e.owner("a")
	run := o.running()
	t := e.opened(run, "one")
	e.wantOpen("while it runs")
	e.wantRecovered("with its own success", t, o.one(e.mustFinish(success(run))))
}

func openWithoutRun(e *env) {
	o := e.owner("a")
	job := e.newJob()
	before := o.succeeded(o.planned(job))
	t := store.JobTold{JobID: job.ID, Shard: job.Shard, Rule: "one", At: before.Ended, Open: true}
	e.mustMark(store.AlarmMarks{Jobs: []store.JobTold{t}})
	e.wantOpen("with a success from before")
	other := e.newJob()
	e.eventually("the store's clock goes on", func() bool { return e.mustAddRun(other.ID, store.Trigger{}).Created.After(t.At) })
	e.wantRecovered("with a success since", t, o.succeeded(e.mustAddRun(job.ID, store.Trigger{})))
}

func openFirst(e *env) {
	o := e.owner("a")
	job := e.newJob()
	t := e.opened(o.failed(o.started(o.planned(job))), "one")
	first, second := o.started(e.mustAddRun(job.ID, store.Trigger{})), o.started(e.mustAddRun(job.ID, store.Trigger{}))
	ended := o.one(e.mustFinish(success(second))) // the one that was triggered later ends first
	e.mustFinish(success(first))
	e.wantRecovered("with three successes", t, ended)
	o.succeeded(e.mustAddRun(job.ID, store.Trigger{}))
	e.wantRecovered("with four", t, ended)
}

func openShards(e *env) {
	o := e.owner("a")
	var all []store.JobTold
	for shard := range numShards {
		job := e.jobIn(shard)
		t := e.opened(o.failed(o.started(o.planned(job))), "one")
		t.Recovered = o.succeeded(e.mustAddRun(job.ID, store.Trigger{})).Ended
		all = append(all, t)
	}
	for shard := range numShards {
		list, open, err := e.OpenAlarms(e.ctx, []store.Shard{{ID: shard}}, nil, store.JobTold{}, 10)
		e.must(err)
		want(e, fmt.Sprint("in shard ", shard), []any{list, open}, []any{all[shard : shard+1], 1})
	}
	list, open, err := e.OpenAlarms(e.ctx, nil, nil, store.JobTold{}, 10)
	e.check(len(list) == 0 && open == 0 && err == nil, "in none: %+v, %d, %v", list, open, err)
}

func openLimit(e *env) {
	all := e.openOnes(e.owner("a"))
	for _, limit := range []int{0, 1, 4, 10} {
		list, open := e.mustOpen(limit)
		want(e, fmt.Sprint("at most ", limit), []any{list, open}, []any{all[:min(limit, 6)], 7})
	}
}

func openBehind(e *env) {
	all := e.openOnes(e.owner("a"))
	for i, t := range all {
		list, open := e.mustOpenBehind(t, 2)
		want(e, fmt.Sprintf("behind job %d and rule %q", t.JobID, t.Rule), []any{len(list), open}, []any{min(2, 5-i), 7})
		want(e, "which", append([]store.JobTold{}, list...), append([]store.JobTold{}, all[i+1:min(i+3, 6)]...))
	}
	between, _ := e.mustOpenBehind(store.JobTold{JobID: all[2].JobID, Rule: "p"}, 1)
	want(e, "behind a rule that is not there", between, all[3:4])
}

// openOnes are the six rows of three jobs that have recovered, in order; a seventh has not.
func (e *env) openOnes(o *owner) (all []store.JobTold) {
	e.Helper()
	for range 3 {
		job := e.newJob()
		run := o.failed(o.started(o.planned(job)))
		one, two := e.opened(run, "one"), e.opened(run, "two")
		one.Recovered = o.succeeded(e.mustAddRun(job.ID, store.Trigger{})).Ended
		two.Recovered = one.Recovered
		all = append(all, one, two)
	}
	e.opened(o.failed(o.running()), "one") // it has not recovered
	slices.SortStableFunc(all, func(a, b store.JobTold) int { return int(a.JobID - b.JobID) })
	return all
}
