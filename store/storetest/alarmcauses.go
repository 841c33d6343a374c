package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// Alarms of records and of jobs that stop by themselves, which of all are asked for, that each
// is there once, and what it says.

func alarmRecords(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	job := e.newJob(func(j *store.Job) { j.AlarmEmail = "a@example.com" })
	p := o.plan(job, job.Next)
	p.Runs = append(o.records(2), p.Runs...)
	runs := o.claim(p)
	list := e.mustAlarms()
	if len(list) != 2 || len(runs) != 3 {
		e.Fatalf("a claim with two records and a run: %d runs, alarms %+v", len(runs), list)
	}
	for i, a := range list {
		r := runs[i]
		want(e, "the alarm of a record", a, store.Alarm{ID: a.ID, Shard: job.Shard, App: job.App, JobKey: job.Key, JobName: job.Name, Email: job.AlarmEmail,
			JobID: job.ID, JobVersion: job.Version, Cause: "skipped", RunID: r.ID, TriggerID: r.ID, State: store.StateSkipped.String(),
			Instant: r.Scheduled, Text: "backlog, instants: 9", At: a.At})
		e.check(!a.At.Before(r.Ended), "the alarm is of %v, the record of %v", a.At, r.Ended)
	}
	want(e, "runs of a claim that comes to nothing", o.claim(p), nil)
	want(e, "alarms after it", len(e.mustAlarms()), 2)
}

func alarmEdited(e *env) {
	e.owner("a")
	e.everyAlarm()
	job := e.newJob()
	edit := replan("update", e.at(60), func(j *store.Job) { j.Name = "new" })
	edit.Missed = func(store.Job, time.Time) (store.NewRun, bool) {
		return store.NewRun{At: e.at(-20), Type: store.TriggerCron, State: store.StateSkipped,
			First: e.at(-20), Last: e.at(-10), Count: 11, Reason: store.ReasonEdit}, true
	}
	_, err := e.EditJob(e.ctx, job.ID, edit)
	e.must(err)
	a := e.alarm()
	want(e, "cause, job, run, instant, text", []any{a.Cause, a.JobID, a.RunID, a.Instant, a.Text},
		[]any{"skipped", job.ID, e.runsOf(job.ID)[0].ID, e.at(-20), "edit, instants: 11"})
}

func alarmStopped(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	job := e.newJob(func(j *store.Job) { j.AlarmEmail = "a@example.com" })
	versions := []int64{}
	for i, reason := range []string{"the schedule cannot be evaluated", "again"} {
		p := o.plan(e.mustJob(job.ID))
		p.Next, p.Stop = time.Time{}, reason
		o.claim(p)
		now := e.mustJob(job.ID)
		versions = append(versions, now.Version)
		a := e.alarms(i + 1)[i]
		e.check(!a.At.IsZero(), "the alarm has no time")
		want(e, "the alarm", a, store.Alarm{ID: a.ID, Shard: job.Shard, App: job.App, JobKey: job.Key, JobName: job.Name, Email: job.AlarmEmail,
			JobID: job.ID, JobVersion: versions[i], Cause: "stopped", Text: reason, At: a.At})
		o.claim(p)
		_, err := e.EditJob(e.ctx, job.ID, replan("start", e.at(600), func(j *store.Job) { j.Stopped, j.StopReason = false, "" }))
		e.must(err)
	}
	e.stop(job.ID)
	want(e, "alarms after a stop by somebody", len(e.mustAlarms()), 2)
}

func alarmUnasked(e *env) {
	o := e.owner("a")
	e.mustKeep("none", alarm.Rule{Name: "recovered", Causes: []alarm.Cause{alarm.Recovered, alarm.Trouble}})
	o.failed(o.running())
	o.failed(o.started(o.planned(e.newJob(retried(1)))))
	o.claim(o.skip(e.newJob()))
	p := o.plan(e.newJob())
	p.Stop = "broken"
	o.claim(p)
	late, err := e.AddLate(e.ctx, store.LateQuery{Shards: o.shards, Now: e.at(9999), Limit: 9})
	e.must(err)
	want(e, "late", late.Alarms, 0)
	want(e, "alarms", e.mustAlarms(), nil)
	e.everyAlarm()
	want(e, "alarms of what was before", e.mustAlarms(), nil)
}

// causesOf makes one alarm of each cause, as far as it is asked for.
func (o *owner) causesOf() string {
	o.Helper()
	o.failed(o.running())
	o.failed(o.started(o.planned(o.newJob(retried(1)))))
	endedAs(store.StateKilled)(o, o.planned(o.newJob()))
	o.mustSettle(o.verdict(o.running(), store.StateLost))
	o.claim(o.skip(o.newJob()))
	p := o.plan(o.newJob())
	p.Next, p.Stop = time.Time{}, "broken"
	o.claim(p)
	o.planned(o.newJob(lateAfter(time.Second)))
	_, err := o.AddLate(o.ctx, store.LateQuery{Shards: o.shards, Now: o.at(1), Limit: 9})
	o.must(err)
	var causes []string
	for _, a := range o.mustAlarms() {
		causes = append(causes, a.Cause)
	}
	return strings.Join(causes, " ")
}

func alarmEndsOnly(e *env) {
	o := e.owner("a")
	e.mustKeep("ends", alarm.Rule{Name: "ends", Causes: endCauses()})
	want(e, "causes", o.causesOf(), "failed lost skipped stopped late")
}

func alarmAttemptsOnly(e *env) {
	o := e.owner("a")
	e.mustKeep("attempts", alarm.Rule{Name: "attempts", Causes: []alarm.Cause{alarm.Attempt}})
	want(e, "causes", o.causesOf(), "attempt attempt")
}

