package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/test/pgtest"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/store/postgres"
)

// TestPartitionsAreMadeInSteps: a slow server has a bounded time for a transaction, so none makes
// all partitions of a new schema, and none makes one without its indexes.
func TestPartitionsAreMadeInSteps(t *testing.T) {
	t.Parallel()
	pool := pgtest.SharedPool(t)
	schema := pgtest.Schema(t)
	must(t, postgres.Migrate(t.Context(), pool, postgres.AllDays(postgres.Config{Schema: schema})))
	const made = `select count(*) as tables, c.xmin from pg_inherits i join pg_class c on c.oid = i.inhrelid
		where i.inhparent in (($1 || '.xxl_job_log')::regclass, ($1 || '.xxl_job_log_page')::regclass) group by c.xmin`
	if n := ask[int](t, pool, "select sum(m.tables)::int from ("+made+") m", schema); n != 2*usersPartitions {
		t.Errorf("%d partitions, want %d", n, 2*usersPartitions)
	}
	if n := ask[int](t, pool, "select max(m.tables)::int from ("+made+") m", schema); n > 4 {
		t.Errorf("one transaction makes %d partitions, want 4 at most", n)
	}
}

// TestDaysStayWhileTheyAreNeeded: a day is not dropped while something is owed for one of its
// runs, nor while a later run of one of its triggers has not ended.
func TestDaysStayWhileTheyAreNeeded(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	schema := migrated(t, pool)
	s, a := openAt(t, pool, schema)
	ended := a.started(a.job())
	_, err := s.Finish(t.Context(), nil, []store.Result{result(ended)})
	must(t, err)
	aged(t, pool, schema)
	old := ask[int64](t, pool, "select id from "+schema+".xxl_job_log")
	there := func(what string, want bool) {
		t.Helper()
		must(t, s.DropRuns(t.Context(), time.UnixMilli(1735689600000).AddDate(0, 0, 2)))
		runs, err := s.RunsByID(t.Context(), []int64{old})
		must(t, err)
		if got := len(runs) == 1; got != want {
			t.Errorf("%s: the run is there: %v, want %v", what, got, want)
		}
	}
	run(t, pool, `insert into `+schema+`.xxl_job_owed (shard, log_id, trigger_id, parent_job, job_id, is_join, business_time, depth) values (0, $1, $1, 1, 1, false, 0, 1)`, old)
	there("while something is owed", true)
	run(t, pool, "delete from "+schema+".xxl_job_owed")
	later, err := s.AddRun(t.Context(), a.job().ID, store.Trigger{})
	must(t, err)
	run(t, pool, "update "+schema+".xxl_job_log set trigger_id = $1 where id = $2", old, later.ID)
	there("while its trigger goes on", true)
	_, err = s.Kill(t.Context(), later.ID, "no")
	must(t, err)
	there("when it is over", false)
}

// TestPartitionsOfASlowServer: a server that is too slow for some partitions at once is asked for one at a
// time, and one that makes none is not asked for ever.
func TestPartitionsOfASlowServer(t *testing.T) {
	inServer(t)
	t.Parallel()
	superPool(t) // skips where the server is not ours
	dsn := pgtest.Database(t, "")
	owner, super := pgtest.Pool(t, pgtest.At(dsn)), pgtest.Pool(t, pgtest.At(as(t, dsn, "postgres")))
	cfg := postgres.FewDays(postgres.Config{Schema: "slow", AutoMigrate: true, Logger: stage.QuietLog()})
	must(t, postgres.Migrate(t.Context(), owner, cfg))
	run(t, super, `create sequence public.asked; grant usage, select on public.asked to public;
		create table public.slow (more_than int, tries int); insert into public.slow values (1, 99); grant select on public.slow to public;
		create function public.slow() returns event_trigger language plpgsql as $$ begin
		if (select count(*) from regexp_matches(current_query(), 'create table if not exists "slow"\."xxl_job_log_2', 'g')) > (select more_than from public.slow)
			and nextval('public.asked') <= (select tries from public.slow) then raise 'too slow' using errcode = '57014'; end if; end $$;
		create event trigger slow on ddl_command_start when tag in ('CREATE TABLE') execute function public.slow()`, pgx.QueryExecModeSimpleProtocol)
	days := func() []string {
		return ask[[]string](t, owner, `select coalesce(array_agg(relname::text order by 1), '{}') from pg_class where relnamespace = 'slow'::regnamespace and relname ~ '^xxl_job_log_2' and relkind = 'r'`)
	}
	all := days()
	drop := func() {
		t.Helper()
		for _, day := range all {
			run(t, owner, "drop table slow."+day)
		}
	}
	drop()
	must(t, newStore(t, owner, cfg))
	if got := days(); !slices.Equal(got, all) {
		t.Errorf("partitions %q, want %q", got, all)
	}
	if !ask[bool](t, super, "select is_called from public.asked") {
		t.Error("the server was never too slow")
	}
	drop()
	run(t, super, "update public.slow set more_than = 0")
	asked := ask[int](t, super, "select last_value::int from public.asked")
	if err := newStore(t, owner, cfg); err == nil {
		t.Error("there are no partitions, and nothing is said")
	} else if asked = ask[int](t, super, "select last_value::int from public.asked") - asked; asked != 3 {
		t.Errorf("it was asked for %d times: %v", asked, err)
	}
}
