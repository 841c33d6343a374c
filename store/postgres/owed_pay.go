package postgres

// What is owed becomes planned runs. In come rows of xxl_job_owed; out go runs, records, open
// windows, and notes for runs whose children are not there. On one server that is one
// transaction. The keys of the runs would make it once all the same, if the rows of parent and
// child were apart.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// PayOwed pays what is owed in the shards.
func (s *Store) PayOwed(ctx context.Context, q store.OwedQuery) (store.Paid, error) {
	shards, _ := fenceArgs(q.Shards)
	if len(shards) == 0 || q.Limit <= 0 {
		return store.Paid{}, ended(ctx)
	}
	owed := false
	if err := s.read(ctx, s.sql.anyOwed.with(shards).into(scanInto(&owed))); err != nil || !owed {
		return store.Paid{}, failed(err, "look for what is owed")
	}
	var paid store.Paid
	// unknown are jobs behind others whose windows this process cannot work out.
	unknown, left := s.unknown.now(q)
	paid.Unknown = left
	why, err := halves(ctx, &s.aside.owed, q.Limit, func(limit int, aside []int64) (all []int64, err error) {
		for {
			ids, taken, left, err := s.paySome(ctx, q, limit, aside, unknown, &paid)
			if err != nil {
				return ids, err
			}
			all = append(all, ids...)
			// What is owed to these takes no room from the rest.
			if unknown = append(unknown, left...); len(left) == 0 || taken < limit || len(all) >= limit {
				return all, nil
			}
		}
	})
	s.unknown.add(q, paid.Unknown)
	paid.Refused = failed(why, "pay what is owed")
	return paid, failed(err, "pay what is owed") // what was committed before is not said again
}

// paySome pays so much at most, but for rows that are left aside and what is owed to jobs whose windows are
// unknown. It returns what it has paid, or would have beside an error, how many rows it had taken, and which
// further jobs are unknown.
func (s *Store) paySome(ctx context.Context, q store.OwedQuery, limit int, aside, unknown []int64, paid *store.Paid) (ids []int64, taken int, left []int64, err error) {
	var p paying
	err = s.withPartitions(ctx, func() error {
		return s.inTx(ctx, bounds{name: "pay_owed", lock: quickPatience}, func(t *tx) error {
			p = paying{leading: leading{store: s}, known: unknown}
			return p.run(ctx, t, q, limit, aside)
		})
	})
	ids = make([]int64, len(p.rows))
	for i := range p.rows {
		ids[i] = p.rows[i].id
	}
	if err != nil {
		if len(p.rows) == 1 {
			err = fmt.Errorf("what run %d owes to job %d: %w", p.rows[0].RunID, p.rows[0].to, err)
		}
		return ids, p.taken, nil, err
	}
	p.tell()
	paid.Owed, paid.Runs, paid.Absent, paid.Skipped = paid.Owed+len(p.rows), paid.Runs+p.runs, paid.Absent+p.absent, paid.Skipped+len(p.skipped)
	paid.Records, paid.Unknown = append(paid.Records, p.skipped...), append(paid.Unknown, p.left.Unknown...)
	for _, u := range p.left.Unknown {
		if !slices.Contains(left, u.JobID) {
			left = append(left, u.JobID)
		}
	}
	return ids, p.taken, left, nil
}

// paying is a transaction that pays.
type paying struct {
	leading
	rows   []owedRow
	taken  int        // how many rows there were at first
	known  []int64    // jobs behind others whose windows are known to be unknown here: nothing is taken of theirs
	left   store.Paid // whose windows this process cannot work out, of the others
	joins  joining    // whom they are for, where these run behind others
	absent int
	opened []int // shards in which a window was opened
}

// owedRow is a row of xxl_job_owed, with the job that it is for, 0 where that is not there.
type owedRow struct {
	store.Owed
	id, to int64
	begins int64  // the window that it counts for
	line   string // in the TriggerMsg of the child
}

