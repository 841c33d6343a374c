package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
)

// The data that statements are explained on: a service that has been running for
// a month.
const (
	planShards = 32
	planJobs   = 100_000
	planRuns   = 1_000_000
	planDays   = 30
	planEpoch  = 7
	planNode   = "node-1" // owns the shards, has most runs
	planOther  = "node-2" // is handed runs
)

// planData is a store on the data, and the rows of it that arguments are made of.
type planData struct {
	*Store
	jobs    int  // how many there are
	scratch bool // nothing but plans is asked of the data: it need not outlive a crash, and is made sooner
	now     time.Time
	planned []store.Run // in the last minute, of enabled jobs, one a job
	started []store.Run // by planNode, taken
	old     int64       // the least id of an unended run, in the first partition
	ended   []int64     // some ids of ended runs, of the last hour
	logged  []int64     // ids of ended runs of one day, the first of which have pages of logs
}

// newPlanData makes the data, in less than twenty seconds on two cores. Tables
// are analyzed as autovacuum does it: partitions are, their parent never is.
func newPlanData(t testing.TB) *planData {
	t.Helper()
	began := time.Now()
	d := &planData{Store: emptyPlanStore(t), jobs: planJobs, scratch: true}
	d.exec(t, `do $$ declare r regclass; begin
	for r in select oid from pg_class where relnamespace = '{{schema}}'::regnamespace and relkind = 'r' loop
		execute 'alter table ' || r || ' set unlogged';
	end loop; end $$`)
	d.fillRuns(t)
	d.fillAhead(t)
	d.fillOwed(t)
	d.fillReports(t)
	d.fillLogs(t)
	d.unindexed(t, "xxl_job_change", func() { d.fillRecord(t) })
	d.fillAccounts(t)
	d.analyze(t)
	d.readBack(t)
	d.took(t, began)
	return d
}

// fillRuns makes jobs and their runs.
func (d *planData) fillRuns(t testing.TB) {
	t.Helper()
	d.readClock(t)
	d.fillPartitions(t)
	d.fillJobs(t)
	d.fillAround(t)
	d.fillOpen(t)
	d.fillReads(t)
}

func (d *planData) took(t testing.TB, began time.Time) {
	t.Logf("%d jobs and %d runs in %d partitions made in %.1fs", d.jobs, planRuns, planDays, time.Since(began).Seconds())
}

