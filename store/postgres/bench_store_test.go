package postgres

// What consoles and dashboards ask, measured: make bench-store.

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/store"
)

// benchJobs is how many jobs the million runs are of.
const benchJobs = 10_000

// benchQuery is a row of the table. The bound is on the median: what a page takes as a rule,
// whatever else the machine does. Of rows there may be so many examined, entries of indexes
// included; what a search goes through is counted once where it looks for its end, and once
// where it reads.
type benchQuery struct {
	name  string
	bound time.Duration
	rows  int
	ask   func(context.Context) error
}

// asks makes a query of a call.
func asks[T any](name string, bound time.Duration, rows int, call func(context.Context) (T, error)) benchQuery {
	return benchQuery{name, bound, rows, func(ctx context.Context) error {
		_, err := call(ctx)
		return err
	}}
}

// The bounds of searches: of runs, which look at no more than 20,000, and of jobs, of which there
// are so few that they may look at all, in both of their tables.
const (
	mostOfSearch = 2*20_000 + 2_000
	mostOfJobs   = 3*benchJobs + 2_000
)

// benchQueries are those that section 12 of the console's specification bounds.
func (d *planData) benchQueries() []benchQuery {
	parent, bad := idAt(d.now.Add(-time.Minute)), []store.State{store.StateFailed, store.StateLost}
	middle := d.now.Add(-15 * day)
	search := func(name string, bound time.Duration, q store.RunSearch) benchQuery {
		return asks("SearchRuns "+name, bound, mostOfSearch, func(ctx context.Context) (store.RunsFound, error) { return d.SearchRuns(ctx, q) })
	}
	jobs := func(name string, q store.JobSearch) benchQuery {
		return asks("SearchJobs "+name, 50*time.Millisecond, mostOfJobs, func(ctx context.Context) ([]store.Job, error) { return d.SearchJobs(ctx, q) })
	}
	values := func(field, prefix string) benchQuery {
		return asks("JobValues of "+field, 20*time.Millisecond, mostOfJobs, func(ctx context.Context) ([]string, error) { return d.JobValues(ctx, field, prefix, 20) })
	}
	last := func(n, each int) benchQuery {
		return asks(fmt.Sprintf("LastRuns of %d jobs x %d", n, each), 20*time.Millisecond, 2*n*each+3*n+1000, func(ctx context.Context) ([]store.Run, error) { return d.LastRuns(ctx, jobIDs(n, 7), each) })
	}
	return slices.Concat(d.benchSeeing(), []benchQuery{
		asks("View", 5*time.Millisecond, 1000, d.View),
		search("all", 50*time.Millisecond, store.RunSearch{}),
		search("of a rare app", 50*time.Millisecond, store.RunSearch{Apps: []string{"nowhere"}}),
		search("of three apps", 50*time.Millisecond, store.RunSearch{Apps: []string{"app-1", "app-2", "nowhere"}}),
		search("of a text that none has", 50*time.Millisecond, store.RunSearch{Text: "nothing at all"}),
		search("of a day", 50*time.Millisecond, store.RunSearch{Since: middle, Until: middle.Add(day)}),
		search("of a day of a rare app", 50*time.Millisecond, store.RunSearch{Since: middle, Until: middle.Add(day), Apps: []string{"nowhere"}}),
		search("bad", 50*time.Millisecond, store.RunSearch{States: bad}),
		search("rare among the bad", 50*time.Millisecond, store.RunSearch{States: []store.State{store.StateKilled}}),
		search("skipped", 20*time.Millisecond, store.RunSearch{States: []store.State{store.StateSkipped}}),
		search("of a job", 50*time.Millisecond, store.RunSearch{JobIDs: []int64{4242}}),
		search("slower than any", 50*time.Millisecond, store.RunSearch{Slower: time.Hour}),
		search("later than any", 50*time.Millisecond, store.RunSearch{LateBy: time.Hour}),
		last(50, 10), last(200, 1),
		asks("Children", 20*time.Millisecond, 500, func(ctx context.Context) ([]store.Run, error) { return d.Children(ctx, parent, 0, 100) }),
		asks("Waiting", 20*time.Millisecond, 1000, func(ctx context.Context) ([]store.Run, error) { return d.Waiting(ctx, store.Run{}, 100) }),
		asks("OpenRuns", 20*time.Millisecond, 2*20_000+1000, func(ctx context.Context) (store.OpenRuns, error) { return d.OpenRuns(ctx, 10_000) }),
		jobs("by name", store.JobSearch{Order: store.ByName}),
		jobs("by name, on", store.JobSearch{Order: store.ByName, After: store.Job{ID: 5000, Name: "job 5000"}}),
		jobs("by next", store.JobSearch{Order: store.ByNext}),
		jobs("of a tag", store.JobSearch{Tags: []string{"tag-50"}}),
		jobs("of a text", store.JobSearch{Text: "Job 4242"}),
		jobs("of a stop reason", store.JobSearch{StopReason: "finished"}),
		asks("CountJobs", 20*time.Millisecond, mostOfJobs, d.CountJobs),
		values(store.FieldApp, "app-1"), values(store.FieldHandler, "hand"), values(store.FieldAuthor, ""), values(store.FieldTag, "tag"),
		asks("Schedules, all of them", 50*time.Millisecond, mostOfJobs, func(ctx context.Context) ([]store.Job, error) { return d.Schedules(ctx, 0, benchJobs) }),
	})
}

