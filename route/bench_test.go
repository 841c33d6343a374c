package route

import (
	"context"
	"fmt"
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

func BenchmarkHashParallel(b *testing.B) {
	h, addrs := NewHash(), addresses(100)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for jobID := int64(0); pb.Next(); jobID++ {
			if _, err := h.Route(context.Background(), jobID%1000, addrs); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkHashBuild is what a new list costs.
func BenchmarkHashBuild(b *testing.B) {
	addrs := addresses(100)
	b.ReportAllocs()
	for b.Loop() {
		newRing(addrs).build()
	}
}
