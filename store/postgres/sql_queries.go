package postgres

// What statements have in common. The text of each is beside the method that runs it: a
// file with statements has a struct of them, which is listed here, and whose define writes
// them by a template (see sql_template.go).

import (
	"strings"

	"github.com/xxljob/xxljob/store"
)

// queries are the store's statements, for one schema: those of each file that has any.
type queries struct {
	jobQueries
	recordQueries
	searchChangeQueries
	editQueries
	redateQueries
	ruleQueries
	scanQueries
	claimQueries
	startQueries
	whyQueries
	handoverQueries
	settleQueries
	finishQueries
	finishFreeQueries
	followQueries
	oweQueries
	payQueries
	windowQueries
	alarmQueries
	keptRuleQueries
	muteQueries
	troubleQueries
	appTokenQueries
	logPageQueries
	triggerQueries
	aheadQueries
	runQueries
	searchQueries
	jobSearchQueries
	reportQueries
	floorQueries
	serialQueries
	partitionQueries
	dropQueries
	shardQueries
	lockReadQueries
	settingQueries
	nodeQueries
	sessionQueries
	fitQueries
	lockQueries
	noteQueries
	groupQueries
	listQueries
	accountQueries
	loginQueries
}

// newQueries writes the statements for a schema, whose name is quoted.
func newQueries(schema string) *queries {
	q, sql := &queries{}, newTemplate(schema)
	for _, part := range []interface{ define(template) }{
		&q.jobQueries, &q.recordQueries, &q.searchChangeQueries, &q.editQueries, &q.ruleQueries, &q.scanQueries, &q.claimQueries, &q.startQueries,
		&q.whyQueries, &q.handoverQueries, &q.settleQueries, &q.finishQueries, &q.finishFreeQueries, &q.followQueries, &q.oweQueries, &q.payQueries,
		&q.windowQueries, &q.alarmQueries, &q.keptRuleQueries, &q.muteQueries, &q.troubleQueries, &q.appTokenQueries, &q.logPageQueries, &q.triggerQueries, &q.aheadQueries, &q.runQueries, &q.searchQueries, &q.jobSearchQueries,
		&q.reportQueries, &q.floorQueries, &q.redateQueries, &q.serialQueries, &q.partitionQueries, &q.dropQueries, &q.shardQueries, &q.lockReadQueries, &q.settingQueries, &q.nodeQueries,
		&q.sessionQueries, &q.fitQueries, &q.lockQueries, &q.noteQueries, &q.groupQueries, &q.listQueries, &q.accountQueries, &q.loginQueries,
	} {
		part.define(sql)
	}
	return q
}

// scheduleBorn are the types of runs that a schedule made.
func scheduleBorn() string {
	var list []string
	for _, t := range []store.TriggerType{store.TriggerCron, store.TriggerFixRate, store.TriggerFixDelay, store.TriggerOnce, store.TriggerMisfire} {
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
	// sqlRunID makes an id: milliseconds since 2025 and 13 bits, of a sequence. The last 512
	// ids of a millisecond are for runs that are planned far ahead (see runs_ahead.go).
	sqlRunID = sqlRunBase + ` operator(pg_catalog.+) ` + sqlRunLow
	// A statement that makes many ids reads the clock once: that is most of the work.
	sqlRunBase = `(` + sqlMilliHead + `pg_catalog.clock_timestamp()` + sqlMilliTail + ` operator(pg_catalog.-) 1735689600000) operator(pg_catalog.*) 8192`
	sqlRunLow  = `(pg_catalog.nextval('{{seq}}') operator(pg_catalog.%) 7680::bigint)`
	// What stands between these is a time, which they turn into milliseconds since 1970.
	// It is date_part because extract has another type before Postgres 14.
	sqlMilliHead = `(pg_catalog.date_part('epoch', `
	sqlMilliTail = `) operator(pg_catalog.*) 1000::double precision)::bigint`
	// sqlFence holds the shards that have the caller's epoch against take-overs.
	sqlFence = `fence as materialized (
	select k.shard, f.epoch from unnest({{arg.shards}}::smallint[], {{arg.epochs}}::bigint[]) f(shard, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = f.shard and k.epoch = f.epoch
	order by k.shard for key share of k %free)`
	// sqlNodes holds the nodes that are there against their burial.
	sqlNodes = `nodes as materialized (
	select n.incarnation from {{schema}}.xxl_job_node n
	where n.incarnation = any({{arg.nodes}}::text[]) and not n.has_left
	order by n.incarnation for key share of n %free)`
	// few is always true and makes the planner expect one row of r: so it looks up
	// each run by its key also where no partition has been analyzed yet.
	few = `r.ord = r.ord + 0`
	// sqlSay adds a line to what was said.
	sqlSay = `case when coalesce(%line, '') = '' then %said
	when coalesce(%said, '') = '' then %line else %said || E'\n' || %line end`
)

// fence is sqlFence, with what is to be done about rows that others have locked.
func fence(free string) string { return strings.ReplaceAll(sqlFence, "%free", free) }

func nodes(free string) string { return strings.ReplaceAll(sqlNodes, "%free", free) }

func milliseconds(time string) string { return sqlMilliHead + time + sqlMilliTail }

// runIs is whether a run l has the id of a row of a batch. By an equality the planner could as well
// go through the key of a partition from end to end and, for each run there, through the batch: it
// takes that for cheap where the partition was analyzed while it was empty. An array of one has but
// one way to be found.
func runIs(id string) string { return "l.id = any(array[" + id + "])" }

// say is trigger_msg with a line behind it.
func say(line string) string { return sayBehind("l.trigger_msg", line) }

func sayBehind(said, line string) string {
	return strings.NewReplacer("%said", said, "%line", line).Replace(sqlSay)
}
