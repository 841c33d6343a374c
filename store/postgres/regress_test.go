package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// misread makes a reading of the database's clock fail.
func misread(s *postgres.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = s.Now(ctx)
}

// two claims two runs of the job.
func (a *actor) two(t *testing.T, job store.Job, next time.Time) []store.Run {
	t.Helper()
	p := a.plan(job)
	p.Next = next
	p.Runs = append(p.Runs, store.NewRun{At: job.Next.Add(time.Second), Type: store.TriggerCron, State: store.StatePlanned})
	runs, err := a.Claim(a.ctx, nil, []store.Plan{p})
	must(t, err)
	if len(runs) != 2 {
		t.Fatalf("claimed %d runs, want two", len(runs))
	}
	return runs
}

// serially starts a run of a serial job.
func (a *actor) serially(t *testing.T, run store.Run, version int64, address string) store.Started {
	t.Helper()
	st := a.startOf(run, version)
	st.Serial = true
	if address != "" {
		st.Address = address
	}
	answers, err := a.Start(a.ctx, nil, []store.Start{st})
	must(t, err)
	return answers[0]
}

// TestAFailedReadingOfTheClock: what decides about runs goes by no clock.
func TestAFailedReadingOfTheClock(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]func(*testing.T, *actor, *postgres.Store){
		"a stop cancels what is planned": func(t *testing.T, a *actor, s *postgres.Store) {
			job := a.job()
			r := a.planned(job)
			misread(s)
			_, err := s.EditJob(a.ctx, job.ID, store.Edit{Verb: "stop", Change: func(j *store.Job) (bool, error) { j.Stopped = true; return true, nil }})
			must(t, err)
			if got, err := s.Run(a.ctx, r.ID); err != nil || got.State != store.StateCancelled {
				t.Errorf("the run is %v, %v", got.State, err)
			}
		},
		"a job with a planned run is not finished": func(t *testing.T, a *actor, s *postgres.Store) {
			job := a.job()
			runs := a.two(t, job, time.Time{})
			first := a.serially(t, runs[0], job.Version, "")
			misread(s)
			_, err := s.Finish(a.ctx, nil, []store.Result{result(first.Run)})
			must(t, err)
			if got, err := s.Job(a.ctx, job.ID); err != nil || got.Stopped {
				t.Errorf("the job is stopped, %q, %v", got.StopReason, err)
			}
		},
		"a node with a started run is not deleted": func(t *testing.T, a *actor, s *postgres.Store) {
			a.started(a.job())
			misread(s)
			must(t, s.Bury(a.ctx, a.inc, 1))
			view, err := s.Join(a.ctx, nodeOf(inc(t, "other")))
			must(t, err)
			if len(view.Nodes) != 2 {
				t.Errorf("nodes: %+v", view.Nodes)
			}
		},
		"a serial job is busy": func(t *testing.T, a *actor, s *postgres.Store) {
			job := a.job()
			runs := a.two(t, job, job.Next.Add(time.Hour))
			a.serially(t, runs[0], job.Version, "")
			misread(s)
			if second := a.serially(t, runs[1], job.Version, ""); second.Status != store.StartBusy {
				t.Errorf("the second start: %d, want busy", second.Status)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, postgres.Config{})
			rule(t, own(t, s, inc(t, "clock"), 1), s)
		})
	}
}

// TestFloorBesideAStart reads the least started run while the start of an older one
// waits for a row: a later start of its job sees it all the same.
func TestFloorBesideAStart(t *testing.T) {
	t.Parallel()
	await.Until(t, "the start still waits when the reading comes", func() bool { return floorBesideAStart(t) })
}

// floorBesideAStart reports whether the two met: the start does not wait for long.
func floorBesideAStart(t *testing.T) (met bool) {
	t.Helper()
	s := open(t, postgres.Config{})
	a := own(t, s, inc(t, "floor"), 1)
	pool := pgtest.SharedPool(t)
	job, other := a.job(), a.job()
	oldest := a.planned(job)
	a.started(other)
	again := job
	again.Next = job.Next.Add(time.Hour)
	youngest := a.planned(again)
	tx, err := pool.Begin(a.ctx)
	must(t, err)
	_, err = tx.Exec(a.ctx, "select 1 from \""+postgres.SchemaOf(s)+"\".xxl_job_log where id = $1 for update", oldest.ID)
	must(t, err)
	answer, raised := make(chan store.Started, 1), make(chan error, 1)
	go func() { answer <- a.serially(t, oldest, job.Version, "") }()
	await.Until(t, "the start waits", func() bool { return len(answer) > 0 || blocked(t, s) })
	go func() { raised <- postgres.RaiseStarted(a.ctx, s) }()
	await.Until(t, "the reading waits for its turn, or is over", func() bool { return len(raised) > 0 || postgres.WaitForStarts(s) == 1 })
	must(t, tx.Rollback(a.ctx))
	first := <-answer
	must(t, <-raised)
	if first.Status == store.StartLocked {
		return false
	}
	if second := a.serially(t, youngest, job.Version, ""); first.Status != store.StartOK || second.Status != store.StartBusy {
		t.Errorf("the starts of two runs of a serial job: %d, %d, want ok and busy", first.Status, second.Status)
	}
	return true
}