// run pays so many at most, but for rows that are left aside.
func (p *paying) run(ctx context.Context, t *tx, q store.OwedQuery, limit int, aside []int64) error {
	shards, epochs := fenceArgs(q.Shards)
	err := t.do(ctx, p.store.sql.takeOwed.by(named{{"shards", shards}, {"epochs", epochs}, {"limit", limit}, {"aside", aside}, {"unknown", p.known}}).into(p.read))
	if p.taken = len(p.rows); err != nil || len(p.rows) == 0 {
		return err
	}
	p.someParams()
	if err := p.keep(ctx, t); err != nil {
		return err
	}
	if err := p.withhold(ctx, t); err != nil {
		return err
	}
	if err := p.skipHeldWindows(ctx, t); err != nil {
		return err
	}
	var ids []int64
	joins := false
	notes := map[int64][]string{}
	for i := range p.rows {
		w := &p.rows[i]
		ids = append(ids, w.id)
		switch {
		case w.to == 0:
			notes[w.RunID] = append(notes[w.RunID], w.Unpaid())
			p.absent++
		case w.Join:
			joins = true
		default:
			p.add(follower{
				job: w.to, key: store.ChildKey(w.TriggerID), parent: w.RunID, depth: w.Depth, due: 0, business: milli(w.Business), param: w.Param, trace: w.Trace, line: w.line,
			})
		}
	}
	if joins {
		if err := p.arrive(ctx, t); err != nil {
			return err
		}
	}
	if err := p.lead(ctx, t); err != nil {
		return err
	}
	return t.do(ctx, append(p.noted(notes), p.store.sql.deleteOwed.with(ids))...)
}

// keep keeps the jobs as they are. One that is removed before is not there, and one that is
// removed after has its planned runs cancelled. What is owed to those that others have locked
// stays for later.
func (p *paying) keep(ctx context.Context, t *tx) error {
	var jobs []int64
	for i := range p.rows {
		jobs = append(jobs, p.rows[i].to)
	}
	kept, held, err := p.store.keepFree(ctx, t, jobs)
	p.rows = slices.DeleteFunc(p.rows, func(w owedRow) bool { return slices.Contains(held, w.to) })
	for i := range p.rows {
		if w := &p.rows[i]; !slices.Contains(kept, w.to) {
			w.to = 0
		}
	}
	return err
}

// withhold takes away what is secret, and would be given to jobs that are not, or are of other apps.
// Nothing is asked where nothing is handed on.
func (p *paying) withhold(ctx context.Context, t *tx) error {
	var places []int
	var runs, jobs []int64
	for i := range p.rows {
		if w := &p.rows[i]; w.Param != nil && w.to != 0 && w.Depth <= store.MostDepth {
			places, runs, jobs = append(places, i), append(runs, w.RunID), append(jobs, w.to)
		}
	}
	if len(places) == 0 {
		return nil
	}
	var secret []int64
	if err := t.do(ctx, p.store.sql.withheld.with(runs, jobs).into(readIDs(&secret))); err != nil {
		return err
	}
	for _, n := range secret {
		w := &p.rows[places[n-1]]
		w.Param, w.line = nil, w.Withheld()
	}
	return nil
}

// keepFree keeps those of the jobs as they are that nobody has locked, and says which others
// there are.
func (s *Store) keepFree(ctx context.Context, t *tx, jobs []int64) (kept, held []int64, err error) {
	slices.Sort(jobs)
	jobs = slices.Compact(jobs)
	err = t.do(ctx, s.sql.keepFree.with(jobs).into(readIDs(&kept)), s.sql.heldJobs.with(jobs).into(readIDs(&held)))
	return kept, held, err
}

// someParams leaves what is owed behind the first few megabytes of parameters for later.
func (p *paying) someParams() {
	const most = 4 << 20
	size := 0
	for i := range p.rows {
		if w := &p.rows[i]; w.Param != nil {
			cut := store.Cut(*w.Param, maxParam)
			w.Param = &cut
			if size += len(cut); size > most && i > 0 {
				p.rows = p.rows[:i]
				return
			}
		}
	}
}

// maxParam is how long a parameter may be, in bytes.
const maxParam = 64 << 10

// read takes in a row.
func (p *paying) read(rows pgx.Rows) error {
	var w owedRow
	var job, to *int64
	var app, key, trace *string
	var business int64
	err := rows.Scan(&w.id, &w.Shard, &w.RunID, &w.TriggerID, &w.ParentID, &job, &app, &key, &w.Join, &w.Param, &business, &w.Depth, &trace, &to)
	if job != nil {
		w.JobID = *job
	} else if app != nil && key != nil {
		w.App, w.Key = *app, *key
	}
	if to != nil {
		w.to = *to
	}
	if trace != nil {
		w.Trace = *trace
	}
	w.Business = fromMilli(business)
	p.rows = append(p.rows, w)
	return err
}

// noted are the statements that add notes to runs. A run whose row others have locked goes
// without: results and retention are not to wait for a note.
func (p *paying) noted(notes map[int64][]string) []statement {
	if len(notes) == 0 {
		return nil
	}
	runs := slices.Sorted(maps.Keys(notes))
	lines := make([]string, len(runs))
	for i, id := range runs {
		lines[i] = strings.Join(notes[id], "\n")
	}
	lo, hi := rangeOf(runs)
	return []statement{p.store.sql.noteUnpaid.by(named{{"runs", runs}, {"lines", lines}, {"lo", lo}, {"hi", hi}})}
}

