package storetest

import (
	"strings"

	"github.com/xxljob/xxljob/store"
)

func settleCases() []testCase {
	return []testCase{
		{"ToPlannedGivesTheRunBack", settlePlanned},
		{"ToPlannedForgetsTheGoneNode", settleForgets},
		{"ToPlannedEndsAKilledRun", settleKilled},
		{"ToPlannedCancelsWithoutAJob", settleNoJob},
		{"ToPlannedCancelsAStoppedJobsRun", settleStopped},
		{"ToLostEndsTheRun", settleLost},
		{"ToStartedAdoptsTheRun", settleAdopts},
		{"ToStartedAdoptsARemoteRun", settleAdoptsRemote},
		{"ToLostEndsARemoteRun", settleLosesRemote},
		{"MismatchChangesNothing", settleMismatch},
		{"OldEpochSettlesNone", settleOldEpoch},
		{"ReturnsOnlyWhatItChanged", settleReturns},
		{"ToPlannedClearsTheBootID", settleClearsBoot},
		{"ToStartedAndToLostKeepTheBootID", settleKeepsBoot},
	}
}

// handedOver is a started run that waits for node b to take it.
func (o *owner) handedOver() store.Run { return o.running(o.over("b")) }

func settlePlanned(e *env) {
	o := e.owner("a")
	for name, run := range map[string]store.Run{"untaken": o.handedOver(), "taken": o.running()} {
		got := o.one(e.mustSettle(o.verdict(run, store.StatePlanned)))
		want(e, name+": state", got.State, store.StatePlanned)
		want(e, name+": instant, type, trigger", []any{got.Scheduled, got.Type, got.TriggerID}, []any{run.Scheduled, run.Type, run.TriggerID})
		e.check(got.Ended.IsZero() && got.Taken.IsZero(), "%s: Ended %v, Taken %v, want neither", name, got.Ended, got.Taken)
		e.check(hasLine(got.TriggerMsg, "settled"), "%s: TriggerMsg %q lacks the message", name, got.TriggerMsg)
		e.wantRun(name, got)
		want(e, name+": results accepted under the old start", len(e.mustFinish(success(run), overWire(run.ID))), 0)
		again := o.started(got)
		want(e, name+": results accepted under the old token", len(e.mustFinish(success(run))), 0)
		want(e, name+": results accepted under the new token", len(e.mustFinish(success(again))), 1)
	}
}

// settleForgets: a run given back holds nothing of the node it was taken from.
func settleForgets(e *env) {
	o := e.owner("a")
	run := o.handedOver()
	b := o.overtakenBy("b")
	e.mustSettle(b.verdict(run, store.StatePlanned))
	want(e, "inbox of the former addressee", len(e.mustInbox("b").Runs), 0)
	want(e, "taken by the former addressee", len(e.mustTake("b", run.ID)), 0)
	want(e, "planned runs", ids(b.allPlanned()), []int64{run.ID})
	e.must(e.Bury(e.ctx, "a", 1))
	e.check(e.node(e.mustBeat("b"), "a") == nil, "the gone node is kept because of a run that was given back")
}

func settleKilled(e *env) {
	o := e.owner("a")
	run := e.mustKill(o.handedOver().ID, "unwanted")
	got := o.one(e.mustSettle(o.verdict(run, store.StatePlanned)))
	want(e, "state", got.State, store.StateKilled)
	e.check(!got.Ended.IsZero(), "Ended is not set")
	e.wantRun("killed run", got)
}

func settleNoJob(e *env) {
	o := e.owner("a")
	born := o.handedOver()
	manual := o.started(e.mustAddRun(e.newJob().ID, store.Trigger{}), o.over("b"))
	for _, run := range []store.Run{born, manual} {
		e.must(e.RemoveJob(e.ctx, run.JobID))
		got := o.one(e.mustSettle(o.verdict(run, store.StatePlanned)))
		want(e, "state of a "+string(run.Type)+" run", got.State, store.StateCancelled)
		e.check(!got.Ended.IsZero(), "Ended is not set")
	}
}

func settleStopped(e *env) {
	o := e.owner("a")
	job := e.newJob()
	born := o.started(o.planned(job), o.over("b"))
	manual := o.started(e.mustAddRun(job.ID, store.Trigger{}), o.over("b"))
	e.stop(job.ID)
	want(e, "state of a schedule-born run", o.one(e.mustSettle(o.verdict(born, store.StatePlanned))).State, store.StateCancelled)
	want(e, "state of a manual run", o.one(e.mustSettle(o.verdict(manual, store.StatePlanned))).State, store.StatePlanned)
}

func settleLost(e *env) {
	o := e.owner("a")
	run := o.running()
	got := o.one(e.mustSettle(o.verdict(run, store.StateLost)))
	e.check(!got.Ended.IsZero(), "Ended is not set")
	e.check(hasLine(got.TriggerMsg, "settled"), "TriggerMsg %q lacks the message", got.TriggerMsg)
	run.State, run.Ended, run.TriggerMsg = store.StateLost, got.Ended, got.TriggerMsg
	want(e, "lost run", got, run)
	e.wantRun("lost run", run)
}

func settleAdopts(e *env) {
	o := e.owner("a")
	run := o.handedOver()
	b := o.overtakenBy("c")
	v := b.verdict(run, store.StateStarted)
	v.NewOwner, v.NewToken = "c", run.Token+100
	got := o.one(e.mustSettle(v))
	want(e, "state, owner, token, address", []any{got.State, got.Owner, got.Token, got.Address},
		[]any{store.StateStarted, "c", run.Token + 100, run.Address})
	e.check(got.Taken.IsZero(), "an adopted run became taken")
	e.wantRun("adopted run", got)
	want(e, "the same verdict again", len(e.mustSettle(v)), 0)
	taken := o.one(e.mustTake("b", run.ID))
	want(e, "token of the taken run", taken.Token, run.Token+100)
	want(e, "results accepted under the old token", len(e.mustFinish(success(run))), 0)
	want(e, "results accepted under the new token", len(e.mustFinish(success(taken))), 1)
}

