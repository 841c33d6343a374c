//go:build unix

package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// Faults of hosts, which share their pool with the node in their process.

// holdPool has one host keep all connections of its pool, and leaves the cluster alone
// after that for longer than the node may take until it takes part again.
func holdPool(d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		m := a.shuffled()[0]
		if err := a.byRoute(ctx, m, func() error { return m.holdPool(ctx, d) }); err != nil {
			return err
		}
		_ = pause(ctx, fresh)
		return ctx.Err()
	}
}

// holdPool has the host keep all connections of its pool.
func (m *member) holdPool(ctx context.Context, d time.Duration) error {
	f := audit.Fault{Name: "pool held", Effect: audit.Starves, Victim: m.process(), ByRoute: true, Begin: now()}
	m.setMute(true)
	got, err := m.ask(ctx, d+10*time.Second, control.Request{Verb: control.Hold, HoldFor: int64(d)})
	m.setMute(false)
	f.End = now()
	if err == nil {
		err = got.Err()
	}
	if err != nil {
		return fmt.Errorf("chaos: the pool of %s is not held: %w", m.name, err)
	}
	m.arena.journal.fault(f)
	return nil
}
