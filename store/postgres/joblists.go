package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
)

// Whoever puts a list, or adds jobs of one, locks the head of the app; whoever goes by a
// list locks it in share mode, before any job. So a prune has seen the lists that were
// put before it, and a list that is put after it finds the job pruned.

// headPatience is how often a transaction is tried that waits for the head of an app,
// each time for lockPatience: when all replicas of a program start at once, and their
// list is long and new, they wait for each other.
const headPatience = 10

// pastHead repeats f while the database says that it has changed nothing, for others have
// locked what it needs.
func pastHead(ctx context.Context, f func() error) error {
	for i := 1; ; i++ {
		if err := f(); !lockedOut(err) || i == headPatience || ctx.Err() != nil {
			return err
		}
	}
}

// PutList keeps a list for its node and applies it where it is to be applied.
func (s *Store) PutList(ctx context.Context, put xxljob.ListPut) (xxljob.ListHead, error) {
	var head xxljob.ListHead
	err := s.inListTx(ctx, "put_list", func(t *tx) error {
		h := headRow{}
		lock := []statement{{s.sql.lockHead, []any{put.App}, h.read}}
		if put.Apply == xxljob.ApplyNewer || put.Apply == xxljob.ApplyAlways {
			lock = append([]statement{{s.sql.insertHead, []any{put.App, put.Generation, put.Digest, put.Node}, nil}}, lock...)
		}
		if err := t.do(ctx, lock...); err != nil {
			return err
		}
		then := []statement{{s.sql.putNodeList, putListArgs.values(named{
			"app": put.App, "incarnation": put.Incarnation, "generation": put.Generation, "prune": put.Prune, "digest": put.Digest, "keys": noNil(put.Keys),
		}), nil}}
		takes, err := s.takesHead(ctx, t, &put, &h)
		if err != nil {
			return err
		}
		if takes && (h.Generation != put.Generation || h.Digest != put.Digest) {
			h.ListHead = xxljob.ListHead{Generation: put.Generation, Digest: put.Digest, Node: put.Node}
			then = append(then, statement{s.sql.setHead, []any{put.App, put.Generation, put.Digest, put.Node}, nil})
		}
		head = h.ListHead
		return t.do(ctx, then...)
	})
	return head, failed(err, "put the list of %q for %s", put.App, put.Incarnation)
}

func (s *Store) inListTx(ctx context.Context, name string, f func(*tx) error) error {
	return pastHead(ctx, func() error { return s.inTx(ctx, bounds{name: name}, f) })
}

// headRow is the head of an app as it was read.
type headRow struct {
	xxljob.ListHead
	there bool
}

func (h *headRow) read(rows pgx.Rows) error {
	h.there = true
	return rows.Scan(&h.Generation, &h.Digest, &h.Node)
}

// takesHead reports whether the list becomes the head of its app, whose row is locked.
func (s *Store) takesHead(ctx context.Context, t *tx, put *xxljob.ListPut, h *headRow) (bool, error) {
	switch put.Apply {
	case xxljob.ApplyNewer:
		return put.Generation >= h.Generation, nil
	case xxljob.ApplyAlways:
		return true, nil
	case xxljob.ApplyInstead:
		if !h.there || h.ListHead != put.Over {
			return false, nil
		}
		others := 0
		err := t.do(ctx, statement{s.sql.otherLists, otherListsArgs.values(named{
			"app": put.App, "incarnation": put.Incarnation, "generation": put.Generation, "head_generation": h.Generation, "head_digest": h.Digest,
		}), scanInto(&others)})
		return err == nil && others == 0, err
	}
	return false, nil
}

func noNil(list []string) []string { return append([]string{}, list...) }

// Lists returns what the lists of an app say.
func (s *Store) Lists(ctx context.Context, app, incarnation string) (xxljob.ListView, error) {
	var h headRow
	var v xxljob.ListView
	node := func(rows pgx.Rows) error {
		n := xxljob.NodeList{JobList: xxljob.JobList{App: app}}
		err := rows.Scan(&n.Incarnation, &n.Node, &n.Generation, &n.Prune, &n.Digest)
		v.Nodes = append(v.Nodes, n)
		return err
	}
	job := func(rows pgx.Rows) error {
		var id int64
		var surplus bool
		err := rows.Scan(&id, &surplus)
		if surplus {
			v.Surplus = append(v.Surplus, id)
		} else {
			v.Pruned = append(v.Pruned, id)
		}
		return err
	}
	err := s.read(ctx, statement{s.sql.head, []any{app}, h.read}, statement{s.sql.nodeLists, []any{app}, node},
		statement{s.sql.surplus, []any{app, incarnation}, job})
	if err != nil {
		return xxljob.ListView{}, failed(err, "lists of %q", app)
	}
	v.Head = h.ListHead
	return v, nil
}

