package xxljob

// Memory for the runs of many plans, which the claims of a node use again.

// planRoom has it. What it has lent is its own again with reset.
type planRoom struct {
	runs []NewRun
}

// reset takes back what was lent.
func (r *planRoom) reset() { r.runs = emptied(r.runs) }

// begin lends room for the runs of one plan. A nil room has none.
func (r *planRoom) begin() []NewRun {
	if r == nil {
		return nil
	}
	return r.runs[len(r.runs):]
}

// end takes in how much of it the plan has used, and returns its runs; nil where it has none. A
// plan that has outgrown it has memory of its own by now, and the next ones have more room.
func (r *planRoom) end(runs []NewRun) []NewRun {
	n := len(runs)
	switch {
	case n == 0:
		return nil
	case r == nil:
		return runs
	case n <= cap(r.runs)-len(r.runs):
		r.runs = r.runs[:len(r.runs)+n]
	default:
		r.runs = make([]NewRun, 0, max(2*cap(r.runs), planRoomLeast))
	}
	return runs[:n:n]
}

// planRoomLeast is for how many runs it has room.
const planRoomLeast = 1000

// emptied is memory for what comes next, of what was used last; none where that is far less than
// there is room for, as after a burst.
func emptied[T any](used []T) []T {
	if cap(used) > emptiedLeast && len(used) < cap(used)/8 {
		return nil
	}
	clear(used)
	return used[:0]
}

// emptiedLeast is for how many there may be room in any case.
const emptiedLeast = 1024
