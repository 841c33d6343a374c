package postgres_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// wantText checks that an error says all that the user has to know.
func wantText(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one that says %q", texts)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q:\n%v", text, err)
		}
	}
}

// newStore opens a store and closes it at once: what counts is the error.
func newStore(t *testing.T, pool *pgxpool.Pool, cfg postgres.Config) error {
	t.Helper()
	s, err := postgres.New(t.Context(), pool, cfg)
	if err == nil {
		s.Close()
	}
	return err
}

// run executes SQL that has to succeed.
func run(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// ask returns the one value of a query.
func ask[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// superPool is a superuser's on the usual database.
func superPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	dsn, ok := pgtest.SuperDSN(t)
	if !ok {
		pgtest.Skip(t, "roles are made on a cluster of our own only: unset XXLJOB_TEST_DATABASE_URL")
	}
	return pgtest.Pool(t, pgtest.At(dsn))
}

// as is an address for another role.
func as(t *testing.T, dsn, user string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(user)
	return u.String()
}

// change is an address with one part changed.
func change(t *testing.T, dsn string, f func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	f(u)
	return u.String()
}

// migrated makes a schema of the test's own, with all tables.
func migrated(t *testing.T, pool *pgxpool.Pool, opts ...pgtest.Option) string {
	t.Helper()
	schema := pgtest.Schema(t, opts...)
	if err := postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}); err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestAWrongAddressSaysWhatToCheck(t *testing.T) {
	inServer(t)
	t.Parallel()
	dsn := pgtest.DSN(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	for name, c := range map[string]struct {
		dsn  string
		want []string
	}{
		"port":     {change(t, dsn, func(u *url.URL) { u.Host = closed }), []string{closed, "refused"}},
		"host":     {change(t, dsn, func(u *url.URL) { u.Host = "nowhere.invalid:5432" }), []string{"nowhere.invalid:5432"}},
		"database": {change(t, dsn, func(u *url.URL) { u.Path = "/nothing" }), []string{`database "nothing"`, "does not exist"}},
		"role":     {as(t, dsn, "nobody_here"), []string{`as "nobody_here"`, "does not exist"}},
	} {
		t.Run(name, func(t *testing.T) {
			pool := pgtest.Pool(t, pgtest.At(c.dsn))
			want := append(c.want, "postgres: connect to database", "check the DSN")
			wantText(t, newStore(t, pool, postgres.Config{}), want...)
			wantText(t, postgres.Migrate(t.Context(), pool, postgres.Config{}), want...)
		})
	}
}

func TestBadConfigIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	wantText(t, newStore(t, nil, postgres.Config{}), "the pool is nil")
	wantText(t, postgres.Migrate(t.Context(), nil, postgres.Config{}), "the pool is nil")
	pool := pgtest.SharedPool(t)
	for _, c := range []struct {
		cfg  postgres.Config
		want []string
	}{
		{postgres.Config{LeaseMode: "lease"}, []string{`Config.LeaseMode "lease"`, `"lock"`, `"row"`}},
		{postgres.Config{Schema: strings.Repeat("s", 64)}, []string{"Config.Schema", "at most 63 bytes"}},
		{postgres.Config{Schema: "pg_x"}, []string{"begin with pg_"}},
		{postgres.Config{Schema: "pg_catalog"}, []string{`"pg_catalog"`, "begin with pg_"}},
		{postgres.Config{Schema: "information_schema"}, []string{`"information_schema"`, "the server's own"}},
		{postgres.Config{Schema: "pg_x", LeaseMode: "x"}, []string{"Config.LeaseMode", "Config.Schema"}},
	} {
		wantText(t, newStore(t, pool, c.cfg), c.want...)
		wantText(t, postgres.Migrate(t.Context(), pool, c.cfg), c.want...)
	}
	for _, name := range []string{"1a", "$a", "a-b", "a b", " a", "a ", "a\n", "\na", "a.b", `quo"te`, "quo'te", "a{b", "{{schema}}", "a\x00b", `a\b`, "a\xff", "-- /*", "%s", "a;b",
		"grüße", "作业", "ａ", "\u212a", "\u017f", strings.Repeat("ü", 32)} { // the signs of kelvin and of the long s fold to k and s
		for _, err := range []error{newStore(t, pool, postgres.Config{Schema: name}), newStore(t, pool, postgres.Config{Schema: name, AutoMigrate: true}),
			postgres.Migrate(t.Context(), pool, postgres.Config{Schema: name})} {
			wantText(t, err, "Config.Schema", "[A-Za-z_][A-Za-z0-9_$]*", "at most 63 bytes")
		}
	}
}

