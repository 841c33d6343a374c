package guard

import (
	"sync"
	"time"
)

// Bounded calls code whose answer is nice to have and no more. A call that does not return is
// waited for no longer than Patience; then it is left behind, and nobody is called for Pause,
// nor while Most calls are under way. Log has a line when calls begin to hang, one when they
// return in time again, which says how many were left out, and those of panics. It is safe for
// concurrent use, and its fields are not changed after the first call.
type Bounded struct {
	Patience, Pause time.Duration
	Most            int
	Log             *Log

	mu    sync.Mutex
	under int       // guarded by mu: calls that have not returned
	until time.Time // guarded by mu: nobody is called before
	since time.Time // guarded by mu: when calls began to hang; zero where they do not
	left  uint64    // guarded by mu: calls that were left out
	told  uint64    // guarded by mu: those of them that Log knows of
}

// Left returns how many calls were left out.
func (b *Bounded) Left() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}

// enter reports whether a call may begin now, and whether it is in a pause. One that ends what
// has begun may be.
func (b *Bounded) enter(ends bool) (may, paused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	paused = time.Now().Before(b.until)
	if b.under >= b.Most || paused && !ends {
		b.left++
		return false, paused
	}
	b.under++
	return true, paused
}

func (b *Bounded) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.under--
}

// hangs begins a pause after a call that has not returned in time.
func (b *Bounded) hangs(place string) {
	b.mu.Lock()
	now := time.Now()
	first := b.since.IsZero()
	if b.until = now.Add(b.Pause); first {
		b.since = now
	}
	b.mu.Unlock()
	if first {
		b.Log.log().Warn("xxljob: user code has not returned in time, and is left alone for a while; this is logged once until it returns in time again", "place", place, "patience", b.Patience, "pause", b.Pause)
	}
}

// returns notes a call that has returned in time: after a pause, calls hang no longer.
func (b *Bounded) returns(place string) {
	b.mu.Lock()
	now := time.Now()
	since, left := b.since, b.left-b.told
	over := !since.IsZero() && !now.Before(b.until)
	if over {
		b.since, b.told = time.Time{}, b.left
	}
	b.mu.Unlock()
	if over {
		b.Log.log().Warn("xxljob: user code returns in time again", "place", place, "after", now.Sub(since), "leftOut", left)
	}
}

// start calls f on a goroutine of its own. The channel has its answer, and is closed without one
// where it has panicked. It is a Future made of less, since a tracer is called twice for each run.
func start[T any](b *Bounded, place string, f func() T) <-chan T {
	answers := make(chan T, 1)
	Go(func() error { answers <- f(); return nil }, func(err error) {
		b.leave()
		if b.Log.Note(place, err) != nil {
			close(answers)
		}
	})
	return answers
}

// await waits for an answer.
func await[T any](b *Bounded, place string, answers <-chan T) (answer T, ok bool) {
	late := time.NewTimer(b.Patience)
	defer late.Stop()
	select {
	case answer, ok = <-answers:
		b.returns(place)
	case <-late.C:
		b.hangs(place)
	}
	return answer, ok
}

// Ask returns the answer of f, which is called on a goroutine of its own. Ok is false, and the
// answer zero, where f was not called, did not return in time, or panicked.
func Ask[T any](b *Bounded, place string, f func() T) (answer T, ok bool) {
	if may, _ := b.enter(false); !may {
		return answer, false
	}
	return await(b, place, start(b, place, f))
}

// End calls f, which ends what a call has begun, and so is called in a pause too, but not waited
// for then.
func (b *Bounded) End(place string, f func()) {
	may, paused := b.enter(true)
	if !may {
		return
	}
	if ended := start(b, place, func() struct{} { f(); return struct{}{} }); !paused {
		await(b, place, ended)
	}
}
