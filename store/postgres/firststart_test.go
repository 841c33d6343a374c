package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestFirstStartsSideBySide leave no errors about keys and tables that another was
// quicker to make, for the operator of the server to wonder about.
func TestFirstStartsSideBySide(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{NoFsync: true})
	const nodes = 6
	errs, seen := make(chan error, nodes), make(chan struct{})
	for i := range nodes {
		pool := pgtest.Pool(t, pgtest.At(cluster.DSN("postgres")))
		go func() {
			errs <- firstStart(t.Context(), pool, fmt.Sprint("node", i), func(err error) { errs <- err; <-seen })
		}()
	}
	for range nodes {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	// Before they stop: what a Stop cancels is in the log too.
	defer func() {
		close(seen)
		for range nodes {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	}()
	for line := range strings.Lines(cluster.Log()) {
		if strings.Contains(line, "ERROR") {
			t.Errorf("the server's log: %s", line)
		}
	}
}

// firstStart is what each replica of a service does, up to its stop. Begun is called with
// how that went in between.
func firstStart(ctx context.Context, pool *pgxpool.Pool, name string, begun func(error)) error {
	st, err := postgres.New(ctx, pool, postgres.Config{AutoMigrate: true})
	if err != nil {
		begun(err)
		return nil
	}
	defer st.Close()
	s, err := xxljob.New(st, xxljob.Config{App: "app", Node: name, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		begun(err)
		return nil
	}
	var jobs []store.Job
	for i := range 30 {
		jobs = append(jobs, store.Job{Name: fmt.Sprint("job ", i), Handler: "work", Schedule: schedule.FixedRate(time.Hour)})
	}
	all, err := s.EnsureJobs(ctx, "app", jobs, xxljob.EnsureOptions{})
	if err == nil {
		err = s.Start(ctx)
	}
	if err == nil {
		_, err = s.Trigger(ctx, all[0].Job.ID, store.Trigger{Key: "once"})
	}
	begun(err)
	return s.Stop(ctx)
}