// TestASchemaIsNoSQL: a name with a line feed would end the comment that it comes to stand
// in, and what follows would be SQL of the name's. No comment of a migration has a
// placeholder, so that it does not depend on what names are.
func TestASchemaIsNoSQL(t *testing.T) {
	inServer(t)
	t.Parallel()
	owner := pgtest.Pool(t, pgtest.At(pgtest.Database(t, "")))
	name := "x\ncreate table public.injected (); --"
	for _, open := range []func() error{
		func() error { return newStore(t, owner, postgres.Config{Schema: name, AutoMigrate: true}) },
		func() error { return postgres.Migrate(t.Context(), owner, postgres.Config{Schema: name}) },
	} {
		wantText(t, open(), "Config.Schema")
	}
	if ask[bool](t, owner, "select to_regclass('public.injected') is not null") {
		t.Error("the name of the schema was run as SQL")
	}
	files, err := fs.Glob(os.DirFS("migrations"), "*.sql")
	must(t, err)
	if len(files) < 6 {
		t.Fatalf("migrations: %q", files)
	}
	comment := regexp.MustCompile(`(?m)--.*$|(?s)/\*.*?\*/`)
	for _, file := range files {
		text, err := os.ReadFile("migrations/" + file)
		must(t, err)
		for _, found := range comment.FindAllString(string(text), -1) {
			if strings.Contains(found, "{{") {
				t.Errorf("%s: a placeholder in a comment: %s", file, found)
			}
		}
	}
}

// TestAnySchemaNameWorks: the whole life of a job, for names that need quotes and for the
// longest.
func TestAnySchemaNameWorks(t *testing.T) {
	inServer(t)
	t.Parallel()
	pool := pgtest.Pool(t)
	suffix := strings.ToLower(rand.Text()[:8])
	for _, name := range []string{"Pg_" + suffix, "_$1$" + suffix, "user", strings.Repeat("s", 63-len(suffix)) + suffix, ""} {
		t.Run(name, func(t *testing.T) {
			schema := name
			if schema == "" {
				schema = "xxljob"
			}
			t.Cleanup(func() {
				pool.Exec(context.Background(), "drop schema if exists "+pgx.Identifier{schema}.Sanitize()+" cascade")
			})
			s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: name, AutoMigrate: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			life(t, s)
			if n := ask[int](t, pool, "select count(*)::int from "+pgx.Identifier{schema}.Sanitize()+".xxl_job_log"); n == 0 {
				t.Error("no runs are in the schema")
			}
		})
	}
}

