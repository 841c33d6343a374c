package core_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
)

// TestTroublesEndByThisProcesssClock: what was seen while the store's clock was a month ahead is over as soon as
// anything else, and so is what was found locked; where that clock is set back as well as where it is not.
func TestTroublesEndByThisProcesssClock(t *testing.T) {
	const month = 31 * 24 * time.Hour
	for name, later := range map[string]time.Duration{"set right": 0, "ahead": month} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var troubles core.Troubles
				var locked core.LockedOut
				troubles.Logger, troubles.Tell = slog.New(slog.DiscardHandler), func(core.EventKind, store.Trouble) {}
				ahead := time.Now().Add(month)
				troubles.Saw(store.TroubleFalseRefusal, ahead, time.Minute, store.Trouble{App: "app"})
				locked.Run(1, ahead)
				time.Sleep(59 * time.Second)
				if now := time.Now().Add(later); !troubles.Forget(now) || len(troubles.Of(store.TroubleFalseRefusal)) != 1 {
					t.Errorf("after 59 s it is over: %v", troubles.Of(store.TroubleFalseRefusal))
				}
				time.Sleep(time.Second)
				now := time.Now().Add(later)
				if troubles.Forget(now) || len(troubles.Of(store.TroubleFalseRefusal)) != 0 {
					t.Errorf("after a minute it lasts: %v", troubles.Of(store.TroubleFalseRefusal))
				}
				if _, runs, _ := locked.Late(now.Add(2*month), time.Minute); len(runs) != 1 {
					t.Errorf("within a minute %d runs are locked", len(runs))
				}
				time.Sleep(time.Second)
				if _, runs, _ := locked.Late(now.Add(2*month), time.Minute); len(runs) != 0 || !locked.None() {
					t.Errorf("behind it %d runs are locked", len(runs))
				}
			})
		})
	}
}
