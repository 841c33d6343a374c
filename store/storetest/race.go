package storetest

import (
	"fmt"
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// The guards of the promises, each with two parties at the same time. Which of
// them comes first is left to chance, so every race is run many times.
func raceCases() []testCase {
	return []testCase{
		{"ClaimersWithOneReadInsertOneSet", raceClaimers},
		{"StartersOfOneRun", raceStarters},
		{"SerialStartersOfOneJob", raceSerial},
		{"ClaimAgainstTakeOver", raceClaimTakeOver},
		{"StartAgainstTakeOver", raceStartTakeOver},
		{"SettleAgainstTakeOver", raceSettleTakeOver},
		{"ReaddressAgainstTake", raceReaddressTake},
		{"EditAgainstClaim", raceEditClaim},
		{"EditAgainstStart", raceEditStart},
		{"EditNearInstants", raceEditNear},
		{"CountOfRuns", raceCount},
		{"RemoveAgainstClaimAndAdd", raceRemove},
		{"EditsOfOneVersion", raceEdits},
		{"FinishAgainstLost", raceFinishLost},
		{"TakeAgainstGivingBack", raceTakeSettle},
		{"KillAgainstStart", raceKillStart},
		{"LastTwoRunsFinishTheJob", raceLastRuns},
		{"StartAgainstBurial", raceStartBurial},
		{"ReaddressAgainstBurial", raceReaddressBurial},
	}
}

func raceClaimers(e *env) {
	o := e.owner("a")
	for range rounds {
		job := e.newJob()
		p := o.plan(job, e.at(0), e.at(1))
		const claimers = 4
		var inserted [claimers]int
		var calls []func()
		for i := range claimers {
			calls = append(calls, func() { inserted[i] = len(o.claim(p)) })
		}
		e.race(calls...)
		sum := 0
		for _, n := range inserted {
			sum += n
		}
		want(e, "runs returned to all claimers", sum, 2)
		want(e, "runs inserted", len(e.runsOf(job.ID)), 2)
	}
}

func raceStarters(e *env) {
	o := e.owner("a")
	for range rounds {
		run := o.planned(e.newJob())
		const starters = 4
		var answers [starters]store.Started
		var calls []func()
		for i := range starters {
			s := o.startOf(run, func(s *store.Start) { s.Targets = []string{s.Address, remote} })
			calls = append(calls, func() { answers[i] = o.tryStart(s) })
		}
		e.race(calls...)
		var won []int64
		for _, a := range answers {
			if a.Status == store.StartOK {
				won = append(won, a.Run.Token)
			}
		}
		if len(won) != 1 {
			e.Errorf("starts that succeeded: %d, want 1", len(won))
			continue
		}
		want(e, "token of the run", e.mustRun(run.ID).Token, won[0])
		want(e, "parts of the broadcast", len(e.runsOf(run.JobID)), 2)
	}
}

func raceSerial(e *env) {
	o := e.owner("a")
	for range rounds {
		runs := o.claim(o.plan(e.newJob(), e.at(0), e.at(1)))
		starts := []store.Start{o.startOf(runs[0], serial), o.startOf(runs[1], serial)}
		e.race(func() { o.tryStart(starts[0]) }, func() { o.tryStart(starts[1]) })
		for _, s := range starts {
			o.tryStart(s) // a start that found a lock is tried again
		}
		got := e.mustRuns(store.RunFilter{JobID: runs[0].JobID, States: []store.State{store.StateStarted}})
		want(e, "serial runs started at one address", len(got), 1)
	}
}

// raceClaimTakeOver: what the former owner claims is seen by the new one, or
// is not there.
func raceClaimTakeOver(e *env) {
	o := e.owner("n0")
	for i := range rounds {
		job := e.newJob()
		p := o.plan(job, e.now)
		var claimed, seen []store.Run
		b := &owner{env: e}
		e.race(
			func() { claimed = o.claim(p) },
			func() {
				b = o.overtakenBy(fmt.Sprintf("n%d", i+1))
				seen = b.allPlanned()
			},
		)
		want(e, "runs that the new owner saw against those claimed", ids(seen), ids(claimed))
		want(e, "runs in the store against those claimed", ids(e.runsOf(job.ID)), ids(claimed))
		want(e, "the job was advanced", e.mustJob(job.ID).Next.After(e.now), len(claimed) == 1)
		e.must(e.RemoveJob(e.ctx, job.ID))
		o = b
	}
}

func raceStartTakeOver(e *env) {
	o := e.owner("n0")
	for i := range rounds {
		run := o.planned(e.newJob())
		s := o.startOf(run)
		var answer store.Started
		var seen store.State
		var b *owner
		e.race(
			func() { answer = o.tryStart(s) },
			func() {
				b = o.overtakenBy(fmt.Sprintf("n%d", i+1))
				seen = e.mustRun(run.ID).State
			},
		)
		started := answer.Status == store.StartOK
		want(e, "the new owner saw the run started", seen == store.StateStarted, started)
		want(e, "the run is started", e.mustRun(run.ID).State == store.StateStarted, started)
		o = b
	}
}

func raceSettleTakeOver(e *env) {
	o := e.owner("n0")
	for i := range rounds {
		run := o.handedOver()
		v := o.verdict(run, store.StateLost)
		var settled []store.Run
		var seen store.State
		var b *owner
		e.race(
			func() { settled = e.mustSettle(v) },
			func() {
				b = o.overtakenBy(fmt.Sprintf("n%d", i+1))
				seen = e.mustRun(run.ID).State
			},
		)
		want(e, "the new owner saw the run lost", seen == store.StateLost, len(settled) == 1)
		want(e, "the run is lost", e.mustRun(run.ID).State == store.StateLost, len(settled) == 1)
		o = b
	}
}

func raceReaddressTake(e *env) {
	o := e.owner("a")
	for range rounds {
		run := o.handedOver()
		var moved bool
		var taken []store.Run
		e.race(
			func() { moved = o.tryReaddress(o.readdress(run, remote)) },
			func() { taken = e.mustTake("b", run.ID) },
		)
		want(e, "moved or taken, not both", moved, len(taken) == 0)
		got := e.mustRun(run.ID)
		want(e, "address and taken", []any{got.Address == remote, !got.Taken.IsZero()}, []any{moved, !moved})
	}
}

func raceEditClaim(e *env) {
	o := e.owner("a")
	for range rounds {
		job := e.newJob()
		p := o.plan(job, e.now)
		var claimed []store.Run
		e.race(
			func() { claimed = o.claim(p) },
			func() {
				_, err := e.EditJob(e.ctx, job.ID, replan("update", e.at(300), func(j *store.Job) { j.Param = "new" }))
				e.must(err)
			},
		)
		got := e.mustJob(job.ID)
		want(e, "Next and Version after the edit", []any{got.Next, got.Version}, []any{e.at(300), int64(2)})
		for _, run := range claimed {
			e.wantState("a run claimed before the edit", run.ID, store.StateCancelled)
		}
		want(e, "runs in the store", ids(e.runsOf(job.ID)), ids(claimed))
	}
}

// raceEditStart lets an edit race with the start of a planned run. The edit
// plans the instant anew unless it was started, so an instant that both let
// through, or neither, would show.
func raceEditStart(e *env) {
	o := e.owner("a")
	for range 5 * rounds {
		job := e.newJob()
		run := o.planned(job)
		s := o.startOf(run)
		var answer store.Started
		edit := replan("update", time.Time{}, func(*store.Job) {})
		edit.Next = func(_ store.Job, started, _ time.Time) (time.Time, error) {
			if started.IsZero() {
				return e.now, nil
			}
			return started.Add(time.Minute), nil
		}
		var edited store.Job
		e.race(
			func() { answer = o.tryStart(s) },
			func() {
				var err error
				edited, err = e.EditJob(e.ctx, job.ID, edit)
				e.must(err)
			},
		)
		if answer.Status == store.StartOK {
			e.wantState("a run whose start succeeded", run.ID, store.StateStarted)
			want(e, "Next after a started instant", edited.Next, e.at(60))
		} else {
			e.wantState("a run whose start did not succeed", run.ID, store.StateCancelled)
			want(e, "Next where no instant was started", edited.Next, e.now)
		}
	}
}

// raceEditNear edits a job that is due every millisecond while it is planned and
// started: each instant up to the edit is in one run or in one record, and the new
// schedule begins behind the edit and behind all that was started.
func raceEditNear(e *env) {
	o := e.owner("a")
	for i := range 3 * rounds { // one in twenty shows what is not guarded
		job, err := e.AddJob(e.ctx, store.Job{App: "app", Name: "near", Handler: "handler", Schedule: schedule.FixedRate(time.Millisecond),
			Route: "ROUND", Misfire: store.MisfireDoNothing, Block: "SERIAL_EXECUTION", GlueType: store.GlueBean},
			func(_ store.Job, now time.Time) (time.Time, error) {
				return now.Add(time.Duration(i%8-4) * time.Millisecond), nil
			})
		e.must(err)
		p := o.plan(job)
		for at := job.Next; at.Before(job.Next.Add(4 * time.Millisecond)); at = at.Add(time.Millisecond) {
			p.Runs = append(p.Runs, store.NewRun{At: at, Type: store.TriggerFixRate, State: store.StatePlanned})
			p.Next = at.Add(time.Millisecond)
		}
		var edited store.Job
		e.race(
			func() {
				for _, run := range o.claim(p) {
					o.tryStart(o.startOf(run))
				}
			},
			func() {
				var err error
				edited, err = e.EditJob(e.ctx, job.ID, nearEdit())
				e.must(err)
			},
		)
		e.wantAccounted(job.Next, edited)
	}
}

// nearEdit plans a job anew that is due every millisecond.
func nearEdit() store.Edit {
	edit := replan("update", time.Time{}, func(*store.Job) {})
	edit.Missed = func(was store.Job, now time.Time) (store.NewRun, bool) {
		return store.NewRun{At: was.Next, Type: store.TriggerFixRate, State: store.StateSkipped, First: was.Next, Last: now,
			Count: int(now.Sub(was.Next)/time.Millisecond) + 1, Reason: store.ReasonEdit}, !was.Next.After(now)
	}
	edit.Next = func(_ store.Job, started, now time.Time) (time.Time, error) {
		if started.After(now) {
			now = started
		}
		return now.Add(time.Millisecond), nil
	}
	return edit
}

// wantAccounted checks what became of each millisecond from first on up to the edit.
func (e *env) wantAccounted(first time.Time, edited store.Job) {
	e.Helper()
	runs := e.runsOf(edited.ID)
	e.check(edited.Next.After(edited.Updated), "the edit of %v begins at %v", edited.Updated, edited.Next)
	for _, r := range runs {
		e.check(r.State != store.StatePlanned, "the run of %v is planned after the edit of %v", r.Scheduled, edited.Updated)
		e.check(r.State != store.StateStarted || r.Scheduled.Before(edited.Next), "the run of %v is started, and the edit begins at %v", r.Scheduled, edited.Next)
	}
	for at := first; !at.After(edited.Updated); at = at.Add(time.Millisecond) {
		n := 0
		for _, r := range runs {
			if r.Count == 0 && r.Scheduled.Equal(at) || r.Count > 0 && !at.Before(r.First) && !at.After(r.Last) {
				n++
			}
		}
		want(e, "runs and records of an instant before the edit", n, 1)
	}
}

func raceRemove(e *env) {
	o := e.owner("a")
	for range rounds {
		job := e.newJob()
		p := o.plan(job, e.now)
		e.race(
			func() { o.claim(p) },
			func() {
				_, err := e.AddRun(e.ctx, job.ID, store.Trigger{})
				if err != nil {
					e.wantErr("AddRun during a removal", err, store.ErrNotFound)
				}
			},
			func() { e.must(e.RemoveJob(e.ctx, job.ID)) },
		)
		for _, run := range e.runsOf(job.ID) {
			want(e, "state of a run of the removed job", run.State, store.StateCancelled)
		}
	}
}

func raceEdits(e *env) {
	for range rounds {
		job := e.newJob()
		var errs [4]error
		var calls []func()
		for i := range errs {
			calls = append(calls, func() {
				_, errs[i] = e.EditJob(e.ctx, job.ID, store.Edit{Version: 1, Verb: "update",
					Change: func(j *store.Job) (bool, error) { j.Param = fmt.Sprint(i); return false, nil }})
			})
		}
		e.race(calls...)
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else {
				e.wantErr("an edit that lost", err, store.ErrConflict)
			}
		}
		want(e, "edits that won", won, 1)
		want(e, "Version", e.mustJob(job.ID).Version, int64(2))
	}
}

