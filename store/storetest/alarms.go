package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// Alarms: what inserts them, and what they say. Which alarm the end of a run is has its own
// table (store.Run.Alarm); these cases are about what a store does with it. What else causes
// alarms is in alarmcauses.go, how they are read and done with in alarmrows.go, which jobs have
// recovered in alarmopen.go, and runs that are late in alarmlate.go.

func alarmCases() []testCase {
	return append([]testCase{
		{"EachEndInsertsItsCause", alarmEnds},
		{"TheOthersInsertNone", alarmNoEnds},
		{"WhatIsFollowedIsAnAttempt", alarmFollowed},
		{"WhatWasToMakeUpForAFailureHasFailed", alarmGivesUp},
		{"SnoozedOnceTooOftenHasFailed", alarmSnoozed},
		{"WhatWasToBeKilledIsAnAttempt", alarmToKill},
		{"RecordsOfAClaim", alarmRecords},
		{"TheRecordOfAnEdit", alarmEdited},
		{"AJobThatStopsByItself", alarmStopped},
		{"NoneBeforeTheyAreAskedFor", alarmUnasked},
		{"EndsOnly", alarmEndsOnly},
		{"AttemptsOnly", alarmAttemptsOnly},
		{"WhatAnyAsksForHolds", alarmUnion},
		{"OfARunAndACauseThereIsOne", alarmOnce},
		{"OfConcurrentResultsThereIsOne", alarmConcurrent},
		{"EachOfABatchHasItsOwn", alarmBatch},
		{"EachPartOfABroadcastHasItsOwn", alarmParts},
		{"WhatIsNotAcceptedInsertsNone", alarmFenced},
		{"TheRowSaysWhatTheJobWasThen", alarmFields},
		{"OfARemovedJobTheAppIsLeft", alarmRemoved},
		{"TextsAreCut", alarmTexts},
		{"OfASecretJobNoResult", alarmSecret},
	}, slices.Concat(alarmRowCases(), ruleCases(), openCases(), lateCases())...)
}

// everyAlarm keeps a rule that wants all alarms there are.
func (e *env) everyAlarm() {
	e.Helper()
	e.mustKeep("every", everyRule())
}

// endCauses are the causes of alarms but those of attempts.
func endCauses() []alarm.Cause {
	return []alarm.Cause{alarm.Failed, alarm.Lost, alarm.Skipped, alarm.Stopped, alarm.Late}
}

func everyRule() alarm.Rule {
	return alarm.Rule{Name: "every", Causes: append(endCauses(), alarm.Attempt)}
}

// mustKeep keeps rules as those of a node of an app of its own.
func (e *env) mustKeep(node string, rules ...alarm.Rule) []store.AlarmRule {
	e.Helper()
	k := store.RuleKeeper{App: "of-" + node, Node: node, Incarnation: node + "-1"}
	for _, r := range rules {
		k.Rules = append(k.Rules, store.NewAlarmRule(r))
	}
	_, err := e.KeepRules(e.ctx, k)
	e.must(err)
	return k.Rules
}

// everyShard are all the shards, as somebody reads them who need not own them.
func everyShard() (list []store.Shard) {
	for id := range numShards {
		list = append(list, store.Shard{ID: id})
	}
	return list
}

// mustAlarms are the alarms that are not done with.
func (e *env) mustAlarms() []store.Alarm {
	e.Helper()
	list, err := e.Alarms(e.ctx, everyShard(), nil, 0, 10_000)
	e.must(err)
	return list
}

// alarmsOf are those of a run, as their causes.
func (e *env) alarmsOf(run int64) (causes []string) {
	e.Helper()
	for _, a := range e.mustAlarms() {
		if a.RunID == run {
			causes = append(causes, a.Cause)
		}
	}
	return causes
}

// wantCauses checks which alarms a run has.
func (e *env) wantCauses(what string, run int64, causes ...string) {
	e.Helper()
	want(e, what+": causes", e.alarmsOf(run), causes)
}

// alarms are those that are not done with, so many of them.
func (e *env) alarms(n int) []store.Alarm {
	e.Helper()
	list := e.mustAlarms()
	if len(list) != n {
		e.Fatalf("there are %d alarms %+v, want %d", len(list), list, n)
	}
	return list
}

// alarm is the only one there is.
func (e *env) alarm() store.Alarm {
	e.Helper()
	return e.alarms(1)[0]
}

// alarmEnd is a way for a run to end that is an alarm.
type alarmEnd struct {
	name  string
	state store.State
	text  string
	do    func(o *owner, run store.Run)
}

