package postgres

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

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
