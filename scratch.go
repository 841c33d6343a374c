package xxljob

// Lists whose memory is used again and again by one loop of a node.

// scratch is such a list.
type scratch[T any] struct {
	list  []T
	spare int // for how many uses in a row there has been far more room than was needed
}

// again is the memory, with nothing in it, until what has become of it is taken in by used.
func (s *scratch[T]) again() []T {
	if cap(s.list) <= scratchLeast || len(s.list) >= cap(s.list)/8 {
		s.spare = 0
	} else if s.spare++; s.spare == scratchSpare {
		s.drop() // what a burst has made is given up
	}
	clear(s.list)
	s.list = s.list[:0]
	return s.list
}

// used takes in what has become of the memory.
func (s *scratch[T]) used(list []T) { s.list = list }

// drop leaves the memory to whoever may still have it.
func (s *scratch[T]) drop() { *s = scratch[T]{} }

const (
	// scratchLeast is for how many there may be room in any case.
	scratchLeast = 1024
	// scratchSpare is after how many uses memory is given up that is too large. Scans and claims
	// are large and small by turns.
	scratchSpare = 100
)
