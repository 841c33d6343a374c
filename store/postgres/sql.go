package postgres

import (
	"regexp"
	"strings"

	"github.com/xxljob/xxljob"
)

// queries are the store's statements, for one schema.
type queries struct {
	now, newJobID                                                         string
	insertJob, insertNext, insertChange, changes                          string
	updateJob, updateNext, deleteJob, deleteNext                          string
	lockNext, lockJob, jobByID, jobByKey                                  string
	head, insertHead, lockHead, shareHead, setHead                        string
	putNodeList, dropLists, otherLists, nodeLists, surplus, isSurplus     string
	nameJobs, isNamed, jobsByKeys, takenKeys, newJobIDs                   string
	insertJobs, insertNexts, insertChanges, insertNamed, deleteNamed      string
	cancelPlanned, startedFor, insertRecord                               string
	idleJobs, lockIdle, lockIdleFree                                      string
	rearm, finishNext, finishJob, noteStops                               string
	sweepIdle, sweepRearm                                                 string
	scanJobs, scanRuns, next, stamp, backlog                              string
	definitions                                                           string
	claim, claimFree, claimAll, claimAllFree, stopNext, stopJob, waitNext string
	start, startFree, insertSiblings                                      string
	whyFence, whyRun, whyJob, whyNode, whyBusy                            string
	readdress, dispatched, dispatchedFree, startedBy                      string
	settleLost, settleAdopt, settleKill, settleCancel                     string
	settleBack                                                            string
	inbox, take, takeFree, takeKilled                                     string
	askLog, answerLog, logAnswer, dropAsks                                string
	finish, finishLate, unended, lockRuns                                 string
	killPlanned, killStarted                                              string
	addRun, addKey, keyRun, keyID, planRun, planRunTold                   string
	runByID, runsByID, planned, startedLeast, startedJobs, openFloor      string
	shards, ensureShards                                                  string
	setting, setSetting                                                   string
	clock, beat, setFailing, nodeLock, lockNode, leaveNode, leaveShards   string
	buryLeft, buryNode                                                    string
	exclusive, tryExclusive, shardRows, lockRows, takeRows, releaseRows   string
	strangers, migrators                                                  string
	tryLock, unlock, evict, backend, endBlockers, notify                  string
	partitions, endOldJobs, endOld, deleteKeys, deleteRuns                string
	saveGroup, ensureGroup, deleteGroup, groupUsed                        string
	group, groups                                                         string
	putAddresses, putAddressesFree, dropAddresses, dropAddressesFree      string
	addresses, registrations, registrationsOf, forgetAddresses            string
}

// scheduleBorn are the types of runs that a schedule made.
func scheduleBorn() string {
	var list []string
	for _, t := range []xxljob.TriggerType{xxljob.TriggerCron, xxljob.TriggerFixRate, xxljob.TriggerFixDelay, xxljob.TriggerOnce, xxljob.TriggerMisfire} {
		list = append(list, "'"+string(t)+"'")
	}
	return strings.Join(list, ", ")
}

// mark begins each statement, so that a statement of ours can be told from the
// host's in pg_stat_activity.
const mark = "/* xxljob */ "

// Parts that statements have in common.
//
// Where a statement finds runs by their ids, its other conditions on them are
// written with "+ 0", so that no index on those columns serves them. The planner
// takes a new partition for empty, and would as soon read all of such an index as
// look up an id; and a plan lives longer than a partition stays empty.
const (
	// sqlNow is the time of a statement. It does not move while the statement
	// waits, but all that needs the time of a commit asks for it anew.
	sqlNow = `pg_catalog.date_trunc('milliseconds', pg_catalog.statement_timestamp())`
	// sqlRunID makes an id: milliseconds since 2025 and 13 bits of a sequence.
	sqlRunID = sqlRunBase + ` operator(pg_catalog.+) ` + sqlRunLow
	// A statement that makes many ids reads the clock once: that is most of the work.
	sqlRunBase = `(` + sqlMilliHead + `pg_catalog.clock_timestamp()` + sqlMilliTail + ` operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192`
	sqlRunLow  = `(pg_catalog.nextval('{{seq}}') operator(pg_catalog.&) 8191::bigint)`
	// What stands between these is a time, which they turn into milliseconds since 1970.
	// It is date_part because extract has another type before Postgres 14.
	sqlMilliHead = `(pg_catalog.date_part('epoch', `
	sqlMilliTail = `) operator(pg_catalog.*) 1000::double precision)::bigint`
	// sqlFence holds the shards that have the caller's epoch against take-overs.
	sqlFence = `fence as materialized (
	select k.shard, f.epoch from unnest(%shards::smallint[], %epochs::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k %free)`
	// sqlNodes holds the nodes that are there against their burial.
	sqlNodes = `nodes as materialized (
	select n.incarnation from {{schema}}.xxl_job_node n
	where n.incarnation = any(%nodes::text[]) and not n.has_left
	order by n.incarnation for key share of n %free)`
	// few is always true and makes the planner expect one row of r: so it looks up
	// each run by its key also where no partition has been analyzed yet.
	few = `r.ord = r.ord + 0`
	// sqlSay adds a line to trigger_msg.
	sqlSay = `case when coalesce(%line, '') = '' then l.trigger_msg
	when coalesce(l.trigger_msg, '') = '' then %line else l.trigger_msg || E'\n' || %line end`
)

// fence is sqlFence with the numbers of its parameters.
func fence(shards, epochs, free string) string {
	return strings.NewReplacer("%shards", shards, "%epochs", epochs, "%free", free).Replace(sqlFence)
}

func nodes(list, free string) string {
	return strings.NewReplacer("%nodes", list, "%free", free).Replace(sqlNodes)
}

func milliseconds(time string) string { return sqlMilliHead + time + sqlMilliTail }

func say(line string) string { return strings.ReplaceAll(sqlSay, "%line", line) }

// newQueries writes the statements for a schema, whose name is quoted.
func newQueries(schema string) *queries {
	q := &queries{}
	q.jobs()
	q.jobLists()
	q.rules()
	q.plans()
	q.starts()
	q.settles()
	q.ends()
	q.asks()
	q.triggers()
	q.lists()
	q.nodes()
	q.catalogue()
	q.registry()
	literal := strings.ReplaceAll(schema, "'", "''")
	seq := literal + ".xxl_job_log_id"
	fill := strings.NewReplacer("{{run_id}}", strings.ReplaceAll(sqlRunID, "{{seq}}", seq),
		"{{run_base}}", sqlRunBase, "{{run_low}}", strings.ReplaceAll(sqlRunLow, "{{seq}}", seq), "{{schema}}", schema, "{{literal}}", literal,
		"{{now}}", sqlNow, "{{kept}}", sqlNow+" - interval '1 minute'", "{{born}}", scheduleBorn(), "{{run}}", runColumns)
	for _, sql := range q.all() {
		*sql = mark + fill.Replace(qualify(*sql))
	}
	return q
}

