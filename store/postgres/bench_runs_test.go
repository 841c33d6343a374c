package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
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
	"github.com/xxljob/xxljob/internal/pgtest"
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
	cfg.Logger = slog.New(slog.DiscardHandler)
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
