package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// before calls a function once, before the first statement that has a text.
type before struct {
	mu   sync.Mutex
	text string // guarded by mu
	call func() // guarded by mu; nil once it was called
}

func (b *before) set(text string, call func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text, b.call = text, call
}

func (b *before) sent(sql string) {
	b.mu.Lock()
	call := b.call
	if call == nil || !strings.Contains(sql, b.text) {
		b.mu.Unlock()
		return
	}
	b.call = nil
	b.mu.Unlock()
	call()
}

func (b *before) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	b.sent(d.SQL)
	return ctx
}

func (b *before) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		b.sent(q.SQL)
	}
	return ctx
}

func (*before) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (*before) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*before) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// TestATriggerWhoseRunIsJustDeleted: the key is there when it is inserted, and gone with its run
// when that is looked for. A new run is made, and the job is not said to be absent.
func TestATriggerWhoseRunIsJustDeleted(t *testing.T) {
	t.Parallel()
	b, owner := &before{}, pgtest.Pool(t)
	pool := pgtest.Pool(t, pgtest.With(func(c *pgxpool.Config) { c.ConnConfig.Tracer = b }))
	schema := migrated(t, owner)
	other, a := openAt(t, owner, schema)
	s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: schema})
	must(t, err)
	t.Cleanup(s.Close)
	job, far := a.job(), time.Now().AddDate(1, 0, 0)
	for name, trigger := range map[string]func(store.Trigger) (int64, error){
		"AddRun": func(x store.Trigger) (int64, error) { r, err := s.AddRun(t.Context(), job.ID, x); return r.ID, err },
		"AddAhead": func(x store.Trigger) (int64, error) {
			x.At = far
			r, err := s.AddAhead(t.Context(), job.ID, x, far.AddDate(0, 0, -1))
			return r.ID, err
		},
		"TriggerTx": func(x store.Trigger) (int64, error) {
			tx, err := pool.Begin(t.Context())
			must(t, err)
			defer tx.Rollback(t.Context())
			id, err := s.TriggerTx(t.Context(), tx, job.ID, x)
			return id, errors.Join(err, tx.Commit(t.Context()))
		},
	} {
		key := store.Trigger{Key: name}
		run, err := other.AddRun(t.Context(), job.ID, key)
		must(t, err)
		_, err = other.Kill(t.Context(), run.ID, "over")
		must(t, err)
		b.set("select k.run_id from", func() {
			if got, err := other.DropEnded(t.Context(), store.RunDrop{All: true}); err != nil || got.Runs != 1 {
				t.Errorf("%s: %+v, %v, want one run deleted", name, got, err)
			}
		})
		id, err := trigger(key)
		if err != nil || id == run.ID {
			t.Errorf("%s: run %d, %v, want a new one", name, id, err)
		}
		again, err := other.AddRun(t.Context(), job.ID, key)
		if err != nil || again.ID != id {
			t.Errorf("%s: the key is that of run %d, %v, want %d", name, again.ID, err, id)
		}
		job.ID++
		_, err = trigger(key)
		if job.ID--; !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: of an absent job: %v", name, err)
		}
	}
}