// benchSeeing are questions about reports, the record of changes, logs, and what a deletion would
// take.
func (d *planData) benchSeeing() []benchQuery {
	const bound = 20 * time.Millisecond
	reports := func(name string, q store.ReportQuery, length time.Duration, rows int) benchQuery {
		q.Length = length
		return asks("Reports "+name, bound, rows, func(ctx context.Context) (store.ReportsFound, error) { return d.Reports(ctx, q) })
	}
	changes := func(name string, q store.ChangeSearch) benchQuery {
		return asks("SearchChanges "+name, bound, mostOfSearch, func(ctx context.Context) (store.ChangesFound, error) { return d.SearchChanges(ctx, q) })
	}
	month := d.reportQuery(store.QuartersKept)
	month.Apps = []string{"app-3"}
	return []benchQuery{
		reports("of a day by hours, ten apps", d.reportQuery(store.ReportDay), time.Hour, 8000),
		reports("of an app, 35 days by hours", month, time.Hour, 16_000),
		changes("all", store.ChangeSearch{}),
		changes("of a job", store.ChangeSearch{JobID: 4242}),
		changes("of an app", store.ChangeSearch{Apps: []string{"app-3"}}),
		changes("of nobody", store.ChangeSearch{Actor: "nobody"}),
		changes("of a verb", store.ChangeSearch{Verb: "remove"}),
		asks("LogPages, the tail", bound, 1000, func(ctx context.Context) (int, error) {
			_, last, err := d.LogPages(ctx, d.logged[10], -100, 100)
			return last, err
		}),
		asks("DropEnded of 1,000 runs, dry", 50*time.Millisecond, 20_000, func(ctx context.Context) (store.Dropped, error) {
			return d.DropEnded(ctx, store.RunDrop{All: true, DryRun: true})
		}),
	}
}

