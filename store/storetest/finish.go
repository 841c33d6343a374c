package storetest

import (
	"slices"
	"strings"

	"github.com/xxljob/xxljob/store"
)

func finishCases() []testCase {
	return []testCase{
		{"StoresTheResult", finishStores},
		{"AResultNeedNotSayAnything", finishSilent},
		{"EveryFinalState", finishStates},
		{"FirstOfTwoIsAccepted", finishFirst},
		{"FirstOfTwoInOneBatchIsAccepted", finishFirstInBatch},
		{"OfConcurrentDuplicatesOneIsAccepted", finishConcurrent},
		{"AnswersInOrderGiven", finishOrder},
		{"AttachedResultsAreFenced", finishAttachedFence},
		{"WireResultsAreFencedByState", finishWireFence},
		{"OwnersResultsAreFenced", finishOwnerFence},
		{"OwnersResultsAreForTheStartThatTheyAreOf", finishOwnerStart},
		{"EpochDoesNotMatter", finishAnyEpoch},
		{"AfterLostIsNotedOnce", finishAfterLost},
		{"OfTheOwnerAfterLostIsNotNoted", finishOwnerAfterLost},
		{"AfterAnyOtherEndChangesNothing", finishAfterEnd},
	}
}

func finishStores(e *env) {
	o := e.owner("a")
	run := o.running(func(s *store.Start) { s.Msg = "first" })
	r := success(run)
	r.State, r.HandleMsg, r.TriggerMsg, r.NoRetry = store.StateFailed, "boom — 错", "second", true
	got := o.one(e.mustFinish(r))
	e.check(!got.Ended.IsZero() && !got.Ended.Before(got.Started), "Ended %v, Started %v", got.Ended, got.Started)
	e.check(hasLine(got.TriggerMsg, "first") && hasLine(got.TriggerMsg, "second"), "TriggerMsg %q: want both lines", got.TriggerMsg)
	run.State, run.HandleMsg, run.NoRetry, run.Ended, run.TriggerMsg = r.State, r.HandleMsg, true, got.Ended, got.TriggerMsg
	want(e, "ended run", got, run)
	e.wantRun("ended run", run)
}

// finishSilent: two successes that say nothing leave what else is said of the runs, and end the
// waiting of their jobs.
func finishSilent(e *env) {
	o := e.owner("a")
	var runs []store.Run
	var results []store.Result
	for range 2 {
		run := o.running(func(s *store.Start) { s.Msg = "first" })
		e.must(e.SetProgress(e.ctx, []store.Progress{{RunID: run.ID, Incarnation: "a", Token: run.Token, Percent: 40, Text: "under way"}}))
		runs = append(runs, run)
		results = append(results, store.Result{RunID: run.ID, Incarnation: "a", Token: run.Token, State: store.StateSucceeded})
	}
	got := e.mustFinish(results...)
	want(e, "accepted results", len(got), 2)
	for i, run := range runs {
		e.check(!got[i].Ended.IsZero() && !got[i].Ended.Before(got[i].Started), "Ended %v, Started %v", got[i].Ended, got[i].Started)
		run.State, run.Ended, run.Progress, run.ProgressText = store.StateSucceeded, got[i].Ended, 40, "under way"
		want(e, "ended run", got[i], run)
		e.wantRun("ended run", run)
	}
}

func finishStates(e *env) {
	o := e.owner("a")
	for _, state := range []store.State{store.StateSucceeded, store.StateFailed, store.StateTimedOut, store.StateKilled,
		store.StateLost, store.StateRefused, store.StateDiscarded, store.StateSnoozed} {
		r := success(o.running())
		r.State = state
		want(e, "accepted results", len(e.mustFinish(r)), 1)
		e.wantState("after the result", r.RunID, state)
	}
}

func finishFirst(e *env) {
	o := e.owner("a")
	run := o.running()
	first, second := success(run), success(run)
	second.State, second.HandleMsg = store.StateFailed, "other"
	got := o.one(e.mustFinish(first))
	want(e, "accepted second results", len(e.mustFinish(second, first, overWire(run.ID))), 0)
	e.wantRun("after the second result", got)
}

func finishFirstInBatch(e *env) {
	o := e.owner("a")
	run := o.running()
	first, second := success(run), success(run)
	second.State = store.StateFailed
	want(e, "accepted results", len(e.mustFinish(first, second)), 1)
	e.wantState("after both", run.ID, store.StateSucceeded)
}

