package postgres

// Runs that a clock has dated which was ahead.

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// RedateRuns corrects planned runs that say to have been inserted in the future.
func (s *Store) RedateRuns(ctx context.Context, q store.RedateQuery) (n int, err error) {
	shards, epochs := fenceArgs(q.Shards)
	if len(shards) == 0 || q.Limit <= 0 {
		return 0, ended(ctx)
	}
	least := q.Now.Add(backLeast)
	err = s.one(ctx, bounds{name: "redate_runs"}, s.sql.redateRuns.by(named{
		{"shards", shards}, {"epochs", epochs}, {"now", milli(stored(q.Now))}, {"least", milli(stored(least))}, {"after", idAt(least)}, {"most", int64(maxRunID)}, {"limit", q.Limit},
	}).into(func(pgx.Rows) error { n++; return nil }))
	if n > 0 {
		s.region.reach(time.Time{})
	}
	return n, failed(err, "correct when runs are due")
}

// redateQueries are the statements of this file.
type redateQueries struct{ redateRuns query }

func (q *redateQueries) define(sql template) {
	added := milliseconds("l.add_time")
	q.redateRuns = sql(`with ` + fence("") + `
	update {{schema}}.xxl_job_log l set plan_epoch = null, add_time = pg_catalog.to_timestamp({{arg.now}}::bigint::double precision / 1000::double precision),
		scheduled_time = case when l.trigger_type = 'RETRY' then greatest(l.scheduled_time - (` + added + ` - {{arg.now}}::bigint), {{arg.now}}::bigint)
			when abs(l.scheduled_time - ` + added + `) < 1000 then {{arg.now}}::bigint else l.scheduled_time end
	where l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.state = {{state.planned}} and p.scheduled_time > {{arg.least}}::bigint
		and p.id between {{arg.after}}::bigint and {{arg.most}}::bigint and p.shard = any(array(select shard from fence)) and p.trigger_type not in ({{born}})
		and ` + milliseconds("p.add_time") + ` > {{arg.least}}::bigint order by p.id + 0 limit {{arg.limit}} for no key update skip locked))
	and l.id between {{arg.after}}::bigint and {{arg.most}}::bigint
	returning 1`)
}