func (p *paying) tell() {
	p.tellLed()
	for _, shard := range p.opened {
		p.store.wakeOwed(shard)
	}
}

// leading plans runs that follow from successes, or records in their place.
type leading struct {
	store     *Store
	followers []follower
	runs      int
	skipped   []store.Run // the records
	woken     []int       // shards of what was planned
	alarms    alarming
}

// follower is a run that successes lead to, or with a reason the record in its place.
type follower struct {
	job           int64
	key           string
	parent        int64
	depth         int
	due, business int64 // due 0: now
	instant       int64 // what the run stands for; 0: when it is due
	param         *string
	trace         string
	reason, line  string
}

func (l *leading) add(f follower) {
	if f.depth > store.MostDepth && f.reason == "" {
		f.reason = store.ReasonDepth
	}
	l.followers = append(l.followers, f)
}

// tellLed passes on what was planned, after the commit.
func (l *leading) tellLed() {
	for _, shard := range l.woken {
		l.store.wakeRun(shard)
	}
	l.alarms.tell()
}

// lead inserts the keys, and the runs of those that were not there. The jobs are kept before.
func (l *leading) lead(ctx context.Context, t *tx) error {
	if len(l.followers) == 0 {
		return nil
	}
	n := len(l.followers)
	jobs, keys, parents, depths := make([]int64, n), make([]string, n), make([]int64, n), make([]int16, n)
	due, business, instants := make([]int64, n), make([]int64, n), make([]*int64, n)
	params, traces, reasons, lines := make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n)
	for i := range l.followers {
		f := &l.followers[i]
		jobs[i], keys[i], parents[i], depths[i] = f.job, f.key, f.parent, int16(f.depth)
		due[i], business[i], params[i] = f.due, f.business, f.param
		if f.reason == "" {
			instants[i] = nonzero(f.instant)
		}
		traces[i], reasons[i], lines[i] = nonempty(f.trace), nonempty(f.reason), nonempty(f.line)
	}
	var inserted []store.Run
	if err := t.do(ctx, l.store.sql.lead.by(named{
		{"jobs", jobs}, {"keys", keys}, {"parents", parents}, {"depths", depths}, {"due", due}, {"business", business},
		{"instants", instants}, {"params", params}, {"traces", traces}, {"reasons", reasons}, {"lines", lines},
	}).into(readRuns(&inserted))); err != nil {
		return err
	}
	l.alarms = l.store.alarms()
	l.alarms.ended(nil, inserted...)
	t.count(inserted...)
	for i := range inserted {
		r := &inserted[i]
		if r.State.Ended() {
			l.skipped = append(l.skipped, *r)
			continue
		}
		l.runs++
		if !slices.Contains(l.woken, r.Shard) {
			l.woken = append(l.woken, r.Shard)
		}
	}
	return l.alarms.insert(ctx, t)
}

// payQueries are the statements of this file.
type payQueries struct {
	anyOwed, takeOwed, deleteOwed, noteUnpaid, keepFree, withheld, lead query
}

