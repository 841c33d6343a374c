package postgres

import (
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// How much there is of what follows a success, and of alarms. Each job in ten leads to others,
// and a thousand run behind one by its id, as many by its key.
const (
	planOwed    = 20_000
	planWindows = 10_000
	planAlarms  = 100_000 // one in ten of them open
)

func (d *planData) fillOwed(t testing.TB) {
	t.Helper()
	d.exec(t, `update {{schema}}.xxl_job_info set child_jobid = (id + 1)::text where id % 10 = 0`)
	d.exec(t, `insert into {{schema}}.xxl_job_link (job_id, other_id) select n + 50000, n * 20 from generate_series(1, 1000) n`)
	d.exec(t, `insert into {{schema}}.xxl_job_link (job_id, other_app, other_key) select n + 60000, 'app-' || n * 20 % 10, 'key-' || n * 20 from generate_series(1, 1000) n`)
	d.exec(t, `insert into {{schema}}.xxl_job_owed (shard, log_id, trigger_id, parent_job, job_id, app_name, job_key, is_join, business_time, depth)
	select n % 32, $1::bigint + n, $1::bigint + n, n, case when n % 2 = 0 then n end, case when n % 2 = 1 then 'app-' || (n + 1) % 10 end,
		case when n % 2 = 1 then 'key-' || n + 1 end, false, 1, 1 from generate_series(1, $2::int) n`, idAt(d.now.Add(-time.Hour)), planOwed)
	d.exec(t, `insert into {{schema}}.xxl_job_part (trigger_id) select $1::bigint + n * 8192 from generate_series(1, 10000) n`, idAt(d.now.Add(-time.Hour)))
	d.exec(t, `insert into {{schema}}.xxl_job_window (job_id, begins, shard, expires, parent_id, depth, succeeded)
	select 50000 + n / 10, n, (50000 + n / 10) % 32, $1::bigint + n * 1000 - 2000000, n, 1, array[1, 2, 3] from generate_series(1, $2::int) n`, d.now.UnixMilli(), planWindows)
	d.exec(t, `update {{schema}}.xxl_job_info set late_after = 60000 where id % 1000 = 1`)
	d.exec(t, `insert into {{schema}}.xxl_job_alarm (shard, job_id, job_version, app_name, job_key, job_desc, alarm_email, cause, log_id, trigger_id, state, attempt, instant, content, status, add_time)
	select n % 32, n, 1, 'app-' || n % 10, 'key-' || n, 'job ' || n, '', 'failed', $1::bigint + n, $1::bigint + n, 'failed', 0, 1, 'boom', case when n % 10 = 0 then 0 else 2 end,
		now() - interval '1 second' * ($2::int - n) from generate_series(1, $2::int) n`, idAt(d.now.Add(-time.Hour)), planAlarms)
	d.exec(t, `insert into {{schema}}.xxl_job_told (job_id, rule, shard, at, is_open, log_id, trigger_id)
	select n, 'mail', n % 32, $1::bigint - 60000, n % 50 = 0, $2::bigint, $2::bigint from generate_series(1, 10000) n`, d.now.UnixMilli(), idAt(d.now.Add(-time.Hour)))
}

func (d *planData) owedCases() []planCase {
	q := d.sql
	shards, epochs := fenceArgs(d.allShards())
	jobs := jobIDs(100, 20)
	triggers := make([]int64, 100)
	for i := range triggers {
		triggers[i] = d.ended[i]
	}
	take := func(limit int) named { return named{{"shards", shards}, {"epochs", epochs}, {"limit", limit}} }
	windows := []int64{50001, 50002}
	job := d.job(50)
	job.After, job.AfterKeys = []int64{1, 2}, []string{"app-1/key-2"}
	return append(d.alarmCases(), []planCase{
		{name: "joinsBehind", st: q.joinsBehind.with(jobs), rows: 100, wasted: 300},
		{name: "leading", st: q.leading.with(jobs), rows: 100, wasted: 100},
		{name: "holdParts", st: q.holdParts.with(triggers), batch: 100},
		{name: "wholeParts", st: q.wholeParts.with(triggers), reach: reachAll, wasted: 200},
		{name: "insertOwed", st: q.insertOwed.by(named{
			{"shards", []int16{1}}, {"runs", []int64{1}}, {"triggers", []int64{1}}, {"parents", []int64{1}}, {"jobs", []int64{1}}, {"apps", []*string{nil}}, {"keys", []*string{nil}},
			{"joins", []bool{false}}, {"params", []int16{0}}, {"business", []int64{1}}, {"depths", []int16{1}}, {"traces", []*string{nil}},
		})},
		{name: "anyOwed", st: q.anyOwed.with(shards), rows: 1, wasted: 100},
		{name: "takeOwed 1000", st: q.takeOwed.by(take(1000)), rows: 1000, scans: smallLock, wasted: planOwed},
		{name: "takeOwed 1", st: q.takeOwed.by(take(1)), rows: 1, scans: smallLock, wasted: planOwed},
		{name: "deleteOwed", st: q.deleteOwed.with(triggers)},
		{name: "noteUnpaid", st: q.noteUnpaid.by(named{{"runs", triggers[:3]}, {"lines", []string{"a", "b", "c"}}, {"lo", idAt(d.now.Add(-day))}, {"hi", idAt(d.now)}}), reach: reachIDs, batch: 3},
		{name: "keepFree", st: q.keepFree.with(jobs), rows: 100},
		{name: "heldWindows", st: q.heldWindows.by(named{{"jobs", windows}, {"begins", []int64{11, 22}}}), batch: 2, wasted: 50},
		{name: "heldParts", st: q.heldParts.with(triggers), batch: 100},
		{name: "lead", st: q.lead.by(named{
			{"jobs", jobs[:2]}, {"keys", []string{"a", "b"}}, {"parents", []int64{1, 2}}, {"depths", []int16{1, 33}}, {"due", []int64{0, 0}}, {"business", []int64{1, 1}},
			{"params", []*string{nil, nil}}, {"traces", []*string{nil, nil}}, {"reasons", []*string{nil, new("depth")}}, {"lines", []*string{nil, nil}},
		}), rows: 2},
		{name: "namedByKeys", st: q.namedByKeys.by(named{{"apps", []string{"app-2", "app-4"}}, {"keys", []string{"key-2", "key-4"}}}), rows: 2},
		{name: "upsertWindow", st: q.upsertWindow.by(named{
			{"job", 50001}, {"begins", 10}, {"shard", 1}, {"timeout", 1000}, {"parent", 1}, {"depth", 1}, {"succeeded", []int64{4, 5}},
		}), rows: 1},
		{name: "closedWindows", st: q.closedWindows.by(named{{"jobs", []int64{1, 2}}, {"keys", []string{"order-1", "x"}}}), rows: 1},
		{name: "deleteWindows", st: q.deleteWindows.by(named{{"jobs", windows}, {"begins", []int64{11, 22}}}), batch: 2},
		{name: "nextWindow", st: q.nextWindow.with(shards, epochs), rows: 1, wasted: 100, scans: smallLock},
		{name: "overWindows", st: q.overWindows.by(named{{"shards", shards}, {"epochs", epochs}, {"before", milli(d.now)}, {"limit", 1000}}), rows: 1000, scans: smallLock, wasted: 2000},
		{name: "link", st: d.link([]store.Job{*job}), batch: 3},
		{name: "links", st: q.links.with(), rows: 1000, wide: true, scans: []string{"xxl_job_link", "xxl_job_info"}},
		{name: "deleteParts", st: q.deleteParts.by(named{{"lo", idAt(d.now.Add(-time.Hour))}, {"hi", idAt(d.now)}, {"limit", 1000}}), rows: 1000},
	}...)
}

func (d *planData) alarmCases() []planCase {
	q := d.sql
	shards, epochs := fenceArgs(d.allShards())
	lo, hi := d.openRange()
	ids := make([]int64, 1000)
	statuses, rules := make([]int16, 1000), make([]string, 1000)
	for i := range ids {
		ids[i], statuses[i], rules[i] = int64(i+1)*10, store.AlarmSent, "mail"
	}
	return []planCase{
		{name: "insertAlarms", st: q.insertAlarms.by(named{
			{"shards", []int16{1, 1}}, {"jobs", []int64{1, 2}}, {"apps", []string{"app", ""}}, {"causes", []string{"failed", "stopped"}}, {"runs", []*int64{new(int64(1)), nil}},
			{"triggers", []*int64{new(int64(1)), nil}}, {"states", []*string{new("failed"), nil}}, {"attempts", []int16{0, 0}}, {"instants", []int64{1, 0}}, {"texts", []string{"a", "b"}},
		}), rows: 2},
		{name: "leastLate", st: q.leastLate.with(shards), rows: 1, wasted: 200},
		{name: "lateRuns", st: q.lateRuns.by(named{
			{"shards", shards}, {"epochs", epochs}, {"now", milli(d.now.Add(time.Hour))}, {"limit", 1000}, {"lo", lo}, {"hi", hi},
		}), rows: 90, reach: reachOpen, scans: smallLock, wasted: 300},
		{name: "openAlarms 1000", st: q.openAlarms.by(named{{"shards", shards}, {"after", int64(0)}, {"limit", 1000}}), rows: 1000, wasted: planAlarms / 10},
		{name: "openAlarms none", st: q.openAlarms.by(named{{"shards", shards}, {"after", int64(planAlarms)}, {"limit", 1000}}), wasted: 100},
		{name: "tellAlarms 1000", st: q.tellAlarms.by(named{{"alarms", ids}, {"rules", rules}, {"gave_up", make([]bool, len(ids))}}), batch: 1000},
		{name: "endAlarms 1000", st: q.endAlarms.by(named{{"alarms", ids}, {"statuses", statuses}}), batch: 1000, reach: reachAll, wasted: 1000},
		{name: "putTold", st: q.putTold.by(named{{"jobs", []int64{1}}, {"rules", []string{"mail"}}, {"at", []int64{1}}, {"open", []bool{true}}, {"runs", []*int64{nil}}, {"triggers", []*int64{nil}}})},
		{name: "dropTold", st: q.dropTold.with([]int64{1, 2}), wasted: 2},
		{name: "forgetTold", st: q.forgetTold.with(5)},
		{name: "toldJobs", st: q.toldJobs.with(jobIDs(100, 1)), rows: 100},
		{name: "countOpen", st: q.countOpen.with(shards), rows: 1, batch: 200},
		{name: "recovered", st: q.recovered.by(named{{"shards", shards}, {"after", 0}, {"rule", ""}, {"limit", 1000}}), reach: reachAll, wide: true},
		{name: "dropAlarms", st: q.dropAlarms.by(named{{"before", d.now}, {"untold", d.now.Add(-2 * day)}, {"limit", 1000}}), rows: 1000, wasted: 200},
	}
}
