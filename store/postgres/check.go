package postgres

// What New finds out about the database before it is relied on.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// server is what the database says of itself and of our session.
type server struct {
	version                     int
	recovering, readOnly, fsync bool
	hasty                       bool // statement_timeout is below ours, or little more
	hurried                     bool // there is a transaction_timeout, which Postgres has from 17 on
	path                        string
	commit, isolation           string
	dates, encoding, nulls      string
	holds                       string // the encoding of the database
}

const sqlServer = `select pg_catalog.current_setting('server_version_num')::int, pg_catalog.pg_is_in_recovery(),
	pg_catalog.current_setting('default_transaction_read_only') = 'on', pg_catalog.current_setting('fsync') = 'on',
	pg_catalog.current_setting('synchronous_commit'), pg_catalog.current_setting('default_transaction_isolation'),
	pg_catalog.current_setting('DateStyle'), pg_catalog.current_setting('client_encoding'), pg_catalog.current_setting('array_nulls'),
	pg_catalog.current_setting('server_encoding'), coalesce(pg_catalog.current_setting('transaction_timeout', true), '0') <> '0'`

// checkServer makes sure that this is a database the store can write to.
func (s *Store) checkServer(ctx context.Context) error {
	v, err := s.askServer(ctx)
	if err != nil {
		cfg := s.pool.Config().ConnConfig
		return fmt.Errorf("postgres: connect to database %q on %s:%d as %q: %w; check the DSN, that the server runs and that the role may log in",
			cfg.Database, cfg.Host, cfg.Port, cfg.User, err)
	}
	if err := v.fit(); err != nil {
		return err
	}
	s.heed(&v)
	s.warnOfSettings(&v)
	return nil
}

// askServer asks in a read-only transaction of its own, which every server takes,
// so that the session's own timeout does not hit it.
func (s *Store) askServer(ctx context.Context) (v server, err error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return v, err
	}
	defer s.giveBack(conn)
	t, patience := &tx{conn: conn.Conn(), head: []string{"begin isolation level read committed read only"}}, ""
	head, _ := t.takeHead()
	err = send(ctx, t.conn, head, []statement{
		{sql: "show statement_timeout", read: scanInto(&patience)}, // nothing here takes time before it is ours
		{sql: "show search_path", read: scanInto(&v.path)},         // nor calls anything before that is
		{sql: "set local search_path = " + ourPath},
		{sql: fmt.Sprintf("set local statement_timeout = %d", statementPatience.Milliseconds())},
		{sql: "set local idle_in_transaction_session_timeout = '60s'"}}) // nobody tries it again when this process was slow
	if err != nil {
		t.rollback(ctx)
		return v, err
	}
	v.hasty = strings.HasSuffix(patience, "ms") || patience == "1s"
	err = send(ctx, t.conn, nil, []statement{{sql: sqlServer, read: scanInto(&v.version, &v.recovering, &v.readOnly, &v.fsync, &v.commit, &v.isolation, &v.dates, &v.encoding, &v.nulls, &v.holds, &v.hurried)},
		{sql: "commit"}})
	t.rollback(ctx)
	return v, err
}

// fit says what is wrong with a server that the store cannot work on.
func (v *server) fit() error {
	switch {
	case v.version < 130000:
		return fmt.Errorf("postgres: the server has version %s; 13 or later is needed", versionText(v.version))
	case v.recovering:
		return errors.New("postgres: the server is a standby, which cannot be written to; connect to the primary (with several hosts in the DSN: target_session_attrs=read-write)")
	case v.encoding != "UTF8" && v.encoding != "SQL_ASCII": // which is the server's bytes as they are
		return fmt.Errorf("postgres: client_encoding is %s, but Go's texts are UTF-8; add client_encoding=UTF8 to the DSN", v.encoding)
	case lacks(v.holds) && v.encoding != "UTF8":
		return fmt.Errorf("postgres: client_encoding is %s, and the server keeps %s; add client_encoding=UTF8 to the DSN, so that it converts Go's texts", v.encoding, v.holds)
	}
	return nil
}