// NameJobs notes that a list names jobs, and returns them.
func (s *Store) NameJobs(ctx context.Context, list xxljob.ListID, keys []string) ([]xxljob.Job, error) {
	var jobs []xxljob.Job
	err := s.inListTx(ctx, "name_jobs", func(t *tx) error {
		jobs = nil
		if err := s.holdHead(ctx, t, s.sql.shareHead, list); err != nil {
			return err
		}
		return t.do(ctx, statement{s.sql.nameJobs, []any{list.App, noNil(keys), list.Generation}, nil},
			statement{s.sql.jobsByKeys, []any{list.App, noNil(keys)}, readJobs(&jobs)})
	})
	if err != nil {
		return nil, failed(err, "name jobs of %q in generation %d", list.App, list.Generation)
	}
	return jobs, nil
}

// holdHead keeps the list the head of its app until the end of the transaction, by a
// statement that locks the head.
func (s *Store) holdHead(ctx context.Context, t *tx, lock string, list xxljob.ListID) error {
	var h headRow
	err := t.do(ctx, statement{lock, []any{list.App}, h.read})
	if err == nil && (!h.there || h.Generation != list.Generation || h.Digest != list.Digest) {
		err = xxljob.ErrSuperseded
	}
	return err
}

// guard checks an edit's guard, before the job is locked. What it goes by holds until
// the end of the transaction.
func (s *Store) guard(ctx context.Context, t *tx, g *xxljob.ListGuard) error {
	if g == nil {
		return nil
	}
	if g.SurplusOf == "" {
		return s.holdHead(ctx, t, s.sql.shareHead, g.ListID)
	}
	var h headRow
	err := t.do(ctx, statement{s.sql.shareHead, []any{g.App}, h.read})
	if err == nil && h.there && h.Generation == g.Generation && h.Digest != g.Digest {
		err = xxljob.ErrSuperseded
	}
	return err
}

// guardJob checks of a guard what is about the job, which is locked.
func (s *Store) guardJob(ctx context.Context, t *tx, g *xxljob.ListGuard, job *xxljob.Job) error {
	holds := 0
	switch {
	case g == nil:
		return nil
	case job.App != g.App:
		return xxljob.ErrSuperseded
	case g.SurplusOf == "":
		return nil
	}
	err := t.do(ctx, statement{s.sql.isSurplus, surplusArgs.values(named{
		"app": g.App, "incarnation": g.SurplusOf, "job": job.ID, "generation": g.Generation, "digest": g.Digest,
	}), func(pgx.Rows) error { holds++; return nil }})
	if err == nil && holds == 0 {
		err = xxljob.ErrSuperseded
	}
	return err
}

// UnnameJob notes that no list names the job, and returns it. What no list has named
// cannot be pruned; so where that is read first, the job as it is read then stays.
func (s *Store) UnnameJob(ctx context.Context, app, key string) (xxljob.Job, error) {
	named := false
	var jobs []xxljob.Job
	err := s.readByIndex(ctx, statement{s.sql.isNamed, []any{app, key}, func(pgx.Rows) error { named = true; return nil }},
		statement{s.sql.jobByKey, []any{app, key}, readJobs(&jobs)})
	if err == nil && len(jobs) == 0 {
		err = xxljob.ErrNotFound
	}
	if err == nil && named {
		err = s.unname(ctx, &jobs[0])
	}
	if err != nil {
		return xxljob.Job{}, failed(err, "unname job %q of %q", key, app)
	}
	return jobs[0], nil
}

// unname locks the job, as a prune does, and reads it again.
func (s *Store) unname(ctx context.Context, job *xxljob.Job) error {
	return s.inTx(ctx, bounds{name: "unname_job"}, func(t *tx) error {
		now, err := s.lockJob(ctx, t, job.ID)
		if err == nil && (now.App != job.App || now.Key != job.Key) {
			err = xxljob.ErrNotFound // it has another key now
		}
		if err != nil {
			return err
		}
		*job = now
		return t.do(ctx, statement{s.sql.deleteNamed, []any{job.ID}, nil})
	})
}

