package xxljob

// Memory for results on their way to the store, which one batch uses after the other.

// finishRoom has it. A batch whose storing has failed leaves it to the call, which may still be
// under way.
type finishRoom struct {
	flights []*flight
	known   []Run // the runs of flights
	results []Result
	answers []Run
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
