package postgres

// Who holds rows and tables that the scheduler has to lock.

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

var _ store.LockReader = (*Store)(nil)

// LockHolders looks for locks of whole tables first: while there is one that keeps others from
// reading, the rows cannot be asked. A row says itself which transaction has locked it, unless
// several have, who share the lock.
func (s *Store) LockHolders(ctx context.Context, q store.LockQuery) (holders []string, err error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	into := func(rows pgx.Rows) error {
		var pid int
		var user, program, address, state, age string
		if err := rows.Scan(&pid, &user, &program, &address, &state, &age); err != nil {
			return err
		}
		holders = append(holders, fmt.Sprintf("pid %d, user %s, program %q, address %s, %s for %s", pid, user, program, address, state, age))
		return nil
	}
	if err := s.read(ctx, s.sql.tableHolders.with().into(into)); err != nil {
		return nil, failed(err, "read who holds tables")
	}
	if len(holders) > 0 {
		return holders, nil
	}
	shards := make([]int16, len(q.Shards))
	for i, id := range q.Shards {
		shards[i] = int16(id)
	}
	lo, hi := rangeOf(q.Runs)
	err = s.read(ctx, s.sql.rowHolders.by(named{{"shards", shards}, {"jobs", q.Jobs}, {"runs", q.Runs}, {"lo", lo}, {"hi", hi}}).into(into))
	return holders, failed(err, "read who holds rows")
}

// lockReadQueries are the statements of this file.
type lockReadQueries struct{ tableHolders, rowHolders query }

func (q *lockReadQueries) define(sql template) {
	// What the role may not know of the sessions of others is null.
	const holders = `select a.pid, coalesce(a.usename, '?')::text, coalesce(a.application_name, '?'), coalesce(a.client_addr::text, 'local'),
		coalesce(a.state, 'state unknown'), coalesce(pg_catalog.date_trunc('second', pg_catalog.clock_timestamp() - coalesce(a.state_change, a.xact_start))::text, '?')
	from pg_catalog.pg_stat_activity a where a.pid <> pg_catalog.pg_backend_pid() and a.pid in (select p.pid from pg_catalog.pg_locks p where p.granted and `
	q.tableHolders = sql(holders + `p.locktype = 'relation'
		and p.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
		and p.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
		and p.relation in (select c.oid from pg_catalog.pg_class c where c.relnamespace =
			(select k.relnamespace from pg_catalog.pg_class k where k.oid = '{{literal}}.xxl_job_lock'::pg_catalog.regclass::pg_catalog.oid))) order by a.pid limit 10`)
	q.rowHolders = sql(holders + `p.locktype = 'transactionid' and p.transactionid in (
		select k.xmax from {{schema}}.xxl_job_lock k where k.shard = any({{arg.shards}}::smallint[])
		union all select i.xmax from {{schema}}.xxl_job_info i where i.id = any({{arg.jobs}}::bigint[])
		union all select x.xmax from {{schema}}.xxl_job_next x where x.job_id = any({{arg.jobs}}::bigint[])
		union all select l.xmax from {{schema}}.xxl_job_log l where l.id = any({{arg.runs}}::bigint[]) and l.id between {{arg.lo}}::bigint and {{arg.hi}}::bigint))
	order by a.pid limit 10`)
}
