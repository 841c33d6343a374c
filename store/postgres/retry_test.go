package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/await"
	"github.com/xxljob/xxljob/internal/pgtest"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestRetriesOverTwoNodes: chains of a serial job whose shard one node has and whose runs both
// run. Each has its attempts, once each.
func TestRetriesOverTwoNodes(t *testing.T) {
	t.Parallel()
	st := open(t, postgres.Config{})
	var mu sync.Mutex
	var order []string
	var ended []time.Time
	handler := func(_ context.Context, task *xxljob.Task) error {
		mu.Lock()
		defer mu.Unlock()
		order, ended = append(order, fmt.Sprintf("%s/%d", task.Param, task.Attempt)), append(ended, time.Now())
		if task.Attempt < 2 {
			return errors.New("boom")
		}
		return nil
	}
	nodes := make([]xxljob.Scheduler, 2)
	for i := range nodes {
		s, err := xxljob.New(st, xxljob.Config{App: "app", Node: fmt.Sprint("node", i), Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		must(t, s.Handle("try", handler))
		must(t, s.Start(t.Context()))
		t.Cleanup(func() { _ = s.Stop(context.Background()) })
		nodes[i] = s
	}
	job, err := nodes[0].AddJob(t.Context(), store.Job{Name: "j", Handler: "try", Route: route.Round, Retries: 5})
	must(t, err)
	const triggers = 5
	ids := make([]int64, triggers)
	for i := range ids {
		param := fmt.Sprint(i)
		ids[i], err = nodes[i%2].TriggerOne(t.Context(), job.ID, store.Trigger{Param: &param})
		must(t, err)
	}
	for _, id := range ids {
		await.Until(t, "a chain has ended", func() bool {
			runs, err := st.Tree(t.Context(), id)
			return err == nil && len(runs) == 3 && runs[2].State == store.StateSucceeded
		})
	}
	mu.Lock()
	defer mu.Unlock()
	attempts := map[string]bool{}
	for _, o := range order {
		attempts[o] = true
	}
	if len(order) != 3*triggers || len(attempts) != len(order) {
		t.Errorf("handled %q, want three attempts of each of %d triggers, once each", order, triggers)
	}
	for i := 1; i < len(order); i++ {
		t.Logf("%s %v behind the one before", order[i], ended[i].Sub(ended[i-1]).Round(time.Millisecond))
	}
}

// failed ends the run as failed, and returns the run that follows.
func (a *actor) failed(run store.Run) store.Run {
	a.Helper()
	r := result(run)
	r.State = store.StateFailed
	ended, err := a.Finish(a.ctx, nil, []store.Result{r})
	must(a.T, err)
	if len(ended) != 1 {
		a.Fatalf("the result of run %d is refused", run.ID)
	}
	tree, err := a.Tree(a.ctx, run.ID)
	must(a.T, err)
	if last := tree[len(tree)-1]; last.State == store.StatePlanned {
		return last
	}
	return store.Run{}
}

// TestARetryThatIsOlderThanAllThatRuns: a waiting retry is in the way of later instants also
// when all runs that are under way have come after it.
func TestARetryThatIsOlderThanAllThatRuns(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, "a", 1)
	def := newJob()
	def.Retries, def.RetryBackoff.First = 2, time.Hour
	job, err := s.AddJob(t.Context(), def, nil)
	must(t, err)
	retry := a.failed(a.started(job))
	other := a.started(a.job())
	if retry.ID == 0 || other.ID < retry.ID {
		t.Fatalf("retry %d, another job's run %d", retry.ID, other.ID)
	}
	must(t, postgres.RaiseStarted(t.Context(), s))
	job, err = s.Job(t.Context(), job.ID)
	must(t, err)
	later := a.planned(job)
	st := a.startOf(later, job.Version)
	st.AfterRetries, st.Instant, st.TriggerID = true, later.Instant(), later.TriggerID
	answers, err := a.Start(t.Context(), nil, []store.Start{st})
	must(t, err)
	if got := answers[0]; got.Status != store.StartBusy || got.Run.ID != retry.ID {
		t.Errorf("start of a later instant: status %d, run %d; want busy with retry %d", got.Status, got.Run.ID, retry.ID)
	}
}

// TestAgeOfATrigger: how long a trigger may go on counts from the day in whose partition its
// first run lies, not from when somebody planned it far ahead; and not from the last attempt
// where the first run's row is gone.
func TestAgeOfATrigger(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	s, a := openAt(t, pool, schema)
	s.KnowRetention(10 * 24 * time.Hour)
	def := newJob()
	def.Retries = 3
	job, err := s.AddJob(t.Context(), def, nil)
	must(t, err)
	first := a.started(job)
	run(t, pool, "update "+schema+".xxl_job_log set add_time = add_time - interval '20 days' where id = $1", first.ID)
	retry := a.failed(first)
	if retry.ID == 0 {
		t.Fatal("nothing follows a run that was planned twenty days ago")
	}
	day := int64(86_400_000) * lowBits
	run(t, pool, "update "+schema+".xxl_job_log set trigger_id = trigger_id - $2 where id = $1", retry.ID, 9*day)
	answers, err := s.Start(t.Context(), nil, []store.Start{a.startOf(retry, job.Version)})
	must(t, err)
	if next := a.failed(answers[0].Run); next.ID != 0 {
		t.Errorf("run %d follows, nine days behind a first run that is gone", next.ID)
	}
}

// TestResultsOfJobsThatAreHeld: where others hold a job or a first run, the results that may be
// followed are left for later, and those that may not be are stored. What is gone holds nobody
// up.
func TestResultsOfJobsThatAreHeld(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	s, a := openAt(t, pool, schema)
	chain := func() (first, retry store.Run) {
		job := retriedJob(t, s)
		first = a.started(job)
		retry = a.failed(first)
		answers, err := s.Start(t.Context(), nil, []store.Start{a.startOf(retry, job.Version)})
		must(t, err)
		return first, answers[0].Run
	}
	fails := func(run store.Run) store.Result {
		r := result(run)
		r.State = store.StateFailed
		return r
	}
	_, byJob := chain()
	first, byFirst := chain()
	gone, byGone := chain()
	_, other := chain()
	run(t, pool, "delete from "+schema+".xxl_job_log where id = $1", gone.ID)
	hold, err := pool.Begin(t.Context())
	must(t, err)
	defer hold.Rollback(context.Background())
	for query, id := range map[string]int64{"xxl_job_next where job_id": byJob.JobID, "xxl_job_log where id": first.ID} {
		_, err = hold.Exec(t.Context(), "select from "+schema+"."+query+" = $1 for update", id)
		must(t, err)
	}
	for range 2 { // in careful mode the second time
		accepted, err := s.Finish(t.Context(), nil, []store.Result{fails(byJob), fails(byFirst)})
		if len(accepted) != 0 || !errors.Is(err, store.ErrLocked) {
			t.Errorf("failures of a held job and of a held trigger: %d stored, %v", len(accepted), err)
		}
	}
	accepted, err := s.Finish(t.Context(), nil, []store.Result{fails(byGone), fails(other)})
	if len(accepted) != 2 || err != nil {
		t.Errorf("failures of a trigger whose first run is gone and of another job: %d stored, %v", len(accepted), err)
	}
	must(t, hold.Rollback(t.Context()))
	if accepted, err = s.Finish(t.Context(), nil, []store.Result{fails(byJob), fails(byFirst)}); len(accepted) != 2 || err != nil {
		t.Errorf("once nobody holds them: %d stored, %v", len(accepted), err)
	}
}

// TestRetriesOfBeforeAnUpgrade: a run that waits keeps the number of retries that its trigger
// gave to the version before, also where it is kept apart.
func TestRetriesOfBeforeAnUpgrade(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	s, a := openAt(t, pool, schema)
	job := a.job()
	two := 2
	given, err := s.AddRun(t.Context(), job.ID, store.Trigger{Retries: &two})
	must(t, err)
	plain, err := s.AddRun(t.Context(), job.ID, store.Trigger{})
	must(t, err)
	far := a.ahead(job, store.Trigger{At: time.Now().Add(100 * time.Hour), Retries: &two}, time.Now().Add(99*time.Hour))
	backTo(t, pool, schema, 10)
	must(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}))
	for id, want := range map[int64]bool{given.ID: true, plain.ID: false, far.ID: true} {
		r, err := s.Run(t.Context(), id)
		must(t, err)
		if r.RetriesSet != want || want && r.Retries != two {
			t.Errorf("run %d: %d retries, set %v; want set %v", id, r.Retries, r.RetriesSet, want)
		}
	}
}
