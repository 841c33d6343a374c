//go:build unix

package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
	"github.com/xxljob/xxljob/store/postgres"
)

// openPostgres insists: a node may be started while the database is away.
func openPostgres(ctx context.Context, o options) (backend, error) {
	cfg, err := pgxpool.ParseConfig(o.dsn)
	if err != nil {
		return backend{}, err
	}
	if o.pool > 0 {
		cfg.MaxConns = int32(o.pool)
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return backend{}, err
	}
	st, err := insist(ctx, func(ctx context.Context) (*postgres.Store, error) {
		return postgres.New(ctx, pool, postgres.Config{Schema: o.schema, AutoMigrate: true, LeaseMode: postgres.LeaseMode(o.lease), NoReserve: !o.reserve})
	})
	if err != nil {
		pool.Close()
		return backend{}, err
	}
	return backend{
		store: st,
		triggerTx: func(ctx context.Context, r control.Request) (control.Answer, error) {
			return triggerTx(ctx, pool, st, r)
		},
		hold: func(ctx context.Context, d time.Duration) error { return hold(ctx, pool, d) },
		rows: func(context.Context) ([]audit.Row, error) {
			return nil, errors.New("the supervisor reads the table itself")
		},
		close: func() { st.Close(); pool.Close() },
	}, nil
}

// hold keeps every connection of the pool for a while, as a host does whose queries hang.
func hold(ctx context.Context, pool *pgxpool.Pool, d time.Duration) error {
	end := time.Now().Add(d)
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
	}
	select {
	case <-time.After(time.Until(end)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// insist tries again for a minute, as a service's supervisor would.
func insist[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	deadline := time.Now().Add(time.Minute)
	for {
		attempt, cancel := context.WithTimeout(ctx, 10*time.Second)
		v, err := f(attempt)
		cancel()
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return v, err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// triggerTx triggers a job in a transaction of its own, as a host would, and
// commits it or rolls it back.
func triggerTx(ctx context.Context, pool *pgxpool.Pool, st *postgres.Store, r control.Request) (control.Answer, error) {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return control.Answer{Refused: true}, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	run, err := st.TriggerTx(ctx, tx, r.ID, xxljob.Trigger{Param: &r.Param})
	if err != nil {
		return control.Answer{Refused: true}, err // nothing is committed
	}
	if !r.Commit {
		return control.Answer{Refused: true}, nil
	}
	return control.Answer{Run: run}, tx.Commit(ctx)
}
