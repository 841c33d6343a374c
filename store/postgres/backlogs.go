package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// backlogs are the numbers of runs that are due and wait, by job, counted once a
// second at most.
type backlogs struct {
	mu      sync.Mutex
	counted time.Time     // guarded by mu
	of      []int16       // guarded by mu
	n       map[int64]int // guarded by mu
	from    int64         // guarded by mu: where the next count begins
	wholly  time.Time     // guarded by mu: when all were counted
}

const (
	backlogEvery = time.Second
	// backlogLate is how long a run has to be due to count: in a healthy system
	// there is none, and the count costs nothing.
	backlogLate = 2 * time.Second
)

// get counts from where the earliest one was found the last time: before that lie
// entries of runs that were started, until they are vacuumed. Once a minute it
// counts all, for a run may have been put back.
func (b *backlogs) get(ctx context.Context, s *Store, shards []int16) (map[int64]int, error) {
	b.mu.Lock()
	fresh := time.Since(b.counted) < backlogEvery && slices.Equal(b.of, shards)
	n, from := b.n, b.from
	began := time.Now()
	whole := began.Sub(b.wholly) > regionWhole || !slices.Equal(b.of, shards)
	b.mu.Unlock()
	if fresh {
		return n, nil
	}
	if whole {
		from = 0
	}
	to := milli(s.estimate().Add(-backlogLate))
	first := to
	lo, hi := s.openRange()
	n = map[int64]int{}
	err := s.read(ctx, s.sql.backlog.by(named{
		{"shards", shards}, {"from", from}, {"to", to}, {"lo", lo}, {"hi", hi},
	}).into(func(rows pgx.Rows) error {
		var job, count, earliest int64
		err := rows.Scan(&job, &count, &earliest)
		n[job] = int(count)
		first = min(first, earliest)
		return err
	}))
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counted, b.of, b.n = began, slices.Clone(shards), n
	b.from = first - regionMargin.Milliseconds()
	if whole {
		b.wholly = began
	}
	return n, nil
}

// backlogQueries are the statements of this file.
type backlogQueries struct {
	backlog query
}

func (q *backlogQueries) define(sql template) {
	q.backlog = sql(`select l.job_id, count(*), min(l.scheduled_time) from {{schema}}.xxl_job_log l
	where l.state = {{state.planned}} and l.scheduled_time between {{arg.from}} and {{arg.to}} and l.shard = any({{arg.shards}}::smallint[])
		and l.id between {{arg.lo}} and {{arg.hi}} and l.trigger_type <> 'RETRY'
	group by l.job_id`)
}