func TestTheVersionOfTheSchemaIsChecked(t *testing.T) {
	inServer(t)
	t.Parallel()
	pool := pgtest.Pool(t)
	bare := pgtest.Schema(t)
	wantText(t, newStore(t, pool, postgres.Config{Schema: bare}), "no tables", bare, "postgres.Migrate", "AutoMigrate")
	wantText(t, newStore(t, pool, postgres.Config{Schema: "never_made"}), "no tables", "postgres.Migrate")
	schema := migrated(t, pool)
	set := func(sql string) { run(t, pool, fmt.Sprintf(sql, schema)) }
	cfg := postgres.Config{Schema: schema}
	set("update %s.xxl_job_setting set value = '99' where name = 'schema_version'")
	opened := func() []error {
		return []error{newStore(t, pool, cfg), postgres.Migrate(t.Context(), pool, cfg), newStore(t, pool, postgres.Config{Schema: schema, AutoMigrate: true})}
	}
	for _, err := range opened() { // the newest migration lets this version
		must(t, err)
	}
	for _, compatible := range []string{
		fmt.Sprintf("update %%s.xxl_job_setting set value = '%d' where name = 'schema_compatible'", postgres.SchemaVersion+1),
		"update %s.xxl_job_setting set value = 'x' where name = 'schema_compatible'", "delete from %s.xxl_job_setting where name = 'schema_compatible'",
	} {
		set(compatible)
		for _, err := range opened() {
			wantText(t, err, "has version 99", fmt.Sprint("up to ", postgres.SchemaVersion), "newer version of the library")
		}
	}
	set("update %s.xxl_job_setting set value = 'x' where name = 'schema_version'")
	wantText(t, newStore(t, pool, cfg), "schema_version", `"x"`)
	set("update %s.xxl_job_setting set value = '0' where name = 'schema_version'")
	wantText(t, newStore(t, pool, cfg), "no tables", "postgres.Migrate")
	set("delete from %s.xxl_job_setting where name = 'schema_version'")
	wantText(t, newStore(t, pool, cfg), "no tables", "postgres.Migrate")
}

func TestASecondLeaseModeIsRefused(t *testing.T) {
	inServer(t)
	t.Parallel()
	pool := pgtest.Pool(t)
	for first, second := range map[postgres.LeaseMode]postgres.LeaseMode{postgres.LeaseLock: postgres.LeaseRow, postgres.LeaseRow: postgres.LeaseLock} {
		schema := migrated(t, pool)
		s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: schema, LeaseMode: first})
		if err != nil {
			t.Fatal(err)
		}
		other, err := postgres.New(t.Context(), pool, postgres.Config{Schema: schema, LeaseMode: second})
		if err != nil {
			t.Fatalf("before a node has joined: %v", err)
		}
		life(t, s)
		want := []string{fmt.Sprintf("lease mode %q, not %q", first, second), "set Config.LeaseMode", "stop all nodes"}
		wantText(t, newStore(t, pool, postgres.Config{Schema: schema, LeaseMode: second}), want...)
		_, err = other.Join(t.Context(), nodeOf("late"))
		wantText(t, err, want...)
		s.Close()
		other.Close()
	}
}

