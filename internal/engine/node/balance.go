package node

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// This node's part of the shards: what it gives up, what it takes, and what it then looks
// after first.

// balancer gives up and takes shards. It belongs to the lease loop.
type balancer struct {
	*core.Core
	reload  *lease.ReloadSet
	told    *leaseNews
	unswept lease.ReloadSet // shards whose waiting jobs have to be mended yet
	outrun  bool            // others were quicker to take shards, the last time
}

// rebalance gives up the shards that are too many and takes those that are due
// to this node, the latter within side.
func (b *balancer) rebalance(ctx, side context.Context, v store.View) error {
	give, take, above := b.Leases.Shares(v.Shards, time.Now())
	if len(give) > 0 {
		b.Leases.Drop(give)
		if err := b.release(ctx, give); err != nil {
			return err
		}
	}
	if take = slices.Concat(take, above); len(take) == 0 {
		return nil
	}
	taken, err := loop.Call(side, func(ctx context.Context) ([]store.Shard, error) {
		return b.Store.TakeShards(ctx, b.Leases.Incarnation, take)
	})
	if err != nil {
		return err
	}
	b.told.took(taken)
	if !b.Leases.Add(taken, above, time.Now()) {
		return b.release(ctx, taken)
	}
	short := len(taken) < len(take)
	if short && !b.outrun {
		b.Life.Wakes.Lease.Poke() // others were quicker: look, once, what they have left
	}
	b.outrun = short
	b.takeUp(taken)
	return nil
}

func (b *balancer) release(ctx context.Context, shards []store.Shard) error {
	_, err := loop.Call(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.Store.ReleaseShards(ctx, b.Leases.Incarnation, shards)
	})
	return err
}

// takeUp has the loops begin with shards that are new to this node: their planned runs are
// read as a whole. The next sweep mends jobs that wait for runs which ended without them.
func (b *balancer) takeUp(shards []store.Shard) {
	if len(shards) == 0 {
		return
	}
	b.reload.Add(shards)
	b.unswept.Add(shards)
	b.Life.Wakes.WakeLoops()
}

// sweep mends jobs of the shards that were taken up.
func (b *balancer) sweep(ctx context.Context) error {
	shards := b.unswept.Take(b.Leases.Owned())
	if len(shards) == 0 {
		return nil
	}
	_, err := loop.Call(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.Store.Sweep(ctx, shards)
	})
	if err != nil {
		b.unswept.Add(shards) // at the next beat
		return err
	}
	b.Life.Wakes.Scan.Poke() // what it has mended may be due
	return nil
}
