package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// server is what the database says of itself and of our session.
type server struct {
	version                     int
	recovering, readOnly, fsync bool
	commit, isolation, user     string
}

const sqlServer = `select current_setting('server_version_num')::int, pg_catalog.pg_is_in_recovery(),
	current_setting('default_transaction_read_only')::boolean, current_setting('fsync')::boolean,
	current_setting('synchronous_commit'), current_setting('default_transaction_isolation'), current_user::text`

// checkServer makes sure that this is a database the store can write to.
func (s *Store) checkServer(ctx context.Context) error {
	var v server
	err := s.pool.QueryRow(ctx, sqlServer).Scan(&v.version, &v.recovering, &v.readOnly, &v.fsync, &v.commit, &v.isolation, &v.user)
	if err != nil {
		cfg := s.pool.Config().ConnConfig
		return fmt.Errorf("postgres: connect to database %q on %s:%d as %q: %w; check the DSN, that the server runs and that the role may log in",
			cfg.Database, cfg.Host, cfg.Port, cfg.User, err)
	}
	switch {
	case v.version < 130000:
		return fmt.Errorf("postgres: the server has version %s; 13 or later is needed", versionText(v.version))
	case v.recovering:
		return errors.New("postgres: the server is a standby, which cannot be written to; connect to the primary (with several hosts in the DSN: target_session_attrs=read-write)")
	}
	s.warnOfSettings(&v)
	return nil
}

func versionText(n int) string { return strconv.Itoa(n/10000) + "." + strconv.Itoa(n%10000) }

// warnOfSettings tells of settings that the store works in spite of, or that it
// cannot do anything about. synchronous_commit is raised by each transaction where
// it is lower than on, and left where it is higher.
func (s *Store) warnOfSettings(v *server) {
	higher := v.commit == "on" || v.commit == "remote_apply"
	if !s.cfg.AllowAsyncCommit {
		s.raiseCommit = !higher || s.raiseCommit && v.commit != "remote_apply"
	}
	if v.commit == "remote_apply" {
		s.raiseCommit = false
	}
	switch {
	case !v.fsync:
		s.log.Warn("xxljob: the server runs with fsync = off: a crash of its machine can lose or repeat runs, or destroy the database")
	case !higher && s.cfg.AllowAsyncCommit:
		s.log.Warn("xxljob: AllowAsyncCommit: a crash of the database can repeat runs", "synchronous_commit", v.commit)
	}
	if v.readOnly {
		s.log.Warn("xxljob: default_transaction_read_only is on for this role; transactions of the store ask for read write")
	}
}

// check is what New does beyond checkServer: tables, rights, lease mode.
func (s *Store) check(ctx context.Context) error {
	if err := s.checkServer(ctx); err != nil {
		return err
	}
	version, err := s.version(ctx)
	switch {
	case err != nil:
		return failed(explainRights(err, s.schema), "look at schema %s", s.schema)
	case version == 0:
		return fmt.Errorf("postgres: there are no tables in schema %s: call postgres.Migrate, or set Config.AutoMigrate", s.schema)
	case version < schemaVersion:
		return fmt.Errorf("postgres: schema %s has version %d, this program needs %d: call postgres.Migrate, or set Config.AutoMigrate", s.schema, version, schemaVersion)
	case version > schemaVersion:
		return fmt.Errorf("postgres: %w", newerSchema(s.schema, version))
	}
	if err := s.checkRights(ctx); err != nil {
		return err
	}
	if err := s.checkMode(ctx); err != nil {
		return err
	}
	if s.locks() {
		if err := s.checkSession(ctx); err != nil {
			return err
		}
	}
	if _, err := s.Now(ctx); err != nil {
		return err
	}
	if err := s.partitionsThere(ctx); err != nil {
		return err
	}
	return s.raiseFloor(ctx)
}

// partitionsThere makes missing partitions where the role may, and is content
// where it may not but there are some ahead.
func (s *Store) partitionsThere(ctx context.Context) error {
	err := s.ensurePartitions(ctx)
	if codeOf(err) != "42501" {
		return err
	}
	tomorrow := partitionName(s.estimate().UTC().Add(day))
	there := false
	listed := s.read(ctx, statement{s.sql.partitions, nil, func(rows pgx.Rows) error {
		var name string
		scanned := rows.Scan(&name)
		there = there || name == tomorrow
		return scanned
	}})
	if listed != nil || !there {
		return errors.Join(err, listed)
	}
	s.log.Warn("xxljob: this role cannot make partitions; call postgres.Migrate with one that can, at least every week", "err", err)
	return nil
}

