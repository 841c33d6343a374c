package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/store"
)

// TestPlansOfNewList explains the statements that go by the keys of jobs, while nobody has
// analyzed the tables since an app got its list of 10,000 jobs. Statistics do not tell
// then that the app has more than a few jobs, or that many of its keys are asked for; and a
// plan may be from before the list. Each has to look at the jobs of the keys that it is
// given, and not at all of the app for each batch or key.
func TestPlansOfNewList(t *testing.T) {
	InServer(t)
	if testing.Short() {
		t.Skip("leave out -short")
	}
	for _, c := range []struct {
		name string
		jobs int // that the tables have, and are analyzed with, before the list comes
	}{{"empty tables", 0}, {"few jobs", 5}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			plansOfNewList(t, c.jobs)
		})
	}
}

func plansOfNewList(t *testing.T, few int) {
	d := newKeyedData(t)
	if few > 0 {
		d.addJobs(t, 1, few)
		d.exec(t, "analyze {{schema}}.xxl_job_info, {{schema}}.xxl_job_next, {{schema}}.xxl_job_named")
	}
	const generic, custom = "set local plan_cache_mode = force_generic_plan", "set local plan_cache_mode = force_custom_plan"
	e := newExplainer(t, d.Store)
	cases := d.keyCases()
	before := make([]preparedPlan, len(cases))
	explain := func(c keyCase, p preparedPlan, mode, options string) planSum {
		t.Helper()
		s, err := e.explain(t.Context(), p, mode+"; select 1"+d.settings, options)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		return s
	}
	prepare := func(c keyCase) preparedPlan {
		t.Helper()
		p, err := e.prepare(t.Context(), c.st.sql, c.st.args)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		return p
	}
	for i, c := range cases {
		before[i] = prepare(c)
		explain(c, before[i], generic, "costs off")
	}
	d.addJobs(t, few+1, 10_000)
	for i, c := range cases {
		for _, m := range []struct {
			name, mode string
			p          preparedPlan
		}{
			{"planned before the list", generic, before[i]},
			{"planned after the list", generic, prepare(c)},
			{"planned for the keys", custom, prepare(c)},
		} {
			s := explain(c, m.p, m.mode, "analyze, buffers")
			if s.rows < c.rows {
				t.Errorf("%s, %s: %d rows, want at least %d: the case shows nothing", c.name, m.name, s.rows, c.rows)
			}
			if most := 3*c.keys + 10; s.examined > most {
				t.Errorf("%s, %s: %d rows looked at, want at most %d\n%s\n%s", c.name, m.name, s.examined, most, planHead, s)
			}
		}
	}
}

// newKeyedData is a store on tables that nobody analyzes but the test.
func newKeyedData(t *testing.T) *planData {
	t.Helper()
	d := &planData{Store: emptyPlanStore(t), jobs: planJobs}
	for _, table := range strings.Fields("xxl_job_info xxl_job_next xxl_job_named") {
		d.exec(t, "alter table {{schema}}."+table+" set (autovacuum_enabled = false)")
	}
	return d
}

// keyCase is a statement that goes by keys.
type keyCase struct {
	name string
	st   statement
	keys int // how many it is given
	rows int // it has to return as many at least
}

func (d *planData) keyCases() []keyCase {
	q := d.sql
	const app = "app"
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i+5000)
	}
	page := d.jobsQuery(store.JobFilter{App: app, Keys: keys, Limit: len(keys)})
	return []keyCase{
		{name: "nameJobs", st: q.nameJobs.by(named{{"app", app}, {"keys", keys}, {"generation", 1}}), keys: 1000},
		{name: "nameJobs anew", st: q.nameJobs.by(named{{"app", app}, {"keys", keys}, {"generation", 2}}), keys: 1000},
		{name: "jobsByKeys", st: q.jobsByKeys.by(named{{"app", app}, {"keys", keys}}), keys: 1000, rows: 1000},
		{name: "takenKeys", st: q.takenKeys.by(named{{"app", app}, {"keys", keys}}), keys: 1000, rows: 1000},
		{name: "isNamed", st: q.isNamed.with(app, keys[0]), keys: 1, rows: 1},
		{name: "jobByKey", st: q.jobByKey.with(app, keys[0]), keys: 1, rows: 1},
		{name: "Jobs by keys", st: statement{sql: page.sql, args: page.args}, keys: 1000, rows: 1000},
	}
}

