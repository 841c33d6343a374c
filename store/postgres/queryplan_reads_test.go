package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// What searches and other questions of consoles may cost, with a million runs.

// fillReads makes children of a run.
func (d *planData) fillReads(t testing.TB) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_log (id, job_id, shard, app_name, state, trigger_type, scheduled_time, add_time, parent_id, executor_fail_retry_count)
	select $1::bigint + n * 8192 + 3, n * 100 + 98, (n * 100 + 98) % 32, 'app-8', 3, 'PARENT', $2::bigint, now(), $1::bigint, -1 from generate_series(0, 199) n`,
		idAt(d.now.Add(-time.Minute)), d.now.UnixMilli())
}

// searchCases has two cases for each search: how far it goes, and what it finds there.
func (d *planData) searchCases() []planCase {
	var list []planCase
	search := func(name string, rows int, q store.RunSearch, change ...func(*planCase)) {
		q.Complete()
		sr := searching{store: d.Store, search: &q, low: 1}
		if !q.Since.IsZero() {
			sr.low = idAt(q.Since)
		}
		if !q.Until.IsZero() {
			q.Before = min(q.Before, idAt(q.Until.Add(sr.margin())))
		}
		var n int
		var oldest int64
		edge := sr.edge(&n, &oldest)
		if err := d.list(context.Background(), edge); err != nil {
			panic(err)
		}
		sr.low = oldest
		var runs []store.Run
		find := planCase{name: "SearchRuns " + name, st: sr.matches(&runs), rows: rows, batch: q.Examine, wasted: q.Examine, reach: reachAll}
		stop := planCase{name: "SearchRuns " + name + ": the edge", st: edge, rows: 1, batch: q.Examine + 100, wasted: 200, reach: reachAll}
		if len(q.JobIDs) == 1 {
			find.scans, stop.scans = smallLock, smallLock
		}
		for _, c := range change {
			c(&find)
			c(&stop)
		}
		find.st.read, stop.st.read = nil, nil
		list = append(list, find, stop)
	}
	open := func(c *planCase) { c.wasted = 13_000 } // what has not ended is in one index, which is read and sorted
	bad := []store.State{store.StateFailed, store.StateLost}
	middle := d.now.Add(-15 * day)
	search("all", 100, store.RunSearch{})
	search("of a rare app", 0, store.RunSearch{Apps: []string{"nowhere"}})
	search("of a rare app with a text", 0, store.RunSearch{Apps: []string{"app-1"}, Text: "nothing"})
	search("of two apps", 100, store.RunSearch{Apps: []string{"app-1", "app-2"}})
	search("by day", 100, store.RunSearch{Since: middle, Until: middle.Add(day)})
	search("by day of an app", 100, store.RunSearch{Since: middle, Until: middle.Add(day), Apps: []string{"app-3"}})
	search("bad", 100, store.RunSearch{States: bad})
	search("bad of an app", 100, store.RunSearch{States: bad, Apps: []string{"app-0"}})
	search("rare among the bad", 0, store.RunSearch{States: []store.State{store.StateKilled}})
	search("skipped", 100, store.RunSearch{States: []store.State{store.StateSkipped}})
	search("started", 100, store.RunSearch{States: []store.State{store.StateStarted}}, open)
	search("planned", 100, store.RunSearch{States: []store.State{store.StatePlanned}})
	search("of a job", 10, store.RunSearch{JobIDs: []int64{d.started[0].JobID}})
	search("bad of a job", 0, store.RunSearch{JobIDs: []int64{d.started[0].JobID}, States: bad})
	search("of two jobs", 0, store.RunSearch{JobIDs: []int64{42, 43}})
	search("ahead", 100, store.RunSearch{Ahead: true})
	search("ahead of an app", 10, store.RunSearch{Ahead: true, Apps: []string{"app-1"}})
	search("slow", 0, store.RunSearch{Slower: time.Hour})
	search("late", 0, store.RunSearch{LateBy: time.Hour})
	search("late and waiting", 100, store.RunSearch{LateBy: time.Second, States: []store.State{store.StatePlanned}})
	q := d.sql
	lo, hi := d.openRange()
	infos := []string{"xxl_job_info"}
	values := func(of query, prefix string) statement { return of.by(named{{"prefix", prefix}, {"limit", 20}}) }
	return append(append(list, d.jobSearchCases()...),
		planCase{name: "countJobs", st: q.countJobs.with(), rows: 10, scans: infos, wide: true},
		planCase{name: "valuesOfApp", st: values(q.valuesOfApp, "app-1"), rows: 1, scans: infos, wide: true},
		planCase{name: "valuesOfHandler", st: values(q.valuesOfHandler, "HAND"), rows: 20, scans: infos, wide: true},
		planCase{name: "valuesOfAuthor", st: values(q.valuesOfAuthor, ""), rows: 20, scans: infos, wide: true},
		planCase{name: "valuesOfTag", st: values(q.valuesOfTag, "tag"), rows: 10, scans: infos, wide: true},
		planCase{name: "schedules all", st: q.schedules.by(named{{"after", 0}, {"limit", 10_000}}), rows: 9000, wasted: 15_000, wide: true},
		planCase{name: "schedules 1000", st: q.schedules.by(named{{"after", 50_000}, {"limit", 1000}}), rows: 1000, wasted: 1500},
		planCase{name: "lastRuns 50x10", st: q.lastRuns.by(named{{"jobs", jobIDs(50, 1)}, {"limit", 10}}), rows: 100, reach: reachAll, wasted: 100},
		planCase{name: "lastRuns 200x1", st: q.lastRuns.by(named{{"jobs", jobIDs(200, 7)}, {"limit", 1}}), rows: 50, batch: 200, reach: reachAll, wasted: 100},
		planCase{name: "children", st: q.children.by(named{{"parent", idAt(d.now.Add(-time.Minute))}, {"after", 0}, {"limit", 100}}), reach: reachAll},
		planCase{name: "waitingRuns", st: q.waitingRuns.by(named{{"since", int64(0)}, {"after", int64(0)}, {"lo", lo}, {"hi", hi}, {"limit", 100}}), rows: 100, reach: reachOpen, wasted: 100},
		planCase{name: "waitingRuns behind", st: q.waitingRuns.by(named{{"since", d.now.UnixMilli()}, {"after", int64(1)}, {"lo", lo}, {"hi", hi}, {"limit", 100}}), rows: 5, reach: reachOpen, wasted: 100},
		planCase{name: "openRuns", st: q.openRuns.by(named{{"lo", lo}, {"hi", hi}, {"limit", 10_000}}), rows: 2, batch: 20_000, reach: reachOpen, wasted: 100, scans: manyOpen},
		planCase{name: "view", st: q.view.by(named{{"locks", true}, {"lock_class", int32(1)}, {"node_class", int32(2)}, {"incarnation", ""}}), rows: 1, scans: smallNodes},
	)
}

// jobSearchCases are lists of jobs in each order.
func (d *planData) jobSearchCases() []planCase {
	var list []planCase
	search := func(name string, rows int, q store.JobSearch, change ...func(*planCase)) {
		q.Complete()
		l := d.jobSearch(&q)
		c := planCase{name: "SearchJobs " + name, st: statement{sql: l.sql, args: l.args}, rows: rows, wasted: 3000}
		for _, f := range change {
			f(&c)
		}
		list = append(list, c)
	}
	// What no index serves goes through all jobs: of these there are ten times as many here as
	// such lists are made for.
	wide := func(c *planCase) { c.wide, c.scans = true, []string{"xxl_job_info", "xxl_job_next"} }
	search("by id", 100, store.JobSearch{After: store.Job{ID: 50_000}})
	search("by name", 100, store.JobSearch{Order: store.ByName})
	search("by name, on", 100, store.JobSearch{Order: store.ByName, After: store.Job{ID: 50_000, Name: "job 50000"}})
	search("by next", 100, store.JobSearch{Order: store.ByNext})
	search("by next, on", 100, store.JobSearch{Order: store.ByNext, After: store.Job{ID: 50_000, Next: d.now.Add(time.Hour)}})
	search("of two apps by name", 100, store.JobSearch{Order: store.ByName, Apps: []string{"app-1", "app-2"}})
	search("of a tag", 100, store.JobSearch{Tags: []string{"tag-50"}}, wide)
	search("of two tags", 100, store.JobSearch{Tags: []string{"tag-50", "all"}}, wide)
	search("of a text", 1, store.JobSearch{Text: "Job 4242"}, wide)
	search("that are stopped", 0, store.JobSearch{StopReason: "finished"}, wide)
	return list
}
