package storetest

import (
	"github.com/xxljob/xxljob/store"
)

// What is owed against those who end runs, pay and edit at the same time.
func owedRaceCases() []testCase {
	return []testCase{
		{"PartsThatSucceedAtOnceOweOnce", raceParts},
		{"PaymentsAtOnceMakeOneChild", racePayments},
		{"PaymentAgainstTakeOver", racePaymentTakeOver},
		{"PaymentAgainstRemoval", racePaymentRemoval},
		{"SuccessesAtOnceCompleteOneWindow", raceWindow},
		{"SuccessAgainstExpiry", raceExpiry},
		{"EndsAgainstDeletions", raceDrop},
	}
}

// payUp pays until nothing is left: what others have locked stays for later.
func (o *owner) payUp() (sum store.Paid) {
	o.Helper()
	for range 100 {
		paid := o.payAll()
		if paid.Owed == 0 {
			return sum
		}
		sum.Owed, sum.Runs, sum.Absent, sum.Skipped = sum.Owed+paid.Owed, sum.Runs+paid.Runs, sum.Absent+paid.Absent, sum.Skipped+paid.Skipped
	}
	o.Fatalf("something is owed still after 100 payments")
	return sum
}

func raceParts(e *env) {
	o := e.owner("a")
	child := e.newJob()
	for n := range rounds {
		job := e.newJob(leading(child.ID))
		var ends []func()
		for _, part := range o.inParts(o.planned(job), 4) {
			ends = append(ends, func() { e.mustFinish(overWire(part.ID)) })
		}
		e.race(ends...)
		want(e, "owed by four parts", o.payUp(), store.Paid{Owed: 1, Runs: 1})
		e.wantRuns("one of each trigger", child.ID, n+1)
	}
}

func racePayments(e *env) {
	o := e.owner("a")
	children := []store.Job{e.newJob(), e.newJob(), e.newJob()}
	job := e.newJob(leading(jobIDs(children)...))
	for n := range rounds {
		o.succeeds(job.ID)
		var paid [3]store.Paid
		e.race(func() { paid[0] = o.payAll() }, func() { paid[1] = o.payAll() }, func() { paid[2] = o.payAll() })
		rest := o.payUp()
		want(e, "paid by all", paid[0].Owed+paid[1].Owed+paid[2].Owed+rest.Owed, len(children))
		want(e, "runs planned by all", paid[0].Runs+paid[1].Runs+paid[2].Runs+rest.Runs, len(children))
		for _, child := range children {
			e.wantRuns("whoever pays", child.ID, n+1)
		}
	}
}

func racePaymentTakeOver(e *env) {
	o := e.owner("n0")
	child := e.newJob()
	job := e.newJob(leading(child.ID))
	for n := range rounds {
		o.succeeds(job.ID)
		next := "n1"
		if n%2 == 1 {
			next = "n0"
		}
		var b *owner
		e.race(func() { o.payAll() }, func() { b = o.overtakenBy(next); b.payAll() })
		b.payUp()
		want(e, "paid by the former owner", o.payAll(), store.Paid{})
		e.wantRuns("whoever owns", child.ID, n+1)
		o = b
	}
}

// racePaymentRemoval: either the run is cancelled with its job, or the job was not there.
func racePaymentRemoval(e *env) {
	o := e.owner("a")
	for range rounds {
		child := e.newJob()
		parent := o.succeeds(e.newJob(leading(child.ID)).ID)
		e.race(func() { o.payAll() }, func() { e.must(e.RemoveJob(e.ctx, child.ID)) })
		o.payUp()
		runs := e.runsOf(child.ID)
		noted := hasLine(e.mustRun(parent.ID).TriggerMsg, noteOf(child.ID, "", ""))
		e.check(len(runs) == 1 != noted, "%d runs of a removed job, and its parent says that it is not there: %v", len(runs), noted)
		for _, run := range runs {
			want(e, "state of a run of a removed job", run.State, store.StateCancelled)
		}
	}
}

// raceWindow pays in two shards at once what completes one window. Who waits for too long for the window that the
// other one is making may fail, and pays again, as engines do.
func raceWindow(e *env) {
	o := e.owner("a")
	one, two := e.jobIn(1), e.jobIn(2)
	for n := range rounds {
		join := e.newJob(behind(one.ID, two.ID))
		at := noon().AddDate(0, 0, n)
		o.succeedsAt(one.ID, at)
		o.succeedsAt(two.ID, at)
		pay := func(shard int) func() {
			return func() {
				var err error
				for range 20 {
					if _, err = e.PayOwed(e.ctx, store.OwedQuery{Shards: o.shards[shard : shard+1], Limit: 1000}); err == nil {
						return
					}
				}
				e.must(err)
			}
		}
		e.race(pay(1), pay(2))
		o.payUp()
		want(e, "state", e.only("of one window", join.ID).State, store.StatePlanned)
		want(e, "windows that are open", o.mustExpire(o.later(), 9), store.Expired{})
		e.must(e.RemoveJob(e.ctx, join.ID))
	}
}

// raceExpiry: a window is closed once, by the last success or since it is over.
func raceExpiry(e *env) {
	o := e.owner("a")
	for range rounds {
		join, _, missing := o.opens()
		o.succeedsAt(missing.ID, noon())
		later := o.later()
		e.race(func() { o.payAll() }, func() { o.mustExpire(later, 9) })
		o.payUp()
		run := e.only("of one window", join.ID)
		e.check(run.State == store.StatePlanned || run.State == store.StateSkipped && run.Reason == store.ReasonJoin, "the run is %s (%s)", run.State, run.Reason)
		e.check(o.mustExpire(later, 9).Windows == 0 || run.State == store.StateSkipped, "the window of a planned run was left open")
		e.only("after another expiry", join.ID)
	}
}
