package loop

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
)

// Batch gathers what a loop of its own stores together: many who have something each cost
// one call of the store. It is safe for concurrent use.
type Batch[T any] struct {
	mu    sync.Mutex
	items []T // guarded by mu
	wake  Wake
}

func NewBatch[T any]() *Batch[T] { return &Batch[T]{wake: NewWake()} }

// Add hands something to the loop.
func (b *Batch[T]) Add(items ...T) {
	b.mu.Lock()
	b.items = append(b.items, items...)
	b.mu.Unlock()
	b.wake.Poke()
}

// take removes what came first, at most so many.
func (b *Batch[T]) take(most int) []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.items), most)
	taken := b.items[:n:n]
	if b.items = b.items[n:]; len(b.items) == 0 {
		b.items = nil
	}
	return taken
}

// Loop has everything stored, StoreBatch at a time, until ctx ends. What store returns, as
// others have it locked, is tried again after the pause, or with what comes before that.
func (b *Batch[T]) Loop(ctx context.Context, store func(context.Context, []T) (rest []T, pause time.Duration)) {
	wait := time.Duration(Forever)
	for Sleep(ctx, wait, b.wake) {
		wait = Forever
		var rest []T
		for items := b.take(StoreBatch); len(items) > 0 && ctx.Err() == nil; items = b.take(StoreBatch) {
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

// Halve has all of the items done, and where the store refuses them together each half for itself,
// so that one which it would refuse for ever holds up no other. It returns those that the store has
// refused alone, and why the last of them. An error is any other that do has returned, and ends it.
func Halve[T any](items []T, do func([]T) error) (refused []T, why, err error) {
	if len(items) == 0 {
		return nil, nil, nil
	}
	switch err := do(items); {
	case !errors.Is(err, errs.ErrRefused):
		return nil, nil, err
	case len(items) <= 1:
		return items, err, nil
	}
	half := len(items) / 2
	for _, part := range [][]T{items[:half], items[half:]} {
		alone, because, err := Halve(part, do)
		if refused = append(refused, alone...); because != nil {
			why = because
		}
		if err != nil {
			return refused, why, err
		}
	}
	return refused, why, nil
}

// CallUntil calls the store until it has answered, as often as need be: first f, and then
// again, for an error may hide that f has taken effect. It returns an error only when ctx
// has ended, or store.ErrLocked beside what has taken effect.
func CallUntil[T any](ctx context.Context, backoff *Backoff, f, again func(context.Context) (T, error)) (T, error) {
	v, err := Call(ctx, f)
	for err != nil && !errors.Is(err, errs.ErrLocked) {
		backoff.Failed(ctx, err)
		if !Sleep(ctx, backoff.Delay()) {
			return v, err
		}
		v, err = Call(ctx, again)
	}
	if err == nil {
		backoff.Failed(ctx, nil)
	}
	return v, err
}
