package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
	"github.com/xxljob/xxljob/wire"
)

// commits are how a run that a transaction of the host's has planned is heard of.
var commits = []struct {
	name   string
	notify bool
	wake   bool
}{
	{"poll", false, false},
	{"Wake", false, true},
	{"TxNotify", true, false},
}

// BenchmarkCommitToHandler measures the time from the commit of a transaction with a
// TriggerTx to the call of the handler, one transaction after the other: in the process
// of the scheduler, and in one of its own. "poll" is without Wake and TxNotify.
func BenchmarkCommitToHandler(b *testing.B) {
	for _, where := range []string{"same process", "other process"} {
		for _, c := range commits {
			b.Run(where+"/"+c.name, func(b *testing.B) {
				for range b.N {
					// Orders do not come in step with what goes on here: the least gap
					// between two notifications, or the scans.
					n, within := 500, 40*time.Millisecond
					if !c.wake && !c.notify {
						n, within = 40, time.Second // each of them takes up to a second
					}
					x := newHostBench(b, c.notify, where == "other process")
					x.commitToHandler(n, within, c.wake)
				}
			})
		}
	}
}

// BenchmarkTxNotifyCommits counts the commits a second of eight writers that each insert
// a row and trigger a job in one transaction, without a notification in it and with one.
// There is no scheduler: what is measured is the host's part.
func BenchmarkTxNotifyCommits(b *testing.B) {
	for _, notify := range []bool{false, true} {
		b.Run(fmt.Sprintf("TxNotify=%v", notify), func(b *testing.B) {
			for range b.N {
				newHostBench(b, notify, true).writers(8, 5*time.Second)
			}
		})
	}
}

// hostBench is a host that triggers a job in its own transactions, and the scheduler.
type hostBench struct {
	*testing.B
	pool  *pgxpool.Pool
	host  *postgres.Store
	sched xxljob.Scheduler
	calls chan time.Time // when the handler was called
	job   int64
}

// newHostBench makes a table for the host's own rows. apart gives the host a store of its
// own, as another process has it.
func newHostBench(b *testing.B, notify, apart bool) *hostBench {
	b.Helper()
	x := &hostBench{B: b, pool: benchPool(b), calls: make(chan time.Time, 1)}
	(&bench{B: b, pool: x.pool}).settings()
	cfg := postgres.Config{TxNotify: notify, Schema: (&schemas{pool: x.pool}).take(b), Logger: slog.New(slog.DiscardHandler)}
	open := func() *postgres.Store {
		s, err := postgres.New(b.Context(), x.pool, cfg)
		x.must(err)
		b.Cleanup(s.Close)
		return s
	}
	node := open()
	x.host = node
	if apart {
		x.host = open()
	}
	var err error
	x.sched, err = xxljob.New(node, xxljob.Config{App: "bench", Logger: cfg.Logger})
	x.must(err)
	x.must(x.sched.Handle("noop", func(context.Context, *xxljob.Task) error {
		select {
		case x.calls <- time.Now():
		default:
		}
		return nil
	}))
	job, err := x.sched.EnsureJob(b.Context(), store.Job{Name: "noop", Handler: "noop"})
	x.must(err)
	x.job = job.Job.ID
	_, err = x.pool.Exec(b.Context(), fmt.Sprintf("create table if not exists %q.orders (id bigserial primary key, note text)", cfg.Schema))
	x.must(err)
	return x
}

func (x *hostBench) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// order is a transaction of the host's. It returns when the commit was acknowledged.
func (x *hostBench) order(ctx context.Context) error {
	tx, err := x.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, fmt.Sprintf("insert into %q.orders (note) values ('an order')", postgres.SchemaOf(x.host))); err != nil {
		return err
	}
	if _, err := x.host.TriggerTx(ctx, tx, x.job, store.Trigger{}); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// commitToHandler measures n orders, each some time within the given one after the
// handler of the one before.
func (x *hostBench) commitToHandler(n int, within time.Duration, wake bool) {
	ctx := context.Background()
	x.must(x.sched.Start(ctx))
	defer func() { x.must(x.sched.Stop(ctx)) }()
	took := make([]time.Duration, 0, n)
	for i := range n + n/10 {
		x.must(x.order(ctx))
		committed := time.Now()
		if wake {
			x.must(x.host.Wake(ctx, x.job))
		}
		called := <-x.calls
		if i >= n/10 { // the first are for the caches
			took = append(took, called.Sub(committed))
		}
		time.Sleep(30*time.Millisecond + rand.N(within))
	}
	slices.Sort(took)
	at := func(p float64) float64 {
		return float64(took[min(int(p*float64(n)), n-1)].Microseconds()) / 1000
	}
	x.ReportMetric(at(0.5), "p50-ms")
	x.ReportMetric(at(0.99), "p99-ms")
	x.ReportMetric(at(1), "max-ms")
	x.ReportMetric(0, "ns/op")
}

