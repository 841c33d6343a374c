package postgres_test

// What a run costs the database and the process that calls it is bounded here: a statement, a
// round trip, a column, an index or a copy more is seen when it is made. All of it is counted,
// and nothing is timed.

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// budgets are the bounds. Statements, columns, versions and bytes on the wire are the same in
// each run of the test, and the others differ by less than one in a thousand: what the bounds
// leave is for other versions of Postgres, pgx and Go. Who makes a run cheaper lowers them, and
// who raises one says why.
//
// A run has three versions of its row: planned, started and ended. Its job's next instant has
// one for each claim, and the report of the app one for each call of Finish. All but those of
// HOT updates enter indexes.
func budgets() []stage.Budget {
	return []stage.Budget{
		{What: "claim, statements a call", Measured: 4, Most: 4}, // with those that begin and end a transaction
		{What: "claim, round trips a call", Measured: 1, Most: 1},
		{What: "claim, columns returned", Measured: 5, Most: 5},
		{What: "start, statements a call", Measured: 4, Most: 4},
		{What: "start, round trips a call", Measured: 1, Most: 1},
		{What: "start, columns returned", Measured: 7, Most: 7},
		{What: "finish, statements a call", Measured: 7, Most: 7},
		{What: "finish, round trips a call", Measured: 2, Most: 2},
		{What: "finish, columns returned", Measured: 9, Most: 9},
		{What: "indexes of xxl_job_log", Measured: 13, Most: 13}, // each is partial, but for the key
		{What: "indexes of xxl_job_next", Measured: 3, Most: 3},

		{What: "a look for what has ended lately, where nothing has, statements", Measured: 2, Most: 2},
		{What: "a look for what has ended lately, where nothing has, bytes both ways", Measured: 416, Most: 440},

		{What: "batches of 100, row versions a run", Measured: 4.01, Most: 4.01},
		{What: "batches of 100, row versions a run that enter indexes", Measured: 4, Most: 4.01},
		{What: "batches of 100, bytes of WAL a run", Measured: 1408, Most: 1480},
		{What: "batches of 100, bytes sent a run", Measured: 294, Most: 309},
		{What: "batches of 100, bytes received a run", Measured: 175, Most: 184},
		{What: "batches of 100, bytes allocated by claim", Measured: 225, Most: 240, Heap: true},
		{What: "batches of 100, bytes allocated by start", Measured: 246, Most: 262, Heap: true},
		{What: "batches of 100, bytes allocated by finish", Measured: 211, Most: 225, Heap: true},
		{What: "batches of 100, objects allocated by claim", Measured: 1.61, Most: 1.8, Heap: true},
		{What: "batches of 100, objects allocated by start", Measured: 1.69, Most: 1.8, Heap: true},
		{What: "batches of 100, objects allocated by finish", Measured: 2.05, Most: 2.2, Heap: true},

		{What: "batches of 1000, row versions a run", Measured: 3.501, Most: 3.501},
		{What: "batches of 1000, row versions a run that enter indexes", Measured: 3.5, Most: 3.501},
		{What: "batches of 1000, bytes of WAL a run", Measured: 1222, Most: 1285},
		{What: "batches of 1000, bytes sent a run", Measured: 208, Most: 218},
		{What: "batches of 1000, bytes received a run", Measured: 170, Most: 178},
		{What: "batches of 1000, bytes allocated by claim", Measured: 108, Most: 116, Heap: true},
		{What: "batches of 1000, bytes allocated by start", Measured: 246, Most: 262, Heap: true},
		{What: "batches of 1000, bytes allocated by finish", Measured: 165, Most: 176, Heap: true},
		{What: "batches of 1000, objects allocated by claim", Measured: 0.174, Most: 0.2, Heap: true},
		{What: "batches of 1000, objects allocated by start", Measured: 0.209, Most: 0.23, Heap: true},
		{What: "batches of 1000, objects allocated by finish", Measured: 0.229, Most: 0.25, Heap: true},
	}
}