func (q *payQueries) define(sql template) {
	q.anyOwed = sql(`select exists (select from unnest($1::smallint[]) s(id)
	cross join lateral (select from {{schema}}.xxl_job_owed o where o.shard = s.id order by o.id limit 1) o)`)
	q.takeOwed = sql(`with ` + fence("") + `
	select o.id, o.shard, o.log_id, o.trigger_id, o.parent_job, o.job_id, o.app_name, o.job_key, o.is_join,
		case o.param_of when ` + strconv.Itoa(paramParent) + ` then (select coalesce(l.executor_param, '') from {{schema}}.xxl_job_log l where l.id = o.log_id)
		when ` + strconv.Itoa(paramResult) + ` then (select coalesce(l.handle_msg, '') from {{schema}}.xxl_job_log l where l.id = o.log_id) end, o.business_time, o.depth, o.trace,
		case when o.job_id is not null then (select i.id from {{schema}}.xxl_job_info i where i.id = o.job_id)
		else (select i.id from {{schema}}.xxl_job_info i where i.app_name = o.app_name and i.job_key = o.job_key) end
	from {{schema}}.xxl_job_owed o where o.shard = any(array(select shard from fence)) and o.id <> all({{arg.aside}}::bigint[])
	and not (o.is_join and coalesce(o.job_id = any({{arg.unknown}}::int[]), false)) order by o.id limit {{arg.limit}} for update of o skip locked`)
	q.deleteOwed = sql(`delete from {{schema}}.xxl_job_owed where id = any($1::bigint[])`)
	q.noteUnpaid = sql(`update {{schema}}.xxl_job_log l set trigger_msg = ` + say("r.say") + `
	from unnest({{arg.runs}}::bigint[], {{arg.lines}}::text[]) with ordinality r(id, say, ord) where l.id = r.id and ` + few + `
	and l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any({{arg.runs}}::bigint[]) and p.id between {{arg.lo}} and {{arg.hi}}
		order by p.id for no key update skip locked))`).saying()
	q.keepFree = sql(`select n.job_id from {{schema}}.xxl_job_next n where n.job_id = any($1::int[]) order by n.job_id for key share skip locked`)
	// From each run that hands something on to another app, or to a job that is not secret, up to those
	// that it has it from; a row without a job is one that is not there any more.
	q.withheld = sql(`with recursive up as (
		select r.ord, l.app_name, l.job_id, l.parent_id, l.param_set, 1 n from unnest($1::bigint[], $2::int[]) with ordinality r(run_id, job_id, ord)
		join {{schema}}.xxl_job_info c on c.id = r.job_id
		cross join lateral (select l.job_id, l.app_name, l.parent_id, l.param_set from {{schema}}.xxl_job_log l where l.id = r.run_id limit 1) l
		where l.app_name <> c.app_name or not c.secret
		union all
		select u.ord, coalesce(l.app_name, u.app_name), l.job_id, l.parent_id, l.param_set, u.n + 1 from up u
		left join lateral (select l.app_name, l.job_id, l.parent_id, l.param_set from {{schema}}.xxl_job_log l where l.id = u.parent_id limit 1) l on true
		where u.param_set and u.parent_id is not null and u.n < ` + strconv.Itoa(store.MostDepth) + `)
	select u.ord from up u where case when u.job_id is null
		then coalesce((select i.secret from {{schema}}.xxl_job_info i where i.app_name = u.app_name and i.secret order by i.app_name, i.job_key limit 1), false)
		else not exists (select from {{schema}}.xxl_job_info i where i.id = u.job_id and not i.secret) end group by u.ord order by u.ord`)
	run := assigned{
		{"id", `k.run_id`},
		{"job_id", `i.id`},
		{"shard", `i.shard`},
		{"app_name", `i.app_name`},
		{"parent_id", `r.parent`},
		{"depth", `r.depth`},
		{"business_time", `r.business`},
		{"instant_time", `r.instant`},
		{"trigger_type", `'PARENT'`},
		{"scheduled_time", `case when r.due = 0 then ` + milliseconds("{{now}}") + ` else r.due end`},
		{"state", `case when r.reason is null then {{state.planned}} else {{state.skipped}} end`},
		{"alarm_status", `case when r.reason is null then {{alarm.default}} else {{alarm.none}} end`},
		{"executor_param", `r.param`},
		{"param_set", `case when r.param is not null then true end`},
		{"executor_fail_retry_count", `{{retries.of_job}}`},
		{"first_time", `case when r.reason is not null then case when r.due = 0 then ` + milliseconds("{{now}}") + ` else r.due end end`},
		{"last_time", `case when r.reason is not null then case when r.due = 0 then ` + milliseconds("{{now}}") + ` else r.due end end`},
		{"instants", `case when r.reason is not null then 1 end`},
		{"reason", `r.reason`},
		{"trace", `r.trace`},
		{"trigger_msg", `r.line`},
		{"add_time", `{{now}}`},
		{"handle_time", `case when r.reason is not null then {{now}} end`},
	}
	q.lead = sql(`with r as materialized (select * from unnest({{arg.jobs}}::int[], {{arg.keys}}::text[], {{arg.parents}}::bigint[], {{arg.depths}}::smallint[],
		{{arg.due}}::bigint[], {{arg.business}}::bigint[], {{arg.instants}}::bigint[], {{arg.params}}::text[], {{arg.traces}}::text[], {{arg.reasons}}::text[], {{arg.lines}}::text[])
		with ordinality r(job_id, key, parent, depth, due, business, instant, param, trace, reason, line, ord)),
	k as (insert into {{schema}}.xxl_job_trigger_key as k (job_id, trigger_key, run_id)
		select o.job_id, o.key, {{run_id}} from (select distinct r.job_id, r.key collate "C" as key from r) o
		join {{schema}}.xxl_job_info i on i.id = o.job_id order by o.job_id, o.key
		on conflict do nothing returning k.job_id, k.trigger_key, k.run_id)
	insert into {{schema}}.xxl_job_log as l (` + run.columns() + `)
	select ` + run.values() + `
	from k join lateral (select * from r where r.job_id = k.job_id and r.key = k.trigger_key order by r.ord limit 1) r on true
	join {{schema}}.xxl_job_info i on i.id = k.job_id
	returning {{run}}`).saying()
}