// AddJobs inserts jobs that a list names, in few statements. The head of the app is
// locked, so that two calls with the same keys do not wait for each other's rows.
func (s *Store) AddJobs(ctx context.Context, list xxljob.ListID, jobs []xxljob.Job, first xxljob.FirstInstant) ([]xxljob.Job, error) {
	shards, err := s.shards(ctx)
	if err != nil {
		return nil, failed(err, "add jobs of %q", list.App)
	}
	a := adding{store: s}
	err = s.inListTx(ctx, "add_jobs", func(t *tx) error {
		a = adding{store: s}
		if err := s.holdHead(ctx, t, s.sql.lockHead, list); err != nil {
			return err
		}
		if len(jobs) == 0 {
			return nil
		}
		if err := a.prepare(ctx, t, jobs, shards, first); err != nil {
			return err
		}
		return a.insert(ctx, t, list.Generation)
	})
	if a.refused != nil {
		return nil, a.refused
	}
	if err != nil {
		return nil, failed(err, "add %d jobs of %q", len(jobs), list.App)
	}
	soonest := map[int]time.Time{}
	for _, j := range a.jobs {
		if at := soonest[j.Shard]; !j.Next.IsZero() && (at.IsZero() || j.Next.Before(at)) {
			soonest[j.Shard] = j.Next
		}
	}
	for shard, at := range soonest {
		s.wakeScan(shard, at)
	}
	return a.jobs, nil
}

// adding is a batch of jobs that is being added.
type adding struct {
	store   *Store
	jobs    []xxljob.Job
	refused error // by the caller's function
}

// prepare leaves out jobs whose keys are taken, and fills in what is the store's.
func (a *adding) prepare(ctx context.Context, t *tx, jobs []xxljob.Job, shards int, first xxljob.FirstInstant) error {
	s := a.store
	keys := make([]string, len(jobs))
	for i := range jobs {
		keys[i] = jobs[i].Key
	}
	taken := map[string]bool{}
	var ids []int64
	now := time.Time{}
	err := t.do(ctx, statement{s.sql.takenKeys, []any{jobs[0].App, keys}, func(rows pgx.Rows) error {
		var key string
		err := rows.Scan(&key)
		taken[key] = true
		return err
	}}, statement{s.sql.newJobIDs, []any{len(jobs)}, func(rows pgx.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}}, statement{s.sql.now, nil, scanInto(&now)})
	if err != nil {
		return err
	}
	for i, job := range jobs {
		if taken[job.Key] {
			continue
		}
		taken[job.Key] = true
		job = freshJob(job, ids[i], shards, now.UTC())
		if a.refused = setNext(&job, first); a.refused != nil {
			return a.refused
		}
		a.jobs = append(a.jobs, job)
	}
	return nil
}

// insert inserts the jobs. One whose key a call without a list has taken meanwhile is
// left out.
func (a *adding) insert(ctx context.Context, t *tx, generation int64) error {
	s := a.store
	if len(a.jobs) == 0 {
		return nil
	}
	inserted := make(map[int64]bool, len(a.jobs))
	err := t.do(ctx, statement{s.sql.insertJobs, columnsOf(a.jobs, jobColumns.values), func(rows pgx.Rows) error {
		var id int64
		err := rows.Scan(&id)
		inserted[id] = true
		return err
	}})
	if err != nil {
		return err
	}
	a.jobs = slices.DeleteFunc(a.jobs, func(j xxljob.Job) bool { return !inserted[j.ID] })
	if len(a.jobs) == 0 {
		return nil
	}
	next := columnsOf(a.jobs, func(j *xxljob.Job) []any { return s.insertNext(j).args })
	ids := make([]int64, len(a.jobs))
	for i := range a.jobs {
		ids[i] = a.jobs[i].ID
	}
	return t.do(ctx, statement{s.sql.insertNexts, next, nil},
		statement{s.sql.insertChanges, []any{ids, xxljob.Actor(ctx)}, nil},
		statement{s.sql.insertNamed, []any{ids, generation}, nil})
}

