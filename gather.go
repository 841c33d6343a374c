package xxljob

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// gather collects what many requests ask of the store into one call at a time. It is
// safe for concurrent use; its zero value needs a wake.
type gather[T any] struct {
	wake wake

	mu   sync.Mutex
	next *gathered[T] // guarded by mu: nil when there is nothing to do
}

// gathered is what has come together since the last call.
type gathered[T any] struct {
	items []*T
	done  chan struct{} // closed when err and what is in the items are set
	err   error
}

// add puts items into the next call. They are the loop's until that is done.
func (g *gather[T]) add(items ...*T) *gathered[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next == nil {
		g.next = &gathered[T]{done: make(chan struct{})}
		g.wake.poke()
	}
	g.next.items = append(g.next.items, items...)
	return g.next
}

// take returns what is to be done now, nil when there is nothing.
func (g *gather[T]) take() *gathered[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.next
	g.next = nil
	return b
}

// loop does what comes together, one call after the other, with a pause after each,
// until ctx ends. What has come by then is done as well, so do bounds its own calls and
// is not ended with ctx.
func (g *gather[T]) loop(ctx context.Context, pause time.Duration, do func(context.Context, []*T) error) {
	for more := true; more; {
		more = sleep(ctx, forever, g.wake)
		if b := g.take(); b != nil {
			b.err = do(context.WithoutCancel(ctx), b.items)
			close(b.done)
			more = sleep(ctx, pause) && more
		}
	}
}

// errNotYet says that a call has not been answered in time: what it was for may be done
// or not.
var errNotYet = errors.New("xxljob: not answered in time")

// wait waits for the call that an item is part of, until ctx ends or patience is over.
func (b *gathered[T]) wait(ctx context.Context, patience time.Duration) error {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return fmt.Errorf("%w: %v", errNotYet, patience)
	}
}