// emptyPlanStore is a store in a schema of its own, and not one that other tests
// empty: that would take as long again.
func emptyPlanStore(t testing.TB, opts ...pgtest.Option) *Store {
	t.Helper()
	pool := pgtest.Pool(t, append(opts, pgtest.With(func(c *pgxpool.Config) {
		// Indexes of this size are sorted in memory then.
		c.ConnConfig.RuntimeParams["maintenance_work_mem"] = "256MB"
	}))...)
	s, err := New(t.Context(), pool, AllDays(Config{Schema: pgtest.Schema(t), AutoMigrate: true}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// readClock sets the time that the data is made for.
func (d *planData) readClock(t testing.TB) {
	t.Helper()
	now, err := d.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.now = now.Truncate(time.Millisecond)
}

func (d *planData) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := d.pool.Exec(t.Context(), strings.ReplaceAll(sql, "{{schema}}", d.schema), args...); err != nil {
		t.Fatalf("%v in %s", err, sql)
	}
}

// unindexed fills a table without its indexes, which are built at once then as those of partitions are: with a row at
// a time they take several times as long.
func (d *planData) unindexed(t testing.TB, table string, fill func()) {
	t.Helper()
	if !d.scratch {
		fill()
		return
	}
	rows, err := d.pool.Query(t.Context(), `select i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) from pg_index i
		where i.indrelid = $1::text::regclass and not exists (select from pg_constraint c where c.conindid = i.indexrelid)`, d.schema+"."+table)
	if err != nil {
		t.Fatal(err)
	}
	var name, definition string
	var drop, create []string
	if _, err := pgx.ForEachRow(rows, []any{&name, &definition}, func() error {
		drop, create = append(drop, "drop index "+name), append(create, definition)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	d.exec(t, strings.Join(drop, "; "), pgx.QueryExecModeSimpleProtocol)
	fill()
	d.exec(t, strings.Join(create, "; "), pgx.QueryExecModeSimpleProtocol)
}

// sqlEnded inserts the ended runs of one partition, $3 of them, with ids from $1
// to $2, of $4 jobs.
const sqlEnded = `insert into %s (id, job_id, shard, app_name, state, alarm_status, trigger_type, scheduled_time, add_time, trigger_time,
	taken_time, handle_time, plan_epoch, start_token, job_version, trigger_id, executor_fail_retry_count, executor_address,
	executor_handler, executor_block_strategy)
select id, job, job %% 32, 'app-' || job %% 10, case when n %% 20 <> 0 then 3 when n %% 100 = 0 then 7 when n %% 260 = 0 then 10 when n %% 340 = 0 then 11 else 4 end,
	1, case when n %% 100 = 1 then 'RETRY' else 'CRON' end, ms, at, at, at, at, 7, id, 1, case when n %% 100 = 1 then id - 8192 end, 0, 'local://node-1',
	'handler-' || job %% 100, 'SERIAL_EXECUTION'
from (select n, id, (id >> 13) + 1735689600000 ms, to_timestamp(((id >> 13) + 1735689600000) / 1000.0) at, (id / 8192 * 7919 + n) %% $4::bigint + 1 job
	from (select n, $1::bigint + n * (($2::bigint - $1::bigint) / $3::bigint) id from generate_series(0, $3::bigint - 1) n) a) b`

// fillPartitions makes the partitions of the last days, and fills each before it
// is attached: its indexes are built at once then.
func (d *planData) fillPartitions(t testing.TB) {
	t.Helper()
	var fill errgroup.Group
	fill.SetLimit(2)
	for _, from := range d.days() {
		if from.After(d.now.Add(-2 * day)) { // the store has made yesterday's and today's
			d.exec(t, fmt.Sprintf("alter table {{schema}}.xxl_job_log detach partition %s; drop table %[1]s", d.partition(from)))
		}
		fill.Go(func() error {
			create := d.newPartition(from)[0]
			if d.scratch {
				create = strings.Replace(create, "create table", "create unlogged table", 1)
			}
			if _, err := d.pool.Exec(t.Context(), create); err != nil {
				return err
			}
			to := min(idAt(from.Add(day)), idAt(d.now.Add(-time.Minute)))
			if to < idAt(from.Add(time.Minute)) {
				return nil // it is just past midnight
			}
			_, err := d.pool.Exec(t.Context(), fmt.Sprintf(sqlEnded, d.partition(from)), idAt(from), to, planRuns/planDays, d.jobs)
			return err
		})
	}
	if err := fill.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, from := range d.days() {
		d.exec(t, d.newPartition(from)[1])
	}
}

// days are the beginnings of the last planDays days, the last one being today's.
func (d *planData) days() []time.Time {
	days := make([]time.Time, planDays)
	for i := range days {
		days[i] = d.now.Truncate(day).Add(time.Duration(i+1-planDays) * day)
	}
	return days
}

func (d *planData) partition(day time.Time) string { return d.schema + "." + partitionName(day) }

// fillJobs makes jobs of which 90 of 100 are not due yet, 5 are due, 2 are
// stopped, 1 waits for a run, and the others are run by hand, but for a few that
// have nothing left to wait for. $1 is the time.
func (d *planData) fillJobs(t testing.TB) {
	t.Helper()
	d.unindexed(t, "xxl_job_info", func() { d.fillDefinitions(t) })
	d.unindexed(t, "xxl_job_next", func() { d.fillInstants(t) })
	d.exec(t, `insert into {{schema}}.xxl_job_lock (lock_name, shard, owner, epoch) select 'shard_' || n, n, $1, $2 from generate_series(0, 31) n`, planNode, planEpoch)
	d.exec(t, `insert into {{schema}}.xxl_job_node (incarnation, node_id, beats, has_left, attached) select 'node-' || n, 'node-' || n, 1, false, '[]' from generate_series(1, 3) n`)
	d.exec(t, `insert into {{schema}}.xxl_job_group (app_name, title, address_type, address_list, update_time) select 'app-' || n, '', 0, '{}', now() from generate_series(0, 9) n`)
}

func (d *planData) fillDefinitions(t testing.TB) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_info (`+strings.ReplaceAll(definitionColumns, "i.", "")+`)
	select n, n % 32, 1, 'app-' || n % 10, case when n % 2 = 0 then 'key-' || n end, 'job ' || n, 'author-' || n % 20, '',
		case when n % 100 = 97 then 'FIX_DELAY' when n % 100 = 98 then 'NONE' else 'CRON' end, '0 0 * * * ?', '', '', 'DO_NOTHING', '',
		'FIRST', 'handler-' || n % 100, '', 'SERIAL_EXECUTION', 0, 0, 'BEAN', '', '', null, '',
		case when n % 100 in (95, 96) then 0 else 1 end, '', '', now(), now(), 0, 0, 0, 0, '', 0, 0, 0, false, 0, 0, '', '', '', '', 0, '', 0, 0, case when n % 50 = 0 then '["tag-' || n % 500 || '", "all"]' else '' end, 0, 0, case when n % 100 = 7 then 86400000 else 0 end, false, ''
	from generate_series(1, $1) n`, d.jobs)
}

func (d *planData) fillInstants(t testing.TB) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_next (trigger_next_time, trigger_last_time, wait_run, version, delay, job_id, shard, trigger_status, manual, app_name)
	select case when n % 100 < 90 then $2::bigint + 60000 + n::bigint * 7919 % 86400000 when n % 100 < 95 then $2::bigint - n % 2000 else 0 end,
		0, case when n % 100 = 97 then $3::bigint + n else 0 end, 1, case when n % 100 = 97 then 1000 else 0 end, n, n % 32,
		case when n % 100 in (95, 96) then 0 else 1 end, n % 100 >= 98 and n % 10000 <> 99, 'app-' || n % 10
	from generate_series(1, $1) n`, d.jobs, d.now.UnixMilli(), idAt(d.now.Add(-time.Hour)))
}

// fillAround makes what is about apps and nodes, and not read with each run.
func (d *planData) fillAround(t testing.TB) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_mute select 'job/' || n, 'app-' || n % 100, n, now() - interval '1 day', 'li.na', now() + (n % 10 - 1) * interval '1 day', 'known' from generate_series(1, 200) n`)
	d.exec(t, `insert into {{schema}}.xxl_job_app_token select 'token ' || n, array['app-' || n], decode(repeat('00', 32), 'hex'), now() - interval '1 day', 'li.na', now() + interval '1 day' from generate_series(1, 200) n`)
	d.exec(t, `insert into {{schema}}.xxl_job_served select 'app-' || n, 'attached', case when n % 7 = 0 then 1 else 0 end from generate_series(0, 4999) n`)
	d.exec(t, `insert into {{schema}}.xxl_job_registry (registry_group, registry_key, registry_value, boot_id, capabilities, update_time)
	select 'EXECUTOR', 'app-' || n % 100, 'http://10.0.0.' || n, 'boot', '{repeat}', case when n < 1000 then now() - interval '1 day' else now() end
	from generate_series(0, 99999) n`)
	// Questions are kept for a minute; these for as long as all else may take to make.
	d.exec(t, `insert into {{schema}}.xxl_job_ask (incarnation, run_id, from_line, asked, answered)
	select 'node-' || n % 3 + 1, n, 1, now() + interval '1 day' * case when n > 900 then -1 else 1 end, case when n % 50 <> 1 then now() end
	from generate_series(1, 1000) n`)
	d.fillLists(t)
	d.exec(t, `insert into {{schema}}.xxl_job_trigger_key (job_id, trigger_key, run_id)
	select n, 'order-' || n, $1::bigint + n * 8192 from generate_series(1, 10000) n`, idAt(d.now.Add(-10*day)))
}

// fillLists gives each node a list of each app, with all its keys but one of a hundred.
func (d *planData) fillLists(t testing.TB) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_list_head (app_name, generation, digest, node_id) select 'app-' || n, 1, 'digest', 'node-1' from generate_series(0, 9) n`)
	d.exec(t, `insert into {{schema}}.xxl_job_list (app_name, incarnation, generation, prune, digest, job_keys)
	select 'app-' || a, 'node-' || n, 1, true, 'digest', array(select 'key-' || k from generate_series(1, $1::int) k where k % 10 = a and k % 2 = 0 and k % 1000 >= 10)
	from generate_series(0, 9) a, generate_series(1, 3) n`, d.jobs)
	d.exec(t, `insert into {{schema}}.xxl_job_named (job_id, generation) select n, 1 from generate_series(2, $1, 2) n`, d.jobs)
}

