package guard_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/guard"
)

// tracer takes so long to begin a span, and to end it.
type tracer struct {
	begin, end atomic.Int64
	mu         sync.Mutex
	ended      []int64 // guarded by mu
}

func (t *tracer) Triggering(_ context.Context, jobID int64) (string, func(int64, error)) {
	begin, end := time.Duration(t.begin.Load()), time.Duration(t.end.Load())
	time.Sleep(begin)
	if jobID == 0 {
		return "00", nil
	}
	return "00", func(id int64, _ error) {
		time.Sleep(end)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.ended = append(t.ended, id)
	}
}

// TestSpansEndOnce: those that have begun, in a pause too, and those that begin late.
func TestSpansEndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		s, tr := guard.NewSpans(guard.NewLog(func() *slog.Logger { return log })), &tracer{}
		begin := func(want string, took, waits time.Duration) func(int64, error) {
			t.Helper()
			tr.begin.Store(int64(waits))
			began := time.Now()
			trace, done := s.Triggering(t.Context(), tr, 1)
			if trace != want || time.Since(began) != took {
				t.Errorf("trace %q after %v, want %q after %v", trace, time.Since(began), want, took)
			}
			return done
		}
		first := begin("00", 50*time.Millisecond, 50*time.Millisecond)
		second := begin("00", 0, 0)
		late := begin("", 100*time.Millisecond, time.Second)
		later := begin("", 0, 0) // left out
		began := time.Now()
		tr.end.Store(int64(120 * time.Millisecond))
		first(1, nil)
		late(2, errors.New("no run"))
		later(3, nil)
		if took := time.Since(began); took != 0 {
			t.Errorf("ends took %v in a pause, want nothing", took)
		}
		time.Sleep(20 * time.Second)
		second(4, nil)
		time.Sleep(20 * time.Second)
		if _, done := s.Triggering(t.Context(), tr, 0); done != nil {
			done(5, nil) // the tracer has given none
		}
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if want := []int64{1, 2, 4}; !slices.Equal(tr.ended, want) || s.Left() != 1 {
			t.Errorf("the spans of %v have ended, and %d were left out; want those of %v, and 1", tr.ended, s.Left(), want)
		}
	})
}
