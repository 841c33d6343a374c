package pgtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	ownConns    = 8  // of a test's own pool, unless it says otherwise
	sharedConns = 48 // of the pool that all tests share
)

// Option changes what a test gets.
type Option func(*options)

type options struct {
	dsn       string
	conns     int32
	configure []func(*pgxpool.Config)
}

// At is for another database than the usual one: that of Database, of a cluster,
// or of a pooler.
func At(dsn string) Option { return func(o *options) { o.dsn = dsn } }

// MaxConns is for another number of connections than 8.
func MaxConns(n int32) Option { return func(o *options) { o.conns = n } }

// With changes the configuration of a pool before it is opened.
func With(configure func(*pgxpool.Config)) Option {
	return func(o *options) { o.configure = append(o.configure, configure) }
}

// apply returns the options, the usual database being that of the process.
func apply(t testing.TB, opts []Option) options {
	t.Helper()
	o := options{conns: ownConns}
	for _, opt := range opts {
		opt(&o)
	}
	if o.dsn == "" {
		o.dsn = usualServer(t).dsn
	}
	return o
}

// Pool returns a pool of the test's own, which is closed with it.
func Pool(t testing.TB, opts ...Option) *pgxpool.Pool {
	t.Helper()
	o := apply(t, opts)
	pool, err := open(o.dsn, o.conns, func(c *pgxpool.Config) {
		for _, configure := range o.configure {
			configure(c)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closePool(t, pool) })
	return pool
}

// closePool fails the test, instead of waiting for ever, when a connection is
// not given back.
func closePool(t testing.TB, pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() { pool.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Errorf("pgtest: %d connections of the pool are not given back", pool.Stat().AcquiredConns())
	}
}

// SharedPool returns the pool that all tests of the process may share. It is for
// suites of many small cases; nobody may close it, or change its sessions.
func SharedPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := usualServer(t).pool()
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// DSN returns the address of the database in which tests work.
func DSN(t testing.TB) string {
	t.Helper()
	return usualServer(t).dsn
}

// SuperDSN returns that address for a superuser; ok is false when the server is
// not ours.
func SuperDSN(t testing.TB) (dsn string, ok bool) {
	t.Helper()
	s := usualServer(t)
	if s.cluster == nil {
		return "", false
	}
	return s.cluster.DSN(role), true
}

func open(dsn string, conns int32, configure func(*pgxpool.Config)) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	config.MaxConns = conns
	if configure != nil {
		configure(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	return pool, nil
}
