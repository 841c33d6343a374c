//go:build unix

package chaos

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// Handlers that end their process: of a job that is run again when it is lost, one such
// handler ends one process after the other.

// exits lets the handlers of up to n members end their processes for a while, and triggers
// runs that do. Each process is replaced.
func exits(n int, d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		first, err := a.awaitVictim(ctx)
		if err != nil {
			return err
		}
		members := []*member{first}
		for len(members) < n {
			m := a.victim()
			if m == nil {
				break
			}
			members = append(members, m)
		}
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		errs := make([]error, len(members))
		var g sync.WaitGroup
		for i, m := range members {
			g.Go(func() { errs[i] = m.letExit(ctx) })
		}
		for pause(ctx, a.between(d/20, d/5)) {
			// Five of them outlast what a lost run may be run again.
			a.chain(ctx, a.chained[a.intn(len(a.chained))].id, "xxxxx"[:1+a.intn(5)]+"o")
		}
		g.Wait()
		return errors.Join(errs...)
	}
}

// letExit replaces the process each time that a handler has ended it, until ctx ends.
func (m *member) letExit(ctx context.Context) error {
	defer m.release()
	permit := filepath.Join(m.arena.dir, control.ExitsFile(m.name))
	after := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		f := audit.Fault{Name: "os.Exit", Effect: audit.Dies, Victim: m.process()}
		if err := os.WriteFile(permit, nil, 0o600); err != nil {
			return err
		}
		select {
		case <-m.gone():
		case <-ctx.Done():
		}
		if err := os.Remove(permit); err != nil {
			return err
		}
		_ = pause(after, 100*time.Millisecond) // for one that has just seen the permission
		if m.alive() {
			continue
		}
		f.Begin = now()
		if err := m.replace(after, f, time.Duration(m.arena.intn(2))*away); err != nil {
			return err
		}
	}
	return nil
}
