package postgres_test

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// fromBeforeLists tests upgrades from the version before the store had lists, and from that
// before migration 5, each with a store on a schema that is up to date as yet.
func fromBeforeLists(t *testing.T, test func(t *testing.T, from int, pool *pgxpool.Pool, schema string, s *postgres.Store)) {
	for _, from := range []int{2, 4} {
		t.Run(fmt.Sprint("version ", from), func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			schema := migrated(t, pool)
			s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: schema})
			must(t, err)
			t.Cleanup(s.Close)
			test(t, from, pool, schema, s)
		})
	}
}

// TestJobsFromBeforeThereWereLists: what was ensured by then may have been ensured by
// itself, so no list prunes it that has not named it. Marks of lists that there are stay,
// and so do those of a generation, which only lists have made.
func TestJobsFromBeforeThereWereLists(t *testing.T) {
	inServer(t)
	t.Parallel()
	fromBeforeLists(t, func(t *testing.T, from int, pool *pgxpool.Pool, schema string, s *postgres.Store) {
		must(t, s.SetShards(t.Context(), 1))
		ids := map[string]int64{}
		for _, key := range []string{"single", "listed", "other", "of a generation"} {
			app := "app"
			if key == "other" {
				app = "neighbour"
			}
			job, err := s.AddJob(t.Context(), store.Job{App: app, Key: key, Name: key, Schedule: schedule.FixedRate(time.Hour), Ensured: "digest"}, nil)
			must(t, err)
			ids[key] = job.ID
		}
		inc := nodeOf("a").Incarnation
		put := store.ListPut{JobList: store.JobList{App: "app", Prune: true, Keys: []string{"listed", "other"}}, Incarnation: inc, Apply: store.ApplyNewer}
		list := func() {
			_, err := s.Join(t.Context(), nodeOf("a"))
			must(t, err)
			_, err = s.PutList(t.Context(), put)
			must(t, err)
		}
		if from == 4 { // with what migration 3 has marked
			list()
			run(t, pool, fmt.Sprintf("insert into %s.xxl_job_named select id, 0 from %[1]s.xxl_job_info", schema))
			run(t, pool, fmt.Sprintf("insert into %s.xxl_job_list values ('app', 'x-1', 0, true, '', array[null])", schema)) // which says nothing about any job
			run(t, pool, fmt.Sprintf("update %s.xxl_job_named set generation = 7 where job_id = %d", schema, ids["of a generation"]))
		}
		backTo(t, pool, schema, from)
		must(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}))

		want := map[int][]int64{2: nil, 4: {ids["listed"], ids["of a generation"]}}[from]
		got := ask[[]int64](t, pool, fmt.Sprintf("select coalesce(array_agg(job_id::bigint order by job_id), '{}') from %s.xxl_job_named", schema))
		if !slices.Equal(got, want) {
			t.Errorf("jobs that lists have named: %v, want %v of %v", got, want, ids)
		}
		if from == 2 {
			list()
		}
		put.Keys = nil
		put.Digest = "empty"
		_, err := s.PutList(t.Context(), put)
		must(t, err)
		v, err := s.Lists(t.Context(), "app", inc)
		must(t, err)
		if slices.Contains(v.Surplus, ids["single"]) || slices.Contains(v.Surplus, ids["listed"]) != (from == 4) {
			t.Errorf("surplus %v of %v", v.Surplus, ids)
		}
	})
}

// TestReplicasEnsureAtOnce: replicas of a program start at once with a long list that is
// new, each in an order of its own. Each job is created once, and nobody gives up.
func TestReplicasEnsureAtOnce(t *testing.T) {
	t.Parallel()
	const jobs = 1500
	st := open(t, postgres.Patient(postgres.Config{})) // six processes in one: where it is busy none may rest in a transaction for long
	var mu sync.Mutex
	var wg sync.WaitGroup
	outcomes := map[xxljob.Outcome]int{}
	for i, step := range []int{1, 7, 11, 13, 17, 19} { // none has a divisor in common with 1500
		list := make([]store.Job, jobs)
		for k := range list {
			list[k*step%jobs] = store.Job{Name: fmt.Sprint("job ", k), Handler: "work"}
		}
		s, err := xxljob.New(st, xxljob.Config{App: "app", Node: fmt.Sprint("n", i), Logger: slog.New(slog.DiscardHandler)})
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
	schema := made.take(t)
	s, a := openAt(t, pool, schema)
	put := store.ListPut{JobList: store.JobList{App: "app", Generation: 1}, Apply: store.ApplyNewer}
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

// TestTimeOfAnEditThatWaited: an edit that waits for the job's row, because somebody else
// has it, is told the time after the wait: what came due meanwhile is overdue, and not
// to be planned.
func TestTimeOfAnEditThatWaited(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, inc(t, "edit"), 1)
	pool := pgtest.SharedPool(t)
	job := a.job()
	holder, err := pool.Begin(a.ctx)
	must(t, err)
	defer func() { _ = holder.Rollback(a.ctx) }()
	_, err = holder.Exec(a.ctx, "select 1 from \""+postgres.SchemaOf(s)+"\".xxl_job_next where job_id = $1 for update", job.ID)
	must(t, err)

	var missed, next time.Time
	var edited store.Job
	done := make(chan error)
	go func() { // ends with the edit, which is let through below
		var err error
		edited, err = s.EditJob(a.ctx, job.ID, store.Edit{Verb: "update",
			Change: func(j *store.Job) (bool, error) { j.Schedule = schedule.FixedRate(time.Second); return true, nil },
			Missed: func(_ store.Job, now time.Time) (store.NewRun, bool) { missed = now; return store.NewRun{}, false },
			Next:   func(_ store.Job, _, now time.Time) (time.Time, error) { next = now; return now.Add(time.Second), nil }})
		done <- err
	}()
	await.Until(t, "the edit waits", func() bool {
		return ask[bool](t, pool, "select exists (select from pg_locks l join pg_stat_activity a using (pid) where not l.granted and a.query like '%"+postgres.SchemaOf(s)+"%')")
	})
	clock := func() time.Time {
		return ask[time.Time](t, pool, "select date_trunc('milliseconds', clock_timestamp())").UTC()
	}
	waited := clock().Add(5 * time.Millisecond) // no reading from before the wait says that
	await.Until(t, "time passes", func() bool { return clock().After(waited) })
	must(t, holder.Rollback(a.ctx))
	must(t, <-done)
	if next.Before(waited) || !missed.Equal(next) || !edited.Updated.Equal(next) || !edited.Next.Equal(next.Add(time.Second)) {
		t.Errorf("Next is told %v, Missed %v, and the job is updated at %v with next %v; want one time, not before %v",
			next, missed, edited.Updated, edited.Next, waited)
	}
}
