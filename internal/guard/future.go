package guard

import "context"

// Future is the answer of a call of code that others have written. It may hang: who waits gives up
// when a context of theirs ends, and the call is left behind, with its goroutine. It is safe for
// concurrent use.
type Future[V any] struct {
	done   chan struct{} // closed when there are answer and err
	answer V
	err    error
}

// Start calls f on a goroutine of its own. Once f has ended, however it did, log has the line of
// a panic, and returned is called, if it is not nil, before those who wait hear of it.
func Start[V any](log *Log, place string, f func() (V, error), returned func(V, error)) *Future[V] {
	c := &Future[V]{done: make(chan struct{})}
	Go(func() (err error) {
		c.answer, err = f()
		return err
	}, func(err error) {
		c.err = log.Note(place, err)
		if returned != nil {
			returned(c.answer, c.err)
		}
		close(c.done)
	})
	return c
}

// Wait waits until the call has returned, or ctx has ended, and reports whether it has returned.
func (c *Future[V]) Wait(ctx context.Context) bool {
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Answer is what the call has returned. It waits for that.
func (c *Future[V]) Answer() (V, error) {
	<-c.done
	return c.answer, c.err
}
