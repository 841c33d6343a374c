package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/schedule"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// partition is the name of the partition of a day from today.
func partition(schema string, days int) string {
	return schema + ".xxl_job_log_" + time.Now().UTC().AddDate(0, 0, days).Format("20060102")
}

// partitions counts those that there are.
func partitions(t *testing.T, pool *pgxpool.Pool, schema string) int {
	t.Helper()
	return ask[int](t, pool, "select count(*)::int from pg_inherits where inhparent = ($1 || '.xxl_job_log')::regclass", schema)
}

const (
	allPartitions   = 3  // from yesterday to tomorrow: see postgres.MakeFewDays
	usersPartitions = 16 // from yesterday to a fortnight ahead: see postgres.AllDays
)

// longAgo makes a partition for a day long ago.
func longAgo(t *testing.T, pool *pgxpool.Pool, schema string) {
	t.Helper()
	run(t, pool, fmt.Sprintf("create table %s.xxl_job_log_20250102 partition of %[1]s.xxl_job_log for values from (%d) to (%d)",
		schema, 86_400_000<<13, 2*86_400_000<<13))
}

// openAt opens a store in a schema, of which node a has one shard.
func openAt(t *testing.T, pool *pgxpool.Pool, schema string) (*postgres.Store, *actor) {
	t.Helper()
	s, err := postgres.New(t.Context(), pool, postgres.Config{Schema: schema})
	must(t, err)
	t.Cleanup(s.Close)
	return s, own(t, s, "a", 1)
}

// droppedColumns drops the columns of migration 16.
func droppedColumns() string {
	return postgres.EachReportColumn(",", func(name string, _ int) string { return " drop column " + name })
}

