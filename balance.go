package xxljob

// This node's part of the shards: what it gives up, what it takes, and what it then looks
// after first.

import (
	"context"
	"slices"
	"time"
)

// rebalance gives up the shards that are too many and takes those that are due
// to this node, the latter within side.
func (l *leaser) rebalance(ctx, side context.Context, v View) error {
	give, take, above := l.leases.shares(v.Shards, time.Now())
	if len(give) > 0 {
		l.leases.drop(give)
		if _, err := call(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, l.store.ReleaseShards(ctx, l.leases.incarnation, give)
		}); err != nil {
			return err
		}
	}
	if take = slices.Concat(take, above); len(take) == 0 {
		return nil
	}
	taken, err := call(side, func(ctx context.Context) ([]Shard, error) {
		return l.store.TakeShards(ctx, l.leases.incarnation, take)
	})
	if err != nil {
		return err
	}
	l.leases.add(taken, above, time.Now())
	short := len(taken) < len(take)
	if short && !l.outrun {
		l.life.wakes.lease.poke() // others were quicker: look, once, what they have left
	}
	l.outrun = short
	l.takeUp(taken)
	return nil
}

// takeUp has the loops begin with shards that are new to this node: their planned runs are
// read as a whole. The next sweep mends jobs that wait for runs which ended without them.
func (l *leaser) takeUp(shards []Shard) {
	if len(shards) == 0 {
		return
	}
	l.reload.add(shards)
	l.unswept.add(shards)
	l.wakeLoops()
}

// wakeLoops wakes the loops that sleep while this node has no shards, or is not trusted with
// them.
func (l *leaser) wakeLoops() {
	l.life.wakes.scan.poke()
	l.life.wakes.start.poke()
	l.life.wakes.inbox.poke()
}

// sweep mends jobs of the shards that were taken up.
func (l *leaser) sweep(ctx context.Context) error {
	shards := l.unswept.take(l.leases.owned())
	if len(shards) == 0 {
		return nil
	}
	_, err := call(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, l.store.Sweep(ctx, shards)
	})
	if err != nil {
		l.unswept.add(shards) // at the next beat
		return err
	}
	l.life.wakes.scan.poke() // what it has mended may be due
	return nil
}
