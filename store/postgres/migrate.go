package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The migrations, one file each, numbered from 1. A file that has been released is
// never changed.
//
//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the number of the newest migration.
const schemaVersion = 1

// Migrate brings the tables of cfg.Schema up to date and makes partitions for the
// next days. It needs a role that may create schemas or owns this one. Many nodes
// may call it at once: one does the work, the others wait. A schema that a newer
// version of this package has made is an error.
func Migrate(ctx context.Context, pool *pgxpool.Pool, cfg Config) error {
	if pool == nil {
		return errors.New("postgres: the pool is nil")
	}
	s, err := newStore(pool, cfg)
	if err != nil {
		return err
	}
	defer s.cancel()
	return s.migrate(ctx)
}

func (s *Store) migrate(ctx context.Context) error {
	if err := s.checkServer(ctx); err != nil {
		return err
	}
	version, err := s.version(ctx)
	if err == nil && version > schemaVersion {
		err = newerSchema(s.schema, version)
	}
	if err == nil && version < schemaVersion {
		err = s.applyMigrations(ctx)
	}
	if err != nil {
		return failed(explainSetup(err, s.schema), "migrate schema %s", s.schema)
	}
	return s.ensurePartitions(ctx)
}

// applyMigrations applies what is missing in one transaction. It is not one of
// the loop's: it may take its time.
func (s *Store) applyMigrations(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	x, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
		defer cancel()
		_ = x.Rollback(ctx) // after a commit there is nothing to roll back
	}()
	for _, sql := range []string{
		"set local lock_timeout = '10s'", "set local statement_timeout = 0", "set local idle_in_transaction_session_timeout = '60s'",
		fmt.Sprintf("select pg_catalog.pg_advisory_xact_lock(%d, -2)", s.lockClass),
	} {
		if _, err := x.Exec(ctx, sql); err != nil {
			return err
		}
	}
	version, err := versionOf(ctx, x, s)
	if err != nil {
		return err
	}
	if version > schemaVersion {
		return newerSchema(s.schema, version)
	}
	for n := version + 1; n <= schemaVersion; n++ {
		if err := s.apply(ctx, x, n); err != nil {
			return fmt.Errorf("migration %d: %w", n, err)
		}
	}
	return x.Commit(ctx)
}

func (s *Store) apply(ctx context.Context, x pgx.Tx, n int) error {
	text, err := migrationText(n)
	if err != nil {
		return err
	}
	if n == 1 {
		var there bool
		if err := x.QueryRow(ctx, "select exists (select from pg_catalog.pg_namespace where nspname = $1)", s.cfg.Schema).Scan(&there); err != nil {
			return err
		}
		if !there { // a role that may not create schemas may be given one
			if _, err := x.Exec(ctx, "create schema if not exists "+s.schema); err != nil {
				return err
			}
		}
	}
	if _, err := x.Conn().PgConn().Exec(ctx, strings.ReplaceAll(text, "{{schema}}", s.schema)).ReadAll(); err != nil {
		return err
	}
	_, err = x.Exec(ctx, fmt.Sprintf(`insert into %s.xxl_job_setting (name, value) values ('schema_version', $1)
	on conflict (name) do update set value = excluded.value`, s.schema), strconv.Itoa(n))
	return err
}

// migrationText reads the one file with the number.
func migrationText(n int) (string, error) {
	names, err := fs.Glob(migrations, fmt.Sprintf("migrations/%04d_*.sql", n))
	if err != nil || len(names) != 1 {
		return "", fmt.Errorf("there are %d files: %w", len(names), errors.Join(err, fs.ErrNotExist))
	}
	text, err := fs.ReadFile(migrations, names[0])
	return string(text), err
}

// querier is a pool, a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// version returns the number of the newest migration that was applied, 0 for none.
func (s *Store) version(ctx context.Context) (int, error) { return versionOf(ctx, s.pool, s) }

func versionOf(ctx context.Context, q querier, s *Store) (int, error) {
	var there bool
	err := q.QueryRow(ctx, "select pg_catalog.to_regclass($1) is not null", s.schema+".xxl_job_setting").Scan(&there)
	if err != nil || !there {
		return 0, err
	}
	var text string
	err = q.QueryRow(ctx, fmt.Sprintf("select value from %s.xxl_job_setting where name = 'schema_version'", s.schema)).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

func newerSchema(schema string, version int) error {
	return fmt.Errorf("schema %s has version %d, this program knows versions up to %d: use a newer version of the library", schema, version, schemaVersion)
}

// housekeep makes partitions ahead of time and keeps the range of unended runs
// small, until ctx ends.
func (s *Store) housekeep(ctx context.Context) {
	floor, parts := time.NewTicker(floorEvery), time.NewTicker(time.Hour)
	defer floor.Stop()
	defer parts.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-floor.C:
			_ = s.bounded(ctx, s.raiseFloor) // the former floor is as good, but lower
		case <-parts.C:
			if err := s.bounded(ctx, s.ensurePartitions); err != nil && ctx.Err() == nil {
				s.log.Error("xxljob: partitions ahead of time", "err", err)
			}
		}
	}
}

func (s *Store) bounded(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return f(ctx)
}

// explainSetup says what to do about errors that a wrong setup makes.
func explainSetup(err error, schema string) error {
	switch codeOf(err) {
	case "42501":
		return fmt.Errorf("%w; the role needs CREATE on the database, or an existing schema %s that it owns", err, schema)
	case "25006":
		return fmt.Errorf("%w; connect to the primary (target_session_attrs=read-write)", err)
	}
	return err
}
