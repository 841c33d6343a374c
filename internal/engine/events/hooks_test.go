package events_test

// Hooks, and how many calls of them wait.

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/store"
)

// TestHooksKeepTheirOrder: also those whose callers have to wait for room, one of whom
// looks for it sooner than the one before.
func TestHooksKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call, release := events.HookCalls(), make(chan struct{})
		var order []int64
		hook := func(r store.Run) {
			<-release
			if r.ID != 0 {
				order = append(order, r.ID)
			}
		}
		for range events.HooksWaiting {
			call(hook, store.Run{})
		}
		for id := int64(1); id <= 20; id++ {
			go call(hook, store.Run{ID: id})
			time.Sleep(10*time.Millisecond - 10*time.Microsecond)
		}
		close(release)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(order) != 20 || !slices.IsSorted(order) {
			t.Errorf("the hook was called in the order %v", order)
		}
	})
}
