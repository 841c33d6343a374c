package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/measure"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store/postgres"
)

// onPostgres makes stores in schemas of one database.
type onPostgres struct {
	cfg     Config
	cluster *pgtest.Cluster // nil where the server is not ours
	pool    *pgxpool.Pool   // the scheduler's alone

	mu    sync.Mutex
	asker *pgx.Conn // guarded by mu; what is measured is asked for beside the pool
}

func openPostgres(ctx context.Context, cfg Config) (host, error) {
	h := &onPostgres{cfg: cfg}
	if err := h.open(ctx); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *onPostgres) open(ctx context.Context) error {
	dsn, err := h.address()
	if err != nil {
		return err
	}
	of, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return err
	}
	of.MaxConns = int32(h.cfg.Connections)
	if h.pool, err = pgxpool.NewWithConfig(ctx, of); err != nil {
		return err
	}
	h.asker, err = pgx.Connect(ctx, dsn)
	return err
}

// address is that of the database, for which a server is started where none is named: one with
// memory and room for WAL as a server of a database has them, and durable as one.
func (h *onPostgres) address() (string, error) {
	if h.cfg.DSN != "" {
		return h.cfg.DSN, nil
	}
	if dsn := os.Getenv("XXLJOB_TEST_DATABASE_URL"); dsn != "" {
		return dsn, nil
	}
	var err error
	h.cluster, err = pgtest.New(pgtest.Options{Settings: map[string]string{"shared_buffers": "512MB", "max_wal_size": "4GB"}})
	if err != nil {
		return "", err
	}
	return h.cluster.DSN("postgres"), nil
}

func (h *onPostgres) fresh(ctx context.Context) (*backend, error) {
	of := postgres.Config{Schema: "xxljob_bench_" + strings.ToLower(rand.Text()[:12]), Logger: warnings(h.cfg.Log)}
	if err := postgres.Migrate(ctx, h.pool, of); err != nil {
		return nil, err
	}
	st, err := postgres.New(ctx, h.pool, of)
	if err != nil {
		return nil, errors.Join(err, h.drop(of.Schema))
	}
	return &backend{
		store:  st,
		plan:   func(ctx context.Context, jobs []int64, n int) ([]int64, error) { return h.plan(ctx, st, jobs, n) },
		settle: func(ctx context.Context) error { return h.analyze(ctx, of.Schema) },
		close: func() error {
			st.Close()
			return h.drop(of.Schema)
		},
	}, nil
}

// drop drops a schema, whatever has ended meanwhile: who was interrupted leaves none behind.
func (h *onPostgres) drop(schema string) error {
	_, err := h.pool.Exec(context.Background(), "drop schema "+schema+" cascade")
	return err
}

// planAtOnce is how many runs one transaction plans.
const planAtOnce = 1000

// plan plans runs in few transactions, and several of them at once.
func (h *onPostgres) plan(ctx context.Context, st *postgres.Store, jobs []int64, n int) ([]int64, error) {
	ids := make([]int64, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(h.cfg.Connections)
	for from := 0; from < n; from += planAtOnce {
		group.Go(func() error {
			return pgx.BeginFunc(ctx, h.pool, func(tx pgx.Tx) error {
				for i := from; i < min(from+planAtOnce, n); i++ {
					var err error
					if ids[i], err = st.TriggerTx(ctx, tx, jobs[i%len(jobs)], xxljob.Trigger{}); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	return ids, group.Wait()
}

// analyze does for the tables of a schema what autovacuum would do a minute later, which leaves
// empty ones alone: a plan that was made for an empty table is a bad one for long.
func (h *onPostgres) analyze(ctx context.Context, schema string) error {
	rows, err := h.pool.Query(ctx, "select tablename from pg_tables where schemaname = $1 order by 1", schema)
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, table := range tables {
		name := pgx.Identifier{schema, table}.Sanitize()
		var filled bool
		if err := h.pool.QueryRow(ctx, "select exists(select from "+name+")").Scan(&filled); err != nil {
			return err
		}
		if !filled {
			continue
		}
		if _, err := h.pool.Exec(ctx, "analyze "+name); err != nil {
			return err
		}
	}
	return nil
}

// ask is the measure.Query of the server.
func (h *onPostgres) ask(ctx context.Context, sql string) (answer string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	err = h.asker.QueryRow(ctx, sql).Scan(&answer)
	return answer, err
}

func (h *onPostgres) meter(ctx context.Context) measure.Meter {
	return measure.Meter{Query: h.ask, Postmaster: measure.Proc{}.Postmaster(ctx, h.ask)}
}

func (h *onPostgres) server(ctx context.Context) (*measure.Server, error) {
	s, err := measure.AskServer(ctx, h.ask)
	if err != nil {
		return nil, fmt.Errorf("settings of the server: %w", err)
	}
	return &s, nil
}

func (h *onPostgres) close() error {
	var err error
	if h.asker != nil {
		err = h.asker.Close(context.Background())
	}
	if h.pool != nil {
		h.pool.Close()
	}
	if h.cluster != nil {
		err = errors.Join(err, h.cluster.Close())
	}
	return err
}