// backTo undoes the migrations behind a version, as if they had never been.
func backTo(t *testing.T, pool *pgxpool.Pool, schema string, version int) {
	t.Helper()
	undo := map[int]string{
		2: "alter table %s.xxl_job_registry drop column capabilities, alter column boot_id drop not null, alter column boot_id drop default",
		3: "drop table %s.xxl_job_list_head, %[1]s.xxl_job_list, %[1]s.xxl_job_named",
		4: "alter table %s.xxl_job_node drop column failing",
		5: "select from %s.xxl_job_named", // it has changed rows only
		6: "drop index %s.xxl_job_info_of_app; create index xxl_job_info_app on %[1]s.xxl_job_info (app_name, id)",
		7: "alter table %s.xxl_job_info drop column not_before, drop column not_after, drop column max_runs; " +
			"alter table %[1]s.xxl_job_next drop column run_count, drop column counted_after, drop column not_after, drop column max_runs",
		8: "alter table %s.xxl_job_info drop column max_per_executor",
		9: "drop table %s.xxl_job_ahead; drop sequence %[1]s.xxl_job_ahead_id",
		10: "alter table %s.xxl_job_log drop column progress, drop column progress_text; " +
			"alter table %[1]s.xxl_job_ahead drop column progress, drop column progress_text",
		11: "drop index %[1]s.xxl_job_log_retries; " +
			"alter table %[1]s.xxl_job_log drop column born, drop column retries_set, drop column reruns, drop column snoozes, drop column snoozed; " +
			"alter table %[1]s.xxl_job_ahead drop column born, drop column retries_set, drop column reruns, drop column snoozes, drop column snoozed; " +
			"alter table %[1]s.xxl_job_info drop column retry_pause, drop column retry_pause_max, drop column retry_jitter, drop column retry_aside, " +
			"drop column max_reruns, drop column max_snoozes; " +
			"alter table %[1]s.xxl_job_registry drop column former_boot, drop column former_seen",
		12: "drop index %[1]s.xxl_job_info_late; drop index %[1]s.xxl_job_info_leads; " +
			"alter table %[1]s.xxl_job_info drop column child_keys, drop column child_param, drop column after_jobs, drop column after_keys, " +
			"drop column after_window, drop column after_zone, drop column after_timeout, drop column late_after; " +
			"alter table %[1]s.xxl_job_log drop column depth, drop column business_time; " +
			"alter table %[1]s.xxl_job_ahead drop column depth, drop column business_time; " +
			"drop table %[1]s.xxl_job_link, %[1]s.xxl_job_owed, %[1]s.xxl_job_part, %[1]s.xxl_job_window, %[1]s.xxl_job_alarm, %[1]s.xxl_job_told; " +
			"create table %[1]s.xxl_job_alarm (id bigint generated always as identity primary key, run_id bigint not null, job_id int not null, cause text not null, " +
			"attempts int not null default 0, due timestamptz not null, sent timestamptz, unique (run_id, cause))",
		13: "alter table %s.xxl_job_alarm drop column gave_up",
		18: "drop index %[1]s.xxl_job_change_of_job; drop index %[1]s.xxl_job_change_version; drop index %[1]s.xxl_job_change_at; drop index %[1]s.xxl_job_change_actor; " +
			"drop index %[1]s.xxl_job_change_verb; drop index %[1]s.xxl_job_change_app; drop index %[1]s.xxl_job_change_object; drop index %[1]s.xxl_job_change_kind; " +
			"alter table %[1]s.xxl_job_change drop column client, drop column request_id, drop column object, drop column object_id, drop column app_name, " +
			"drop column before, drop column after, drop column definition",
		15: "drop index %s.xxl_job_info_tags; drop index %[1]s.xxl_job_info_name; alter table %[1]s.xxl_job_info drop column tags",
		16: "drop table %s.xxl_job_report; drop index %[1]s.xxl_job_log_report_app; alter table %[1]s.xxl_job_log_report" + droppedColumns(),
		17: "drop table %s.xxl_job_log_page, %[1]s.xxl_job_log_use",
		19: "drop index %s.xxl_job_info_keep; drop index %[1]s.xxl_job_owed_run; drop index %[1]s.xxl_job_window_parent; alter table %[1]s.xxl_job_info drop column keep_runs",
		20: "alter table %[1]s.xxl_job_log drop column trace; alter table %[1]s.xxl_job_ahead drop column trace; alter table %[1]s.xxl_job_owed drop column trace",
		21: "drop table %s.xxl_job_user, %[1]s.xxl_job_user_session, %[1]s.xxl_job_user_token, %[1]s.xxl_job_user_try, %[1]s.xxl_job_user_code",
		22: "alter table %[1]s.xxl_job_log drop column routed; alter table %[1]s.xxl_job_ahead drop column routed",
		23: "alter table %s.xxl_job_link drop column id",
		28: "alter table %s.xxl_job_info drop column on_no_executor; drop table %[1]s.xxl_job_served",
		24: "alter table %s.xxl_job_node drop column zones, drop column knows",
		25: "alter table %[1]s.xxl_job_log drop column instant_time; alter table %[1]s.xxl_job_ahead drop column instant_time",
		26: "alter table %s.xxl_job_node drop column routers; alter table %[1]s.xxl_job_ask drop column route, drop column addresses",
		27: "drop table %s.xxl_job_rule, %[1]s.xxl_job_rule_node",
		30: "alter table %s.xxl_job_info drop column secret",
		31: "alter table %s.xxl_job_node drop column unknown_zones",
		32: "drop table %s.xxl_job_mute",
		33: "drop index %s.xxl_job_alarm_trouble; alter table %[1]s.xxl_job_alarm drop column trouble, drop column trouble_address, drop column trouble_over, drop column noted_by, drop column open_trouble",
		34: "drop table %s.xxl_job_app_token",
		35: "alter table %s.xxl_job_node drop column version, drop column clock_offset",
		29: "alter table %s.xxl_job_info drop column catch_up_most, drop column catch_up_age",
		14: "drop index %s.xxl_job_log_skipped; drop index %[1]s.xxl_job_log_parent",
	}
	for n := len(undo) + 1; n > version; n-- {
		run(t, pool, fmt.Sprintf(undo[n], schema))
	}
	run(t, pool, fmt.Sprintf("update %s.xxl_job_setting set value = '%d' where name in ('schema_version', 'schema_compatible')", schema, version))
}

// TestManyMayMigrateAtOnce: one does the work, and all find it done.
func TestManyMayMigrateAtOnce(t *testing.T) {
	inServer(t)
	t.Parallel()
	schema, pool := "t_"+strings.ToLower(rand.Text()), pgtest.Pool(t)
	t.Cleanup(func() { pool.Exec(context.Background(), "drop schema "+schema+" cascade") })
	pools := []*pgxpool.Pool{pool, pgtest.Pool(t), pgtest.Pool(t)}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := postgres.Migrate(t.Context(), pools[i%len(pools)], postgres.AllDays(postgres.Config{Schema: schema})); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := partitions(t, pool, schema); n != usersPartitions {
		t.Errorf("there are %d partitions, want %d", n, usersPartitions)
	}
	for _, days := range []int{-1, 0, 14} {
		ask[bool](t, pool, "select '"+partition(schema, days)+"'::regclass is not null")
	}
}

