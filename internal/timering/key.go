package timering

import "cmp"

// Key is a run by when it is due, in milliseconds since 1970, and by its id: runs are in this order
// here, as in the store. It is free of pointers, so that a full ring costs the collector nothing.
type Key struct{ At, RunID int64 }

func (e Key) Before(o Key) bool {
	return e.At < o.At || e.At == o.At && e.RunID < o.RunID
}

func (e Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(e.At, o.At), cmp.Compare(e.RunID, o.RunID))
}