// endedAs ends a run by a result.
func endedAs(state store.State) func(o *owner, run store.Run) {
	return func(o *owner, run store.Run) {
		r := failure(o.started(run))
		r.State = state
		o.mustFinish(r)
	}
}

// retriable are the ends behind which an attempt follows where one is left.
func retriable() []alarmEnd {
	return []alarmEnd{
		{"Finish as failed", store.StateFailed, "boom", endedAs(store.StateFailed)},
		{"Finish as timed out", store.StateTimedOut, "boom", endedAs(store.StateTimedOut)},
		{"Finish as lost", store.StateLost, "boom", endedAs(store.StateLost)},
		{"Finish over the wire", store.StateFailed, "boom", func(o *owner, run store.Run) {
			r := overWire(o.started(run, to(remote)).ID)
			r.State, r.HandleMsg = store.StateFailed, "boom"
			o.mustFinish(r)
		}},
		{"Start refused", store.StateRefused, "no address", func(o *owner, run store.Run) {
			o.started(run, refused, func(s *store.Start) { s.HandleMsg, s.Retries = "no address", o.mustJob(run.JobID).Retries })
		}},
		{"Settle to lost", store.StateLost, "settled", func(o *owner, run store.Run) { o.mustSettle(o.verdict(o.started(run), store.StateLost)) }},
	}
}

// unretriable are those behind which none does.
func unretriable() []alarmEnd {
	killed := func(o *owner, run store.Run) store.Run {
		run = o.started(run, o.over("b"))
		o.mustKill(run.ID, "unwanted")
		return run
	}
	return []alarmEnd{
		{"Finish as killed", store.StateKilled, "boom", endedAs(store.StateKilled)},
		{"Finish as discarded", store.StateDiscarded, "boom", endedAs(store.StateDiscarded)},
		{"Settle of a killed run", store.StateKilled, "unwanted", func(o *owner, run store.Run) {
			o.mustSettle(o.verdict(killed(o, run), store.StatePlanned))
		}},
		{"Take of a killed run", store.StateKilled, "unwanted", func(o *owner, run store.Run) { o.mustTake("b", killed(o, run).ID) }},
	}
}

// wantAlarm ends a run and checks the alarm that this inserts.
func (o *owner) wantAlarm(what string, end alarmEnd, run store.Run, cause string) store.Alarm {
	o.Helper()
	last := int64(0)
	for _, a := range o.mustAlarms() {
		last = max(last, a.ID)
	}
	end.do(o, run)
	job := o.mustJob(run.JobID)
	list, err := o.Alarms(o.ctx, everyShard(), nil, last, 10)
	o.must(err)
	if len(list) != 1 {
		o.Fatalf("%s, %s: inserts %+v, want one alarm", what, end.name, list)
	}
	a := list[0]
	ended := o.mustRun(run.ID)
	want(o.env, what+", "+end.name, a, store.Alarm{ID: a.ID, Shard: job.Shard, App: job.App, JobKey: job.Key, JobName: job.Name, Email: job.AlarmEmail,
		JobID: job.ID, JobVersion: job.Version, Cause: cause, RunID: run.ID, TriggerID: run.TriggerID, State: end.state.String(), Attempt: run.Attempt,
		Instant: run.Instant(), Text: end.text, At: a.At})
	o.check(!a.At.Before(ended.Ended), "%s, %s: the alarm is of %v, the end of %v", what, end.name, a.At, ended.Ended)
	want(o.env, what+", "+end.name+": the run has ended as", ended.State, end.state)
	return a
}

// causeOf is that of an end that nothing follows.
func causeOf(state store.State) string {
	switch state {
	case store.StateKilled, store.StateDiscarded:
		return "attempt"
	case store.StateLost:
		return "lost"
	}
	return "failed"
}

func alarmEnds(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	for _, end := range append(retriable(), unretriable()...) {
		o.wantAlarm("the last attempt", end, o.planned(e.newJob()), causeOf(end.state))
	}
}

// alarmNoEnds has the ends that nobody need hear of.
func alarmNoEnds(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	for name, end := range map[string]func(o *owner, run store.Run){
		"succeeded":            endedAs(store.StateSucceeded),
		"snoozed":              func(o *owner, run store.Run) { o.mustFinish(snoozing(o.started(run), time.Minute)) },
		"killed while planned": func(o *owner, run store.Run) { e.mustKill(run.ID, "unwanted") },
		"cancelled by a stop":  func(o *owner, run store.Run) { e.stop(run.JobID) },
		"cancelled by a removal": func(o *owner, run store.Run) {
			e.must(e.RemoveJob(e.ctx, run.JobID))
		},
		"given back": func(o *owner, run store.Run) {
			o.mustSettle(o.verdict(o.started(run, o.over("b")), store.StatePlanned))
		},
	} {
		run := o.planned(e.newJob())
		end(o, run)
		e.wantCauses(name, run.ID)
	}
	want(e, "alarms", e.mustAlarms(), nil)
}

