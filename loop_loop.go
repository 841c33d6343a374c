package xxljob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

// wake is a signal to a loop: many pokes before it looks are one.
type wake chan struct{}

func newWake() wake { return make(wake, 1) }

func (w wake) poke() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// pokeIf pokes where there may be news.
func (w wake) pokeIf(news bool) {
	if news {
		w.poke()
	}
}

// call calls the store with a deadline.
func call[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	v, err := f(bounded)
	if errors.Is(err, context.DeadlineExceeded) && bounded.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer within %v: %w", callTimeout, err)
	}
	return v, err
}

// detached calls the store with a deadline, and sees the call through when ctx ends
// meanwhile: what it writes would be there or not, and nobody to find out.
func detached[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	if err := ctx.Err(); err != nil {
		var none T
		return none, err
	}
	return call(context.WithoutCancel(ctx), f)
}

// sleep waits for d, or for a poke; a d of zero or less does not wait, forever
// waits for a poke only. It returns false when ctx has ended.
func sleep(ctx context.Context, d time.Duration, pokes ...<-chan struct{}) bool {
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
	if d < forever {
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

// forever is a wait that only a poke ends.
const forever = 1<<63 - 1

// backoff spaces the attempts of one loop after errors, and logs a streak of
// them once when it begins and once when it is over.
type backoff struct {
	log   *slog.Logger
	what  string
	n     int
	since time.Time
}

const (
	backoffFirst = 50 * time.Millisecond
	backoffMost  = time.Second // so that work is soon under way again
)

// failed takes in the outcome of an attempt. It reports whether it failed; an
// error because ctx has ended is not logged.
func (b *backoff) failed(ctx context.Context, err error) bool {
	switch {
	case err == nil && b.n > 0:
		b.log.Info("xxljob: "+b.what+" has recovered", "errors", b.n, "after", time.Since(b.since).Round(time.Millisecond))
		b.n = 0
	case err == nil:
	case ctx.Err() != nil:
		b.n++
	default:
		if b.n == 0 {
			b.since = time.Now()
			b.log.Error("xxljob: "+b.what+" failed; retrying", "error", err)
		}
		b.n++
	}
	return err != nil
}

// delay is how long to wait before the next attempt: doubling, half of it at
// random so that nodes do not come back in step.
func (b *backoff) delay() time.Duration {
	d := min(backoffFirst<<min(b.n-1, 10), backoffMost)
	return d/2 + rand.N(d/2+1)
}

// Bounds of one call of the store.
const (
	// callTimeout bounds a single call of a loop to the store.
	callTimeout = 5 * time.Second
	// storeBatch is how many runs one call of the store is about at most: starts, results,
	// verdicts, and runs that are read by id.
	storeBatch = 1000
)

// Lists whose memory is used again and again by one loop of a node.

// scratch is such a list.
type scratch[T any] struct {
	list  []T
	spare int // for how many uses in a row there has been far more room than was needed
}

// again is the memory, with nothing in it, until what has become of it is taken in by used.
func (s *scratch[T]) again() []T {
	if cap(s.list) <= scratchLeast || len(s.list) >= cap(s.list)/8 {
		s.spare = 0
	} else if s.spare++; s.spare == scratchSpare {
		s.drop() // what a burst has made is given up
	}
	clear(s.list)
	s.list = s.list[:0]
	return s.list
}

// used takes in what has become of the memory.
func (s *scratch[T]) used(list []T) { s.list = list }

// drop leaves the memory to whoever may still have it.
func (s *scratch[T]) drop() { *s = scratch[T]{} }

const (
	// scratchLeast is for how many there may be room in any case.
	scratchLeast = 1024
	// scratchSpare is after how many uses memory is given up that is too large. Scans and claims
	// are large and small by turns.
	scratchSpare = 100
)
