package console_test

// Stores in Postgres for tests. One that a test is done with is emptied, and its schema given to
// the next, with the connections that it was used on: making the tables takes longer than most
// tests do, and so does it for a session to get to know them.

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store/postgres"
)

// schemas are those that the tests have made.
type schemas struct {
	mu   sync.Mutex
	all  []*schema // guarded by mu
	free []*schema // guarded by mu
}

// schema is one of them, and the pool whose sessions know no other.
type schema struct {
	name string
	pool *pgxpool.Pool
}

// connsOfSchema is more than a test uses at once, beside what a store keeps for itself.
const connsOfSchema = 8

var made schemas

func TestMain(m *testing.M) {
	// What the tests keep is little, and they throw away much; but for those of large files.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(512 << 20)
	code := m.Run()
	made.drop()
	os.Exit(code)
}

// openPostgres opens an empty store in Postgres, which is closed with the test.
func openPostgres(t *testing.T) *postgres.Store {
	t.Helper()
	return openPostgresOn(t, nil)
}

// openPostgresOn opens it on another pool on the same database; nil is the schema's own.
func openPostgresOn(t *testing.T, pool *pgxpool.Pool) *postgres.Store {
	t.Helper()
	of := made.take(t)
	if pool == nil {
		pool = of.pool
	}
	st, err := postgres.New(t.Context(), pool, postgres.Config{Schema: of.name, AutoMigrate: true})
	must(t, err)
	t.Cleanup(func() {
		st.Close()
		must(t, made.giveBack(of))
	})
	// Jobs have ids that occur on no page by chance, as those in memory have.
	_, err = of.pool.Exec(t.Context(), "select setval($1::text::regclass, 70000001, false)", fmt.Sprintf("%q.xxl_job_info_id", of.name))
	must(t, err)
	return st
}

// take returns a schema that is empty, or is to be made.
func (s *schemas) take(t *testing.T) *schema {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		of := s.free[n-1]
		s.free = s.free[:n-1]
		return of
	}
	cfg := pgtest.SharedPool(t).Config()
	cfg.MaxConns = connsOfSchema
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	must(t, err)
	of := &schema{"t_" + rand.Text(), pool}
	s.all = append(s.all, of)
	return of
}

// giveBack empties a schema for the next who takes one.
func (s *schemas) giveBack(of *schema) error {
	if _, err := of.pool.Exec(context.Background(), fmt.Sprintf(sqlEmpty, of.name)); err != nil {
		return fmt.Errorf("empty schema %s: %w", of.name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, of)
	return nil
}

// sqlEmpty deletes all rows but what says which version the tables are of. A table that was never
// written has no bytes, and is passed by: most partitions are of days on which no test is.
const sqlEmpty = `do $$
declare t record;
begin
	for t in select c.oid::regclass name, c.relname from pg_class c where c.relnamespace = '"%[1]s"'::regnamespace and c.relkind = 'r' and pg_relation_size(c.oid) > 0 loop
		if t.relname = 'xxl_job_setting' then
			execute format('delete from %%s where name <> ''schema_version''', t.name);
		else
			execute format('delete from %%s', t.name);
		end if;
	end loop;
end $$`

// drop removes the schemas at the end, where the server, and they with it, does not end with this
// process anyway.
func (s *schemas) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.all {
		if os.Getenv("XXLJOB_TEST_DATABASE_URL") != "" {
			if _, err := of.pool.Exec(context.Background(), fmt.Sprintf("drop schema if exists %q cascade", of.name)); err != nil {
				fmt.Fprintln(os.Stderr, "drop schema", of.name, err)
			}
		}
		of.pool.Close()
	}
}