// TestRights: each missing right is named at New or Migrate, with what to grant.
func TestRights(t *testing.T) {
	inServer(t)
	t.Parallel()
	super := superPool(t)
	role := "r_" + strings.ToLower(rand.Text()[:12])
	run(t, super, "create role "+role+" login")
	t.Cleanup(func() {
		super.Exec(context.Background(), "drop owned by "+role+" cascade")
		super.Exec(context.Background(), "drop role "+role)
	})
	owner, pool := pgtest.Pool(t), pgtest.Pool(t, pgtest.At(as(t, pgtest.DSN(t), role)))
	wantText(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: role}), "permission denied", "needs CREATE on the database", role)
	run(t, super, "create schema "+role+" authorization "+role)
	if err := postgres.Migrate(t.Context(), pool, postgres.Config{Schema: role}); err != nil {
		t.Errorf("in a schema that the role owns: %v", err)
	}
	schema := migrated(t, owner)
	must(t, postgres.Migrate(t.Context(), owner, postgres.AllDays(postgres.Config{Schema: schema})))
	var log bytes.Buffer
	cfg := postgres.AllDays(postgres.Config{Schema: schema, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, step := range []struct {
		grant string
		want  []string
	}{
		{"select 1", []string{"permission denied for schema", "GRANT USAGE ON SCHEMA", schema}},
		{"grant usage on schema %s to " + role, []string{"permission denied for table", "rights on its tables"}},
		{"grant select on all tables in schema %s to " + role, []string{"may not read and write", "xxl_job_log", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES"}},
		{"grant insert, update, delete on all tables in schema %s to " + role, []string{"sequence", "xxl_job_info_id", "xxl_job_log_id", "GRANT USAGE ON ALL SEQUENCES"}},
	} {
		run(t, owner, strings.ReplaceAll(step.grant, "%s", schema))
		wantText(t, newStore(t, pool, cfg), step.want...)
	}
	run(t, owner, "grant usage on all sequences in schema "+schema+" to "+role)
	s, err := postgres.New(t.Context(), pool, cfg)
	if err != nil {
		t.Fatalf("with all rights of a run-time role: %v", err)
	}
	life(t, s)
	s.Close()
	ahead := func(days int) string {
		return fmt.Sprintf("drop table %s.xxl_job_log_%s", schema, time.Now().UTC().AddDate(0, 0, days).Format("20060102"))
	}
	run(t, owner, ahead(14))
	if err := newStore(t, pool, cfg); err != nil || !strings.Contains(log.String(), "postgres.Migrate") {
		t.Errorf("partitions for days are there: %v, log %s", err, &log)
	}
	run(t, owner, ahead(1))
	wantText(t, newStore(t, pool, cfg), "partitions", "postgres.Migrate", "permission denied")
}

// TestServers: a password, a standby, a server that does not flush, and connections that lead
// elsewhere than New was.
func TestServers(t *testing.T) {
	inServer(t)
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{NoFsync: true})
	standby := pgtest.StartStandby(t, primary, pgtest.Options{NoFsync: true})
	pool := pgtest.Pool(t, pgtest.At(primary.DSN("postgres")))
	t.Run("WithoutFsyncItWarns", func(t *testing.T) {
		var log bytes.Buffer
		s, err := postgres.New(t.Context(), pool, postgres.Config{AutoMigrate: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if !strings.Contains(log.String(), "fsync = off") {
			t.Errorf("log: %s", &log)
		}
		life(t, s)
	})
	t.Run("AStandbyIsRefused", func(t *testing.T) {
		pool := pgtest.Pool(t, pgtest.At(standby.DSN("postgres")))
		for _, err := range []error{newStore(t, pool, postgres.Config{}), postgres.Migrate(t.Context(), pool, postgres.Config{})} {
			wantText(t, err, "is a standby", "target_session_attrs=read-write")
		}
	})
	t.Run("AWrongPasswordIsNotTold", func(t *testing.T) {
		file := filepath.Join(primary.Dir(), "data", "pg_hba.conf")
		rules, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append([]byte("host all careful 127.0.0.1/32 scram-sha-256\n"), rules...), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, pool, "create role careful login password 'right'")
		run(t, pool, "select pg_reload_conf()")
		with := func(password string) *pgxpool.Pool {
			return pgtest.Pool(t, pgtest.At(change(t, primary.DSN("postgres"), func(u *url.URL) { u.User = url.UserPassword("careful", password) })))
		}
		wrong := with("geheim")
		await.Until(t, "the rule for passwords holds", func() bool { return wrong.Ping(t.Context()) != nil })
		err = newStore(t, wrong, postgres.Config{})
		wantText(t, err, `as "careful"`, "password authentication failed", "check the DSN")
		if err != nil && strings.Contains(err.Error(), "geheim") {
			t.Errorf("the password is in the error: %v", err)
		}
		wantText(t, newStore(t, with("right"), postgres.Config{}), "GRANT USAGE ON SCHEMA")
	})
	pool.Close() // what follows ends all sessions there are
	t.Run("ConnectionsToAStandby", func(t *testing.T) { connectionsToAStandby(t, primary, standby) })
	t.Run("ASchedulerBesideAStandby", func(t *testing.T) { aSchedulerBesideAStandby(t, primary, standby) })
	t.Run("ConnectionsToAnotherDatabase", func(t *testing.T) { connectionsToAnotherDatabase(t, primary) })
	t.Run("ConnectionsToAFormerPrimary", func(t *testing.T) { connectionsToAFormerPrimary(t, primary, standby) })
}

// TestNilsAreErrors: with words, and with nothing sent.
func TestNilsAreErrors(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, "a", 1)
	job := a.job()
	x := begin(t, pgx.ReadCommitted)
	var none context.Context
	var noTx *pgxpool.Tx
	for name, c := range map[string]struct {
		call func() error
		want string
	}{
		"TriggerTx, tx":                 {func() error { _, err := s.TriggerTx(t.Context(), nil, job.ID, store.Trigger{}); return err }, "the transaction is nil"},
		"TriggerTx, nil within":         {func() error { _, err := s.TriggerTx(t.Context(), noTx, job.ID, store.Trigger{}); return err }, "the transaction is nil"},
		"TriggerSQLTx, tx":              {func() error { _, err := s.TriggerSQLTx(t.Context(), nil, job.ID, store.Trigger{}); return err }, "the transaction is nil"},
		"TriggerTx, ctx":                {func() error { _, err := s.TriggerTx(none, x, job.ID, store.Trigger{}); return err }, "the context is nil"},
		"Wake":                          {func() error { return s.Wake(none, job.ID) }, "the context is nil"},
		"New":                           {func() error { _, err := postgres.New(none, pgtest.SharedPool(t), postgres.Config{}); return err }, "the context is nil"},
		"Migrate":                       {func() error { return postgres.Migrate(none, pgtest.SharedPool(t), postgres.Config{}) }, "the context is nil"},
		"a read":                        {func() error { _, err := s.Job(none, job.ID); return err }, "the context is nil"},
		"a list":                        {func() error { _, err := s.Runs(none, store.RunFilter{}); return err }, "the context is nil"},
		"a transaction of several":      {func() error { _, err := s.AddRun(none, job.ID, store.Trigger{}); return err }, "the context is nil"},
		"a transaction of one":          {func() error { return s.EnsureGroup(none, "app") }, "the context is nil"},
		"a count that is known":         {func() error { return s.SetShards(none, 1) }, "the context is nil"},
		"a trigger that is bad as well": {func() error { _, err := s.TriggerTx(none, nil, job.ID, store.Trigger{Key: "\x00"}); return err }, "the context is nil"},
	} {
		t.Run(name, func(t *testing.T) { wantText(t, c.call(), c.want) })
	}
	_, err := s.TriggerTx(t.Context(), x, job.ID, store.Trigger{}) // it can go on
	must(t, err)
	must(t, x.Commit(t.Context()))
}

// TestNilContexts: every method that takes a ctx says what is wrong with a nil one, with
// nothing else to do as well.
func TestNilContexts(t *testing.T) {
	t.Parallel()
	for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
		store := reflect.ValueOf(open(t, postgres.Config{LeaseMode: mode}))
		for i := range store.NumMethod() {
			m := store.Method(i)
			if of := m.Type(); of.NumIn() == 0 || of.In(0) != reflect.TypeFor[context.Context]() || of.NumOut() == 0 || of.Out(of.NumOut()-1) != reflect.TypeFor[error]() {
				continue
			}
			t.Run(string(mode)+", "+store.Type().Method(i).Name, func(t *testing.T) {
				args := make([]reflect.Value, m.Type().NumIn())
				for i := range args {
					args[i] = reflect.Zero(m.Type().In(i))
				}
				call := m.Call
				if m.Type().IsVariadic() {
					call = m.CallSlice
				}
				defer func() {
					if v := recover(); v != nil {
						t.Errorf("panic: %v", v)
					}
				}()
				out := call(args)
				if err, _ := out[len(out)-1].Interface().(error); err == nil || !strings.Contains(err.Error(), "the context is nil") {
					t.Errorf("%v", err)
				}
			})
		}
	}
}