func finishConcurrent(e *env) {
	o := e.owner("a")
	const callers = 8
	for range 20 {
		run := o.running()
		var accepted [callers]int
		var calls []func()
		for i := range callers {
			r := success(run)
			if i%2 == 1 {
				r = overWire(run.ID)
			}
			calls = append(calls, func() {
				accepted[i] = len(e.mustFinish(r))
			})
		}
		e.race(calls...)
		sum := 0
		for i := range callers {
			sum += accepted[i]
		}
		want(e, "accepted duplicates", sum, 1)
	}
}

func finishOrder(e *env) {
	o := e.owner("a")
	var results []store.Result
	var order []int64
	for range 6 {
		run := o.running()
		order = append(order, run.ID)
		results = append(results, success(run))
	}
	slices.Reverse(results)
	slices.Reverse(order)
	results = slices.Insert(results, 3, overWire(1<<53-1))
	results[1].Token++
	order = slices.Delete(order, 1, 2)
	want(e, "runs that accepted their results", ids(e.mustFinish(results...)), order)
}

// wantRefused checks that a result is not accepted and changes nothing.
func (e *env) wantRefused(what string, r store.Result) {
	e.Helper()
	before := e.snapshot()
	want(e, what+": accepted results", len(e.mustFinish(r)), 0)
	want(e, what+": state after it", e.snapshot(), before)
}

func finishAttachedFence(e *env) {
	o := e.owner("a")
	run := o.handedOver()
	bend := func(change func(*store.Result)) store.Result {
		r := success(run)
		change(&r)
		return r
	}
	e.wantRefused("another token", bend(func(r *store.Result) { r.Token++ }))
	e.wantRefused("another token, and nothing said", bend(func(r *store.Result) { r.Token, r.HandleMsg = r.Token+1, "" }))
	e.wantRefused("no token", bend(func(r *store.Result) { r.Token = 0 }))
	e.wantRefused("the starter, which is not the addressee", bend(func(r *store.Result) { r.Incarnation = "a" }))
	e.wantRefused("a token without an incarnation", bend(func(r *store.Result) { r.Incarnation = "" }))
	e.wantRefused("a part of the incarnation", bend(func(r *store.Result) { r.Incarnation = "bb" }))
	accepted := o.dispatched()
	e.wantRefused("an attached result for a dispatched run", store.Result{RunID: accepted.ID, Incarnation: "a", Token: accepted.Token, State: store.StateSucceeded})
	far := o.running(to(remote))
	e.wantRefused("an attached result for a remote run", store.Result{RunID: far.ID, Incarnation: "a", Token: far.Token, State: store.StateSucceeded})
	want(e, "accepted results of the addressee", len(e.mustFinish(success(run))), 1)
}

func finishWireFence(e *env) {
	o := e.owner("a")
	e.wantRefused("a planned run", overWire(o.planned(e.newJob()).ID))
	e.wantRefused("an added run", overWire(e.mustAddRun(e.newJob().ID, store.Trigger{}).ID))
	e.wantRefused("a skipped run", overWire(o.one(o.claim(o.skip(e.newJob()))).ID))
	e.wantRefused("no run", overWire(1<<53-1))
	for _, run := range []store.Run{o.running(to(remote)), o.dispatched()} {
		want(e, "accepted results of a run that is "+run.State.String(), len(e.mustFinish(overWire(run.ID))), 1)
	}
}

// concluded is what the owner of a start concludes about it.
func concluded(run store.Run) store.Result {
	return store.Result{RunID: run.ID, Owner: run.Owner, Token: run.Token, State: store.StateFailed, HandleMsg: "refused"}
}

func finishOwnerFence(e *env) {
	o := e.owner("a")
	o.there("b")
	runs := map[string]store.Run{"own": o.running(), "handed over": o.handedOver(), "remote": o.running(to(remote)), "dispatched": o.dispatched()}
	for name, run := range runs {
		bend := func(change func(*store.Result)) store.Result {
			r := concluded(run)
			change(&r)
			return r
		}
		e.wantRefused(name+": another token", bend(func(r *store.Result) { r.Token++ }))
		e.wantRefused(name+": no token", bend(func(r *store.Result) { r.Token = 0 }))
		e.wantRefused(name+": another node, which is the addressee of one", bend(func(r *store.Result) { r.Owner = "b" }))
		e.wantRefused(name+": a token alone", bend(func(r *store.Result) { r.Owner = "" }))
		e.wantRefused(name+": more than the owner's name", bend(func(r *store.Result) { r.Owner = "aa" }))
		e.wantRefused(name+": no final state", bend(func(r *store.Result) { r.State = store.StateDispatched }))
		got := o.one(e.mustFinish(concluded(run)))
		want(e, name+": state and message", []any{got.State, got.HandleMsg}, []any{store.StateFailed, "refused"})
		e.wantRun(name+": after the result", got)
		e.wantRefused(name+": a second result", concluded(run))
	}
	batch := []store.Run{o.running(to(remote)), o.running(), o.handedOver(), o.running(to(remote)), o.dispatched()}
	wrong := concluded(batch[3])
	wrong.Token++
	accepted := e.mustFinish(concluded(batch[0]), success(batch[1]), concluded(batch[2]), wrong, overWire(batch[4].ID))
	want(e, "runs that accepted one of the results of all three kinds", ids(accepted), []int64{batch[0].ID, batch[1].ID, batch[2].ID, batch[4].ID})
}