func (x *hostBench) writers(n int, during time.Duration) {
	var done atomic.Int64
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), during)
	defer cancel()
	began := time.Now()
	for range n {
		group.Go(func() {
			for ctx.Err() == nil {
				if err := x.order(ctx); err == nil {
					done.Add(1)
				} else if ctx.Err() == nil {
					x.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	x.ReportMetric(float64(done.Load())/time.Since(began).Seconds(), "commits/s")
	x.ReportMetric(0, "ns/op")
}

const (
	heldJobs  = 5_000
	heldFor   = 5 * time.Minute
	heldAfter = 30 * time.Second
)

// BenchmarkHeldTransaction measures the rate while somebody holds a transaction
// open for five minutes, so that no version of a row that is newer can be cleaned
// up, and the rate half a minute after it has ended.
func BenchmarkHeldTransaction(b *testing.B) {
	for range b.N {
		x := newBench(b, xxljob.Config{})
		now := time.Now().Add(2 * time.Second)
		x.add(heldJobs, time.Second, func(i int) time.Time { return now.Add(time.Duration(i) * time.Second / heldJobs) })
		x.start()
		time.Sleep(10 * time.Second)
		before := x.rate(20 * time.Second)
		tx, err := x.pool.BeginTx(context.Background(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tx.Exec(context.Background(), "select count(*) from pg_class"); err != nil {
			b.Fatal(err)
		}
		time.Sleep(heldFor - 30*time.Second)
		x.forget()
		held := x.rate(30 * time.Second)
		x.report(x.taken(), 30*time.Second)
		if err := tx.Rollback(context.Background()); err != nil {
			b.Fatal(err)
		}
		time.Sleep(heldAfter - 10*time.Second)
		after := x.rate(10 * time.Second)
		b.ReportMetric(before, "before/s")
		b.ReportMetric(held, "held/s")
		b.ReportMetric(after, "after/s")
		x.audit(time.Second)
	}
}

// rate is how many runs a second come through for a while.
func (x *bench) rate(during time.Duration) float64 {
	count := func() int {
		x.mu.Lock()
		defer x.mu.Unlock()
		return len(x.calls)
	}
	from := count()
	time.Sleep(during)
	return float64(count()-from) / during.Seconds()
}

// forget begins the calls that taken returns.
func (x *bench) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.since = len(x.calls)
}

func (x *bench) taken() []call {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.calls[x.since:len(x.calls):len(x.calls)]
}

// BenchmarkDump measures how long pg_dump takes for a database with a million runs,
// without a scheduler on it and with one that runs 200 jobs a second.
func BenchmarkDump(b *testing.B) {
	bin, err := pgtest.Find()
	if err != nil {
		b.Skip(err)
	}
	for range b.N {
		x := newBench(b, xxljob.Config{})
		now := time.Now().Add(2 * time.Second)
		x.add(200, time.Second, func(i int) time.Time { return now.Add(time.Duration(i) * 5 * time.Millisecond) })
		if _, err := x.pool.Exec(context.Background(), fmt.Sprintf(`create table %[1]s.load as
	select n, md5(n::text) a, md5((n + 1)::text) b, clock_timestamp() at from generate_series(1, 1500000) n`, x.schema())); err != nil {
			b.Fatal(err)
		}
		defer x.pool.Exec(context.Background(), fmt.Sprintf("drop table %s.load", x.schema()))
		dump := func() time.Duration {
			began := time.Now()
			cmd := exec.Command(filepath.Join(bin, "pg_dump"), "-n", x.schema(), "-f", os.DevNull, x.pool.Config().ConnString())
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			return time.Since(began)
		}
		least := func() time.Duration { return min(dump(), dump(), dump()) }
		alone := least()
		x.start()
		time.Sleep(5 * time.Second)
		x.forget()
		with := least()
		x.report(x.taken(), 3*with)
		b.ReportMetric(alone.Seconds(), "alone-s")
		b.ReportMetric(with.Seconds(), "with-s")
		b.ReportMetric(with.Seconds()/alone.Seconds(), "ratio")
		x.audit(time.Second)
	}
}

// BenchmarkRegistry lets 10,000 executors register and then beat every 30 s over HTTP,
// counts the statements about the registry, times the answers, and looks whether all of
// them are registered in the end.
func BenchmarkRegistry(b *testing.B) {
	const executors, beat, rounds = 10_000, 30 * time.Second, 3
	for range b.N {
		var sent statements
		s := openOn(b, pgtest.Pool(b, traced(&sent)), postgres.Config{})
		sched, err := xxljob.New(s, xxljob.Config{App: "beats", Logger: slog.New(slog.DiscardHandler), HTTP: xxljob.HTTPConfig{Tokens: map[string][]string{"": {"only-for-benchmarks"}}}})
		if err != nil {
			b.Fatal(err)
		}
		handler, err := sched.AdminHandler()
		if err != nil {
			b.Fatal(err)
		}
		server := httptest.NewServer(handler)
		defer server.Close()
		if err := sched.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		defer func() { _ = sched.Stop(context.Background()) }()

		var mu sync.Mutex
		var took []time.Duration
		failed := 0
		transport := wire.NewTransport(wire.TransportConfig{})
		client, err := wire.NewAdminClient(server.URL, wire.ClientConfig{Transport: transport, Token: "only-for-benchmarks"})
		if err != nil {
			b.Fatal(err)
		}
		register := func(i int) {
			req := wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: fmt.Sprintf("app-%d", i%100),
				RegistryValue: fmt.Sprintf("http://10.%d.%d.1:9999/", i/250, i%250), BootID: fmt.Sprint(i), Capabilities: []string{wire.CapRepeat}}
			began := time.Now()
			ret, err := client.Registry(b.Context(), req)
			d := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, d)
			if err != nil || !ret.OK() {
				failed++
			}
		}
		round := func() (p50, p99, most float64, perSecond float64) {
			took = took[:0]
			before, began := registryStatements(&sent), time.Now()
			var all sync.WaitGroup
			for i := range executors {
				time.Sleep(time.Until(began.Add(time.Duration(i) * beat / executors)))
				all.Go(func() { register(i) })
			}
			all.Wait()
			during := time.Since(began)
			slices.Sort(took)
			at := func(p float64) float64 { return float64(took[int(p*float64(len(took)-1))].Microseconds()) / 1000 }
			return at(0.5), at(0.99), at(1), float64(registryStatements(&sent)-before) / during.Seconds()
		}
		p50, p99, _, rate := round()
		b.ReportMetric(p50, "first-p50-ms")
		b.ReportMetric(p99, "first-p99-ms")
		b.ReportMetric(rate, "first-statements/s")
		var most float64
		for range rounds - 1 {
			p50, p99, most, rate = round()
		}
		time.Sleep(time.Second)
		alive := 0
		for i := range 100 {
			regs, err := s.Addresses(b.Context(), fmt.Sprintf("app-%d", i), beat+5*time.Second)
			if err != nil {
				b.Fatal(err)
			}
			alive += len(regs)
		}
		b.ReportMetric(p50, "p50-ms")
		b.ReportMetric(p99, "p99-ms")
		b.ReportMetric(most, "max-ms")
		b.ReportMetric(rate, "statements/s")
		b.ReportMetric(float64(executors-alive), "lost")
		b.ReportMetric(float64(failed), "failed")
		b.ReportMetric(0, "ns/op")
		if alive != executors || failed > 0 {
			b.Errorf("%d of %d executors are alive, %d answers were no success", alive, executors, failed)
		}
	}
}

// registryStatements is how many statements about the registry were sent.
func registryStatements(sent *statements) (n int) {
	for _, sql := range counted(sent) {
		if strings.Contains(sql, "xxl_job_registry") {
			n++
		}
	}
	return n
}

// BenchmarkIdle counts the statements that a node with a thousand jobs sends while
// none of them is due: over the pool and over the lock connection, but for BEGIN,
// SET and COMMIT.
func BenchmarkIdle(b *testing.B) {
	for range b.N {
		var sent statements
		s := openOn(b, pgtest.Pool(b, traced(&sent)), postgres.Config{})
		sched, err := xxljob.New(s, xxljob.Config{App: "idle", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		if err := sched.Handle("noop", func(context.Context, *xxljob.Task) error { return nil }); err != nil {
			b.Fatal(err)
		}
		for i := range 1000 {
			_, err := sched.AddJob(b.Context(), store.Job{Name: "job " + strconv.Itoa(i), Handler: "noop", Schedule: schedule.FixedRate(100 * time.Hour)})
			if err != nil {
				b.Fatal(err)
			}
		}
		if err := sched.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		before := len(counted(&sent))
		const during = 20 * time.Second
		time.Sleep(during)
		last := counted(&sent)[before:]
		b.ReportMetric(float64(len(last))/during.Seconds(), "statements/s")
		b.ReportMetric(0, "ns/op")
		if err := sched.Stop(context.Background()); err != nil {
			b.Error(err)
		}
		kinds := map[string]int{}
		for _, sql := range last {
			words := strings.Join(strings.Fields(sql), " ")
			kinds[words[:min(len(words), 60)]]++
		}
		for sql, n := range kinds {
			b.Logf("%4d  %s", n, sql)
		}
	}
}

// counted are the statements that count.
func counted(sent *statements) (list []string) {
	for _, batch := range sent.with("") {
		for sql := range strings.SplitSeq(batch, "; ") {
			word, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
			switch {
			case word == "begin", word == "set", word == "commit", strings.HasPrefix(sql, "select pg_catalog.set_config("):
			default:
				list = append(list, sql)
			}
		}
	}
	return list
}

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
