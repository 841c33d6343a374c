package guard

import (
	"context"
	"sync"
	"time"
)

// Spans calls a tracer of the user's, so that one which panics or hangs costs its spans and
// nothing else.
type Spans struct{ calls Bounded }

// NewSpans returns the guard of one tracer: it is waited for 100 ms, and left alone for ten
// seconds when that was too short. As many callers ask for runs as there are, so a thousand
// calls may be under way.
func NewSpans(log *Log) *Spans {
	return &Spans{Bounded{Patience: 100 * time.Millisecond, Pause: 10 * time.Second, Most: 1000, Log: log}}
}

// Left returns how many calls were left out, since an earlier one had not returned.
func (s *Spans) Left() uint64 { return s.calls.Left() }

// Triggering calls the method of that name. Done is never nil.
func (s *Spans) Triggering(ctx context.Context, tracer interface {
	Triggering(ctx context.Context, jobID int64) (string, func(int64, error))
}, jobID int64) (trace string, done func(runID int64, err error)) {
	trace, end := Begin(s, "Tracer.Triggering", func() (string, func(int64, error)) { return tracer.Triggering(ctx, jobID) })
	return trace, func(runID int64, err error) {
		end(func(done func(int64, error)) {
			if done != nil {
				done(runID, err)
			}
		})
	}
}

// Begin calls f, which begins a span, and returns its trace; none where there was no answer. End
// is to be called once, with what calls the span's done: that is called once, also in a pause,
// and where f returns late as soon as it does. Where f was not called, or panicked, there is none.
func Begin[D any](s *Spans, place string, f func() (trace string, done D)) (trace string, end func(how func(D))) {
	sp := &span[D]{}
	trace, _ = Ask(&s.calls, place, func() string {
		trace, done := f()
		sp.begin(done)
		return trace
	})
	return trace, func(how func(D)) {
		if done, begun := sp.end(how); begun {
			s.calls.End(place+" done", func() { how(done) })
		}
	}
}

// span is one that begins, perhaps after it was to end. It is safe for concurrent use.
type span[D any] struct {
	mu    sync.Mutex
	done  D
	begun bool    // guarded by mu: done is there
	how   func(D) // guarded by mu: set where it was to end before that
}

// begin notes the done of a span, and calls it where the span is to have ended already.
func (s *span[D]) begin(done D) {
	s.mu.Lock()
	s.done, s.begun = done, true
	how := s.how
	s.mu.Unlock()
	if how != nil {
		how(done)
	}
}

// end returns the done of a span that has begun; one that has not ends when it does.
func (s *span[D]) end(how func(D)) (done D, begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.how = how
	}
	return s.done, s.begun
}
