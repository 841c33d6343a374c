//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// Faults of the database.

// restart stops the database and starts it again.
func restart(mode pgtest.Mode) func(context.Context, *arena) error {
	return func(_ context.Context, a *arena) error {
		a.dbFault.Lock()
		defer a.dbFault.Unlock()
		return a.blocked("restart "+string(mode), 0, func() error { return a.primary().Restart(mode) })
	}
}

// restartAtRandom restarts in one of the ways there are, or kills the server.
func restartAtRandom(ctx context.Context, a *arena) error {
	modes := []pgtest.Mode{pgtest.Immediate, pgtest.Fast, pgtest.Kill}
	return restart(modes[a.intn(len(modes))])(ctx, a)
}

// terminateBackends ends the sessions that a query names.
func terminateBackends(what, query string) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		a.dbFault.Lock()
		defer a.dbFault.Unlock()
		return a.blocked("pg_terminate_backend of "+what, 0, func() error {
			return a.withDB(ctx, func(db *pgx.Conn) error {
				tag, err := db.Exec(ctx, "select pg_terminate_backend(pid) from ("+query+") p", dbUser, dbName)
				if err == nil && tag.RowsAffected() == 0 {
					a.note("%s: there were none", what)
				}
				return err
			})
		})
	}
}

// lockTables locks every table of ours whose number is one of part modulo of, for d each. What
// follows the ends of runs is held for a third of that, which is still longer than the misfire
// threshold: there are many such tables.
func lockTables(part, of int, d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		var names []string
		err := a.withDB(ctx, func(db *pgx.Conn) (err error) {
			names, err = tables(ctx, db, schema)
			return err
		})
		if err == nil && len(names) == 0 {
			err = errors.New("chaos: there are no tables to lock")
		}
		for i, name := range names {
			if i%of != part || err != nil {
				continue
			}
			held := d
			if slices.Contains(following(), name) {
				held = d / 3
			}
			a.phase("lock " + name)
			err = a.holdLock(ctx, "LOCK TABLE "+name, held, fmt.Sprintf("lock table %s in access exclusive mode", pgx.Identifier{schema, name}.Sanitize()))
			_ = pause(ctx, 8*time.Second)
		}
		return err
	}
}

// lockRows locks rows in a transaction that then does nothing.
func lockRows(d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		locks := rowLocks(schema)
		for _, name := range slices.Sorted(maps.Keys(locks)) {
			a.phase("row locks: " + name)
			if err := a.holdLock(ctx, "row locks: "+name, d, locks[name]); err != nil {
				return err
			}
			_ = pause(ctx, 5*time.Second)
		}
		return nil
	}
}

// holdLock takes a lock and keeps it for d in an idle transaction.
func (a *arena) holdLock(ctx context.Context, name string, d time.Duration, sql string) error {
	return a.withDB(ctx, func(db *pgx.Conn) error {
		tx, err := db.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		// What waits for us waits from the moment that we wait.
		return a.blocked(name, within, func() error {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return fmt.Errorf("chaos: %s: %w", name, err)
			}
			_ = pause(ctx, d)
			return tx.Rollback(context.WithoutCancel(ctx))
		})
	})
}

// dump runs pg_dump over and over. It holds shared locks only.
func dump(d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		bin, err := pgtest.Find()
		if err != nil {
			return err
		}
		f := audit.Fault{Name: "pg_dump", Effect: audit.Harmless, Begin: now()}
		n := 0
		for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; n++ {
			out, err := exec.CommandContext(ctx, filepath.Join(bin, "pg_dump"), "-d", a.primary().DSN(dbName), "-f", "/dev/null").CombinedOutput()
			if err != nil {
				return fmt.Errorf("chaos: pg_dump: %w\n%s", err, out)
			}
		}
		f.End = now()
		a.journal.fault(f)
		a.note("pg_dump ran %d times", n)
		return nil
	}
}
