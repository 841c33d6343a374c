package xxljob

// The order of a serial job's runs that are handed to other nodes: see transit.go.

import "github.com/xxljob/xxljob/block"

// transit holds, by job, the runs that are in transit, with their place in the order.
type transit map[int64]map[int64]ringEntry

func (t transit) add(r *Run) {
	if t[r.JobID] == nil {
		t[r.JobID] = map[int64]ringEntry{}
	}
	t[r.JobID][r.ID] = keyOfRun(r)
}

func (t transit) has(r *Run) bool {
	_, ok := t[r.JobID][r.ID]
	return ok
}

func (t transit) drop(jobID, runID int64) {
	if runs := t[jobID]; runs != nil {
		if delete(runs, runID); len(runs) == 0 {
			delete(t, jobID)
		}
	}
}

// isBehind reports whether an earlier run of the job is in transit.
func (t transit) isBehind(r *Run) bool {
	key := keyOfRun(r)
	for id, ahead := range t[r.JobID] {
		if id != r.ID && ahead.before(key) {
			return true
		}
	}
	return false
}

// inTransit reports whether a started run is in transit, as its row says.
func inTransit(r Run) bool {
	return r.State == StateStarted && r.Block == block.SerialExecution && !isRemote(r.Address) && r.Taken.IsZero()
}
