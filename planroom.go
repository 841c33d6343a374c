package xxljob

// Memory for the runs of many plans, which the claims of a node use again.

// planRoom has it. What it has lent is its own again with reset.
type planRoom struct{ scratch[NewRun] }

// reset takes back what was lent.
func (r *planRoom) reset() { r.again() }

// begin lends room for the runs of one plan. A nil room has none.
func (r *planRoom) begin() []NewRun {
	if r == nil {
		return nil
	}
	return r.list[len(r.list):]
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
	case n <= cap(r.list)-len(r.list):
		r.list = r.list[:len(r.list)+n]
	default:
		r.list = make([]NewRun, 0, max(2*cap(r.list), planRoomLeast))
	}
	return runs[:n:n]
}

// planRoomLeast is for how many runs it has room.
const planRoomLeast = 1000
