package storetest

import (
	"math"
	"strings"

	"github.com/xxljob/xxljob/store"
)

func progressCases() []testCase {
	return []testCase{
		{"ShowsInTheRun", progressShows},
		{"TheLastStays", progressLast},
		{"TextsAreKeptWhole", progressTexts},
		{"AttachedIsFenced", progressAttached},
		{"ElsewhereIsFencedByTheStart", progressElsewhere},
		{"OfEndedRunsChangesNothing", progressEnded},
		{"OfUnknownRunsIsIgnored", progressUnknown},
		{"OfManyRunsInOneBatch", progressBatch},
		{"ResultsCarryTheLast", progressResult},
		{"ARunThatIsPutBackHasNone", progressPutBack},
		{"ComesBeforeTheEndOrNotAtAll", progressRace},
	}
}

// progressOf is what the executor of a run says of it.
func progressOf(run store.Run, percent int, text string) store.Progress {
	p := store.Progress{RunID: run.ID, Token: run.Token, Percent: percent, Text: text}
	if inc, attached := store.LocalIncarnation(run.Address); attached {
		p.Incarnation = inc
	}
	return p
}

func (e *env) mustProgress(list ...store.Progress) {
	e.Helper()
	e.must(e.SetProgress(e.ctx, list))
}

// wantDeaf checks that progress changes nothing.
func (e *env) wantDeaf(what string, p store.Progress) {
	e.Helper()
	before := e.snapshot()
	e.mustProgress(p)
	want(e, what+": state after it", e.snapshot(), before)
}

// underWay are runs of which somebody can say how far they are.
func (o *owner) underWay() map[string]store.Run {
	taken := o.handedOver()
	return map[string]store.Run{"own": o.running(), "taken": o.one(o.mustTake("b", taken.ID)), "remote": o.running(to(remote)), "dispatched": o.dispatched()}
}

func progressShows(e *env) {
	o := e.owner("a")
	for name, run := range o.underWay() {
		e.mustProgress(progressOf(run, 40, "2 of 5"))
		run.Progress, run.ProgressText = 40, "2 of 5"
		e.wantRun("a run that is "+name, run)
		want(e, "a run that is "+name+", in a list", e.mustRuns(store.RunFilter{JobID: run.JobID}), []store.Run{run})
		killed := e.mustKill(run.ID, "unwanted")
		want(e, "progress of a killed run", []any{killed.Progress, killed.ProgressText}, []any{40, "2 of 5"})
	}
}

func progressLast(e *env) {
	run := e.owner("a").running()
	for _, step := range [][]store.Progress{
		{progressOf(run, 40, "once")},
		{progressOf(run, 30, "less")},
		{progressOf(run, 0, "begun anew")},
		{progressOf(run, 100, "")},
		{progressOf(run, 1, "one"), progressOf(run, 3, "three"), progressOf(run, 2, "two")},
		{progressOf(run, 5, "five"), func() store.Progress { p := progressOf(run, 6, "of another start"); p.Token++; return p }()},
		{progressOf(run, 0, "")},
	} {
		e.mustProgress(step...)
		for _, p := range step {
			if p.Token == run.Token {
				run.Progress, run.ProgressText = p.Percent, p.Text
			}
		}
		e.wantRun("after the next", run)
	}
}

