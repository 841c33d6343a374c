package xxljob

// The start loop: what it has, for start.go, apart.go and the files between them.

import "time"

// starter starts what is due. It belongs to the start loop.
type starter struct {
	*shared
	engine    *engine
	collector *collector
	batches   *startBatcher
	deliverer *deliverer

	herds     struct{ first, again herd } // starts that go apart
	offeredAt time.Time                   // see offerFreed
}

func (h *herd) size() int { return max(1, h.most) }

// took notes that n of them went together, and how long they took: the next ones are to
// take apartTime, and are no more than twice as many.
func (h *herd) took(n int, d time.Duration) {
	few := max(1, int(apartTime/max(d/time.Duration(n), time.Microsecond)))
	most := h.size()
	if n >= most {
		most *= 2
	}
	h.most = min(most, few, apartMost)
}

const (
	// apartMost is how many go together at most.
	apartMost = 64
	// apartTime is how long one call for them is to take, as far as it can be foreseen.
	apartTime = 500 * time.Millisecond
)
