package postgres_test

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

// schemas are those that the package's tests have made. One that a test is done
// with is emptied and given to the next: making the tables takes longer than most
// cases do.
type schemas struct {
	mu   sync.Mutex
	pool *pgxpool.Pool // guarded by mu: where they are; nil stands for the shared pool
	all  []string      // guarded by mu
	free []string      // guarded by mu
}

var made schemas

func TestMain(m *testing.M) {
	if postgres.ChildOfBench() {
		return
	}
	code := m.Run()
	made.drop()
	os.Exit(code)
}

// open makes a store in a schema of its own, on the pool that the tests share.
func open(t testing.TB, cfg postgres.Config) *postgres.Store {
	t.Helper()
	return openOn(t, pgtest.SharedPool(t), cfg)
}

// openOn makes it on another pool on the same database.
func openOn(t testing.TB, pool *pgxpool.Pool, cfg postgres.Config) *postgres.Store {
	t.Helper()
	return made.open(t, pool, cfg)
}

// open makes a store on a pool on the database of the schemas.
func (s *schemas) open(t testing.TB, pool *pgxpool.Pool, cfg postgres.Config) *postgres.Store {
	t.Helper()
	cfg.Schema = s.take(t)
	store, err := postgres.New(t.Context(), pool, postgres.FewDays(cfg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// take returns an empty schema with all tables, for the time of the test.
func (s *schemas) take(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	if s.pool == nil {
		s.pool = pgtest.SharedPool(t)
	}
	pool, name := s.pool, ""
	if n := len(s.free); n > 0 {
		name, s.free = s.free[n-1], s.free[:n-1]
	}
	s.mu.Unlock()
	if name == "" {
		name = "t_" + rand.Text()
		if err := postgres.Migrate(t.Context(), pool, postgres.FewDays(postgres.Config{Schema: name})); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.all = append(s.all, name)
		s.mu.Unlock()
	}
	t.Cleanup(func() {
		if err := s.empty(name); err != nil {
			t.Errorf("empty schema %s: %v", name, err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, name)
	})
	return name
}

func (s *schemas) empty(name string) error {
	sql := ""
	for _, table := range []string{"xxl_job_info", "xxl_job_next", "xxl_job_log", "xxl_job_trigger_key", "xxl_job_change", "xxl_job_lock",
		"xxl_job_node", "xxl_job_group", "xxl_job_registry", "xxl_job_logglue", "xxl_job_log_report", "xxl_job_report", "xxl_job_alarm", "xxl_job_ask",
		"xxl_job_list_head", "xxl_job_list", "xxl_job_named", "xxl_job_ahead",
		"xxl_job_link", "xxl_job_owed", "xxl_job_part", "xxl_job_window", "xxl_job_told", "xxl_job_log_page", "xxl_job_log_use",
		"xxl_job_user", "xxl_job_user_session", "xxl_job_user_token", "xxl_job_user_try", "xxl_job_user_code"} {
		sql += fmt.Sprintf("delete from %q.%s; ", name, table)
	}
	sql += fmt.Sprintf("delete from %q.xxl_job_setting where name <> 'schema_version'; alter sequence %[1]q.xxl_job_info_id restart", name)
	_, err := s.pool.Exec(context.Background(), sql)
	return err
}

// drop removes the schemas at the end.
func (s *schemas) drop() {
	for _, name := range s.all {
		if _, err := s.pool.Exec(context.Background(), fmt.Sprintf("drop schema %q cascade", name)); err != nil {
			fmt.Fprintln(os.Stderr, "drop schema", name, err)
		}
	}
}
