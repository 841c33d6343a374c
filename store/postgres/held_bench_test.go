package postgres_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/pgtest"
)

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