// TestTwoEpochsOfOneShard: beside what has the shard's epoch, what has another
// changes nothing.
func TestTwoEpochsOfOneShard(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, inc(t, "epochs"), 1)
	good, stale := a.startOf(a.planned(a.job()), 1), a.startOf(a.planned(a.job()), 1)
	stale.Epoch--
	answers, err := a.Start(a.ctx, nil, []store.Start{good, stale})
	must(t, err)
	if answers[0].Status != store.StartOK || answers[1].Status != store.StartFenced {
		t.Errorf("starts: %d, %d, want ok and fenced", answers[0].Status, answers[1].Status)
	}
	lost := func(r store.Run, behind int64) store.Verdict {
		return store.Verdict{RunID: r.ID, Shard: r.Shard, Epoch: a.epoch(r.Shard) - behind, Owner: r.Owner, Token: r.Token, Taken: true, To: store.StateLost}
	}
	one, two := a.started(a.job()), a.started(a.job())
	changed, err := s.Settle(a.ctx, []store.Verdict{lost(one, 0), lost(two, 1)})
	must(t, err)
	if len(changed) != 1 || changed[0].ID != one.ID {
		t.Errorf("settled %+v, want run %d alone", changed, one.ID)
	}
}

// TestLateResultWhileCareful: that rows were locked of late keeps no late result
// from being noted.
func TestLateResultWhileCareful(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Config{})
	a := own(t, s, inc(t, "late"), 1)
	r := a.started(a.job())
	_, err := s.Settle(a.ctx, []store.Verdict{{RunID: r.ID, Shard: r.Shard, Epoch: a.epoch(r.Shard), Owner: r.Owner, Token: r.Token, Taken: true, To: store.StateLost}})
	must(t, err)
	postgres.BeCareful(s)
	for range 2 {
		_, err = s.Finish(a.ctx, nil, []store.Result{result(r)})
		must(t, err)
	}
	got, err := s.Run(a.ctx, r.ID)
	must(t, err)
	if n := strings.Count(got.TriggerMsg, "after the run was lost"); got.State != store.StateLost || n != 1 {
		t.Errorf("the run is %v, noted %d times: %q", got.State, n, got.TriggerMsg)
	}
}

// slowAnswer holds back the answer to one commit.
type slowAnswer struct {
	armed     atomic.Bool
	hit, goOn chan struct{}
}

func (s *slowAnswer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, s, d.SQL)
}

func (s *slowAnswer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	s.answered(ctx.Value(s))
}

func (s *slowAnswer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (s *slowAnswer) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	s.answered(d.SQL)
}