// fillOpen makes the runs that have not ended: 10,000 planned and 2,500 started
// in the last minute, and a few triggers of a month ago for a later time.
func (d *planData) fillOpen(t testing.TB) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_log (id, job_id, shard, app_name, state, trigger_type, scheduled_time, add_time, plan_epoch, executor_fail_retry_count)
	select id, job, job % 32, 'app-' || job % 10, 0, case when n % 10 = 0 then 'MANUAL' else 'CRON' end,
		$1::bigint - 55000 + n * 6, now(), case when n % 10 = 0 then null else 7 end, -1
	from (select n, $2::bigint + n * 6 * 8192 id, (n * 10 + 1) % $3::bigint job from generate_series(0, 9999) n) a`, d.now.UnixMilli(), idAt(d.now.Add(-time.Minute)), d.jobs)
	d.exec(t, `insert into {{schema}}.xxl_job_log (id, job_id, shard, app_name, state, trigger_type, scheduled_time, add_time, trigger_time, taken_time, plan_epoch,
		start_token, job_version, executor_fail_retry_count, executor_address, start_owner, inbox, kill_reason)
	select id, job, job % 32, 'app-' || job % 10, case when n >= 2000 then 2 else 1 end, 'CRON', $1::bigint - 55000 + n * 6, now(), now(),
		case when n < 1500 or n >= 1800 then now() end, 7, id, 1, 0,
		case when n < 1500 then 'local://node-1' when n < 1810 then 'local://node-2' else 'http://10.0.0.' || n % 10 end,
		case when n >= 1500 then 'node-1' end, case when n >= 1500 and n < 1800 then 'node-2' end, case when n >= 1800 and n < 1810 then 'killed' end
	from (select n, $2::bigint + n * 6 * 8192 + 1 id, (n * 10 + 2) % $3::bigint job from generate_series(0, 2499) n) a`, d.now.UnixMilli(), idAt(d.now.Add(-time.Minute)), d.jobs)
	d.old = idAt(d.now.Truncate(day).Add((1-planDays)*day).Add(time.Minute)) + 1
	d.exec(t, `insert into {{schema}}.xxl_job_log (id, job_id, shard, app_name, state, trigger_type, scheduled_time, add_time, executor_fail_retry_count)
	select $1::bigint + n * 8192, n * 100 + 98, (n * 100 + 98) % 32, 'app-8', 0, 'MANUAL', $2::bigint + 3600000, now(), -1 from generate_series(0, 4) n`,
		d.old, d.now.UnixMilli())
}

func (d *planData) analyze(t testing.TB) {
	t.Helper()
	names := strings.Fields("xxl_job_info xxl_job_next xxl_job_change xxl_job_lock xxl_job_node xxl_job_group xxl_job_registry xxl_job_trigger_key xxl_job_ask xxl_job_list_head xxl_job_list xxl_job_named xxl_job_ahead xxl_job_link xxl_job_owed xxl_job_part xxl_job_window xxl_job_alarm xxl_job_told xxl_job_mute xxl_job_app_token xxl_job_served xxl_job_rule xxl_job_rule_node xxl_job_log_use" + accountTables)
	for i := range names {
		names[i] = d.schema + "." + names[i]
	}
	var old []string // whose rows are all alike: a tenth of the usual sample says the same of them
	for i, from := range d.days() {
		if i < planDays-4 {
			old = append(old, d.partition(from))
		} else {
			names = append(names, d.partition(from))
		}
	}
	names = append(names, d.schema+"."+pagePartitionName(d.loggedDay()))
	d.exec(t, "vacuum (analyze) "+strings.Join(names, ", "))
	conn, err := d.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, sql := range []string{"set default_statistics_target = 10", "vacuum (analyze) " + strings.Join(old, ", "), "reset default_statistics_target"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// readBack reads the rows that arguments are made of.
func (d *planData) readBack(t testing.TB) {
	t.Helper()
	recent := idAt(d.now.Add(-time.Minute))
	d.planned = d.some(t, "l.id >= $1 and l.state = 0 and l.job_id % 100 < 90 order by l.id", recent)
	d.started = d.some(t, "l.id >= $1 and l.state = 1 and l.start_owner is null and l.inbox is null order by l.id", recent)
	for _, r := range d.some(t, "l.id < $1 and l.state = 3 order by l.id desc limit 1000", recent) {
		d.ended = append(d.ended, r.ID)
	}
}

func (d *planData) some(t testing.TB, where string, args ...any) (runs []store.Run) {
	t.Helper()
	sql := fmt.Sprintf("select %s from %s.xxl_job_log l where %s", runColumns, d.schema, where)
	if err := d.read(t.Context(), statement{sql: sql, args: args, read: readRuns(&runs)}); err != nil {
		t.Fatal(err)
	}
	return runs
}

// servedArgs note that n apps are served, of which some are known as unserved.
func (d *planData) servedArgs(n int) named {
	apps := make([]store.Served, n)
	for i := range apps {
		apps[i] = store.Served{App: fmt.Sprintf("app-%d", i*7), By: store.ServedAttached}
	}
	return servedArgs(apps)
}

// pretend makes arguments for tables that are empty.
func (d *planData) pretend() {
	for i := range 10_000 {
		r := store.Run{ID: idAt(d.now) + int64(i), JobID: int64(i + 1), Shard: (i + 1) % planShards, Owner: planNode, Token: 1, Address: store.LocalAddress(planNode)}
		d.planned = append(d.planned, r)
		d.started = append(d.started, r)
	}
	for i := range 1000 {
		d.ended = append(d.ended, d.planned[i].ID)
	}
	for i := range 2 * loggedRuns {
		d.logged = append(d.logged, idAt(d.now)+int64(i))
	}
}

// TestPlansOfTablesAnalyzedEmpty explains the statements of the loop where tables were analyzed
// while they were empty, as a nightly analyze of a new database does, and nobody has since. The
// planner takes such a table for one of no rows then, until it has pages, and a plan that was made
// lives on. Each has to look up its rows by their keys.
func TestPlansOfTablesAnalyzedEmpty(t *testing.T) {
	InServer(t)
	if testing.Short() {
		t.Skip("leave out -short")
	}
	t.Parallel()
	d := &planData{Store: emptyPlanStore(t), jobs: planJobs}
	d.readClock(t)
	part := d.Store.days.of([]int64{idAt(d.now)})
	tables := []string{"xxl_job_info", "xxl_job_next", "xxl_job_lock", "xxl_job_node", part}
	for _, table := range tables {
		d.exec(t, "alter table {{schema}}."+table+" set (autovacuum_enabled = false)")
		d.exec(t, "analyze {{schema}}."+table)
	}
	d.fillJobs(t) // nothing is claimed or started before there are jobs
	e := newExplainer(t, d.Store)
	texts := func(c planCase) string { return d.Store.days.in(d.Store, query{text: c.st.sql}, part, false).text }
	before := map[string]preparedPlan{}
	d.pretend()
	const generic, custom = "set local plan_cache_mode = force_generic_plan", "set local plan_cache_mode = force_custom_plan"
	for _, c := range d.loopCases() {
		p, err := e.prepare(t.Context(), texts(c), c.st.args)
		if err == nil {
			_, err = e.explain(t.Context(), p, generic+"; select 1"+d.settings, "costs off")
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		before[c.name] = p
	}
	d.planned, d.started, d.ended = nil, nil, nil
	d.fillDay(t)
	for _, c := range d.loopCases() {
		p, err := e.prepare(t.Context(), texts(c), c.st.args)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		old := before[c.name]
		old.call = "execute " + old.name + strings.TrimPrefix(p.call, "execute "+p.name)
		for _, m := range []struct {
			name, mode string
			p          preparedPlan
		}{{"planned before", generic, old}, {"planned after", generic, p}, {"planned for the arguments", custom, p}} {
			s, err := e.explain(t.Context(), m.p, m.mode+"; select 1"+d.settings+"; set local statement_timeout = '3s'", "analyze, buffers")
			if err != nil {
				t.Errorf("%s, %s: %v", c.name, m.name, err)
				continue
			}
			if s.rows < c.rows {
				t.Errorf("%s, %s: %d rows, want at least %d: the case shows nothing", c.name, m.name, s.rows, c.rows)
			}
			if most := 4*max(s.rows, c.batch) + 2*c.wasted + 150; s.examined > most {
				t.Errorf("%s, %s: %d rows looked at, want at most %d\n%s\n%s", c.name, m.name, s.examined, most, planHead, s)
			}
		}
	}
}

// loopCases are those of planCases that claim, start and change runs, and follow the rules.
func (d *planData) loopCases() (list []planCase) {
	for _, c := range slices.Concat(d.claimCases(), d.startCases(), d.handoverCases(), d.endCases(), d.ruleCases()) {
		name, _, _ := strings.Cut(c.name, " ")
		switch name {
		case "claim", "claimFree", "claimAll", "claimAllFree", "start", "startFree", "startBrief", "startBriefFree", "startOwn", "startOwnFree",
			"finish", "finishBrief", "finishPlain", "lockRuns", "idleJobs", "lockIdle", "lockIdleFree", "waitOn", "rearm", "finishNext", "dispatched", "dispatchedFree", "whyRun", "whyJob":
			list = append(list, c)
		}
	}
	return list
}

// fillDay makes the runs that loopCases need, of the last minute: 10,000 planned and 2,000 started.
func (d *planData) fillDay(t testing.TB) {
	t.Helper()
	first := idAt(d.now) // the day of the partition
	d.exec(t, `insert into {{schema}}.xxl_job_log (id, job_id, shard, app_name, state, trigger_type, scheduled_time, add_time, plan_epoch, executor_fail_retry_count)
	select $2::bigint + n, (n * 10 + 1), (n * 10 + 1) % 32, 'app', 0, 'CRON', $1::bigint, now(), 7, -1 from generate_series(0, 9999) n`, d.now.UnixMilli(), first)
	d.exec(t, `insert into {{schema}}.xxl_job_log (id, job_id, shard, app_name, state, trigger_type, scheduled_time, add_time, trigger_time, taken_time, plan_epoch,
		start_token, job_version, executor_fail_retry_count, executor_address)
	select $2::bigint + 10000 + n, n * 10 + 2, (n * 10 + 2) % 32, 'app', 1, 'CRON', $1::bigint, now(), now(), now(), 7, n + 1, 1, 0, 'local://node-1'
	from generate_series(0, 1999) n`, d.now.UnixMilli(), first)
	d.planned = d.some(t, "l.state = 0 and l.job_id % 100 < 90 order by l.id")
	d.started = d.some(t, "l.state = 1 order by l.id")
	for i := range d.planned {
		d.ended = append(d.ended, d.planned[i].ID)
	}
	d.floor.Store(first - 1)
}

// TestPlansOfNewList explains the statements that go by the keys of jobs, while nobody has
// analyzed the tables since an app got its list of 10,000 jobs. Statistics do not tell
// then that the app has more than a few jobs, or that many of its keys are asked for; and a
// plan may be from before the list. Each has to look at the jobs of the keys that it is
// given, and not at all of the app for each batch or key.
func TestPlansOfNewList(t *testing.T) {
	InServer(t)
	if testing.Short() {
		t.Skip("leave out -short")
	}
	t.Parallel()
	for _, c := range []struct {
		name string
		jobs int // that the tables have, and are analyzed with, before the list comes
	}{{"empty tables", 0}, {"few jobs", 5}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			plansOfNewList(t, c.jobs)
		})
	}
}

func plansOfNewList(t *testing.T, few int) {
	d := newKeyedData(t)
	if few > 0 {
		d.addJobs(t, 1, few)
		d.exec(t, "analyze {{schema}}.xxl_job_info, {{schema}}.xxl_job_next, {{schema}}.xxl_job_named")
	}
	const generic, custom = "set local plan_cache_mode = force_generic_plan", "set local plan_cache_mode = force_custom_plan"
	e := newExplainer(t, d.Store)
	cases := d.keyCases()
	before := make([]preparedPlan, len(cases))
	explain := func(c keyCase, p preparedPlan, mode, options string) planSum {
		t.Helper()
		s, err := e.explain(t.Context(), p, mode+"; select 1"+d.settings, options)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		return s
	}
	prepare := func(c keyCase) preparedPlan {
		t.Helper()
		p, err := e.prepare(t.Context(), c.st.sql, c.st.args)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		return p
	}
	for i, c := range cases {
		before[i] = prepare(c)
		explain(c, before[i], generic, "costs off")
	}
	d.addJobs(t, few+1, 10_000)
	for i, c := range cases {
		for _, m := range []struct {
			name, mode string
			p          preparedPlan
		}{
			{"planned before the list", generic, before[i]},
			{"planned after the list", generic, prepare(c)},
			{"planned for the keys", custom, prepare(c)},
		} {
			s := explain(c, m.p, m.mode, "analyze, buffers")
			if s.rows < c.rows {
				t.Errorf("%s, %s: %d rows, want at least %d: the case shows nothing", c.name, m.name, s.rows, c.rows)
			}
			if most := 3*c.keys + 10; s.examined > most {
				t.Errorf("%s, %s: %d rows looked at, want at most %d\n%s\n%s", c.name, m.name, s.examined, most, planHead, s)
			}
		}
	}
}

// newKeyedData is a store on tables that nobody analyzes but the test.
func newKeyedData(t *testing.T) *planData {
	t.Helper()
	d := &planData{Store: emptyPlanStore(t), jobs: planJobs}
	for _, table := range strings.Fields("xxl_job_info xxl_job_next xxl_job_named") {
		d.exec(t, "alter table {{schema}}."+table+" set (autovacuum_enabled = false)")
	}
	return d
}

// keyCase is a statement that goes by keys.
type keyCase struct {
	name string
	st   statement
	keys int // how many it is given
	rows int // it has to return as many at least
}

func (d *planData) keyCases() []keyCase {
	q := d.sql
	const app = "app"
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i+5000)
	}
	page := d.jobsQuery(context.Background(), store.JobFilter{App: app, Keys: keys, Limit: len(keys)})
	return []keyCase{
		{name: "nameJobs", st: q.nameJobs.by(named{{"app", app}, {"keys", keys}, {"generation", 1}}), keys: 1000},
		{name: "nameJobs anew", st: q.nameJobs.by(named{{"app", app}, {"keys", keys}, {"generation", 2}}), keys: 1000},
		{name: "jobsByKeys", st: q.jobsByKeys.by(named{{"app", app}, {"keys", keys}}), keys: 1000, rows: 1000},
		{name: "takenKeys", st: q.takenKeys.by(named{{"app", app}, {"keys", keys}}), keys: 1000, rows: 1000},
		{name: "isNamed", st: q.isNamed.with(app, keys[0]), keys: 1, rows: 1},
		{name: "jobByKey", st: q.jobByKey.with(app, keys[0]), keys: 1, rows: 1},
		{name: "Jobs by keys", st: statement{sql: page.sql, args: page.args}, keys: 1000, rows: 1000},
	}
}

// addJobs gives an app jobs with these ids, all of them named by a list.
func (d *planData) addJobs(t testing.TB, from, to int) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_info (`+infoColumns.names()+`)
	select n, n % 32, 1, 'app', 'key-' || n, 'job ' || n, '', '', 'CRON', '0 0 * * * ?', '', '', 'DO_NOTHING', '',
		'FIRST', 'handler-' || n % 100, '', 'SERIAL_EXECUTION', 0, 0, 'BEAN', '', '', null, '', 1, '', '', now(), now(), 0, 0, 0, 0, '', 0, 0, 0, false, 0, 0, '', '', '', '', 0, '', 0, 0, '', 0, 0, 0, false, ''
	from generate_series($1::int, $2::int) n`, from, to)
	d.exec(t, `insert into {{schema}}.xxl_job_next (trigger_next_time, trigger_last_time, wait_run, version, delay, job_id, shard, trigger_status, manual, app_name)
	select 1, 0, 0, 1, 0, n, n % 32, 1, false, 'app' from generate_series($1::int, $2::int) n`, from, to)
	d.exec(t, `insert into {{schema}}.xxl_job_named (job_id, generation) select n, 1 from generate_series($1::int, $2::int) n`, from, to)
}

