package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
)

// Waits that are told of as troubles when they last too long. Waits has what due runs wait for, but for runs
// of their own job and places that running handlers hold; LateByRouter and LateByExecutor count the runs
// of two troubles that others tell of.

// Wait is one kind of what due runs of an app wait for.
type Wait struct {
	Lack, App string    // Lack is as in Stats.Waiting
	Runs      int       // that wait for it
	Oldest    time.Time // when the first of them was due
	RunID     int64     // which that is
}

// What those lack who wait for the answers to probes, and for their turn.
const (
	LackProbe = "probe"
	LackTurn  = "turn"
)

// Waits are what due runs wait for that has a bound. While there is nothing, the next run that
// waits so wakes Wakes.Waiting.
func (q *Queue) Waits() (all []Wait) {
	q.mu.Lock()
	defer q.mu.Unlock()
	add := func(lack string, t *fairQueue, counts func(*Entry) bool) {
		for app, ofApp := range t.apps {
			if len(*ofApp) == 0 || !counts(ofApp.First()) {
				continue
			}
			i := slices.IndexFunc(all, func(w Wait) bool { return w.Lack == lack && w.App == app })
			if i < 0 {
				i, all = len(all), append(all, Wait{Lack: lack, App: app})
			}
			w, first := &all[i], ofApp.First()
			w.Runs += len(*ofApp)
			if at := first.Run.Scheduled(); w.RunID == 0 || at.Before(w.Oldest) {
				w.Oldest, w.RunID = at, first.Run.ID
			}
		}
	}
	any := func(*Entry) bool { return true }
	for at, waiting := range q.Due.lists.all() {
		if at.kind.hasBound() {
			add(at.kind.lacks(), waiting, any)
		}
	}
	if q.Due.lists.watched = len(all) > 0; q.Due.lists.watched {
		// What is due is looked at while others wait: the loop that starts them may be what hangs.
		// Who was let in for a place has waited for that, and not for long here.
		add(kindDue.lacks(), &q.Due.ready, func(en *Entry) bool { return !en.Waited })
	}
	slices.SortFunc(all, func(a, b Wait) int { return cmp.Or(a.Oldest.Compare(b.Oldest), cmp.Compare(a.App, b.App)) })
	return all
}

// isOver reports whether the run was cancelled as its job was stopped, or removed, and is still in memory.
func (en *Entry) isOver() bool {
	run := en.Run.Rest
	if run == nil {
		run = &store.Run{Type: en.Run.RunType(), Born: en.Run.RunType().ScheduleBorn()}
	}
	return en.Ref.gone || core.MustNotStart(run, en.Ref.job)
}

// lateAt is how many runs of a job wait in a waitlist, but for those that are over. It looks at each where
// there may be such. Caller holds mu.
func (q *Queue) lateAt(at WaitKey, ref *jobRef) (late int) {
	n := q.Due.lenOf(at)
	if n == 0 || ref == nil || !ref.gone && !core.Unscheduled(ref.job) {
		return n
	}
	for _, waiting := range q.Due.lists.at(at).apps {
		for en := range waiting.All() {
			if !en.isOver() {
				late++
			}
		}
	}
	return late
}

// LateByRouter is how many due runs of a job wait for a node that knows its routing strategy, and behind
// those that do. What is over does not count.
func (q *Queue) LateByRouter(jobID int64) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	ref := q.Jobs.refs[jobID]
	late := q.lateAt(ForRouter(jobID), ref) + q.lateAt(forEarlier(jobID), ref)
	for _, id := range q.InFlight.retries.of[jobID] {
		if retry := q.Held.runs.Of(id); retry != nil && retry.due {
			late += q.lateAt(forRun(id), ref)
		}
	}
	return late
}

// LateByExecutor is how many due runs of an app wait for an executor, and behind those that do. What is over
// does not count. It looks at each.
func (q *Queue) LateByExecutor(app string) (late int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.Due.lists.at(ForExecutor(app))
	if t == nil || t.apps[app] == nil {
		return 0
	}
	seen := map[int64]bool{}
	for en := range t.apps[app].All() {
		if !en.isOver() {
			late++
		}
		if !seen[en.Run.JobID] {
			seen[en.Run.JobID] = true
			late += q.lateAt(forEarlier(en.Run.JobID), en.Ref)
		}
	}
	return late
}