// qualify names the schema of the server's functions and types, so that no search_path
// leads to others. Names that are part of the grammar need none, among them unnest of
// several arrays. Operators it leaves alone: each stands between the very types that
// pg_catalog has it for, so that no other is looked for (see names_test.go), and none but
// pg_catalog's is met on the path that statements of ours run on. In statements that run
// in the host's transactions, on any path, they are written as operator(pg_catalog.=).
func qualify(sql string) string {
	sql = calledUnqualified.ReplaceAllString(sql, "pg_catalog.$1(")
	sql = unnestOfSeveral.ReplaceAllString(sql, "$1")
	return castUnqualified.ReplaceAllString(sql, "::pg_catalog.$1")
}

var (
	calledUnqualified = regexp.MustCompile(`(?:\bpg_catalog\.)?\b(array_agg|min|max|count|nextval|clock_timestamp|statement_timestamp|date_trunc|substr|generate_series|current_database|unnest)\(`)
	unnestOfSeveral   = regexp.MustCompile(`\bpg_catalog\.(unnest\([^()]*,)`)
	castUnqualified   = regexp.MustCompile(`::(text|timestamptz|jsonb)\b`)
)

func (q *queries) all() []*string {
	return []*string{
		&q.now, &q.newJobID, &q.insertJob, &q.insertNext, &q.insertChange, &q.changes,
		&q.updateJob, &q.updateNext, &q.deleteJob, &q.deleteNext, &q.lockNext, &q.lockJob, &q.jobByID, &q.jobByKey,
		&q.head, &q.insertHead, &q.lockHead, &q.shareHead, &q.setHead, &q.putNodeList, &q.dropLists, &q.otherLists, &q.nodeLists, &q.surplus, &q.isSurplus,
		&q.nameJobs, &q.isNamed, &q.jobsByKeys, &q.takenKeys, &q.newJobIDs, &q.insertJobs, &q.insertNexts, &q.insertChanges, &q.insertNamed, &q.deleteNamed,
		&q.cancelPlanned, &q.startedFor, &q.insertRecord, &q.idleJobs, &q.lockIdle, &q.lockIdleFree, &q.rearm, &q.finishNext, &q.finishJob,
		&q.noteStops, &q.sweepIdle, &q.sweepRearm, &q.scanJobs, &q.scanRuns, &q.next, &q.stamp, &q.backlog,
		&q.definitions, &q.claim, &q.claimFree, &q.claimAll, &q.claimAllFree, &q.stopNext, &q.stopJob, &q.waitNext, &q.start, &q.startFree, &q.insertSiblings,
		&q.whyFence, &q.whyRun, &q.whyJob, &q.whyNode, &q.whyBusy, &q.readdress, &q.dispatched, &q.dispatchedFree, &q.startedBy,
		&q.settleLost, &q.settleAdopt, &q.settleKill, &q.settleCancel, &q.settleBack,
		&q.askLog, &q.answerLog, &q.logAnswer, &q.dropAsks,
		&q.inbox, &q.take, &q.takeFree, &q.takeKilled, &q.finish, &q.finishLate, &q.unended, &q.lockRuns,
		&q.killPlanned, &q.killStarted, &q.addRun, &q.addKey, &q.keyRun, &q.keyID, &q.planRun, &q.planRunTold,
		&q.runByID, &q.runsByID, &q.planned, &q.startedLeast, &q.startedJobs, &q.openFloor, &q.shards, &q.ensureShards,
		&q.setting, &q.setSetting, &q.clock, &q.beat, &q.setFailing, &q.nodeLock, &q.lockNode, &q.leaveNode, &q.leaveShards, &q.buryLeft, &q.buryNode,
		&q.exclusive, &q.tryExclusive, &q.strangers, &q.migrators, &q.shardRows, &q.lockRows, &q.takeRows, &q.releaseRows, &q.tryLock, &q.unlock, &q.evict, &q.backend, &q.endBlockers, &q.notify,
		&q.partitions, &q.endOldJobs, &q.endOld, &q.deleteKeys, &q.deleteRuns,
		&q.saveGroup, &q.ensureGroup, &q.deleteGroup, &q.groupUsed, &q.group, &q.groups,
		&q.putAddresses, &q.putAddressesFree, &q.dropAddresses, &q.dropAddressesFree, &q.addresses, &q.registrations, &q.registrationsOf, &q.forgetAddresses,
	}
}

func (q *queries) jobs() {
	// The time of the call, and not of the message that it came in.
	q.now = `select date_trunc('milliseconds', clock_timestamp())`
	q.newJobID = `select nextval('{{literal}}.xxl_job_info_id'), {{now}}`
	columns := strings.ReplaceAll(definitionColumns, "i.", "")
	q.insertJob = `insert into {{schema}}.xxl_job_info (` + columns + `)
	values ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21,$22,$23,$24,$25,$26,$27,$28,$29,$30)
	on conflict (app_name, job_key) do nothing returning id`
	q.updateJob = `update {{schema}}.xxl_job_info set (` + columns + `)
	= row($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21,$22,$23,$24,$25,$26,$27,$28,$29,$30)
	where id = $1 and shard = $2`
	q.insertNext = `insert into {{schema}}.xxl_job_next (trigger_next_time, trigger_last_time, wait_run, version, delay, job_id, shard, trigger_status, manual, app_name)
	values ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)`
	q.updateNext = `update {{schema}}.xxl_job_next set trigger_next_time = $1, trigger_last_time = $2, wait_run = $3, version = $4, delay = $5,
	trigger_status = $8, manual = $9, app_name = $10 where job_id = $6 and shard = $7`
	q.insertChange = `insert into {{schema}}.xxl_job_change (job_id, version, at, actor, verb) values ($1, $2, {{now}}, $3, $4)`
	q.changes = `select at, job_id, version, actor, verb from {{schema}}.xxl_job_change where job_id = $1::bigint order by id desc limit $2`
	q.deleteJob = `delete from {{schema}}.xxl_job_info where id = $1`
	q.deleteNext = `delete from {{schema}}.xxl_job_next where job_id = $1`
	q.lockNext = `select 1 from {{schema}}.xxl_job_next where job_id = $1 for no key update`
	job := `select ` + definitionColumns + `, ` + dueColumns + ` from {{schema}}.xxl_job_info i
	join {{schema}}.xxl_job_next n on n.job_id = i.id and n.shard = i.shard `
	q.lockJob = job + `where i.id = $1`
	// An id that a host asks for may be larger than any: it finds nothing.
	q.jobByID = job + `where i.id = $1::bigint`
	q.jobByKey = job + `where i.app_name = $1 and i.job_key = $2 and $2 <> ''`
	q.definitions = `select ` + definitionColumns + ` from {{schema}}.xxl_job_info i where i.id = any($1::int[])`
	q.cancelPlanned = `update {{schema}}.xxl_job_log l set state = 11, alarm_status = 1, reason = $2, handle_time = {{now}}
	where l.job_id = $1 and l.state = 0 and l.id between $4 and $5 and ($3::boolean or l.trigger_type in ({{born}}))
	returning {{run}}`
	q.insertRecord = `insert into {{schema}}.xxl_job_log (id, job_id, shard, app_name, trigger_type, state, alarm_status, scheduled_time,
		first_time, last_time, instants, reason, add_time, handle_time, executor_fail_retry_count)
	values ({{run_id}}, $1, $2, $3, $4, $5, 1, $6, $7, $8, $9, $10, {{now}}, {{now}}, -1)`
	// Claims of a job follow each other and plan later instants each time, so the
	// latest instant that was started is among the newest runs.
	q.startedFor = `select coalesce(max(scheduled_time), 0) from (
	(select l.scheduled_time from {{schema}}.xxl_job_log l
	where l.job_id = $1 and l.state > 2 and l.state not in (10, 11) and l.trigger_type in ({{born}}) order by l.id desc limit 1000)
	union all
	(select l.scheduled_time from {{schema}}.xxl_job_log l
	where l.shard = $2 and l.job_id = $1 and l.state in (1, 2) and l.trigger_type in ({{born}}))) r`
}

