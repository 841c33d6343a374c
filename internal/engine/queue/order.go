package queue

import (
	"slices"

	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/internal/timering"
	"github.com/xxljob/xxljob/store"
)

// Which runs of a serial job are in transit: while an earlier one is, no later one is started. Input: runs
// on their way to a start or to another node, and what the store says has become of them. Output: whether
// a run has to wait for that (isBehind, which waitsBehind in reserve.go asks), and who goes on.
//
// Two more things make a serial run wait for an earlier one, each in its own file: the earlier one has the
// job's place at the same address (jobplaces.go), or is a retry that is to be made yet (retries.go).

// inTransit holds, by job, the runs that are in transit, in their order. It is guarded by the lock of the
// Queue.
//
// A run comes into transit when it is about to be started, and also while it waits to be told where to go,
// or for its turn (dispatch/startsingly.go). While it waits for room it is in transit only if it is a
// broadcast, or if one waits for it. It leaves transit when it is started here, when another node has taken
// it, when it has ended or waits for room, and when this node gives it up. Should the node to which it was
// handed be gone, it is put back, and is still the first of its job.
type inTransit map[int64][]timering.Key

func (t inTransit) add(jobID int64, r timering.Key) {
	runs := t[jobID]
	i, has := slices.BinarySearchFunc(runs, r, timering.Key.Compare)
	if !has {
		t[jobID] = slices.Insert(runs, i, r)
	}
}

func (t inTransit) has(jobID, runID int64) bool { return t.place(jobID, runID) >= 0 }

// place is where a run is among those of its job; mostly it is the first.
func (t inTransit) place(jobID, runID int64) int {
	return slices.IndexFunc(t[jobID], func(r timering.Key) bool { return r.RunID == runID })
}

func (t inTransit) drop(jobID, runID int64) {
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
func (t inTransit) isBehind(jobID int64, r timering.Key) bool {
	runs := t[jobID]
	return len(runs) > 0 && runs[0].Before(r)
}

// InTransit reports whether the row of a started run says that it is in transit: it is a serial job's, and
// the node to which it was handed has not taken it yet.
func InTransit(r store.Run) bool {
	return r.State == store.StateStarted && blockrule.Of(r.Block).KeepsOrder && !store.IsRemote(r.Address) && r.Taken.IsZero()
}

// InTheWay are the runs that others wait for and that this node does not hold itself: those in transit, and
// those that the former owner of a shard may be sending.
func (q *Queue) InTheWay() (ids []int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for job, runs := range q.Due.inTransit {
		if q.Due.lists.at(forEarlier(job)) == nil {
			continue
		}
		for _, r := range runs {
			if q.Held.runs.Of(r.RunID) == nil {
				ids = append(ids, r.RunID)
			}
		}
	}
	return append(ids, q.unanswered()...)
}

// PlannedAgain takes in that a run which was under way, of a serial job or not as far as
// that is known, is planned again. The owner of its shard holds it from then on: no scan
// need find it, and who put it back may have done so before the answer to its start had
// leaveTransit here. One of a serial job stays ahead of the later ones.
func (q *Queue) PlannedAgain(r store.Run, serial bool) {
	_, owned := q.leases.Epoch(r.Shard)
	q.mu.Lock()
	defer q.mu.Unlock()
	serial = serial || q.Due.inTransit.has(r.JobID, r.ID)
	freed, sooner := q.landRemote(r.ID, WaitKey{}), false
	if owned {
		sooner = q.holdLocked([]store.Run{r}, nil)
	}
	if serial && q.Held.runs.Of(r.ID) != nil {
		q.Due.inTransit.add(r.JobID, compact.KeyOf(&r))
	}
	q.wakes.Start.PokeIf(sooner || freed)
}

// Saw takes in what the store says of a run that is not this node's to run, or not any more: that it has
// ended, or is planned again, or that the node to which it was handed has taken it, or that an executor has.
func (q *Queue) Saw(r *store.Run) {
	if r.State == store.StatePlanned {
		q.PlannedAgain(*r, false)
		return
	}
	q.sawOver(r, r.State.Ended())
	if r.State.Ended() {
		q.Waiters.Notify(r)
	}
}

// SawGone is Saw for a run that is over, and of which the store has no record any more. Those who wait
// for its end are told nothing but that: they have to ask the store.
func (q *Queue) SawGone(runID int64) {
	r := store.Run{ID: runID}
	q.sawOver(&r, true)
	q.Waiters.Notify(&r)
}

// sawOver lets those go on that wait for a run: for its end, which is known or not, or for less.
func (q *Queue) sawOver(r *store.Run, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	freed := q.admitBehindRetry(r.ID)
	if ended {
		freed = q.forgetParked(r.ID) || freed
		q.landRun(r.ID)
	} else if q.isAnswered(r) {
		freed = q.landRemote(r.ID, WaitKey{}) || freed
	} else if !InTransit(*r) && q.Due.inTransit.has(r.JobID, r.ID) {
		freed = q.Due.leaveTransit(r.JobID, r.ID) || freed
	}
	q.wakes.Start.PokeIf(freed)
}

// forgetParked forgets an entry whose run is over where it waits for somebody who may never come, or behind
// others that do: all others find out when they are to be started. It reports whether there is one. Caller
// holds mu.
func (q *Queue) forgetParked(runID int64) bool {
	en := q.Held.runs.Of(runID)
	if en == nil || !en.due {
		return false
	}
	lists := []WaitKey{ForRouter(en.Run.JobID), ForExecutor(en.Run.App), forEarlier(en.Run.JobID)}
	for _, id := range q.InFlight.retries.of[en.Run.JobID] {
		lists = append(lists, forRun(id))
	}
	if !slices.ContainsFunc(lists, func(at WaitKey) bool { return q.Due.lists.take(at, en) }) {
		return false
	}
	q.forget(en)
	return true
}