// heed takes in settings of the host's sessions that a transaction of ours has to
// change for itself. synchronous_commit is raised where it is lower than on, and
// left where it is higher.
func (s *Store) heed(v *server) {
	s.settings = localSettings(!s.cfg.AllowAsyncCommit && v.commit != "remote_apply", s.cfg.patience)
	s.oddSettings, s.hasty, s.apartPath = nil, v.hasty, prefersOthers(v.path)
	if !strings.HasPrefix(v.dates, "ISO") { // times that come as text
		s.oddSettings = append(s.oddSettings, "set local datestyle = 'ISO'")
	}
	if v.nulls != "on" { // arrays that go as text
		s.oddSettings = append(s.oddSettings, "set local array_nulls = on")
	}
	if v.hurried {
		s.oddSettings = append(s.oddSettings, "set local transaction_timeout = 0")
	}
	s.guardReads = len(s.oddSettings) > 0 || v.hasty || s.apartPath || v.isolation != "read committed"
}

func versionText(n int) string { return strconv.Itoa(n/10000) + "." + strconv.Itoa(n%10000) }

// warnOfSettings tells of settings that the store works in spite of, or that it
// cannot do anything about.
func (s *Store) warnOfSettings(v *server) {
	if s.narrow = lacks(v.holds); s.narrow {
		s.log.Warn("xxljob: the database is not in UTF8: names, keys and parameters with a character that it lacks are refused, and in messages there is a question mark for each; one that has all is made with: create database … template template0 encoding 'UTF8'", "encoding", v.holds)
	}
	higher := v.commit == "on" || v.commit == "remote_apply"
	if !v.fsync {
		s.log.Warn("xxljob: the server runs with fsync = off: a crash of its machine can lose or repeat runs, or destroy the database")
	}
	if !higher && s.cfg.AllowAsyncCommit {
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
		if err := s.mayUse(ctx, s.read, version); err != nil {
			return fmt.Errorf("postgres: %w", err)
		}
		s.log.Info("xxljob: the schema is of a newer version of the library, which says that this one may use it", "schema", s.cfg.Schema, "version", version, "known", schemaVersion)
	}
	if err := s.checkRights(ctx); err != nil {
		return err
	}
	if err := s.checkMode(ctx); err != nil {
		return err
	}
	if !s.cfg.knownConns {
		if err := s.checkConns(ctx); err != nil {
			return err
		}
	}
	if _, err := s.Now(ctx); err != nil {
		return err
	}
	if err := s.partitionsThere(ctx); err != nil {
		return err
	}
	if err := s.raiseFloor(ctx); err != nil {
		return err
	}
	var here bearing
	if err := s.read(ctx, s.lookAt(&here)); err != nil {
		return failed(err, "ask where connections lead")
	}
	s.fitness.begin(&here)
	return nil
}

// partitionsThere makes missing partitions where the role may, and is content
// where it may not but there are some ahead.
func (s *Store) partitionsThere(ctx context.Context) error {
	err := s.ensurePartitions(ctx)
	if codeOf(err) != codeDenied {
		return err
	}
	tomorrow := partitionName(s.estimate().UTC().Add(day))
	there := false
	listed := s.read(ctx, s.sql.partitions.with().into(func(rows pgx.Rows) error {
		var name string
		scanned := rows.Scan(&name)
		there = there || name == tomorrow
		return scanned
	}))
	if listed != nil || !there {
		return errors.Join(err, listed)
	}
	s.log.Warn("xxljob: this role cannot create partitions; call postgres.Migrate with a role that can, at least once a week", "error", err)
	return nil
}

