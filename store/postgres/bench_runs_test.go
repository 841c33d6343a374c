package postgres_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// benchFor is how long a benchmark measures; it is the same for all, whatever
// -benchtime says, for percentiles and the audit need the same span each time.
const benchFor = 30 * time.Second

// bench is a scheduler on Postgres with a handler that does nothing but note when
// it was called.
type bench struct {
	*testing.B
	pool  *pgxpool.Pool
	store *postgres.Store
	sched xxljob.Scheduler

	mu    sync.Mutex
	calls []call // guarded by mu
	since int    // guarded by mu: where the calls of a measurement begin
}

// call has no pointers, so that a million of them are nothing to the collector.
type call struct {
	job, run int64
	at       int64 // the instant, in milliseconds
	late     time.Duration
}

func newBench(b *testing.B, cfg xxljob.Config) *bench {
	b.Helper()
	x := newBenchOn(b, benchPool(b), cfg, postgres.Config{})
	x.settings()
	return x
}

// newBenchOn is newBench in a new schema of a database.
func newBenchOn(b *testing.B, pool *pgxpool.Pool, cfg xxljob.Config, of postgres.Config) *bench {
	b.Helper()
	x := &bench{B: b, pool: pool, calls: make([]call, 0, 1<<20)}
	x.store = (&schemas{pool: x.pool}).open(b, x.pool, of)
	cfg.Logger, cfg.App = slog.New(slog.DiscardHandler), cmp.Or(cfg.App, "bench")
	s, err := xxljob.New(x.store, cfg)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Handle("noop", x.handle); err != nil {
		b.Fatal(err)
	}
	x.sched = s
	return x
}

// benchPool is on a cluster of the benchmark's own, with memory and room for WAL as a
// server of a database has them and a test's has not; or on the server that the
// environment names, as that is set.
func benchPool(b *testing.B) *pgxpool.Pool {
	if os.Getenv("XXLJOB_TEST_DATABASE_URL") != "" {
		return pgtest.Pool(b)
	}
	c := pgtest.Start(b, pgtest.Options{Settings: map[string]string{"shared_buffers": "512MB", "max_wal_size": "4GB"}})
	return pgtest.Pool(b, pgtest.At(c.DSN("postgres")))
}

func (x *bench) handle(_ context.Context, t *xxljob.Task) error {
	late := time.Since(t.ScheduledAt)
	x.mu.Lock()
	x.calls = append(x.calls, call{t.JobID, t.RunID, t.ScheduledAt.UnixMilli(), late})
	x.mu.Unlock()
	return nil
}

// settings prints what makes the figures durable or not.
func (x *bench) settings() {
	var version, fsync, commit, pages, wal, buffers, most string
	err := x.pool.QueryRow(context.Background(), `select current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'),
	current_setting('full_page_writes'), current_setting('wal_level'), current_setting('shared_buffers'), current_setting('max_wal_size')`).Scan(&version, &fsync, &commit, &pages, &wal, &buffers, &most)
	if err != nil {
		x.Fatal(err)
	}
	x.Logf("Postgres %s on the same machine, %d cores for both: fsync=%s synchronous_commit=%s full_page_writes=%s wal_level=%s shared_buffers=%s max_wal_size=%s",
		version, runtime.NumCPU(), fsync, commit, pages, wal, buffers, most)
}

func (x *bench) start() {
	x.Helper()
	if err := x.sched.Start(context.Background()); err != nil {
		x.Fatal(err)
	}
	x.Cleanup(x.stop)
}

func (x *bench) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := x.sched.Stop(ctx); err != nil {
		x.Error(err)
	}
}

// add makes n jobs through the scheduler in bulk: their definitions are inserted
// by one statement, for adding them is not what is measured. Each is due every
// period from its own first instant on.
func (x *bench) add(n int, period time.Duration, first func(i int) time.Time) {
	x.Helper()
	ctx := context.Background()
	if _, err := x.sched.AddJob(ctx, store.Job{Name: "first", Handler: "noop", Schedule: schedule.FixedRate(period), Stopped: true}); err != nil {
		x.Fatal(err)
	}
	next := make([]int64, n)
	for i := range next {
		next[i] = first(i).UnixMilli()
	}
	schema := x.schema()
	sql := fmt.Sprintf(`with d as (select *, nextval('%[1]s.xxl_job_info_id')::int id from unnest($1::bigint[]) with ordinality u(next, ord)),
	i as (insert into %[1]s.xxl_job_info select d.id, d.id %% 32, 1, app_name, 'job ' || d.ord, 'job ' || d.ord, author, alarm_email, schedule_type,
		schedule_conf, schedule_zone, schedule_dst, misfire_strategy, catch_up, executor_route_strategy, executor_handler, executor_param,
		executor_block_strategy, executor_timeout, executor_fail_retry_count, on_lost, glue_type, glue_source, glue_remark, glue_updatetime,
		child_jobid, 1, '', ensured, add_time, update_time from %[1]s.xxl_job_info f, d where f.job_key = 'first')
	insert into %[1]s.xxl_job_next select d.next, 0, 0, 1, 0, d.id, d.id %% 32, 1, false, f.app_name
	from %[1]s.xxl_job_next f, d`, schema)
	if _, err := x.pool.Exec(ctx, sql, next); err != nil {
		x.Fatal(err)
	}
	if _, err := x.pool.Exec(ctx, fmt.Sprintf("analyze %[1]s.xxl_job_info; analyze %[1]s.xxl_job_next", schema)); err != nil {
		x.Fatal(err)
	}
}

