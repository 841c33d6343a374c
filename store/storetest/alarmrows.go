package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Alarms that are there: how they are read, and what becomes of them.

func alarmRowCases() []testCase {
	return []testCase{
		{"AlarmsAreRead", alarmsRead},
		{"AlarmsAreCopied", alarmsCopied},
		{"ARuleIsToldOnce", alarmsTold},
		{"ARuleHasGivenUp", alarmsGivenUp},
		{"RulesMarkedAtOnceAreAllKept", alarmsToldAtOnce},
		{"WhatIsDoneStaysDone", alarmsDone},
		{"TheRunGetsTheStatus", alarmsStatus},
		{"WhatIsNotThereIsLeftOut", alarmsAbsent},
		{"MarksThatMarkNothing", alarmsNoMarks},
		{"JobsAreReplaced", toldReplaced},
		{"JobsAreToldInOrder", toldInOrder},
		{"RemovedJobsAreDropped", toldRemoved},
	}
}

// mustMark notes what became of alarms.
func (e *env) mustMark(m store.AlarmMarks) {
	e.Helper()
	e.must(e.MarkAlarms(e.ctx, m))
}

// mustTold is what is known of jobs.
func (e *env) mustTold(jobs ...int64) []store.JobTold {
	e.Helper()
	list, err := e.ToldJobs(e.ctx, jobs)
	e.must(err)
	return list
}

func alarmsRead(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	var made []store.Alarm
	for range 7 {
		o.failed(o.running())
		made = e.mustAlarms()
	}
	if len(made) != 7 {
		e.Fatalf("there are %d alarms, want seven", len(made))
	}
	e.check(slices.IsSortedFunc(made, func(a, b store.Alarm) int { return int(a.ID - b.ID) }), "read %+v, want seven in order of ID", made)
	var pages []store.Alarm
	for after := int64(0); ; after = pages[len(pages)-1].ID {
		page, err := e.Alarms(e.ctx, everyShard(), nil, after, 3)
		e.must(err)
		e.check(len(page) <= 3, "a page of three has %d", len(page))
		if pages = append(pages, page...); len(page) < 3 {
			break
		}
	}
	want(e, "pages of three", pages, made)
	var byShard []store.Alarm
	for _, shard := range everyShard() {
		list, err := e.Alarms(e.ctx, []store.Shard{shard}, nil, 0, 100)
		e.must(err)
		for _, a := range list {
			want(e, "the shard of an alarm in it", a.Shard, shard.ID)
		}
		byShard = append(byShard, list...)
	}
	slices.SortFunc(byShard, func(a, b store.Alarm) int { return int(a.ID - b.ID) })
	want(e, "shard by shard", byShard, made)
	for what, read := range map[string]func() ([]store.Alarm, error){
		"no shard":  func() ([]store.Alarm, error) { return e.Alarms(e.ctx, nil, nil, 0, 10) },
		"limit 0":   func() ([]store.Alarm, error) { return e.Alarms(e.ctx, everyShard(), nil, 0, 0) },
		"after all": func() ([]store.Alarm, error) { return e.Alarms(e.ctx, everyShard(), nil, made[6].ID, 10) },
	} {
		list, err := read()
		e.must(err)
		want(e, what, list, nil)
	}
}

func alarmsCopied(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	o.failed(o.running())
	a := e.alarm()
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: a.ID, Rule: "one"}, {ID: a.ID, Rule: "two"}}})
	got := e.alarm()
	if len(got.Told) != 2 {
		e.Fatalf("Told %q, want two rules", got.Told)
	}
	got.Told[0] = "spoilt"
	_ = append(got.Told[:1], "spoilt")
	want(e, "Told", e.alarm().Told, []string{"one", "two"})
}

func alarmsTold(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	o.failed(o.running())
	o.failed(o.running())
	list := e.alarms(2)
	want(e, "Told at first", list[0].Told, nil)
	one := store.AlarmTold{ID: list[0].ID, Rule: "one"}
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{one, one}})
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{one, {ID: list[0].ID, Rule: "two"}}})
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{one}})
	now := e.alarms(2)
	want(e, "Told", [][]string{now[0].Told, now[1].Told}, [][]string{{"one", "two"}, nil})
	list[0].Told = now[0].Told
	want(e, "all else", now, list)
	want(e, "the status of its run", e.mustRun(list[0].RunID).AlarmStatus, 0)
}

func alarmsGivenUp(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	o.failed(o.running())
	o.failed(o.running())
	list := e.alarms(2)
	id := list[0].ID
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: id, Rule: "one"}}})
	want(e, "GaveUp once it was told", e.alarms(2)[0].GaveUp, false)
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: id, Rule: "two", GaveUp: true}, {ID: id, Rule: "three"}}})
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: id, Rule: "two"}}})
	now := e.alarms(2)
	want(e, "GaveUp", []bool{now[0].GaveUp, now[1].GaveUp}, []bool{true, false})
	want(e, "how many have told", len(now[0].Told), 3)
}

func alarmsToldAtOnce(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	for n := 1; n <= 5; n++ {
		run := o.failed(o.running())
		id := e.alarms(n)[n-1].ID
		var parties []func()
		for i := range 6 {
			parties = append(parties, func() {
				e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: id, Rule: fmt.Sprint("rule-", i%3)}}})
			})
		}
		e.race(parties...)
		told := slices.Sorted(slices.Values(e.alarms(n)[n-1].Told))
		want(e, fmt.Sprint("Told of the alarm of run ", run.ID), told, []string{"rule-0", "rule-1", "rule-2"})
	}
}