// TestMigrateAgainWhileRunsFlow: nothing is changed, and nobody waits.
func TestMigrateAgainWhileRunsFlow(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	cfg := postgres.AllDays(postgres.Config{Schema: schema})
	must(t, postgres.Migrate(t.Context(), pool, cfg))
	s, a := openAt(t, pool, schema)
	job := a.job()
	stop, added := make(chan struct{}), 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := s.AddRun(t.Context(), job.ID, store.Trigger{}); err != nil {
					t.Error(err)
					return
				}
				added++
			}
		}
	})
	for days := range 5 {
		run(t, pool, "drop table "+partition(schema, 14-days))
		must(t, postgres.Migrate(t.Context(), pool, cfg))
		if n := partitions(t, pool, schema); n != usersPartitions {
			t.Errorf("there are %d partitions, want %d", n, usersPartitions)
		}
	}
	close(stop)
	wg.Wait()
	if n := ask[int](t, pool, "select count(*)::int from "+schema+".xxl_job_log"); n != added {
		t.Errorf("%d runs were added and %d are there", added, n)
	}
}

// TestAMigrationThatFailsLeavesNothing: here because one of its tables is there.
func TestAMigrationThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	pool, schema := pgtest.Pool(t), pgtest.Schema(t)
	run(t, pool, "create table "+schema+".xxl_job_ask ()")
	wantText(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}), "migrate schema", schema, "migration 1", "xxl_job_ask")
	if n := ask[int](t, pool, "select count(*)::int from pg_class where relnamespace = $1::regnamespace", schema); n != 1 {
		t.Errorf("%d things are in the schema, want the one that was", n)
	}
	run(t, pool, "drop table "+schema+".xxl_job_ask")
	must(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}))
}

// TestARunFindsAPartition: one that is missing is made by whoever needs it.
func TestARunFindsAPartition(t *testing.T) {
	inServer(t)
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	s, a := openAt(t, pool, schema)
	job := a.job()
	for name, insert := range map[string]func() error{
		"AddRun": func() error { _, err := s.AddRun(t.Context(), job.ID, store.Trigger{Key: rand.Text()}); return err },
		"Claim": func() error {
			job := a.job()
			runs, err := s.Claim(t.Context(), nil, []store.Plan{a.plan(job)})
			if err == nil && len(runs) != 1 {
				t.Errorf("claimed %+v", runs)
			}
			return err
		},
	} {
		run(t, pool, "drop table "+partition(schema, 0))
		if err := insert(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := ask[int](t, pool, "select count(*)::int from "+partition(schema, 0)); n != 1 {
			t.Errorf("%s: %d runs are in the new partition, want 1", name, n)
		}
	}
}

// TestDefinitionsGiveWay: while they wait for a lock everybody waits behind them,
// so they do so for a moment only, and try again.
func TestDefinitionsGiveWay(t *testing.T) {
	t.Parallel()
	var sent statements
	pool := pgtest.Pool(t, traced(&sent))
	schema := migrated(t, pool)
	s, a := openAt(t, pool, schema)
	job := a.job()
	a.started(a.job())
	run(t, pool, "drop table "+partition(schema, 1))
	longAgo(t, pool, schema)
	x, err := pool.Begin(t.Context())
	must(t, err)
	defer x.Rollback(context.Background())
	_, err = x.Exec(t.Context(), "lock table "+schema+".xxl_job_log in row exclusive mode") // a definition that attaches goes with it, one that detaches does not
	must(t, err)
	must(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}))
	const define = "'schema_version' for update skip locked"
	done, tries := make(chan error, 1), len(sent.with(define))+5
	go func() { done <- s.DropRuns(t.Context(), time.Now().AddDate(0, 0, -2)) }()
	await.Until(t, "it is tried again and again, and no insert waits for its end", func() bool {
		_, err := s.AddRun(t.Context(), job.ID, store.Trigger{})
		must(t, err)
		return len(done) > 0 || len(sent.with(define)) >= tries
	})
	_, definition := sent.patiences(t, define)
	if others, _ := sent.patiences(t, "xxl_job_log"); definition >= others {
		t.Errorf("a definition waits for %d ms, and whoever is behind it for %d", definition, others)
	}
	endsBehind(t, x, done)
	if n := partitions(t, pool, schema); n != allPartitions {
		t.Errorf("there are %d partitions, want %d", n, allPartitions)
	}
}

