package dispatch

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Addresses that stand for several processes, by the answers that come from there. Input: answers
// about runs of executors of others, from indoubt.go and unreported_ask.go. Output: what room
// registry remembers of the address, and a trouble.

// idleInARow is to how many questions in a row such an address has to answer that a job is idle,
// over twice Cluster.Dead, before that is believed: each may have come to another process.
const idleInARow = 20

// tookTurns reports whether a job is busy at an address, by an answer that has just come, and was
// idle there a moment ago, though nothing was sent there since then. One process does not do that.
func tookTurns(ctx context.Context, c *core.Core, r store.Run, idle, now time.Time) bool {
	if idle.IsZero() || now.Sub(idle) >= c.Cfg.Cluster.Dead {
		return false
	}
	since := c.Clock.Now().Add(-now.Sub(idle) - 2*c.Cfg.HTTP.CallTimeout)
	latest, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
		return c.Store.Runs(ctx, store.RunFilter{JobID: r.JobID, States: sentStates(), Limit: 20})
	})
	for _, other := range latest {
		if other.ID != r.ID && other.Address == r.Address && (other.State == store.StateStarted || other.Started.After(since)) {
			return false
		}
	}
	return err == nil
}

// sentStates are those of runs that may have been sent somewhere.
func sentStates() []store.State {
	return []store.State{store.StateStarted, store.StateDispatched, store.StateSucceeded, store.StateFailed, store.StateTimedOut, store.StateKilled, store.StateLost, store.StateSnoozed}
}

// tellShared names an address as a trouble, if it stands for several processes.
func tellShared(c *core.Core, book *registry.Addresses, r store.Run) {
	how, left := book.Memory.Liveness.Shared(registry.LivenessKey(r.App, r.Address), time.Now())
	if left <= 0 {
		return
	}
	c.Troubles.Saw(store.TroubleSharedAddress, c.Clock.Now(), left, store.Trouble{
		App: r.App, Address: r.Address,
		Detail: "the address " + how + ": what one process answers there says nothing about the runs of another, so that lost runs are found late, and kills and logs may not come to the right one",
		Remedy: "have each process register under an address of its own, a pod under its own IP and not under that of a Service or a balancer",
	})
}
