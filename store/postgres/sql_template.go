package postgres

// How a statement gets from its text to the server. Comes in: a text with holes in double
// braces, once for a schema, and the values of a call by their names. Goes out: SQL, whose
// arguments are numbered here and nowhere else, and the values in that order.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xxljob/xxljob/store"
)

// query is a statement as the server gets it, with the names of its arguments in the order
// of their numbers. It has no names where the text itself has the numbers: a statement of
// one or two arguments may.
type query struct {
	text string
	args []string
	said bool // see saying
}

// saying is the query as one that brings what running programs say, for people: a database that
// has not all of its characters gets question marks for those that it lacks.
func (q query) saying() query {
	q.said = true
	return q
}

// named are arguments with their names.
type named []struct {
	name  string
	value any
}

// by is the statement with arguments that go by their names, in whatever order; in that of
// the statement they are found soonest. A name that is missing, or one too many, is a
// mistake in the program, like a wrong number of arguments to a function.
func (q query) by(args named) statement {
	values := make([]any, len(q.args))
	at := -1 // where the last one was found
	for i, name := range q.args {
		at = args.find(name, at+1)
		if at < 0 {
			panic(fmt.Sprintf("postgres: no argument %q for %s", name, q.text))
		}
		values[i] = args[at].value
	}
	if len(args) != len(q.args) {
		panic(fmt.Sprintf("postgres: %d arguments, want %q for %s", len(args), q.args, q.text))
	}
	return statement{sql: q.text, args: values, said: q.said}
}

// find is the place of a name, which is looked for from a place onwards and then before it;
// -1 where it is not there.
func (args named) find(name string, from int) int {
	for k := range args {
		if at := (from + k) % len(args); args[at].name == name {
			return at
		}
	}
	return -1
}

// with is the statement with arguments that go by their numbers.
func (q query) with(args ...any) statement {
	if len(q.args) > 0 {
		panic(fmt.Sprintf("postgres: the arguments go by the names %q in %s", q.args, q.text))
	}
	return statement{sql: q.text, args: args, said: q.said}
}

// into is the statement with a reader of its rows.
func (st statement) into(read result) statement {
	st.read = read
	return st
}

// template makes a statement of a text:
//
//	{{arg.token}}   the argument of that name: $1 for the first that is met, and so on
//	{{state.lost}}  the number of a state, and likewise of what else is stored as a number
//	{{listed}}      the columns of a run as lists have them, with the argument texts
//	{{schema}}      the schema, quoted, and {{literal}} within a text
//	{{now}}         the time of the statement, and what else statements have in common
//
// A hole that nothing fills is a mistake in the program.
type template func(text string) query

// newTemplate is the template for a schema, whose name is quoted. New fills all statements of a
// store, so there are no regular expressions here either (see qualify).
func newTemplate(schema string) template {
	common, listed := commonHoles(schema), listedColumns("{{arg.texts}}")
	return func(text string) (q query) {
		var out strings.Builder
		out.WriteString(mark)
		rest := qualify(strings.ReplaceAll(text, "{{listed}}", listed))
		for {
			before, behind, is := strings.Cut(rest, "{{")
			out.WriteString(before)
			if !is {
				break
			}
			var hole string
			if hole, rest, is = strings.Cut(behind, "}}"); !is {
				panic(fmt.Sprintf("postgres: a hole without an end in %s", text))
			}
			if name, is := strings.CutPrefix(hole, "arg."); is {
				out.WriteString(q.number(name))
				continue
			}
			fill, known := common[hole]
			if !known {
				panic(fmt.Sprintf("postgres: nothing fills {{%s}} in %s", hole, text))
			}
			out.WriteString(fill)
		}
		q.text = out.String()
		return q
	}
}

// number is the number of an argument, which may be new.
func (q *query) number(name string) string {
	at := slices.Index(q.args, name)
	if at < 0 {
		at = len(q.args)
		q.args = append(q.args, name)
	}
	return "$" + strconv.Itoa(at+1)
}

// commonHoles are the holes that are filled in the same way in each statement.
func commonHoles(schema string) map[string]string {
	literal := strings.ReplaceAll(schema, "'", "''")
	seq := literal + ".xxl_job_log_id"
	holes := map[string]string{
		"schema": schema, "literal": literal,
		"run_id": strings.ReplaceAll(sqlRunID, "{{seq}}", seq), "run_base": sqlRunBase, "run_low": strings.ReplaceAll(sqlRunLow, "{{seq}}", seq),
		"now": sqlNow, "kept": sqlNow + " - interval '1 minute'", "born": scheduleBorn(), "run": runColumns,
	}
	for name, n := range storedNumbers {
		holes[name] = strconv.Itoa(n)
	}
	return holes
}

