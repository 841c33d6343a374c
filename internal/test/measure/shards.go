package measure

import "sync"

// shardCount is a power of two, and well above the number of cores.
const shardCount = 256

// chunkSize is how many values are made room for at once: what is recorded is never copied
// while handlers run, as a slice that grows would be.
const chunkSize = 4096

// Shards records values from many goroutines at once. Who records with another key takes
// another lock most of the time, so that recording costs some ten nanoseconds and a value's
// own bytes. The zero value is empty and ready. T should have no pointers, or millions of
// values become work for the collector.
type Shards[T any] struct{ shards [shardCount]shard[T] }

type shard[T any] struct {
	mu     sync.Mutex
	chunks [][]T // guarded by mu; all but the last are full
	_      [64]byte
}

// Add records a value. Keys are best spread, as ids of jobs are.
func (s *Shards[T]) Add(key int64, v T) {
	// Fibonacci hashing: the upper bits of the product depend on all bits of the key.
	x := &s.shards[uint64(key)*0x9E3779B97F4A7C15>>56]
	x.mu.Lock()
	n := len(x.chunks) - 1
	if n < 0 || len(x.chunks[n]) == chunkSize {
		x.chunks = append(x.chunks, make([]T, 0, chunkSize))
		n++
	}
	x.chunks[n] = append(x.chunks[n], v)
	x.mu.Unlock()
}

// Len is how many values were recorded.
func (s *Shards[T]) Len() int {
	n := 0
	for i := range s.shards {
		x := &s.shards[i]
		x.mu.Lock()
		if k := len(x.chunks); k > 0 {
			n += (k-1)*chunkSize + len(x.chunks[k-1])
		}
		x.mu.Unlock()
	}
	return n
}

// All returns a copy of what was recorded, in no order.
func (s *Shards[T]) All() []T {
	all := make([]T, 0, s.Len())
	for i := range s.shards {
		x := &s.shards[i]
		x.mu.Lock()
		for _, chunk := range x.chunks {
			all = append(all, chunk...)
		}
		x.mu.Unlock()
	}
	return all
}
