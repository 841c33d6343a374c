package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
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
	schema := made.take(t)
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

// Locks of what follows the end of a run: who holds what, in which order.

// retriedJob adds a job whose failures are tried again.
func retriedJob(t *testing.T, s *postgres.Store) store.Job {
	t.Helper()
	def := newJob()
	def.Retries = 3
	job, err := s.AddJob(t.Context(), def, nil)
	must(t, err)
	return job
}

// parts starts a broadcast at two remote addresses.
func (a *actor) parts(job store.Job) (first, second store.Run) {
	a.Helper()
	st := a.startOf(a.planned(job), job.Version)
	st.Targets = []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}
	st.Address = st.Targets[0]
	out, err := a.Start(a.ctx, nil, []store.Start{st})
	must(a.T, err)
	if out[0].Status != store.StartOK || len(out[0].Siblings) != 1 {
		a.Fatalf("start: %+v", out[0])
	}
	return out[0].Run, out[0].Siblings[0]
}

// TestResultsThatCross: two nodes store failures of the one and successes of the other part of
// the same broadcasts, and each has some of its locks when a run in their middle is free again.
// One may wait for the other, and never each for what the other holds: the server looks for that
// long before a wait would be given up.
func TestResultsThatCross(t *testing.T) {
	inServer(t)
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{NoFsync: true})
	must(t, server.Configure(t.Context(), map[string]string{"deadlock_timeout": "10ms"}))
	pool := pgtest.Pool(t, pgtest.At(server.DSN("postgres")))
	schema := migrated(t, pool)
	s, a := openAt(t, pool, schema)
	other, err := postgres.New(t.Context(), pool, postgres.Config{Schema: schema})
	must(t, err)
	t.Cleanup(other.Close)
	of := func(r store.Run, state store.State) store.Result { return store.Result{RunID: r.ID, State: state} }
	for range 5 {
		var here, there, hereToo, thereToo []store.Result
		for range 20 {
			x1, x2 := a.parts(retriedJob(t, s))
			z1, z2 := a.parts(retriedJob(t, s))
			here, hereToo = append(here, of(x2, store.StateFailed)), append(hereToo, of(z1, store.StateSucceeded))
			there, thereToo = append(there, of(z2, store.StateFailed)), append(thereToo, of(x1, store.StateSucceeded))
		}
		held, err := pool.Begin(t.Context())
		must(t, err)
		_, err = held.Exec(t.Context(), "select from "+schema+".xxl_job_log where id = $1 for update", thereToo[10].RunID)
		must(t, err)
		var done sync.WaitGroup
		var back atomic.Int32
		for st, results := range map[*postgres.Store][]store.Result{s: append(here, hereToo...), other: append(there, thereToo...)} {
			done.Go(func() {
				stored, err := 0, store.ErrLocked
				for errors.Is(err, store.ErrLocked) { // by the one that is held, on a slow machine
					var ended []store.Run
					ended, err = st.Finish(t.Context(), nil, results)
					stored += len(ended)
					back.Add(1)
				}
				if err != nil || stored != len(results) {
					t.Errorf("%d of %d results are stored: %v", stored, len(results), err)
				}
			})
		}
		await.Until(t, "both wait, or one is back", func() bool {
			return back.Load() > 0 || ask[int](t, pool, "select count(distinct pid) from pg_locks where not granted") == 2
		})
		must(t, held.Rollback(t.Context()))
		done.Wait()
		if strings.Contains(server.Log(), "deadlock detected") {
			t.Fatal("the two have waited for each other's locks")
		}
	}
}

// TestLossesLockInOrder: whoever waits for a run that is about to end, or for the first run of its
// trigger, has no later one locked, in whatever order the verdicts come. So no two that come to
// the same runs wait for each other.
func TestLossesLockInOrder(t *testing.T) {
	inServer(t)
	t.Parallel()
	for name, retried := range map[string]bool{"the run": false, "the first run of its trigger": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, postgres.Patient(postgres.Config{}))
			a := own(t, s, inc(t, "a"), 1)
			job := retriedJob(t, s)
			first := a.started(job)
			ends := first
			if retried {
				out, err := s.Start(a.ctx, nil, []store.Start{a.startOf(a.failed(first), job.Version)})
				must(t, err)
				ends = out[0].Run
			}
			later := a.started(retriedJob(t, s))
			log := fmt.Sprintf("%q.xxl_job_log", postgres.SchemaOf(s))
			hold := begin(t, pgx.ReadCommitted)
			_, err := hold.Exec(t.Context(), "select from "+log+" where id = $1 for update", first.ID)
			must(t, err)
			settled, back := make(chan error, 1), atomic.Bool{}
			go func() {
				var verdicts []store.Verdict
				for _, r := range []store.Run{later, ends} {
					verdicts = append(verdicts, store.Verdict{RunID: r.ID, Shard: r.Shard, Epoch: a.epoch(r.Shard), Owner: a.inc, Token: r.Token, Taken: true, To: store.StateLost})
				}
				changed, err := s.Settle(a.ctx, verdicts)
				if err == nil && len(changed) != 2 {
					err = fmt.Errorf("%d of 2 runs are lost", len(changed))
				}
				back.Store(true)
				settled <- err
			}()
			await.Until(t, "the verdicts wait for the run that is held, or are back", func() bool { return back.Load() || blocked(t, s) })
			if back.Load() {
				t.Error("the verdicts have not waited for the run that is held")
			} else if !ask[bool](t, pgtest.SharedPool(t), "select exists (select from "+log+" where id = $1 for no key update skip locked)", later.ID) {
				t.Error("while they wait for one run, the verdicts have a later one locked")
			}
			must(t, hold.Rollback(t.Context()))
			must(t, <-settled)
		})
	}
}

