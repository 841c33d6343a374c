//go:build unix

package chaos

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The reports against a count of the runs. In: the database, when all is over. Out: what is
// counted otherwise, a line each, and how many counts were compared.

// countsOfRuns are counts by quarter of an hour and app: of runs in each state that is an end, by
// its number, 12 for those that were snoozed; of those that were timed (100), and how late they
// were and how long they took together (101, 102), in milliseconds.
const countsOfRuns = `with ended as (
	select state, snoozed, app_name, trigger_type, scheduled_time, last_time, trigger_time, handle_time from %[1]s.xxl_job_log where state > 2
	union all select state, snoozed, app_name, trigger_type, scheduled_time, last_time, trigger_time, handle_time from %[1]s.xxl_job_ahead where state > 2),
	each as (select case when trigger_type = 'RETRY' and last_time <> 0 then last_time else scheduled_time end / 900000 * 900000 quarter, app_name,
		case when state = 3 and snoozed then 12 else state end state,
		floor(extract(epoch from trigger_time) * 1000)::bigint - scheduled_time late,
		floor(extract(epoch from handle_time) * 1000)::bigint - floor(extract(epoch from trigger_time) * 1000)::bigint took from ended),
	timed as (select * from each where took is not null and state in (3, 4, 5, 6, 7, 12))
	select quarter, app_name, state::int what, count(*) n from each group by 1, 2, 3
	union all select quarter, app_name, 100, count(*) from timed group by 1, 2
	union all select quarter, app_name, 101, sum(greatest(late, 0))::bigint from timed group by 1, 2
	union all select quarter, app_name, 102, sum(greatest(took, 0))::bigint from timed group by 1, 2`

// countsOfReports are the same of the reports.
const countsOfReports = `select r.quarter, r.app_name, c.what, sum(c.n)::bigint n from %[1]s.xxl_job_report r
	cross join lateral (values (3, succeeded), (4, failed), (5, timed_out), (6, killed), (7, lost), (8, refused), (9, discarded), (10, skipped), (11, cancelled), (12, snoozed),
		(100, late_1 + late_2 + late_5 + late_10 + late_20 + late_50 + late_100 + late_200 + late_500 + late_1000 + late_2000 + late_5000 + late_10000 + late_20000
			+ late_50000 + late_100000 + late_200000 + late_300000 + late_more),
		(101, late_sum), (102, took_sum)) c(what, n) group by 1, 2, 3`

// recount compares the two.
func recount(ctx context.Context, db *pgx.Conn, schema string) (wrong []string, compared int, err error) {
	rows, err := db.Query(ctx, fmt.Sprintf(`select coalesce(a.quarter, b.quarter), coalesce(a.app_name, b.app_name), coalesce(a.what, b.what), coalesce(a.n, 0), coalesce(b.n, 0)
		from (`+countsOfRuns+`) a full join (`+countsOfReports+`) b on a.quarter = b.quarter and a.app_name = b.app_name and a.what = b.what
		order by 1, 2, 3`, schema))
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var quarter, runs, reported int64
		var app string
		var what int
		if err := rows.Scan(&quarter, &app, &what, &runs, &reported); err != nil {
			return nil, 0, err
		}
		compared++
		if runs != reported {
			wrong = append(wrong, fmt.Sprintf("quarter %d of %s, count %d: %d by the runs, %d by the reports", quarter, app, what, runs, reported))
		}
	}
	return wrong, compared, rows.Err()
}