// endsBehind makes sure that definitions have waited for the user of a table, and are made
// when that has gone.
func endsBehind(t *testing.T, user pgx.Tx, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("they have ended while the table was in use: %v", err)
	default:
	}
	must(t, user.Rollback(t.Context()))
	must(t, <-done)
}

// aged moves the runs of a store to a day long ago.
func aged(t *testing.T, pool *pgxpool.Pool, schema string) {
	t.Helper()
	longAgo(t, pool, schema)
	for _, sql := range []string{
		"update %s.xxl_job_next set wait_run = wait_run %% 1000000 + %d where wait_run <> 0",
		"update %s.xxl_job_trigger_key set run_id = run_id %% 1000000 + %d",
		"update %s.xxl_job_log set id = id %% 1000000 + %d",
	} {
		run(t, pool, fmt.Sprintf(sql, schema, 86_400_000<<13))
	}
}

// mayNotDrop is a pool of a role that may change the rows of a schema, and is not its owner.
func mayNotDrop(t *testing.T, owner *pgxpool.Pool, schema string) *pgxpool.Pool {
	t.Helper()
	super := superPool(t)
	role := "r_" + strings.ToLower(rand.Text()[:12])
	run(t, super, "create role "+role+" login")
	t.Cleanup(func() { super.Exec(context.Background(), "drop owned by "+role+"; drop role "+role) })
	run(t, owner, strings.NewReplacer("%s", schema, "%r", role).Replace(`grant usage on schema %s to %r;
		grant select, insert, update, delete on all tables in schema %s to %r; grant usage on all sequences in schema %s to %r`))
	return pgtest.Pool(t, pgtest.At(as(t, pgtest.DSN(t), role)))
}

// TestDropRuns: what has not ended is ended by its rules before it goes, and keys
// go with their runs; where the role may not drop, rows are deleted.
func TestDropRuns(t *testing.T) {
	inServer(t)
	t.Parallel()
	owner := pgtest.Pool(t)
	for _, right := range []string{"MayDrop", "MayDelete"} {
		t.Run(right, func(t *testing.T) {
			schema, pool := migrated(t, owner), owner
			if right == "MayDelete" {
				pool = mayNotDrop(t, owner, schema)
			}
			s, a := openAt(t, pool, schema)
			began, err := s.Now(t.Context())
			must(t, err)
			delayed := newJob()
			delayed.Schedule = schedule.FixedDelay(time.Hour)
			waiting, err := s.AddJob(t.Context(), delayed, nil)
			must(t, err)
			p := a.plan(waiting)
			p.Next, p.Wait, p.Runs[0].Type = time.Time{}, true, store.TriggerFixDelay
			_, err = s.Claim(t.Context(), nil, []store.Plan{p})
			must(t, err)
			a.started(a.job())
			ended := a.started(a.job())
			_, err = s.Finish(t.Context(), nil, []store.Result{result(ended)})
			must(t, err)
			job := a.job()
			run(t, owner, `insert into `+schema+`.xxl_job_trigger_key select $1, 'old' || n, n from generate_series(1, 2100) n`, job.ID) // in batches
			keyed, err := s.AddRun(t.Context(), job.ID, store.Trigger{Key: "k"})
			must(t, err)
			run(t, owner, `create table `+schema+`.ends (state int)`)
			run(t, owner, fmt.Sprintf(`create function %s.note() returns trigger language plpgsql security definer as
				$$begin if new.state > 2 then insert into %[1]s.ends values (new.state); end if; return null; end$$`, schema))
			aged(t, owner, schema)
			run(t, owner, "create trigger note after update on "+schema+".xxl_job_log for each row execute function "+schema+".note()")
			must(t, s.DropRuns(t.Context(), time.UnixMilli(1735689600000).AddDate(0, 0, 2).Add(-time.Millisecond)))
			if n := ask[int](t, owner, "select count(*)::int from "+schema+".xxl_job_log"); n != 4 {
				t.Errorf("of a day that was not over, %d runs are left, want 4", n)
			}
			must(t, s.DropRuns(t.Context(), time.UnixMilli(1735689600000).AddDate(0, 0, 2)))
			if n := ask[int](t, owner, "select count(*)::int from "+schema+".xxl_job_log"); n != 0 {
				t.Errorf("%d runs are left", n)
			}
			if got := ask[string](t, owner, "select coalesce(string_agg(state::text, ' ' order by state), '') from "+schema+".ends"); got != "7 11 11" {
				t.Errorf("the states of the runs that were ended are %q, want lost and twice cancelled", got)
			}
			if got := ask[string](t, owner, "select sum(succeeded) || ' ' || sum(lost) || ' ' || sum(cancelled) from "+schema+".xxl_job_report"); got != "1 1 2" {
				t.Errorf("the reports count %q that succeeded, were lost and cancelled", got)
			}
			if job, err := s.Job(t.Context(), waiting.ID); err != nil || job.WaitRun != 0 || job.Next.Before(began.Add(time.Hour).Truncate(time.Millisecond)) {
				t.Errorf("the job that waited: %+v, %v", job, err)
			}
			if n := ask[int](t, owner, "select count(*)::int from "+schema+".xxl_job_trigger_key"); n != 0 {
				t.Errorf("%d keys are left", n)
			}
			again, err := s.AddRun(t.Context(), job.ID, store.Trigger{Key: "k"})
			must(t, err)
			if again.ID == keyed.ID {
				t.Error("the key is not free again")
			}
			want := map[string]int{"MayDrop": allPartitions, "MayDelete": allPartitions + 1}[right]
			if n := partitions(t, owner, schema); n != want {
				t.Errorf("there are %d partitions, want %d", n, want)
			}
			if _, err := s.Run(t.Context(), ended.ID); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a run that was dropped: %v", err)
			}
		})
	}
}

