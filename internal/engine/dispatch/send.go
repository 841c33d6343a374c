package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Started runs on their way to be sent, at their time. Input: runs that the store has marked
// started, from startbatch.go and inbox.go. Output: the same runs, to send.go.

// Deliverer has started runs sent at their time.
type Deliverer struct {
	*core.Core
	engine  *queue.Queue
	sender  *Sender
	early   *earlyFlights
	fanOut  fanOut
	callers loop.Pool
	// together has the memory of calls with many flights.
	together sync.Pool
}

func NewDeliverer(s *core.Core, e *queue.Queue, sender *Sender) *Deliverer {
	d := &Deliverer{Core: s, engine: e, sender: sender, early: &earlyFlights{}, fanOut: make(fanOut, max(1, s.Cfg.Limits.FastLane/2)), callers: loop.NewPool()}
	sender.Rerouter.deliver = d.deliver
	return d
}

// DeliverDuty sends what was started early at its time. It is a loop of its own: one that
// starts runs as well would be late with these while it waits for the store.
func (d *Deliverer) DeliverDuty() loop.Duty {
	return loop.Duty{What: "sending started runs", Wakes: []<-chan struct{}{d.Life.Wakes.Deliver}, Once: func(context.Context) (time.Duration, error) {
		d.deliverDue(d.Clock.Now())
		if at, ok := d.early.next(); ok {
			return max(at.Sub(d.Clock.Now()), time.Microsecond), nil
		}
		return loop.Forever, nil
	}}
}

// deliverAllAt is deliverAt for many.
func (d *Deliverer) deliverAllAt(flights []*queue.Flight) {
	now := d.Clock.Now()
	due := flights[:0]
	for _, f := range flights {
		if f.Run.Planned.Scheduled().After(now) {
			d.deliverAt(f)
		} else {
			due = append(due, f)
		}
	}
	d.deliverAll(due)
}

// deliverAll hands started runs to their executors: together those that an executor of ours in
// this process only has to enqueue.
func (d *Deliverer) deliverAll(flights []*queue.Flight) {
	if len(flights) == 1 {
		d.deliver(flights[0])
		return
	}
	b, _ := d.together.Get().(*sendBatch)
	if b == nil {
		b = &sendBatch{}
	}
	for _, f := range flights {
		if !d.isQuick(f) || d.Cfg.Tracer != nil {
			d.deliver(f)
			continue
		}
		for !b.add(f) {
			if len(b.flights) == 0 {
				d.deliver(f)
				break
			}
			d.sender.sendAll(d.Life.Loops.Work.Ctx, b)
		}
	}
	if len(b.flights) > 0 {
		d.sender.sendAll(d.Life.Loops.Work.Ctx, b)
	}
	d.together.Put(b)
}

// isQuick reports whether the executor of a flight only enqueues it, and it was started a moment
// ago.
func (d *Deliverer) isQuick(f *queue.Flight) bool {
	return f.Lane == queue.LaneNone && !f.Remote && time.Since(f.Acked) <= d.Leases.Times.Window
}

// deliverAt sends a started run at its time: now, or when its loop finds it due.
func (d *Deliverer) deliverAt(f *queue.Flight) {
	early := f.Run.Planned.Scheduled().Sub(d.Clock.Now())
	switch {
	case early <= 0:
		d.deliver(f)
	case d.Life.Draining.Load():
		// That loop ends, or has ended; Stop waits for this goroutine.
		d.Life.Loops.Work.Run(func(ctx context.Context) {
			if loop.Sleep(ctx, early) {
				d.deliver(f)
			}
		})
	default:
		d.Life.Wakes.Deliver.PokeIf(d.early.add(f))
	}
}

// deliverDue sends what was started early and is due now.
func (d *Deliverer) deliverDue(now time.Time) {
	if due := d.early.pop(now); len(due) > 0 {
		if len(due) >= queue.HerdLeast {
			d.engine.Rush.Begin()
			defer d.engine.Rush.End()
		}
		d.deliverAll(due)
		clear(due)
	}
}

// DeliverRest sends what was taken from other nodes a moment before its time,
// when the loop for that has ended: this node has taken it, so it runs it.
func (d *Deliverer) DeliverRest(ctx context.Context) {
	for {
		at, ok := d.early.next()
		if !ok || !loop.Sleep(ctx, at.Sub(d.Clock.Now())) {
			return
		}
		d.deliverDue(d.Clock.Now())
	}
}