// storedNumbers are the numbers that columns have for what has a name in Go.
var storedNumbers = map[string]int{
	"state.planned":    int(store.StatePlanned),
	"state.started":    int(store.StateStarted),
	"state.dispatched": int(store.StateDispatched),
	"state.succeeded":  int(store.StateSucceeded),
	"state.failed":     int(store.StateFailed),
	"state.timed_out":  int(store.StateTimedOut),
	"state.killed":     int(store.StateKilled),
	"state.lost":       int(store.StateLost),
	"state.refused":    int(store.StateRefused),
	"state.discarded":  int(store.StateDiscarded),
	"state.skipped":    int(store.StateSkipped),
	"state.cancelled":  int(store.StateCancelled),
	"alarm.default":    alarmDefault,
	"alarm.none":       alarmNone,
	"status.stopped":   statusStopped,
	"status.enabled":   statusEnabled,
	"retries.of_job":   retriesOfJob,
	"snoozes.default":  store.DefaultSnoozes,
}

// XXL-JOB's numbers: alarm_status of a run that needs an alarm if it ends badly and of one
// that needs none, and trigger_status of a job.
const (
	alarmDefault = 0
	alarmNone    = 1

	statusStopped = 0
	statusEnabled = 1
)

// assigned are columns of a row that is inserted, each beside what goes into it.
type assigned [][2]string

func (a assigned) columns() string { return a.list(0) }
func (a assigned) values() string  { return a.list(1) }

func (a assigned) list(side int) string {
	list := make([]string, len(a))
	for i := range a {
		list[i] = a[i][side]
	}
	return strings.Join(list, ", ")
}

// The schema of what a statement calls. In: the text of a statement. Out: the same, with the
// schema of the server's functions and types before their names.

// qualify names the schema of the server's functions and types, so that no search_path
// leads to others. Names that are part of the grammar need none, among them unnest of
// several arrays. Operators it leaves alone: each stands between the very types that
// pg_catalog has it for, so that no other is looked for (see sql_names_test.go), and none but
// pg_catalog's is met on the path that statements of ours run on. In statements that run
// in the host's transactions, on any path, they are written as operator(pg_catalog.=).
//
// New qualifies all statements of a store, so this is one pass and no regular expressions,
// which took it 16 ms of 18.
func qualify(sql string) string {
	var out strings.Builder
	out.Grow(len(sql) + len(sql)/8)
	for done := 0; done < len(sql); {
		at := done
		for at < len(sql) && !inName(sql[at]) {
			at++
		}
		end := at
		for end < len(sql) && inName(sql[end]) {
			end++
		}
		out.WriteString(sql[done:at])
		if ofServer(sql[:at], sql[at:end], sql[end:]) {
			out.WriteString("pg_catalog.")
		}
		out.WriteString(sql[at:end])
		done = end
	}
	return out.String()
}

func inName(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// ofServer reports whether a name, between what is before and behind it, is one of the server's
// that has no schema yet.
func ofServer(before, name, behind string) bool {
	switch {
	case strings.HasSuffix(before, "::"):
		return slices.Contains(castTo, name)
	case !strings.HasPrefix(behind, "(") || strings.HasSuffix(before, "."):
		return false
	case name == "unnest" && ofSeveral(behind[1:]):
		return false
	}
	return slices.Contains(called, name)
}

// ofSeveral reports whether there is more than one argument, of which the first calls nothing.
func ofSeveral(arguments string) bool {
	end := strings.IndexAny(arguments, "(),")
	return end >= 0 && arguments[end] == ','
}

// The types and functions of the server whose names statements have.
var (
	castTo = []string{"text", "timestamptz", "jsonb"}
	called = []string{
		"array_agg", "bool_or", "min", "max", "count", "nextval", "clock_timestamp", "statement_timestamp", "date_trunc", "substr", "generate_series",
		"current_database", "unnest",
	}
)

// Other roles may create functions and operators in a schema of the host's path, and
// whoever calls one of them runs it with his own rights. Two things keep the store from
// that. Its statements name what they use so that nothing in another schema fits better
// (see qualify); and they run on a path of our own, so that nothing is looked for elsewhere
// even where the host's path has public before pg_catalog. The statements of TriggerTx run
// on the host's path and name the schema of each operator as well.

// ourPath is the search_path of all that is the store's alone.
const ourPath = "pg_catalog, pg_temp"

// setOurPath goes in front of statements that have no transaction of ours around them, in
// the same message or pipeline. The server makes one transaction of that, and the settings
// end with it. JIT is off there too: a plan for all arguments does not know that a page is
// short, and would be compiled for seconds to read a hundred rows.
const setOurPath = mark + "select pg_catalog.set_config('search_path', '" + ourPath + "', true), pg_catalog.set_config('jit', 'off', true)"

// prefersOthers reports whether a search_path looks anywhere before pg_catalog. A statement
// that is prepared on such a path may come to another understanding there than it has when
// it is executed on ours, which the server refuses.
func prefersOthers(path string) bool {
	path = strings.ToLower(strings.TrimLeft(path, `" `))
	return strings.Contains(path, "pg_catalog") && !strings.HasPrefix(path, "pg_catalog")
}

// What statements have in common. The text of each is beside the method that runs it: a
// file with statements has a struct of them, which is listed here, and whose define writes
// them by a template (see sql_template.go).

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