// TestPlanOfAListAfterAnUpgrade: the tables have been analyzed before the index of apps was
// built anew, and not since. A page of an app's jobs, which come after 5,000 others, takes
// no more than it did by the index of before.
func TestPlanOfAListAfterAnUpgrade(t *testing.T) {
	InServer(t)
	t.Parallel()
	d := newKeyedData(t)
	d.exec(t, "drop index {{schema}}.xxl_job_info_of_app")
	d.exec(t, "create index xxl_job_info_app on {{schema}}.xxl_job_info (app_name, id)")
	d.addJobs(t, 1, 20_000)
	d.exec(t, "update {{schema}}.xxl_job_info set app_name = 'other' where id <= 5000")
	d.exec(t, "vacuum (full, analyze) {{schema}}.xxl_job_info")
	d.exec(t, "vacuum (analyze) {{schema}}.xxl_job_next")
	e := newExplainer(t, d.Store)
	pages := []store.JobFilter{{App: "app", Limit: 100}, {App: "app", Limit: 100, After: 15_000}}
	explain := func(f store.JobFilter, index, collation string) planSum {
		t.Helper()
		q := d.jobsQuery(context.Background(), f)
		s, err := e.run(t.Context(), "force_custom_plan", strings.ReplaceAll(q.sql, ` collate pg_catalog."POSIX"`, collation), q.args, "analyze, buffers")
		if err != nil {
			t.Fatal(err)
		}
		if s.rows != 100 || !slices.Contains(s.indexes, index) {
			t.Errorf("after %d, by %s: %d rows\n%s\n%s", f.After, index, s.rows, planHead, s)
		}
		return s
	}
	var before []planSum
	for _, f := range pages {
		before = append(before, explain(f, "info_app", ""))
	}
	text, err := migrationText(6)
	if err != nil {
		t.Fatal(err)
	}
	d.exec(t, "do $$ begin "+text+" end $$")
	for i, f := range pages {
		if s := explain(f, "info_of_app", ` collate pg_catalog."POSIX"`); s.examined > before[i].examined {
			t.Errorf("after %d: %d rows looked at, %d before\n%s\n%s\n%s", f.After, s.examined, before[i].examined, planHead, before[i], s)
		}
	}
}