// TestAVerdictAboutAPlannedRun: a run that was given back is planned, and an edit locks it behind
// its job. So a verdict that names it all the same leaves it alone.
func TestAVerdictAboutAPlannedRun(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := made.take(t)
	// What follows while the verdicts wait for a lock may take a second where the machine is busy.
	s, err := postgres.New(t.Context(), pool, postgres.Patient(postgres.Config{Schema: schema}))
	must(t, err)
	t.Cleanup(s.Close)
	a := own(t, s, "a", 1)
	job := retriedJob(t, s)
	runs := a.two(t, job, job.Next.Add(time.Hour))
	back, going := runs[0], runs[1]
	job, err = s.Job(t.Context(), job.ID)
	must(t, err)
	out, err := s.Start(a.ctx, nil, []store.Start{a.startOf(going, job.Version)})
	must(t, err)
	going = out[0].Run
	verdict := func(r store.Run) store.Verdict {
		return store.Verdict{RunID: r.ID, Shard: r.Shard, Epoch: a.epoch(r.Shard), Owner: a.inc, Token: r.Token, Taken: true, To: store.StateLost}
	}
	hold, err := pool.Begin(t.Context())
	must(t, err)
	defer hold.Rollback(context.Background())
	_, err = hold.Exec(t.Context(), "select from "+schema+".xxl_job_log where id = $1 for update", going.ID)
	must(t, err)
	settled := make(chan error, 1)
	go func() {
		_, err := s.Settle(a.ctx, []store.Verdict{verdict(back), verdict(going)})
		settled <- err
	}()
	await.Until(t, "the verdicts wait for the run that is held", func() bool { return blocked(t, s) })
	_, err = s.EditJob(t.Context(), job.ID, store.Edit{Verb: "stop", Change: func(j *store.Job) (bool, error) { j.Stopped = true; return true, nil }})
	if err != nil {
		t.Errorf("a stop beside the verdicts: %v", err)
	}
	must(t, hold.Rollback(t.Context()))
	must(t, <-settled)
	r, err := s.Run(t.Context(), back.ID)
	must(t, err)
	if r.State != store.StateCancelled {
		t.Errorf("the planned run is %v", r.State)
	}
}

// TestARefusalBehindAHeldFirstRun: where somebody holds the first run of its trigger, a refusal
// is left for later, and the other starts of its batch are not.
func TestARefusalBehindAHeldFirstRun(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := made.take(t)
	s, a := openAt(t, pool, schema)
	job := retriedJob(t, s)
	first := a.started(job)
	retry := a.failed(first)
	hold, err := pool.Begin(t.Context())
	must(t, err)
	defer hold.Rollback(context.Background())
	_, err = hold.Exec(t.Context(), "select from "+schema+".xxl_job_log where id = $1 for update", first.ID)
	must(t, err)
	refusal := func() store.Start {
		st := a.startOf(retry, job.Version)
		st.State, st.Owner, st.Token, st.Address = store.StateRefused, "", 0, ""
		return st
	}
	for i := range 2 { // the refusal before and behind the other
		other := a.job()
		starts := []store.Start{refusal(), a.startOf(a.planned(other), other.Version)}
		want := []store.StartStatus{store.StartLocked, store.StartOK}
		if i == 1 {
			starts[0], starts[1], want[0], want[1] = starts[1], starts[0], want[1], want[0]
		}
		out, err := s.Start(a.ctx, nil, starts)
		must(t, err)
		for k := range out {
			if out[k].Status != want[k] {
				t.Errorf("start %d of %d: status %d, want %d", k+1, len(out), out[k].Status, want[k])
			}
		}
	}
	must(t, hold.Rollback(t.Context()))
	out, err := s.Start(a.ctx, nil, []store.Start{refusal()})
	must(t, err)
	if out[0].Status != store.StartOK {
		t.Errorf("once nobody holds it: status %d", out[0].Status)
	}
}

// TestARetryKeepsItsParent: the run whose success planned the first run of a trigger is that of
// its attempts too.
func TestARetryKeepsItsParent(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := made.take(t)
	s, a := openAt(t, pool, schema)
	first := a.started(retriedJob(t, s))
	run(t, pool, "update "+schema+".xxl_job_log set parent_id = 4711 where id = $1", first.ID)
	if retry := a.failed(first); retry.ParentID != 4711 {
		t.Errorf("ParentID of the retry is %d", retry.ParentID)
	}
}
