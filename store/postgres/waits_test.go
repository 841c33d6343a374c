package postgres_test

// How tests see that somebody waits, so that none goes by how long something took. Comes in:
// calls of a store. Goes out: that one waits for the pool, or for a lock of the server.

import (
	"context"
	"regexp"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// atPool is a tracer of pools. It tells a call that it waits for a connection of a pool
// that is used up for as long as its context lasts, and not for a moment, after which it
// would ask for the reserve: such a moment is a deadline.
type atPool struct{}

type waitsKey struct{}

// whenWaiting returns a context with which a call that comes to wait for the pool calls f.
func whenWaiting(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, waitsKey{}, f)
}

// impatient returns a context that ends when a call comes to wait for the pool with it.
// The pool has to be a noticing one.
func impatient(t *testing.T, ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	return whenWaiting(ctx, cancel)
}

// noticing has calls told that wait for the pool.
func noticing() pgtest.Option {
	return pgtest.With(func(c *pgxpool.Config) { c.ConnConfig.Tracer = atPool{} })
}

func (atPool) TraceAcquireStart(ctx context.Context, pool *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	tell, told := ctx.Value(waitsKey{}).(func())
	_, bounded := ctx.Deadline()
	if stat := pool.Stat(); told && !bounded && stat.AcquiredConns() >= stat.MaxConns() {
		tell()
	}
	return ctx
}

func (atPool) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

func (atPool) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (atPool) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// blocked reports whether a statement that is about the tables of a store waits for a lock.
func blocked(t *testing.T, s *postgres.Store) bool {
	t.Helper()
	return ask[bool](t, pgtest.SharedPool(t), `select exists (select from pg_locks l join pg_stat_activity a using (pid)
		where not l.granted and a.query like '%' || $1 || '%' and a.pid <> pg_backend_pid())`, postgres.SchemaOf(s))
}

// patience is what a transaction of a store's begins with.
var patience = regexp.MustCompile(`'lock_timeout', '(\d+)'`)

// patiences are the least and the greatest patience for locks, in milliseconds, of the
// transactions with the text.
func (s *statements) patiences(t *testing.T, text string) (least, most int) {
	t.Helper()
	for _, sql := range s.with(text) {
		found := patience.FindStringSubmatch(sql)
		if found == nil {
			continue // a statement by itself
		}
		n, err := strconv.Atoi(found[1])
		must(t, err)
		if least == 0 || n < least {
			least = n
		}
		most = max(most, n)
	}
	if least == 0 {
		t.Fatalf("no transaction with %q was seen", text)
	}
	return least, most
}

// usual is the patience of what is not the loops', and may wait for who else writes.
func (s *statements) usual(t *testing.T, st *postgres.Store) int {
	t.Helper()
	must(t, st.SaveGroup(t.Context(), store.Group{App: "app"}))
	least, _ := s.patiences(t, "xxl_job_group")
	return least
}
