package otelxxl

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

const (
	patience = 100 * time.Millisecond // where somebody waits: a handler, or an alarm
	patient  = 5 * time.Second        // where nobody does
	pause    = 10 * time.Second
	mostAsks = 1000
)

// calls are the guards of the providers: one for each who waits for them, so that what is slow
// for one costs the others nothing.
type calls struct{ spans, handlers, alarms, events, instruments bounded }

// guard makes all of them ready.
func (c *calls) guard(log *slog.Logger) {
	for _, b := range c.all() {
		b.patience, b.log = patience, log
	}
	c.events.patience = patient
}

// all are the guards, by what is not recorded where calls are left out.
func (c *calls) all() map[string]*bounded {
	return map[string]*bounded{"spans": &c.spans, "handlers": &c.handlers, "alarms": &c.alarms, "events": &c.events, "instruments": &c.instruments}
}

// bounded calls code of providers. A call that does not return is waited for no longer than its
// patience; then it is left behind, and nobody is called for a while, nor while there are too
// many. The log has a line when calls begin to hang, one when they return in time again, and one
// for each place where a call has panicked. It is safe for concurrent use.
type bounded struct {
	patience time.Duration
	log      *slog.Logger

	mu       sync.Mutex
	under    int             // guarded by mu: calls that have not returned
	until    time.Time       // guarded by mu: nobody is called before
	since    time.Time       // guarded by mu: when calls began to hang; zero where they do not
	out      uint64          // guarded by mu: calls that were left out
	told     uint64          // guarded by mu: those of them that the log knows of
	panicked map[string]bool // guarded by mu: the places
}

// left is how many calls were left out.
func (b *bounded) left() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out
}

// enter reports whether a call may begin now, and whether it is in a pause. One that ends what
// has begun may be.
func (b *bounded) enter(ends bool) (may, paused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	paused = time.Now().Before(b.until)
	if b.under >= mostAsks || paused && !ends {
		b.out++
		return false, paused
	}
	b.under++
	return true, paused
}

// ended notes the end of a call, and what it has panicked with, if that is how it ended.
func (b *bounded) ended(place string, returned bool, v any) {
	b.mu.Lock()
	b.under--
	b.mu.Unlock()
	if !returned {
		b.panics(place, v)
	}
}

// panics logs a panic, once for each place.
func (b *bounded) panics(place string, v any) {
	text := "the call has ended its goroutine"
	if v != nil {
		text = fmt.Sprintf("panic: %v", v) // Sprintf survives a String that panics
	}
	b.mu.Lock()
	again := b.panicked[place]
	if b.panicked == nil {
		b.panicked = map[string]bool{}
	}
	b.panicked[place] = true
	b.mu.Unlock()
	if !again {
		b.log.Error("xxljob: a provider of telemetry panicked; this is logged once per place", "place", place, "error", text, "stack", string(debug.Stack()))
	}
}

// hangs begins a pause after a call that has not returned in time.
func (b *bounded) hangs(place string) {
	b.mu.Lock()
	now := time.Now()
	first := b.since.IsZero()
	if b.until = now.Add(pause); first {
		b.since = now
	}
	b.mu.Unlock()
	if first {
		b.log.Warn("xxljob: a provider of telemetry has not returned in time, and is left alone for a while; this is logged once until it returns in time again", "place", place, "patience", b.patience, "pause", pause)
	}
}

// returns notes a call that has returned in time: after a pause, calls hang no longer.
func (b *bounded) returns(place string) {
	b.mu.Lock()
	now := time.Now()
	since, left := b.since, b.out-b.told
	over := !since.IsZero() && !now.Before(b.until)
	if over {
		b.since, b.told = time.Time{}, b.out
	}
	b.mu.Unlock()
	if over {
		b.log.Warn("xxljob: a provider of telemetry returns in time again", "place", place, "after", now.Sub(since), "leftOut", left)
	}
}

// start calls f on a goroutine of its own. The channel is closed when it has ended.
func (b *bounded) start(place string, f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		returned := false
		defer func() { b.ended(place, returned, recover()); close(done) }()
		f()
		returned = true
	}()
	return done
}

// ask returns the answer of f, which is called on a goroutine of its own. Ok is false, and the
// answer zero, where f was not called, did not return in time, or panicked. Late, which may be
// nil, is called there with an answer that nobody waits for any more.
func ask[T any](b *bounded, place string, f func() T, late func(T)) (answer T, ok bool) {
	if may, _ := b.enter(false); !may {
		return answer, false
	}
	answers, gone := make(chan T), make(chan struct{})
	done := b.start(place, func() {
		answer := f()
		select {
		case answers <- answer:
		case <-gone:
			if late != nil {
				late(answer)
			}
		}
	})
	timer := time.NewTimer(b.patience)
	defer timer.Stop()
	select {
	case answer = <-answers:
		ok = true
		b.returns(place)
	case <-done: // without an answer
		b.returns(place)
	case <-timer.C:
		close(gone)
		b.hangs(place)
	}
	return answer, ok
}

// tell calls f as ask does, for who has to know that it has been called.
func (b *bounded) tell(place string, f func()) {
	ask(b, place, func() struct{} { f(); return struct{}{} }, nil)
}

// end calls f, which ends what a call has begun: in a pause too, but without waiting for it then.
func (b *bounded) end(place string, f func()) {
	may, paused := b.enter(true)
	if !may {
		return
	}
	done := b.start(place, f)
	if paused {
		return
	}
	timer := time.NewTimer(b.patience)
	defer timer.Stop()
	select {
	case <-done:
		b.returns(place)
	case <-timer.C:
		b.hangs(place)
	}
}

// try calls f here, where it is the provider that waits.
func (b *bounded) try(place string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			b.panics(place, v)
		}
	}()
	f()
}
