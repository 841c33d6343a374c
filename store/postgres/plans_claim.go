package postgres

// Claims: jobs are advanced, and the runs planned for them inserted.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/store"
)

// claimBatch is how many runs one statement inserts at most: the knee between
// too many round trips and rows that are locked for too long.
const claimBatch = 1000

// Claim advances jobs and inserts the runs that were planned for them, in
// transactions of up to claimBatch runs.
func (s *Store) Claim(ctx context.Context, dst []store.Run, plans []store.Plan) ([]store.Run, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	runs := slices.Grow(dst, countRuns(plans))
	for len(plans) > 0 {
		n := s.claimSize(plans)
		var err error
		if runs, err = s.claimSome(ctx, plans[:n], runs); err != nil {
			return nil, failed(err, "claim %d jobs", len(plans))
		}
		for i := range plans[:n] {
			if p := &plans[i]; p.Next.Before(p.Due) && !p.Next.IsZero() {
				s.region.reach(p.Next)
			}
		}
		plans = plans[n:]
	}
	return runs, nil
}

func countRuns(plans []store.Plan) (n int) {
	for i := range plans {
		n += len(plans[i].Runs)
	}
	return n
}

// claimSize is how many of the plans go into the next statement: each of another
// job, those of a shard under one epoch, with claimBatch runs together.
func (s *Store) claimSize(plans []store.Plan) int {
	seen := s.grouping.take()
	defer s.grouping.giveBack(seen)
	runs := 0
	for n := range plans {
		p := &plans[n]
		runs += len(p.Runs)
		epoch, has := seen.epochs[p.Shard]
		_, twice := seen.ids[p.JobID]
		if n > 0 && (twice || runs > claimBatch || n == claimBatch || has && epoch != p.Epoch) {
			return n
		}
		seen.ids[p.JobID], seen.epochs[p.Shard] = n, p.Epoch
	}
	return len(plans)
}

// claiming is one statement's worth of plans.
type claiming struct {
	plans    []store.Plan
	advanced map[int64]bool // the jobs that advanced
	inserted *[]inserted    // those of a job follow each other, in the order of its plan
	alarms   alarming
}

// inserted is what the database tells of a new run.
type inserted struct {
	id, job, at int64
	app         string
	created     time.Time
}

func (s *Store) claimSome(ctx context.Context, plans []store.Plan, runs []store.Run) ([]store.Run, error) {
	rows := s.newRows.take()
	defer s.newRows.giveBack(rows)
	c := claiming{plans: plans, inserted: rows}
	claim, free := s.sql.claimAll, s.sql.claimAllFree
	if c.plain() {
		claim, free = s.sql.claim, s.sql.claimFree
	}
	careful := s.careful()
	if careful {
		claim = free
	}
	err := s.claimBy(ctx, &c, claim)
	if lockedOut(err) && !careful {
		s.beCareful()
		err = s.claimBy(ctx, &c, free)
	}
	if err != nil {
		return nil, err
	}
	return c.planned(runs)
}

func (s *Store) claimBy(ctx context.Context, c *claiming, claim query) error {
	now := []int64{idAt(s.estimate())}
	return s.byDay(claim, now, func(claim query) error { return s.claimWith(ctx, c, claim) })
}

func (s *Store) claimWith(ctx context.Context, c *claiming, claim query) error {
	c.advanced, *c.inserted = map[int64]bool{}, slices.Grow((*c.inserted)[:0], countRuns(c.plans))
	b := bounds{name: "claim", lock: quickPatience}
	st := claim.by(claimArgs(c.plans)).into(c.reader())
	if c.plain() {
		return s.withPartitions(ctx, func() error { return s.one(ctx, b, st) })
	}
	var done arming
	err := s.withPartitions(ctx, func() error {
		return s.inTx(ctx, b, func(t *tx) error {
			if err := t.do(ctx, st); err != nil {
				return err
			}
			var err error
			done, err = s.claimRest(ctx, t, c)
			return err
		})
	})
	s.tell(done)
	if err == nil {
		c.alarms.tell()
	}
	return err
}

// plain reports whether every plan leaves its job with a next instant, and skips nothing: then
// the claim is one statement.
func (c *claiming) plain() bool {
	for i := range c.plans {
		if p := &c.plans[i]; p.Next.IsZero() || p.Wait || p.Stop != "" || slices.ContainsFunc(p.Runs, func(n store.NewRun) bool { return n.State.Ended() }) {
			return false
		}
	}
	return true
}

