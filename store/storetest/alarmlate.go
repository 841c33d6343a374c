package storetest

import (
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Runs that are late, and the signal of alarms.

func lateCases() []testCase {
	return []testCase{
		{"RunsOfEachStateAreLate", lateStates},
		{"ALateRunSaysSoOnce", lateOnce},
		{"ARunThatHasEndedIsNotLate", lateEnded},
		{"RetriesGoByTheirInstant", lateRetries},
		{"LateRunsNeedTheEpoch", lateFenced},
		{"LateRunsOldestFirst", lateLimit},
		{"LeastIsTheLeast", lateLeast},
		{"AnEditOfLateAfterCounts", lateEdit},
		{"AlarmsAreSignalled", signalAlarms},
	}
}

func lateAfter(d time.Duration) func(*store.Job) {
	return func(j *store.Job) { j.LateAfter = d }
}

// mustLate inserts the alarms of what is late so many seconds from the case's now.
func (o *owner) mustLate(seconds, limit int) store.Late {
	o.Helper()
	late, err := o.AddLate(o.ctx, store.LateQuery{Shards: o.shards, Now: o.at(seconds), Limit: limit})
	o.must(err)
	return late
}

func lateStates(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	minute := lateAfter(time.Minute)
	planned := o.planned(e.newJob(minute, func(j *store.Job) { j.AlarmEmail = "a@example.com" }))
	started := o.started(o.planned(e.newJob(minute)))
	taken := o.started(o.planned(e.newJob(minute)), o.over("b"))
	e.mustTake("b", taken.ID)
	dispatched := o.one(o.mustDispatched(accepted(o.started(o.planned(e.newJob(minute)), to(remote)))))
	triggered := e.mustAddRun(e.newJob(lateAfter(24*time.Hour)).ID, store.Trigger{})
	o.planned(e.newJob())
	want(e, "a moment before", o.mustLate(59, 10).Alarms, 0)
	want(e, "alarms a moment before", e.mustAlarms(), nil)
	want(e, "at the minute", o.mustLate(60, 10).Alarms, 4)
	for _, run := range []store.Run{planned, started, taken, dispatched} {
		e.wantCauses("a run that is "+run.State.String(), run.ID, "late")
	}
	e.wantCauses("a trigger's, that has a day", triggered.ID)
	for _, a := range e.mustAlarms() {
		run, job := e.mustRun(a.RunID), e.mustJob(a.JobID)
		text := "it has not started"
		if run.State != store.StatePlanned {
			text = "it has started at "
		}
		e.check(strings.HasPrefix(a.Text, text) && !a.At.IsZero(), "%s: text %q, at %v", run.State, a.Text, a.At)
		want(e, "a late run that is "+run.State.String(), a, store.Alarm{ID: a.ID, Shard: job.Shard, App: job.App, JobKey: job.Key, JobName: job.Name, Email: job.AlarmEmail,
			JobID: job.ID, JobVersion: job.Version, Cause: "late", RunID: run.ID, TriggerID: run.ID, State: run.State.String(), Instant: e.now, Text: a.Text, At: a.At})
	}
}

func lateOnce(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	run := o.planned(e.newJob(lateAfter(time.Second)))
	want(e, "at first", o.mustLate(1, 10).Alarms, 1)
	want(e, "again", o.mustLate(2, 10).Alarms, 0)
	run = o.started(run)
	want(e, "once it has started", o.mustLate(3, 10).Alarms, 0)
	e.must(e.MarkAlarms(e.ctx, store.AlarmMarks{Done: []store.AlarmDone{{ID: e.alarm().ID, Status: store.AlarmSent}}}))
	want(e, "once it was told", o.mustLate(4, 10).Alarms, 0)
	want(e, "alarms once it was told", e.mustAlarms(), nil)
	o.failed(run)
	e.wantCauses("its end", run.ID, "failed")
}

func lateEnded(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	run := o.planned(e.newJob(lateAfter(time.Second)))
	e.mustFinish(success(o.started(run)))
	cancelled := o.planned(e.newJob(lateAfter(time.Second)))
	e.mustKill(cancelled.ID, "unwanted")
	e.must(e.RemoveJob(e.ctx, o.planned(e.newJob(lateAfter(time.Second))).JobID))
	want(e, "alarms", o.mustLate(9999, 10).Alarms, 0)
}

func lateRetries(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	job := e.newJob(retried(1), lateAfter(time.Hour), func(j *store.Job) { j.RetryBackoff.First = 20 * 24 * time.Hour })
	next := e.mustNext(o.failed(o.started(o.planned(job))))
	want(e, "before the hour", o.mustLate(3599, 10).Alarms, 0)
	want(e, "an hour behind the instant", o.mustLate(3600, 10).Alarms, 1)
	e.wantCauses("the retry", next.ID, "late")
	for _, a := range e.mustAlarms() {
		if a.RunID == next.ID {
			want(e, "trigger, attempt, instant", []any{a.TriggerID, a.Attempt, a.Instant}, []any{next.TriggerID, 1, e.now})
		}
	}
}

func lateFenced(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	run := o.planned(e.newJob(lateAfter(time.Second)))
	b := o.overtakenBy("b")
	want(e, "by a former owner", o.mustLate(1, 10).Alarms, 0)
	others := &owner{env: e, inc: "b"}
	for _, s := range b.shards {
		if s.ID != run.Shard {
			others.shards = append(others.shards, s)
		}
	}
	want(e, "in other shards", others.mustLate(1, 10).Alarms, 0)
	want(e, "alarms so far", e.mustAlarms(), nil)
	want(e, "by the owner", b.mustLate(1, 10).Alarms, 1)
	none := &owner{env: e, inc: "b"}
	want(e, "in no shard", none.mustLate(1, 10), store.Late{})
}

func lateLimit(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	var runs []int64
	for range 5 {
		runs = append(runs, o.planned(e.newJob(lateAfter(time.Second))).ID)
	}
	for _, n := range []int{2, 2, 1, 0} {
		want(e, "of two at most", o.mustLate(1, 2).Alarms, n)
	}
	var told []int64
	for _, a := range e.mustAlarms() {
		told = append(told, a.RunID)
	}
	want(e, "the runs in order of their alarms", told, runs)
	o.planned(e.newJob(lateAfter(time.Second)))
	want(e, "with the limit 0", o.mustLate(1, 0).Alarms, 0)
}

func lateLeast(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	want(e, "without jobs", o.mustLate(1, 10), store.Late{})
	e.newJob()
	want(e, "without a LateAfter", o.mustLate(1, 10), store.Late{})
	hour := e.newJob(lateAfter(time.Hour))
	want(e, "of one", o.mustLate(1, 10), store.Late{Least: time.Hour})
	minute := e.newJob(lateAfter(time.Minute))
	want(e, "of two", o.mustLate(1, 10), store.Late{Least: time.Minute})
	e.must(e.RemoveJob(e.ctx, minute.ID))
	want(e, "of those that are there", o.mustLate(1, 10), store.Late{Least: time.Hour})
	e.edit(hour.ID, lateAfter(1500*time.Millisecond))
	want(e, "of an edited one", o.mustLate(1, 10), store.Late{Least: 1500 * time.Millisecond})
	e.edit(hour.ID, lateAfter(0))
	want(e, "of one that has none any more", o.mustLate(1, 10), store.Late{})
}

func lateEdit(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	job := e.newJob(lateAfter(time.Hour))
	run := o.planned(job)
	want(e, "before the edit", o.mustLate(60, 10).Alarms, 0)
	e.edit(job.ID, lateAfter(time.Minute))
	want(e, "after it", o.mustLate(60, 10).Alarms, 1)
	e.wantCauses("the run", run.ID, "late")
}

func signalAlarms(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	ch := e.Watch(e.ctx, "a").Alarms
	if scan, _ := e.Poll(); scan == 0 && ch == nil {
		e.Errorf("Poll is zero, but the store does not signal alarms")
	}
	for _, end := range append(retriable(), unretriable()...) {
		run := o.planned(e.newJob())
		drain(ch)
		end.do(o, run)
		e.awaitSignal(end.name, ch)
	}
	drain(ch)
	o.claim(o.skip(e.newJob()))
	e.awaitSignal("a record", ch)
	p := o.plan(e.newJob())
	p.Next, p.Stop = time.Time{}, "broken"
	drain(ch)
	o.claim(p)
	e.awaitSignal("a job that stops by itself", ch)
	o.planned(e.newJob(lateAfter(time.Second)))
	drain(ch)
	want(e, "late", o.mustLate(1, 1).Alarms, 1)
	e.awaitSignal("a late run", ch)
}