func alarmUnion(e *env) {
	o := e.owner("a")
	e.mustKeep("one", alarm.Rule{Name: "a", Causes: endCauses()}, alarm.Rule{Name: "nothing", Apps: []string{"another"}, Causes: endCauses()})
	e.mustKeep("two", alarm.Rule{Name: "a", Causes: []alarm.Cause{alarm.Attempt}})
	e.mustKeep("three")
	want(e, "causes", o.causesOf(), "failed attempt attempt lost skipped stopped late")
}

func alarmOnce(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	run := o.running()
	e.mustFinish(failure(run), failure(run))
	e.mustFinish(failure(run))
	e.wantCauses("a result that comes three times", run.ID, "failed")
	run = o.started(o.planned(e.newJob()))
	e.mustSettle(o.verdict(run, store.StateLost))
	e.mustFinish(failure(run))
	e.wantCauses("a result that comes after the run was lost", run.ID, "lost")
}

func alarmConcurrent(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	for range 10 {
		run := o.running()
		e.race(func() { e.mustFinish(failure(run)) }, func() { e.mustFinish(failure(run)) },
			func() { e.mustSettle(o.verdict(run, store.StateLost)) })
		causes := e.alarmsOf(run.ID)
		e.check(len(causes) == 1 && causes[0] == causeOf(e.mustRun(run.ID).State), "a run that has ended as %v has the alarms %v", e.mustRun(run.ID).State, causes)
	}
}

func alarmBatch(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	runs := []store.Run{o.running(), o.running(), o.running(), o.started(o.planned(e.newJob(retried(1))))}
	e.mustFinish(failure(runs[0]), success(runs[1]), failure(runs[2]), failure(runs[3]))
	for i, causes := range [][]string{{"failed"}, nil, {"failed"}, {"attempt"}} {
		e.wantCauses(fmt.Sprint("member ", i), runs[i].ID, causes...)
	}
}

func alarmParts(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	started := o.tryStart(o.startOf(o.planned(e.newJob()), func(s *store.Start) { s.Targets = []string{remote, remoteToo}; s.Address = remote }))
	for _, part := range []store.Run{started.Run, started.Siblings[0]} {
		r := overWire(part.ID)
		r.State = store.StateFailed
		e.mustFinish(r)
		e.wantCauses("a part", part.ID, "failed")
	}
	for _, a := range e.mustAlarms() {
		want(e, "the trigger of a part", a.TriggerID, started.Run.ID)
	}
}

func alarmFenced(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	run := o.running()
	r := failure(run)
	r.Token++
	e.mustFinish(r)
	v := o.verdict(run, store.StateLost)
	v.Epoch--
	e.mustSettle(v)
	p := o.skip(e.newJob())
	p.Epoch--
	o.claim(p)
	planned := o.planned(e.newJob())
	o.tryStart(o.startOf(planned, refused, func(s *store.Start) { s.Epoch-- }))
	want(e, "alarms", e.mustAlarms(), nil)
}

func alarmFields(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	job := e.newJob(func(j *store.Job) { j.Name, j.AlarmEmail = "first — 错", "a@example.com, b@example.com" })
	o.failed(o.started(o.planned(job)))
	first := e.alarm()
	e.edit(job.ID, func(j *store.Job) { j.Name, j.Key, j.AlarmEmail = "second", "another", "" })
	want(e, "the alarm of a job that was edited since", e.alarm(), first)
	want(e, "name, key, e-mail, version", []any{first.JobName, first.JobKey, first.Email, first.JobVersion},
		[]any{"first — 错", job.Key, "a@example.com, b@example.com", int64(1)})
	o.failed(o.started(o.planned(e.mustJob(job.ID))))
	second := e.alarms(2)[1]
	want(e, "of the second", []any{second.JobName, second.JobKey, second.Email, second.JobVersion}, []any{"second", "another", "", int64(2)})
	e.must(e.RemoveJob(e.ctx, job.ID))
	want(e, "the alarms of a job that is removed", e.mustAlarms(), []store.Alarm{first, second})
}

func alarmRemoved(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	run := o.started(o.planned(e.newJob(func(j *store.Job) { j.AlarmEmail = "a@example.com" })))
	e.must(e.RemoveJob(e.ctx, run.JobID))
	o.failed(run)
	a := e.alarm()
	want(e, "job, app, run", []any{a.JobID, a.App, a.RunID}, []any{run.JobID, run.App, run.ID})
	want(e, "version, key, name, address", []any{a.JobVersion, a.JobKey, a.JobName, a.Email}, []any{int64(0), "", "", ""})
}

func alarmTexts(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	for _, text := range []string{
		strings.Repeat("错", store.MostAlarmText), strings.Repeat("x", 2*store.MostAlarmText), "a\x00b\tc\nd\r\n", "\u0085 and \u200b", "",
		strings.Repeat("x", store.MostAlarmText-1) + "错",
	} {
		run := o.running()
		r := failure(run)
		r.HandleMsg = strings.ReplaceAll(text, "\x00", "\x01") // a store may refuse the first
		ended := o.one(e.mustFinish(r))
		for _, a := range e.mustAlarms() {
			if a.RunID == run.ID {
				want(e, fmt.Sprintf("the text of %.20q", text), a.Text, store.AlarmText(ended.HandleMsg))
				e.check(len(a.Text) <= store.MostAlarmText, "it has %d bytes", len(a.Text))
			}
		}
		e.wantCauses("a text", run.ID, "failed")
	}
	p := o.plan(e.newJob())
	p.Next, p.Stop = time.Time{}, strings.Repeat("错", store.MostAlarmText)
	o.claim(p)
	want(e, "why a job has stopped", e.alarms(7)[6].Text, store.AlarmText(p.Stop))
}
