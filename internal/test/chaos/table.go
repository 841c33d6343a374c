//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// This file holds everything that this package knows of the database's tables.

// tables are the tables of the schema, without partitions.
func tables(ctx context.Context, db *pgx.Conn, schema string) ([]string, error) {
	rows, err := db.Query(ctx, `select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = $1 and c.relkind in ('r', 'p') and not c.relispartition order by 1`, schema)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// following are the tables of what follows the ends of runs.
func following() []string {
	return []string{"xxl_job_owed", "xxl_job_part", "xxl_job_window", "xxl_job_link", "xxl_job_told"}
}

// readRows reads the log table.
func readRows(ctx context.Context, db *pgx.Conn, schema string) ([]audit.Row, error) {
	rows, err := db.Query(ctx, fmt.Sprintf(`
		select id, job_id, state, trigger_type, scheduled_time,
			coalesce(nullif(split_part(executor_sharding_param, '/', 1), '')::int, 0),
			coalesce(nullif(split_part(executor_sharding_param, '/', 2), '')::int, 0),
			coalesce(first_time, 0), coalesce(last_time, 0), coalesce(instants, 0), coalesce(reason, ''),
			coalesce(start_owner, executor_address, ''), coalesce(executor_address, ''),
			coalesce(floor(extract(epoch from trigger_time) * 1000)::bigint, 0),
			coalesce(floor(extract(epoch from taken_time) * 1000)::bigint, 0),
			coalesce(floor(extract(epoch from handle_time) * 1000)::bigint, 0),
			coalesce(trigger_id, id), coalesce(attempt, 0), coalesce(reruns, 0), coalesce(snoozes, 0), coalesce(no_retry, false), coalesce(snoozed, false),
			coalesce(parent_id, 0), coalesce(depth, 0), coalesce(business_time, 0), coalesce(instant_time, 0), kill_reason is not null, case when state in (8, 10) then coalesce(trigger_msg, '') else '' end
		from %s.xxl_job_log order by id`, schema))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (audit.Row, error) {
		var r audit.Row
		err := row.Scan(&r.Run, &r.Job, &r.State, &r.Type, &r.Due, &r.Index, &r.Total, &r.First, &r.Last, &r.Count, &r.Reason, &r.Owner, &r.Address, &r.Started, &r.Taken, &r.Ended,
			&r.Trigger, &r.Attempt, &r.Reruns, &r.Snoozes, &r.NoRetry, &r.Snoozed,
			&r.Parent, &r.Depth, &r.Business, &r.StandsFor, &r.Doomed, &r.Message)
		return r, err
	})
}

// unfinished counts what stands for instants up to a moment and is not done with: runs, of
// which retries and children may be due later, what is owed, windows that are open, and alarms.
func unfinished(ctx context.Context, db *pgx.Conn, schema string, upTo int64) (n int, err error) {
	err = db.QueryRow(ctx, fmt.Sprintf(`select (select count(*) from %s.xxl_job_log where state <= 2 and least(scheduled_time, last_time, business_time) <= $1)
		+ (select count(*) from %[1]s.xxl_job_ahead where state = 0)
		+ (select count(*) from %[1]s.xxl_job_owed where business_time <= $1)
		+ (select count(*) from %[1]s.xxl_job_window where begins <= $1)
		+ (select count(*) from %[1]s.xxl_job_alarm where status = 0 and (instant <= $1 or trouble is not null))`, schema), upTo).Scan(&n)
	return n, err
}

