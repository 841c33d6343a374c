package dispatch

import (
	"sync"
	"sync/atomic"

	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/store"
)

// Memory for results on their way to the store, which one batch uses after the other.

// finishBuffers is the memory of one batch. A batch whose storing has failed leaves it to the call, which may
// still be under way.
type finishBuffers struct {
	flights []*queue.Flight
	known   []store.Run // the runs of flights
	results []store.Result
	answers []store.Run
}

// finishBufferPool are those that nobody uses. A batch has up to StoreBatch results, so its memory takes some
// 1.5 MB at most. One is kept for as long as the process lives, since garbage is collected several
// times between two herds, and a collection takes the others. It is safe for concurrent use.
type finishBufferPool struct {
	one  atomic.Pointer[finishBuffers]
	more sync.Pool // of *finishBuffers
}

// take returns one, which is empty.
func (p *finishBufferPool) take() *finishBuffers {
	if b := p.one.Swap(nil); b != nil {
		return b
	}
	if b, ok := p.more.Get().(*finishBuffers); ok {
		return b
	}
	return &finishBuffers{}
}

// giveBack takes one back, with whatever is in it.
func (p *finishBufferPool) giveBack(b *finishBuffers) {
	if b = b.cleared(); !p.one.CompareAndSwap(nil, b) {
		p.more.Put(b)
	}
}

// cleared is the memory as it was before the batch.
func (b *finishBuffers) cleared() *finishBuffers {
	clear(b.flights)
	clear(b.known)
	clear(b.results)
	clear(b.answers)
	b.flights, b.known, b.results, b.answers = b.flights[:0], b.known[:0], b.results[:0], b.answers[:0]
	return b
}

// knows is the run of a flight, in memory that was made for it before.
func (b *finishBuffers) knows(f *queue.Flight) *store.Run {
	b.known = b.known[:len(b.known)+1]
	known := &b.known[len(b.known)-1]
	f.Run.Fill(known, f.Job)
	return known
}