func (q *queries) rules() {
	q.idleJobs = `select n.job_id from {{schema}}.xxl_job_next n
	where n.job_id = any($1::int[]) and n.trigger_next_time = 0 and (n.trigger_status = 1 and not n.manual or n.wait_run <> 0)`
	q.lockIdle = `select n.job_id from {{schema}}.xxl_job_next n where n.job_id = any($1::int[]) order by n.job_id for no key update`
	q.lockIdleFree = q.lockIdle + ` skip locked`
	// Not a join: the planner expects few runs and would compare each with each job.
	q.rearm = `update {{schema}}.xxl_job_next n set wait_run = 0,
	trigger_next_time = case when n.delay > 0 then ($3::bigint[])[pg_catalog.array_position($2::bigint[], n.wait_run)] + n.delay else 0 end
	where n.job_id = any($1::int[]) and n.trigger_next_time = 0 and n.wait_run <> 0 and n.wait_run = any($2)
	returning n.shard, n.trigger_next_time`
	q.finishNext = `update {{schema}}.xxl_job_next n set trigger_status = 0
	where n.job_id = any($1::int[]) and n.trigger_status = 1 and n.trigger_next_time = 0 and n.wait_run = 0 and not n.manual
	and not exists (select from {{schema}}.xxl_job_log l where l.job_id = n.job_id and l.state = 0
		and l.id between $2 and $3 and l.trigger_type in ({{born}}))
	and not exists (select from {{schema}}.xxl_job_log l where l.shard = n.shard and l.job_id = n.job_id and l.state in (1, 2)
		and l.id between $2 and $3 and l.trigger_type in ({{born}}))
	returning n.job_id`
	q.finishJob = `update {{schema}}.xxl_job_info set trigger_status = 0, stop_reason = $2, update_time = {{now}} where id = any($1::int[])`
	q.noteStops = `insert into {{schema}}.xxl_job_change (job_id, version, at, actor, verb)
	select i.id, i.version, {{now}}, $2, 'stop' from {{schema}}.xxl_job_info i where i.id = any($1::int[]) order by i.id`
	q.sweepIdle = `with ` + fence("$1", "$2", "") + `
	select n.job_id from {{schema}}.xxl_job_next n join fence on fence.shard = n.shard
	where n.trigger_next_time = 0 and (n.trigger_status = 1 and not n.manual or n.wait_run <> 0) order by n.job_id for no key update of n`
	// A run that is waited for is mostly there; where it is not, the time of the
	// sweep stands for its end.
	q.sweepRearm = `update {{schema}}.xxl_job_next n set wait_run = 0,
	trigger_next_time = case when n.delay = 0 then 0 else n.delay + ` + milliseconds(`coalesce(
		(select l.handle_time from {{schema}}.xxl_job_log l where l.id = n.wait_run), {{now}})`) + ` end
	where n.job_id = any($1::int[]) and n.wait_run <> 0
	and coalesce((select l.state > 2 from {{schema}}.xxl_job_log l where l.id = n.wait_run), true)
	returning n.shard, n.trigger_next_time`
}

