package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Started runs that are sent at their time. Input: flights, from launch.go. Output: the same
// flights when they may be sent, to call.go.

// sender sends started runs to their executors at their time, and on to others where these
// refuse.
type sender struct {
	*core.Core
	queue    *queue.Queue
	finisher *finisher
	watcher  *watcher
	killer   *killer
	inDoubt  *inDoubt
	marker   *dispatchMarker
	book     *registry.Addresses
	callees  *router.Resolver

	early    delayQueue
	fanOut   fanOut
	callers  loop.Pool
	together sync.Pool // of *callBatch: memory of calls with many flights
}

// duty sends what was started early at its time. It is a loop of its own: one that
// starts runs as well would be late with these while it waits for the store.
func (s *sender) duty() loop.Duty {
	return loop.Duty{What: "sending started runs", Wakes: []<-chan struct{}{s.Life.Wakes.Deliver}, Once: func(context.Context) (time.Duration, error) {
		s.sendDue(s.Clock.Now())
		if at, ok := s.early.next(); ok {
			return max(at.Sub(s.Clock.Now()), time.Microsecond), nil
		}
		return loop.Forever, nil
	}}
}

// sendAllAtTime is sendAtTime for many.
func (s *sender) sendAllAtTime(flights []*queue.Flight) {
	now := s.Clock.Now()
	due := flights[:0]
	for _, f := range flights {
		if f.Run.Planned.Scheduled().After(now) {
			s.sendAtTime(f)
		} else {
			due = append(due, f)
		}
	}
	s.sendAll(due)
}

// sendAll sends started runs: in one call those that an executor of ours in this process only
// has to enqueue.
func (s *sender) sendAll(flights []*queue.Flight) {
	if len(flights) == 1 {
		s.send(flights[0])
		return
	}
	b, _ := s.together.Get().(*callBatch)
	if b == nil {
		b = &callBatch{}
	}
	for _, f := range flights {
		if !onlyEnqueues(f) || !s.isFresh(f) || s.Cfg.Tracer != nil {
			s.send(f)
			continue
		}
		for !b.add(f) {
			if len(b.flights) == 0 {
				s.send(f)
				break
			}
			s.callTogether(s.Life.Loops.Work.Ctx, b)
		}
	}
	if len(b.flights) > 0 {
		s.callTogether(s.Life.Loops.Work.Ctx, b)
	}
	s.together.Put(b)
}

// sendAtTime sends a started run at its time: now, or when its loop finds it due.
func (s *sender) sendAtTime(f *queue.Flight) {
	early := f.Run.Planned.Scheduled().Sub(s.Clock.Now())
	switch {
	case early <= 0:
		s.send(f)
	case s.Life.Draining.Load():
		// That loop ends, or has ended; Stop waits for this goroutine.
		s.Life.Loops.Work.Run(func(ctx context.Context) {
			if loop.Sleep(ctx, early) {
				s.send(f)
			}
		})
	default:
		s.Life.Wakes.Deliver.PokeIf(s.early.add(f))
	}
}

// sendDue sends what was started early and is due now.
func (s *sender) sendDue(now time.Time) {
	if due := s.early.pop(now); len(due) > 0 {
		if len(due) >= queue.HerdLeast {
			s.queue.Rush.Begin()
			defer s.queue.Rush.End()
		}
		s.sendAll(due)
		clear(due)
	}
}

// sendRest sends what was taken from other nodes a moment before its time,
// when the loop for that has ended: this node has taken it, so it runs it.
func (s *sender) sendRest(ctx context.Context) {
	for {
		at, ok := s.early.next()
		if !ok || !loop.Sleep(ctx, at.Sub(s.Clock.Now())) {
			return
		}
		s.sendDue(s.Clock.Now())
	}
}

// send has the executor of a started run called, if the run may be sent. One of ours in this
// process only enqueues it; others may take their time, and are called from a goroutine that
// holds a place in a lane. Stop waits for these goroutines.
func (s *sender) send(f *queue.Flight) {
	if onlyEnqueues(f) && s.isFresh(f) {
		s.call(s.Life.Loops.Work.Ctx, f)
		return
	}
	s.callers.Run(s.Life.Loops.Work, func(ctx context.Context) {
		if f.Fanned && !s.fanOut.enter(ctx) {
			return
		}
		defer s.fanOut.leaveIf(f.Fanned)
		if s.maySend(ctx, f) {
			s.call(ctx, f)
		}
	})
}

// onlyEnqueues reports whether the executor of a flight is one of ours in this process, which
// takes a run and answers at once.
func onlyEnqueues(f *queue.Flight) bool { return f.Lane == queue.LaneNone && !f.Remote }

// maySend answers whether a run may be sent; all that says so is here. It may be while its start,
// or its take, is fresh: nobody decides about a run of a node that is trusted. A node that was
// paused for longer must not send what may have been decided about meanwhile: the run is read
// until a reading is fresh that says that it is still this node's. What else may keep a run from
// its executor, that somebody here has killed it, call finds out, as it marks the run as sent.
func (s *sender) maySend(ctx context.Context, f *queue.Flight) bool {
	backoff := loop.Backoff{Log: s.Logger, What: "reading a run before it is sent"}
	var began time.Time
	read := func(ctx context.Context) (store.Run, error) {
		began = time.Now()
		run, err := s.Store.Run(ctx, f.Run.Planned.ID)
		if errs.IsNotFound(err) {
			return store.Run{}, nil
		}
		return run, err
	}
	for !s.isFresh(f) {
		run, err := loop.CallUntil(ctx, &backoff, read, read)
		switch {
		case err != nil:
			return false
		case run.State == store.StateStarted && run.Address == f.Run.Address && run.Token == f.Run.Token:
			f.Acked = began
		default:
			s.queue.Land(f.Run.Planned.ID)
			s.queue.Answered(f, 0)
			if run.ID != 0 {
				s.queue.NotMine(run)
			}
			return false
		}
	}
	return true
}

// isFresh reports whether the store has acknowledged within the trust window that the run is this
// node's.
func (s *sender) isFresh(f *queue.Flight) bool {
	return time.Since(f.Acked) <= s.Leases.Times.Window
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
