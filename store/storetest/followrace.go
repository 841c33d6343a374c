package storetest

import "github.com/xxljob/xxljob/store"

// What follows a run against those who stop or remove its job at the same time: whoever comes
// second sees what the first has done.
func followRaceCases() []testCase {
	return []testCase{
		{"FailureAgainstRemoval", func(e *env) { raceFollow(e, failsAt, (*env).removes) }},
		{"FailureAgainstStop", func(e *env) { raceFollow(e, failsAt, (*env).stops) }},
		{"LossAgainstRemoval", func(e *env) { raceFollow(e, isLostAt, (*env).removes) }},
		{"RefusalAgainstRemoval", func(e *env) { raceFollow(e, isRefusedAt, (*env).removes) }},
		{"RefusalAgainstStop", func(e *env) { raceFollow(e, isRefusedAt, (*env).stops) }},
	}
}

// raceFollow ends the run of a job while somebody else puts an end to the job: no retry waits
// when both are done.
func raceFollow(e *env, prepare func(o *owner, planned store.Run) (end func()), put func(e *env, job int64)) {
	o := e.owner("a")
	for range rounds {
		job := e.newJob(retried(3))
		end := prepare(o, o.planned(job))
		e.race(end, func() { put(e, job.ID) })
		for _, run := range e.runsOf(job.ID) {
			e.check(run.State.Ended(), "run %d (%s) is %s, and its job has been put an end to", run.ID, run.Type, run.State)
		}
	}
}

func failsAt(o *owner, planned store.Run) func() {
	run := o.started(planned)
	return func() { o.mustFinish(failure(run)) }
}

func isLostAt(o *owner, planned store.Run) func() {
	run := o.started(planned)
	return func() { o.mustSettle(o.verdict(run, store.StateLost)) }
}

func isRefusedAt(o *owner, planned store.Run) func() {
	st := o.startOf(planned, refused)
	return func() { o.tryStart(st) }
}

func (e *env) removes(job int64) { e.must(e.RemoveJob(e.ctx, job)) }
func (e *env) stops(job int64)   { e.stop(job) }
