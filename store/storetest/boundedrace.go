package storetest

import (
	"time"

	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
)

// raceCount lets claims, starts, runs that are put back and edits that plan anew race for
// what a job has made: that is always what its rows say.
func raceCount(e *env) {
	o := e.owner("a")
	for i := range rounds {
		job := e.newJob(bounded(10))
		p := o.plan(job, e.at(0), e.at(1), e.at(2))
		p.Next = e.at(60)
		runs := o.claim(p)
		back := o.verdict(o.started(runs[0], o.over("b")), store.StatePlanned)
		start, more := o.startOf(runs[1]), o.plan(e.mustJob(job.ID), e.at(60), e.at(61))
		edit := replan("update", e.at(120), func(j *store.Job) { j.MaxRuns = 9 })
		switch i % 3 {
		case 1:
			edit = replan("stop", time.Time{}, stopped)
		case 2:
			edit = replan("update", e.at(120), func(j *store.Job) { j.Schedule = schedule.FixedRate(time.Hour) })
		}
		seen := 0
		next := edit.Next
		edit.Next = func(j store.Job, started, now time.Time) (time.Time, error) {
			seen = j.Runs
			return next(j, started, now)
		}
		var edited store.Job
		e.race(
			func() { o.claim(more) },
			func() { o.tryStart(start) },
			func() { e.mustSettle(back) },
			func() {
				var err error
				edited, err = e.EditJob(e.ctx, job.ID, edit)
				e.must(err)
			},
		)
		want(e, "Runs that Next saw, and that the edit returned", seen, edited.Runs)
		left := 0
		for _, run := range e.runsOf(job.ID) {
			if run.State != store.StateCancelled {
				left++
			}
		}
		if i%3 == 2 {
			left = 0
		}
		e.wantMade("after the race", job.ID, left)
		e.stop(job.ID)
		left = 0
		for _, run := range e.runsOf(job.ID) {
			if run.State != store.StateCancelled && i%3 != 2 {
				left++
			}
		}
		e.wantMade("after a stop", job.ID, left)
	}
}
