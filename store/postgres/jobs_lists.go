package postgres

// Lists of the jobs that programs define, and the jobs that are added by them.
//
// Whoever puts a list, or adds jobs of one, locks the head of the app; whoever goes by a
// list locks it in share mode, before any job. So a prune has seen the lists that were
// put before it, and a list that is put after it finds the job pruned.

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

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
func (s *Store) PutList(ctx context.Context, put store.ListPut) (store.ListHead, error) {
	var head store.ListHead
	err := s.inListTx(ctx, "put_list", func(t *tx) error {
		h := headRow{}
		lock := []statement{s.sql.lockHead.with(put.App).into(h.read)}
		if put.Apply == store.ApplyNewer || put.Apply == store.ApplyAlways {
			lock = append([]statement{s.sql.insertHead.by(named{
				{"app", put.App}, {"generation", put.Generation}, {"digest", put.Digest}, {"node", put.Node},
			})}, lock...)
		}
		if err := t.do(ctx, lock...); err != nil {
			return err
		}
		then := []statement{s.sql.putNodeList.by(named{
			{"app", put.App}, {"incarnation", put.Incarnation}, {"generation", put.Generation}, {"prune", put.Prune},
			{"digest", put.Digest}, {"keys", noNil(put.Keys)},
		})}
		takes, err := s.takesHead(ctx, t, &put, &h)
		if err != nil {
			return err
		}
		if takes && (h.Generation != put.Generation || h.Digest != put.Digest) {
			h.ListHead = store.ListHead{Generation: put.Generation, Digest: put.Digest, Node: put.Node}
			then = append(then, s.sql.setHead.by(named{
				{"app", put.App}, {"generation", put.Generation}, {"digest", put.Digest}, {"node", put.Node},
			}))
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
	store.ListHead
	there bool
}

func (h *headRow) read(rows pgx.Rows) error {
	h.there = true
	return rows.Scan(&h.Generation, &h.Digest, &h.Node)
}

// takesHead reports whether the list becomes the head of its app, whose row is locked.
func (s *Store) takesHead(ctx context.Context, t *tx, put *store.ListPut, h *headRow) (bool, error) {
	switch put.Apply {
	case store.ApplyNewer:
		return put.Generation >= h.Generation, nil
	case store.ApplyAlways:
		return true, nil
	case store.ApplyInstead:
		if !h.there || h.ListHead != put.Over {
			return false, nil
		}
		others := 0
		err := t.do(ctx, s.sql.otherLists.by(named{
			{"app", put.App}, {"incarnation", put.Incarnation}, {"generation", put.Generation},
			{"head_generation", h.Generation}, {"head_digest", h.Digest},
		}).into(scanInto(&others)))
		return err == nil && others == 0, err
	}
	return false, nil
}

func noNil(list []string) []string { return append([]string{}, list...) }

// Lists returns what the lists of an app say.
func (s *Store) Lists(ctx context.Context, app, incarnation string) (store.ListView, error) {
	var h headRow
	var v store.ListView
	node := func(rows pgx.Rows) error {
		n := store.NodeList{JobList: store.JobList{App: app}}
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
	err := s.read(ctx, s.sql.head.with(app).into(h.read), s.sql.nodeLists.by(named{{"app", app}}).into(node),
		s.sql.surplus.by(named{{"app", app}, {"incarnation", incarnation}}).into(job))
	if err != nil {
		return store.ListView{}, failed(err, "lists of %q", app)
	}
	v.Head = h.ListHead
	return v, nil
}

// NameJobs notes that a list names jobs, and returns them.
func (s *Store) NameJobs(ctx context.Context, list store.ListID, keys []string) ([]store.Job, error) {
	var jobs []store.Job
	err := s.inListTx(ctx, "name_jobs", func(t *tx) error {
		jobs = nil
		if err := s.holdHead(ctx, t, s.sql.shareHead, list); err != nil {
			return err
		}
		return t.do(ctx, s.sql.nameJobs.by(named{{"app", list.App}, {"keys", noNil(keys)}, {"generation", list.Generation}}),
			s.sql.jobsByKeys.by(named{{"app", list.App}, {"keys", noNil(keys)}}).into(readJobs(&jobs)))
	})
	if err != nil {
		return nil, failed(err, "name jobs of %q in generation %d", list.App, list.Generation)
	}
	return jobs, nil
}

// holdHead keeps the list the head of its app until the end of the transaction, by a
// statement that locks the head.
func (s *Store) holdHead(ctx context.Context, t *tx, lock query, list store.ListID) error {
	var h headRow
	err := t.do(ctx, lock.with(list.App).into(h.read))
	if err == nil && (!h.there || h.Generation != list.Generation || h.Digest != list.Digest) {
		err = store.ErrSuperseded
	}
	return err
}

// guard checks an edit's guard, before the job is locked. What it goes by holds until
// the end of the transaction.
func (s *Store) guard(ctx context.Context, t *tx, g *store.ListGuard) error {
	if g == nil {
		return nil
	}
	if g.SurplusOf == "" {
		return s.holdHead(ctx, t, s.sql.shareHead, g.ListID)
	}
	var h headRow
	err := t.do(ctx, s.sql.shareHead.with(g.App).into(h.read))
	if err == nil && h.there && h.Generation == g.Generation && h.Digest != g.Digest {
		err = store.ErrSuperseded
	}
	return err
}

// guardJob checks of a guard what is about the job, which is locked.
func (s *Store) guardJob(ctx context.Context, t *tx, g *store.ListGuard, job *store.Job) error {
	holds := 0
	switch {
	case g == nil:
		return nil
	case job.App != g.App:
		return store.ErrSuperseded
	case g.SurplusOf == "":
		return nil
	}
	err := t.do(ctx, s.sql.isSurplus.by(named{
		{"app", g.App}, {"incarnation", g.SurplusOf}, {"job", job.ID}, {"generation", g.Generation},
		{"digest", g.Digest},
	}).into(func(pgx.Rows) error { holds++; return nil }))
	if err == nil && holds == 0 {
		err = store.ErrSuperseded
	}
	return err
}

// UnnameJob notes that no list names the job, and returns it. What no list has named
// cannot be pruned; so where that is read first, the job as it is read then stays.
func (s *Store) UnnameJob(ctx context.Context, app, key string) (store.Job, error) {
	if !store.CanBeStored(app, key) {
		return store.Job{}, failed(store.ErrNotFound, "job %q of %q", key, app)
	}
	named := false
	var jobs []store.Job
	err := s.readByIndex(ctx, s.sql.isNamed.with(app, key).into(func(pgx.Rows) error { named = true; return nil }),
		s.sql.jobByKey.with(app, key).into(readJobs(&jobs)))
	if err == nil && len(jobs) == 0 {
		err = store.ErrNotFound
	}
	if err == nil && named {
		err = s.unname(ctx, &jobs[0])
	}
	if err != nil {
		return store.Job{}, failed(err, "unname job %q of %q", key, app)
	}
	return jobs[0], nil
}

// unname locks the job, as a prune does, and reads it again.
func (s *Store) unname(ctx context.Context, job *store.Job) error {
	return s.inTx(ctx, bounds{name: "unname_job"}, func(t *tx) error {
		now, err := s.lockJob(ctx, t, job.ID)
		if err == nil && (now.App != job.App || now.Key != job.Key) {
			err = store.ErrNotFound // it has another key now
		}
		if err != nil {
			return err
		}
		*job = now
		return t.do(ctx, s.sql.deleteNamed.with(job.ID))
	})
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

// AddJobs inserts jobs that a list names, in few statements. The head of the app is
// locked, so that two calls with the same keys do not wait for each other's rows.
func (s *Store) AddJobs(ctx context.Context, list store.ListID, jobs []store.Job, first store.FirstInstant) ([]store.Job, error) {
	for i := range jobs {
		if err := store.CheckTexts("job", jobs[i]); err != nil {
			return nil, failed(err, "add jobs of %q", list.App)
		}
	}
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
	jobs    []store.Job
	refused error // by the caller's function
}

// prepare leaves out jobs whose keys are taken, and fills in what is the store's.
func (a *adding) prepare(ctx context.Context, t *tx, jobs []store.Job, shards int, first store.FirstInstant) error {
	s := a.store
	keys := make([]string, len(jobs))
	for i := range jobs {
		keys[i] = jobs[i].Key
	}
	taken := map[string]bool{}
	var ids []int64
	now := time.Time{}
	err := t.do(ctx, s.sql.takenKeys.by(named{{"app", jobs[0].App}, {"keys", keys}}).into(func(rows pgx.Rows) error {
		var key string
		err := rows.Scan(&key)
		taken[key] = true
		return err
	}), s.sql.newJobIDs.with(len(jobs)).into(func(rows pgx.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}), s.sql.now.with().into(scanInto(&now)))
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
	err := t.do(ctx, s.sql.insertJobs.by(infoColumns.ofAll(a.jobs)).into(func(rows pgx.Rows) error {
		var id int64
		err := rows.Scan(&id)
		inserted[id] = true
		return err
	}))
	if err != nil {
		return err
	}
	a.jobs = slices.DeleteFunc(a.jobs, func(j store.Job) bool { return !inserted[j.ID] })
	if len(a.jobs) == 0 {
		return nil
	}
	ids := make([]int64, len(a.jobs))
	for i := range a.jobs {
		ids[i] = a.jobs[i].ID
	}
	write := []statement{s.sql.insertNexts.by(nextColumns.ofAll(a.jobs)), s.noteAdded(ctx, a.jobs), s.sql.insertNamed.with(ids, generation)}
	if naming := linked(a.jobs); len(naming) > 0 {
		write = append(write, s.link(naming))
	}
	return t.do(ctx, write...)
}

// listQueries are the statements of this file.
type listQueries struct {
	insertHead, head, lockHead, shareHead, setHead, putNodeList, dropLists, otherLists,
	nodeLists, surplus, isSurplus, nameJobs, isNamed, jobsByKeys, deleteNamed query
	takenKeys, newJobIDs, insertJobs, insertNexts, insertNamed query
}

func (q *listQueries) define(sql template) {
	q.insertHead = sql(`insert into {{schema}}.xxl_job_list_head (app_name, generation, digest, node_id)
	values ({{arg.app}}, {{arg.generation}}, {{arg.digest}}, {{arg.node}})
	on conflict (app_name) do nothing`)
	head := `select h.generation, h.digest, h.node_id from {{schema}}.xxl_job_list_head h where h.app_name = $1`
	q.head = sql(head)
	q.lockHead = sql(head + ` for no key update`)
	q.shareHead = sql(head + ` for share`)
	q.setHead = sql(`update {{schema}}.xxl_job_list_head set generation = {{arg.generation}}, digest = {{arg.digest}},
	node_id = {{arg.node}} where app_name = {{arg.app}}`)
	q.putNodeList = sql(`insert into {{schema}}.xxl_job_list as l (app_name, incarnation, generation, prune, digest, job_keys)
	select {{arg.app}}, n.incarnation, {{arg.generation}}, {{arg.prune}}, {{arg.digest}}, {{arg.keys}}
		from {{schema}}.xxl_job_node n where n.incarnation = {{arg.incarnation}} for key share of n
	on conflict (app_name, incarnation) do update set generation = excluded.generation, prune = excluded.prune,
		digest = excluded.digest, job_keys = excluded.job_keys
	where (l.generation, l.prune, l.digest) is distinct from (excluded.generation, excluded.prune, excluded.digest)`)
	q.dropLists = sql(`delete from {{schema}}.xxl_job_list l where l.incarnation = $1
	and not exists (select from {{schema}}.xxl_job_node n where n.incarnation = $1)`)
	// counted are the lists that count.
	counted := func(columns string) string {
		return `select ` + columns + ` from {{schema}}.xxl_job_list l
	join {{schema}}.xxl_job_node n on n.incarnation = l.incarnation and not n.has_left where l.app_name = {{arg.app}}`
	}
	q.otherLists = sql(counted(`count(*)`) + ` and l.incarnation <> {{arg.incarnation}}
	and (l.generation > {{arg.generation}} or l.generation = {{arg.head_generation}} and l.digest = {{arg.head_digest}})`)
	q.nodeLists = sql(counted(`l.incarnation, n.node_id, l.generation, l.prune, l.digest`) + ` order by l.incarnation`)
	generation := `least(m.generation, (select h.generation from {{schema}}.xxl_job_list_head h where h.app_name = {{arg.app}}))`
	// The keys of all lists are hashed once: "not in" with a subquery that knows nothing
	// of the row.
	q.surplus = sql(`with lists as materialized (` + counted(`l.incarnation, l.generation, l.prune, l.job_keys`) + `),
	mine as materialized (select * from lists where incarnation = {{arg.incarnation}})
	(select i.id, true from {{schema}}.xxl_job_info i join {{schema}}.xxl_job_named m on m.job_id = i.id
	where i.app_name = {{arg.app}} and i.trigger_status = {{status.enabled}} and i.job_key <> '' and ` + generation + ` <= (select generation from mine where prune)
	and i.job_key not in (select unnest(job_keys) from lists) order by i.id limit 10000)
	union all
	(select i.id, false from {{schema}}.xxl_job_info i
	where i.app_name = {{arg.app}} and i.trigger_status = {{status.stopped}} and i.stop_reason = '` + store.StopPruned + `'
	and i.job_key in (select unnest(job_keys) from mine) order by i.id limit 10000)`)
	q.isSurplus = sql(`select 1 from {{schema}}.xxl_job_info i join {{schema}}.xxl_job_named m on m.job_id = i.id
	where i.id = {{arg.job}} and i.app_name = {{arg.app}} and i.trigger_status = {{status.enabled}} and i.job_key <> ''
	and ` + generation + ` <= (` + counted(`l.generation`) + ` and l.incarnation = {{arg.incarnation}} and l.prune
		and l.generation = {{arg.generation}} and l.digest = {{arg.digest}})
	and not exists (` + counted(`1`) + ` and i.job_key = any(l.job_keys))`)
	keyed := byKeys("{{arg.app}}", "{{arg.keys}}")
	q.nameJobs = sql(`insert into {{schema}}.xxl_job_named as m (job_id, generation)
	select i.id, {{arg.generation}}::bigint from ` + keyed + `
	where (select o.generation from {{schema}}.xxl_job_named o where o.job_id = i.id) is distinct from {{arg.generation}}::bigint order by i.id
	on conflict (job_id) do update set generation = excluded.generation`)
	q.isNamed = sql(`select 1 from {{schema}}.xxl_job_info i join {{schema}}.xxl_job_named m on m.job_id = i.id
	where i.app_name = $1 and i.job_key = $2`)
	q.jobsByKeys = sql(`select ` + jobColumns + ` from ` + keyed + nextOfEach + ` order by i.id`)
	q.deleteNamed = sql(`delete from {{schema}}.xxl_job_named where job_id = $1`)

	q.takenKeys = sql(`select i.job_key from ` + byKeys("{{arg.app}}", "{{arg.keys}}"))
	q.newJobIDs = sql(`select nextval('{{literal}}.xxl_job_info_id') from generate_series(1, $1::int)`)
	q.insertJobs = sql(`insert into {{schema}}.xxl_job_info (` + infoColumns.names() + `)
	select * from ` + infoColumns.unnested() + ` on conflict (app_name, job_key) do nothing returning id`)
	q.insertNexts = sql(`insert into {{schema}}.xxl_job_next (` + nextColumns.names() + `)
	select * from ` + nextColumns.unnested())
	q.insertNamed = sql(`insert into {{schema}}.xxl_job_named (job_id, generation) select c.id, $2::bigint from unnest($1::int[]) c(id)`)
}
