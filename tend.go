package xxljob

// What the lease loop does beside its beats.

import (
	"context"
	"errors"
)

// tender gives up and takes shards, settles runs, looks for orphans and mends jobs. It
// belongs to the lease loop.
type tender struct {
	*shared
	fitness  *fitness
	balancer *balancer
	settler  *settler
	orphans  *orphans
	tended   int // how many duties it has done
}

// tend gives up and takes shards, settles the runs of nodes that are gone, and looks for
// runs and mends jobs that need it. None of these is kept from its work by what failed
// before it: or a node whose sweeps fail would neither give a shard up nor take one. But
// where claims or starts hang, so may all of this, and the next beat must not wait: what
// runs into a deadline ends it for this time, and the next time begins behind that.
func (t *tender) tend(ctx context.Context, view View) error {
	side, cancel := t.besideBeats(ctx)
	defer cancel()
	err := t.balancer.rebalance(ctx, side, view)
	duties := []func(context.Context) error{t.settler.settleGone, t.orphans.adoptOrphans, t.balancer.sweep}
	for range duties {
		if errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		do := duties[t.tended%len(duties)]
		t.tended++
		err = errors.Join(err, do(side))
	}
	return err
}

// besideBeats bounds what the lease loop does beside its beats, while it may hang.
func (t *tender) besideBeats(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.fitness.troubled() {
		return context.WithTimeout(ctx, t.cfg.Cluster.LeaseTTL/5)
	}
	return ctx, func() {}
}
