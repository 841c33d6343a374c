package postgres

// What successes owe to other jobs, in the transaction that ends the runs. In come the runs
// that have succeeded; out go rows of xxl_job_owed. Most databases have jobs that lead to
// others in few places, so the statement that ends runs says beside them whether there is a
// link at all, and nothing more is asked where there is none.

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// owing is a transaction's worth of it.
type owing struct {
	store *Store
	runs  []*store.Run // that have succeeded, of jobs that lead to others
	jobs  map[int64]*store.Job
	joins map[int64][]int64 // the jobs behind each
	woken []int             // the shards in which something is owed
}

// owe stores what is owed by those of the runs with which their triggers have succeeded.
func (s *Store) owe(ctx context.Context, t *tx, runs []*store.Run) (owing, error) {
	o := owing{store: s, runs: runs, jobs: map[int64]*store.Job{}, joins: map[int64][]int64{}}
	if len(runs) == 0 {
		return o, nil
	}
	if err := o.read(ctx, t); err != nil {
		return o, err
	}
	o.runs = slices.DeleteFunc(o.runs, func(r *store.Run) bool { return o.jobs[r.JobID] == nil })
	if err := o.wholeTriggers(ctx, t); err != nil || len(o.runs) == 0 {
		return o, err
	}
	return o, o.insert(ctx, t)
}

// read reads the definitions of the jobs that lead to others, and which these are.
func (o *owing) read(ctx context.Context, t *tx) error {
	ids := make([]int64, len(o.runs))
	for i, r := range o.runs {
		ids[i] = r.JobID
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	var found []store.Job
	err := t.do(ctx, o.store.sql.joinsBehind.with(ids).into(func(rows pgx.Rows) error {
		var job, join int64
		err := rows.Scan(&job, &join)
		o.joins[job] = append(o.joins[job], join)
		return err
	}), o.store.sql.leading.with(ids).into(linkColumns.readInto(&found)))
	for i := range found {
		o.jobs[found[i].ID] = &found[i]
	}
	return err
}

// wholeTriggers leaves out the parts of broadcasts of which others have not succeeded. Whoever
// ends one of the last holds the row of the trigger when it counts, so of two that end at once
// the later one sees both.
func (o *owing) wholeTriggers(ctx context.Context, t *tx) error {
	last := map[int64]*store.Run{}
	for _, r := range o.runs {
		if r.Sharding != (store.Sharding{}) {
			last[r.TriggerID] = r
		}
	}
	if len(last) == 0 {
		return nil
	}
	var triggers []int64
	for id := range last {
		triggers = append(triggers, id)
	}
	slices.Sort(triggers)
	var whole []int64
	if err := t.do(ctx, o.store.sql.holdParts.with(triggers)); err != nil {
		return err
	}
	if err := t.do(ctx, o.store.sql.wholeParts.with(triggers).into(readIDs(&whole))); err != nil {
		return err
	}
	o.runs = slices.DeleteFunc(o.runs, func(r *store.Run) bool {
		return r.Sharding != (store.Sharding{}) && (last[r.TriggerID] != r || !slices.Contains(whole, r.TriggerID))
	})
	return nil
}

// insert decides and inserts.
func (o *owing) insert(ctx context.Context, t *tx) error {
	var all []store.Owed
	for _, r := range o.runs {
		owed := r.Owes(o.jobs[r.JobID], o.joins[r.JobID])
		if all = append(all, owed...); len(owed) > 0 && !slices.Contains(o.woken, r.Shard) {
			o.woken = append(o.woken, r.Shard)
		}
	}
	if len(all) > owedMost && len(o.runs) > 1 {
		return owesMuch(len(all))
	}
	for some := range slices.Chunk(all, owedBatch) {
		if err := o.insertSome(ctx, t, some); err != nil {
			return err
		}
	}
	return nil
}

// owedBatch is how many rows one statement inserts: a thousand results may owe a hundred times
// as many, and each statement has its own time.
const owedBatch = 10_000

// owedMost is how many rows one transaction inserts: a hundred thousand could take a server that
// is slow longer than a transaction may. Results that owe more are stored in several.
const owedMost = 20_000

// owesMuch is the error of a transaction whose results owe so many rows.
type owesMuch int

func (n owesMuch) Error() string { return strconv.Itoa(int(n)) + " rows are owed" }

// size is how many of so many results may be stored at once.
func (n owesMuch) size(results int) int { return max(results*owedMost/int(n), 1) }

// finishPlaces is finishGroup, in smaller groups where one would owe too much.
func (s *Store) finishPlaces(ctx context.Context, results []store.Result, places []int, answers []store.Run) (locked int, err error) {
	locked, err = s.finishGroup(ctx, results, places, answers)
	var much owesMuch
	if !errors.As(err, &much) {
		return locked, err
	}
	locked = 0
	for some := range slices.Chunk(places, much.size(len(places))) {
		n, err := s.finishPlaces(ctx, results, some, answers)
		if err != nil {
			return 0, err
		}
		locked += n
	}
	return locked, nil
}

func (o *owing) insertSome(ctx context.Context, t *tx, all []store.Owed) error {
	n := len(all)
	shards, runs, triggers, parents, jobs := make([]int16, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]*int64, n)
	apps, keys, joins, params := make([]*string, n), make([]*string, n), make([]bool, n), make([]int16, n)
	business, depths, traces := make([]int64, n), make([]int16, n), make([]*string, n)
	for i := range all {
		w := &all[i]
		shards[i], runs[i], triggers[i], parents[i], jobs[i] = int16(w.Shard), w.RunID, w.TriggerID, w.ParentID, nonzero(w.JobID)
		apps[i], keys[i], joins[i], params[i] = nonempty(w.App), nonempty(w.Key), w.Join, paramOf(o.jobs[w.ParentID], w)
		business[i], depths[i], traces[i] = milli(w.Business), int16(min(w.Depth, store.MostDepth+1)), nonempty(w.Trace)
	}
	return t.do(ctx, o.store.sql.insertOwed.by(named{
		{"shards", shards}, {"runs", runs}, {"triggers", triggers}, {"parents", parents}, {"jobs", jobs}, {"apps", apps}, {"keys", keys},
		{"joins", joins}, {"params", params}, {"business", business}, {"depths", depths}, {"traces", traces},
	}))
}