// remoteOf is a started run at a remote address whose owner is gone, as its
// successor finds it.
func (e *env) remoteOf(gone, successor string) (store.Run, *owner) {
	e.Helper()
	o := e.owner(gone)
	run := o.running(to(remote))
	b := o.overtakenBy(successor)
	e.must(e.Bury(e.ctx, gone, 1))
	found, err := e.StartedBy(e.ctx, b.shards, []string{gone}, 0, 10)
	e.must(err)
	want(e, "started runs of the gone owner", found, []store.Run{run})
	return run, b
}

// settleAdoptsRemote: the executor goes on with the run, whoever awaits its result.
func settleAdoptsRemote(e *env) {
	run, b := e.remoteOf("a", "b")
	v := b.verdict(run, store.StateStarted)
	v.NewOwner, v.NewToken = "b", run.Token+100
	got := b.one(e.mustSettle(v))
	want(e, "lines of TriggerMsg", strings.Split(got.TriggerMsg, "\n"), []string{"settled"})
	adopted := run
	adopted.Owner, adopted.Token, adopted.TriggerMsg = "b", run.Token+100, got.TriggerMsg
	want(e, "adopted run", got, adopted)
	e.wantRun("adopted run", got)
	for name, list := range map[string][]int64{"a": nil, "b": {run.ID}} {
		found, err := e.StartedBy(e.ctx, b.shards, []string{name}, 0, 10)
		e.must(err)
		want(e, "started runs of "+name, ids(found), list)
	}
	e.must(e.Bury(e.ctx, "a", 1))
	e.check(e.node(e.mustBeat("b"), "a") == nil, "the gone node is kept because of a run that was adopted")
	want(e, "runs dispatched under the old start", len(e.mustDispatched(accepted(run))), 0)
	want(e, "runs dispatched under the new start", len(e.mustDispatched(accepted(got))), 1)
	want(e, "accepted results", len(e.mustFinish(overWire(run.ID))), 1)
}

func settleLosesRemote(e *env) {
	run, b := e.remoteOf("a", "b")
	got := b.one(e.mustSettle(b.verdict(run, store.StateLost)))
	e.check(!got.Ended.IsZero(), "Ended is not set")
	run.State, run.Ended, run.TriggerMsg = store.StateLost, got.Ended, got.TriggerMsg
	want(e, "lost run", got, run)
	e.wantRun("lost run", run)
	found, err := e.StartedBy(e.ctx, b.shards, []string{"a", "b"}, 0, 10)
	e.must(err)
	want(e, "started runs", len(found), 0)
}

func settleMismatch(e *env) {
	o := e.owner("a")
	run, taken := o.handedOver(), o.running()
	ended := o.running()
	e.mustFinish(success(ended))
	planned, accepted := o.planned(e.newJob()), o.dispatched()
	type mismatch struct {
		name string
		run  store.Run
		bend func(*store.Verdict)
	}
	cases := []mismatch{
		{"another owner", run, func(v *store.Verdict) { v.Owner = "b" }},
		{"another token", run, func(v *store.Verdict) { v.Token++ }},
		{"a run taken since", taken, func(v *store.Verdict) { v.Taken = false }},
		{"a run that is not taken", run, func(v *store.Verdict) { v.Taken = true }},
		{"an old epoch", run, func(v *store.Verdict) { v.Epoch-- }},
		{"a later epoch", run, func(v *store.Verdict) { v.Epoch++ }},
		{"no run", run, func(v *store.Verdict) { v.RunID += 1_000_000 }},
		{"an ended run", ended, func(*store.Verdict) {}},
		{"a planned run", planned, func(*store.Verdict) {}},
		{"a dispatched run", accepted, func(*store.Verdict) {}},
	}
	before := e.snapshot()
	for _, c := range cases {
		for _, to := range []store.State{store.StatePlanned, store.StateLost, store.StateStarted} {
			v := o.verdict(c.run, to)
			v.NewOwner, v.NewToken = "a", 12345
			c.bend(&v)
			want(e, "Settle of "+c.name+" to "+to.String(), len(e.mustSettle(v)), 0)
		}
		want(e, "state after Settle of "+c.name, e.snapshot(), before)
	}
}

func settleOldEpoch(e *env) {
	o := e.owner("a")
	run := o.handedOver()
	b := o.overtakenBy("b")
	want(e, "runs settled by the former owner", len(e.mustSettle(o.verdict(run, store.StateLost))), 0)
	e.wantRun("after it", run)
	want(e, "runs settled by the new owner", len(e.mustSettle(b.verdict(run, store.StateLost))), 1)
}

func settleReturns(e *env) {
	o := e.owner("a")
	var verdicts []store.Verdict
	want2 := map[int64]bool{}
	for i := range 8 {
		v := o.verdict(o.handedOver(), store.StateLost)
		if i%2 == 0 {
			v.Token++
		} else {
			want2[v.RunID] = true
		}
		verdicts = append(verdicts, v)
	}
	got := map[int64]bool{}
	for _, run := range e.mustSettle(verdicts...) {
		got[run.ID] = true
		e.wantRun("a settled run", run)
	}
	want(e, "runs settled", got, want2)
}
