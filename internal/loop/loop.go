package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Wake is a signal to a loop: many pokes before it looks are one.
type Wake chan struct{}

func NewWake() Wake { return make(Wake, 1) }

func (w Wake) Poke() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// PokeIf pokes where there may be news.
func (w Wake) PokeIf(news bool) {
	if news {
		w.Poke()
	}
}

// Call calls the store with a deadline.
func Call[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	v, err := call(ctx, f)
	if err == nil {
		Answered(ctx)
	}
	return v, err
}

// Do is Call for what returns nothing but an error.
func Do(ctx context.Context, f func(context.Context) error) error {
	_, err := Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}

func call[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	bounded, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	v, err := f(bounded)
	if errors.Is(err, context.DeadlineExceeded) && bounded.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer within %v: %w", CallTimeout, err)
	}
	return v, err
}

// Answered notes that a call has been answered which Call did not make.
func Answered(ctx context.Context) {
	if n, counts := ctx.Value(answersKey{}).(*atomic.Int64); counts {
		n.Add(1)
	}
}

type answersKey struct{}

// countAnswers returns a ctx under which answers without an error are counted.
func countAnswers(ctx context.Context) (context.Context, *atomic.Int64) {
	n := new(atomic.Int64)
	return context.WithValue(ctx, answersKey{}, n), n
}

// Detached calls the store with a deadline, and sees the call through when ctx ends
// meanwhile: what it writes would be there or not, and nobody to find out.
func Detached[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	if err := ctx.Err(); err != nil {
		var none T
		return none, err
	}
	v, err := call(context.WithoutCancel(ctx), f)
	if err == nil {
		Answered(ctx) // to ask the other context for a value costs an allocation
	}
	return v, err
}

// Sleep waits for d, or for a poke; a d of zero or less does not wait, forever
// waits for a poke only. It returns false when ctx has ended.
func Sleep(ctx context.Context, d time.Duration, pokes ...<-chan struct{}) bool {
	var a, b <-chan struct{}
	switch len(pokes) {
	case 2:
		a, b = pokes[0], pokes[1]
	case 1:
		a = pokes[0]
	}
	if ctx.Err() != nil {
		return false
	}
	if d <= 0 {
		return true
	}
	var tick <-chan time.Time
	if d < Forever {
		t := time.NewTimer(d)
		defer t.Stop()
		tick = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-tick:
	case <-a:
	case <-b:
	}
	return true
}

// Forever is a wait that only a poke ends.
const Forever = 1<<63 - 1

// Backoff spaces the attempts of one loop after errors, and logs a streak of
// them once when it begins and once when it is over.
type Backoff struct {
	Log   *slog.Logger
	What  string
	N     int
	since time.Time
}

const (
	BackoffFirst = 50 * time.Millisecond
	backoffMost  = time.Second // so that work is soon under way again
)

// Failed takes in the outcome of an attempt. It reports whether it failed; an
// error because ctx has ended is not logged.
func (b *Backoff) Failed(ctx context.Context, err error) bool {
	switch {
	case err == nil && b.N > 0:
		b.Log.Info("xxljob: "+b.What+" has recovered", "errors", b.N, "after", time.Since(b.since).Round(time.Millisecond))
		b.N = 0
	case err == nil:
	case ctx.Err() != nil:
		b.N++
	default:
		if b.N == 0 {
			b.since = time.Now()
			b.Log.Error("xxljob: "+b.What+" failed; retrying", "error", err)
		}
		b.N++
	}
	return err != nil
}

// Delay is how long to wait before the next attempt: doubling, half of it at
// random so that nodes do not come back in step.
func (b *Backoff) Delay() time.Duration {
	d := min(BackoffFirst<<min(b.N-1, 10), backoffMost)
	return d/2 + rand.N(d/2+1)
}

// Bounds of one call of the store.
const (
	// CallTimeout bounds a single call of a loop to the store.
	CallTimeout = 5 * time.Second
	// StoreBatch is how many runs one call of the store is about at most: starts, results,
	// verdicts, and runs that are read by id.
	StoreBatch = 1000
)

// Lists whose memory is used again and again by one loop of a node.

// Scratch is such a list.
type Scratch[T any] struct {
	List  []T
	spare int // for how many uses in a row there has been far more room than was needed
}

// Again is the memory, with nothing in it, until what has become of it is taken in by used.
func (s *Scratch[T]) Again() []T {
	if cap(s.List) <= scratchLeast || len(s.List) >= cap(s.List)/8 {
		s.spare = 0
	} else if s.spare++; s.spare == scratchSpare {
		s.Drop() // what a burst has made is given up
	}
	clear(s.List)
	s.List = s.List[:0]
	return s.List
}

// Used takes in what has become of the memory.
func (s *Scratch[T]) Used(list []T) { s.List = list }

// Drop leaves the memory to whoever may still have it.
func (s *Scratch[T]) Drop() { *s = Scratch[T]{} }

const (
	// scratchLeast is for how many there may be room in any case.
	scratchLeast = 1024
	// scratchSpare is after how many uses memory is given up that is too large. Scans and claims
	// are large and small by turns.
	scratchSpare = 100
)