func (x *bench) schema() string { return strconv.Quote(postgres.SchemaOf(x.store)) }

// measure takes the calls of the span, and reports them.
func (x *bench) measure(during time.Duration) {
	x.Helper()
	time.Sleep(3 * time.Second) // until the window ahead is planned and the caches are warm
	before := x.counters()
	x.mu.Lock()
	from := len(x.calls)
	x.mu.Unlock()
	began := time.Now()
	time.Sleep(during)
	took := time.Since(began)
	x.mu.Lock()
	calls := slices.Clone(x.calls[from:])
	x.mu.Unlock()
	after := x.counters()
	x.report(calls, took)
	runs := float64(len(calls))
	x.ReportMetric((after.wal-before.wal)/runs, "WAL-B/run")
	x.ReportMetric((after.versions-before.versions)/runs, "rowversions/run")
}

func (x *bench) report(calls []call, took time.Duration) {
	late := make([]time.Duration, len(calls))
	early := 0
	for i, c := range calls {
		late[i] = c.late
		if c.late < 0 {
			early++
		}
	}
	slices.Sort(late)
	at := func(p float64) float64 {
		if len(late) == 0 {
			return -1
		}
		return float64(late[min(int(p*float64(len(late))), len(late)-1)].Microseconds()) / 1000
	}
	x.ReportMetric(float64(len(calls))/took.Seconds(), "runs/s")
	x.ReportMetric(at(0.50), "p50-ms")
	x.ReportMetric(at(0.99), "p99-ms")
	x.ReportMetric(at(1), "max-ms")
	x.ReportMetric(float64(early), "early")
	x.ReportMetric(0, "ns/op")
}

// counters are the server's.
type counters struct{ wal, versions float64 }

func (x *bench) counters() (c counters) {
	time.Sleep(1100 * time.Millisecond) // the server's statistics come in once a second
	err := x.pool.QueryRow(context.Background(), `select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8,
	(select coalesce(sum(n_tup_ins + n_tup_upd), 0)::float8 from pg_stat_user_tables where schemaname = $1)`, postgres.SchemaOf(x.store)).Scan(&c.wal, &c.versions)
	if err != nil {
		x.Fatal(err)
	}
	return c
}

// audit compares the calls with the schedule: from a job's first call to its last
// one there has to be one for each period.
func (x *bench) audit(period time.Duration) {
	x.Helper()
	x.stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	byJob := map[int64][]int64{}
	for _, c := range x.calls {
		byJob[c.job] = append(byJob[c.job], c.at)
	}
	lost, double := 0, 0
	for _, at := range byJob {
		slices.Sort(at)
		for i := 1; i < len(at); i++ {
			switch gap := at[i] - at[i-1]; {
			case gap == 0:
				double++
			case gap != period.Milliseconds():
				lost += int(gap/period.Milliseconds()) - 1
			}
		}
	}
	var unended, skipped, bad int
	err := x.pool.QueryRow(context.Background(), fmt.Sprintf(`select count(*) filter (where state in (1, 2)), count(*) filter (where state = 10),
	count(*) filter (where state in (4, 5, 6, 7, 8, 9)) from %s.xxl_job_log`, x.schema())).Scan(&unended, &skipped, &bad)
	if err != nil {
		x.Fatal(err)
	}
	var reasons string
	err = x.pool.QueryRow(context.Background(), fmt.Sprintf(`select coalesce(string_agg(distinct l.reason || ' of ' || l.instants || ' at ' || to_timestamp(l.scheduled_time / 1000) || ', planned at ' || l.add_time, '; '), '')
	from (select * from %s.xxl_job_log where state = 10 order by id limit 3) l`, x.schema())).Scan(&reasons)
	if err != nil {
		x.Fatal(err)
	}
	x.Logf("audit of %d calls of %d jobs: lost %d, double %d, unended %d, skipped %d, failed %d; %s", len(x.calls), len(byJob), lost, double, unended, skipped, bad, reasons)
	if lost+double+unended+skipped+bad > 0 {
		x.Errorf("the audit is not clean")
	}
}

