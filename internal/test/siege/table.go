//go:build unix

package siege

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/siege/judge"
)

// This file holds everything that this package knows of the database's tables.

// schema is where they are.
const schema = "siege"

// The states of runs, as the table has them.
const (
	stateDispatched = 2 // and less: the run has not ended
	stateSucceeded  = 3
	stateCancelled  = 11
)

// unended is how many runs of an app have not ended.
func unended(ctx context.Context, db *pgx.Conn, app string) (n int, err error) {
	err = db.QueryRow(ctx, fmt.Sprintf(`select count(*) from %s.xxl_job_log where app_name = $1 and state <= %d`, schema, stateDispatched), app).Scan(&n)
	return n, err
}

// audit sums up the runs of an app, and compares them with those that its executors have
// accepted.
func audit(ctx context.Context, db *pgx.Conn, app string, accepted []int64) (runs judge.Runs, err error) {
	err = db.QueryRow(ctx, fmt.Sprintf(`
		select count(*) filter (where state = %[2]d), count(*) filter (where state = %[3]d), count(*) filter (where state <= %[4]d),
			count(*) filter (where state not in (%[2]d, %[3]d) and state > %[4]d)
		from %[1]s.xxl_job_log where app_name = $1`, schema, stateSucceeded, stateCancelled, stateDispatched), app).
		Scan(&runs.Succeeded, &runs.Cancelled, &runs.Unended, &runs.Other)
	if err != nil {
		return runs, err
	}
	runs.Accepted = len(accepted)
	err = db.QueryRow(ctx, fmt.Sprintf(`
		select count(*) from unnest($1::bigint[]) a(id)
		where not exists (select from %s.xxl_job_log l where l.id = a.id and l.app_name = $2 and l.state = %d)`, schema, stateSucceeded), accepted, app).
		Scan(&runs.Forgotten)
	return runs, err
}

// states are the runs of an app by state, as text.
func states(ctx context.Context, db *pgx.Conn, app string) (text string, err error) {
	err = db.QueryRow(ctx, fmt.Sprintf(`
		select coalesce(string_agg(n || ' in state ' || state, ', ' order by state), 'none')
		from (select state, count(*) n from %s.xxl_job_log where app_name = $1 group by 1) s`, schema), app).Scan(&text)
	return text, err
}

// lockTables is what hangs the store: whoever reads or writes runs or registrations waits.
const lockTables = `lock table ` + schema + `.xxl_job_log, ` + schema + `.xxl_job_registry in access exclusive mode`
