package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/measure"
	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// serverOptions make a server with memory and room for WAL as one of a database has them.
// Commits wait for the disk, as Postgres has it by itself.
func serverOptions() pgtest.Options {
	return pgtest.Options{Settings: map[string]string{"shared_buffers": "512MB", "max_wal_size": "4GB"}}
}

// server is the Postgres server that all rounds are on.
type server struct {
	cluster *pgtest.Cluster
	pool    *pgxpool.Pool // on its database postgres, for the measurement's own questions
	made    atomic.Int64  // databases
}

func newServer(ctx context.Context, c *pgtest.Cluster) (*server, error) {
	pool, err := pgxpool.New(ctx, c.DSN("postgres"))
	if err != nil {
		return nil, err
	}
	return &server{cluster: c, pool: pool}, nil
}

// database makes one for a round, which ends with drop. It is dropped so that the vacuum of one
// round is not at work during the next.
func (s *server) database(ctx context.Context) (dsn string, drop func() error, err error) {
	name := fmt.Sprintf("round_%d", s.made.Add(1))
	if dsn, err = s.cluster.CreateDatabase(ctx, name, "", ""); err != nil {
		return "", nil, err
	}
	return dsn, func() error {
		dropping, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_, err := s.pool.Exec(dropping, "drop database "+name+" with (force)")
		return err
	}, nil
}

// checkpoint writes out what the preparation has left behind, which would otherwise be written
// while something is measured.
func (s *server) checkpoint(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, "checkpoint")
	return err
}

func (s *server) ask(ctx context.Context, sql string) (text string, err error) {
	err = s.pool.QueryRow(ctx, sql).Scan(&text)
	return text, err
}

// meter measures the server and the processes of a team.
func (s *server) meter(t team) measure.Meter {
	return measure.Meter{Postmaster: s.cluster.PID(), Query: s.ask, Children: t.pids()}
}

// openPool opens a pool of connections to the database of a round.
func openPool(ctx context.Context, dsn string, conns int) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if conns > 0 {
		cfg.MaxConns = int32(conns)
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}