// BenchmarkOneSecondJobs measures how many runs a second come through, from the
// claim to the recorded success, with one-second jobs spread over the second.
func BenchmarkOneSecondJobs(b *testing.B) {
	for _, jobs := range []int{2_000, 10_000, 20_000, 25_000} {
		b.Run(strconv.Itoa(jobs), func(b *testing.B) {
			for range b.N {
				x := newBench(b, xxljob.Config{})
				now := time.Now().Add(2 * time.Second)
				x.add(jobs, time.Second, func(i int) time.Time { return now.Add(time.Duration(i) * time.Second / time.Duration(jobs)) })
				x.start()
				time.Sleep(2 * time.Second)
				x.measure(benchFor)
				x.audit(time.Second)
			}
		})
	}
}

// BenchmarkRandomJobs measures the same with 100,000 jobs that are each due every
// 4.8 seconds, at random: 20,833 runs a second fall due.
func BenchmarkRandomJobs(b *testing.B) {
	for range b.N {
		x := newBench(b, xxljob.Config{})
		// Later than the pre-read, or half of all jobs would be planned at once while the
		// first are due.
		now := time.Now().Add(10 * time.Second)
		x.add(100_000, 4800*time.Millisecond, func(int) time.Time { return now.Add(rand.N(4800 * time.Millisecond)) })
		x.start()
		time.Sleep(12 * time.Second)
		x.measure(benchFor)
		x.audit(4800 * time.Millisecond)
	}
}

// BenchmarkParentToChild measures the time from the return of a parent's handler to the call of
// its child's: with the scheduler alone, and with two whose stores are as far apart as those of
// two processes, so that either may own the shard of the other's parent.
func BenchmarkParentToChild(b *testing.B) {
	for _, nodes := range []int{1, 2} {
		for _, mode := range []postgres.LeaseMode{postgres.LeaseLock, postgres.LeaseRow} {
			b.Run(fmt.Sprintf("%d nodes/%s", nodes, mode), func(b *testing.B) {
				for range b.N {
					parentToChild(b, nodes, mode)
				}
			})
		}
	}
}

