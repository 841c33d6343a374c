package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
)

// TestPlansOfNewList explains the statements that go by the keys of jobs, while nobody has
// analyzed the tables since an app got its list of 10,000 jobs. Statistics do not tell
// then that the app has more than one job, or that many of its keys are asked for; and a
// plan may be from before the list. Each has to look at the jobs of the keys that it is
// given, and not at all of the app for each batch or key.
func TestPlansOfNewList(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: leave out -short")
	}
	d := &planData{Store: emptyPlanStore(t)}
	for _, table := range strings.Fields("xxl_job_info xxl_job_next xxl_job_named") {
		d.exec(t, "alter table {{schema}}."+table+" set (autovacuum_enabled = false)")
	}
	const generic, custom = "set local plan_cache_mode = force_generic_plan", "set local plan_cache_mode = force_custom_plan"
	e := newExplainer(t, d.Store)
	cases := d.keyCases()
	before := make([]preparedPlan, len(cases))
	explain := func(c keyCase, p preparedPlan, mode, options string) planSum {
		t.Helper()
		if c.inTx {
			mode += "; select 1" + d.settings
		}
		s, err := e.explain(t.Context(), p, mode, options)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		return s
	}
	prepare := func(c keyCase) preparedPlan {
		t.Helper()
		p, err := e.prepare(t.Context(), c.sql, c.args)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		return p
	}
	for i, c := range cases {
		before[i] = prepare(c)
		explain(c, before[i], generic, "costs off")
	}
	d.fillNewList(t, 10_000)
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

// keyCase is a statement that goes by keys.
type keyCase struct {
	name string
	sql  string
	args []any
	keys int  // how many it is given
	rows int  // it has to return as many at least
	inTx bool // it runs in a transaction of the store's, under its settings
}

func (d *planData) keyCases() []keyCase {
	q := d.sql
	const app = "app"
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i+5000)
	}
	jobs := func(name string, n int, f xxljob.JobFilter) keyCase {
		f.App, f.Limit = app, 1000
		x := d.jobsQuery(f)
		return keyCase{name: name, sql: x.sql, args: x.args, keys: n, rows: n}
	}
	return []keyCase{
		{name: "nameJobs", sql: q.nameJobs, args: []any{app, keys, 1}, keys: 1000, inTx: true},
		{name: "nameJobs anew", sql: q.nameJobs, args: []any{app, keys, 2}, keys: 1000, inTx: true},
		{name: "jobsByKeys", sql: q.jobsByKeys, args: []any{app, keys}, keys: 1000, rows: 1000, inTx: true},
		{name: "takenKeys", sql: q.takenKeys, args: []any{app, keys}, keys: 1000, rows: 1000, inTx: true},
		{name: "isNamed", sql: q.isNamed, args: []any{app, keys[0]}, keys: 1, rows: 1},
		{name: "jobByKey", sql: q.jobByKey, args: []any{app, keys[0]}, keys: 1, rows: 1},
		jobs("Jobs by keys", 1000, xxljob.JobFilter{Keys: keys}),
		jobs("Jobs by key", 1, xxljob.JobFilter{Key: keys[0]}),
	}
}

// fillNewList gives an app its first jobs, all of them named by a list.
func (d *planData) fillNewList(t testing.TB, n int) {
	t.Helper()
	d.exec(t, `insert into {{schema}}.xxl_job_info (`+strings.ReplaceAll(definitionColumns, "i.", "")+`)
	select n, n % 32, 1, 'app', 'key-' || n, 'job ' || n, '', '', 'CRON', '0 0 * * * ?', '', '', 'DO_NOTHING', '',
		'FIRST', 'handler-' || n % 100, '', 'SERIAL_EXECUTION', 0, 0, 'BEAN', '', '', null, '', 1, '', '', now(), now()
	from generate_series(1, $1) n`, n)
	d.exec(t, `insert into {{schema}}.xxl_job_next (trigger_next_time, trigger_last_time, wait_run, version, delay, job_id, shard, trigger_status, manual, app_name)
	select 1, 0, 0, 1, 0, n, n % 32, 1, false, 'app' from generate_series(1, $1) n`, n)
	d.exec(t, `insert into {{schema}}.xxl_job_named (job_id, generation) select n, 1 from generate_series(1, $1) n`, n)
}