func (q *queries) plans() {
	// The subqueries hide the times from the planner. It would see that nothing is
	// due, and plan each scan of many jobs anew, which takes longer than the scan.
	q.scanJobs = `select n.job_id, n.version, n.trigger_next_time, n.trigger_last_time from {{schema}}.xxl_job_next n
	where n.trigger_status = 1 and n.trigger_next_time > 0 and n.trigger_next_time between (select $2::bigint) and (select $3::bigint) and n.shard = any($1::smallint[])
	order by n.trigger_next_time, n.shard, n.job_id + 0 limit (select $4::bigint)`
	q.scanRuns = `select {{run}} from {{schema}}.xxl_job_log l
	where l.state = 0 and l.plan_epoch is null and l.scheduled_time <= $2 and l.shard = any($1::smallint[]) and l.id between $4 and $5
	order by l.scheduled_time, l.id limit $3`
	q.next = `(select n.trigger_next_time from {{schema}}.xxl_job_next n
	where n.trigger_status = 1 and n.trigger_next_time > 0 and n.trigger_next_time > $2 and n.shard = any($1::smallint[])
	order by n.trigger_next_time limit 1)
	union all
	(select l.scheduled_time from {{schema}}.xxl_job_log l
	where l.state = 0 and l.plan_epoch is null and l.scheduled_time > $2 and l.shard = any($1::smallint[]) and l.id between $3 and $4
	order by l.scheduled_time limit 1)`
	// What a scan returns is the owner's from here on, or it would be returned
	// without end.
	q.stamp = `with ` + fence("$1", "$2", "skip locked") + `
	update {{schema}}.xxl_job_log l set plan_epoch = (select fence.epoch from fence where fence.shard = l.shard)
	where l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any($3::bigint[]) and p.id between $4 and $5
		and p.state + 0 = 0 and p.plan_epoch is null order by p.id for no key update skip locked))
	and l.id between $4 and $5 and l.shard + 0 = any(array(select shard from fence))
	returning l.id, l.plan_epoch`
	q.backlog = `select l.job_id, count(*), min(l.scheduled_time) from {{schema}}.xxl_job_log l
	where l.state = 0 and l.scheduled_time between $2 and $3 and l.shard = any($1::smallint[]) and l.id between $4 and $5
	group by l.job_id`
	// The row is found by the very instant that is claimed: "job_id + 0" is what the
	// index of due jobs has, and the primary key has not. Of a job there are as many
	// versions as it was claimed lately, and the key leads to all of them.
	//
	// A claim goes by the places of its jobs and runs in the arrays: rows that carry
	// few columns from one step to the next cost least.
	head := func(free, wait string) string {
		return `with ` + fence("$1", "$2", free) + `,
	advanced as (
		update {{schema}}.xxl_job_next n set trigger_next_time = ($8::bigint[])[d.ord], wait_run = 0,
			trigger_last_time = coalesce(nullif(($9::bigint[])[d.ord], 0), n.trigger_last_time),
			version = n.version + coalesce(($10::smallint[])[d.ord], 0)
		from (select unnest($3::int[]) job_id, unnest($4::smallint[]) shard, unnest($6::bigint[]) version, unnest($7::bigint[]) due,
			unnest($21::int[]) ord) d
		where d.shard = any(array(select shard from fence))
		and n.trigger_next_time = d.due and n.shard = d.shard and n.job_id + 0 = d.job_id
		and n.version = d.version and n.trigger_status = 1 and n.trigger_next_time > 0` + wait + `
		returning n.job_id, n.shard, n.app_name, d.ord),
	base as materialized (select {{run_base}} id)`
	}
	insert := `insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, plan_epoch, add_time, executor_fail_retry_count,
			trigger_type, state, alarm_status, scheduled_time, first_time, last_time, instants, reason, handle_time)
		select (select id from base) + {{run_low}}, r.job_id, r.shard, r.app_name, ($5::bigint[])[r.ord], {{now}}, -1,
			($13::text[])[($14::smallint[])[r.k]], ($15::smallint[])[r.k], case when ($15::smallint[])[r.k] > 2 then 1 else 0 end, ($16::bigint[])[r.k],
			nullif(($17::bigint[])[r.k], 0), nullif(($18::bigint[])[r.k], 0), nullif(($19::int[])[r.k], 0),
			($13::text[])[($20::smallint[])[r.k]], case when ($15::smallint[])[r.k] > 2 then {{now}} end
		from (select a.*, generate_series(($11::int[])[a.ord], ($12::int[])[a.ord]) k from advanced a) r
		returning l.id, l.job_id, l.app_name, l.add_time, l.scheduled_time`
	skip := `
		and d.job_id = any(array(select m.job_id from {{schema}}.xxl_job_next m where m.job_id = any($3::int[]) order by m.job_id for no key update skip locked))`
	all := `, inserted as (` + insert + `)
	select 0::bigint, a.job_id, a.app_name, {{now}}, 0::bigint from advanced a
	union all select * from inserted`
	q.claim, q.claimFree = head("", "")+"\n\t"+insert, head("skip locked", skip)+"\n\t"+insert
	q.claimAll, q.claimAllFree = head("", "")+all, head("skip locked", skip)+all
	q.stopNext = `update {{schema}}.xxl_job_next set trigger_status = 0 where job_id = $1`
	q.stopJob = `update {{schema}}.xxl_job_info set trigger_status = 0, stop_reason = $2, version = version + 1, update_time = {{now}} where id = $1`
	q.waitNext = `update {{schema}}.xxl_job_next set wait_run = $2 where job_id = $1`
}

func (q *queries) starts() {
	// word is a text of which a batch has few: its place in the list of words is in
	// the array, 0 for null.
	word := func(places string) string { return "($27::text[])[(" + places + "::smallint[])[s.ord]]" }
	start := func(free, only string) string {
		return `with ` + fence("$1", "$2", free) + `, ` + nodes("$3", free) + `
	update {{schema}}.xxl_job_log l set state = $4::smallint,
		start_owner = ` + word("$10") + `, start_token = case when $4::smallint = 1 then ($9::bigint[])[s.ord] end, executor_address = ` + word("$11") + `,
		inbox = ` + word("$12") + `, trigger_time = case when $4::smallint = 1 then {{now}} end,
		taken_time = case when ($13::boolean[])[s.ord] then {{now}} end,
		handle_time = case when $4::smallint <> 1 then {{now}} end,
		job_version = s.version, executor_handler = ` + word("$14") + `, executor_block_strategy = ` + word("$15") + `,
		executor_param = s.param, executor_fail_retry_count = ($17::int[])[s.ord],
		executor_sharding_param = coalesce(` + word("$18") + `, l.executor_sharding_param), executor_boot_id = ` + word("$29") + `,
		trigger_msg = ` + say(word("$19")) + `, handle_msg = coalesce($30::text, l.handle_msg)
	from (select unnest($5::bigint[]) id, unnest($6::int[]) job_id, unnest($7::smallint[]) shard, unnest($8::bigint[]) version,
		unnest($16::text[]) param, unnest($28::int[]) ord) s
	join {{schema}}.xxl_job_info i on i.id = s.job_id and i.shard = s.shard and i.version = s.version
	where s.shard = any(array(select shard from fence))` + only + `
	and l.id = s.id and l.shard + 0 = s.shard and l.job_id + 0 = s.job_id and l.state + 0 = 0
	and (i.trigger_status = 1 or l.trigger_type not in ({{born}}))
	and (coalesce(($18::smallint[])[s.ord], 0) = 0 or l.executor_sharding_param is null)
	and (coalesce(($12::smallint[])[s.ord], 0) = 0 or ` + word("$12") + ` in (select incarnation from nodes))
	and ($26::int = 0 or (select count(*) from nodes) = $26) and $24::bigint <= $25::bigint
	and (coalesce(($20::smallint[])[s.ord], 0) = 0 or not exists (select from {{schema}}.xxl_job_log b where b.shard = s.shard and b.job_id = s.job_id
		and b.state = 1 and (b.executor_address = ` + word("$20") + ` or b.executor_address = any($23::text[])) and b.id between $21 and $22))
	returning s.ord, {{run}}`
	}
	q.start = start("", "")
	q.startFree = start("skip locked", `
		and s.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any($5::bigint[]) and p.id between $24 and $25
			and p.state + 0 = 0 order by p.id for no key update skip locked))`)
	q.insertSiblings = `insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, trigger_id, parent_id, attempt, trigger_type,
		scheduled_time, state, executor_sharding_param, executor_param, param_set, address_list, executor_fail_retry_count, plan_epoch,
		job_version, executor_handler, executor_block_strategy, executor_address, executor_boot_id, start_owner, start_token, inbox,
		add_time, trigger_time, taken_time, trigger_msg, first_time, last_time, instants, reason)
	select {{run_id}}, l.job_id, l.shard, l.app_name, coalesce(l.trigger_id, l.id), l.parent_id, l.attempt, l.trigger_type,
		l.scheduled_time, 1, s.sharding, l.executor_param, l.param_set, l.address_list, l.executor_fail_retry_count, l.plan_epoch,
		l.job_version, l.executor_handler, l.executor_block_strategy, s.address, s.boot, s.owner, l.start_token, s.inbox,
		{{now}}, l.trigger_time, case when s.mine then {{now}} end, l.trigger_msg, l.first_time, l.last_time, l.instants, l.reason
	from {{schema}}.xxl_job_log l, (select * from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::text[])
		with ordinality s(sharding, address, owner, inbox, mine, boot, ord) order by ord) s
	where l.id = $1
	returning {{run}}`
	q.whyFence = `select k.shard, k.epoch from {{schema}}.xxl_job_lock k where k.shard = any($1::smallint[])`
	q.whyRun = `select {{run}} from {{schema}}.xxl_job_log l where l.id = any($1::bigint[]) and l.id between $2 and $3`
	q.whyJob = `select i.id, i.version, i.trigger_status from {{schema}}.xxl_job_info i where i.id = any($1::int[])`
	q.whyNode = `select n.incarnation from {{schema}}.xxl_job_node n where n.incarnation = any($1::text[]) and not n.has_left`
	q.whyBusy = `select l.job_id, l.executor_address from {{schema}}.xxl_job_log l
	where l.shard = any($1::smallint[]) and l.job_id = any($2::int[]) and l.state = 1 and l.id between $3 and $4 and l.executor_address like 'local://%'`
	q.readdress = `with ` + fence("$1", "$2", "") + `, ` + nodes("$3", "") + `
	update {{schema}}.xxl_job_log l set executor_address = $6, executor_boot_id = $12, start_owner = $7, inbox = $8,
		taken_time = case when $9::boolean then {{now}} end, trigger_msg = ` + say("$10::text") + `
	from fence
	where l.id = $4 and l.shard + 0 = fence.shard and l.state + 0 = 1 and l.start_token = $5
	and coalesce(l.start_owner, substr(l.executor_address, 9)) = $11
	and (l.taken_time is null or l.executor_address = 'local://' || $11::text)
	and ($8::text is null or $8::text in (select incarnation from nodes))
	returning l.id`
	dispatched := func(only string) string {
		return `update {{schema}}.xxl_job_log l set state = 2, trigger_msg = ` + say("r.say") + `
	from (select unnest($1::bigint[]) id, unnest($4::text[]) say, unnest($6::int[]) ord) r
	where l.id = r.id and ` + few + only + ` and l.state + 0 = 1 and l.start_token = ($2::bigint[])[r.ord]
	and coalesce(l.start_owner, substr(l.executor_address, 9)) = ($5::text[])[($3::smallint[])[r.ord]]
	returning r.ord, {{run}}`
	}
	q.dispatched = dispatched("")
	q.dispatchedFree = dispatched(`
	and l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any($1::bigint[]) and p.id between $7 and $8
		and p.state + 0 = 1 order by p.id for no key update skip locked))`)
	q.startedBy = `select {{run}} from {{schema}}.xxl_job_log l
	where l.shard = any($1::smallint[]) and l.state = 1 and l.id > $4 and l.id between $6 and $7
	and (l.start_owner = any($2::text[]) or l.executor_address = any($3::text[])) order by l.id limit $5`
}