// parentToChild runs 16 pairs of jobs, whose shards differ, 15 times each, one after the other.
func parentToChild(b *testing.B, nodes int, mode postgres.LeaseMode) {
	const pairs, rounds = 16, 15
	x := &hostBench{B: b, pool: benchPool(b)}
	cfg := postgres.Config{Schema: (&schemas{pool: x.pool}).take(b), LeaseMode: mode, Logger: slog.New(slog.DiscardHandler)}
	var mu sync.Mutex
	ended := map[string]time.Time{}
	began := make(chan time.Duration, 1)
	for n := range nodes {
		s, err := postgres.New(b.Context(), x.pool, cfg)
		x.must(err)
		b.Cleanup(s.Close)
		sched, err := xxljob.New(s, xxljob.Config{App: "bench", Node: fmt.Sprint("node-", n), Logger: cfg.Logger})
		x.must(err)
		x.must(sched.Handle("parent", func(_ context.Context, t *xxljob.Task) error {
			mu.Lock()
			defer mu.Unlock()
			ended[t.JobKey] = time.Now()
			return nil
		}))
		x.must(sched.Handle("child", func(_ context.Context, t *xxljob.Task) error {
			mu.Lock()
			defer mu.Unlock()
			began <- time.Since(ended[t.Param])
			return nil
		}))
		x.must(sched.Start(b.Context()))
		defer func() { x.must(sched.Stop(context.Background())) }()
		x.sched = sched
	}
	var parents []int64
	for i := range pairs {
		key := fmt.Sprint("parent-", i)
		child, err := x.sched.AddJob(b.Context(), store.Job{Name: "child of " + key, Handler: "child", Param: key})
		x.must(err)
		parent, err := x.sched.AddJob(b.Context(), store.Job{Key: key, Name: key, Handler: "parent", Children: []int64{child.ID}})
		x.must(err)
		parents = append(parents, parent.ID)
	}
	time.Sleep(6 * time.Second) // until the nodes have shared out the shards
	var took []float64
	for range rounds {
		for _, id := range parents {
			_, err := x.sched.Trigger(b.Context(), id, store.Trigger{})
			x.must(err)
			took = append(took, (<-began).Seconds()*1000)
			time.Sleep(10 * time.Millisecond)
		}
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "p50-ms")
	b.ReportMetric(took[len(took)*99/100], "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// drained is how many waiting runs, of drainJobs jobs, one round of BenchmarkDrain drains;
// drainRounds is how many rounds there are with reports, and as many without.
const (
	drained     = 100_000
	drainJobs   = 5000
	drainRounds = 12
)

// BenchmarkDrain measures how many runs a second come through that are all due already, and what
// reports cost of it: rounds with reports and rounds without take turns, the first of each pair
// being now the one and now the other. ratio is the time with reports by the time without, as
// the mean over the pairs; its 95 % interval is printed.
func BenchmarkDrain(b *testing.B) {
	for range b.N {
		pool := benchPool(b)
		var pairs [drainRounds]float64
		rates := map[bool]float64{}
		for i := range pairs {
			for k := range 2 {
				without := (i+k)%2 == 1
				took := drainOnce(b, pool, postgres.Config{NoReports: without}).Seconds()
				rates[without] += drained / took / drainRounds
				if without {
					took = 1 / took
				}
				pairs[i] += math.Log(took)
			}
		}
		mean, wide := meanOf(pairs[:])
		b.Logf("%d runs of %d jobs, %d rounds each: with reports %.0f runs/s, without %.0f; ratio of the times %.3f (%.3f to %.3f)",
			drained, drainJobs, drainRounds, rates[false], rates[true], math.Exp(mean), math.Exp(mean-wide), math.Exp(mean+wide))
		b.ReportMetric(rates[false], "runs/s")
		b.ReportMetric(math.Exp(mean), "ratio")
		b.ReportMetric(0, "ns/op")
	}
}

// meanOf is the mean, and how far its 95 % interval goes to each side.
func meanOf(x []float64) (mean, wide float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	var squares float64
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	const t = 2.201 // Student's, of 11 degrees of freedom
	return mean, t * math.Sqrt(squares/(n-1)/n)
}

// drainOnce returns how long the runs took, from the call of the first handler to the end of the
// last run.
func drainOnce(b *testing.B, pool *pgxpool.Pool, cfg postgres.Config) time.Duration {
	x := newBenchOn(b, pool, xxljob.Config{}, cfg)
	defer func() {
		x.stop()
		if _, err := pool.Exec(context.Background(), "truncate "+x.schema()+".xxl_job_log; checkpoint"); err != nil {
			b.Fatal(err)
		}
	}()
	x.add(drainJobs, time.Hour, func(int) time.Time { return time.Now().Add(24 * time.Hour) })
	if _, err := x.pool.Exec(context.Background(), fmt.Sprintf(`insert into %[1]s.xxl_job_log (id, job_id, shard, app_name, state, trigger_type, scheduled_time, add_time, executor_fail_retry_count)
	select (extract(epoch from now())::bigint * 1000 - 1735689600000) * 8192 + n, j.id, j.shard, j.app_name, 0, 'MANUAL', extract(epoch from now())::bigint * 1000, now(), -1
	from generate_series(1, %[2]d) n join (select *, row_number() over (order by id) ord from %[1]s.xxl_job_info where job_key <> 'first') j on j.ord = 1 + n %% %[3]d`,
		x.schema(), drained, drainJobs)); err != nil {
		b.Fatal(err)
	}
	x.start()
	for x.called() == 0 {
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	for open := 1; open > 0; {
		time.Sleep(20 * time.Millisecond)
		if x.called() < drained {
			continue
		}
		if err := x.pool.QueryRow(context.Background(), fmt.Sprintf("select count(*) from %s.xxl_job_log where state <= 2", x.schema())).Scan(&open); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}

// called is how many handlers were called.
func (x *bench) called() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.calls)
}

// BenchmarkRedate measures how long it takes until 100,000 jobs are due as their schedules say that a
// clock has planned which was ten years ahead: from the start of the scheduler, which has to take its shards
// first.
func BenchmarkRedate(b *testing.B) {
	for range b.N {
		x := newBench(b, xxljob.Config{})
		x.add(100_000, time.Hour, func(int) time.Time { return time.Now().AddDate(10, 0, 0) })
		began, first := time.Now(), time.Duration(0)
		x.start()
		for left := 100_000; left > 0; time.Sleep(50 * time.Millisecond) {
			err := x.pool.QueryRow(context.Background(), fmt.Sprintf("select count(*)::int from %s.xxl_job_next where trigger_next_time > $1", x.schema()), time.Now().Add(2*time.Hour).UnixMilli()).Scan(&left)
			if err != nil {
				b.Fatal(err)
			}
			if left < 100_000 && first == 0 {
				first = time.Since(began)
			}
		}
		b.ReportMetric(first.Seconds(), "s-first")
		b.ReportMetric(time.Since(began).Seconds(), "s-all")
		b.ReportMetric(0, "ns/op")
		x.stop()
	}
}
