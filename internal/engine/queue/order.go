package queue

import (
	"maps"
	"slices"

	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/internal/timering"
	"github.com/xxljob/xxljob/store"
)

// The order of a serial job's runs that are handed to other nodes, and its retries.

// inTransit holds, by job, the runs that are in transit, in their order.
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

// InTransit reports whether a started run is in transit, as its row says.
func InTransit(r store.Run) bool {
	return r.State == store.StateStarted && blockrule.Of(r.Block).KeepsOrder && !store.IsRemote(r.Address) && r.Taken.IsZero()
}

// The order of a serial job's runs that are handed to other nodes. A run is in transit
// from when it is about to be started until it is started here, another node has taken
// it, it has ended or waits for room, or this node gives it up; also while it waits to be
// told where to go, or for its turn (dispatch/start.go); and, where it waits for room, if it is a
// broadcast or one waits for it. While an earlier run of a job is in transit no later one is
// started: should the node be gone, the earlier one is put back, and is still the first.
// All of it is guarded by the lock of the Queue.

// InTheWay are the runs in transit that others wait for.
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
	return ids
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
// ended, or is planned again, or that the node to which it was handed has taken it.
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
		lists = append(lists, WaitKey{kind: kindRun, runID: id})
	}
	if !slices.ContainsFunc(lists, func(at WaitKey) bool { return q.Due.lists.take(at, en) }) {
		return false
	}
	q.forget(en)
	return true
}

// Retries that are planned, perhaps for a time to come, and that later runs of their jobs wait
// for.

// retryBarrier is planned retries that others wait for.
type retryBarrier struct {
	runs map[int64]store.Run // by id, as far as their order needs it
	of   map[int64][]int64   // those of each job
}

func newRetryBarrier() retryBarrier {
	return retryBarrier{runs: map[int64]store.Run{}, of: map[int64][]int64{}}
}

func (a retryBarrier) has(runID int64) bool {
	_, is := a.runs[runID]
	return is
}

func (a retryBarrier) add(retry store.Run) {
	if !a.has(retry.ID) {
		a.runs[retry.ID] = compact.Slimmed(retry)
		a.of[retry.JobID] = append(a.of[retry.JobID], retry.ID)
	}
}

func (a retryBarrier) drop(runID int64) {
	job := a.runs[runID].JobID
	delete(a.runs, runID)
	if a.of[job] = slices.DeleteFunc(a.of[job], func(id int64) bool { return id == runID }); len(a.of[job]) == 0 {
		delete(a.of, job)
	}
}

// ahead is a retry among them that a run has to let pass, 0 where there is none: it stands for
// an earlier instant, as Start.AfterRetries has it.
func (a retryBarrier) ahead(p *compact.Planned) (runID int64) {
	retries := a.of[p.JobID]
	if len(retries) == 0 {
		return 0
	}
	r := p.Run()
	for _, id := range retries {
		retry := a.runs[id]
		if at := retry.Due().Compare(r.Due()); at < 0 || at == 0 && retry.TriggerID < r.TriggerID {
			return id
		}
	}
	return 0
}

// Runs of a serial job that wait for an earlier one which is to be tried again. The store has
// found it in their way (Start.AfterRetries): it is planned, for a time to come perhaps, and
// need not be held here. They go on when it is started, which is this node's to do; when it is
// planned no more for another reason, as the watch loop finds out; when another version of
// their job is known, which may let them pass; or when their shard is another node's.

// AwaitRetry parks an entry behind a retry that is in its way. It gives up its place as the next
// serial run at its address: the retry may need it.
func (q *Queue) AwaitRetry(a Attempt, retry store.Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Due.giveBackPlaces(a)
	if ref := a.Ref; ref.job.Version != a.Job.Version { // which may let it pass
		q.Due.keepAhead(a.Item)
		q.Due.ready.push(a.Item)
		q.wakes.Start.Poke()
		return
	}
	q.InFlight.retries.add(retry)
	q.Due.parkBehind(WaitKey{kind: kindRun, runID: retry.ID}, a.Item)
	q.wakes.Watch.Poke()
}

// waitsForRetry parks a run behind a retry that is known to be in its way, so that the store is
// not asked for each of many that wait. Called with mu held.
func (q *Queue) waitsForRetry(a *Attempt) bool {
	if a.Job.RetryAside {
		return false
	}
	id := q.InFlight.retries.ahead(&a.Run)
	if id != 0 {
		q.Due.parkBehind(WaitKey{kind: kindRun, runID: id}, a.Item)
	}
	return id != 0
}

// AwaitedRetries are the retries that others wait for: what has come of the definitions of their
// jobs has to be found out, since no run of theirs starts that would tell.
func (q *Queue) AwaitedRetries() []store.Run {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Collect(maps.Values(q.InFlight.retries.runs))
}

// admitBehindRetry lets those go on that wait for a retry, which is planned no more. Called with mu held.
func (q *Queue) admitBehindRetry(runID int64) bool {
	if !q.InFlight.retries.has(runID) {
		return false
	}
	q.InFlight.retries.drop(runID)
	return q.Due.admitAllOf(WaitKey{kind: kindRun, runID: runID})
}

// admitBehindRetriesOf lets those go on that wait for retries of a job. Called with mu held.
func (q *Queue) admitBehindRetriesOf(jobID int64) {
	for _, id := range slices.Clone(q.InFlight.retries.of[jobID]) {
		q.wakes.Start.PokeIf(q.admitBehindRetry(id))
	}
}

// IsAwaited reports whether others wait for a retry.
func (q *Queue) IsAwaited(runID int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.InFlight.retries.has(runID)
}
