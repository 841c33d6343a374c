package registry

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
)

// TestRunsAreCountedWhenItIsSaid how many wait, which takes a look at each of them, and not whenever it is
// looked whether there are any. What is over by then is not said to wait.
func TestRunsAreCountedWhenItIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits, late, counted := true, 3, 0
		all := core.New(core.Config{}.WithDefaults(), nil, slog.New(slog.DiscardHandler))
		all.Troubles.Tell = func(core.EventKind, store.Trouble) {}
		s := NewServing(all, nil, nil, nil, func(string) bool { return waits }, func(string) int { counted++; return late })
		s.absent["app"] = &absence{}
		look := func(long time.Duration) {
			counted = 0
			for range long / time.Second {
				s.say()
				time.Sleep(time.Second)
			}
		}
		is := func(want int) {
			t.Helper()
			said := 0
			for _, x := range all.Troubles.Of(store.TroubleNoExecutor) {
				said += x.Late
			}
			if said != want || s.IsSaid("app") != (want > 0) {
				t.Errorf("%d are said to wait, want %d; the app is said %v", said, want, s.IsSaid("app"))
			}
		}
		look(10 * time.Minute)
		if is(3); counted == 0 || counted > 11 {
			t.Errorf("they are counted %d times in ten minutes", counted)
		}
		late = 0
		look(2 * time.Minute)
		is(0)
		late = 2
		look(2 * time.Minute)
		is(2)
		waits = false
		look(2 * time.Second)
		if is(0); counted > 0 {
			t.Errorf("nothing is counted %d times", counted)
		}
	})
}
