package xxljob

// Retries that are planned, perhaps for a time to come, and that later runs of their jobs wait
// for: see passing.go.

import "slices"

// awaited are planned retries that others wait for.
type awaited struct {
	runs map[int64]Run     // by id, as far as their order needs it
	of   map[int64][]int64 // those of each job
}

func newAwaited() awaited { return awaited{runs: map[int64]Run{}, of: map[int64][]int64{}} }

func (a awaited) has(runID int64) bool {
	_, is := a.runs[runID]
	return is
}

func (a awaited) add(retry Run) {
	if !a.has(retry.ID) {
		a.runs[retry.ID] = slimmed(retry)
		a.of[retry.JobID] = append(a.of[retry.JobID], retry.ID)
	}
}

func (a awaited) drop(runID int64) {
	job := a.runs[runID].JobID
	delete(a.runs, runID)
	if a.of[job] = slices.DeleteFunc(a.of[job], func(id int64) bool { return id == runID }); len(a.of[job]) == 0 {
		delete(a.of, job)
	}
}

// ahead is a retry among them that a run has to let pass, 0 where there is none: it stands for
// an earlier instant, as Start.AfterRetries has it.
func (a awaited) ahead(p *plannedRun) (runID int64) {
	retries := a.of[p.JobID]
	if len(retries) == 0 {
		return 0
	}
	r := p.full()
	for _, id := range retries {
		retry := a.runs[id]
		if at := retry.Instant().Compare(r.Instant()); at < 0 || at == 0 && retry.TriggerID < r.TriggerID {
			return id
		}
	}
	return 0
}

// slimmed is a run without what may be long and nobody asks for here.
func slimmed(r Run) Run {
	r.Param, r.TriggerMsg, r.HandleMsg, r.ProgressText, r.Addresses = "", "", "", "", nil
	return r
}
