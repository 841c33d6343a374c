package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// This node's part of the shards: what it gives up, what it takes, and what it then looks
// after first.

// rebalance gives up the shards that are too many and takes those that are due
// to this node, the latter within side.
func (h *heartbeat) rebalance(ctx, side context.Context, v store.View) error {
	give, take, above := h.Leases.Shares(v.Shards, time.Now())
	if len(give) > 0 {
		h.Leases.Drop(give)
		if err := h.release(ctx, give); err != nil {
			return err
		}
	}
	if take = slices.Concat(take, above); len(take) == 0 {
		return nil
	}
	taken, err := loop.Call(side, func(ctx context.Context) ([]store.Shard, error) {
		return h.Store.TakeShards(ctx, h.Leases.Incarnation, take)
	})
	if err != nil {
		return err
	}
	h.told.took(taken)
	if !h.Leases.Add(taken, above, time.Now()) {
		return h.release(ctx, taken)
	}
	short := len(taken) < len(take)
	if short && !h.outrun {
		h.Life.Wakes.Lease.Poke() // others were quicker: look, once, what they have left
	}
	h.outrun = short
	h.takeUp(taken)
	return nil
}

func (h *heartbeat) release(ctx context.Context, shards []store.Shard) error {
	return loop.Do(ctx, func(ctx context.Context) error { return h.Store.ReleaseShards(ctx, h.Leases.Incarnation, shards) })
}

// takeUp has the loops begin with shards that are new to this node: their planned runs are
// read as a whole. The next sweep mends jobs that wait for runs which ended without them.
func (h *heartbeat) takeUp(shards []store.Shard) {
	if len(shards) == 0 {
		return
	}
	h.reload.Add(shards)
	h.unswept.Add(shards)
	h.Life.Wakes.WakeLoops()
}

// sweep mends jobs of the shards that were taken up.
func (h *heartbeat) sweep(ctx context.Context) error {
	shards := h.unswept.Take(h.Leases.Owned)
	if len(shards) == 0 {
		return nil
	}
	err := loop.Do(ctx, func(ctx context.Context) error { return h.Store.Sweep(ctx, shards) })
	if err != nil {
		h.unswept.Add(shards) // at the next beat
	}
	if errors.Is(err, store.ErrRefused) { // the others are mended
		h.Core.Troubles.Refused(h.Clock.Now(), "", 0, store.SeenRefusesWaits, 0, err)
		err = nil
	}
	if err != nil {
		return err
	}
	h.Life.Wakes.Scan.Poke() // what it has mended may be due
	return nil
}
