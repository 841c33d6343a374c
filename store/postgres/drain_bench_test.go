package postgres_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/postgres"
)

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
