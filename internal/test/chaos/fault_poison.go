//go:build unix

package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// Poisoned items: what can never be stored stands in the way of nothing else.

// poisoned is of how many runs one is poisoned, on average.
const poisoned = 200

// openPoisoned makes a database whose nodes have handlers that write, return and fail with texts
// which nobody can store, each in one of so many runs.
func openPoisoned(ctx context.Context, a *arena) error {
	a.poison = poisoned
	return a.openPrimary(ctx)
}

// poison has the database refuse some rows for ever: results, alarms and pages of logs of poisoned runs,
// each run and each start of a job, and each alarm of another. The auditor knows nothing of these jobs.
func poison(d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		refused := map[string]int64{}
		for _, j := range []control.Job{
			{Name: "no runs", Kind: control.Cron, Period: 1000, Route: "NEAREST"},
			{Name: "no starts", Kind: control.Cron, Period: 1000, Route: "NEAREST"},
			{Name: "no alarms", Kind: control.Cron, Period: 5000, Route: "NEAREST", Param: "takes=2500", LateAfter: 1000},
		} {
			got, _, ok := a.insist(ctx, nil, control.Request{Verb: control.Ensure, Job: j})
			if !ok {
				return fmt.Errorf("chaos: job %q cannot be added: %s", j.Name, got.Error)
			}
			refused[j.Name] = got.ID
		}
		f := audit.Fault{Name: "poison", Effect: audit.Harmless, Begin: now()}
		err := a.withDB(ctx, func(db *pgx.Conn) error {
			_, err := db.Exec(ctx, refusals(schema, poisoned, refused["no runs"], refused["no starts"], refused["no alarms"]))
			return err
		})
		if err != nil {
			return err
		}
		_ = pause(ctx, d)
		f.End = now()
		a.journal.fault(f)
		for name, id := range refused {
			if !a.change(ctx, nil, control.Request{Verb: control.Remove, ID: id}, audit.Grid{}) {
				return fmt.Errorf("chaos: job %q cannot be removed", name)
			}
		}
		return ctx.Err()
	}
}
