package xxljob

import "cmp"

// ringEntry is free of pointers, so that a full ring costs the collector
// nothing.
type ringEntry struct{ at, runID int64 }

func (e ringEntry) before(o ringEntry) bool {
	return e.at < o.at || e.at == o.at && e.runID < o.runID
}

func (e ringEntry) compare(o ringEntry) int {
	return cmp.Or(cmp.Compare(e.at, o.at), cmp.Compare(e.runID, o.runID))
}
