package memory_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// batches are the sizes in which the loops of a scheduler write.
var batches = []int{1, 100, 1000}

// perRun reports what one run cost, where an iteration is a batch.
func perRun(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/run")
}

func BenchmarkAddRun(b *testing.B) {
	f := newFixture(b, 32)
	j := f.job()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.AddRun(b.Context(), j.ID, store.Trigger{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRun is the life of a run made by the schedule: claimed, started at
// its owner's own executor, and finished, each in batches.
func BenchmarkRun(b *testing.B) {
	for _, n := range batches {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := newFixture(b, 32)
			jobs := make([]store.Job, n)
			for i := range jobs {
				jobs[i] = f.job()
			}
			b.ReportAllocs()
			for b.Loop() {
				plans := make([]store.Plan, n)
				for i := range jobs {
					plans[i] = f.plan(jobs[i], 1)
					jobs[i].Next = plans[i].Next
				}
				runs, err := f.Claim(b.Context(), nil, plans)
				f.must(err)
				f.live(runs)
			}
			perRun(b, n)
		})
	}
}

// BenchmarkTriggeredRun is the same for runs that AddRun inserts.
func BenchmarkTriggeredRun(b *testing.B) {
	for _, n := range batches {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := newFixture(b, 32)
			j := f.job()
			b.ReportAllocs()
			for b.Loop() {
				runs := make([]store.Run, n)
				for i := range runs {
					r, err := f.AddRun(b.Context(), j.ID, store.Trigger{})
					f.must(err)
					runs[i] = r
				}
				res, err := f.Scan(b.Context(), store.ScanResult{}, store.ScanQuery{Shards: f.shards, Before: time.Now(), Runs: n})
				f.must(err)
				f.live(res.Runs)
			}
			perRun(b, n)
		})
	}
}

// live starts and finishes runs.
func (f *fixture) live(runs []store.Run) {
	address := store.LocalAddress(f.node)
	starts := make([]store.Start, len(runs))
	for i, r := range runs {
		starts[i] = f.start(r, address, 1)
	}
	started, err := f.Start(f.Context(), nil, starts)
	f.must(err)
	results := make([]store.Result, len(runs))
	for i := range started {
		results[i] = success(started[i].Run)
	}
	ended, err := f.Finish(f.Context(), nil, results)
	f.must(err)
	if len(ended) != len(starts) {
		f.Fatalf("%d of %d runs ended", len(ended), len(starts))
	}
}

func BenchmarkAddJob(b *testing.B) {
	f := newFixture(b, 32)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		f.job(func(j *store.Job) { j.Key = fmt.Sprint(i) })
	}
}

// BenchmarkScan finds a thousand due jobs among a million that wait or are stopped.
func BenchmarkScan(b *testing.B) {
	for _, c := range []struct {
		name    string
		stopped bool
	}{{"1kDueOf1MWaiting", false}, {"1kDueOf1MStopped", true}} {
		b.Run(c.name, func(b *testing.B) {
			f := newFixture(b, 32)
			now := time.Now().Truncate(time.Millisecond)
			for i := range 1_000_000 {
				f.job(func(j *store.Job) {
					j.Stopped = c.stopped && i%1000 != 0
					j.Next = now.Add(time.Duration(i%1000) * time.Minute)
				})
			}
			q := store.ScanQuery{Shards: f.shards, Before: now, Jobs: 6000, Runs: 6000}
			runtime.GC() // what adding left behind is not the scan's
			b.ReportAllocs()
			for b.Loop() {
				res, err := f.Scan(b.Context(), store.ScanResult{}, q)
				f.must(err)
				if len(res.Jobs) != 1000 || !c.stopped && !res.Next.Equal(now.Add(time.Minute)) {
					b.Fatalf("%d jobs, next %v", len(res.Jobs), res.Next)
				}
			}
		})
	}
}

// BenchmarkScanIdle is the scan that finds nothing.
func BenchmarkScanIdle(b *testing.B) {
	f := newFixture(b, 32)
	for range 10_000 {
		f.job(func(j *store.Job) { j.Next = time.Now().Add(time.Hour) })
	}
	q := store.ScanQuery{Shards: f.shards, Before: time.Now(), Jobs: 6000, Runs: 6000}
	b.ReportAllocs()
	for b.Loop() {
		_, err := f.Scan(b.Context(), store.ScanResult{}, q)
		f.must(err)
	}
}
