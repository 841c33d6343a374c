package postgres

import (
	"slices"
	"time"
)

// dropCases are deletions of ended runs: a thousand of a day, of a job, and of jobs that keep
// theirs for a day.
func (d *planData) dropCases() []planCase {
	q := d.sql
	var none *time.Time
	var apps []string
	ended := d.now.Add(-10 * time.Minute)
	any := func(after, below int64, limit int, apps []string) named {
		return named{{"after", after}, {"below", below}, {"limit", limit}, {"ended", &ended}, {"apps", apps}}
	}
	of := func(job int64, limit int) named {
		return named{{"after", int64(0)}, {"below", int64(maxRunID)}, {"limit", limit}, {"ended", none}, {"apps", apps}, {"job", job}}
	}
	middle := d.now.Truncate(day).Add(-15 * day)
	old := d.idsOfDay(middle, 1000)
	pagesOf := func(q query, runs []int64, limit int) statement {
		lo, hi := rangeOf(runs)
		args := named{{"runs", runs}, {"lo", lo}, {"hi", hi}}
		if limit > 0 {
			args = append(args, named{{"limit", limit}}...)
		}
		return q.by(args)
	}
	days := slices.Repeat([]int32{int32(d.loggedDay().Sub(idTime(0)) / day)}, 100)
	return []planCase{
		{name: "anyEnded", st: q.anyEnded.by(any(0, maxRunID, 1000, apps)), rows: 1000, reach: reachAll, wasted: 100},
		{name: "anyEnded from before", st: q.anyEnded.by(any(idAt(middle), idAt(middle.Add(day)), 1000, apps)), rows: 1000, reach: reachAll, wasted: 100},
		{name: "anyEnded of a rare app", st: q.anyEnded.by(any(idAt(middle), maxRunID, 1000, []string{"nowhere"})), rows: 1000, reach: reachAll, wasted: 100},
		{name: "endedOfJob", st: q.endedOfJob.by(of(d.started[0].JobID, 1000)), rows: 5, reach: reachAll, wasted: 100},
		{name: "oldestKept", st: q.oldestKept.by(named{{"job", d.started[0].JobID}, {"behind", 4}}), rows: 1, batch: 10, reach: reachAll, wasted: 100},
		{name: "oldestKept of fewer", st: q.oldestKept.by(named{{"job", d.started[0].JobID}, {"behind", 99_999}}), batch: 100, reach: reachAll, wasted: 100},
		{name: "keepers", st: q.keepers.by(named{{"after", int64(50_000)}, {"limit", dropJobs + 1}}), rows: dropJobs, wasted: 100},
		// Each run is looked for in seven tables, in an index of each.
		{name: "droppable 1000", st: q.droppable.by(d.dropArgs(old)), rows: 900, batch: 3000, reach: reachAll, wasted: 2000},
		{name: "dropEnded 1000", st: q.dropEnded.by(d.dropArgs(old)), rows: 900, batch: 4000, reach: reachAll, wasted: 2000},
		{name: "dropEnded 1", st: q.dropEnded.by(d.dropArgs(old[:1])), rows: 1, reach: reachAll, wasted: 100},
		{name: "dropEnded of the last hour", st: q.dropEnded.by(d.dropArgs(d.ended)), rows: 500, batch: 4000, reach: reachAll, wasted: 4000},
		{name: "lockDroppable", st: q.lockDroppable.by(d.dropArgs(old[:1])), rows: 1, reach: reachAll, wasted: 100},
		{name: "countPages 1000", st: pagesOf(q.countPages, d.logged[:1000], 1001), rows: 1, reach: reachAll, batch: 1100},
		{name: "countPages none", st: pagesOf(q.countPages, d.logged[loggedRuns:loggedRuns+1000], 1001), rows: 1, reach: reachAll, batch: 1000},
		{name: "dropPagesOf", st: pagesOf(q.dropPagesOf, d.logged[:50], 0), rows: 50, batch: 3000, reach: reachAll},
		{name: "dropSomePages", st: q.dropSomePages.by(named{{"run", d.logged[0]}, {"limit", 10}}), rows: 1, batch: 30, reach: reachOne},
		{name: "lessUse 100", st: q.lessUse.by(named{{"days", days}, {"jobs", jobIDs(100, 1)}, {"bytes", jobIDs(100, 1)}}), batch: 300},
		{name: "dropKeys", st: q.dropKeys.with(old), batch: 1000},
		{name: "dayNeeded", st: q.dayNeeded.by(named{{"lo", idAt(middle)}, {"hi", idAt(middle.Add(day)) - 1}, {"open_lo", idAt(d.now.Add(-2 * time.Hour))}, {"open_hi", idAt(d.now.Add(2 * time.Hour))}}),
			rows: 1, reach: reachOpen, wasted: 40_000, batch: 10_000},
	}
}

// idsOfDay are the ids of the first ended runs of a day, as fillPartitions makes them.
func (d *planData) idsOfDay(from time.Time, n int) (ids []int64) {
	lo, hi := idAt(from), idAt(from.Add(day))
	for i := range int64(n) {
		ids = append(ids, lo+i*((hi-lo)/(planRuns/planDays)))
	}
	return ids
}
