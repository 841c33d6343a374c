package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store/postgres"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestConformanceThroughAPooler runs the whole suite in row mode, through a
// pooler that shares sessions out by transaction. Statements go whole, and
// nothing is prepared.
func TestConformanceThroughAPooler(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{NoFsync: true})
	direct := pgtest.Pool(t, pgtest.At(server.DSN("postgres")))
	pooled := pgtest.Pool(t, pgtest.At(pgtest.PgBouncer(t, server.DSN("postgres"))), by(pgx.QueryExecModeExec), pgtest.MaxConns(32))
	there := &schemas{pool: direct}
	storetest.Run(t, func(t *testing.T) xxljob.Store {
		return there.open(t, pooled, postgres.Config{LeaseMode: postgres.LeaseRow})
	})
}

// TestAPoolerIsFoundOutAtNew: what does not work behind one is an error that says
// what does.
func TestAPoolerIsFoundOutAtNew(t *testing.T) {
	t.Parallel()
	dsn := pgtest.PgBouncer(t, pgtest.DSN(t))
	schema := migrated(t, pgtest.SharedPool(t))
	exec := pgtest.Pool(t, pgtest.At(dsn), by(pgx.QueryExecModeExec))
	for range 2 { // the first check must not spoil the sessions of the pooler
		wantText(t, newStore(t, exec, postgres.Config{Schema: schema}), "pooler in transaction mode", `Config.LeaseMode to "row"`, "Config.LockConn")
	}
	for _, name := range []string{"statement_timeout", "lock_timeout"} {
		if got := ask[string](t, exec, "select current_setting('"+name+"')"); got != "0" {
			t.Errorf("%s of the pooler's sessions is left at %s", name, got)
		}
	}
	prepared := pgtest.Pool(t, pgtest.At(dsn))
	wantText(t, newStore(t, prepared, postgres.Config{Schema: schema, LeaseMode: postgres.LeaseRow}), "default_query_exec_mode=exec")
	must(t, newStore(t, exec, postgres.Config{Schema: schema, LeaseMode: postgres.LeaseRow}))
	direct := postgres.Config{Schema: schema, LockConn: lockConn(t)}
	s, err := postgres.New(t.Context(), exec, direct)
	must(t, err)
	defer s.Close()
	life(t, s)
}