// TestMigrationsGiveWay: one that waits for a lock does so for a moment only, since whoever
// comes after it waits behind it, and tries again.
func TestMigrationsGiveWay(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	s, a := openAt(t, pool, schema)
	job := a.job()
	backTo(t, pool, schema, 5)
	x, err := pool.Begin(t.Context())
	must(t, err)
	defer x.Rollback(context.Background())
	_, err = x.Exec(t.Context(), "select from "+schema+".xxl_job_info")
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}) }()
	await.Until(t, "the migration waits for the reader", func() bool { return blocked(t, s) })
	for range 5 { // as a node of that version reads it
		ask[int32](t, pool, "select id from "+schema+".xxl_job_info where id = $1", job.ID)
	}
	endsBehind(t, x, done)
	_, err = s.Job(t.Context(), job.ID)
	must(t, err)
	if n := ask[int](t, pool, "select count(*)::int from pg_indexes where schemaname = $1 and indexname = 'xxl_job_info_of_app'", strings.Trim(schema, `"`)); n != 1 {
		t.Errorf("there are %d new indexes, want 1", n)
	}
}

// sqlOf returns the one block of SQL of a document that has the text, as it stands there.
func sqlOf(t *testing.T, document, part string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + document)
	must(t, err)
	var found []string
	for _, block := range regexp.MustCompile("(?ms)^ *```sql\n(.*?)^ *```$").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(block[1], part) {
			found = append(found, block[1])
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d blocks of SQL with %q, want 1", document, len(found), part)
	}
	return found[0]
}

// leftovers are the keys of the jobs that the query of a document lists in a schema, each
// with an id that is a job's.
func leftovers(t *testing.T, document string, pool *pgxpool.Pool, schema string) (keys []string) {
	t.Helper()
	rows, err := pool.Query(t.Context(), strings.ReplaceAll(sqlOf(t, document, "xxl_job_named"), "xxljob.", schema+"."))
	must(t, err)
	jobs, err := pgx.CollectRows(rows, pgx.RowToMap)
	must(t, err)
	for _, job := range jobs {
		key := job["job_key"].(string)
		if id := ask[int32](t, pool, "select id from "+schema+".xxl_job_info where job_key = $1", key); job["id"] != id {
			t.Errorf("%s: the id of %q is %v, not %v", document, key, id, job["id"])
		}
		keys = append(keys, key)
	}
	return keys
}