// settled is the compare of a verdict's compare-and-set.
const settled = `from unnest($3::bigint[], $4::smallint[], $5::text[], $6::bigint[], $7::boolean[], $8::text[], $9::text[], $10::bigint[])
		v(id, shard, owner, token, taken, msg, new_owner, new_token)
	join fence on fence.shard = v.shard
	where l.id = v.id and l.shard + 0 = v.shard and l.state + 0 = 1 and l.start_token = v.token
	and coalesce(l.start_owner, substr(l.executor_address, 9)) = v.owner
	and (l.taken_time is not null) = v.taken`

func (q *queries) settles() {
	head := `with ` + fence("$1", "$2", "") + `
	update {{schema}}.xxl_job_log l set trigger_msg = ` + say("v.msg") + `, `
	tail := ` returning {{run}}`
	q.settleLost = head + `state = 7, handle_time = {{now}}, inbox = null ` + settled + tail
	q.settleAdopt = head + `start_owner = v.new_owner, start_token = v.new_token ` + settled + tail
	q.settleKill = head + `state = 6, handle_time = {{now}}, inbox = null ` + settled + ` and l.kill_reason is not null` + tail
	q.settleCancel = head + `state = 11, alarm_status = 1, handle_time = {{now}}, inbox = null,
		reason = case when exists (select from {{schema}}.xxl_job_info i where i.id = l.job_id) then 'stop' else 'remove' end ` + settled + `
	and not exists (select from {{schema}}.xxl_job_info i where i.id = l.job_id and i.shard = l.shard
		and (i.trigger_status = 1 or l.trigger_type not in ({{born}})))` + tail
	q.settleBack = head + `state = 0, plan_epoch = null, start_owner = null, start_token = null, executor_address = null, executor_boot_id = null,
		job_version = null, executor_handler = null, executor_block_strategy = null, inbox = null,
		executor_param = case when l.param_set then l.executor_param end, trigger_time = null, taken_time = null ` + settled + tail
}