// TestWhatARunCosts is alone in the process while it runs, as what it allocates is counted; and
// it has a server of its own, where nobody else writes to the log. It runs on one processor: what
// a sync.Pool has from another one may not be found, and is allocated anew.
func TestWhatARunCosts(t *testing.T) {
	inServer(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	cluster := pgtest.Start(t, pgtest.Options{NoFsync: true, Settings: map[string]string{
		"autovacuum": "off", "full_page_writes": "off", "checkpoint_timeout": "1d", "max_wal_size": "4GB",
	}})
	var meter callMeter
	pool := pgtest.Pool(t, pgtest.At(cluster.DSN("postgres")), pgtest.MaxConns(1), pgtest.With(meter.use))
	b := newBudgeted(t, pool, &meter)
	const rounds = 4 // of which the first also prepares statements, and fills caches
	stage.CheckBudgets(t, budgets(), stage.LeastOf(rounds, func() map[string]float64 {
		figures := map[string]float64{}
		for _, l := range []budgetLoad{{"batches of 100", 100, 1}, {"batches of 1000", 1000, 2}} {
			for what, n := range b.measure(l) {
				figures[what] = max(figures[what], n)
			}
		}
		b.look(figures)
		return figures
	}))
}

// budgetLoad is how many runs a call is about, and how many of a job a claim plans.
type budgetLoad struct {
	name        string
	batch, each int
}

// budgetJobs is how many jobs there are.
const budgetJobs = 1000

// budgeted is a node that calls the store as the loops of a scheduler do.
type budgeted struct {
	*actor
	meter  *callMeter
	server *serverMeter
	pool   *pgxpool.Pool
	jobs   []store.Job
}

func newBudgeted(t *testing.T, pool *pgxpool.Pool, meter *callMeter) *budgeted {
	t.Helper()
	s, err := postgres.New(t.Context(), pool, postgres.FewDays(postgres.Config{
		Schema: "budget", AutoMigrate: true, LeaseMode: postgres.LeaseRow, NoReserve: true, // so that the pool's is the only connection
		Logger: stage.QuietLog(),
	}))
	must(t, err)
	t.Cleanup(s.Close)
	b := &budgeted{actor: own(t, s, "node-6mzgexfqgw", 32), meter: meter, server: newServerMeter(t, pool), pool: pool}
	b.ctx = context.WithValue(b.ctx, measured{}, true)
	due := time.Now().UTC().Truncate(time.Second)
	for i := range budgetJobs {
		job, err := s.AddJob(t.Context(), store.Job{App: "app", Name: fmt.Sprint("job ", i), Handler: "work", Schedule: schedule.Cron("* * * * * ?"),
			Block: "SERIAL_EXECUTION", Route: "NEAREST", GlueType: store.GlueBean, Next: due}, nil)
		must(t, err)
		b.jobs = append(b.jobs, job)
	}
	return b
}

// measure has each job's next instants claimed, started and finished, and returns what that cost.
func (b *budgeted) measure(l budgetLoad) map[string]float64 {
	b.Helper()
	figures := map[string]float64{}
	before, wal := b.server.written(b.T, "budget"), b.server.wal(b.T)
	runs := b.claimAll(l, figures)
	for k := range l.each { // of a serial job, one run after the other
		var some []store.Run
		for i := k; i < len(runs); i += l.each {
			some = append(some, runs[i])
		}
		b.finishAll(l, b.startAll(l, some, figures), figures)
	}
	n := float64(len(runs))
	figures[l.name+", bytes of WAL a run"] = (b.server.wal(b.T) - wal) / n
	after := b.server.written(b.T, "budget")
	figures[l.name+", row versions a run"] = (after.versions - before.versions) / n
	figures[l.name+", row versions a run that enter indexes"] = (after.entered - before.entered) / n
	for _, table := range []string{"xxl_job_log", "xxl_job_next"} {
		figures["indexes of "+table] = b.server.indexes(b.T, "budget."+table)
	}
	return figures
}

// claimAll claims instants of all jobs; the runs of a job follow each other.
func (b *budgeted) claimAll(l budgetLoad, figures map[string]float64) (runs []store.Run) {
	b.Helper()
	plans := make([]store.Plan, len(b.jobs))
	for i := range b.jobs {
		plans[i] = b.planOf(&b.jobs[i], l.each)
	}
	runs = make([]store.Run, 0, len(b.jobs)*l.each)
	b.meter.begin()
	for batch := range slices.Chunk(plans, l.batch/l.each) {
		var err error
		runs, err = b.Claim(b.ctx, runs, batch)
		must(b.T, err)
		b.meter.calls++
	}
	b.meter.runs = float64(len(runs))
	b.meter.end(b.T, b.pool, "claim", l.name, 1, figures)
	if len(runs) != len(b.jobs)*l.each {
		b.Fatalf("%d runs of %d jobs are claimed, want %d of each", len(runs), len(b.jobs), l.each)
	}
	return runs
}

// look asks for the latest runs as who looks for failures of others does, where many have ended, none of
// them lately.
func (b *budgeted) look(figures map[string]float64) {
	b.Helper()
	lately := store.RunFilter{States: []store.State{store.StateSucceeded}, EndedSince: time.Now().Add(time.Hour), Limit: 500}
	b.meter.begin()
	runs, err := b.Runs(b.ctx, lately)
	must(b.T, err)
	const what = "a look for what has ended lately, where nothing has, "
	figures[what+"statements"] = float64(b.meter.statements)
	figures[what+"bytes both ways"] = float64(b.meter.sent.Load() + b.meter.received.Load())
	lately.EndedSince = time.Time{}
	there, err := b.Runs(b.ctx, lately)
	must(b.T, err)
	if len(runs) != 0 || len(there) != lately.Limit {
		b.Fatalf("%d runs of %d have ended lately", len(runs), len(there))
	}
}

// planOf claims the next instants of a job, which has moved on then.
func (b *budgeted) planOf(job *store.Job, instants int) store.Plan {
	p := store.Plan{JobID: job.ID, Shard: job.Shard, Epoch: b.epoch(job.Shard), Version: job.Version, Due: job.Next}
	for range instants {
		p.Runs = append(p.Runs, store.NewRun{At: job.Next, Type: store.TriggerCron, State: store.StatePlanned})
		job.Next = job.Next.Add(time.Second)
	}
	p.Next = job.Next
	return p
}

// startAll starts runs, each of another job.
func (b *budgeted) startAll(l budgetLoad, runs []store.Run, figures map[string]float64) (started []store.Run) {
	b.Helper()
	starts := make([]store.Start, len(runs))
	for i := range runs {
		starts[i] = b.startOf(&runs[i])
	}
	started, room := make([]store.Run, 0, len(runs)), make([]store.Started, 0, l.batch)
	b.meter.begin()
	for batch := range slices.Chunk(starts, l.batch) {
		answers, err := b.Start(b.ctx, room, batch)
		must(b.T, err)
		for i := range answers {
			if answers[i].Status != store.StartOK {
				b.Fatalf("start: status %d", answers[i].Status)
			}
			started = append(started, answers[i].Run)
		}
		b.meter.calls++
	}
	b.meter.runs = float64(len(runs))
	b.meter.end(b.T, b.pool, "start", l.name, 1/float64(l.each), figures)
	return started
}

// startOf is the start of a run at this very node, as a scheduler has it.
func (b *budgeted) startOf(run *store.Run) store.Start {
	st := b.actor.startOf(*run, 1)
	st.Serial, st.AfterRetries, st.Instant, st.TriggerID = true, true, run.Instant(), run.TriggerID
	st.Handler, st.Known = "work", run
	st.Msg = "type: CRON\nnode: node\nroute: NEAREST, block: SERIAL_EXECUTION\naddresses: " + st.Address
	return st
}

// finishAll has runs succeed.
func (b *budgeted) finishAll(l budgetLoad, started []store.Run, figures map[string]float64) {
	b.Helper()
	results := make([]store.Result, len(started))
	for i := range started {
		run := &started[i]
		results[i] = store.Result{RunID: run.ID, Incarnation: b.inc, Token: run.Token, State: store.StateSucceeded, Known: run}
	}
	room := make([]store.Run, 0, l.batch)
	b.meter.begin()
	for batch := range slices.Chunk(results, l.batch) {
		ended, err := b.Finish(b.ctx, room, batch)
		must(b.T, err)
		if len(ended) != len(batch) {
			b.Fatalf("%d of %d results are accepted", len(ended), len(batch))
		}
		b.meter.calls++
	}
	b.meter.runs = float64(len(started))
	b.meter.end(b.T, b.pool, "finish", l.name, 1/float64(l.each), figures)
}

// callMeter counts what calls of one kind cost: see begin and end. It is the tracer of the one
// connection that they use, and allocates nothing for a run.
type callMeter struct {
	flights
	sent, received atomic.Int64    // bytes
	statements     int             // that the calls have sent
	texts          map[string]bool // of these statements
	heap           stage.Allocated // before the calls
	calls, runs    float64         // that there were, for the caller to say
}

// use has the connections of a pool counted.
func (m *callMeter) use(cfg *pgxpool.Config) {
	cfg.ConnConfig.Tracer = m
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := m.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &measuredConn{conn, m}, nil
	}
}

