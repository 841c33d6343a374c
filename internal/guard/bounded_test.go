package guard_test

import (
	"bytes"
	"log/slog"
	"strings"
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
			guard.Ask(b, "here", func() bool { begun.Add(1); <-release; return true })
			time.Sleep(time.Minute)
		}
		if begun.Load() != 3 {
			t.Errorf("%d calls have begun, want 3", begun.Load())
		}
		close(release)
	})
}

// TestBoundedSaysSo: one line when calls begin to hang, however often they do, and one when they
// return in time again, with the number of those that were left out.
func TestBoundedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		b, release := newBounded(10), make(chan struct{})
		b.Log = guard.NewLog(func() *slog.Logger { return slog.New(slog.NewTextHandler(&text, nil)) })
		ask := func(f func()) { guard.Ask(b, "here", func() bool { f(); return true }) }
		quick, hang := func() {}, func() { <-release }
		ask(quick)
		for range 3 { // each with a pause
			ask(hang)
			for range 5 {
				ask(quick)
			}
			time.Sleep(10 * time.Second)
		}
		for range 2 {
			ask(quick)
		}
		close(release)
		synctest.Wait()
		if left := b.Left(); left != 15 {
			t.Errorf("%d calls were left out, want 15", left)
		}
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "place=here") || !strings.Contains(lines[1], "leftOut=15") {
			t.Errorf("the log:\n%s", text.String())
		}
	})
}

// TestWhatEndsIsCalledInAPause: and nobody waits for it there; but no more than so many.
func TestWhatEndsIsCalledInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, release := newBounded(3), make(chan struct{})
		var ended atomic.Int32
		hang := func() { <-release; ended.Add(1) }
		began := time.Now()
		for range 10 {
			b.End("here", hang)
		}
		if took := time.Since(began); took != b.Patience {
			t.Errorf("ten that hang took %v, want the patience of one", took)
		}
		close(release)
		synctest.Wait()
		if ended.Load() != 3 || b.Left() != 7 {
			t.Errorf("%d have ended and %d were left out, want 3 and 7", ended.Load(), b.Left())
		}
		b.End("here", func() { ended.Add(1) })
		synctest.Wait()
		if ended.Load() != 4 {
			t.Error("one in the pause was not called")
		}
	})
}