func raceFinishLost(e *env) {
	o := e.owner("a")
	for range rounds {
		run := o.running()
		var accepted, lost []store.Run
		e.race(
			func() { accepted = e.mustFinish(success(run)) },
			func() { lost = e.mustSettle(o.verdict(run, store.StateLost)) },
		)
		want(e, "ends of one run", len(accepted)+len(lost), 1)
		want(e, "the run is lost", e.mustRun(run.ID).State == store.StateLost, len(lost) == 1)
	}
}

func raceTakeSettle(e *env) {
	o := e.owner("a")
	for range 5 * rounds { // one in two shows what is not guarded
		run := o.handedOver()
		var taken, back []store.Run
		e.race(
			func() { taken = e.mustTake("b", run.ID) },
			func() { back = e.mustSettle(o.verdict(run, store.StatePlanned)) },
		)
		want(e, "taken or given back", len(taken)+len(back), 1)
		want(e, "the run is planned", e.mustRun(run.ID).State == store.StatePlanned, len(back) == 1)
	}
}

func raceKillStart(e *env) {
	o := e.owner("a")
	for range rounds {
		run := o.planned(e.newJob())
		s := o.startOf(run)
		var answer store.Started
		e.race(
			func() { answer = o.tryStart(s) },
			func() { e.mustKill(run.ID, "unwanted") },
		)
		got := e.mustRun(run.ID)
		if answer.Status == store.StartOK {
			want(e, "started run: state, reason of the kill", []any{got.State, got.KillReason}, []any{store.StateStarted, "unwanted"})
		} else {
			want(e, "run that did not start", got.State, store.StateCancelled)
		}
	}
}

// raceLastRuns: neither of two ends at once may leave the finish to the other.
func raceLastRuns(e *env) {
	o := e.owner("a")
	for range 3 * rounds { // one in twenty shows what is not guarded
		p := o.plan(e.newJob(), e.at(0), e.at(1))
		p.Next = time.Time{}
		planned := o.claim(p)
		a, b := o.started(planned[0]), o.started(planned[1])
		job := e.mustJob(p.JobID)
		e.race(
			func() { e.mustFinish(success(a)) },
			func() { e.mustFinish(success(b)) },
		)
		e.wantFinished("the end of its last two runs at once", job)
	}
}