func (s *slowAnswer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (s *slowAnswer) answered(sql any) {
	if sql == "commit" && s.armed.CompareAndSwap(true, false) {
		close(s.hit)
		<-s.goOn
	}
}

// TestAnEndFromBeforeTheTake: a run whose end is acknowledged after its shard was
// taken was not counted then, and is not counted back.
func TestAnEndFromBeforeTheTake(t *testing.T) {
	t.Parallel()
	schema := made.take(t)
	held := &slowAnswer{hit: make(chan struct{}), goOn: make(chan struct{})}
	traced := pgtest.SharedPool(t).Config()
	traced.ConnConfig.Tracer = held
	pool, err := pgxpool.NewWithConfig(t.Context(), traced)
	must(t, err)
	t.Cleanup(pool.Close)
	at := func(p *pgxpool.Pool) *postgres.Store {
		s, err := postgres.New(t.Context(), p, postgres.Config{Schema: schema})
		must(t, err)
		t.Cleanup(s.Close)
		return s
	}
	q, p := at(pgtest.SharedPool(t)), at(pool)
	former := own(t, q, inc(t, "former"), 1)
	next, _ := join(t, p, inc(t, "next"), 1)
	third, _ := join(t, q, inc(t, "third"), 1)
	job := former.job()
	plan := former.plan(job)
	for i := range 2 {
		plan.Runs = append(plan.Runs, store.NewRun{At: job.Next.Add(time.Duration(i+1) * time.Second), Type: store.TriggerCron, State: store.StatePlanned})
	}
	runs, err := former.Claim(former.ctx, nil, []store.Plan{plan})
	must(t, err)
	first := former.serially(t, runs[0], job.Version, store.LocalAddress(next.inc))
	former.serially(t, runs[1], job.Version, store.LocalAddress(third.inc))
	_, err = p.Take(next.ctx, next.inc, []int64{first.Run.ID})
	must(t, err)
	must(t, q.Leave(former.ctx, former.inc))
	view := next.beat()
	held.armed.Store(true)
	done := make(chan error, 1)
	go func() { _, err := p.Finish(next.ctx, nil, []store.Result{result(first.Run)}); done <- err }()
	select {
	case <-held.hit:
	case err := <-done:
		t.Fatalf("the result was stored without the commit that is held back: %v", err)
	}
	next.shards, err = p.TakeShards(next.ctx, next.inc, view.Shards)
	must(t, err)
	close(held.goOn)
	must(t, <-done)
	if got := next.serially(t, runs[2], job.Version, store.LocalAddress(third.inc)); got.Status != store.StartBusy {
		t.Errorf("a third run where the second is: %d, want busy", got.Status)
	}
}

// TestAJobOfAnotherProcessWithinALongWindow is found by the next scan, without a
// hint: a scan begins before now, however far ahead it looks.
func TestAJobOfAnotherProcessWithinALongWindow(t *testing.T) {
	t.Parallel()
	s, o := twoStores(t, func(c *postgres.Config) { c.LeaseMode = postgres.LeaseRow })
	a := own(t, s, inc(t, "region"), 1)
	due := func() int {
		res, err := s.Scan(a.ctx, store.ScanResult{}, store.ScanQuery{Shards: a.shards, Before: time.Now().Add(30 * time.Second), Jobs: 10, Runs: 10})
		must(t, err)
		return len(res.Jobs)
	}
	due()
	must(t, o.SetShards(a.ctx, 1))
	job := newJob()
	job.Next = time.Now().Add(2 * time.Second)
	_, err := o.AddJob(a.ctx, job, nil)
	must(t, err)
	if n := due(); n != 1 {
		t.Errorf("the next scan finds %d jobs, want the one that is due in two seconds", n)
	}
}

// TestAnIDThatIsTaken is not a key that is taken: an import may have left the sequence
// behind, and who looks for the key finds none.
func TestAnIDThatIsTaken(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := openOn(t, pool, postgres.Config{})
	must(t, s.SetShards(t.Context(), 1))
	job := newJob()
	job.Key = "one"
	_, err := s.AddJob(t.Context(), job, nil)
	must(t, err)
	if _, err := s.AddJob(t.Context(), job, nil); !errors.Is(err, store.ErrDuplicateKey) {
		t.Errorf("a job with the same key: %v", err)
	}
	_, err = pool.Exec(t.Context(), `select setval($1, 1, false)`, pgx.Identifier{postgres.SchemaOf(s), "xxl_job_info_id"}.Sanitize())
	must(t, err)
	job.Key = "another"
	if _, err := s.AddJob(t.Context(), job, nil); err == nil || errors.Is(err, store.ErrDuplicateKey) {
		t.Errorf("a job with an id that is taken: %v", err)
	}
}

// TestARunOfAMonthIsNotOneOfAYear: how long a run has to have taken is not cut.
func TestARunOfAMonthIsNotOneOfAYear(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := made.take(t)
	s, a := openAt(t, pool, schema)
	job, err := s.AddJob(t.Context(), newJob(), nil)
	must(t, err)
	month := a.started(job)
	_, err = s.Finish(t.Context(), nil, []store.Result{result(month)})
	must(t, err)
	const day = 24 * time.Hour
	run(t, pool, "update "+schema+".xxl_job_log set trigger_time = handle_time - interval '720 hours' where id = $1", month.ID)
	for _, c := range []struct {
		slower time.Duration
		found  int
	}{{30*day - time.Millisecond, 1}, {30 * day, 1}, {30*day + time.Millisecond, 0}, {365 * day, 0}} {
		found, err := s.SearchRuns(t.Context(), store.RunSearch{Slower: c.slower})
		must(t, err)
		if len(found.Runs) != c.found {
			t.Errorf("%d runs took %v, want %d", len(found.Runs), c.slower, c.found)
		}
	}
}
