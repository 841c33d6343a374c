package route

import (
	"context"
	"fmt"
	"runtime"
	"testing"
)

// The sizes are a usual app, a large one, and one beyond reason.
var sizes = []int{3, 100, 1000}

func benchmark(b *testing.B, open func() Router) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ctx, r, addrs := context.Background(), open(), addresses(n)
			jobID := int64(0)
			for ; jobID < 1000; jobID++ {
				if _, err := r.Route(ctx, jobID, addrs); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Route(ctx, jobID%1000, addrs); err != nil {
					b.Fatal(err)
				}
				jobID++
			}
		})
	}
}

func BenchmarkRound(b *testing.B) { benchmark(b, func() Router { return NewRound() }) }
func BenchmarkHash(b *testing.B)  { benchmark(b, func() Router { return NewHash() }) }
func BenchmarkLFU(b *testing.B)   { benchmark(b, func() Router { return NewLFU(nil) }) }
func BenchmarkLRU(b *testing.B)   { benchmark(b, func() Router { return NewLRU(nil) }) }

func BenchmarkRoundParallel(b *testing.B) { parallel(b, NewRound()) }
func BenchmarkHashParallel(b *testing.B)  { parallel(b, NewHash()) }
func BenchmarkLFUParallel(b *testing.B)   { parallel(b, NewLFU(nil)) }
func BenchmarkLRUParallel(b *testing.B)   { parallel(b, NewLRU(nil)) }

// parallel is routing of a thousand known jobs on all cores at once.
func parallel(b *testing.B, r Router) {
	addrs := addresses(100)
	for jobID := range int64(1000) {
		if _, err := r.Route(context.Background(), jobID, addrs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for jobID := int64(0); pb.Next(); jobID++ {
			if _, err := r.Route(context.Background(), jobID%1000, addrs); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkRoundFull(b *testing.B) { full(b, func() Router { return NewRound() }) }
func BenchmarkLFUFull(b *testing.B)   { full(b, func() Router { return NewLFU(nil) }) }
func BenchmarkLRUFull(b *testing.B)   { full(b, func() Router { return NewLRU(nil) }) }

// full is routing of jobs that crowd out others, of which a router remembers as
// many as it ever does, and what it takes to remember one.
func full(b *testing.B, open func() Router) {
	ctx, addrs := context.Background(), addresses(3)
	before := heap()
	r, jobID := open(), int64(0)
	for ; jobID < maxJobs; jobID++ {
		if _, err := r.Route(ctx, jobID, addrs); err != nil {
			b.Fatal(err)
		}
	}
	each := float64(heap()-before) / maxJobs
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Route(ctx, jobID, addrs); err != nil {
			b.Fatal(err)
		}
		jobID++
	}
	b.ReportMetric(each, "B/job")
}

// heap is the bytes of all that is in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkHashNewJobs is the worst case: no point is remembered.
func BenchmarkHashNewJobs(b *testing.B) {
	ctx, h, addrs := context.Background(), NewHash(), addresses(100)
	jobID := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Route(ctx, jobID, addrs); err != nil {
			b.Fatal(err)
		}
		jobID++
	}
}

// BenchmarkHashNewStrings is routing over a list that was read anew.
func BenchmarkHashNewStrings(b *testing.B) {
	ctx, h, addrs := context.Background(), NewHash(), addresses(100)
	if _, err := h.Route(ctx, 1, addresses(100)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Route(ctx, 1, addrs); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHashBuild is what a new list costs.
func BenchmarkHashBuild(b *testing.B) {
	addrs := addresses(100)
	b.ReportAllocs()
	for b.Loop() {
		newRing(addrs).build()
	}
}
