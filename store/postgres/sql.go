package postgres

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/xxljob/xxljob"
)

// queries are the store's statements, for one schema. Each file has its own.
type queries struct {
	jobQueries
	jobListQueries
	editQueries
	ruleQueries
	scanQueries
	claimQueries
	startQueries
	explainQueries
	handoverQueries
	settleQueries
	endQueries
	askQueries
	triggerQueries
	listQueries
	idQueries
	serialQueries
	partitionQueries
	shardQueries
	checkQueries
	nodeQueries
	sessionQueries
	strangerQueries
	signalQueries
	groupQueries
	registryQueries
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
	for _, part := range []interface{ write() }{
		&q.jobQueries, &q.jobListQueries, &q.editQueries, &q.ruleQueries, &q.scanQueries, &q.claimQueries,
		&q.startQueries, &q.explainQueries, &q.handoverQueries, &q.settleQueries, &q.endQueries, &q.askQueries,
		&q.triggerQueries, &q.listQueries, &q.idQueries, &q.serialQueries, &q.partitionQueries, &q.shardQueries,
		&q.checkQueries, &q.nodeQueries, &q.sessionQueries, &q.strangerQueries, &q.signalQueries, &q.groupQueries,
		&q.registryQueries,
	} {
		part.write()
	}
	literal := strings.ReplaceAll(schema, "'", "''")
	seq := literal + ".xxl_job_log_id"
	fill := strings.NewReplacer(append(stateNumbers(), "{{run_id}}", strings.ReplaceAll(sqlRunID, "{{seq}}", seq),
		"{{run_base}}", sqlRunBase, "{{run_low}}", strings.ReplaceAll(sqlRunLow, "{{seq}}", seq), "{{schema}}", schema, "{{literal}}", literal,
		"{{now}}", sqlNow, "{{kept}}", sqlNow+" - interval '1 minute'", "{{born}}", scheduleBorn(), "{{run}}", runColumns)...)
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

// all are the statements of all files. Their fields are not exported, so that reflection
// gives away their places only.
func (q *queries) all() (list []*string) {
	v := reflect.ValueOf(q).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if !f.Anonymous {
			list = append(list, (*string)(v.FieldByIndex(f.Index).Addr().UnsafePointer()))
		}
	}
	return list
}
