package xxljob

// Memory for results on their way to the store, which one batch uses after the other.

// finishRoom has it. A batch whose storing has failed leaves it to the call, which may still be
// under way.
type finishRoom struct {
	flights []*flight
	results []Result
	answers []Run
}

// cleared is the memory as it was before the batch.
func (r *finishRoom) cleared() *finishRoom {
	clear(r.flights)
	clear(r.results)
	clear(r.answers)
	r.flights, r.results, r.answers = r.flights[:0], r.results[:0], r.answers[:0]
	return r
}
