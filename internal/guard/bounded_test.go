package guard_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/guard"
)

func newBounded(most int) *guard.Bounded {
	log := slog.New(slog.DiscardHandler)
	return &guard.Bounded{Patience: 100 * time.Millisecond, Pause: 10 * time.Second, Most: most, Log: guard.NewLog(func() *slog.Logger { return log })}
}

// TestBounded: a call that hangs costs its patience once a pause, and a panic nothing.
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, release := newBounded(10), make(chan struct{})
		answer := func() int { return 7 }
		hang := func() int { <-release; return 8 }
		ask := func(what string, f func() int, want int, ok bool, took time.Duration) {
			t.Helper()
			began := time.Now()
			if got, answered := guard.Ask(b, "here", f); got != want || answered != ok || time.Since(began) != took {
				t.Errorf("%s: %d, %t after %v, want %d, %t after %v", what, got, answered, time.Since(began), want, ok, took)
			}
		}
		ask("one that answers", answer, 7, true, 0)
		ask("one that panics", func() int { panic("no") }, 0, false, 0)
		ask("the next", answer, 7, true, 0)
		ask("one that hangs", hang, 0, false, 100*time.Millisecond)
		ask("one in the pause", answer, 0, false, 0)
		time.Sleep(10 * time.Second)
		ask("one after it", answer, 7, true, 0)
		close(release)
		synctest.Wait()
		ask("one after the return", answer, 7, true, 0)
	})
}

// TestBoundedNumber: of calls that hang there are so many, and no more.
func TestBoundedNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, release := newBounded(3), make(chan struct{})
		var begun atomic.Int32
		for range 10 {
			b.Tell("here", func() { begun.Add(1); <-release })
			time.Sleep(time.Minute)
		}
		if begun.Load() != 3 {
			t.Errorf("%d calls have begun, want 3", begun.Load())
		}
		close(release)
	})
}
