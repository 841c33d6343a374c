package postgres

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// planAhead is how many runs are kept apart: as many are due to move, and were cancelled,
// in the last minute as a statement takes at once, twice.
const planAhead = 100_000

// fillAhead makes them, over the next year: one in ten of a job that has many, and one in a
// thousand of app-1.
func (d *planData) fillAhead(t testing.TB) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_ahead (id, job_id, shard, app_name, state, trigger_type, scheduled_time, add_time, handle_time, executor_fail_retry_count, move_time)
	select $1::bigint + n * case when n <= 2000 then 1000 else 300000 end * 8192 + 7680, job, job % 32, 'app-' || job % 10, case when n between 2001 and 4000 then 11 else 0 end, 'MANUAL', ms + 86400000, now(),
		case when n between 2001 and 4000 then now() - interval '40 days' end, -1, ms
	from (select n, case when n % 10 = 0 then 42 when n % 1000 = 1 then n else n - n % 10 + 3 + n % 7 end job, $2::bigint + case when n <= 2000 then -n else n * 300000 end ms from generate_series(1, $3::bigint) n) a`,
		d.aheadID(0), d.now.UnixMilli(), planAhead)
}

// aheadID is the id of an entry.
func (d *planData) aheadID(n int64) int64 { return idAt(d.now.Truncate(day)) + n*300_000<<idBits }

func (d *planData) aheadCases() []planCase {
	q := d.sql
	shards, epochs := fenceArgs(d.allShards())
	now := milli(d.now)
	t := store.Trigger{At: d.now.AddDate(1, 0, 0)}
	id, hour := d.aheadID(planAhead+1)+7680, d.aheadID(planAhead+1)
	move := func(name string, before int64, limit, rows int) planCase {
		return planCase{name: "moveAhead " + name, st: q.moveAhead.by(named{
			{"shards", shards}, {"epochs", epochs}, {"before", before}, {"limit", limit}, {"oldest", int64(0)},
		}), rows: rows, batch: 2 * rows, scans: smallLock, reach: reachOne}
	}
	ids := make([]int64, 1000)
	for i := range ids {
		ids[i] = d.aheadID(int64(5000+i)) + 7680
	}
	many := named{{"job", 42}, {"reason", "remove"}, {"after", int64(0)}, {"limit", manyAhead}}
	add := aheadArgs(42, nil, &t, t.At.Add(-day), hour)
	return []planCase{
		{name: "addAheadKey", st: q.addAheadKey.by(named{{"job", 42}, {"key", "a new key"}, {"hour", hour}}), rows: 1},
		{name: "addAhead", st: q.addAhead.by(add), rows: 1},
		{name: "addAhead with key", st: q.addAhead.by(aheadArgs(42, &id, &t, t.At.Add(-day), hour)), rows: 1},
		{name: "planAhead", st: q.planAhead.by(add), rows: 1},
		{name: "nextAhead", st: q.nextAhead.with(shards), rows: 1},
		{name: "nextAhead one shard", st: q.nextAhead.with(shards[:1]), rows: 1},
		{name: "dueAhead", st: q.dueAhead.by(named{{"shards", shards}, {"before", now}, {"limit", 1000}, {"oldest", int64(0)}}), rows: 1000},
		move("1000", now, 1000, 1000),
		move("1", now, 1, 1),
		move("none", now-time.Hour.Milliseconds(), 1000, 0),
		{name: "aheadByID", st: q.aheadByID.with(ids[0]), rows: 1},
		{name: "aheadAsItIs", st: q.aheadAsItIs.with(ids[0]), rows: 1},
		{name: "aheadByIDs 1000", st: q.aheadByIDs.with(ids), rows: 1000},
		{name: "aheadByIDs 1", st: q.aheadByIDs.with(ids[:1]), rows: 1},
		{name: "keyAhead", st: q.keyAhead.with(42, "order-42")},
		{name: "killAhead", st: q.killAhead.with(ids[0], "x"), rows: 1},
		{name: "cancelAhead", st: q.cancelAhead.with(10_001, "remove"), rows: 1},
		{name: "cancelAhead many", st: q.cancelAhead.with(42, "remove"), rows: 9000, wasted: 300},
		{name: "countAhead", st: q.countAhead.with(42, fewAhead+1), rows: 1, batch: 1500, wasted: 300},
		{name: "countAhead none", st: q.countAhead.with(planJobs, fewAhead+1), rows: 1},
		{name: "cancelCounted", st: q.cancelCounted.by(append(many, named{{"slot", 1}, {"spare", 100}}...)), rows: 1, batch: 5 * manyAhead, wasted: 300},
		{name: "cancelUncounted", st: q.cancelUncounted.by(many), rows: 1, batch: 3 * manyAhead, wasted: 300},
		{name: "dropCancelled", st: q.dropCancelled.with(d.now.AddDate(0, 0, -30), endBatch), rows: endBatch, batch: 2 * endBatch},
		{name: "dropCancelled none", st: q.dropCancelled.with(d.now.AddDate(0, 0, -50), endBatch)},
	}
}