// measuredConn counts bytes.
type measuredConn struct {
	net.Conn
	meter *callMeter
}

func (c *measuredConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.meter.sent.Add(int64(n))
	return n, err
}

func (c *measuredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.meter.received.Add(int64(n))
	return n, err
}

// measured says in a context that its statements count; those of the store's own work do not.
type measured struct{}

func (m *callMeter) count(ctx context.Context, sql string) {
	if ctx.Value(measured{}) == nil {
		return
	}
	m.statements++
	m.texts[sql] = true
}

// TraceQueryStart, and the methods below it, are called by pgx: for statements that are sent one
// by one, and for those that are sent together.
func (m *callMeter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	m.count(ctx, data.SQL)
	return ctx
}

func (m *callMeter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (m *callMeter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (m *callMeter) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	m.count(ctx, data.SQL)
}

func (m *callMeter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// begin is called before the calls: it forgets what was counted.
func (m *callMeter) begin() {
	m.texts, m.runs, m.calls = map[string]bool{}, 0, 0
	m.heap = stage.AllocatedNow()
	m.statements = 0
	m.n.Store(0)
	m.sent.Store(0)
	m.received.Store(0)
}

// end adds to the figures what the calls have cost since begin, which are a share of those of
// their kind.
func (m *callMeter) end(t *testing.T, pool *pgxpool.Pool, call, load string, share float64, figures map[string]float64) {
	t.Helper()
	statements, trips, sent, received := float64(m.statements), float64(m.n.Load()), float64(m.sent.Load()), float64(m.received.Load())
	bytes, objects := stage.AllocatedNow().Since(m.heap)
	figures[call+", statements a call"] += share * statements / m.calls
	figures[call+", round trips a call"] += share * trips / m.calls
	figures[call+", columns returned"] = max(figures[call+", columns returned"], m.columns(t, pool))
	figures[load+", bytes sent a run"] += share * sent / m.runs
	figures[load+", bytes received a run"] += share * received / m.runs
	figures[load+", bytes allocated by "+call] += share * bytes / m.runs
	figures[load+", objects allocated by "+call] += share * objects / m.runs
}

// columns are those that the statements return which know our tables.
func (m *callMeter) columns(t *testing.T, pool *pgxpool.Pool) (n float64) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	must(t, err)
	defer conn.Release()
	for sql := range m.texts {
		if strings.Contains(sql, "xxl_job") {
			d, err := conn.Conn().Prepare(t.Context(), sql, sql)
			must(t, err)
			n += float64(len(d.Fields))
		}
	}
	return n
}

// serverMeter reads what the server counts. The pool has one connection: what its session has
// done is told in its order.
type serverMeter struct {
	pool  *pgxpool.Pool
	marks int
	flush string // has the session tell at once, where the server can do that
}

func newServerMeter(t *testing.T, pool *pgxpool.Pool) *serverMeter {
	t.Helper()
	m := &serverMeter{pool: pool, flush: "select 1"}
	run(t, pool, "create table budget_mark ()")
	if ask[bool](t, pool, "select exists (select from pg_proc where proname = 'pg_stat_force_next_flush')") {
		m.flush = "select pg_stat_force_next_flush()"
	}
	return m
}

// written is what was written to tables, since the server was started.
type written struct {
	versions float64 // of rows, and marks of rows that were deleted
	entered  float64 // of these, the versions that enter each index anew: all but those of HOT updates
}

// written is what was written to the tables of a schema so far.
func (m *serverMeter) written(t *testing.T, schema string) (w written) {
	t.Helper()
	run(t, m.pool, "insert into budget_mark default values")
	m.marks++
	await.Until(t, "the server tells of all that was written", func() bool {
		run(t, m.pool, m.flush)
		return ask[int](t, m.pool, "select n_tup_ins::int from pg_stat_user_tables where relname = 'budget_mark'") == m.marks
	})
	must(t, m.pool.QueryRow(t.Context(), `select sum(n_tup_ins + n_tup_upd + n_tup_del)::float8, sum(n_tup_ins + n_tup_upd - n_tup_hot_upd)::float8
	from pg_stat_user_tables where schemaname = $1`, schema).Scan(&w.versions, &w.entered))
	return w
}

// indexes is how many indexes a table has.
func (m *serverMeter) indexes(t *testing.T, table string) float64 {
	t.Helper()
	return ask[float64](t, m.pool, "select count(*)::float8 from pg_index where indrelid = $1::text::regclass", table)
}

// wal is the position up to which the log is filled, in bytes.
func (m *serverMeter) wal(t *testing.T) float64 {
	t.Helper()
	return ask[float64](t, m.pool, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8")
}
