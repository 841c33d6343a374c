package postgres_test

// Databases as people have them: row-level security and tablespaces.

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestRowLevelSecurity: the owner of the tables works, and New refuses a role that policies keep
// rows from.
func TestRowLevelSecurity(t *testing.T) {
	inServer(t)
	t.Parallel()
	super, owner := superPool(t), pgtest.Pool(t)
	role := "r_" + strings.ToLower(rand.Text()[:12])
	run(t, super, "create role "+role+" login")
	t.Cleanup(func() {
		super.Exec(context.Background(), "drop owned by "+role+" cascade")
		super.Exec(context.Background(), "drop role "+role)
	})
	schema := migrated(t, owner)
	run(t, owner, fmt.Sprintf("grant usage on schema %s to %s; grant select, insert, update, delete on all tables in schema %[1]s to %[2]s; grant usage on all sequences in schema %[1]s to %[2]s", schema, role), pgx.QueryExecModeSimpleProtocol)
	pool := pgtest.Pool(t, pgtest.At(as(t, pgtest.DSN(t), role)))
	cfg := postgres.FewDays(postgres.Config{Schema: schema, Logger: slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil))})
	must(t, newStore(t, pool, cfg))
	run(t, owner, fmt.Sprintf("alter table %s.xxl_job_info enable row level security", schema))
	words := []string{"row-level security", "1 tables", schema + `".xxl_job_info`, "BYPASSRLS"}
	wantText(t, newStore(t, pool, cfg), words...)
	s, err := postgres.New(t.Context(), owner, cfg)
	must(t, err)
	life(t, s)
	s.Close()
	run(t, owner, fmt.Sprintf("alter table %s.xxl_job_info force row level security", schema))
	wantText(t, newStore(t, owner, cfg), words...)
	run(t, super, "alter role "+role+" bypassrls")
	must(t, newStore(t, pool, cfg))
}

// TestDefaultTablespace: tables and partitions are made where it says, be it the database's own or
// another one; one that is gone is as if none were named, and one without rights is an error in words.
func TestDefaultTablespace(t *testing.T) {
	inServer(t)
	t.Parallel()
	super := superPool(t)
	if ask[int](t, super, "select current_setting('server_version_num')::int") < 150_000 {
		t.Skip("tablespaces without a directory of their own are from Postgres 15 on")
	}
	name := "t_" + strings.ToLower(rand.Text()[:12])
	run(t, pgtest.Pool(t, pgtest.MaxConns(1), pgtest.At(superDSN(t)), with(map[string]string{"allow_in_place_tablespaces": "on"})), "create tablespace "+name+" location ''")
	drop := func() error {
		_, err := super.Exec(context.Background(), "drop tablespace if exists "+name)
		return err
	}
	t.Cleanup(func() { drop() })
	in := func(space string) *pgxpool.Pool {
		return pgtest.Pool(t, with(map[string]string{"default_tablespace": space}))
	}

	schema := pgtest.Schema(t)
	wantText(t, postgres.Migrate(t.Context(), in(name), postgres.Config{Schema: schema}), "permission denied for tablespace", "default_tablespace")
	run(t, super, "grant create on tablespace "+name+" to "+ask[string](t, pgtest.SharedPool(t), "select current_user::text"))
	for _, space := range []string{"pg_default", name} {
		schema := pgtest.Schema(t)
		pool := in(space)
		s, err := postgres.New(t.Context(), pool, postgres.FewDays(postgres.Config{Schema: schema, AutoMigrate: true}))
		must(t, err)
		life(t, s)
		s.Close()
		elsewhere := ask[int](t, pool, "select count(*)::int from pg_class where relnamespace = $1::regnamespace and relkind = 'r' and reltablespace <> 0", schema)
		if (elsewhere > 5) != (space == name) {
			t.Errorf("default_tablespace %s: %d tables are in another tablespace than the database", space, elsewhere)
		}
		run(t, pool, "drop schema "+schema+" cascade; create schema "+schema, pgx.QueryExecModeSimpleProtocol)
	}
	gone := in(name)
	must(t, gone.Ping(t.Context()))
	must(t, drop())
	must(t, postgres.Migrate(t.Context(), gone, postgres.FewDays(postgres.Config{Schema: schema})))
}

func superDSN(t *testing.T) string {
	t.Helper()
	dsn, _ := pgtest.SuperDSN(t)
	return dsn
}
