package xxljob

// Runs of concurrent jobs with a maximum: which of them are at an attached executor, or about
// to be. It is guarded by the engine's mutex.

// beside has the runs by their place.
type beside map[lot]map[int64]struct{}

// add gives a run its place, unless as many others have it as may.
func (b beside) add(at lot, runID int64) bool {
	runs := b[at]
	if _, has := runs[runID]; has {
		return true
	}
	if len(runs) >= at.most {
		return false
	}
	if runs == nil {
		runs = map[int64]struct{}{}
		b[at] = runs
	}
	runs[runID] = struct{}{}
	return true
}

// drop takes it away, and reports whether the run had it.
func (b beside) drop(at lot, runID int64) bool {
	if _, has := b[at][runID]; !has {
		return false
	}
	if delete(b[at], runID); len(b[at]) == 0 {
		delete(b, at)
	}
	return true
}
