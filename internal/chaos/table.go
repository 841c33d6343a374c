//go:build unix

package chaos

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/chaos/audit"
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
			coalesce(trigger_id, id), coalesce(attempt, 0), coalesce(reruns, 0), coalesce(snoozes, 0), coalesce(no_retry, false), coalesce(snoozed, false)
		from %s.xxl_job_log order by id`, schema))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (audit.Row, error) {
		var r audit.Row
		err := row.Scan(&r.Run, &r.Job, &r.State, &r.Type, &r.Due, &r.Index, &r.Total, &r.First, &r.Last, &r.Count, &r.Reason, &r.Owner, &r.Address, &r.Started, &r.Taken, &r.Ended,
			&r.Trigger, &r.Attempt, &r.Reruns, &r.Snoozes, &r.NoRetry, &r.Snoozed)
		return r, err
	})
}

// unfinished counts the runs that stand for instants up to a moment and have not ended: a
// retry may be due later.
func unfinished(ctx context.Context, db *pgx.Conn, schema string, upTo int64) (n int, err error) {
	err = db.QueryRow(ctx, fmt.Sprintf(`select (select count(*) from %s.xxl_job_log where state <= 2 and least(scheduled_time, last_time) <= $1)
		+ (select count(*) from %[1]s.xxl_job_ahead where state = 0)`, schema), upTo).Scan(&n)
	return n, err
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