func alarmFollowed(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	for _, end := range retriable() {
		run := o.planned(e.newJob(retried(1)))
		o.wantAlarm("an attempt that is followed", end, run, "attempt")
		next := e.mustNext(e.mustRun(run.ID))
		a := o.wantAlarm("the last attempt", end, next, causeOf(end.state))
		want(e, "trigger, attempt, instant", []any{a.TriggerID, a.Attempt, a.Instant}, []any{run.ID, 1, run.Scheduled})
	}
	run := o.planned(e.newJob(func(j *store.Job) { j.OnLost, j.MaxReruns = store.OnLostRerun, 1 }))
	e.mustSettle(o.verdict(o.started(run), store.StateLost))
	e.wantCauses("a lost run that is run again", run.ID, "attempt")
	last := o.one(e.mustSettle(o.verdict(o.started(e.mustNext(e.mustRun(run.ID))), store.StateLost)))
	e.wantCauses("the last rerun", last.ID, "lost")
	forever := o.started(o.planned(e.newJob(retried(9))))
	r := failure(forever)
	r.NoRetry = true
	e.mustFinish(r)
	e.wantCauses("an error that is permanent", forever.ID, "failed")
}

// alarmGivesUp: a further attempt that is discarded or covered is the end of its trigger in failure, unless
// somebody wanted it killed, or nothing had failed before it.
func alarmGivesUp(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	for _, end := range unretriable() {
		ended := o.failed(o.started(o.planned(e.newJob(retried(2)))))
		cause := "failed"
		if strings.HasSuffix(end.name, "of a killed run") {
			cause = "attempt"
		}
		o.wantAlarm("what was to make up for a failure", end, e.mustNext(ended), cause)
		snoozed := o.one(e.mustFinish(snoozing(o.started(o.planned(e.newJob(retried(2)))), 0)))
		o.wantAlarm("what comes behind a snooze", end, e.mustNext(snoozed), "attempt")
	}
	job := e.newJob(retried(1))
	runs := o.claim(o.plan(job, e.at(0), e.at(1), e.at(2)))
	retry := e.mustNext(o.failed(o.started(runs[0])))
	a := o.tryStart(o.startOf(runs[2], to(remote), covering(retry, runs[1])))
	want(e, "covered", ids(a.Covered), []int64{runs[1].ID, retry.ID})
	e.wantCauses("a retry that was covered before its start", retry.ID, "failed")
	e.wantCauses("a first attempt that was", runs[1].ID, "attempt")
}

func alarmSnoozed(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	run := o.planned(e.newJob(func(j *store.Job) { j.MaxSnoozes = 1 }))
	run = e.mustNext(o.one(e.mustFinish(snoozing(o.started(run), 0))))
	e.mustFinish(snoozing(o.started(run), 0))
	a := e.alarm()
	want(e, "cause, run, state, text", []any{a.Cause, a.RunID, a.State, a.Text}, []any{"failed", run.ID, store.StateFailed.String(), store.TooManySnoozes})
}

// alarmToKill: of a run that somebody wanted killed nobody is told but by the rule for attempts.
func alarmToKill(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	run := o.running()
	e.mustKill(run.ID, "unwanted")
	o.failed(run)
	e.wantCauses("a run that failed, and was to be killed", run.ID, "attempt")
	run = o.running()
	e.mustKill(run.ID, "unwanted")
	e.mustSettle(o.verdict(run, store.StateLost))
	e.wantCauses("a run that was lost, and was to be killed", run.ID, "attempt")
}

func alarmSecret(e *env) {
	e.everyAlarm()
	o := e.owner("a")
	secret := func(j *store.Job) { j.Secret = true }
	for _, end := range append(retriable(), unretriable()...) {
		end.text = store.SecretText
		o.wantAlarm("a run of a secret job", end, o.planned(e.newJob(secret)), causeOf(end.state))
	}
	o.planned(e.newJob(secret, lateAfter(time.Minute)))
	o.mustLate(60, 10)
	list := o.mustAlarms()
	want(o.env, "the text of one that is late", list[len(list)-1].Text, "it has not started")
}