func progressTexts(e *env) {
	run := e.owner("a").running()
	for _, text := range []string{strings.Repeat("错", 500) + "...", `"quotes", 'these' and \`, "<b>\u00e9 \U0001F600{}", " ", "null", "NULL"} {
		e.mustProgress(progressOf(run, 1, text))
		want(e, "text", e.mustRun(run.ID).ProgressText, text)
	}
}

func progressAttached(e *env) {
	o := e.owner("a")
	e.there("b", "c")
	run := o.handedOver()
	run = o.one(e.mustTake("b", run.ID))
	bend := func(change func(*store.Progress)) store.Progress {
		p := progressOf(run, 50, "half")
		change(&p)
		return p
	}
	e.wantDeaf("another token", bend(func(p *store.Progress) { p.Token++ }))
	e.wantDeaf("no token", bend(func(p *store.Progress) { p.Token = 0 }))
	e.wantDeaf("the owner's incarnation", bend(func(p *store.Progress) { p.Incarnation = "a" }))
	e.wantDeaf("a third incarnation", bend(func(p *store.Progress) { p.Incarnation = "c" }))
	e.wantDeaf("an incarnation in capitals", bend(func(p *store.Progress) { p.Incarnation = "B" }))
	e.wantDeaf("another run's id", bend(func(p *store.Progress) { p.RunID = o.running().ID }))
	for name, r := range map[string]store.Run{"remote": o.running(to(remote)), "dispatched": o.dispatched()} {
		e.wantDeaf("an attached executor about a run that is "+name, store.Progress{RunID: r.ID, Incarnation: "a", Token: r.Token, Percent: 1})
	}
	moved := o.running()
	want(e, "moved", o.tryReaddress(o.readdress(moved, store.LocalAddress("c"))), true)
	e.wantDeaf("the former addressee", progressOf(moved, 1, ""))
	e.mustProgress(bend(func(*store.Progress) {}))
	run.Progress, run.ProgressText = 50, "half"
	e.wantRun("after the right one", run)
}

func progressElsewhere(e *env) {
	o := e.owner("a")
	for name, run := range map[string]store.Run{"remote": o.running(to(remote)), "dispatched": o.dispatched()} {
		p := progressOf(run, 50, "half")
		p.Token++
		e.wantDeaf("another start of a run that is "+name, p)
		p.Token = 0
		e.wantDeaf("no start of a run that is "+name, p)
		e.mustProgress(progressOf(run, 50, "half"))
		run.Progress, run.ProgressText = 50, "half"
		e.wantRun("a run that is "+name, run)
	}
	planned := o.planned(e.newJob())
	e.wantDeaf("a planned run", store.Progress{RunID: planned.ID, Percent: 1})
}

func progressEnded(e *env) {
	o := e.owner("a")
	for _, state := range []store.State{store.StateSucceeded, store.StateFailed, store.StateTimedOut, store.StateKilled, store.StateRefused, store.StateDiscarded} {
		run := o.running()
		e.mustProgress(progressOf(run, 40, "so far"))
		r := success(run)
		r.State = state
		ended := o.one(e.mustFinish(r))
		want(e, "progress of a run that is "+state.String(), []any{ended.Progress, ended.ProgressText}, []any{40, "so far"})
		e.wantDeaf("a run that is "+state.String(), progressOf(run, 50, "further"))
	}
	lost := o.running()
	e.mustProgress(progressOf(lost, 40, "so far"))
	e.mustSettle(o.verdict(lost, store.StateLost))
	e.wantDeaf("a lost run", progressOf(lost, 50, "further"))
	want(e, "progress of a lost run", e.mustRun(lost.ID).Progress, 40)
}

func progressUnknown(e *env) {
	run := e.owner("a").running()
	list := []store.Progress{progressOf(run, 1, "")}
	for _, id := range []int64{math.MinInt64, -1, 0, 1, 12345, 1 << 31, 1<<53 - 1, math.MaxInt64 - 8191, math.MaxInt64} {
		p := store.Progress{RunID: id, Incarnation: "a", Token: run.Token, Percent: 50}
		e.wantDeaf("an unknown run", p)
		list = append(list, p)
	}
	list = append(list, progressOf(run, 50, "among them"))
	e.mustProgress(list...)
	want(e, "progress of the one that is known", e.mustRun(run.ID).ProgressText, "among them")
}

func progressBatch(e *env) {
	o := e.owner("a")
	var list []store.Progress
	var runs []store.Run
	for i := range 40 {
		for _, run := range []store.Run{o.running(), o.dispatched()} {
			list = append(list, progressOf(run, i, strings.Repeat("x", i)))
			run.Progress, run.ProgressText = i, strings.Repeat("x", i)
			runs = append(runs, run)
		}
	}
	list[3].Token++
	runs[3].Progress, runs[3].ProgressText = 0, ""
	e.mustProgress(list...)
	for _, run := range runs {
		e.wantRun("a run of the batch", run)
	}
}

func progressResult(e *env) {
	o := e.owner("a")
	for name, run := range o.underWay() {
		e.mustProgress(progressOf(run, 40, "so far"))
		r := success(run)
		if name == "dispatched" || name == "remote" {
			r = overWire(run.ID)
		}
		r.Progress, r.ProgressText = 90, "at last"
		refused := r
		refused.Incarnation, refused.Token = "nobody", run.Token
		e.wantRefused("a result of somebody else, of a run that is "+name, refused)
		got := o.one(e.mustFinish(r))
		want(e, "progress with the result of a run that is "+name, []any{got.Progress, got.ProgressText}, []any{90, "at last"})
		e.wantRun("a run that was "+name, got)
	}
	percent, text := o.running(), o.running()
	e.mustProgress(progressOf(percent, 40, "so far"), progressOf(text, 40, "so far"))
	one, two := success(percent), success(text)
	one.Progress, two.ProgressText = 90, "at last"
	e.mustFinish(one, two)
	for id, is := range map[int64][]any{percent.ID: {90, ""}, text.ID: {0, "at last"}} {
		got := e.mustRun(id)
		want(e, "progress with a result that has only one of the two", []any{got.Progress, got.ProgressText}, is)
	}
}

func progressPutBack(e *env) {
	o := e.owner("a")
	run := o.running(to(remote))
	e.mustProgress(progressOf(run, 40, "so far"))
	run.Progress, run.ProgressText = 40, "so far"
	back := o.one(e.mustSettle(o.verdict(run, store.StatePlanned)))
	want(e, "state and progress of a run that was put back", []any{back.State, back.Progress, back.ProgressText}, []any{store.StatePlanned, 0, ""})
	again := o.started(back, to(remote))
	e.wantDeaf("the former start", progressOf(run, 50, "further"))
	want(e, "progress of the next start", e.mustRun(again.ID).Progress, 0)
}

// progressRace: whoever is first, a run that has ended has what its result said.
func progressRace(e *env) {
	o := e.owner("a")
	for range 10 {
		run := o.running()
		r := success(run)
		r.Progress = 100
		e.race(
			func() { e.mustProgress(progressOf(run, 50, "so far")) },
			func() { e.mustFinish(r) },
			func() { e.mustProgress(progressOf(run, 60, "so far")) },
		)
		got := e.mustRun(run.ID)
		want(e, "state and progress", []any{got.State, got.Progress, got.ProgressText}, []any{store.StateSucceeded, 100, ""})
	}
}
