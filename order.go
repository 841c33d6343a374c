package xxljob

// The order of a serial job's runs that are handed to other nodes: see transit.go.

import (
	"slices"

	"github.com/xxljob/xxljob/block"
)

// transit holds, by job, the runs that are in transit, in their order.
type transit map[int64][]ringEntry

func (t transit) add(jobID int64, r ringEntry) {
	runs := t[jobID]
	i, has := slices.BinarySearchFunc(runs, r, ringEntry.compare)
	if !has {
		t[jobID] = slices.Insert(runs, i, r)
	}
}

func (t transit) has(jobID, runID int64) bool { return t.place(jobID, runID) >= 0 }

// place is where a run is among those of its job; mostly it is the first.
func (t transit) place(jobID, runID int64) int {
	return slices.IndexFunc(t[jobID], func(r ringEntry) bool { return r.runID == runID })
}

func (t transit) drop(jobID, runID int64) {
	switch i := t.place(jobID, runID); {
	case i < 0:
	case len(t[jobID]) == 1:
		delete(t, jobID)
	case i == 0:
		t[jobID] = t[jobID][1:]
	default:
		t[jobID] = slices.Delete(t[jobID], i, i+1)
	}
}

// isBehind reports whether an earlier run of the job is in transit.
func (t transit) isBehind(jobID int64, r ringEntry) bool {
	runs := t[jobID]
	return len(runs) > 0 && runs[0].before(r)
}

// inTransit reports whether a started run is in transit, as its row says.
func inTransit(r Run) bool {
	return r.State == StateStarted && r.Block == block.SerialExecution && !isRemote(r.Address) && r.Taken.IsZero()
}