// checkRights asks for what a run-time role needs: to use the schema and its
// sequences and to read and write its tables.
func (s *Store) checkRights(ctx context.Context) error {
	var all []statement // in one round trip
	var errs []error
	ask := func(sql string, args []any, missing error) {
		i := len(errs)
		errs = append(errs, missing)
		all = append(all, statement{sql: sql, args: args, read: func(rows pgx.Rows) error {
			var ok bool
			err := rows.Scan(&ok)
			if errs[i] = missing; ok {
				errs[i] = nil
			}
			return err
		}})
	}
	for _, table := range [...]string{"xxl_job_setting", "xxl_job_info", "xxl_job_next", "xxl_job_log", "xxl_job_trigger_key", "xxl_job_change",
		"xxl_job_lock", "xxl_job_node", "xxl_job_group", "xxl_job_registry", "xxl_job_ahead"} {
		ask(`select pg_catalog.has_schema_privilege($1::pg_catalog.text, 'usage')
		and pg_catalog.has_table_privilege($2::pg_catalog.text, 'select') and pg_catalog.has_table_privilege($2::pg_catalog.text, 'insert')
		and pg_catalog.has_table_privilege($2::pg_catalog.text, 'update') and pg_catalog.has_table_privilege($2::pg_catalog.text, 'delete')`,
			[]any{s.cfg.Schema, s.schema + "." + table},
			fmt.Errorf("postgres: the role may not read and write %s.%s: GRANT USAGE ON SCHEMA %[1]s and GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s to it", s.schema, table))
	}
	for _, seq := range []string{"xxl_job_info_id", "xxl_job_log_id", "xxl_job_ahead_id"} {
		ask(`select pg_catalog.has_sequence_privilege($1::pg_catalog.text, 'usage')`, []any{s.schema + "." + seq},
			fmt.Errorf("postgres: the role may not use sequence %s.%s: GRANT USAGE ON ALL SEQUENCES IN SCHEMA %[1]s to it", s.schema, seq))
	}
	if err := s.read(ctx, all...); err != nil {
		return failed(explainRights(err, s.schema), "check the rights on the tables of schema %s", s.schema)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.checkRowSecurity(ctx)
}

// checkRowSecurity refuses a role that does not see all rows: what it did not see would be taken
// for what is not there.
func (s *Store) checkRowSecurity(ctx context.Context) error {
	var tables []string
	err := s.read(ctx, statement{sql: `select c.relname::pg_catalog.text from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
	where n.nspname = $1::pg_catalog.text and pg_catalog.starts_with(c.relname::pg_catalog.text, 'xxl_job_') and c.relrowsecurity and pg_catalog.row_security_active(c.oid)
	order by c.oid`, args: []any{s.cfg.Schema}, read: func(rows pgx.Rows) error {
		var name string
		err := rows.Scan(&name)
		tables = append(tables, name)
		return err
	}})
	if err != nil || len(tables) == 0 {
		return failed(err, "look for row-level security")
	}
	return fmt.Errorf("postgres: row-level security keeps rows of %d tables of schema %s from the role, the first is %[2]s.%[3]s, and a scheduler has to see all: take the role that owns the tables (without FORCE ROW LEVEL SECURITY), ALTER ROLE … BYPASSRLS, or ALTER TABLE … DISABLE ROW LEVEL SECURITY",
		len(tables), s.schema, tables[0])
}

func explainRights(err error, schema string) error {
	if codeOf(err) == codeDenied {
		return fmt.Errorf("%w; GRANT USAGE ON SCHEMA %s, and rights on its tables, to the role", err, schema)
	}
	return err
}

// modeSetting is where the lease mode is stored.
const modeSetting = "lease_mode"

// checkMode compares the lease mode with the one that is stored, if one is.
func (s *Store) checkMode(ctx context.Context) error {
	var stored string
	if err := s.read(ctx, s.sql.setting.with(modeSetting).into(scanInto(&stored))); err != nil {
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
	err := s.one(ctx, bounds{name: "set_mode"}, s.sql.setSetting.with(modeSetting, string(s.cfg.LeaseMode)))
	if err == nil {
		err = s.checkMode(ctx)
	}
	if err == nil {
		s.modeStored.Store(true)
	}
	return err
}

// checkConns finds out what is between the server and those who connect to it.
func (s *Store) checkConns(ctx context.Context) error {
	if s.locks() {
		direct, err := s.checkSession(ctx)
		if err != nil || direct && s.cfg.LockConn == nil { // those of the pool are made in the same way
			return err
		}
	}
	return s.checkPooler(ctx)
}

// checkSession finds out whether connections keep their session. Behind a pooler
// that shares sessions out by transaction, what one connection asks next is
// answered by the backend that another has asked before. direct says that no pooler is in between.
func (s *Store) checkSession(ctx context.Context) (direct bool, err error) {
	a, err := s.connectBeside(ctx) // without settings, which a pooler would pass on to others
	if err != nil {
		return false, failed(err, "make a connection for locks")
	}
	defer a.Close(context.WithoutCancel(ctx))
	pid, err := backendOf(ctx, a)
	if err != nil {
		return false, failed(err, "check the connection for locks")
	}
	if pid == a.PgConn().PID() {
		return true, nil
	}
	b, err := s.connectBeside(ctx)
	if err != nil {
		return false, failed(err, "make a second connection for locks")
	}
	defer b.Close(context.WithoutCancel(ctx))
	for range 5 {
		other, err := backendOf(ctx, b)
		if err != nil {
			return false, failed(err, "check the connection for locks")
		}
		again, err := backendOf(ctx, a)
		if err != nil {
			return false, failed(err, "check the connection for locks")
		}
		if other == pid || again != pid {
			return false, fmt.Errorf("postgres: connections here do not keep their session (a pooler in transaction mode, such as PgBouncer?): set Config.LeaseMode to %q, or give direct connections by Config.LockConn", LeaseRow)
		}
	}
	return false, nil
}

// checkPooler finds out whether prepared statements of the pool are there when
// they are used. Behind a pooler that does not know them, one that was prepared on
// a backend is missing as soon as another connection keeps that backend.
func (s *Store) checkPooler(ctx context.Context) error {
	if s.pool.Config().ConnConfig.DefaultQueryExecMode > pgx.QueryExecModeCacheStatement {
		return nil // nothing stays prepared under a name
	}
	a, err := s.poolConn(ctx, "")
	if err != nil {
		return failed(err, "check for a pooler")
	}
	defer a.Close(context.WithoutCancel(ctx))
	pid, err := backendOf(ctx, a)
	if err != nil {
		return failed(err, "check for a pooler")
	}
	if pid == a.PgConn().PID() {
		return nil // no pooler is in between
	}
	b, err := s.poolConn(ctx, "")
	if err != nil {
		return failed(err, "check for a pooler")
	}
	defer b.Close(context.WithoutCancel(ctx))
	return s.prepareApart(ctx, a, b)
}

// prepareApart prepares on one connection, has another take its backend, and uses
// what was prepared.
func (s *Store) prepareApart(ctx context.Context, a, b *pgx.Conn) error {
	// The name is new each time: a pooler keeps its backends, and they keep this.
	name := "xxljob_check_" + rand.Text()
	_, err := a.PgConn().Prepare(ctx, name, "select 1", nil)
	if err == nil {
		_, err = b.Exec(ctx, "begin", pgx.QueryExecModeExec)
	}
	if err == nil {
		err = a.PgConn().ExecPrepared(ctx, name, nil, nil, nil).Read().Err
	}
	if err != nil {
		return fmt.Errorf("postgres: connections here go through a pooler that does not keep prepared statements: add default_query_exec_mode=exec to the DSN, or set ConnConfig.DefaultQueryExecMode of the pool to pgx.QueryExecModeExec: %w", err)
	}
	return nil
}

// backendOf asks for the backend of a connection, and leaves nothing prepared there.
func backendOf(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	mode := pgx.QueryExecModeExec
	if speaksSimply(conn) {
		mode = pgx.QueryExecModeSimpleProtocol
	}
	err = conn.QueryRow(ctx, "select pg_catalog.pg_backend_pid()", mode).Scan(&pid)
	return pid, err
}

// settingQueries are the statements of this file.
type settingQueries struct {
	setting, setSetting query
}

func (q *settingQueries) define(sql template) {
	q.setting = sql(`select value from {{schema}}.xxl_job_setting where name = $1`)
	q.setSetting = sql(`insert into {{schema}}.xxl_job_setting (name, value) values ($1, $2) on conflict do nothing`)
}
