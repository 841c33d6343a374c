package postgres_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// BenchmarkEnsureJobs ensures a list of 10,000 jobs: new ones, the same again as each
// replica does at its start, and the same in the next release.
func BenchmarkEnsureJobs(b *testing.B) {
	const n = 10_000
	pool := benchPool(b)
	jobs := make([]store.Job, n)
	for i := range jobs {
		jobs[i] = store.Job{Name: fmt.Sprintf("job number %d of the list", i), Handler: fmt.Sprint("handler", i%100), Schedule: schedule.Cron("0 0 3 * * ?")}
	}
	for b.Loop() {
		store := (&schemas{pool: pool}).open(b, pool, postgres.Config{})
		s, err := xxljob.New(store, xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range []struct {
			name       string
			generation int64
			want       xxljob.Outcome
		}{
			{"new", 1, xxljob.Created}, {"unchanged", 1, xxljob.Unchanged}, {"next-release", 2, xxljob.Unchanged},
		} {
			began := time.Now()
			done, err := s.EnsureJobs(b.Context(), "", jobs, xxljob.EnsureOptions{Prune: true, Generation: c.generation})
			took := time.Since(began)
			if err != nil || len(done) != n || done[n-1].Outcome != c.want {
				b.Fatalf("%s: %d jobs, %v", c.name, len(done), err)
			}
			b.ReportMetric(took.Seconds(), "s-"+c.name)
		}
	}
}
