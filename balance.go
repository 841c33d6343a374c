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
func (s *scheduler) rebalance(ctx, side context.Context, v View) error {
	give, take, above := s.leases.shares(v.Shards, time.Now())
	if len(give) > 0 {
		s.leases.drop(give)
		if _, err := call(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.store.ReleaseShards(ctx, s.incarnation, give)
		}); err != nil {
			return err
		}
	}
	if take = slices.Concat(take, above); len(take) == 0 {
		return nil
	}
	taken, err := call(side, func(ctx context.Context) ([]Shard, error) {
		return s.store.TakeShards(ctx, s.incarnation, take)
	})
	if err != nil {
		return err
	}
	s.leases.add(taken, above, time.Now())
	short := len(taken) < len(take)
	if short && !s.outrun {
		s.wakes.lease.poke() // others were quicker: look, once, what they have left
	}
	s.outrun = short
	s.takeUp(taken)
	return nil
}

// takeUp has the loops begin with shards that are new to this node: their planned runs are
// read as a whole. The next sweep mends jobs that wait for runs which ended without them.
func (s *scheduler) takeUp(shards []Shard) {
	if len(shards) == 0 {
		return
	}
	s.reload.add(shards)
	s.unswept.add(shards)
	s.wakeLoops()
}

// wakeLoops wakes the loops that sleep while this node has no shards, or is not trusted with
// them.
func (s *scheduler) wakeLoops() {
	s.wakes.scan.poke()
	s.wakes.start.poke()
	s.wakes.inbox.poke()
}

// sweep mends jobs of the shards that were taken up.
func (s *scheduler) sweep(ctx context.Context) error {
	shards := s.unswept.take(s.leases.owned())
	if len(shards) == 0 {
		return nil
	}
	_, err := call(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.store.Sweep(ctx, shards)
	})
	if err != nil {
		s.unswept.add(shards) // at the next beat
		return err
	}
	s.wakes.scan.poke() // what it has mended may be due
	return nil
}
