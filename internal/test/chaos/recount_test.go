//go:build unix

package chaos

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// countedTables are the columns that a recount reads, with runs of two quarters of an hour, and
// the reports that are equal to a count of them.
const countedTables = `
	create schema recounted;
	create table recounted.xxl_job_log (app_name text, state smallint, snoozed boolean, trigger_type text, scheduled_time bigint, last_time bigint,
		trigger_time timestamptz, handle_time timestamptz);
	create table recounted.xxl_job_ahead (like recounted.xxl_job_log);
	create table recounted.xxl_job_report (quarter bigint, app_name text, slot int, succeeded int default 0, failed int default 0, timed_out int default 0, killed int default 0,
		lost int default 0, refused int default 0, discarded int default 0, skipped int default 0, cancelled int default 0, snoozed int default 0,
		late_1 int default 0, late_2 int default 0, late_5 int default 0, late_10 int default 0, late_20 int default 0, late_50 int default 0, late_100 int default 0,
		late_200 int default 0, late_500 int default 0, late_1000 int default 0, late_2000 int default 0, late_5000 int default 0, late_10000 int default 0,
		late_20000 int default 0, late_50000 int default 0, late_100000 int default 0, late_200000 int default 0, late_300000 int default 0, late_more int default 0,
		late_sum bigint default 0, took_sum bigint default 0);
	insert into recounted.xxl_job_log values
		('app', 0, null, 'CRON', 1800000000000, null, null, null),
		('app', 3, null, 'CRON', 1800000000000, null, to_timestamp(1800000000.007), to_timestamp(1800000000.010)),
		('app', 3, true, 'CRON', 1800000000000, null, to_timestamp(1799999999.990), to_timestamp(1800000000.010)),
		('app', 4, null, 'RETRY', 1800000950000, 1800000000000, to_timestamp(1800000950.001), to_timestamp(1800000950.003)),
		('app', 8, null, 'CRON', 1800000900000, null, to_timestamp(1800000900.007), to_timestamp(1800000900.010));
	insert into recounted.xxl_job_ahead values ('app', 11, null, 'MANUAL', 1800000900000, null, null, now()), ('app', 0, null, 'MANUAL', 1800000900000, null, null, null);
	insert into recounted.xxl_job_report (quarter, app_name, slot, succeeded, failed, snoozed, late_1, late_10, late_sum, took_sum) values
		(1800000000000, 'app', 1, 1, 0, 0, 0, 1, 7, 3), (1800000000000, 'app', 7, 0, 1, 1, 2, 0, 1, 22);
	insert into recounted.xxl_job_report (quarter, app_name, slot, refused, cancelled) values (1800000900000, 'app', 1, 1, 1);`

// TestRecount: reports that are equal to a count of the runs are found to be, and each count that
// is not is found.
func TestRecount(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a server; leave out -short")
	}
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, pgtest.Pool(t).Config().ConnString())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, countedTables)
	must(err)
	for what, wrong := range map[string]int{
		"select": 0,
		"update recounted.xxl_job_report set succeeded = succeeded + 1 where slot = 7":     1,
		"update recounted.xxl_job_report set late_more = late_more + 1 where slot = 7":     1,
		"update recounted.xxl_job_report set took_sum = took_sum + 1 where slot = 7":       1,
		"update recounted.xxl_job_report set cancelled = 0":                                1,
		"update recounted.xxl_job_report set quarter = quarter - 900000 where refused = 1": 4,
		"delete from recounted.xxl_job_report where slot = 1":                              6,
		"update recounted.xxl_job_log set state = 9 where state = 4":                       5,
		"update recounted.xxl_job_log set app_name = 'other' where state = 8":              2,
	} {
		tx, err := conn.Begin(ctx)
		must(err)
		tag, err := tx.Exec(ctx, what)
		must(err)
		found, compared, err := recount(ctx, conn, "recounted")
		must(err)
		if compared < 8 || len(found) != wrong {
			t.Errorf("%s (%s): %d of %d counts differ, want %d: %q", what, tag, len(found), compared, wrong, found)
		}
		must(tx.Rollback(ctx))
	}
}