// finishOwnerStart: what an owner concluded about a start says nothing about the
// next one, nor about a run that has another owner by now.
func finishOwnerStart(e *env) {
	o := e.owner("a")
	run := o.running(to(remote))
	back := o.one(e.mustSettle(o.verdict(run, store.StatePlanned)))
	e.wantRefused("a run that was put back", concluded(run))
	again := o.started(back, to(remote))
	e.wantRefused("a run that was started again", concluded(run))
	b := o.overtakenBy("b")
	v := b.verdict(again, store.StateStarted)
	v.NewOwner, v.NewToken = "b", again.Token
	adopted := o.one(e.mustSettle(v))
	e.wantRefused("a run that was adopted", concluded(again))
	want(e, "accepted results of the new owner", len(e.mustFinish(concluded(adopted))), 1)
}

func finishAnyEpoch(e *env) {
	o := e.owner("a")
	run := o.running()
	o.overtakenBy("b")
	want(e, "accepted results after a take-over", len(e.mustFinish(success(run))), 1)
}

func finishAfterLost(e *env) {
	o := e.owner("a")
	results := map[string]store.Result{}
	attached := o.running()
	results["attached"] = success(attached)
	far := o.running(to(remote))
	results["wire"] = overWire(far.ID)
	e.mustSettle(o.verdict(attached, store.StateLost), o.verdict(far, store.StateLost))
	refused := o.running(to(remote))
	results["wire, refused"] = overWire(refused.ID)
	said := overWire(refused.ID)
	said.State = store.StateRefused
	want(e, "accepted refusals", len(e.mustFinish(said)), 1)
	for name, r := range results {
		lost := e.mustRun(r.RunID)
		again := r // a shutdown that is reported once more
		again.State = store.StateLost
		want(e, name+": accepted reports of a loss after lost", len(e.mustFinish(again)), 0)
		e.wantRun(name+": after a report of what is known", lost)
		want(e, name+": accepted results after lost", len(e.mustFinish(r)), 0)
		noted := e.mustRun(r.RunID)
		e.check(strings.HasPrefix(noted.TriggerMsg, lost.TriggerMsg) && strings.HasSuffix(noted.TriggerMsg, "a result came after the run was "+lost.State.String()+": succeeded"),
			"%s: TriggerMsg %q after %q: want a note added", name, noted.TriggerMsg, lost.TriggerMsg)
		e.check(noted.LateNoted && !lost.LateNoted, "%s: LateNoted %v after %v", name, noted.LateNoted, lost.LateNoted)
		want(e, name+": accepted results", len(e.mustFinish(r, r)), 0)
		e.wantRun(name+": after the same result again", noted)
		noted.TriggerMsg, noted.LateNoted = lost.TriggerMsg, false
		want(e, name+": the rest of the run", noted, lost)
	}
}

// finishOwnerAfterLost: no executor has ended the run, so there is nothing that
// somebody who reads of the loss would want to know.
func finishOwnerAfterLost(e *env) {
	o := e.owner("a")
	for _, run := range []store.Run{o.running(), o.running(to(remote))} {
		e.mustSettle(o.verdict(run, store.StateLost))
		e.wantRefused("a result by the owner after lost", concluded(run))
		before := e.mustRun(run.ID)
		e.check(!before.LateNoted, "LateNoted of what the owner has concluded")
		want(e, "accepted results after lost", len(e.mustFinish(concluded(run), overWire(run.ID))), 0)
		after := e.mustRun(run.ID)
		e.check(after.TriggerMsg != before.TriggerMsg, "TriggerMsg %q: want the note of the executor's result", after.TriggerMsg)
	}
}

func finishAfterEnd(e *env) {
	o := e.owner("a")
	for _, state := range []store.State{store.StateSucceeded, store.StateFailed, store.StateTimedOut, store.StateKilled, store.StateRefused, store.StateDiscarded} {
		r := success(o.running())
		r.State = state
		e.mustFinish(r)
		e.wantRefused("a result after "+state.String(), r)
		e.wantRefused("a wire result after "+state.String(), overWire(r.RunID))
	}
}