// Where the parameter of a child is: in the row of the run that has succeeded, so that a result
// of which a hundred children are given is stored once.
const (
	paramOwn = iota
	paramParent
	paramResult
)

func paramOf(parent *store.Job, w *store.Owed) int16 {
	switch {
	case w.Param == nil:
		return paramOwn
	case parent.ChildParam == store.ChildParamResult:
		return paramResult
	}
	return paramParent
}

// tellOwed passes on that something is owed, after the commit.
func (s *Store) tellOwed(o *owing) {
	for _, shard := range o.woken {
		s.wakeOwed(shard)
	}
}

// anyLink says whether any job names others. It is the same for all rows of a statement, and
// is worked out once, by an index: rows that are dead are not read again there.
const anyLink = `((select i.id from {{schema}}.xxl_job_info i where (i.child_jobid <> '' or i.child_keys <> '') order by i.id limit 1) is not null
	or (select k.job_id from {{schema}}.xxl_job_link k order by k.job_id limit 1) is not null)`

// leads is whether a job i has children.
const leads = `(i.child_jobid <> '' or i.child_keys <> '')`

// Which jobs a definition names: columns of xxl_job_info, and rows of xxl_job_link by which
// the jobs that run behind one are found.

// link writes the rows of definitions in place of those that there are.
func (s *Store) link(jobs []store.Job) statement {
	var ids, of []int64
	var others []*int64
	var apps, keys []*string
	add := func(job, other int64, app, key string) {
		of, others, apps, keys = append(of, job), append(others, nonzero(other)), append(apps, nonempty(app)), append(keys, nonempty(key))
	}
	for i := range jobs {
		j := &jobs[i]
		ids = append(ids, j.ID)
		for _, id := range j.After {
			add(j.ID, id, "", "")
		}
		for _, ref := range j.AfterKeys {
			app, key, _ := store.SplitRef(ref)
			add(j.ID, 0, app, key)
		}
	}
	return s.sql.link.by(named{{"jobs", ids}, {"of", of}, {"others", others}, {"apps", apps}, {"keys", keys}})
}

// linked are those of the jobs that run behind others.
func linked(jobs []store.Job) (joins []store.Job) {
	for i := range jobs {
		if isJoin(&jobs[i]) {
			joins = append(joins, jobs[i])
		}
	}
	return joins
}

func isJoin(j *store.Job) bool { return len(j.After)+len(j.AfterKeys) > 0 }

// Links returns the jobs that name others.
func (s *Store) Links(ctx context.Context) ([]store.Job, error) {
	var found []store.Job
	if err := s.readByIndex(ctx, s.sql.links.with().into(linkColumns.readInto(&found))); err != nil {
		return nil, failed(err, "read which jobs name others")
	}
	for i, j := range found {
		found[i] = store.Job{ID: j.ID, App: j.App, Key: j.Key, Children: j.Children, ChildKeys: j.ChildKeys, ChildParam: j.ChildParam, After: j.After, AfterKeys: j.AfterKeys}
	}
	return found, nil
}