// checkRights asks for what a run-time role needs: to use the schema and its
// sequences and to read and write its tables.
func (s *Store) checkRights(ctx context.Context) error {
	var errs []error
	for _, table := range [...]string{"xxl_job_setting", "xxl_job_info", "xxl_job_next", "xxl_job_log", "xxl_job_trigger_key", "xxl_job_change",
		"xxl_job_lock", "xxl_job_node", "xxl_job_group", "xxl_job_registry"} {
		var ok bool
		err := s.pool.QueryRow(ctx, `select pg_catalog.has_schema_privilege($1, 'usage')
		and pg_catalog.has_table_privilege($2, 'select') and pg_catalog.has_table_privilege($2, 'insert')
		and pg_catalog.has_table_privilege($2, 'update') and pg_catalog.has_table_privilege($2, 'delete')`,
			s.cfg.Schema, s.schema+"."+table).Scan(&ok)
		if err != nil {
			return failed(explainRights(err, s.schema), "check the rights on table %s", table)
		}
		if !ok {
			errs = append(errs, fmt.Errorf("postgres: the role may not read and write %s.%s: GRANT USAGE ON SCHEMA %[1]s and GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s to it", s.schema, table))
		}
	}
	for _, seq := range []string{"xxl_job_info_id", "xxl_job_log_id"} {
		var ok bool
		err := s.pool.QueryRow(ctx, `select pg_catalog.has_sequence_privilege($1, 'usage')`, s.schema+"."+seq).Scan(&ok)
		if err != nil || !ok {
			errs = append(errs, fmt.Errorf("postgres: the role may not use sequence %s.%s: GRANT USAGE ON ALL SEQUENCES IN SCHEMA %[1]s to it: %v", s.schema, seq, err))
		}
	}
	return errors.Join(errs...)
}

func explainRights(err error, schema string) error {
	if codeOf(err) == "42501" {
		return fmt.Errorf("%w; GRANT USAGE ON SCHEMA %s, and rights on its tables, to the role", err, schema)
	}
	return err
}

// modeSetting is where the lease mode is stored.
const modeSetting = "lease_mode"

// checkMode compares the lease mode with the one that is stored, if one is.
func (s *Store) checkMode(ctx context.Context) error {
	var stored string
	if err := s.read(ctx, statement{s.sql.setting, []any{modeSetting}, scanInto(&stored)}); err != nil {
		return failed(err, "read the lease mode")
	}
	if stored != "" && stored != string(s.cfg.LeaseMode) {
		return fmt.Errorf("postgres: nodes on schema %s hold their shards in lease mode %q, not %q: set Config.LeaseMode to that; to change it, stop all nodes and delete the row %q of %[1]s.xxl_job_setting",
			s.schema, stored, s.cfg.LeaseMode, modeSetting)
	}
	return nil
}

// setMode stores the lease mode before the first node joins.
func (s *Store) setMode(ctx context.Context) error {
	if s.modeStored.Load() {
		return nil
	}
	err := s.one(ctx, bounds{name: "set_mode"}, statement{s.sql.setSetting, []any{modeSetting, string(s.cfg.LeaseMode)}, nil})
	if err == nil {
		err = s.checkMode(ctx)
	}
	if err == nil {
		s.modeStored.Store(true)
	}
	return err
}

// checkSession finds out whether connections keep their session. Behind a pooler
// that shares sessions out by transaction, what one connection asks next is
// answered by the backend that another has asked before.
func (s *Store) checkSession(ctx context.Context) error {
	a, err := s.lockConn(ctx)
	if err != nil {
		return failed(err, "make a connection for locks")
	}
	defer a.Close(context.WithoutCancel(ctx))
	pid, err := backendOf(ctx, a)
	if err != nil {
		return failed(err, "check the connection for locks")
	}
	if pid == a.PgConn().PID() {
		return nil // no pooler is in between
	}
	b, err := s.lockConn(ctx)
	if err != nil {
		return failed(err, "make a second connection for locks")
	}
	defer b.Close(context.WithoutCancel(ctx))
	for range 5 {
		other, err := backendOf(ctx, b)
		if err != nil {
			return failed(err, "check the connection for locks")
		}
		again, err := backendOf(ctx, a)
		if err != nil {
			return failed(err, "check the connection for locks")
		}
		if other == pid || again != pid {
			return fmt.Errorf("postgres: connections here do not keep their session (a pooler in transaction mode, such as PgBouncer?): set Config.LeaseMode to %q, or give direct connections by Config.LockConn", LeaseRow)
		}
	}
	return nil
}

func backendOf(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	err = conn.QueryRow(ctx, "select pg_catalog.pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid)
	return pid, err
}
