//go:build unix

package chaos

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
)

// Faults of the network between a node and the database.

// cutOff injects a fault into the connections of one member.
func (a *arena) cutOff(ctx context.Context, name string, begin func(*member), d time.Duration, owned bool) error {
	m, err := a.awaitVictim(ctx)
	if err != nil {
		return err
	}
	defer m.release()
	f := audit.Fault{Name: name, Effect: audit.Silent, Victim: m.process()}
	if owned {
		f.Shards = a.ownedBy(ctx, m)
	}
	f.Begin = now()
	m.setMute(true)
	begin(m)
	_ = pause(ctx, d)
	m.proxy.Heal()
	m.setMute(false)
	f.End = now()
	a.journal.fault(f)
	return nil
}

// blackHole lets nothing pass between one node and the database. What was sent
// arrives afterwards.
func blackHole(d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		return a.cutOff(ctx, "black hole", func(m *member) { m.proxy.BlackHole() }, d, true)
	}
}

// halfOpen takes a node away whose connections the database goes on to believe in,
// the one that holds its locks among them.
func halfOpen(d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		return a.cutOff(ctx, "half-open", func(m *member) {
			m.proxy.BlackHole()
			m.proxy.HalfOpen()
		}, d, true)
	}
}

// orphan cuts a node's connections at the database only: the node waits for
// answers that never come, and may make new connections.
func orphan(ctx context.Context, a *arena) error {
	return a.cutOff(ctx, "orphan", func(m *member) { m.proxy.Orphan() }, 10*time.Second, false)
}

// reset cuts a node's connections, or cuts them in the middle of a statement.
func reset(ctx context.Context, a *arena) error {
	return a.cutOff(ctx, "reset", func(m *member) {
		m.proxy.CutAfter(int64(1 + a.intn(2000)))
		_ = pause(ctx, 500*time.Millisecond)
		m.proxy.Reset()
	}, 500*time.Millisecond, false)
}

// blackHoleAll takes the database away from all nodes, with their connections.
func blackHoleAll(d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		return a.blocked("black hole of all", 0, func() error {
			a.onAll(func(m *member) { m.setMute(true); m.proxy.BlackHole() })
			_ = pause(ctx, d)
			a.onAll(func(m *member) { m.proxy.Heal(); m.setMute(false) })
			return nil
		})
	}
}

// delay makes the database slow for all nodes.
func delay(by, d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		return a.blocked("delay", within, func() error {
			a.onAll(func(m *member) { m.proxy.Delay(by) })
			_ = pause(ctx, d)
			a.onAll(func(m *member) { m.proxy.Heal() })
			return nil
		})
	}
}

func (a *arena) onAll(f func(*member)) {
	for _, m := range a.all() {
		f(m)
	}
}
