package queue

import (
	"maps"
	"slices"

	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/store"
)

// Runs of a serial job that wait for an earlier one which is to be tried again. The store has
// found that retry in their way (Start.AfterRetries): it is planned, for a time to come perhaps, and
// need not be held here. They go on when it is started, which is this node's to do; when it is
// planned no more for another reason, as the watch loop finds out; when another version of
// their job is known, which may let them pass; or when their shard is another node's.

// retryBarrier are the planned retries that others wait for. It is guarded by the lock of the Queue.
type retryBarrier struct {
	runs map[int64]store.Run // by id, as far as their order needs it
	of   map[int64][]int64   // those of each job
}

func newRetryBarrier() retryBarrier {
	return retryBarrier{runs: map[int64]store.Run{}, of: map[int64][]int64{}}
}

func (b retryBarrier) has(runID int64) bool {
	_, is := b.runs[runID]
	return is
}

func (b retryBarrier) add(retry store.Run) {
	if !b.has(retry.ID) {
		b.runs[retry.ID] = compact.Slimmed(retry)
		b.of[retry.JobID] = append(b.of[retry.JobID], retry.ID)
	}
}

func (b retryBarrier) drop(runID int64) {
	job := b.runs[runID].JobID
	delete(b.runs, runID)
	if b.of[job] = slices.DeleteFunc(b.of[job], func(id int64) bool { return id == runID }); len(b.of[job]) == 0 {
		delete(b.of, job)
	}
}

// ahead is a retry among them that a run has to let pass, 0 where there is none: it stands for
// an earlier instant, as Start.AfterRetries has it.
func (b retryBarrier) ahead(p *compact.Planned) (runID int64) {
	retries := b.of[p.JobID]
	if len(retries) == 0 {
		return 0
	}
	r := p.Run()
	for _, id := range retries {
		retry := b.runs[id]
		if at := retry.Due().Compare(r.Due()); at < 0 || at == 0 && retry.TriggerID < r.TriggerID {
			return id
		}
	}
	return 0
}

// AwaitRetry parks an entry behind a retry that is in its way. It gives up its place as the next
// serial run at its address: the retry may need it.
func (q *Queue) AwaitRetry(a Attempt, retry store.Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Due.giveBackPlaces(a)
	if ref := a.Ref; ref.job.Version != a.Job.Version { // which may let it pass
		q.Due.keepAhead(a.Entry)
		q.Due.ready.push(a.Entry)
		q.wakes.Start.Poke()
		return
	}
	q.InFlight.retries.add(retry)
	q.Due.parkBehind(forRun(retry.ID), a.Entry)
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
		q.Due.parkBehind(forRun(id), a.Entry)
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
	return q.Due.admitAllOf(forRun(runID))
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
