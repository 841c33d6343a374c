package xxljob

// Memory for results on their way to the store, which one batch uses after the other.

import (
	"sync"
	"sync/atomic"
)

// finishRoom has it. A batch whose storing has failed leaves it to the call, which may still be
// under way.
type finishRoom struct {
	flights []*flight
	known   []Run // the runs of flights
	results []Result
	answers []Run
}

// finishRooms are those that nobody uses. A batch has up to storeBatch results, so a room takes some
// 1.5 MB at most. One is kept for as long as the process lives, since garbage is collected several
// times between two herds, and a collection takes the others. It is safe for concurrent use.
type finishRooms struct {
	one  atomic.Pointer[finishRoom]
	more sync.Pool // of *finishRoom
}

// take returns one, which is empty.
func (r *finishRooms) take() *finishRoom {
	if room := r.one.Swap(nil); room != nil {
		return room
	}
	if room, ok := r.more.Get().(*finishRoom); ok {
		return room
	}
	return &finishRoom{}
}

// giveBack takes one back, with whatever is in it.
func (r *finishRooms) giveBack(room *finishRoom) {
	if room = room.cleared(); !r.one.CompareAndSwap(nil, room) {
		r.more.Put(room)
	}
}

// cleared is the memory as it was before the batch.
func (r *finishRoom) cleared() *finishRoom {
	clear(r.flights)
	clear(r.known)
	clear(r.results)
	clear(r.answers)
	r.flights, r.known, r.results, r.answers = r.flights[:0], r.known[:0], r.results[:0], r.answers[:0]
	return r
}

// knows is the run of a flight, in memory for which room was made before.
func (r *finishRoom) knows(f *flight) *Run {
	r.known = r.known[:len(r.known)+1]
	known := &r.known[len(r.known)-1]
	f.run.fill(known, f.job)
	return known
}
