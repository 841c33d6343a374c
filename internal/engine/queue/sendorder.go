package queue

import (
	"context"
	"slices"

	"github.com/xxljob/xxljob/internal/engine/lease"
)

// The order in which started runs of a job are sent to one address. Most have their place there
// since before they were started (SerialAt). Others take it only now: further parts of broadcasts,
// runs that this node has taken from another one, or that another address has refused.

// turns are started runs that wait for their place, by place.
type sendOrder map[WaitKey][]waitingSend

// turn is one of them. Its channel is closed when it has the place.
type waitingSend struct {
	run lease.RingEntry
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

// AwaitTurn waits until a flight may be sent: what was sent before of its job to its address was
// answered, or is in doubt. It reports whether it may; false where ctx has ended.
func (e *Queue) AwaitTurn(ctx context.Context, f *Flight) bool {
	if !f.AwaitsAnswer() {
		return true
	}
	run := f.Run.Planned.Key()
	has := e.waitTurn(f.Serial, run)
	if has == nil {
		return true
	}
	select {
	case <-has:
		return true
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	waiting := slices.DeleteFunc(e.Room.sends[f.Serial], func(t waitingSend) bool { return t.has == has })
	e.Room.sends.set(f.Serial, waiting)
	e.wakes.Start.PokeIf(e.Room.freeSerial(f.Serial, run.RunID)) // it may have got its turn just now
	return false
}

// waitTurn takes the place, and returns nil, or what is closed when the run has got it.
func (e *Queue) waitTurn(at WaitKey, run lease.RingEntry) chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Room.takeSerial(at, run) {
		return nil
	}
	t := waitingSend{run, make(chan struct{})}
	e.Room.sends[at] = append(e.Room.sends[at], t)
	return t.has
}

// TakeTurn takes the place for a run in doubt that is to be sent again. It does so if nobody has
// the place; GiveTurn gives it back.
func (e *Queue) TakeTurn(at WaitKey, runID int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at.kind != kindSerial || e.Room.serial.at(at) == 0 {
		if at.kind == kindSerial {
			e.Room.serial.take(at, runID)
		}
		return true
	}
	return false
}

func (e *Queue) GiveTurn(at WaitKey, runID int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wakes.Start.PokeIf(e.Room.freeSerial(at, runID))
}
