package postgres_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/await"
	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestAFencedStatementKeepsItsShard: while a statement that has compared a shard's epoch is
// under way, nobody gets the row of the shard as a take-over locks it; one of another shard is
// there for the taking. So what it writes is there when the next owner looks.
func TestAFencedStatementKeepsItsShard(t *testing.T) {
	inServer(t)
	t.Parallel()
	s := open(t, postgres.Patient(postgres.Config{}))
	a := own(t, s, inc(t, "a"), 2)
	r := a.started(a.job())
	hold := begin(t, pgx.ReadCommitted)
	_, err := hold.Exec(t.Context(), fmt.Sprintf("select from %q.xxl_job_log where id = $1 for update", postgres.SchemaOf(s)), r.ID)
	must(t, err)
	settled := make(chan error, 1)
	go func() {
		_, err := s.Settle(a.ctx, []store.Verdict{{RunID: r.ID, Shard: r.Shard, Epoch: a.epoch(r.Shard), Owner: a.inc, Token: r.Token, Taken: true, To: store.StatePlanned}})
		settled <- err
	}()
	await.Until(t, "the verdict waits for the run that is held", func() bool { return blocked(t, s) })
	free := ask[[]int16](t, pgtest.SharedPool(t), fmt.Sprintf("select coalesce(array_agg(shard), '{}') from (select shard from %q.xxl_job_lock for update skip locked) k", postgres.SchemaOf(s)))
	if len(free) != 1 || int(free[0]) == r.Shard {
		t.Errorf("beside a verdict about a run of shard %d, shards %v can change hands", r.Shard, free)
	}
	must(t, hold.Rollback(t.Context()))
	must(t, <-settled)
}
