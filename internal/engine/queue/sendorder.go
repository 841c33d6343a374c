package queue

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/internal/timering"
	"github.com/xxljob/xxljob/store"
)

// The order in which started runs of a job are sent to one address. Most have their place there
// since before they were started (JobPlaceAt). Others take it only now: further parts of broadcasts,
// runs that this node has taken from another one, or that another address has refused. And there are
// those that the former owner of a shard is sending: their places are kept here too.

// sendOrder are started runs that wait for their place, by place.
type sendOrder map[WaitKey][]waitingSend

// waitingSend is one of them. Its channel is closed when it has the place.
type waitingSend struct {
	run timering.Key
	has chan struct{}
}

// next takes the earliest off those that wait for a place, and returns its run, 0 for none.
func (t sendOrder) next(at WaitKey) (runID int64) {
	waiting := t[at]
	if len(waiting) == 0 {
		return 0
	}
	first := 0
	for i := range waiting {
		if waiting[i].run.Before(waiting[first].run) {
			first = i
		}
	}
	close(waiting[first].has)
	runID = waiting[first].run.RunID
	t.set(at, slices.Delete(waiting, first, first+1))
	return runID
}

// wait has a run wait for a place. What it returns is closed when the run has it.
func (t sendOrder) wait(at WaitKey, run timering.Key) (has chan struct{}) {
	has = make(chan struct{})
	t[at] = append(t[at], waitingSend{run, has})
	return has
}

// drop takes a run off those that wait for a place.
func (t sendOrder) drop(at WaitKey, runID int64) {
	t.set(at, slices.DeleteFunc(t[at], func(w waitingSend) bool { return w.run.RunID == runID }))
}

func (t sendOrder) set(at WaitKey, waiting []waitingSend) {
	if len(waiting) == 0 {
		delete(t, at)
		return
	}
	t[at] = waiting
}

// AwaitPlace waits until a flight may be sent: what was sent before of its job to its address was
// answered, or is in doubt. It reports whether it may; false where ctx has ended.
func (q *Queue) AwaitPlace(ctx context.Context, f *Flight) bool {
	if !f.AwaitsAnswer() {
		return true
	}
	run := f.Run.Planned.Key()
	has := q.takeOrAwaitPlace(f.JobPlace, run)
	if has == nil {
		return true
	}
	select {
	case <-has:
		return true
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := slices.DeleteFunc(q.Due.sends[f.JobPlace], func(t waitingSend) bool { return t.has == has })
	q.Due.sends.set(f.JobPlace, waiting)
	q.wakes.Start.PokeIf(q.Due.freeJobPlace(f.JobPlace, run.RunID)) // it may have got its turn just now
	return false
}

// takeOrAwaitPlace takes the place and returns nil, or returns a channel that is closed when the run
// has it.
func (q *Queue) takeOrAwaitPlace(at WaitKey, run timering.Key) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.Due.takeJobPlace(at, run) {
		return nil
	}
	q.wakes.Transit.PokeIf(len(q.InFlight.answers) > 0)
	return q.Due.sends.wait(at, run)
}

// AwaitAnswer has the later runs of a job wait at a remote address for one that another node, which
// lives, may be sending there: the former owner of their shard. They go on once the store says that
// it was answered, or is over (Saw), and at the given time in any case: no call for it is under way
// any more then. Several runs of a job may be so at one address; all are waited for. Of a broadcast with
// several parts at one address those that still queue at the former owner may come later than that.
func (q *Queue) AwaitAnswer(r store.Run, until time.Time) {
	at, run := WaitKey{kind: kindJobPlace, jobID: r.JobID, address: r.Address}, compact.KeyOf(&r)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.InFlight.here.Of(r.ID) != nil {
		return
	}
	if _, awaited := q.InFlight.answers[r.ID]; !awaited {
		q.wakes.Start.PokeIf(q.landRemote(r.ID, at))
		away := remoteAt(r)
		away.jobPlace = at
		q.InFlight.remote[r.ID] = away
		if !q.Due.takeJobPlace(at, run) {
			q.Due.sends.wait(at, run)
		}
	}
	q.InFlight.answers[r.ID] = until
	q.wakes.Watch.Poke()
	q.wakes.Transit.Poke()
}

// isAnswered reports whether nobody waits any more for the answer to a run that another node has sent,
// of which the store says something. Caller holds mu.
func (q *Queue) isAnswered(r *store.Run) bool {
	until, awaited := q.InFlight.answers[r.ID]
	return awaited && (r.State != store.StateStarted || !time.Now().Before(until))
}

// unanswered are the runs at other nodes for whose answers others wait. Caller holds mu.
func (q *Queue) unanswered() (ids []int64) {
	for id := range q.InFlight.answers {
		at := q.InFlight.remote[id].jobPlace
		waits := slices.ContainsFunc(q.Due.sends[at], func(w waitingSend) bool {
			_, awaited := q.InFlight.answers[w.run.RunID]
			return !awaited
		})
		if waits || q.Due.lists.at(at) != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// TakePlace takes the place for a run in doubt that is to be sent again. It does so if nobody has
// the place; GivePlace gives it back.
func (q *Queue) TakePlace(at WaitKey, runID int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at.kind != kindJobPlace || q.Due.serial.at(at) == 0 {
		if at.kind == kindJobPlace {
			q.Due.serial.take(at, runID)
		}
		return true
	}
	return false
}

func (q *Queue) GivePlace(at WaitKey, runID int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakes.Start.PokeIf(q.Due.freeJobPlace(at, runID))
}
