package node

import (
	"context"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/scan"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Due runs that wait too long for something. Input: the oldest of each kind of wait (queue/longwaits.go), and
// duties that fail without which no run becomes due. Output: a trouble for each app. What waits for a run of
// its own job, or for places that running handlers hold, is in order.

// waitWatch looks once a second while somebody waits for what has a bound, so that no run waits so
// for LeaseTTL and three seconds without being told of.
type waitWatch struct {
	*core.Core
	queue *queue.Queue
	unfit func() bool // Ready says why runs of all apps wait
	since map[waitOf]waitSeen
}

type waitOf struct{ lack, app string }

// waitSeen is since when there is a wait, at each look.
type waitSeen struct {
	at    time.Time
	runID int64
}

func (w *waitWatch) duty() loop.Duty {
	return loop.Duty{What: "looking at what due runs wait for", Aside: true, Wakes: []<-chan struct{}{w.Life.Wakes.Waiting}, Once: func(context.Context) (time.Duration, error) {
		if w.look() {
			return time.Second, nil
		}
		return loop.Forever, nil
	}}
}

// look reports whether anybody waits.
func (w *waitWatch) look() bool {
	now, ttl, seen := time.Now(), w.Cfg.Cluster.LeaseTTL, map[waitOf]waitSeen{}
	waits := w.queue.Waits()
	var stuck []store.Trouble
	told := map[string]bool{}
	for _, x := range waits {
		of := waitOf{x.Lack, x.App}
		was, known := w.since[of]
		if !known || x.Lack == queue.LackProbe && was.runID != x.RunID { // each run waits for answers of its own
			was = waitSeen{now, x.RunID}
		}
		seen[of] = was
		if x.Lack == queue.LackTurn && !w.LockedOut.None() {
			continue // see troubleWatch
		}
		if now.Sub(was.at) < ttl || w.Clock.Now().Sub(x.Oldest) < ttl || told[x.App] {
			continue
		}
		told[x.App] = true
		what, remedy := lackOf(x.Lack)
		stuck = append(stuck, store.Trouble{
			App: x.App, Since: x.Oldest, Late: x.Runs, Remedy: remedy,
			Seen: store.Seen{What: what, Runs: x.Runs, At: x.Oldest},
		})
	}
	w.since = seen
	stalls := w.Life.Stalls.List()
	stuck = append(stuck, w.stalled(stalls, now)...)
	if len(stuck) > 0 && w.unfit() {
		stuck = nil
	}
	w.Core.Troubles.Set(store.TroubleStuckRuns, w.Clock.Now(), stuck...)
	return len(waits)+len(stalls) > 0
}

// stalled is the trouble that due jobs are not read, or that what is to become a run does not: none
// of these is in memory yet. It is one for all apps.
func (w *waitWatch) stalled(stalls []core.Stall, now time.Time) []store.Trouble {
	var said []string
	var first store.Seen
	for _, x := range stalls {
		if now.Sub(x.Since) < w.Cfg.Cluster.LeaseTTL {
			continue
		}
		seen := store.Seen{What: stalledAt(x.What), For: now.Sub(x.Since).Round(time.Second), Said: x.Err.Error()}
		if said = append(said, seen.String()); len(said) == 1 {
			first = seen
		}
	}
	if len(said) == 0 {
		return nil
	}
	return []store.Trouble{{
		Since: w.Clock.Now().Add(-now.Sub(stalls[0].Since)), Seen: first, Detail: strings.Join(said, "; "),
		Remedy: "see why the store does not answer this, or refuses it: the error says more",
	}}
}

// stalledAt is what is seen where a duty fails.
func stalledAt(duty string) store.SeenWhat {
	switch duty {
	case scan.Moving:
		return store.SeenStalledAhead
	case scan.Paying:
		return store.SeenStalledOwed
	}
	return store.SeenStalledScan
}

// lackOf is what is seen of those that wait for something, and what to do about it.
func lackOf(lack string) (what store.SeenWhat, remedy string) {
	switch lack {
	case "address", "app", "lane":
		return store.SeenWaitRoom, "see why executors of this app answer triggers slowly or not at all; Config.Limits has the size of the lanes"
	case "addresses":
		return store.SeenWaitAddresses, "see whether Config.Registry, or the store, answers: the log has the error"
	case queue.LackProbe:
		return store.SeenWaitProbes, "see why executors of this app do not answer whether they are idle"
	case "settle":
		return store.SeenWaitFormer, "see whether the store answers, and the nodes that had the shards: the log says more"
	}
	return store.SeenWaitTurn, "see whether the store is slow, or rows are locked: Stats.Calls has how long its calls take"
}
