//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
)

// Faults after which it is asked, route by route, how late the runs are that the
// victim had not taken: of one node after the other, each far enough from the last.

// routeFaults are those of one lease mode, for one cluster.
func routeFaults(lease, unit string) []fault {
	all := []fault{{name: "kill-" + lease, unit: unit, lease: lease, rests: true, run: killEach}}
	for i, seconds := range []int{2, 4, 8, 40} {
		all = append(all, fault{
			name: fmt.Sprintf("stop-%d-%s", seconds, lease), unit: unit, lease: lease, rests: true,
			run: stopOne(i, time.Duration(seconds)*time.Second),
		})
	}
	return all
}

// fresh is how long the runs that fall due after a fault are looked at, and a second
// more, until the next may come.
const fresh = 16 * time.Second

// killEach kills every node, beginning with the one that FIRST names. That one stays
// away for longer than any bound, so that the others have to do without it; the rest
// are replaced at once, or in time for their lease.
func killEach(ctx context.Context, a *arena) error {
	first, err := a.namedByFirst(ctx)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(a.shuffled(), func(m *member) bool { return m == first })
	for i, m := range append([]*member{first}, others...) {
		away := 12 * time.Second
		if i > 0 {
			away = a.between(0, 4*time.Second)
		}
		err := a.byRoute(ctx, m, func() error { return m.killAs(ctx, audit.Fault{Name: "SIGKILL", ByRoute: true}, away) })
		if err != nil {
			return err
		}
	}
	return nil
}

// stopOne pauses a node: the i-th in an order that is the seed's, counted around, so
// that no node is left out.
func stopOne(i int, d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		if a.turns == nil {
			a.turns = a.shuffled()
		}
		m := a.turns[i%len(a.turns)]
		return a.byRoute(ctx, m, func() error { return m.pauseAs(ctx, audit.Fault{Name: "SIGSTOP", ByRoute: true}, d) })
	}
}

// byRoute hits a member, and rests until what fell due after that has been looked at.
func (a *arena) byRoute(ctx context.Context, m *member, hit func() error) error {
	if !m.claim() {
		return fmt.Errorf("chaos: %s is no victim: another fault has it, or it is gone", m.name)
	}
	defer m.release()
	quiet := time.Now().Add(fresh)
	if err := hit(); err != nil {
		return err
	}
	_ = pause(ctx, time.Until(quiet))
	return ctx.Err()
}

// namedByFirst is the member that the strategy FIRST names.
func (a *arena) namedByFirst(ctx context.Context) (*member, error) {
	jobs := a.journal.input().Jobs
	i := slices.IndexFunc(jobs, func(j audit.Job) bool { return j.Route == "FIRST" && j.Prompt })
	if i < 0 {
		return nil, errors.New("chaos: no job has the route FIRST")
	}
	var node string
	err := a.withDB(ctx, func(db *pgx.Conn) (err error) {
		node, err = sentTo(ctx, db, schema, jobs[i].ID)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("chaos: which node FIRST names: %w", err)
	}
	all := a.all()
	at := slices.IndexFunc(all, func(m *member) bool { return m.name == node })
	if at < 0 {
		return nil, fmt.Errorf("chaos: FIRST names %q, which is no member", node)
	}
	return all[at], nil
}