func (q *queries) ends() {
	q.inbox = `(select null::bigint, null::int, {{run}} from {{schema}}.xxl_job_log l
	where l.inbox = $1 and l.state = 1 and l.id > $2 and l.id between $5 and $6 order by l.id limit $3)
	union all
	(select null, null, {{run}} from {{schema}}.xxl_job_log l
	where l.kill_reason is not null and l.state in (1, 2) and l.executor_address = $4 and l.taken_time is not null
	and l.id between $5 and $6 order by l.id)
	union all
	(select a.id, a.from_line, r.* from {{schema}}.xxl_job_ask a
	cross join lateral (select {{run}} from {{schema}}.xxl_job_log l where l.id = a.run_id limit 1) r
	where a.incarnation = $1 and a.answered is null and a.asked > {{kept}} order by a.id limit $3)`
	take := `update {{schema}}.xxl_job_log l set taken_time = {{now}}, inbox = null
	where l.id = any(%ids) and l.id between $3 and $4 and l.inbox = $1 and l.state = 1 and l.kill_reason is null
	returning {{run}}`
	free := `array(select p.id from {{schema}}.xxl_job_log p where p.id = any($2::bigint[]) and p.id between $3 and $4
		and p.inbox = $1 order by p.id for no key update skip locked)`
	q.take = strings.ReplaceAll(take, "%ids", "$2::bigint[]")
	q.takeFree = strings.ReplaceAll(take, "%ids", free)
	q.takeKilled = `update {{schema}}.xxl_job_log l set state = 6, handle_time = {{now}}, inbox = null
	where l.id = any(` + free + `) and l.id between $3 and $4 and l.inbox = $1 and l.state = 1 and l.kill_reason is not null
	returning {{run}}`
	q.finish = `update {{schema}}.xxl_job_log l set state = ($4::smallint[])[r.ord], handle_time = {{now}}, handle_msg = r.msg,
		no_retry = case when ($7::boolean[])[r.ord] then true end, inbox = null, trigger_msg = ` + say("r.say") + `
	from (select unnest($1::bigint[]) id, unnest($5::text[]) msg, unnest($6::text[]) say, unnest($9::int[]) ord) r
	where l.id = r.id and ` + few + ` and l.state + 0 in (1, 2) and (l.state = 1 or ($4::smallint[])[r.ord] <> 11)
	and (($2::smallint[])[r.ord] = 0 or l.state = 1 and l.start_token = ($3::bigint[])[r.ord] and l.executor_address = ($8::text[])[($2::smallint[])[r.ord]])
	and (coalesce(($10::smallint[])[r.ord], 0) = 0 or l.start_token = ($3::bigint[])[r.ord]
		and coalesce(l.start_owner, substr(l.executor_address, 9)) = ($8::text[])[($10::smallint[])[r.ord]])
	returning r.ord, {{run}}`
	q.finishLate = `update {{schema}}.xxl_job_log l set late_noted = true, trigger_msg = ` + say("r.say") + `
	from unnest($1::bigint[], $2::text[]) with ordinality r(id, say, ord)
	where l.id = r.id and ` + few + ` and l.id = any(array(select p.id from {{schema}}.xxl_job_log p
		where p.id = any($1::bigint[]) and p.id between $3 and $4 and p.state + 0 = 7 and p.late_noted is null
		order by p.id for no key update skip locked))`
	q.unended = `select l.id from {{schema}}.xxl_job_log l where l.id = any($1::bigint[]) and l.id between $2 and $3 and l.state + 0 in (1, 2)`
	q.lockRuns = `select l.id, l.job_id from {{schema}}.xxl_job_log l
	where l.id = any($1::bigint[]) and l.id between $2 and $3 and l.state + 0 in (1, 2) order by l.id for no key update skip locked`
	q.killPlanned = `update {{schema}}.xxl_job_log l set state = 11, alarm_status = 1, reason = $2, handle_time = {{now}}
	where l.id = $1 and l.state + 0 = 0 returning {{run}}`
	q.killStarted = `update {{schema}}.xxl_job_log l set kill_reason = $2
	where l.id = $1 and l.state + 0 in (1, 2) and l.kill_reason is null returning {{run}}`
}

func (q *queries) asks() {
	q.askLog = `with l as (select {{run}} from {{schema}}.xxl_job_log l where l.id = $2),
	asked as (
		insert into {{schema}}.xxl_job_ask (incarnation, run_id, from_line, asked)
		select $1, l.id, $3, {{now}} from l returning id)
	select asked.id, l.* from asked, l`
	q.answerLog = `update {{schema}}.xxl_job_ask a set answered = {{now}}, to_line = $2, is_end = $3, content = $4, refusal = $5
	where a.id = $1 and a.answered is null and a.asked > {{kept}} returning a.id`
	q.logAnswer = `select a.answered is not null, coalesce(a.to_line, 0), coalesce(a.is_end, false), coalesce(a.content, ''), coalesce(a.refusal, '')
	from {{schema}}.xxl_job_ask a where a.id = $1 and a.asked > {{kept}}`
	q.dropAsks = `delete from {{schema}}.xxl_job_ask a where a.id = any(array(
		select p.id from {{schema}}.xxl_job_ask p where p.asked <= {{kept}} order by p.id limit $1 for update skip locked)) returning a.id`
}

// triggers are statements of which those that make a trigger's key and its run are for the
// host's transactions too, whose path is whatever the host has set.
func (q *queries) triggers() {
	q.keyID = `select k.run_id from {{schema}}.xxl_job_trigger_key k
	where k.job_id operator(pg_catalog.=) $1 and k.trigger_key operator(pg_catalog.=) $2`
	q.addKey = `insert into {{schema}}.xxl_job_trigger_key (job_id, trigger_key, run_id)
	select i.id, $2::text, {{run_id}} from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) $1
	on conflict do nothing returning run_id`
	q.keyRun = `select {{run}} from {{schema}}.xxl_job_log l
	where l.id = (select k.run_id from {{schema}}.xxl_job_trigger_key k where k.job_id = $1 and k.trigger_key = $2)`
	insert := `insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, trigger_type, scheduled_time, state,
		executor_sharding_param, executor_param, param_set, address_list, executor_fail_retry_count, add_time)
	select coalesce($2::bigint, {{run_id}}), i.id, i.shard, i.app_name, $3, greatest($4::bigint, ` + milliseconds("{{now}}") + `),
		0, $5, $6, $7, $8, $9, {{now}}
	from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) $1`
	q.addRun = insert + ` for key share of i returning {{run}}`
	q.planRun = insert + ` returning l.id`
	// The hint is a scan hint as wakeRun sends it. It stands in the condition, for the
	// planner leaves out what nobody reads.
	q.planRunTold = `with l as (` + insert + ` returning l.id, l.shard)
	select l.id from l where pg_catalog.pg_notify($10, 's' operator(pg_catalog.||) l.shard::text) is not null`
}

func (q *queries) lists() {
	q.runByID = `select {{run}} from {{schema}}.xxl_job_log l where l.id = $1`
	q.runsByID = `select {{run}} from {{schema}}.xxl_job_log l where l.id = any($1::bigint[]) and l.id between $2 and $3 order by l.id`
	q.planned = `select {{run}} from {{schema}}.xxl_job_log l
	where l.state = 0 and l.scheduled_time <= $2 and (l.scheduled_time, l.id) > ($3::bigint, $4::bigint)
	and l.shard = any($1::smallint[]) and l.id between $6 and $7 and ($8 = '' or l.app_name = $8)
	order by l.scheduled_time, l.id limit $5`
	// Planned and started runs have small indexes of their own. "id + 0" keeps the
	// planner from going through all runs by id instead, until it meets one.
	q.startedLeast = `select coalesce(min(l.id), 0) from {{schema}}.xxl_job_log l where l.state in (1, 2) and l.id between $1 and $2`
	q.startedJobs = `select l.id, l.job_id from {{schema}}.xxl_job_log l where l.shard = any($1::smallint[]) and l.state in (1, 2) and l.id between $2 and $3`
	q.openFloor = `select coalesce(least((select min(l.id + 0) from {{schema}}.xxl_job_log l where l.id < $1 and l.state = 0),
		(select min(l.id + 0) from {{schema}}.xxl_job_log l where l.id < $1 and l.state in (1, 2))), 0)`
	q.partitions = `select c.relname from pg_catalog.pg_inherits h join pg_catalog.pg_class c on c.oid = h.inhrelid
	where h.inhparent = '{{literal}}.xxl_job_log'::pg_catalog.regclass::pg_catalog.oid order by c.relname`
	q.endOldJobs = `select distinct p.job_id from (select p.job_id from {{schema}}.xxl_job_log p where p.id between $1 and $2 and p.state = 0
	order by p.id + 0 limit $3) p`
	q.endOld = `update {{schema}}.xxl_job_log l set state = case when l.state = 0 then 11 else 7 end, handle_time = {{now}}, inbox = null,
		alarm_status = case when l.state = 0 then 1 else l.alarm_status end, reason = 'retention'
	where l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id between $1 and $2 and p.state = 0 order by p.id + 0 limit $3
		for no key update) operator(pg_catalog.||) array(select p.id from {{schema}}.xxl_job_log p where p.id between $1 and $2 and p.state in (1, 2) order by p.id + 0 limit $3
		for no key update)) and l.id between $1 and $2
	returning {{run}}`
	q.deleteKeys = `delete from {{schema}}.xxl_job_trigger_key k
	where k.ctid = any(array(select p.ctid from {{schema}}.xxl_job_trigger_key p where p.run_id between $1 and $2 limit $3)) returning 1`
	q.deleteRuns = `delete from {{schema}}.xxl_job_log l where l.id between $1 and $2
	and l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id between $1 and $2 limit $3)) returning 1`
	q.shards = `select count(*) from {{schema}}.xxl_job_lock`
	q.ensureShards = `insert into {{schema}}.xxl_job_lock (lock_name, shard, owner, epoch)
	select 'shard_' || n::text, n, '', 0 from generate_series(0, $1::int - 1) n
	where not exists (select from {{schema}}.xxl_job_lock)`
	q.setting = `select value from {{schema}}.xxl_job_setting where name = $1`
	q.setSetting = `insert into {{schema}}.xxl_job_setting (name, value) values ($1, $2) on conflict do nothing`
}