// columnsOf turns the values of rows into the columns of unnest: lists, each of one type.
func columnsOf(jobs []xxljob.Job, values func(*xxljob.Job) []any) []any {
	var columns []any
	for i := range jobs {
		row := values(&jobs[i])
		if columns == nil {
			columns = make([]any, len(row))
		}
		for c, v := range row {
			switch v := v.(type) {
			case string:
				columns[c] = appended(columns[c], v, len(jobs))
			case *string:
				columns[c] = appended(columns[c], v, len(jobs))
			case int:
				columns[c] = appended(columns[c], int64(v), len(jobs))
			case int64:
				columns[c] = appended(columns[c], v, len(jobs))
			case bool:
				columns[c] = appended(columns[c], v, len(jobs))
			case time.Time:
				columns[c] = appended(columns[c], v, len(jobs))
			case *time.Time:
				columns[c] = appended(columns[c], v, len(jobs))
			}
		}
	}
	return columns
}

func appended[T any](list any, v T, n int) []T {
	have, _ := list.([]T)
	if have == nil {
		have = make([]T, 0, n)
	}
	return append(have, v)
}

// byKeys are the jobs of an app that have one of some keys, as the table i of a from
// clause; app and keys are arguments. Every key is looked up by itself, which "offset 0"
// makes the planner do: asked for "any" of them it may read all jobs of the app and
// compare, for until the tables are analyzed it takes an app to have few. That it goes by
// the index each time takes the settings of a transaction of ours.
func byKeys(app, keys string) string {
	return `(select distinct k from pg_catalog.unnest(` + keys + `::pg_catalog.text[]) k where k <> '') k
	cross join lateral (select * from {{schema}}.xxl_job_info i where i.app_name = ` + app + ` and i.job_key = k.k offset 0) i`
}

// nextOfEach are the next times of these jobs, as the table n, each looked up by its job:
// a plan from when there were few jobs may go through all of them for each.
const nextOfEach = `
	cross join lateral (select * from {{schema}}.xxl_job_next n where n.job_id = i.id and n.shard = i.shard offset 0) n`

// putListArgs are those of a list that a node puts.
var putListArgs = argumentsOf("app incarnation generation prune digest keys")

// listsArgs are those of the reading of the lists of an app, otherListsArgs those of the
// counting of others, and surplusArgs those of the compare before a prune.
var (
	listsArgs      = argumentsOf("app incarnation")
	otherListsArgs = argumentsOf("app incarnation", "generation head_generation head_digest")
	surplusArgs    = argumentsOf("app incarnation", "job generation digest")
)

// jobListQueries are the statements of this file.
type jobListQueries struct {
	insertHead, head, lockHead, shareHead, setHead, putNodeList, dropLists, otherLists, nodeLists, surplus                           string
	isSurplus, nameJobs, isNamed, jobsByKeys, takenKeys, newJobIDs, insertJobs, insertNexts, insertChanges, insertNamed, deleteNamed string
}

