package xxljob

// Subscriptions to events: each a channel with room for some, which counts what it drops.

import (
	"context"
	"sync"
	"sync/atomic"
)

// subscriptionRoom is how many events a subscription has room for.
const subscriptionRoom = 1000

// subscriptions are those who read events. It is safe for concurrent use.
type subscriptions struct {
	count atomic.Int64

	mu   sync.Mutex
	all  map[*subscription]bool // guarded by mu
	over bool                   // guarded by mu: nothing will be told any more
}

// subscription is one reader.
type subscription struct {
	events  chan Event
	dropped int // guarded by subscriptions.mu
}

// add returns the events from here on. The channel is closed once ctx has ended, or all is
// over.
func (s *subscriptions) add(ctx context.Context) <-chan Event {
	one := &subscription{events: make(chan Event, subscriptionRoom)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || ctx == nil || ctx.Err() != nil {
		close(one.events)
		return one.events
	}
	if s.all == nil {
		s.all = map[*subscription]bool{}
	}
	s.all[one] = true
	s.count.Store(int64(len(s.all)))
	context.AfterFunc(ctx, func() { s.remove(one) })
	return one.events
}

func (s *subscriptions) remove(one *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[one] {
		delete(s.all, one)
		s.count.Store(int64(len(s.all)))
		close(one.events)
	}
}

// tell gives an event to those who have room for it.
func (s *subscriptions) tell(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.all {
		e.Dropped = one.dropped
		select {
		case one.events <- e:
			one.dropped = 0
		default:
			one.dropped++
		}
	}
}

// miss counts an event that nobody was given.
func (s *subscriptions) miss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.all {
		one.dropped++
	}
}

// end closes what is left.
func (s *subscriptions) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for one := range s.all {
		close(one.events)
	}
	s.all = nil
	s.count.Store(0)
}
