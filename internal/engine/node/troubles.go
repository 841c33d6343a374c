package node

import (
	"context"
	"strings"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Troubles that no part of the scheduler notices by itself, since nothing fails.

// troubleWatch looks for rows that stay locked, and which troubles are over. What is late by a
// LeaseTTL is told of within a quarter of another one.
type troubleWatch struct {
	*core.Core
	router  *router.Router
	mended  time.Time // when it was last looked whether troubles of routing are over
	holders struct {
		known []string
		asked time.Time
	}
}

// holdersEvery is how often the store is asked who holds the rows, while they are held.
const holdersEvery = 30 * time.Second

// maxHeldRows bounds the rows that the store is asked about.
const maxHeldRows = 100

func (w *troubleWatch) duty() loop.Duty {
	return loop.Duty{What: "looking for troubles", Aside: true, Wakes: []<-chan struct{}{w.LockedOut.Wake, w.Core.Troubles.Wake}, Once: func(ctx context.Context) (time.Duration, error) {
		more := w.Core.Troubles.Forget(w.Clock.Now())
		w.lookForMended(ctx)
		if w.look(ctx); !more && w.LockedOut.None() {
			return loop.Forever, nil
		}
		return min(w.Cfg.Cluster.LeaseTTL/4, 2*time.Second), nil
	}}
}

// mendedEvery is how often it is looked whether troubles of routing are over.
const mendedEvery = 10 * time.Second

func (w *troubleWatch) lookForMended(ctx context.Context) {
	if now := time.Now(); now.Sub(w.mended) >= mendedEvery {
		w.mended = now
		for _, cause := range []store.TroubleCause{store.TroubleNoExecutor, store.TroubleUnknownRouter} {
			w.Core.Troubles.End(cause, w.Clock.Now(), w.router.Mended(ctx, w.Core.Troubles.Of(cause))...)
		}
	}
}

func (w *troubleWatch) look(ctx context.Context) {
	now, ttl := w.Clock.Now(), w.Cfg.Cluster.LeaseTTL
	jobs, runs, oldest := w.LockedOut.Late(now.Add(-ttl), max(ttl/2, 2*time.Second))
	if len(jobs)+len(runs) == 0 {
		w.holders.known, w.holders.asked = nil, time.Time{}
		w.Core.Troubles.Set(store.TroubleLockedRows, now)
		return
	}
	if w.holders.asked.IsZero() || time.Since(w.holders.asked) >= holdersEvery {
		w.holders.asked = time.Now()
		w.holders.known = w.ask(ctx, jobs, runs)
	}
	w.Core.Troubles.Set(store.TroubleLockedRows, now, store.Trouble{
		Since:  oldest,
		Late:   len(jobs) + len(runs),
		Holder: strings.Join(w.holders.known, "; "),
		Seen:   store.Seen{What: lockedOut(len(jobs), len(runs)), Jobs: len(jobs), Runs: len(runs), For: ttl},
		Remedy: "end that transaction (in Postgres: pg_terminate_backend), and set idle_in_transaction_session_timeout for whoever looks at these tables",
	})
}

func lockedOut(jobs, runs int) store.SeenWhat {
	switch {
	case jobs == 0:
		return store.SeenLockedRuns
	case runs == 0:
		return store.SeenLockedJobs
	}
	return store.SeenLockedBoth
}

// ask returns who holds the rows, as far as the store can tell.
func (w *troubleWatch) ask(ctx context.Context, jobs, runs []int64) []string {
	reader, ok := core.Given(w.Store).(store.LockReader)
	if !ok {
		return nil
	}
	q := store.LockQuery{Jobs: jobs[:min(len(jobs), maxHeldRows)], Runs: runs[:min(len(runs), maxHeldRows)]}
	for _, sh := range w.Leases.Owned() {
		q.Shards = append(q.Shards, sh.ID)
	}
	holders, err := loop.Call(ctx, func(ctx context.Context) ([]string, error) { return reader.LockHolders(ctx, q) })
	if err != nil {
		w.Logger.Warn("xxljob: could not find out who holds locked rows", "error", err)
	}
	return holders
}
