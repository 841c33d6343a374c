package xxljob

// Memory for the runs of many plans, which the claims of a node use again.

// planRoom has it. What it has lent is its own again with reset.
type planRoom struct {
	runs []NewRun
}

// reset takes back what was lent, where it is not more than most scans need.
func (r *planRoom) reset() {
	if cap(r.runs) > planRoomMost {
		r.runs = nil
	}
	clear(r.runs)
	r.runs = r.runs[:0]
}

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

const (
	planRoomLeast = 1000
	// planRoomMost is how many runs it keeps room for, from one scan to the next.
	planRoomMost = 64_000
)
