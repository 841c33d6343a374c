package guard

import (
	"sync"
	"time"
)

// Bounded calls code whose answer is nice to have and no more. A call that does not return is
// waited for no longer than Patience; then it is left behind, and nobody is called for Pause,
// nor while Most calls are under way. Panics are noted in Log. It is safe for concurrent use,
// and its fields are not changed after the first call.
type Bounded struct {
	Patience, Pause time.Duration
	Most            int
	Log             *Log

	mu    sync.Mutex
	under int       // guarded by mu: calls that have not returned
	until time.Time // guarded by mu: nobody is called before
}

// enter reports whether a call may begin now.
func (b *Bounded) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.under >= b.Most || time.Now().Before(b.until) {
		return false
	}
	b.under++
	return true
}

func (b *Bounded) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.under--
}

// hangs notes a call that has not returned in time.
func (b *Bounded) hangs() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.until = time.Now().Add(b.Pause)
}

// Ask returns the answer of f, which is called on a goroutine of its own. Ok is false, and the
// answer zero, where f was not called, did not return in time, or panicked.
func Ask[T any](b *Bounded, place string, f func() T) (answer T, ok bool) {
	if !b.enter() {
		return answer, false
	}
	answers := make(chan T, 1)
	Go(func() error { answers <- f(); return nil }, func(err error) {
		b.leave()
		if b.Log.Note(place, err) != nil {
			close(answers)
		}
	})
	late := time.NewTimer(b.Patience)
	defer late.Stop()
	select {
	case answer, ok = <-answers:
	case <-late.C:
		b.hangs()
	}
	return answer, ok
}

// Tell calls f as Ask does, for who has to know that it has been called.
func (b *Bounded) Tell(place string, f func()) {
	Ask(b, place, func() struct{} { f(); return struct{}{} })
}