// readLed reads what successes owe, the windows that are open, and the alarms.
func readLed(ctx context.Context, db *pgx.Conn, schema string, in *audit.Input) error {
	owed, err1 := db.Query(ctx, fmt.Sprintf(`select log_id, coalesce(job_id, 0), business_time from %s.xxl_job_owed order by id`, schema))
	in.Owed, err1 = collected[audit.Owed](owed, err1)
	open, err2 := db.Query(ctx, fmt.Sprintf(`select job_id, begins from %s.xxl_job_window order by 1, 2`, schema))
	in.Open, err2 = collected[audit.Open](open, err2)
	alarms, err3 := db.Query(ctx, fmt.Sprintf(`select id, job_id, coalesce(log_id, 0), cause, status, coalesce(instant, 0) from %s.xxl_job_alarm where trouble is null order by id`, schema))
	in.Alarms, err3 = collected[audit.Alarm](alarms, err3)
	noted, err4 := db.Query(ctx, fmt.Sprintf(`select id, trouble, app_name, trouble_over, status, (extract(epoch from add_time) * 1000)::bigint from %s.xxl_job_alarm where trouble is not null order by id`, schema))
	in.Noted, err4 = collected[audit.Trouble](noted, err4)
	return errors.Join(err1, err2, err3, err4)
}

// collected are the rows of a query, whose columns are the fields of T in their order.
func collected[T any](rows pgx.Rows, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}

// ownedShards are the shards of a node, whichever its incarnation.
func ownedShards(ctx context.Context, db *pgx.Conn, schema, node string) ([]int, error) {
	rows, err := db.Query(ctx, fmt.Sprintf(`select shard from %s.xxl_job_lock where owner like $1 || '-__________' order by shard`, schema), node)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

// sentTo is the node that the latest run of a job was sent to.
func sentTo(ctx context.Context, db *pgx.Conn, schema string, job int64) (address string, err error) {
	err = db.QueryRow(ctx, fmt.Sprintf(`select executor_address from %s.xxl_job_log
		where job_id = $1 and executor_address <> '' order by id desc limit 1`, schema), job).Scan(&address)
	return audit.NodeOf(address), err
}

// lockConnections are the backends that hold shard locks: those of session
// advisory locks.
const lockConnections = `select distinct l.pid from pg_locks l join pg_stat_activity a on a.pid = l.pid
	where l.locktype = 'advisory' and a.usename = $1 and a.datname = $2`

// allConnections are all backends of the nodes.
const allConnections = `select pid from pg_stat_activity where usename = $1 and datname = $2`

// refusals have the database refuse rows for ever: results and alarms with a poisoned text, pages
// of logs of one run in so many, and what there is of three jobs: each run, start and alarm.
func refusals(schema string, one, noRuns, noStarts, noAlarms int64) string {
	text := fmt.Sprintf("create function %s.refuse() returns trigger language plpgsql as $$ begin raise exception 'this row is poisoned'; end $$;", schema)
	for i, r := range []struct{ event, table, when string }{
		{"update", "xxl_job_log", fmt.Sprintf("new.handle_msg like '%%%s%%'", control.Poison)},
		{"insert", "xxl_job_alarm", fmt.Sprintf("new.content like '%%%s%%' or new.job_id = %d and new.cause = 'late'", control.Poison, noAlarms)},
		{"insert", "xxl_job_log_page", fmt.Sprintf("new.run_id %% %d = 0", one)},
		{"insert", "xxl_job_log", fmt.Sprintf("new.job_id = %d", noRuns)},
		{"update", "xxl_job_log", fmt.Sprintf("new.job_id = %d and old.state = 0 and new.state = 1", noStarts)},
	} {
		text += fmt.Sprintf("create trigger poisoned_%d before %s on %s.%s for each row when (%s) execute function %[3]s.refuse();", i, r.event, schema, r.table, r.when)
	}
	return text
}

// rowLocks lock rows that the loop writes, each in a transaction that then idles.
func rowLocks(schema string) map[string]string {
	return map[string]string{
		"shards":  fmt.Sprintf(`select 1 from %s.xxl_job_lock for update`, schema),
		"jobs":    fmt.Sprintf(`select 1 from %s.xxl_job_info for update`, schema),
		"next":    fmt.Sprintf(`select 1 from %s.xxl_job_next for update`, schema),
		"nodes":   fmt.Sprintf(`select 1 from %s.xxl_job_node for update`, schema),
		"planned": fmt.Sprintf(`select 1 from %s.xxl_job_log where state <= 1 for update`, schema),
	}
}