// addJobs gives an app jobs with these ids, all of them named by a list.
func (d *planData) addJobs(t testing.TB, from, to int) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_info (`+infoColumns.names()+`)
	select n, n % 32, 1, 'app', 'key-' || n, 'job ' || n, '', '', 'CRON', '0 0 * * * ?', '', '', 'DO_NOTHING', '',
		'FIRST', 'handler-' || n % 100, '', 'SERIAL_EXECUTION', 0, 0, 'BEAN', '', '', null, '', 1, '', '', now(), now(), 0, 0, 0, 0, '', 0, 0, 0, false, 0, 0, '', '', '', '', 0, '', 0, 0, '', 0
	from generate_series($1::int, $2::int) n`, from, to)
	d.exec(t, `insert into {{schema}}.xxl_job_next (trigger_next_time, trigger_last_time, wait_run, version, delay, job_id, shard, trigger_status, manual, app_name)
	select 1, 0, 0, 1, 0, n, n % 32, 1, false, 'app' from generate_series($1::int, $2::int) n`, from, to)
	d.exec(t, `insert into {{schema}}.xxl_job_named (job_id, generation) select n, 1 from generate_series($1::int, $2::int) n`, from, to)
}

// TestPlanOfAListAfterAnUpgrade: the tables have been analyzed before the index of apps was
// built anew, and not since. A page of an app's jobs, which come after 5,000 others, takes
// no more than it did by the index of before.
func TestPlanOfAListAfterAnUpgrade(t *testing.T) {
	InServer(t)
	t.Parallel()
	d := newKeyedData(t)
	d.exec(t, "drop index {{schema}}.xxl_job_info_of_app")
	d.exec(t, "create index xxl_job_info_app on {{schema}}.xxl_job_info (app_name, id)")
	d.addJobs(t, 1, 20_000)
	d.exec(t, "update {{schema}}.xxl_job_info set app_name = 'other' where id <= 5000")
	d.exec(t, "vacuum (full, analyze) {{schema}}.xxl_job_info")
	d.exec(t, "vacuum (analyze) {{schema}}.xxl_job_next")
	e := newExplainer(t, d.Store)
	pages := []store.JobFilter{{App: "app", Limit: 100}, {App: "app", Limit: 100, After: 15_000}}
	explain := func(f store.JobFilter, index, collation string) planSum {
		t.Helper()
		q := d.jobsQuery(f)
		s, err := e.run(t.Context(), "force_custom_plan", strings.ReplaceAll(q.sql, ` collate pg_catalog."POSIX"`, collation), q.args, "analyze, buffers")
		if err != nil {
			t.Fatal(err)
		}
		if s.rows != 100 || !slices.Contains(s.indexes, index) {
			t.Errorf("after %d, by %s: %d rows\n%s\n%s", f.After, index, s.rows, planHead, s)
		}
		return s
	}
	var before []planSum
	for _, f := range pages {
		before = append(before, explain(f, "info_app", ""))
	}
	text, err := migrationText(6)
	if err != nil {
		t.Fatal(err)
	}
	d.exec(t, "do $$ begin "+text+" end $$")
	for i, f := range pages {
		if s := explain(f, "info_of_app", ` collate pg_catalog."POSIX"`); s.examined > before[i].examined {
			t.Errorf("after %d: %d rows looked at, %d before\n%s\n%s\n%s", f.After, s.examined, before[i].examined, planHead, before[i], s)
		}
	}
}