func (q *jobListQueries) write() {
	q.insertHead = `insert into {{schema}}.xxl_job_list_head (app_name, generation, digest, node_id) values ($1, $2, $3, $4)
	on conflict (app_name) do nothing`
	q.head = `select h.generation, h.digest, h.node_id from {{schema}}.xxl_job_list_head h where h.app_name = $1`
	q.lockHead = q.head + ` for no key update`
	q.shareHead = q.head + ` for share`
	q.setHead = `update {{schema}}.xxl_job_list_head set generation = $2, digest = $3, node_id = $4 where app_name = $1`
	q.putNodeList = putListArgs.in(`insert into {{schema}}.xxl_job_list as l (app_name, incarnation, generation, prune, digest, job_keys)
	select {{arg.app}}, n.incarnation, {{arg.generation}}, {{arg.prune}}, {{arg.digest}}, {{arg.keys}} from {{schema}}.xxl_job_node n where n.incarnation = {{arg.incarnation}} for key share of n
	on conflict (app_name, incarnation) do update set generation = excluded.generation, prune = excluded.prune, digest = excluded.digest, job_keys = excluded.job_keys
	where (l.generation, l.prune, l.digest) is distinct from (excluded.generation, excluded.prune, excluded.digest)`)
	q.dropLists = `delete from {{schema}}.xxl_job_list l where l.incarnation = $1
	and not exists (select from {{schema}}.xxl_job_node n where n.incarnation = $1)`
	// counted are the lists that count.
	counted := func(columns string) string {
		return `select ` + columns + ` from {{schema}}.xxl_job_list l
	join {{schema}}.xxl_job_node n on n.incarnation = l.incarnation and not n.has_left where l.app_name = {{arg.app}}`
	}
	q.otherLists = otherListsArgs.in(counted(`count(*)`) + ` and l.incarnation <> {{arg.incarnation}}
	and (l.generation > {{arg.generation}} or l.generation = {{arg.head_generation}} and l.digest = {{arg.head_digest}})`)
	q.nodeLists = listsArgs.in(counted(`l.incarnation, n.node_id, l.generation, l.prune, l.digest`) + ` order by l.incarnation`)
	generation := `least(m.generation, (select h.generation from {{schema}}.xxl_job_list_head h where h.app_name = {{arg.app}}))`
	// The keys of all lists are hashed once: "not in" with a subquery that knows nothing
	// of the row.
	q.surplus = listsArgs.in(`with lists as materialized (` + counted(`l.incarnation, l.generation, l.prune, l.job_keys`) + `),
	mine as materialized (select * from lists where incarnation = {{arg.incarnation}})
	(select i.id, true from {{schema}}.xxl_job_info i join {{schema}}.xxl_job_named m on m.job_id = i.id
	where i.app_name = {{arg.app}} and i.trigger_status = 1 and i.job_key <> '' and ` + generation + ` <= (select generation from mine where prune)
	and i.job_key not in (select unnest(job_keys) from lists) order by i.id limit 10000)
	union all
	(select i.id, false from {{schema}}.xxl_job_info i
	where i.app_name = {{arg.app}} and i.trigger_status = 0 and i.stop_reason = '` + xxljob.StopPruned + `'
	and i.job_key in (select unnest(job_keys) from mine) order by i.id limit 10000)`)
	q.isSurplus = surplusArgs.in(`select 1 from {{schema}}.xxl_job_info i join {{schema}}.xxl_job_named m on m.job_id = i.id
	where i.id = {{arg.job}} and i.app_name = {{arg.app}} and i.trigger_status = 1 and i.job_key <> ''
	and ` + generation + ` <= (` + counted(`l.generation`) + ` and l.incarnation = {{arg.incarnation}} and l.prune and l.generation = {{arg.generation}} and l.digest = {{arg.digest}})
	and not exists (` + counted(`1`) + ` and i.job_key = any(l.job_keys))`)
	keyed := byKeys("$1", "$2")
	q.nameJobs = `insert into {{schema}}.xxl_job_named as m (job_id, generation)
	select i.id, $3::bigint from ` + keyed + `
	where (select o.generation from {{schema}}.xxl_job_named o where o.job_id = i.id) is distinct from $3::bigint order by i.id
	on conflict (job_id) do update set generation = excluded.generation`
	q.isNamed = `select 1 from {{schema}}.xxl_job_info i join {{schema}}.xxl_job_named m on m.job_id = i.id
	where i.app_name = $1 and i.job_key = $2`
	q.jobsByKeys = `select ` + definitionColumns + `, ` + dueColumns + ` from ` + keyed + nextOfEach + ` order by i.id`
	q.takenKeys = `select i.job_key from ` + keyed
	q.newJobIDs = `select nextval('{{literal}}.xxl_job_info_id') from generate_series(1, $1::int)`
	q.insertJobs = `insert into {{schema}}.xxl_job_info (` + jobColumns.names("") + `)
	select * from ` + jobColumns.unnested() + ` on conflict (app_name, job_key) do nothing returning id`
	q.insertNexts = `insert into {{schema}}.xxl_job_next (` + nextColumns.names("") + `)
	select * from ` + nextColumns.unnested()
	q.insertChanges = `insert into {{schema}}.xxl_job_change (job_id, version, at, actor, verb)
	select c.id, 1, {{now}}, $2::text, 'add' from unnest($1::int[]) c(id)`
	q.insertNamed = `insert into {{schema}}.xxl_job_named (job_id, generation) select c.id, $2::bigint from unnest($1::int[]) c(id)`
	q.deleteNamed = `delete from {{schema}}.xxl_job_named where job_id = $1`
}
