package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/store/postgres"
)

// ours is this module.
const ours = "ours"

// handler is the name that all our jobs name.
const handler = "noop"

// oursContestant is a scheduler with the defaults of New.
type oursContestant struct {
	pool  *pgxpool.Pool
	store *postgres.Store
	sched xxljob.Scheduler
}

func enterOurs(ctx context.Context, t task, c *calls) (contestant, error) {
	pool, err := openPool(ctx, t.DSN, t.Conns)
	if err != nil {
		return nil, err
	}
	st, err := postgres.New(ctx, pool, postgres.Config{Logger: errorsOnly()})
	if err != nil {
		return nil, err
	}
	s, err := newOurs(st, c, 0)
	return &oursContestant{pool, st, s}, err
}

// newOurs makes a scheduler over a store, whose handler notes its calls. So many of them run at
// once; 0 for the default.
func newOurs(st xxljob.Store, c *calls, places int) (xxljob.Scheduler, error) {
	s, err := xxljob.New(st, xxljob.Config{App: "bench", Logger: errorsOnly(), Executor: executor.Config{Places: places}})
	if err != nil {
		return nil, err
	}
	return s, s.Handle(handler, func(_ context.Context, t *xxljob.Task) error {
		c.note(t.RunID, t.JobID, t.ScheduledAt)
		return nil
	})
}

func (o *oursContestant) start(ctx context.Context) error { return o.sched.Start(ctx) }

func (o *oursContestant) stop(ctx context.Context) error {
	defer o.pool.Close()
	defer o.store.Close()
	return o.sched.Stop(ctx)
}