// joinKeys is a list of references as a column has it.
func joinKeys(refs []string) string {
	if len(refs) == 0 {
		return ""
	}
	text, _ := json.Marshal(refs) // strings have a form in JSON
	return string(text)
}

func parseKeys(text string) (refs []string) {
	if text != "" {
		_ = json.Unmarshal([]byte(text), &refs) // what somebody else has written there names nobody
	}
	return refs
}

// oweQueries are the statements of this file.
type oweQueries struct {
	joinsBehind, leading, holdParts, heldParts, wholeParts, insertOwed query
	link, links                                                        query
}

func (q *oweQueries) define(sql template) {
	// Each job is looked up by itself, however few links there are.
	byID, byKey := `k.other_id = i.id`, `k.other_app = i.app_name and k.other_key = i.job_key`
	behind := func(by string) string {
		return `select i.id, j.id from {{schema}}.xxl_job_info i
		cross join lateral unnest(array(select k.job_id from {{schema}}.xxl_job_link k where ` + by + `)) j(id) where i.id = any($1::int[])`
	}
	one := func(by string) string {
		return `(select k.job_id from {{schema}}.xxl_job_link k where ` + by + ` order by k.job_id limit 1) is not null`
	}
	q.joinsBehind = sql(behind(byID) + ` union ` + behind(byKey) + ` order by 1, 2`)
	q.leading = sql(`select ` + linkColumns.readBehind("i") + ` from {{schema}}.xxl_job_info i where i.id = any($1::int[])
	and (` + leads + ` or ` + one(byID) + ` or ` + one(byKey) + `)`)
	q.holdParts = sql(`insert into {{schema}}.xxl_job_part as p (trigger_id) select t.id from unnest($1::bigint[]) t(id) order by t.id
	on conflict (trigger_id) do update set succeeded = p.succeeded`)
	q.heldParts = sql(`with free as materialized (select p.trigger_id from {{schema}}.xxl_job_part p where p.trigger_id = any($1::bigint[])
		order by p.trigger_id for no key update skip locked)
	select p.trigger_id from {{schema}}.xxl_job_part p where p.trigger_id = any($1::bigint[]) and p.trigger_id not in (select trigger_id from free)`)
	// The parts of a trigger are those that it has runs of, of whatever attempt. A run that is
	// none of them has ended before there were any: it was refused, and its retry went apart.
	q.wholeParts = sql(`update {{schema}}.xxl_job_part p set succeeded = true
	where p.trigger_id = any($1::bigint[]) and not p.succeeded and not exists (
		select from (select l.executor_sharding_param part, l.state = {{state.succeeded}} and l.snoozed is null done from {{schema}}.xxl_job_log l where l.id = p.trigger_id
			union all select l.executor_sharding_param, l.state = {{state.succeeded}} and l.snoozed is null from {{schema}}.xxl_job_log l
				where l.trigger_id = p.trigger_id and l.id > p.trigger_id) r
		where r.part is not null group by r.part having not bool_or(r.done))
	returning p.trigger_id`)
	q.insertOwed = sql(`insert into {{schema}}.xxl_job_owed (shard, log_id, trigger_id, parent_job, job_id, app_name, job_key, is_join, param_of, business_time, depth, trace)
	select * from unnest({{arg.shards}}::smallint[], {{arg.runs}}::bigint[], {{arg.triggers}}::bigint[], {{arg.parents}}::int[], {{arg.jobs}}::int[],
		{{arg.apps}}::text[], {{arg.keys}}::text[], {{arg.joins}}::boolean[], {{arg.params}}::smallint[], {{arg.business}}::bigint[], {{arg.depths}}::smallint[],
		{{arg.traces}}::text[])`)

	q.link = sql(`with gone as (delete from {{schema}}.xxl_job_link k where k.job_id = any({{arg.jobs}}::int[]))
	insert into {{schema}}.xxl_job_link (job_id, other_id, other_app, other_key)
	select * from unnest({{arg.of}}::int[], {{arg.others}}::int[], {{arg.apps}}::text[], {{arg.keys}}::text[])`)
	q.links = sql(`select ` + linkColumns.readBehind("i") + ` from {{schema}}.xxl_job_info i
	where i.id = any(array(select k.job_id from {{schema}}.xxl_job_link k union select i.id from {{schema}}.xxl_job_info i where ` + leads + `)) order by i.id`)
}