func (q *queries) nodes() {
	q.clock = `select clock_timestamp()`
	// The statement sees the rows as they were before its own write, so the node's
	// own row comes from the write.
	q.nodeLock = `select pg_catalog.pg_try_advisory_lock_shared($1, pg_catalog.hashtext($2)), pg_catalog.hashtext($2)::bigint & 4294967295`
	q.beat = `with was as (select has_left or attached <> $4::text::jsonb news from {{schema}}.xxl_job_node where incarnation = $1),
	mine as (
		insert into {{schema}}.xxl_job_node as n (incarnation, node_id, beats, has_left, joined, attached, lock_pid, lock_start, lock_name)
		values ($1, $2, 1, false, case when $3::boolean then {{now}} end, $4::text::jsonb, $5, $6, $7)
		on conflict (incarnation) do update set beats = n.beats + 1, has_left = false, attached = excluded.attached,
			joined = case when $3::boolean then {{now}} else n.joined end, node_id = case when $3::boolean then $2 else n.node_id end,
			lock_pid = excluded.lock_pid, lock_start = excluded.lock_start, lock_name = excluded.lock_name
		returning *),
	nodes as (select * from mine union all select n.* from {{schema}}.xxl_job_node n where n.incarnation <> $1),
	locks as (select p.classid::bigint class, p.objid::bigint id from pg_catalog.pg_locks p where $8::boolean and p.locktype = 'advisory' and p.objsubid = 2 and p.granted
		and p.classid::bigint in ($9::int::bigint & 4294967295, $10::int::bigint & 4294967295)
		and p.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())),
	shards as (select k.shard, k.owner, k.epoch,
		k.owner = '' or n.incarnation is null or n.has_left or ($8::boolean and not exists (select from locks p where p.class = $9::int::bigint & 4294967295 and p.id = k.shard)) free
		from {{schema}}.xxl_job_lock k left join nodes n on n.incarnation = k.owner)
	select clock_timestamp(), pg_catalog.pg_postmaster_start_time(), coalesce((select news from was), true), n.*, s.* from
	(select coalesce(array_agg(incarnation order by incarnation), '{}'), coalesce(array_agg(node_id order by incarnation), '{}'),
		coalesce(array_agg(beats order by incarnation), '{}'), coalesce(array_agg(has_left order by incarnation), '{}'),
		coalesce(array_agg($8::boolean and not has_left and incarnation <> $1 and not exists (select from locks p
			where p.class = $10::int::bigint & 4294967295 and p.id = pg_catalog.hashtext(incarnation)::bigint & 4294967295) order by incarnation), '{}'),
		coalesce(array_agg(coalesce(` + milliseconds("joined") + `, 0) order by incarnation), '{}'),
		coalesce(array_agg(attached::text order by incarnation), '{}'), coalesce(array_agg(failing order by incarnation), '{}') from nodes) n,
	(select coalesce(array_agg(shard order by shard), '{}'), coalesce(array_agg(owner order by shard), '{}'),
		coalesce(array_agg(epoch order by shard), '{}'), coalesce(array_agg(free order by shard), '{}') from shards) s`
	q.setFailing = `update {{schema}}.xxl_job_node set failing = $2 where incarnation = $1 and failing <> $2 returning 1`
	q.lockNode = `select 1 from {{schema}}.xxl_job_node where incarnation = $1 for update`
	q.leaveNode = `update {{schema}}.xxl_job_node set has_left = true where incarnation = $1`
	q.leaveShards = `update {{schema}}.xxl_job_lock set owner = '' where owner = $1 and owner <> ''`
	q.buryLeft = `update {{schema}}.xxl_job_node set has_left = true where incarnation = $1 and beats = $2 and not has_left returning 1`
	q.buryNode = `delete from {{schema}}.xxl_job_node where incarnation = $1 and beats = $2
	and not exists (select from {{schema}}.xxl_job_log l where l.shard in (select shard from {{schema}}.xxl_job_lock) and l.state in (1, 2)
		and (l.start_owner = $1 or l.executor_address = $3) and l.id between $4 and $5)
	returning 1`
	// A row, and no advisory lock: that anybody could take who may connect.
	q.exclusive = `select 1 from {{schema}}.xxl_job_setting where name = '` + versionSetting + `' for update`
	q.tryExclusive = q.exclusive + ` skip locked`
	q.strangers = `select coalesce(p.pid, 0), coalesce(a.usename::text, ''), coalesce(a.application_name, ''), array_agg(p.objid::bigint)
	from pg_catalog.pg_locks p left join pg_catalog.pg_stat_activity a on a.pid = p.pid
	where p.locktype = 'advisory' and p.objsubid = 2 and p.granted and p.classid = $1::bigint::oid and p.objid = any($2::bigint[]::oid[])
	and p.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
	and not ` + ifHolderMay + `pg_catalog.has_table_privilege(r.oid, '{{literal}}.xxl_job_lock'::pg_catalog.regclass::oid, 'UPDATE')` + holderMay + `
	group by p.pid, a.usename, a.application_name order by p.pid`
	q.migrators = `select coalesce(p.pid, 0), coalesce(a.usename::text, ''), coalesce(a.application_name, ''),
		` + ifHolderMay + `(pg_catalog.has_database_privilege(r.oid, p.database, 'CREATE') or exists (select from pg_catalog.pg_namespace n
			where n.nspname = $3::text and pg_catalog.has_schema_privilege(r.oid, n.oid, 'CREATE')))` + holderMay + `
	from pg_catalog.pg_locks p left join pg_catalog.pg_stat_activity a on a.pid = p.pid
	where p.locktype = 'advisory' and p.objsubid = 2 and p.granted and p.classid = $1::bigint::oid and p.objid = $2::bigint::oid
	and p.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())`
	q.shardRows = `select shard, owner, epoch from {{schema}}.xxl_job_lock where shard = any($1::smallint[])`
	q.lockRows = `select 1 from {{schema}}.xxl_job_lock where shard = any($1::smallint[]) order by shard for update`
	q.takeRows = `update {{schema}}.xxl_job_lock k set owner = $1, epoch = k.epoch + 1
	from unnest($2::smallint[], $3::text[], $4::bigint[]) q(shard, owner, epoch)
	where k.shard = q.shard and k.owner = q.owner and k.epoch = q.epoch
	returning k.shard, k.owner, k.epoch`
	q.releaseRows = `update {{schema}}.xxl_job_lock k set owner = '' from unnest($2::smallint[], $3::bigint[]) q(shard, epoch)
	where k.shard = q.shard and k.owner = $1 and k.epoch = q.epoch`
	q.tryLock = `select s, pg_catalog.pg_try_advisory_lock($1, s::int) from unnest($2::smallint[]) s`
	q.unlock = `select pg_catalog.pg_advisory_unlock($1, s::int) from unnest($2::smallint[]) s`
	q.evict = `select pg_catalog.pg_terminate_backend(a.pid) from {{schema}}.xxl_job_node n
	join pg_catalog.pg_stat_activity a on a.pid = n.lock_pid and a.backend_start = n.lock_start and a.application_name = n.lock_name
	where n.incarnation = any($1::text[])`
	q.backend = `select pg_catalog.pg_backend_pid()`
	q.endBlockers = `select pg_catalog.pg_terminate_backend(a.pid) from pg_catalog.pg_stat_activity a
	where a.pid = any(pg_catalog.pg_blocking_pids($1::int)) and a.usename = current_user and a.query like '` + mark + `%'`
	q.notify = `select pg_catalog.pg_notify($1, p) from unnest($2::text[]) p`
}