func alarmsDone(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	run := o.failed(o.running())
	o.failed(o.running())
	list := e.alarms(2)
	done := func(status int) store.AlarmMarks {
		return store.AlarmMarks{Done: []store.AlarmDone{{ID: list[0].ID, Status: status}}}
	}
	e.mustMark(done(store.AlarmSent))
	want(e, "those that are left", e.mustAlarms(), list[1:])
	e.mustMark(done(store.AlarmFailed))
	e.mustMark(store.AlarmMarks{Told: []store.AlarmTold{{ID: list[0].ID, Rule: "one"}}})
	want(e, "those that are left after more marks", e.mustAlarms(), list[1:])
	want(e, "the status of the run", e.mustRun(run.ID).AlarmStatus, store.AlarmSent)
}

func alarmsStatus(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	var runs []store.Run
	var marks store.AlarmMarks
	for range 3 {
		runs = append(runs, o.failed(o.running()))
	}
	runs = append(runs, o.one(o.claim(o.skip(e.newJob()))))
	want(e, "the status of a record before", runs[3].AlarmStatus, store.AlarmNotNeeded)
	statuses := []int{store.AlarmNotNeeded, store.AlarmSent, store.AlarmFailed, store.AlarmSent}
	for i, a := range e.alarms(4) {
		marks.Done = append(marks.Done, store.AlarmDone{ID: a.ID, Status: statuses[i]})
	}
	e.mustMark(marks)
	for i, status := range statuses {
		runs[i].AlarmStatus = status
		e.wantRun(fmt.Sprint("with status ", status), runs[i])
	}
	want(e, "alarms", e.mustAlarms(), nil)
}

func alarmsAbsent(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	run := o.failed(o.running())
	p := o.plan(e.newJob())
	p.Next, p.Stop = time.Time{}, "broken"
	o.claim(p)
	list := e.alarms(2)
	e.must(e.RemoveJob(e.ctx, run.JobID))
	absent := list[1].ID + 1000
	e.mustMark(store.AlarmMarks{
		Told: []store.AlarmTold{{ID: absent, Rule: "one"}, {ID: list[0].ID, Rule: "one"}},
		Done: []store.AlarmDone{{ID: absent, Status: store.AlarmSent}, {ID: list[1].ID, Status: store.AlarmSent}, {ID: list[0].ID, Status: store.AlarmFailed}},
	})
	want(e, "alarms", e.mustAlarms(), nil)
	want(e, "the status of a run whose job is removed", e.mustRun(run.ID).AlarmStatus, store.AlarmFailed)
}

func alarmsNoMarks(e *env) {
	o := e.owner("a")
	e.everyAlarm()
	o.failed(o.running())
	list := e.mustAlarms()
	e.mustMark(store.AlarmMarks{})
	want(e, "alarms", e.mustAlarms(), list)
}

func toldReplaced(e *env) {
	e.owner("a")
	job, other := e.newJob(), e.newJob()
	first := store.JobTold{JobID: job.ID, Shard: job.Shard, Rule: "one", At: e.now, Open: true, RunID: 7, TriggerID: 5}
	e.mustMark(store.AlarmMarks{Jobs: []store.JobTold{first}})
	want(e, "at first", e.mustTold(job.ID), []store.JobTold{first})
	second := store.JobTold{JobID: job.ID, Shard: job.Shard, Rule: "two", At: e.at(1)}
	again := store.JobTold{JobID: job.ID, Shard: job.Shard, Rule: "one", At: e.at(2)}
	e.mustMark(store.AlarmMarks{Jobs: []store.JobTold{second, first, again}})
	want(e, "another rule, and the first twice, of which the last counts", e.mustTold(job.ID, other.ID), []store.JobTold{again, second})
	zone := time.FixedZone("", 3600)
	odd := store.JobTold{JobID: job.ID, Shard: job.Shard + 1, Rule: "two", At: e.at(3).Add(999 * time.Microsecond).In(zone), Recovered: e.now}
	e.mustMark(store.AlarmMarks{Jobs: []store.JobTold{odd}})
	want(e, "what is the store's", e.mustTold(job.ID), []store.JobTold{again, {JobID: job.ID, Shard: job.Shard, Rule: "two", At: e.at(3)}})
}

func toldInOrder(e *env) {
	e.owner("a")
	var jobs []int64
	var marks store.AlarmMarks
	for range 4 {
		job := e.newJob()
		jobs = append(jobs, job.ID)
		for _, rule := range []string{"b", "B", "a-1", "a"} {
			marks.Jobs = append(marks.Jobs, store.JobTold{JobID: job.ID, Shard: job.Shard, Rule: rule, At: e.now})
		}
	}
	e.mustMark(marks)
	slices.Sort(jobs)
	asked := []int64{jobs[3], jobs[0], jobs[2], jobs[0], 999_999_999}
	var got []string
	for _, t := range e.mustTold(asked...) {
		got = append(got, fmt.Sprint(slices.Index(jobs, t.JobID), t.Rule))
	}
	want(e, "of three jobs", got, []string{"0B", "0a", "0a-1", "0b", "2B", "2a", "2a-1", "2b", "3B", "3a", "3a-1", "3b"})
	want(e, "of none", e.mustTold(), nil)
}

func toldRemoved(e *env) {
	e.owner("a")
	job, stays := e.newJob(), e.newJob()
	rows := []store.JobTold{{JobID: job.ID, Shard: job.Shard, Rule: "one", At: e.now, Open: true}, {JobID: stays.ID, Shard: stays.Shard, Rule: "one", At: e.now}}
	e.mustMark(store.AlarmMarks{Jobs: rows})
	e.must(e.RemoveJob(e.ctx, job.ID))
	e.mustMark(store.AlarmMarks{Jobs: rows})
	want(e, "told", e.mustTold(job.ID, stays.ID), rows[1:])
	_, open := e.mustOpen(10)
	want(e, "open", open, 0)
}
