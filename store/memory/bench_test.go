package memory_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/xxljob/xxljob/block"
	"github.com/xxljob/xxljob/schedule"
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

// batchSize is how many runs each batch of the benchmarks below has.
const batchSize = 1000

// lives are many jobs whose runs go through their lives batch by batch.
type lives struct {
	*fixture
	jobs []store.Job
}

func newLives(b *testing.B) *lives {
	l := &lives{fixture: newFixture(b, 32)}
	for i := range 5 * batchSize {
		l.jobs = append(l.jobs, l.job(named(i)))
	}
	return l
}

// named gives a job the key and the name of its number.
func named(i int) func(*store.Job) {
	return func(j *store.Job) {
		j.Key = fmt.Sprintf("job-%d", i)
		j.Name = j.Key
	}
}

// plans are those of the next batch of jobs, one run each.
func (l *lives) plans(round int) []store.Plan {
	plans := make([]store.Plan, batchSize)
	for i := range plans {
		j := &l.jobs[(round*batchSize+i)%len(l.jobs)]
		plans[i] = l.plan(*j, 1)
		j.Next = plans[i].Next
	}
	return plans
}

// starts start the runs as an engine does: serially, behind retries, with what it knows of them.
func (l *lives) starts(runs []store.Run) []store.Start {
	starts := make([]store.Start, len(runs))
	for i := range runs {
		r := &runs[i]
		starts[i] = l.start(*r, store.LocalAddress(l.node), 1)
		st := &starts[i]
		st.Serial, st.AfterRetries, st.Instant, st.TriggerID = true, true, r.Instant(), r.TriggerID
		st.Block, st.Msg, st.Known = block.SerialExecution, "sent to the node's own executor", r
	}
	return starts
}

func (l *lives) results(started []store.Started) []store.Result {
	results := make([]store.Result, len(started))
	for i := range started {
		results[i] = success(started[i].Run)
		results[i].Known = &started[i].Run
	}
	return results
}

// BenchmarkBatch is each step of a run's life alone, in batches.
func BenchmarkBatch(b *testing.B) {
	for _, step := range []string{"Claim", "Start", "Finish"} {
		b.Run(step, func(b *testing.B) {
			l := newLives(b)
			m := meter{b: b}
			for range 220 { // until as many ended runs are kept as may be
				l.round(m, "", 0)
			}
			b.ResetTimer()
			round := 0
			for b.Loop() {
				b.StopTimer()
				m = l.round(m, step, round)
				b.StartTimer()
				round++
			}
			m.report(b.N * batchSize)
		})
	}
}

// round takes a batch through its life, and measures one step of it.
func (l *lives) round(m meter, step string, round int) meter {
	plans := l.plans(round)
	var runs []store.Run
	var started []store.Started
	var ended []store.Run
	var err error
	m = m.of(step == "Claim", func() { runs, err = l.Claim(l.Context(), nil, plans) })
	l.must(err)
	starts := l.starts(runs)
	m = m.of(step == "Start", func() { started, err = l.Start(l.Context(), nil, starts) })
	l.must(err)
	results := l.results(started)
	m = m.of(step == "Finish", func() { ended, err = l.Finish(l.Context(), nil, results) })
	l.must(err)
	if len(ended) != batchSize {
		l.Fatalf("%d of %d runs ended", len(ended), batchSize)
	}
	return m
}

// meter adds up what some calls cost.
type meter struct {
	b             *testing.B
	took          time.Duration
	bytes, allocs uint64
}

// of calls f, and adds what it cost where it is to be measured.
func (m meter) of(measured bool, f func()) meter {
	if !measured {
		f()
		return m
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	f()
	m.took += time.Since(begin)
	runtime.ReadMemStats(&after)
	m.bytes += after.TotalAlloc - before.TotalAlloc
	m.allocs += after.Mallocs - before.Mallocs
	return m
}

// report reports it for each of n.
func (m meter) report(n int) {
	m.b.ReportMetric(0, "ns/op")
	m.b.ReportMetric(float64(m.took.Nanoseconds())/float64(n), "ns/run")
	m.b.ReportMetric(float64(m.bytes)/float64(n), "B/run")
	m.b.ReportMetric(float64(m.allocs)/float64(n), "allocs/run")
}

// BenchmarkAddJobs adds 100,000 jobs that wait, and says what each takes of the heap.
func BenchmarkAddJobs(b *testing.B) {
	const jobs = 100_000
	var heap uint64
	for b.Loop() {
		f := newFixture(b, 32)
		now := time.Now()
		before := heapInUse()
		begin := time.Now()
		for i := range jobs {
			j := store.Job{App: "app", Handler: "h", Schedule: schedule.FixedRate(time.Second), Next: now.Add(time.Duration(i%3600) * time.Second)}
			named(i)(&j)
			if _, err := f.AddJob(b.Context(), j, nil); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(time.Since(begin).Nanoseconds())/jobs, "ns/job")
		heap = heapInUse() - before
		runtime.KeepAlive(f)
	}
	b.ReportMetric(float64(heap)/jobs, "heap-B/job")
}

// BenchmarkKeptRun says what an ended run takes of the heap, without its job.
func BenchmarkKeptRun(b *testing.B) {
	const rounds = 100
	var heap uint64
	for b.Loop() {
		l := newLives(b)
		before := heapInUse()
		for i := range rounds {
			l.round(meter{}, "", i)
		}
		heap = heapInUse() - before
		runtime.KeepAlive(l)
	}
	b.ReportMetric(float64(heap)/(rounds*batchSize), "heap-B/run")
}

// heapInUse is what is left of the heap when nothing is to be collected.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkScanFewDue finds a hundred due jobs among a million that wait.
func BenchmarkScanFewDue(b *testing.B) {
	f := newFixture(b, 32)
	now := time.Now().Truncate(time.Millisecond)
	for i := range 1_000_000 {
		f.job(named(i), func(j *store.Job) {
			j.Next = now
			if i%10_000 != 0 {
				j.Next = now.Add(time.Duration(1+i%1000) * time.Minute)
			}
		})
	}
	q := store.ScanQuery{Shards: f.shards, Before: now, Jobs: 6000, Runs: 6000}
	runtime.GC() // what adding left behind is not the scan's
	b.ReportAllocs()
	for b.Loop() {
		res, err := f.Scan(b.Context(), store.ScanResult{}, q)
		f.must(err)
		if len(res.Jobs) != 100 {
			b.Fatalf("%d jobs", len(res.Jobs))
		}
	}
}
