package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/postgres"
)

// mark is in each text of the one job.
const mark = "poison"

// TestEachPoisonedColumn: whatever column of text it is in which the database refuses what one job or its
// runs have there, another job of the same app goes on. Which columns there are the schema says, and which
// of them have texts of a job and its runs is looked up: one that comes later is among them by itself.
func TestEachPoisonedColumn(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds for each column")
	}
	inServer(t)
	t.Parallel()
	pool, schema := pgtest.SharedPool(t), pgtest.Schema(t)
	st, err := postgres.New(t.Context(), pool, postgres.FewDays(postgres.Config{Schema: schema, AutoMigrate: true, Logger: stage.QuietLog()}))
	must(t, err)
	t.Cleanup(st.Close)
	s, err := xxljob.New(st, xxljob.Config{
		App: "app", Logger: stage.QuietLog(), Logs: xxljob.LogConfig{InStore: true}, Limits: xxljob.Limits{AllowSubSecond: true},
		Cluster: xxljob.ClusterConfig{LeaseTTL: 3 * time.Second},
		Alarms:  []alarm.Rule{{Name: mark, To: nobody{}}},
	})
	must(t, err)
	// The triggers are there before anything runs, and only their function changes: a trigger that comes or
	// goes takes locks on a table and its partitions, in an order in which statements may not have them.
	refuse := func(table, column string) {
		t.Helper()
		run(t, pool, fmt.Sprintf(`create or replace function %[1]s.poisoned() returns trigger language plpgsql as $$ begin
		if tg_argv[0] = '%[2]s' and position('%[4]s' in to_jsonb(new) ->> '%[3]s') > 0 then perform nextval('%[1]s.refused'); raise 'poisoned'; end if; return new; end $$`, schema, table, column, mark))
	}
	run(t, pool, fmt.Sprintf("create sequence %[1]s.refused; select nextval('%[1]s.refused')", schema), pgx.QueryExecModeSimpleProtocol)
	refuse("", "")
	for _, table := range tablesOf(t, schema) {
		run(t, pool, fmt.Sprintf("create trigger poisoned before insert or update on %[1]s.%[2]s for each row execute function %[1]s.poisoned('%[2]s')", schema, table))
	}
	var good atomic.Int64
	must(t, s.Handle("good", func(context.Context, *xxljob.Task) error { good.Add(1); return nil }))
	must(t, s.Handle(mark, func(_ context.Context, task *xxljob.Task) error {
		task.Log().Info(mark, slog.String(mark, mark))
		task.Progress(50, mark)
		time.Sleep(150 * time.Millisecond)
		return errors.New(mark)
	}))
	must(t, s.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		_ = s.Stop(ctx)
	})
	job := xxljob.Job{App: "app", Key: "good", Name: "good", Handler: "good", Schedule: xxljob.FixedRate(125 * time.Millisecond), Block: xxljob.BlockConcurrent}
	_, err = s.AddJob(t.Context(), job)
	must(t, err)
	job.Key, job.Name, job.Handler = mark, mark, mark
	job.Retries, job.RetryBackoff.First = 1, 50*time.Millisecond
	bad, err := s.AddJob(t.Context(), marked(t, s, job))
	must(t, err)
	time.Sleep(3 * time.Second)
	must(t, s.StopJob(t.Context(), bad.ID))
	must(t, s.StartJob(t.Context(), bad.ID))
	time.Sleep(time.Second)

	columns := markedColumns(t, schema)
	if len(columns) < 20 {
		t.Errorf("the job's texts are in %q only", columns)
	}
	refusing := 0
	for _, c := range columns {
		began, before := time.Now(), ask[int](t, pool, fmt.Sprintf("select last_value::int from %s.refused", schema))
		refuse(c.table, c.name)
		from := good.Load()
		for good.Load() < from+6 || time.Since(began) < 1500*time.Millisecond { // the other job's runs take their time
			if time.Since(began) > time.Minute {
				t.Errorf("with a database that refuses %s.%s the other job has had %d runs in a minute; troubles %v, ready %v", c.table, c.name, good.Load()-from, s.Troubles(), s.Ready())
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		refuse("", "")
		if ask[int](t, pool, fmt.Sprintf("select last_value::int from %s.refused", schema)) > before {
			refusing++
		}
		for { // it was stopped, perhaps
			if err := s.StartJob(t.Context(), bad.ID); err == nil || errors.Is(err, xxljob.ErrConflict) {
				break
			} else if time.Since(began) > 2*time.Minute {
				t.Fatalf("after %s.%s the job cannot be started: %v", c.table, c.name, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	t.Logf("%d columns have texts of the job, and %d of them were refused: %v", len(columns), refusing, columns)
	if refusing < 6 { // those of the definition change with edits alone
		t.Errorf("the database has refused something in %d columns only", refusing)
	}
}

// marked is the job with the mark in each text that takes any.
func marked(t *testing.T, s xxljob.Scheduler, job xxljob.Job) xxljob.Job {
	t.Helper()
	v := reflect.ValueOf(&job).Elem()
	for i := range v.NumField() {
		f, was := v.Field(i), reflect.New(v.Field(i).Type()).Elem()
		was.Set(f)
		switch {
		case f.Kind() == reflect.String && f.IsZero():
			f.SetString(mark)
		case f.Type() == reflect.TypeFor[[]string]() && f.IsNil():
			f.Set(reflect.ValueOf([]string{mark}))
		default:
			continue
		}
		trial := job
		trial.Key = "trial"
		added, err := s.AddJob(t.Context(), trial)
		if err != nil {
			f.Set(was)
			continue
		}
		must(t, s.RemoveJob(t.Context(), added.ID))
	}
	return job
}

// tablesOf are the tables of a schema that are no partitions.
func tablesOf(t *testing.T, schema string) []string {
	t.Helper()
	rows, err := pgtest.SharedPool(t).Query(t.Context(), "select relname::text from pg_class where relnamespace = $1::regnamespace and relkind in ('r', 'p') and not relispartition order by 1", schema)
	must(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	return tables
}

// column is one of a table.
type column struct{ table, name string }

// markedColumns are those of text, in tables that are no partitions, in which the mark is somewhere.
func markedColumns(t *testing.T, schema string) (list []column) {
	t.Helper()
	pool := pgtest.SharedPool(t)
	rows, err := pool.Query(t.Context(), `select c.table_name::text, c.column_name::text from information_schema.columns c
	join pg_class k on k.relnamespace = c.table_schema::text::regnamespace and k.relname = c.table_name and not k.relispartition and k.relkind in ('r', 'p')
	where c.table_schema = $1 and (c.data_type in ('text', 'character varying', 'jsonb', 'json') or c.udt_name in ('_text', '_varchar')) order by 1, 2`, schema)
	must(t, err)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) { return c, row.Scan(&c.table, &c.name) })
	must(t, err)
	for _, c := range all {
		if c.table == "xxl_job_node" { // what is about all jobs of an app
			continue
		}
		if ask[bool](t, pool, fmt.Sprintf("select exists (select from %s.%s x where position('%s' in x.%s::text) > 0)", schema, c.table, mark, c.name)) {
			list = append(list, c)
		}
	}
	return list
}