// BenchmarkStore measures each query so many times as XXLJOB_BENCH_STORE says, or a hundred
// times, one after the other and with nothing beside it, and fails where a bound is exceeded.
func BenchmarkStore(b *testing.B) {
	rounds, _ := strconv.Atoi(os.Getenv("XXLJOB_BENCH_STORE"))
	if rounds < 1 {
		rounds = 100
	}
	const name = "bench-store"
	var opts []pgtest.Option
	if os.Getenv("XXLJOB_TEST_DATABASE_URL") == "" {
		c := pgtest.Start(b, pgtest.Options{Settings: map[string]string{"shared_buffers": "512MB", "max_wal_size": "4GB"}})
		opts = append(opts, pgtest.At(c.DSN("postgres")))
	}
	opts = append(opts, pgtest.With(func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = name }))
	began := time.Now()
	d := &planData{Store: emptyPlanStore(b, opts...), jobs: benchJobs}
	d.fillRuns(b)
	d.fillReports(b)
	d.fillLogs(b)
	d.fillRecord(b)
	d.analyze(b)
	d.readBack(b)
	d.took(b, began)
	d.sayWhere(b, "Store", rounds)
	fmt.Printf("%-36s %9s %9s %9s %9s %9s\n", "query", "p50 ms", "p99 ms", "bound ms", "rows", "bound")
	for _, q := range d.benchQueries() {
		took, rows := d.measure(b, q, rounds, name)
		p50, p99, note := took[len(took)/2], took[(len(took)*99-1)/100], ""
		if p50 > q.bound {
			b.Errorf("%s takes %v, at most %v", q.name, p50, q.bound)
			note = "  TOO SLOW"
		}
		if rows > q.rows {
			b.Errorf("%s looks at %d rows, at most %d", q.name, rows, q.rows)
			note += "  TOO MANY ROWS"
		}
		fmt.Printf("%-36s %9.2f %9.2f %9.0f %9d %9d%s\n", q.name, ms(p50), ms(p99), ms(q.bound), rows, q.rows, note)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// measure returns how long each of the rounds took, sorted, and how many rows a round examines,
// on an average. All are of one session, as those of a console are: the server plans the first
// five anew, which do not count.
func (d *planData) measure(t testing.TB, q benchQuery, rounds int, name string) (took []time.Duration, rows int) {
	t.Helper()
	const first = 6
	ask := func(times int) (took []time.Duration, examined int) {
		before := d.examinedSoFar(t, name)
		for range times {
			began := time.Now()
			if err := q.ask(t.Context()); err != nil {
				t.Fatalf("%s: %v", q.name, err)
			}
			took = append(took, time.Since(began))
		}
		return took, d.examinedSoFar(t, name) - before
	}
	_, few := ask(first)
	took, all := ask(first + rounds)
	took = took[first:]
	slices.Sort(took)
	return took, (all - few) / rounds
}

// examinedSoFar is how many rows of tables and entries of indexes were read in the schema. A
// session says so at its end.
func (d *planData) examinedSoFar(t testing.TB, name string) (n int) {
	t.Helper()
	d.pool.Reset()
	watch, err := pgxpool.NewWithConfig(t.Context(), watcherOf(d.pool))
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	for open := 1; open > 0; {
		if err := watch.QueryRow(t.Context(), "select count(*) from pg_stat_activity where application_name = $1", name).Scan(&open); err != nil {
			t.Fatal(err)
		}
	}
	if err := watch.QueryRow(t.Context(), `select (select coalesce(sum(seq_tup_read), 0) from pg_stat_user_tables where schemaname = $1)
		+ (select coalesce(sum(idx_tup_read), 0) from pg_stat_user_indexes where schemaname = $1)`, strings.Trim(d.schema, `"`)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// watcherOf is a pool beside another one, under another name.
func watcherOf(pool *pgxpool.Pool) *pgxpool.Config {
	c := pool.Config()
	c.MinConns, c.MaxConns = 0, 1
	c.ConnConfig.RuntimeParams["application_name"] = "watcher"
	return c
}

// sayWhere prints what the figures depend on.
func (d *planData) sayWhere(t testing.TB, bench string, rounds int) {
	t.Helper()
	var version, buffers, work, jit string
	if err := d.pool.QueryRow(t.Context(), "select current_setting('server_version'), current_setting('shared_buffers'), current_setting('work_mem'), current_setting('jit')").Scan(&version, &buffers, &work, &jit); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("command:  XXLJOB_BENCH_%s=%d go test ./store/postgres -run '^$' -bench '^Benchmark%s$' -benchtime 1x\n", strings.ToUpper(bench), rounds, bench)
	fmt.Printf("settings: Postgres %s on the same machine, shared_buffers=%s work_mem=%s jit=%s; %d runs of %d jobs in %d partitions, %d rounds each, one at a time\n",
		version, buffers, work, jit, planRuns, d.jobs, planDays, rounds)
	fmt.Printf("machine:  %s, %d cores, %s/%s, %s\n", processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// processor is the name of the processor, where the system tells it.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, model, ok := strings.Cut(lines.Text(), ":"); ok && strings.HasPrefix(key, "model name") {
			return strings.TrimSpace(model)
		}
	}
	return "unknown processor"
}

// BenchmarkScan measures one look for what is due, with jobs that wait for later
// and none that is due: it must not cost more where more of them wait. "ratio" is
// to the least number; the goal is 1.2.
//
//	go test -v -run '^$' -bench 'Scan$' -benchtime 2000x ./store/postgres
func BenchmarkScan(b *testing.B) {
	var least time.Duration
	for _, jobs := range []int{10_000, 1_000_000} {
		d := waitingJobs(b, jobs)
		if least == 0 {
			d.logSettings(b)
		}
		b.Run(fmt.Sprintf("waiting=%d", jobs), func(b *testing.B) {
			median := d.scans(b)
			if least == 0 || jobs == 10_000 {
				least = median
			}
			b.ReportMetric(float64(median.Nanoseconds())/1000, "median-µs")
			b.ReportMetric(float64(median)/float64(least), "ratio")
		})
	}
}

// scans returns the median of b.N scans. On a machine that does other things as
// well it says more than the mean.
func (d *planData) scans(b *testing.B) time.Duration {
	b.Helper()
	q := store.ScanQuery{Shards: d.allShards(), Before: d.now, Jobs: 1000, Runs: 1000}
	took := make([]time.Duration, 0, b.N)
	b.ResetTimer()
	for range b.N {
		began := time.Now()
		res, err := d.Scan(b.Context(), store.ScanResult{}, q)
		took = append(took, time.Since(began))
		if err != nil {
			b.Fatal(err)
		}
		if len(res.Jobs) > 0 || res.Next.IsZero() {
			b.Fatalf("%d jobs are due, and the next at %v: want none, and a next", len(res.Jobs), res.Next)
		}
	}
	b.StopTimer()
	slices.Sort(took)
	return took[len(took)/2]
}

// waitingJobs makes jobs that are due within the next day, but not yet.
func waitingJobs(b *testing.B, jobs int) *planData {
	b.Helper()
	d := &planData{Store: emptyPlanStore(b), jobs: planJobs}
	d.readClock(b)
	d.exec(b, `insert into {{schema}}.xxl_job_lock (lock_name, shard, owner, epoch) select 'shard_' || n, n, $1, $2 from generate_series(0, 31) n`, planNode, planEpoch)
	d.exec(b, `insert into {{schema}}.xxl_job_next (trigger_next_time, trigger_last_time, wait_run, version, delay, job_id, shard, trigger_status, manual, app_name)
	select $2::bigint + 3600000 + n::bigint * 7919 % 86400000, 0, 0, 1, 0, n, n % 32, 1, false, 'app' from generate_series(1, $1) n`, jobs, d.now.UnixMilli())
	d.exec(b, "vacuum (analyze) {{schema}}.xxl_job_next, {{schema}}.xxl_job_lock")
	return d
}

// logSettings prints what the figures depend on.
func (d *planData) logSettings(b *testing.B) {
	b.Helper()
	var version, fsync, buffers string
	if err := d.pool.QueryRow(b.Context(), "select current_setting('server_version'), current_setting('fsync'), current_setting('shared_buffers')").Scan(&version, &fsync, &buffers); err != nil {
		b.Fatal(err)
	}
	b.Logf("Postgres %s on the same machine, %d cores for both: fsync=%s shared_buffers=%s", version, runtime.NumCPU(), fsync, buffers)
}