// TestWhatAnUpgradeLeavesBehind: the query of the documents lists the jobs from before the
// store had lists that no list has named since, until they are stopped; among them those
// that are ensured by themselves, and no others.
func TestWhatAnUpgradeLeavesBehind(t *testing.T) {
	inServer(t)
	t.Parallel()
	fromBeforeLists(t, func(t *testing.T, from int, pool *pgxpool.Pool, schema string, st *postgres.Store) {
		s, err := xxljob.New(st, xxljob.Config{App: "app", Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		daily := func(key string) store.Job {
			return store.Job{Name: key, Key: key, Handler: "work", Schedule: schedule.Cron("0 0 3 * * ?")}
		}
		ensure := func(keys ...string) {
			var list []store.Job
			for _, key := range keys {
				list = append(list, daily(key))
			}
			_, err := s.EnsureJobs(t.Context(), "", list, xxljob.EnsureOptions{Prune: true})
			must(t, err)
			_, err = s.EnsureJob(t.Context(), daily("single"))
			must(t, err)
		}
		stop := func(key string) {
			job, err := st.JobByKey(t.Context(), "app", key)
			must(t, err)
			must(t, s.StopJob(t.Context(), job.ID))
		}
		wantLeft := func(when string, want ...string) {
			for _, document := range []string{"docs/postgres.md", "docs/zh-CN/postgres.md", "CHANGELOG.md"} {
				if got := leftovers(t, document, pool, schema); !slices.Equal(got, want) {
					t.Errorf("%s, %s: %q, want %q", document, when, got, want)
				}
			}
		}
		ensure("kept", "left over", "left over and stopped")
		stop("left over and stopped")
		_, err = s.AddJob(t.Context(), daily("by hand"))
		must(t, err)
		if from == 4 { // as migration 3 has left it
			run(t, pool, fmt.Sprintf("delete from %s.xxl_job_named", schema))
			run(t, pool, fmt.Sprintf("insert into %s.xxl_job_named select id, 0 from %[1]s.xxl_job_info where ensured <> ''", schema))
		}
		backTo(t, pool, schema, from)
		must(t, postgres.Migrate(t.Context(), pool, postgres.Config{Schema: schema}))

		ensure("kept", "new", "of one release")
		ensure("kept", "new") // what a list has named is for lists to prune
		wantLeft("after the upgrade", "left over", "single")
		stop("left over")
		wantLeft("when what is left over was stopped", "single")
	})
}

// TestFirstStartsSideBySide leave no errors about keys and tables that another was
// quicker to make, for the operator of the server to wonder about.
func TestFirstStartsSideBySide(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{NoFsync: true})
	const nodes = 6
	errs, seen := make(chan error, nodes), make(chan struct{})
	for i := range nodes {
		pool := pgtest.Pool(t, pgtest.At(cluster.DSN("postgres")))
		go func() {
			errs <- firstStart(t.Context(), pool, fmt.Sprint("node", i), func(err error) { errs <- err; <-seen })
		}()
	}
	for range nodes {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	// Before they stop: what a Stop cancels is in the log too.
	defer func() {
		close(seen)
		for range nodes {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	}()
	for line := range strings.Lines(cluster.Log()) {
		// On a busy machine six lists one after the other take longer than a wait for a lock, which is tried
		// again: nobody was quicker to make something then.
		if strings.Contains(line, "ERROR") && !strings.Contains(line, "due to lock timeout") {
			t.Errorf("the server's log: %s", line)
		}
	}
}

// firstStart is what each replica of a service does, up to its stop. Begun is called with
// how that went in between.
func firstStart(ctx context.Context, pool *pgxpool.Pool, name string, begun func(error)) error {
	st, err := postgres.New(ctx, pool, postgres.AllDays(postgres.Config{AutoMigrate: true}))
	if err != nil {
		begun(err)
		return nil
	}
	defer st.Close()
	s, err := xxljob.New(st, xxljob.Config{App: "app", Node: name, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		begun(err)
		return nil
	}
	var jobs []store.Job
	for i := range 30 {
		jobs = append(jobs, store.Job{Name: fmt.Sprint("job ", i), Handler: "work", Schedule: schedule.FixedRate(time.Hour)})
	}
	all, err := s.EnsureJobs(ctx, "app", jobs, xxljob.EnsureOptions{})
	if err == nil {
		err = s.Start(ctx)
	}
	if err == nil {
		_, err = s.Trigger(ctx, all[0].Job.ID, store.Trigger{Key: "once"})
	}
	begun(err)
	return s.Stop(ctx)
}
