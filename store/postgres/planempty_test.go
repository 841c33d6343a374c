package postgres

import (
	"slices"
	"strings"
	"testing"
)

// TestPlansOfTablesAnalyzedEmpty explains the statements of the loop where tables were analyzed
// while they were empty, as a nightly analyze of a new database does, and nobody has since. The
// planner takes such a table for one of no rows then, until it has pages, and a plan that was made
// lives on. Each has to look up its rows by their keys.
func TestPlansOfTablesAnalyzedEmpty(t *testing.T) {
	InServer(t)
	if testing.Short() {
		t.Skip("leave out -short")
	}
	t.Parallel()
	d := &planData{Store: emptyPlanStore(t), jobs: planJobs}
	d.readClock(t)
	part := d.Store.days.of([]int64{idAt(d.now)})
	tables := []string{"xxl_job_info", "xxl_job_next", "xxl_job_lock", "xxl_job_node", part}
	for _, table := range tables {
		d.exec(t, "alter table {{schema}}."+table+" set (autovacuum_enabled = false)")
		d.exec(t, "analyze {{schema}}."+table)
	}
	d.fillJobs(t) // nothing is claimed or started before there are jobs
	e := newExplainer(t, d.Store)
	texts := func(c planCase) string { return d.Store.days.in(d.Store, query{text: c.st.sql}, part, false).text }
	before := map[string]preparedPlan{}
	d.pretend()
	const generic, custom = "set local plan_cache_mode = force_generic_plan", "set local plan_cache_mode = force_custom_plan"
	for _, c := range d.loopCases() {
		p, err := e.prepare(t.Context(), texts(c), c.st.args)
		if err == nil {
			_, err = e.explain(t.Context(), p, generic+"; select 1"+d.settings, "costs off")
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		before[c.name] = p
	}
	d.planned, d.started, d.ended = nil, nil, nil
	d.fillDay(t)
	for _, c := range d.loopCases() {
		p, err := e.prepare(t.Context(), texts(c), c.st.args)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		old := before[c.name]
		old.call = "execute " + old.name + strings.TrimPrefix(p.call, "execute "+p.name)
		for _, m := range []struct {
			name, mode string
			p          preparedPlan
		}{{"planned before", generic, old}, {"planned after", generic, p}, {"planned for the arguments", custom, p}} {
			s, err := e.explain(t.Context(), m.p, m.mode+"; select 1"+d.settings+"; set local statement_timeout = '3s'", "analyze, buffers")
			if err != nil {
				t.Errorf("%s, %s: %v", c.name, m.name, err)
				continue
			}
			if s.rows < c.rows {
				t.Errorf("%s, %s: %d rows, want at least %d: the case shows nothing", c.name, m.name, s.rows, c.rows)
			}
			if most := 4*max(s.rows, c.batch) + 2*c.wasted + 150; s.examined > most {
				t.Errorf("%s, %s: %d rows looked at, want at most %d\n%s\n%s", c.name, m.name, s.examined, most, planHead, s)
			}
		}
	}
}

// loopCases are those of planCases that claim, start and change runs, and follow the rules.
func (d *planData) loopCases() (list []planCase) {
	for _, c := range slices.Concat(d.claimCases(), d.startCases(), d.handoverCases(), d.endCases(), d.ruleCases()) {
		name, _, _ := strings.Cut(c.name, " ")
		switch name {
		case "claim", "claimFree", "claimAll", "claimAllFree", "start", "startFree", "startBrief", "startBriefFree", "startOwn", "startOwnFree",
			"finish", "finishBrief", "finishPlain", "lockRuns", "idleJobs", "lockIdle", "lockIdleFree", "waitOn", "rearm", "finishNext", "dispatched", "dispatchedFree", "whyRun", "whyJob":
			list = append(list, c)
		}
	}
	return list
}

// fillDay makes the runs that loopCases need, of the last minute: 10,000 planned and 2,000 started.
func (d *planData) fillDay(t testing.TB) {
	t.Helper()
	first := idAt(d.now) // the day of the partition
	d.exec(t, `insert into {{schema}}.xxl_job_log (id, job_id, shard, app_name, state, trigger_type, scheduled_time, add_time, plan_epoch, executor_fail_retry_count)
	select $2::bigint + n, (n * 10 + 1), (n * 10 + 1) % 32, 'app', 0, 'CRON', $1::bigint, now(), 7, -1 from generate_series(0, 9999) n`, d.now.UnixMilli(), first)
	d.exec(t, `insert into {{schema}}.xxl_job_log (id, job_id, shard, app_name, state, trigger_type, scheduled_time, add_time, trigger_time, taken_time, plan_epoch,
		start_token, job_version, executor_fail_retry_count, executor_address)
	select $2::bigint + 10000 + n, n * 10 + 2, (n * 10 + 2) % 32, 'app', 1, 'CRON', $1::bigint, now(), now(), now(), 7, n + 1, 1, 0, 'local://node-1'
	from generate_series(0, 1999) n`, d.now.UnixMilli(), first)
	d.planned = d.some(t, "l.state = 0 and l.job_id % 100 < 90 order by l.id")
	d.started = d.some(t, "l.state = 1 order by l.id")
	for i := range d.planned {
		d.ended = append(d.ended, d.planned[i].ID)
	}
	d.floor.Store(first - 1)
}