func (q *queries) catalogue() {
	q.saveGroup = `insert into {{schema}}.xxl_job_group as g (app_name, title, address_type, address_list, update_time) values ($1, $2, $3, $4, {{now}})
	on conflict (app_name) do update set title = excluded.title, address_type = excluded.address_type,
		address_list = excluded.address_list, update_time = excluded.update_time`
	q.ensureGroup = `insert into {{schema}}.xxl_job_group (app_name, title, address_type, address_list, update_time) values ($1, '', 0, '{}', {{now}})
	on conflict (app_name) do nothing`
	q.deleteGroup = `delete from {{schema}}.xxl_job_group where app_name = $1 returning 1`
	// By order, that is by index: where many jobs are of one app, the planner expects
	// to meet one of the app soon wherever it looks, and there may be none.
	q.groupUsed = `select coalesce((select i.app_name from {{schema}}.xxl_job_info i where i.app_name >= $1 order by i.app_name limit 1) = $1, false)`
	group := `select app_name, title, address_type, address_list, update_time from {{schema}}.xxl_job_group`
	q.group = group + ` where app_name = $1`
	q.groups = group + ` order by app_name`
}

// Rows of the registry are locked in order of their keys, whoever locks them. A
// refresh changes no column of the one index, so on its half-full pages the new
// version takes the place of one that is gone (HOT). An index on update_time would
// be written with each refresh, some hundred times a second, to save one reading of
// the table (100,000 rows are about 30 MB) an hour.
func (q *queries) registry() {
	const stamp = `date_trunc('milliseconds', clock_timestamp())`
	put := func(head, only string) string {
		return head + `insert into {{schema}}.xxl_job_registry (registry_group, registry_key, registry_value, boot_id, capabilities, update_time)
	select 'EXECUTOR', b.app, b.address, b.boot, b.can::text[], ` + stamp + `
	from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality b(app, address, boot, can, ord)` + only + `
	order by b.ord
	on conflict (registry_group, registry_key, registry_value) do update
		set boot_id = excluded.boot_id, capabilities = excluded.capabilities, update_time = ` + stamp + `
	returning 1`
	}
	// found are the rows of a batch that are there.
	const found = ` from unnest($1::text[], $2::text[], $3::text[]) with ordinality b(app, address, boot, ord)
	join {{schema}}.xxl_job_registry r on r.registry_group = 'EXECUTOR' and r.registry_key = b.app and r.registry_value = b.address`
	const inOrder = ` order by r.registry_key, r.registry_value`
	q.putAddresses = put("", "")
	q.putAddressesFree = put(`with free as materialized (select b.ord`+found+inOrder+` for no key update of r skip locked),
	locked as materialized (select b.ord`+found+` except select ord from free)
	`, `
	where b.ord <> all(array(select ord from locked))`)
	// The rows are locked first, since a delete locks in the order of its plan. It
	// goes by their keys: of a row that was refreshed while it was waited for, the
	// place that was read is that of a version that is gone.
	const matching = found + `
	where b.boot = '' or b.boot = r.boot_id`
	drop := func(free string) string {
		return `with found as materialized (select b.ord, r.registry_key, r.registry_value` + matching + inOrder + ` for update of r` + free + `)`
	}
	const dropFound = `delete from {{schema}}.xxl_job_registry r using found
	where r.registry_group = 'EXECUTOR' and r.registry_key = found.registry_key and r.registry_value = found.registry_value`
	q.dropAddresses = drop("") + `
	` + dropFound
	q.dropAddressesFree = drop(` skip locked`) + `, dropped as (` + dropFound + `)
	select b.ord` + matching + ` except select ord from found`
	list := `select r.registry_key, r.registry_value, r.boot_id, r.capabilities, r.update_time from {{schema}}.xxl_job_registry r
	where r.registry_group = 'EXECUTOR'`
	q.addresses = list + ` and r.registry_key = $1 and r.update_time >= clock_timestamp() - $2::bigint::double precision * interval '1 microsecond'
	order by r.registry_value`
	q.registrations = list + ` and (r.registry_key, r.registry_value) > ($1::text, $2::text)` + inOrder + ` limit $3`
	q.registrationsOf = list + ` and (r.registry_key, r.registry_value) > ($1::text, $2::text) and r.registry_key = $4` + inOrder + ` limit $3`
	// All of the table is read, and not by way of the index, which would be slower.
	q.forgetAddresses = `delete from {{schema}}.xxl_job_registry r where r.ctid = any(array(
		select p.ctid from {{schema}}.xxl_job_registry p where p.registry_group || '' = 'EXECUTOR'
		and p.update_time < clock_timestamp() - $1::bigint::double precision * interval '1 microsecond' for update skip locked))`
}
