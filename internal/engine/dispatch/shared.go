package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
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

const (
	// killTries is how often an address that stands for several processes is told to kill a run,
	// and killTriesOther another one where the process that has agreed is not the run's.
	killTries, killTriesOther = 20, 3
	// killPause is how long the executor has to report what it has killed before it is told again.
	killPause = 100 * time.Millisecond
)

// errNotBelieved says that a kill was agreed to, and may not have come to the process of the run.
var errNotBelieved = errors.New("the address stands for several processes, and none that has agreed to the kill is known to be the run's: it ends when its result comes")

// killAtRemote asks an executor to kill a run. At an address that stands for several processes each
// agrees to the kill of what it does not have: that is believed of the process of the run, and else
// once its result is there. A run that has ended has none to wait for.
func killAtRemote(ctx context.Context, c *core.Core, book *registry.Addresses, exec wire.Executor, r store.Run) error {
	key := registry.LivenessKey(r.App, r.Address)
	for try := 1; ; try++ {
		boot, err := killOnce(ctx, exec, r)
		other := err == nil && boot != "" && r.BootID != "" && boot != r.BootID
		if other {
			book.Memory.Liveness.Answered(key, boot, time.Now())
		}
		shared := book.IsShared(r)
		switch {
		case err == nil && boot != "" && boot == r.BootID:
			return nil
		case !shared && (!other || try >= killTriesOther):
			return err // where another one is there, that of the run is gone
		case !loop.Sleep(ctx, killPause):
			return cmp.Or(err, ctx.Err())
		case !r.State.Ended() && hasEnded(ctx, c, r.ID):
			return nil
		case try >= killTries:
			return cmp.Or(err, fmt.Errorf("%s: %w", r.Address, errNotBelieved))
		}
		ctx = wire.OnNewConn(ctx)
	}
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
		Seen:   store.Seen{What: how},
		Remedy: "have each process register under an address of its own, a pod under its own IP and not under that of a Service or a balancer",
	})
}
