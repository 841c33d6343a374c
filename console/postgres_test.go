package console_test

// Stores in Postgres for tests. One that a test is done with is emptied, and its schema given to
// the next: making the tables takes longer than most tests do.

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store/postgres"
)

// schemas are those that the tests have made.
type schemas struct {
	mu   sync.Mutex
	pool *pgxpool.Pool // guarded by mu: where they are; nil before the first
	all  []string      // guarded by mu
	free []string      // guarded by mu
}

var made schemas

func TestMain(m *testing.M) {
	code := m.Run()
	made.drop()
	os.Exit(code)
}

// openPostgres opens an empty store in Postgres, which is closed with the test.
func openPostgres(t *testing.T) *postgres.Store {
	t.Helper()
	return openPostgresOn(t, pgtest.SharedPool(t))
}

// openPostgresOn opens it on another pool on the same database.
func openPostgresOn(t *testing.T, pool *pgxpool.Pool) *postgres.Store {
	t.Helper()
	where := pgtest.SharedPool(t)
	name := made.take(where)
	st, err := postgres.New(t.Context(), pool, postgres.Config{Schema: name, AutoMigrate: true})
	must(t, err)
	// Jobs have ids that occur on no page by chance, as those in memory have.
	_, err = pool.Exec(t.Context(), fmt.Sprintf("alter sequence %q.xxl_job_info_id restart with 70000001", name))
	must(t, err)
	t.Cleanup(func() {
		st.Close()
		must(t, made.giveBack(where, name))
	})
	return st
}

// take returns the name of a schema that is empty, or is to be made.
func (s *schemas) take(pool *pgxpool.Pool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pool = pool
	if n := len(s.free); n > 0 {
		name := s.free[n-1]
		s.free = s.free[:n-1]
		return name
	}
	name := "t_" + rand.Text()
	s.all = append(s.all, name)
	return name
}

// giveBack empties a schema for the next who takes one.
func (s *schemas) giveBack(pool *pgxpool.Pool, name string) error {
	if _, err := pool.Exec(context.Background(), fmt.Sprintf(sqlEmpty, name)); err != nil {
		return fmt.Errorf("empty schema %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, name)
	return nil
}

// sqlEmpty deletes all rows but what says which version the tables are of.
const sqlEmpty = `do $$
declare t record;
begin
	for t in select c.oid::regclass name, c.relname from pg_class c where c.relnamespace = '"%[1]s"'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition loop
		if t.relname = 'xxl_job_setting' then
			execute format('delete from %%s where name <> ''schema_version''', t.name);
		else
			execute format('delete from %%s', t.name);
		end if;
	end loop;
end $$`

// drop removes the schemas at the end.
func (s *schemas) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.all {
		if _, err := s.pool.Exec(context.Background(), fmt.Sprintf("drop schema if exists %q cascade", name)); err != nil {
			fmt.Fprintln(os.Stderr, "drop schema", name, err)
		}
	}
}
