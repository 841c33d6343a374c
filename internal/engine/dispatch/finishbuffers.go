package dispatch

import (
	"sync"
	"sync/atomic"

	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/store"
)

// Memory for results on their way to the store, which one batch uses after the other.

// finishBuffers has it. A batch whose storing has failed leaves it to the call, which may still be
// under way.
type finishBuffers struct {
	flights []*queue.Flight
	known   []store.Run // the runs of flights
	results []store.Result
	answers []store.Run
}

// finishBufferPool are those that nobody uses. A batch has up to StoreBatch results, so a room takes some
// 1.5 MB at most. One is kept for as long as the process lives, since garbage is collected several
// times between two herds, and a collection takes the others. It is safe for concurrent use.
type finishBufferPool struct {
	one  atomic.Pointer[finishBuffers]
	more sync.Pool // of *finishBuffers
}

// take returns one, which is empty.
func (r *finishBufferPool) take() *finishBuffers {
	if room := r.one.Swap(nil); room != nil {
		return room
	}
	if room, ok := r.more.Get().(*finishBuffers); ok {
		return room
	}
	return &finishBuffers{}
}

// giveBack takes one back, with whatever is in it.
func (r *finishBufferPool) giveBack(room *finishBuffers) {
	if room = room.cleared(); !r.one.CompareAndSwap(nil, room) {
		r.more.Put(room)
	}
}

// cleared is the memory as it was before the batch.
func (r *finishBuffers) cleared() *finishBuffers {
	clear(r.flights)
	clear(r.known)
	clear(r.results)
	clear(r.answers)
	r.flights, r.known, r.results, r.answers = r.flights[:0], r.known[:0], r.results[:0], r.answers[:0]
	return r
}

// knows is the run of a flight, in memory for which room was made before.
func (r *finishBuffers) knows(f *queue.Flight) *store.Run {
	r.known = r.known[:len(r.known)+1]
	known := &r.known[len(r.known)-1]
	f.Run.Fill(known, f.Job)
	return known
}