// deliver hands a started run to its executor. One of ours only enqueues it;
// others may take their time, and are called from a goroutine that holds a place
// in a lane. Stop waits for these goroutines.
func (d *Deliverer) deliver(f *queue.Flight) {
	if d.isQuick(f) {
		d.sender.send(d.Life.Loops.Work.Ctx, f)
		return
	}
	d.callers.Run(d.Life.Loops.Work, func(ctx context.Context) {
		if f.Fanned && !d.fanOut.enter(ctx) {
			return
		}
		defer d.fanOut.leaveIf(f.Fanned)
		if d.stillMine(ctx, f) {
			d.sender.send(ctx, f)
		}
	})
}

// fanOut bounds the calls for the further parts of broadcasts at remote executors. They
// are started together, and have no places in the lanes.
type fanOut chan struct{}

func (o fanOut) enter(ctx context.Context) bool {
	select {
	case o <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (o fanOut) leaveIf(entered bool) {
	if entered {
		<-o
	}
}

// stillMine looks at the run again when its start is longer ago than this node
// is trusted for: a node that was paused must not send what may have been
// decided about meanwhile.
func (d *Deliverer) stillMine(ctx context.Context, f *queue.Flight) bool {
	backoff := loop.Backoff{Log: d.Logger, What: "reading a run before it is sent"}
	var began time.Time
	read := func(ctx context.Context) (store.Run, error) {
		began = time.Now()
		run, err := d.Store.Run(ctx, f.Run.Planned.ID)
		if errs.IsNotFound(err) {
			return store.Run{}, nil
		}
		return run, err
	}
	for time.Since(f.Acked) > d.Leases.Times.Window {
		run, err := loop.CallUntil(ctx, &backoff, read, read)
		switch {
		case err != nil:
			return false
		case run.State == store.StateStarted && run.Address == f.Run.Address && run.Token == f.Run.Token:
			f.Acked = began
		default:
			d.engine.Land(f.Run.Planned.ID)
			d.engine.Answered(f, 0)
			if run.ID != 0 {
				d.engine.NotMine(run)
			}
			return false
		}
	}
	return true
}

// Started runs whose time has not quite come.

// earlyFlights are started runs whose time has not quite come: the store's answer was quicker
// than the lead, or they have gone with what was due before them.
type earlyFlights struct {
	mu      sync.Mutex
	flights []earlyFlight   // guarded by mu: a binary heap, the earliest first
	popped  []*queue.Flight // of who pops
}

// earlyFlight is one with its time, in milliseconds.
type earlyFlight struct {
	at int64
	f  *queue.Flight
}

// add keeps a flight until its time. It reports whether that comes before all others'.
func (e *earlyFlights) add(f *queue.Flight) (sooner bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := f.Run.Planned.At
	e.flights = append(e.flights, earlyFlight{at, f})
	i := len(e.flights) - 1
	for i > 0 && at < e.flights[(i-1)/2].at {
		e.flights[i] = e.flights[(i-1)/2]
		i = (i - 1) / 2
	}
	e.flights[i] = earlyFlight{at, f}
	return i == 0
}

// pop takes those whose time has come, the earliest first. One goroutine at a time pops: what it
// gets is in memory that it gets again, and clears.
func (e *earlyFlights) pop(now time.Time) []*queue.Flight {
	due := e.popped[:0]
	ms := now.UnixMilli()
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.flights) > 0 && e.flights[0].at <= ms {
		due = append(due, e.flights[0].f)
		e.dropFirst()
	}
	if len(e.flights) == 0 && cap(e.flights) > queue.SpareEntries {
		e.flights = nil // a large herd is over
	}
	if e.popped = due; cap(due) > queue.SpareEntries {
		e.popped = nil
	}
	return due
}

// dropFirst takes the first off the heap.
func (e *earlyFlights) dropFirst() {
	h := e.flights
	last := h[len(h)-1]
	h[len(h)-1] = earlyFlight{}
	h = h[:len(h)-1]
	e.flights = h
	if len(h) == 0 {
		return
	}
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1].at < h[child].at {
			child++
		}
		if child >= len(h) || last.at <= h[child].at {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = last
}

// next is when the next one is due.
func (e *earlyFlights) next() (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.flights) == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(e.flights[0].at), true
}