// claimRest does what concerns single jobs: waits, stops, and the rules for jobs
// without a next instant.
func (s *Store) claimRest(ctx context.Context, t *tx, c *claiming) (arming, error) {
	runs, err := c.planned(nil)
	if err != nil {
		return arming{}, err
	}
	c.alarms = s.alarms()
	c.alarms.ended(nil, runs...)
	t.count(runs...)
	first := map[int64]int64{}
	var ended []runEnd
	for i := range runs {
		if _, has := first[runs[i].JobID]; !has {
			first[runs[i].JobID] = runs[i].ID
		}
		if runs[i].State.Ended() {
			ended = append(ended, endOf(&runs[i]))
		}
	}
	var idle []int64
	for i := range c.plans {
		p := &c.plans[i]
		if !c.advanced[p.JobID] {
			continue
		}
		var err error
		switch {
		case p.Stop != "":
			if err = t.do(ctx, s.sql.stopNext.with(p.JobID), s.sql.stopJob.with(p.JobID, p.Stop)); err == nil {
				err = s.noteStop(ctx, t, p.JobID, p.Stop)
			}
			c.alarms.add(store.Alarm{Shard: p.Shard, JobID: p.JobID, Cause: string(alarm.Stopped), Text: store.AlarmText(p.Stop)})
		case p.Wait && len(p.Runs) > 0:
			err = t.do(ctx, s.sql.waitNext.with(p.JobID, first[p.JobID]))
			idle = append(idle, p.JobID)
		case p.Next.IsZero():
			idle = append(idle, p.JobID)
		}
		if err != nil {
			return arming{}, err
		}
	}
	if err := c.alarms.insert(ctx, t); err != nil {
		return arming{}, err
	}
	return s.arm(ctx, t, ended, idle)
}

// reader takes in the runs that were inserted, and of a claim that tells them the
// jobs that advanced: their rows have no id.
func (c *claiming) reader() result {
	var app repeated
	var in inserted
	dest := []any{&in.id, &in.job, &app, &in.created, &in.at}
	return func(rows pgx.Rows) error {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		if in.id == 0 {
			c.advanced[in.job] = true
			return nil
		}
		in.app, in.created = app.text, in.created.UTC()
		*c.inserted = append(*c.inserted, in)
		return nil
	}
}

// planned adds the inserted runs to the list, in the order of the plans. The runs
// of a job are inserted one after the other, in the order of its plan; the jobs in
// any order.
func (c *claiming) planned(out []store.Run) ([]store.Run, error) {
	rows, find := *c.inserted, c.finder()
	for i := range c.plans {
		p := &c.plans[i]
		k, ok := find(p.JobID)
		if !ok {
			continue
		}
		for j := range p.Runs {
			if k+j >= len(rows) || rows[k+j].job != p.JobID || rows[k+j].at != milli(p.Runs[j].At) {
				return nil, fmt.Errorf("claim of job %d: the runs that were inserted are not those of its plan", p.JobID)
			}
			in := &rows[k+j]
			out = append(out, store.Run{ID: in.id, App: in.app, Created: in.created})
			fillPlanned(&out[len(out)-1], p, &p.Runs[j])
		}
	}
	return out, nil
}

// finder finds where the rows of a job begin. Mostly the jobs come in the order of the plans, and
// each is where the rows of the one before end.
func (c *claiming) finder() func(job int64) (at int, ok bool) {
	rows, next := *c.inserted, 0
	var first map[int64]int // of each job, where its rows are, once one was not in order
	return func(job int64) (int, bool) {
		if first == nil && next < len(rows) && rows[next].job == job {
			at := next
			for next < len(rows) && rows[next].job == job {
				next++
			}
			return at, true
		}
		if first == nil {
			first = make(map[int64]int, len(c.plans))
			for k := len(rows) - 1; k >= 0; k-- {
				first[rows[k].job] = k
			}
		}
		at, ok := first[job]
		return at, ok
	}
}

// fillPlanned sets what the plan says.
func fillPlanned(r *store.Run, p *store.Plan, n *store.NewRun) {
	r.JobID, r.Shard, r.TriggerID, r.PlanEpoch = p.JobID, p.Shard, r.ID, p.Epoch
	r.Type, r.State, r.Scheduled = n.Type, n.State, stored(n.At)
	r.First, r.Last, r.Count, r.Reason = fromMilli(milli(n.First)), fromMilli(milli(n.Last)), n.Count, store.PlainText(n.Reason)
	r.Retries, r.Born = retriesOfJob, n.Type.ScheduleBorn()
	if n.State.Ended() {
		r.Ended, r.AlarmStatus = r.Created, alarmNone
	}
}

