package postgres

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

// DispatchedRuns returns a page of the dispatched runs of shards.
func (s *Store) DispatchedRuns(ctx context.Context, shards []store.Shard, after int64, limit int) ([]store.Run, error) {
	in, _ := fenceArgs(shards)
	if len(in) == 0 || limit <= 0 {
		return nil, ended(ctx)
	}
	lo, hi := s.openRange()
	var runs []store.Run
	err := s.read(ctx, s.sql.dispatchedRuns.by(named{
		{"shards", in}, {"after", after}, {"lo", lo}, {"hi", hi}, {"limit", limit},
	}).into(readRuns(&runs)))
	return runs, failed(err, "read dispatched runs")
}

// dispatchedQueries are the statements of this file.
type dispatchedQueries struct {
	dispatchedRuns query
}

func (q *dispatchedQueries) define(sql template) {
	q.dispatchedRuns = sql(`select {{run}} from {{schema}}.xxl_job_log l
	where l.shard = any({{arg.shards}}::smallint[]) and l.state = {{state.dispatched}} and l.id > {{arg.after}} and l.id between {{arg.lo}} and {{arg.hi}}
	order by l.id limit {{arg.limit}}`)
}
