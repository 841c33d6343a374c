package queue

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob/internal/timering"
)

// The order in which started runs of a job are sent to one address. Most have their place there
// since before they were started (JobPlaceAt). Others take it only now: further parts of broadcasts,
// runs that this node has taken from another one, or that another address has refused.

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
	t := waitingSend{run, make(chan struct{})}
	q.Due.sends[at] = append(q.Due.sends[at], t)
	return t.has
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
