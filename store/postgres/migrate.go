package postgres

// Migrations, and the housekeeping that goes on beside the store's calls.

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// The migrations, one file each, numbered from 1. A file that has been released is
// never changed. From 23 on each begins with a line "-- schema_compatible: N": N is the
// lowest version of this package that may run on beside the schema as it is then. What
// takes something away, or asks more of rows, therefore comes a release later than what
// does without it.
//
//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the number of the newest migration.
const schemaVersion = 35

// SchemaVersion is the number of the newest migration that this program knows, for people. The schema has it,
// or a later one that this program may use.
func (*Store) SchemaVersion() int { return schemaVersion }

// Migrate brings the tables of cfg.Schema up to date and makes partitions for the
// next days. It needs a role that may create schemas or owns this one. Many nodes
// may call it at once: one does the work, the others wait, for seventeen minutes at
// most or until ctx ends. For a table that is in use it tries ten seconds. A schema
// that a newer version of this package has made is left as it is where that says that
// this version may run on it, and an error elsewhere.
func Migrate(ctx context.Context, pool *pgxpool.Pool, cfg Config) error {
	switch {
	case ctx == nil:
		return errNoContext
	case pool == nil:
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
	if err == nil {
		err = s.mayUse(ctx, s.read, version)
	}
	if err == nil && version < schemaVersion {
		err = s.applyMigrations(ctx)
	}
	if err != nil {
		return failed(explainSetup(err, s.schema), "migrate schema %s", s.schema)
	}
	return s.ensurePartitions(ctx)
}

// applyMigrations waits for each lock on a table for a moment only, as definitions of
// partitions do, for everybody waits behind it; and tries again, for ten seconds in all. For
// another process that migrates it waits longer, ten seconds in each try: that one may be
// building an index. For a session that may not migrate it waits those ten seconds only.
func (s *Store) applyMigrations(ctx context.Context) error {
	for i := 1; ; i++ {
		if err := s.tryMigrations(ctx); !lockedOut(err) || errors.Is(err, errSquatted) || i == ddlTries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(ddlPatience):
		}
	}
}

// tryMigrations applies what is missing in one transaction. It is not one of the loop's:
// it may take its time, once it has its locks.
func (s *Store) tryMigrations(ctx context.Context) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.giveBack(conn)
	x := &tx{conn: conn.Conn(), name: "migrate", head: append([]string{
		"begin isolation level read committed read write", "set local search_path = " + ourPath, fmt.Sprintf("set local lock_timeout = %d", s.migrationPatience.Milliseconds()),
		"set local statement_timeout = 0", "set local idle_in_transaction_session_timeout = '60s'", ownTablespace,
	}, s.oddSettings...)}
	defer x.rollback(ctx) // after a commit there is nothing to roll back
	lock := statement{sql: fmt.Sprintf("select pg_catalog.pg_advisory_xact_lock(%d, %d)", s.lockClass, migrationLock)}
	head, _ := x.takeHead()
	if err := send(ctx, x.conn, head, []statement{lock}); err != nil {
		x.rollback(ctx)
		return s.whoMigrates(ctx, x.conn, err)
	}
	version, err := s.versionBy(ctx, x.do)
	if err != nil {
		return err
	}
	if err := s.mayUse(ctx, x.do, version); err != nil {
		return err
	}
	if err := x.do(ctx, statement{sql: fmt.Sprintf("set local lock_timeout = %d", ddlPatience.Milliseconds())}); err != nil {
		return err
	}
	for n := version + 1; n <= schemaVersion; n++ {
		if err := s.apply(ctx, x, n); err != nil {
			return fmt.Errorf("migration %d: %w", n, err)
		}
	}
	return x.commit(ctx)
}

// ownTablespace makes no difference to where tables come to be: a default_tablespace that is the
// database's own keeps the server from making tables with partitions.
const ownTablespace = `select pg_catalog.set_config('default_tablespace', '', true) from pg_catalog.pg_database d join pg_catalog.pg_tablespace t on t.oid = d.dattablespace
	where d.datname = pg_catalog.current_database() and t.spcname::pg_catalog.text = pg_catalog.current_setting('default_tablespace')`

