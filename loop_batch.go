package xxljob

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/xxljob/xxljob/store"
)

// batch gathers what a loop of its own stores together: many who have something each cost
// one call of the store. It is safe for concurrent use.
type batch[T any] struct {
	mu    sync.Mutex
	items []T // guarded by mu
	wake  wake
}

func newBatch[T any]() *batch[T] { return &batch[T]{wake: newWake()} }

// add hands something to the loop.
func (b *batch[T]) add(items ...T) {
	b.mu.Lock()
	b.items = append(b.items, items...)
	b.mu.Unlock()
	b.wake.poke()
}

// take removes what came first, at most so many.
func (b *batch[T]) take(most int) []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.items), most)
	taken := b.items[:n:n]
	if b.items = b.items[n:]; len(b.items) == 0 {
		b.items = nil
	}
	return taken
}

// loop has everything stored, storeBatch at a time, until ctx ends. What store returns, as
// others have it locked, is tried again after the pause, or with what comes before that.
func (b *batch[T]) loop(ctx context.Context, store func(context.Context, []T) (rest []T, pause time.Duration)) {
	wait := time.Duration(forever)
	for sleep(ctx, wait, b.wake) {
		wait = forever
		var rest []T
		for items := b.take(storeBatch); len(items) > 0 && ctx.Err() == nil; items = b.take(storeBatch) {
			left, pause := store(ctx, items)
			if len(left) > 0 {
				rest, wait = append(rest, left...), min(wait, pause)
			}
		}
		b.mu.Lock()
		b.items = append(rest, b.items...)
		b.mu.Unlock()
	}
}

// callUntil calls the store until it has answered, as often as need be: first f, and then
// again, for an error may hide that f has taken effect. It returns an error only when ctx
// has ended, or store.ErrLocked beside what has taken effect.
func callUntil[T any](ctx context.Context, backoff *backoff, f, again func(context.Context) (T, error)) (T, error) {
	v, err := call(ctx, f)
	for err != nil && !errors.Is(err, store.ErrLocked) {
		backoff.failed(ctx, err)
		if !sleep(ctx, backoff.delay()) {
			return v, err
		}
		v, err = call(ctx, again)
	}
	if err == nil {
		backoff.failed(ctx, nil)
	}
	return v, err
}