// retriesOfJob stands for the job's own number, until the run starts.
const retriesOfJob = -1

// claimQueries are the statements of this file.
type claimQueries struct {
	claim, claimFree, claimAll, claimAllFree, stopNext, stopJob, waitNext query
}

func (q *claimQueries) define(sql template) {
	// A claim locks the rows of its shards for key share, while their epochs are those of the plans (fence),
	// and its update locks the rows of the jobs. The variant "free" passes by rows that others have locked.
	//
	// The row is found by the very instant that is claimed: "job_id + 0" is what the
	// index of due jobs has, and the primary key has not. Of a job there are as many
	// versions as it was claimed lately, and the key leads to all of them.
	//
	// A claim goes by the places of its jobs and runs in the arrays: rows that carry
	// few columns from one step to the next cost least. The runs of a job end where those of
	// the next begin. What is not said of jobs is that all of their runs are made, and of
	// runs that they are planned, and of the first type that there is.
	head := func(free, wait string) string {
		return `with ` + fence(free) + `,
	advanced as (
		update {{schema}}.xxl_job_next n set trigger_next_time = ({{arg.next}}::bigint[])[d.ord], wait_run = 0,
			trigger_last_time = coalesce(nullif(({{arg.last}}::bigint[])[d.ord], 0), n.trigger_last_time),
			run_count = n.run_count + coalesce(({{arg.made}}::int[])[d.ord], ({{arg.from}}::int[])[d.ord + 1] - ({{arg.from}}::int[])[d.ord]),
			version = n.version + coalesce(({{arg.stops}}::smallint[])[d.ord], 0)
		from (select unnest({{arg.jobs}}::int[]) job_id, unnest({{arg.job_shards}}::smallint[]) shard, unnest({{arg.versions}}::bigint[]) version,
			unnest({{arg.due}}::bigint[]) due, unnest({{arg.places}}::int[]) ord) d
		where d.shard = any(array(select shard from fence))
		and n.trigger_next_time = d.due and n.shard = d.shard and n.job_id + 0 = d.job_id
		and n.version = d.version and n.trigger_status = {{status.enabled}} and n.trigger_next_time > 0` + wait + `
		returning n.job_id, n.shard, n.app_name, d.ord),
	base as materialized (select {{run_base}} id)`
	}
	const state = `coalesce(({{arg.states}}::smallint[])[r.k], {{state.planned}})`
	run := assigned{
		{"id", `(select id from base) + {{run_low}}`},
		{"job_id", `r.job_id`},
		{"shard", `r.shard`},
		{"app_name", `r.app_name`},
		{"plan_epoch", `({{arg.job_epochs}}::bigint[])[r.ord]`},
		{"add_time", `{{now}}`},
		{"executor_fail_retry_count", `{{retries.of_job}}`},
		{"trigger_type", `({{arg.words}}::text[])[coalesce(({{arg.types}}::smallint[])[r.k], 1)]`},
		{"state", state},
		{"alarm_status", `case when ` + state + ` > {{state.dispatched}} then {{alarm.none}} else {{alarm.default}} end`},
		{"scheduled_time", `({{arg.times}}::bigint[])[r.k]`},
		{"first_time", `nullif(({{arg.firsts}}::bigint[])[r.k], 0)`},
		{"last_time", `nullif(({{arg.lasts}}::bigint[])[r.k], 0)`},
		{"instants", `nullif(({{arg.counts}}::int[])[r.k], 0)`},
		{"reason", `({{arg.words}}::text[])[({{arg.reasons}}::smallint[])[r.k]]`},
		{"handle_time", `case when ` + state + ` > {{state.dispatched}} then {{now}} end`},
	}
	insert := `insert into {{schema}}.xxl_job_log as l (` + run.columns() + `)
		select ` + run.values() + `
		from (select a.*, generate_series(({{arg.from}}::int[])[a.ord], ({{arg.from}}::int[])[a.ord + 1] - 1) k from advanced a) r
		returning l.id, l.job_id, l.app_name, l.add_time, l.scheduled_time`
	skip := `
		and d.job_id = any(array(select m.job_id from {{schema}}.xxl_job_next m where m.job_id = any({{arg.jobs}}::int[])
			order by m.job_id for no key update skip locked))`
	all := `, inserted as (` + insert + `)
	select 0::bigint, a.job_id, a.app_name, {{now}}, 0::bigint from advanced a
	union all select * from inserted`
	q.claim, q.claimFree = sql(head("", "")+"\n\t"+insert).saying(), sql(head("skip locked", skip)+"\n\t"+insert).saying()
	q.claimAll, q.claimAllFree = sql(head("", "")+all).saying(), sql(head("skip locked", skip)+all).saying()
	q.stopNext = sql(`update {{schema}}.xxl_job_next set trigger_status = {{status.stopped}} where job_id = $1`)
	q.stopJob = sql(`update {{schema}}.xxl_job_info set trigger_status = {{status.stopped}}, stop_reason = $2,
	version = version + 1, update_time = {{now}} where id = $1`).saying()
	q.waitNext = sql(`update {{schema}}.xxl_job_next set wait_run = $2 where job_id = $1`)
}

