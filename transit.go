package xxljob

// The order of a serial job's runs that are handed to other nodes. A run is in transit
// from when it is about to be started until it is started here, another node has taken
// it, it has ended or waits for room, or this node gives it up; also while it waits to be
// told where to go, or for its turn (apart.go); and, where it waits for room, if it is a
// broadcast or one waits for it. While an earlier run of a job is in transit no later one is
// started: should the node be gone, the earlier one is put back, and is still the first.
// All of it is guarded by the engine's mutex.

// taken notes that the node to which a run was handed has taken it.
func (e *engine) taken(r Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wakes.start.pokeIf(e.room.transit.has(r.JobID, r.ID) && e.room.arrived(r.JobID, r.ID))
}

// inTheWay are the runs in transit that others wait for.
func (e *engine) inTheWay() (ids []int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for job, runs := range e.room.transit {
		if e.room.lots.at(lotOrderOf(job)) == nil {
			continue
		}
		for _, r := range runs {
			if e.held.runs.Of(r.runID) == nil {
				ids = append(ids, r.runID)
			}
		}
	}
	return ids
}

// plannedAgain takes in that a run which was under way, of a serial job or not as far as
// that is known, is planned again. The owner of its shard holds it from then on: no scan
// need find it, and who put it back may have done so before the answer to its start had
// arrived here. One of a serial job stays ahead of the later ones.
func (e *engine) plannedAgain(r Run, serial bool) {
	_, owned := e.leases.epoch(r.Shard)
	e.mu.Lock()
	defer e.mu.Unlock()
	serial = serial || e.room.transit.has(r.JobID, r.ID)
	freed, sooner := e.landAway(r.ID, lot{}), false
	if owned {
		sooner = e.holdSome([]Run{r}, nil)
	}
	if serial && e.held.runs.Of(r.ID) != nil {
		e.room.transit.add(r.JobID, keyOfRun(&r))
	}
	e.wakes.start.pokeIf(sooner || freed)
}

// notMine acts on a run that was found not to be this node's to run any more.
func (e *engine) notMine(r Run) {
	switch {
	case r.State.Ended():
		e.waiters.notify(&r)
	case r.State == StatePlanned:
		e.plannedAgain(r, false)
	}
}