func (s *Store) apply(ctx context.Context, x *tx, n int) error {
	text, err := migrationText(n)
	if err != nil {
		return err
	}
	if n == 1 {
		var there bool
		named := "select exists (select from pg_catalog.pg_namespace where nspname = $1::pg_catalog.text)"
		if err := x.do(ctx, statement{sql: named, args: []any{s.cfg.Schema}, read: scanInto(&there)}); err != nil {
			return err
		}
		if !there { // a role that may not create schemas may be given one
			if err := x.do(ctx, statement{sql: "create schema if not exists " + s.schema}); err != nil {
				return err
			}
		}
	}
	if _, err := x.conn.PgConn().Exec(ctx, strings.ReplaceAll(text, "{{schema}}", s.schema)).ReadAll(); err != nil {
		return err
	}
	lowest, err := compatibleWith(n, text)
	if err != nil {
		return err
	}
	return x.do(ctx, statement{sql: fmt.Sprintf(`insert into %s.xxl_job_setting (name, value) values ($1, $2), ($3, $4)
	on conflict (name) do update set value = excluded.value`, s.schema),
		args: []any{versionSetting, strconv.Itoa(n), compatibleSetting, strconv.Itoa(lowest)}})
}

// compatibleWith is the lowest version that may run on the schema which a migration makes, by
// its first line. Those up to 22 have no such line: no other version was to start there.
func compatibleWith(n int, text string) (int, error) {
	if n <= 22 {
		return n, nil
	}
	line, _, _ := strings.Cut(text, "\n")
	number, ok := strings.CutPrefix(line, "-- "+compatibleSetting+": ")
	lowest, err := strconv.Atoi(number)
	if !ok || err != nil || lowest < 22 || lowest > n {
		return 0, fmt.Errorf("its first line is %q, want -- %s: and a number from 22 to %d", line, compatibleSetting, n)
	}
	return lowest, nil
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

// version returns the number of the newest migration that was applied, 0 for none.
func (s *Store) version(ctx context.Context) (int, error) { return s.versionBy(ctx, s.read) }

// versionBy asks by the given doer, which may be within a transaction.
func (s *Store) versionBy(ctx context.Context, do doer) (int, error) {
	// The catalogue is read as any table is. A conversion to regclass goes by a
	// cache, which does not see what was committed while we waited for a lock.
	there := false
	err := do(ctx, statement{sql: `select exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
	where n.nspname = $1::pg_catalog.text and c.relname = 'xxl_job_setting')`, args: []any{s.cfg.Schema}, read: scanInto(&there)})
	if err != nil || !there {
		return 0, err
	}
	text := ""
	if err := do(ctx, s.sql.setting.with(versionSetting).into(scanInto(&text))); err != nil || text == "" {
		return 0, err
	}
	version, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("the row %q of %s.xxl_job_setting says %q, which is no number", versionSetting, s.schema, text)
	}
	return version, nil
}

// migrationLock is the second half of the key of the advisory lock that migrations take:
// the first of them has no table yet that it could lock.
const migrationLock = -2

// Where the number of the newest migration is stored, and the lowest version that may use
// the schema as that one left it.
const (
	versionSetting    = "schema_version"
	compatibleSetting = "schema_compatible"
)

// mayUse is an error where the schema is of a newer version than this one, and does not say
// that this one may use it.
func (s *Store) mayUse(ctx context.Context, do doer, version int) error {
	if version <= schemaVersion {
		return nil
	}
	text := ""
	if err := do(ctx, s.sql.setting.with(compatibleSetting).into(scanInto(&text))); err != nil {
		return err
	}
	if lowest, err := strconv.Atoi(text); err == nil && lowest <= schemaVersion {
		return nil
	} else if err == nil {
		return fmt.Errorf("schema %s has version %d, which may be used from version %d on, this program knows versions up to %d: use a newer version of the library", s.schema, version, lowest, schemaVersion)
	}
	return fmt.Errorf("schema %s has version %d, this program knows versions up to %d: use a newer version of the library", s.schema, version, schemaVersion)
}

// housekeep makes partitions ahead of time, keeps the range of unended runs small
// and drops old questions for logs, until ctx ends.
func (s *Store) housekeep(ctx context.Context) {
	floor, parts := time.NewTicker(floorEvery), time.NewTicker(time.Hour)
	defer floor.Stop()
	defer parts.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-floor.C:
			// The former floors are as good, but lower.
			_ = s.bounded(ctx, s.raiseFloor)
			_ = s.bounded(ctx, func(ctx context.Context) error { return s.floors.raise(ctx, s) })
			_ = s.bounded(ctx, s.dropAsks) // the next time comes soon
		case <-parts.C:
			if err := s.bounded(ctx, s.ensurePartitions); err != nil && ctx.Err() == nil {
				s.log.Error("xxljob: could not create partitions ahead of time", "error", err)
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
	case codeDenied:
		return fmt.Errorf("%w; the role needs CREATE on the database, or an existing schema %s that it owns, and CREATE on the tablespace that default_tablespace names", err, schema)
	case codeReadOnly:
		return fmt.Errorf("%w; connect to the primary (target_session_attrs=read-write)", err)
	}
	return err
}