// claimArgs are the arguments of a claim: the fence, the jobs, the runs.
func claimArgs(plans []store.Plan) named {
	var shards shardSet
	n := len(plans)
	jobs, in, own, versions := make([]int64, n), make([]int16, n), make([]int64, n), make([]int64, n)
	due, next, last, stop := make([]int64, n), make([]int64, n), make([]int64, n), sparseList[int16]{n: n}
	from, made, all := make([]int32, n+1), make([]int32, n), true
	r := newRunArrays(countRuns(plans))
	for i := range plans {
		p := &plans[i]
		shards.add(p.Shard, p.Epoch)
		jobs[i], in[i], own[i], versions[i] = p.JobID, int16(p.Shard), p.Epoch, p.Version
		due[i], next[i] = milli(p.Due), milli(stored(p.Next))
		if p.Wait && len(p.Runs) > 0 {
			next[i] = 0
		}
		if p.Stop != "" {
			stop.set(i, 1)
		}
		from[i] = int32(len(r.at)) + 1 // arrays of SQL count from 1
		for k := range p.Runs {
			last[i] = max(last[i], milli(p.Runs[k].At), milli(p.Runs[k].Last))
			r.add(&p.Runs[k])
			if !p.Runs[k].State.Ended() {
				made[i]++
			}
		}
		all = all && int(made[i]) == len(p.Runs)
	}
	from[n] = int32(len(r.at)) + 1
	if all {
		made = made[:0]
	}
	ids, epochs := fenceArgs(shards.list)
	return named{
		{"shards", ids}, {"epochs", epochs},
		{"next", next}, {"last", last}, {"made", made}, {"stops", stop.value()},
		{"jobs", jobs}, {"job_shards", in}, {"versions", versions}, {"due", due}, {"places", upTo(n)},
		{"job_epochs", own}, {"words", r.words.list}, {"types", r.types()}, {"states", r.states.value()}, {"times", r.at},
		{"firsts", r.first.value()}, {"lasts", r.last.value()}, {"counts", r.counts.value()}, {"reasons", r.reasons.value()},
		{"from", from},
	}
}

// runArrays are new runs as columns.
type runArrays struct {
	words       words
	at          []int64
	kinds       []int16
	first, last sparseList[int64]
	counts      sparseList[int32]
	states      sparseList[int16]
	reasons     sparseList[int16]
}

func newRunArrays(n int) runArrays {
	return runArrays{
		at: make([]int64, 0, n), kinds: make([]int16, 0, n), first: sparseList[int64]{n: n}, last: sparseList[int64]{n: n},
		counts: sparseList[int32]{n: n}, states: sparseList[int16]{n: n}, reasons: sparseList[int16]{n: n},
	}
}

func (a *runArrays) add(n *store.NewRun) {
	a.kinds = append(a.kinds, a.words.place(string(n.Type)))
	a.at = append(a.at, milli(n.At))
	k := len(a.at) - 1
	a.states.set(k, int16(n.State)) // planned is zero
	a.first.set(k, milli(n.First))
	a.last.set(k, milli(n.Last))
	a.counts.set(k, int32(n.Count))
	a.reasons.set(k, a.words.place(n.Reason))
}

// types are those of the runs, or none where all are of the first.
func (a *runArrays) types() []int16 {
	if slices.ContainsFunc(a.kinds, func(place int16) bool { return place != 1 }) {
		return a.kinds
	}
	return a.kinds[:0]
}
