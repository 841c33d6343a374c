package storetest

import (
	"fmt"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

func startCases() []testCase {
	return []testCase{
		{"StoresWhatItUsed", startStores},
		{"SaysHowItWasRouted", startSays},
		{"SaysHowAllWereRouted", startSaysAlone},
		{"SaysItAgainWhenItIsPutBack", startSaysAgain},
		{"SaysItWhereItIsMoved", startSaysWhereItMoves},
		{"AtTheOwnersAddressIsTheTaking", startTakes},
		{"ElsewhereIsNotTheTaking", startElsewhere},
		{"RefusedEndsTheRun", startRefused},
		{"GoneWhenNotPlanned", startGone},
		{"StaleWhenTheVersionMoved", startStaleVersion},
		{"StaleWhenStoppedAndScheduleBorn", startStopped},
		{"StaleWhenManualAndScheduleBorn", startManual},
		{"OldEpochStartsNone", startFenced},
		{"ComparesTheEpochOfTheRunsShard", startOtherShard},
		{"CancelledByAStopNeverStarts", startCancelled},
		{"BusyAtOneAttachedAddress", startBusy},
		{"BusyAtATarget", startBusyTarget},
		{"BusyWithinOneBatch", startBusyInBatch},
		{"NotBusyWithoutSerialOrElsewhere", startNotBusy},
		{"AnswersInOrder", startOrder},
		{"TwiceInOneBatchStartsOnce", startTwice},
		{"BroadcastInsertsStartedSiblings", startBroadcast},
		{"BroadcastToRemoteTargets", startBroadcastRemote},
		{"BroadcastOfOneHasNoSiblings", startBroadcastOne},
		{"BroadcastThatFailsInsertsNone", startBroadcastFails},
		{"NoNodeWhereTheAddresseeIsNotThere", startNoNode},
		{"NoNodeWhereATargetIsNotThere", startNoNodeTarget},
		{"OfTheOwnersOwnNodeNothingIsAsked", startOwnNode},
		{"FirstOfSeveralStatuses", startStatusOrder},
		{"DiscardsWhatItCovers", startCovers},
		{"CoversOnlyWhatIsPlanned", startCoversPlanned},
		{"CoversNothingWithoutEffect", startCoversNot},
		{"StoresTheBootID", startBoots},
		{"BroadcastStoresTheBootIDOfEachTarget", startBroadcastBoots},
		{"EveryReaderHasTheBootID", bootsRead},
	}
}

func startStores(e *env) {
	o := e.owner("a")
	job := e.newJob()
	run := o.planned(job)
	job = e.edit(job.ID, func(j *store.Job) { j.Param = "new" })
	s := o.startOf(run, to(remote), func(s *store.Start) {
		s.Handler, s.Block, s.Param, s.Retries, s.Msg = "h", "COVER_EARLY", "new", 3, "routed: FIRST"
	})
	a := o.tryStart(s)
	got := a.Run
	want(e, "status", a.Status, store.StartOK)
	want(e, "siblings", len(a.Siblings), 0)
	e.check(!got.Started.IsZero() && !got.Started.Before(got.Created), "Started %v, Created %v", got.Started, got.Created)
	e.check(hasLine(got.TriggerMsg, "routed: FIRST"), "TriggerMsg %q lacks the message", got.TriggerMsg)
	run.State, run.JobVersion, run.Handler, run.Block, run.Param, run.Retries = store.StateStarted, job.Version, "h", "COVER_EARLY", "new", 3
	run.Owner, run.Token, run.Address, run.Started, run.TriggerMsg = "a", s.Token, remote, got.Started, got.TriggerMsg
	want(e, "started run", got, run)
	e.wantRun("started run", run)
	want(e, "job after the start", e.mustJob(job.ID), job)
}

func startTakes(e *env) {
	o := e.owner("a")
	run := o.running()
	e.check(!run.Taken.IsZero(), "a start at the owner's own address is not taken")
	want(e, "its inbox", len(e.mustInbox("a").Runs), 0)
	want(e, "runs taken again", len(e.mustTake("a", run.ID)), 0)
}

func startElsewhere(e *env) {
	o := e.owner("a")
	e.there("b", "ab")
	for _, addr := range []string{store.LocalAddress("b"), store.LocalAddress("ab"), remote} {
		run := o.running(to(addr))
		e.check(run.Taken.IsZero(), "a start at %s is taken at %v", addr, run.Taken)
	}
}

func startRefused(e *env) {
	o := e.owner("a")
	run := o.planned(e.newJob())
	a := o.tryStart(o.startOf(run, refused, func(s *store.Start) { s.Msg, s.HandleMsg = "no address", "nobody is there" }))
	want(e, "status", a.Status, store.StartOK)
	want(e, "state", a.Run.State, store.StateRefused)
	e.check(!a.Run.Ended.IsZero() && a.Run.Started.IsZero(), "Ended %v, Started %v: want ended without a start", a.Run.Ended, a.Run.Started)
	e.check(hasLine(a.Run.TriggerMsg, "no address"), "TriggerMsg %q lacks the message", a.Run.TriggerMsg)
	want(e, "HandleMsg", a.Run.HandleMsg, "nobody is there")
	e.wantRun("refused run", a.Run)
}

func startGone(e *env) {
	o := e.owner("a")
	ended := o.running()
	e.mustFinish(success(ended))
	for _, run := range []store.Run{o.running(), o.dispatched(), ended, o.one(o.claim(o.skip(e.newJob()))), e.mustKill(o.planned(e.newJob()).ID, "x")} {
		before := e.mustRun(run.ID)
		a := o.tryStart(o.startOf(run))
		want(e, "status for a run that is "+before.State.String(), a.Status, store.StartGone)
		want(e, "run in the answer", a.Run, before)
		e.wantRun("after it", before)
	}
	s := o.startOf(o.planned(e.newJob()))
	s.RunID += 1_000_000
	a := o.tryStart(s)
	want(e, "answer for a run that does not exist", a, store.Started{Status: store.StartGone})
}

// wantNoStart checks that a start has the status and changes nothing.
func (o *owner) wantNoStart(what string, s store.Start, status store.StartStatus) {
	o.Helper()
	before := o.snapshot()
	a := o.tryStart(s)
	want(o.env, what+": status", a.Status, status)
	want(o.env, what+": siblings", len(a.Siblings), 0)
	want(o.env, what+": state after it", o.snapshot(), before)
}

func startStaleVersion(e *env) {
	o := e.owner("a")
	job := e.newJob()
	born, manual := o.planned(job), e.mustAddRun(job.ID, store.Trigger{})
	for _, run := range []store.Run{born, manual} {
		s := o.startOf(run)
		e.edit(job.ID, func(j *store.Job) { j.Param += "x" })
		o.wantNoStart("a start with an old version", s, store.StartStale)
		s.State = store.StateRefused
		o.wantNoStart("a refusal with an old version", s, store.StartStale)
		o.started(run)
	}
}

// startStopped stops the job in a way that cancels nothing.
func startStopped(e *env) {
	o := e.owner("a")
	job := e.newJob()
	born, manual := o.planned(job), e.mustAddRun(job.ID, store.Trigger{})
	api := e.mustAddRun(job.ID, store.Trigger{Type: store.TriggerAPI})
	p := o.plan(e.mustJob(job.ID))
	p.Stop = "broken"
	o.claim(p)
	o.wantNoStart("a start of a stopped job's schedule-born run", o.startOf(born), store.StartStale)
	o.started(manual)
	o.started(api)
}

// startManual takes a job's schedule away in a way that cancels nothing.
func startManual(e *env) {
	o := e.owner("a")
	job := e.newJob()
	born, by := o.planned(job), e.mustAddRun(job.ID, store.Trigger{})
	e.edit(job.ID, func(j *store.Job) { j.Schedule = schedule.Manual() })
	o.wantNoStart("a start of a manual job's schedule-born run", o.startOf(born), store.StartStale)
	o.started(by)
}

func startFenced(e *env) {
	o := e.owner("a")
	run := o.planned(e.newJob())
	b := o.overtakenBy("b")
	o.wantNoStart("a start of the former owner", o.startOf(run), store.StartFenced)
	o.wantNoStart("a refusal of the former owner", o.startOf(run, refused), store.StartFenced)
	b.started(run)
}

func startOtherShard(e *env) {
	o := e.owner("a")
	run := o.planned(e.jobIn(1))
	e.join("b")
	_, err := e.TakeShards(e.ctx, "b", o.shards[1:2])
	e.must(err)
	s := o.startOf(run)
	s.Shard, s.Epoch = 2, o.epoch(2)
	o.wantNoStart("a start under the epoch of another shard", s, store.StartFenced)
}

func startCancelled(e *env) {
	o := e.owner("a")
	ends := map[string]func(id int64){
		"a stop":                 func(id int64) { e.stop(id) },
		"a change of schedule":   func(id int64) { e.EditJob(e.ctx, id, replan("update", e.at(60), func(*store.Job) {})) },
		"the removal of its job": func(id int64) { e.must(e.RemoveJob(e.ctx, id)) },
	}
	for name, end := range ends {
		job := e.newJob()
		s := o.startOf(o.planned(job))
		end(job.ID)
		s.JobVersion = 2
		o.wantNoStart("a start after "+name, s, store.StartGone)
	}
}

func serial(s *store.Start) { s.Serial = true }

func startBusy(e *env) {
	o := e.owner("a")
	e.there("b")
	for _, addr := range []string{o.addr(), store.LocalAddress("b")} {
		job := e.newJob()
		runs := o.claim(o.plan(job, e.at(0), e.at(1), e.at(2)))
		first := o.started(runs[0], serial, to(addr))
		o.wantNoStart("a second run at "+addr, o.startOf(runs[1], serial, to(addr)), store.StartBusy)
		want(e, "start of another job", o.tryStart(o.startOf(o.planned(e.newJob()), serial, to(addr))).Status, store.StartOK)
		e.mustFinish(success(first))
		o.started(runs[1], serial, to(addr))
	}
}

func startBusyInBatch(e *env) {
	o := e.owner("a")
	runs := o.claim(o.plan(e.newJob(), e.at(0), e.at(1)))
	answers, err := o.Start(e.ctx, nil, []store.Start{o.startOf(runs[0], serial), o.startOf(runs[1], serial)})
	e.must(err)
	if len(answers) != 2 {
		e.Fatalf("%d answers for 2 starts", len(answers))
	}
	want(e, "statuses", []store.StartStatus{answers[0].Status, answers[1].Status}, []store.StartStatus{store.StartOK, store.StartBusy})
	e.wantRun("the second run", runs[1])
}

func startNotBusy(e *env) {
	o := e.owner("a")
	runs := o.claim(o.plan(e.newJob(), e.at(0), e.at(1), e.at(2), e.at(3), e.at(4), e.at(5)))
	o.started(runs[0], serial)
	o.started(runs[1])
	o.started(runs[2], serial, o.over("b"))
	o.started(runs[3], serial, to(remote))
	o.started(runs[4], serial, to(remote))
	o.started(runs[5], serial, o.over("c"))
}

// coverText is what runs are told whose place another one takes.
const coverText = "a later run took its place"

// covering has a start take the place of runs.
func covering(runs ...store.Run) func(*store.Start) {
	return func(s *store.Start) { s.Covers, s.HandleMsg = ids(runs), coverText }
}

func startCovers(e *env) {
	for _, target := range []func(*store.Start){func(*store.Start) {}, to(remote)} {
		o := e.owner("a")
		job := e.newJob(func(j *store.Job) { j.Retries = 3 })
		runs := o.claim(o.plan(job, e.at(0), e.at(1), e.at(2), e.at(3)))
		other := o.planned(e.newJob())
		s := o.startOf(runs[2], target, covering(runs[1], runs[0], other))
		answers, err := o.Start(e.ctx, nil, []store.Start{o.startOf(other), s})
		e.must(err)
		a := answers[1]
		want(e, "statuses", []store.StartStatus{answers[0].Status, a.Status}, []store.StartStatus{store.StartOK, store.StartOK})
		want(e, "state and text of the run", []any{a.Run.State, a.Run.HandleMsg}, []any{store.StateStarted, ""})
		want(e, "covered", ids(a.Covered), ids(runs[:2]))
		for _, r := range a.Covered {
			want(e, "state and text of a covered run", []any{r.State, r.HandleMsg}, []any{store.StateDiscarded, coverText})
			e.check(!r.Ended.IsZero() && r.Started.IsZero(), "Ended %v, Started %v: want ended without a start", r.Ended, r.Started)
			e.check(hasLine(r.TriggerMsg, coverText), "TriggerMsg %q lacks the reason", r.TriggerMsg)
			e.wantRun("a covered run", r)
		}
		e.wantRun("the run", a.Run)
		e.wantRun("a run that nobody covers", runs[3])
		want(e, "runs of the job", len(e.runsOf(job.ID)), len(runs))
		e.wantRun("a run of another job", answers[0].Run)
	}
}

func startCoversPlanned(e *env) {
	o := e.owner("a")
	job := e.newJob()
	runs := o.claim(o.plan(job, e.at(0), e.at(1), e.at(2)))
	run, killed, under := runs[0], e.mustKill(runs[1].ID, "x"), o.started(runs[2], to(remote))
	a := o.tryStart(o.startOf(run, to(remote), covering(killed, under)))
	want(e, "status", a.Status, store.StartOK)
	want(e, "covered", len(a.Covered), 0)
	e.wantRun("a killed run", killed)
	e.wantRun("a run that is under way", under)
}

func startCoversNot(e *env) {
	o := e.owner("a")
	job := e.newJob()
	runs := o.claim(o.plan(job, e.at(0), e.at(1)))
	early, run := runs[0], runs[1]
	o.wantNoStart("a stale start", o.startOf(run, covering(early), func(s *store.Start) { s.JobVersion = 7 }), store.StartStale)
	o.wantNoStart("a fenced start", o.startOf(run, covering(early), func(s *store.Start) { s.Epoch-- }), store.StartFenced)
	e.mustKill(run.ID, "x")
	o.wantNoStart("a start of a killed run", o.startOf(run, covering(early)), store.StartGone)
	e.wantRun("the other", early)
}

func startOrder(e *env) {
	o := e.owner("a")
	var starts []store.Start
	var statuses []store.StartStatus
	for i := range 12 {
		s := o.startOf(o.planned(e.newJob()))
		status := store.StartOK
		switch i % 4 {
		case 1:
			s.Epoch, status = s.Epoch+5, store.StartFenced
		case 2:
			s.JobVersion, status = 9, store.StartStale
		case 3:
			e.mustKill(s.RunID, "x")
			status = store.StartGone
		}
		starts, statuses = append(starts, s), append(statuses, status)
	}
	answers, err := o.Start(e.ctx, nil, starts)
	e.must(err)
	var got []store.StartStatus
	for i, a := range answers {
		got = append(got, a.Status)
		if a.Status == store.StartOK && i < len(starts) {
			want(e, "run of an answer", a.Run.ID, starts[i].RunID)
		}
		if a.Status == store.StartFenced || a.Status == store.StartStale {
			want(e, "run of an answer that has none", a.Run.ID, 0)
		}
	}
	want(e, "statuses", got, statuses)
}

func startTwice(e *env) {
	o := e.owner("a")
	run := o.planned(e.newJob())
	answers, err := o.Start(e.ctx, nil, []store.Start{o.startOf(run), o.startOf(run)})
	e.must(err)
	started := 0
	for _, a := range answers {
		if a.Status == store.StartOK {
			started++
		}
	}
	want(e, "answers and starts", []int{len(answers), started}, []int{2, 1})
}

func startBroadcast(e *env) {
	o := e.owner("a")
	e.there("b", "ab")
	run := o.planned(e.newJob())
	targets := []string{store.LocalAddress("b"), o.addr(), remote, store.LocalAddress("ab")}
	s := o.startOf(run, to(targets[0]), func(s *store.Start) { s.Targets, s.Param, s.Retries = targets, "p", 2 })
	a := o.tryStart(s)
	want(e, "status", a.Status, store.StartOK)
	parts := append([]store.Run{a.Run}, a.Siblings...)
	if len(parts) != len(targets) {
		e.Fatalf("a broadcast to %d addresses made %d runs", len(targets), len(parts))
	}
	seen := map[int64]bool{}
	for i, part := range parts {
		name := fmt.Sprintf("part %d", i)
		seen[part.ID] = true
		want(e, name+": sharding", part.Sharding, store.Sharding{Index: i, Total: len(targets)})
		want(e, name+": address", part.Address, targets[i])
		want(e, name+": taken", !part.Taken.IsZero(), i == 1)
		want(e, name+": trigger, job, app, shard", []any{part.TriggerID, part.JobID, part.App, part.Shard}, []any{run.ID, run.JobID, run.App, run.Shard})
		want(e, name+": state, type, instant", []any{part.State, part.Type, part.Scheduled}, []any{store.StateStarted, run.Type, run.Scheduled})
		want(e, name+": what it was started with", []any{part.Owner, part.Token, part.Handler, part.Block, part.Param, part.Retries, part.JobVersion},
			[]any{s.Owner, s.Token, s.Handler, s.Block, s.Param, s.Retries, s.JobVersion})
		e.check(!part.Created.IsZero() && !part.Started.IsZero(), "%s: Created %v, Started %v", name, part.Created, part.Started)
		e.wantRun(name, part)
	}
	want(e, "distinct IDs", len(seen), len(targets))
	want(e, "runs of the job", len(e.runsOf(run.JobID)), len(targets))
	want(e, "inbox of b", ids(e.mustInbox("b").Runs), []int64{run.ID})
}

// startBroadcastRemote: a part at a remote address is taken by nobody, and each has
// a result of its own.
func startBroadcastRemote(e *env) {
	o := e.owner("a")
	targets := []string{remote, remoteToo}
	run := o.planned(e.newJob())
	a := o.tryStart(o.startOf(run, to(remote), func(s *store.Start) { s.Targets = targets }))
	want(e, "status", a.Status, store.StartOK)
	parts := append([]store.Run{a.Run}, a.Siblings...)
	if len(parts) != 2 {
		e.Fatalf("a broadcast to two addresses made %d runs", len(parts))
	}
	for i, part := range parts {
		want(e, "address, state, owner", []any{part.Address, part.State, part.Owner}, []any{targets[i], store.StateStarted, "a"})
		e.check(part.Taken.IsZero(), "a part at %s is taken at %v", part.Address, part.Taken)
		e.wantRun("a part", part)
	}
	want(e, "parts that were dispatched", ids(e.mustDispatched(accepted(parts[1]), accepted(parts[0]))), []int64{parts[1].ID, parts[0].ID})
	for _, part := range parts {
		want(e, "accepted results", len(e.mustFinish(overWire(part.ID))), 1)
	}
}

func startBroadcastOne(e *env) {
	o := e.owner("a")
	run := o.planned(e.newJob())
	a := o.tryStart(o.startOf(run, func(s *store.Start) { s.Targets = []string{s.Address} }))
	want(e, "status, sharding, siblings", []any{a.Status, a.Run.Sharding, len(a.Siblings)},
		[]any{store.StartOK, store.Sharding{Index: 0, Total: 1}, 0})
	e.check(!a.Run.Taken.IsZero(), "its only part is not taken")
}

func startBroadcastFails(e *env) {
	o := e.owner("a")
	wide := func(s *store.Start) { s.Targets = []string{s.Address, remote} }
	run := o.planned(e.newJob())
	o.wantNoStart("a stale broadcast", o.startOf(run, wide, func(s *store.Start) { s.JobVersion = 7 }), store.StartStale)
	o.wantNoStart("a fenced broadcast", o.startOf(run, wide, func(s *store.Start) { s.Epoch-- }), store.StartFenced)
	e.mustKill(run.ID, "x")
	o.wantNoStart("a broadcast of a killed run", o.startOf(run, wide), store.StartGone)
}
