package postgres_test

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/await"
	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestJobsFromBeforeThereWereLists: what was ensured by then may be pruned, and what was
// added may not.
func TestJobsFromBeforeThereWereLists(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	before, err := postgres.New(t.Context(), pool, postgres.Config{Schema: schema})
	must(t, err)
	must(t, before.SetShards(t.Context(), 1))
	ensured, err := before.AddJob(t.Context(), xxljob.Job{App: "app", Key: "ensured", Name: "ensured", Ensured: "digest"}, nil)
	must(t, err)
	_, err = before.AddJob(t.Context(), xxljob.Job{App: "app", Key: "added", Name: "added"}, nil)
	must(t, err)
	before.Close()
	backTo(t, pool, schema, 2)
	must(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}))

	s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: schema})
	must(t, err)
	t.Cleanup(s.Close)
	_, err = s.Join(t.Context(), nodeOf("a"))
	must(t, err)
	inc := nodeOf("a").Incarnation
	_, err = s.PutList(t.Context(), xxljob.ListPut{JobList: xxljob.JobList{App: "app", Prune: true}, Incarnation: inc, Apply: xxljob.ApplyNewer})
	must(t, err)
	v, err := s.Lists(t.Context(), "app", inc)
	must(t, err)
	if !slices.Equal(v.Surplus, []int64{ensured.ID}) {
		t.Errorf("surplus %v, want %d", v.Surplus, ensured.ID)
	}
}

// TestReplicasEnsureAtOnce: replicas of a program start at once with a long list that is
// new, each in an order of its own. Each job is created once, and nobody gives up.
func TestReplicasEnsureAtOnce(t *testing.T) {
	t.Parallel()
	const jobs = 1500
	store := open(t, postgres.Config{})
	var mu sync.Mutex
	var wg sync.WaitGroup
	outcomes := map[xxljob.Outcome]int{}
	for i, step := range []int{1, 7, 11, 13, 17, 19} { // none has a divisor in common with 1500
		list := make([]xxljob.Job, jobs)
		for k := range list {
			list[k*step%jobs] = xxljob.Job{Name: fmt.Sprint("job ", k), Handler: "work"}
		}
		s, err := xxljob.New(store, xxljob.Config{App: "app", Node: fmt.Sprint("n", i), Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		wg.Go(func() {
			done, err := s.EnsureJobs(t.Context(), "", list, xxljob.EnsureOptions{Prune: true, Generation: 7})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for k, d := range done {
				outcomes[d.Outcome]++
				if d.Job.Key != list[k].Name || d.Job.ID == 0 {
					t.Errorf("place %d: %q as job %d, want %q", k, d.Job.Key, d.Job.ID, list[k].Name)
				}
			}
		})
	}
	wg.Wait()
	if outcomes[xxljob.Created] != jobs || len(outcomes) != 2 {
		t.Errorf("outcomes %v, want %d created, and the others unchanged", outcomes, jobs)
	}
}

// TestAListThatWaits: somebody has the head of an app locked for longer than a
// transaction waits for a lock; the list waits on.
func TestAListThatWaits(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	s, a := openAt(t, pool, schema)
	put := xxljob.ListPut{JobList: xxljob.JobList{App: "app", Generation: 1}, Apply: xxljob.ApplyNewer}
	_, err := s.PutList(a.ctx, put)
	must(t, err)
	x, err := pool.Begin(a.ctx)
	must(t, err)
	_, err = x.Exec(a.ctx, fmt.Sprintf("select from %s.xxl_job_list_head for update", schema))
	must(t, err)
	put.Generation = 2
	done := make(chan error)
	go func() { _, err := s.PutList(a.ctx, put); done <- err }()
	// Its first try gives up, and the next one waits again.
	since := func() string {
		return ask[string](t, pool, "select coalesce(max(a.xact_start)::text, '') from pg_locks l join pg_stat_activity a using (pid) where not l.granted and a.query like '%' || $1 || '%'", schema)
	}
	first := ""
	await.Until(t, "it waits for the lock", func() bool { first = since(); return first != "" })
	await.Until(t, "it waits for the lock in another transaction", func() bool { now := since(); return now != "" && now != first })
	must(t, x.Rollback(a.ctx))
	must(t, <-done)
	v, err := s.Lists(a.ctx, "app", "a")
	must(t, err)
	if v.Head.Generation != 2 {
		t.Errorf("head %+v", v.Head)
	}
}
