package postgres

// Windows of jobs that run behind others. A row of xxl_job_window is an open one; a closed one
// has a run or a record under its key, and no row.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// window is a window of a job, with what has succeeded for it.
type window struct {
	job, begins int64
	shard       int
	expires     int64 // from now on, where it is to be opened
	parent      int64
	depth       int
	trace       string  // of the last success that has come in
	succeeded   []int64 // ids of jobs
	opened      bool
}

// joining are the definitions of jobs that run behind others, and whom these name by key.
type joining struct {
	jobs map[int64]*store.Job
	ids  map[[2]string]int64
}

// readJoins reads them.
func (s *Store) readJoins(ctx context.Context, t *tx, ids []int64) (joining, error) {
	j := joining{jobs: map[int64]*store.Job{}, ids: map[[2]string]int64{}}
	var found []store.Job
	if err := t.do(ctx, s.sql.definitions.with(ids).into(infoColumns.readInto(&found))); err != nil {
		return j, err
	}
	var apps, keys []string
	for i := range found {
		job := &found[i]
		if len(job.After)+len(job.AfterKeys) == 0 {
			continue
		}
		j.jobs[job.ID] = job
		for _, ref := range job.AfterKeys {
			app, key, _ := store.SplitRef(ref)
			apps, keys = append(apps, app), append(keys, key)
		}
	}
	if len(apps) == 0 {
		return j, nil
	}
	return j, t.do(ctx, s.sql.namedByKeys.by(named{{"apps", apps}, {"keys", keys}}).into(func(rows pgx.Rows) error {
		var id int64
		var ref [2]string
		err := rows.Scan(&ref[0], &ref[1], &id)
		j.ids[ref] = id
		return err
	}))
}

// missing are the jobs that have not succeeded for a window.
func (j *joining) missing(w *window) []string {
	return j.jobs[w.job].Missing(func(id int64, app, key string) bool {
		if id == 0 {
			id = j.ids[[2]string{app, key}]
		}
		return id != 0 && slices.Contains(w.succeeded, id)
	})
}

// follower is what follows when the window is closed.
func (w *window) follower() follower {
	return follower{job: w.job, key: store.WindowKey(fromMilli(w.begins)), parent: w.parent, depth: w.depth, business: w.begins, instant: w.begins, trace: w.trace}
}

// skipHeldWindows leaves what counts for windows that others have locked for later.
func (p *paying) skipHeldWindows(ctx context.Context, t *tx) error {
	var joins []int64
	for i := range p.rows {
		if w := &p.rows[i]; w.Join && w.to != 0 {
			joins = append(joins, w.to)
		}
	}
	if len(joins) == 0 {
		return nil
	}
	var err error
	if p.joins, err = p.store.readJoins(ctx, t, joins); err != nil {
		return err
	}
	p.leaveUnknown()
	windows := p.windows(&p.joins)
	jobs, begins := make([]int64, len(windows)), make([]int64, len(windows))
	for i, w := range windows {
		jobs[i], begins[i] = w.job, w.begins
	}
	held := map[[2]int64]bool{}
	err = t.do(ctx, p.store.sql.heldWindows.by(named{{"jobs", jobs}, {"begins", begins}}).into(func(rows pgx.Rows) error {
		var key [2]int64
		err := rows.Scan(&key[0], &key[1])
		held[key] = true
		return err
	}))
	p.rows = slices.DeleteFunc(p.rows, func(w owedRow) bool {
		return w.Join && p.joins.jobs[w.to] != nil && held[[2]int64{w.to, w.begins}]
	})
	return err
}

// leaveUnknown works out the windows that the rows count for. What counts for one that this process
// cannot work out is left for another.
func (p *paying) leaveUnknown() {
	left := p.rows[:0]
	unknown := map[int64]bool{}
	for _, w := range p.rows {
		if job := p.joins.jobs[w.to]; w.Join && job != nil {
			var begins time.Time
			if !unknown[w.to] { // each time it is looked for in files
				var err error
				begins, err = job.Window(w.Business)
				unknown[w.to] = err != nil
			}
			if unknown[w.to] {
				p.left.AddUnknown(w.Shard, job)
				continue
			}
			w.begins = milli(stored(begins))
		}
		left = append(left, w)
	}
	p.rows = left
}

// unknownFor is how long it is remembered that the windows of a job are unknown: it may have been edited by
// another process, and zones may have come.
const unknownFor = 10 * time.Second

// unknownWindows are jobs whose windows this process cannot work out, so that what is owed to them is not taken by each
// payment, and left again. It is safe for concurrent use, and its zero value is ready.
type unknownWindows struct {
	mu   sync.Mutex
	jobs map[int64]unknownJob
}

// unknownJob is one of them.
type unknownJob struct {
	until time.Time
	limit int // of the payment that has found it: one of more may see more of what is owed
	left  []store.UnknownWindow
}

// now returns the jobs that are remembered, and what was left in the shards.
func (u *unknownWindows) now(q store.OwedQuery) (jobs []int64, left []store.UnknownWindow) {
	u.mu.Lock()
	defer u.mu.Unlock()
	jobs = []int64{}
	maps.DeleteFunc(u.jobs, func(_ int64, job unknownJob) bool { return time.Now().After(job.until) })
	for id, job := range u.jobs {
		if job.limit < q.Limit {
			continue
		}
		in := slices.DeleteFunc(slices.Clone(job.left), func(w store.UnknownWindow) bool {
			return !slices.ContainsFunc(q.Shards, func(sh store.Shard) bool { return sh.ID == w.Shard })
		})
		if len(in) == len(job.left) { // else shards have moved: it is seen anew
			jobs, left = append(jobs, id), append(left, in...)
		}
	}
	return jobs, left
}

// add remembers what a payment has left. What it was told by now stays as it is.
func (u *unknownWindows) add(q store.OwedQuery, left []store.UnknownWindow) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.jobs == nil {
		u.jobs = map[int64]unknownJob{}
	}
	found := map[int64]unknownJob{}
	for _, w := range left {
		if was, known := u.jobs[w.JobID]; known && was.limit >= q.Limit {
			continue
		}
		job := found[w.JobID]
		found[w.JobID] = unknownJob{time.Now().Add(unknownFor), q.Limit, append(job.left, w)}
	}
	maps.Copy(u.jobs, found)
}

// forget forgets a job that may have been edited.
func (u *unknownWindows) forget(job int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.jobs, job)
}

// arrive counts successes for the windows of the jobs.
func (p *paying) arrive(ctx context.Context, t *tx) error {
	j := p.joins
	windows := p.windows(&j)
	if len(windows) == 0 {
		return nil
	}
	if err := p.upsert(ctx, t, windows); err != nil {
		return err
	}
	closed, err := p.closed(ctx, t, windows)
	if err != nil {
		return err
	}
	var gone []*window
	for _, w := range windows {
		switch {
		case slices.Contains(closed, w):
			gone = append(gone, w) // it was closed before, and is not opened again
		case len(j.missing(w)) == 0:
			gone = append(gone, w)
			p.add(w.follower())
		case w.opened && !slices.Contains(p.opened, w.shard):
			p.opened = append(p.opened, w.shard)
		}
	}
	return deleteWindows(ctx, t, p.store, gone)
}

// windows are those of the rows, each once, in the order of the key.
func (p *paying) windows(j *joining) (windows []*window) {
	at := map[[2]int64]*window{}
	for i := range p.rows {
		row := &p.rows[i]
		job := j.jobs[row.to]
		if !row.Join || job == nil {
			continue
		}
		key := [2]int64{job.ID, row.begins}
		w := at[key]
		if w == nil {
			w = &window{job: job.ID, begins: key[1], shard: job.Shard, expires: job.WindowTimeout().Milliseconds()}
			at[key], windows = w, append(windows, w)
		}
		w.parent, w.depth, w.trace = row.RunID, max(w.depth, row.Depth), row.Trace
		if !slices.Contains(w.succeeded, row.ParentID) {
			w.succeeded = append(w.succeeded, row.ParentID)
		}
	}
	slices.SortFunc(windows, func(a, b *window) int { return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.begins, b.begins)) })
	return windows
}

// upsert opens the windows, or adds to those that are open, and locks them. What they then
// hold is read back, one by one: a row holds as many jobs as a definition names.
func (p *paying) upsert(ctx context.Context, t *tx, windows []*window) error {
	statements := make([]statement, len(windows))
	for i, w := range windows {
		statements[i] = p.store.sql.upsertWindow.by(named{
			{"job", w.job}, {"begins", w.begins}, {"shard", w.shard}, {"timeout", w.expires}, {"parent", w.parent}, {"depth", w.depth}, {"succeeded", w.succeeded},
		}).into(scanInto(&w.depth, &w.succeeded, &w.opened))
	}
	return t.do(ctx, statements...)
}

// closed are those of the windows that have a run or a record.
func (p *paying) closed(ctx context.Context, t *tx, windows []*window) (closed []*window, err error) {
	jobs, keys := make([]int64, len(windows)), make([]string, len(windows))
	for i, w := range windows {
		jobs[i], keys[i] = w.job, store.WindowKey(fromMilli(w.begins))
	}
	err = t.do(ctx, p.store.sql.closedWindows.by(named{{"jobs", jobs}, {"keys", keys}}).into(func(rows pgx.Rows) error {
		var at int
		err := rows.Scan(&at)
		closed = append(closed, windows[at-1])
		return err
	}))
	return closed, err
}

func deleteWindows(ctx context.Context, t *tx, s *Store, windows []*window) error {
	if len(windows) == 0 {
		return nil
	}
	jobs, begins := make([]int64, len(windows)), make([]int64, len(windows))
	for i, w := range windows {
		jobs[i], begins[i] = w.job, w.begins
	}
	return t.do(ctx, s.sql.deleteWindows.by(named{{"jobs", jobs}, {"begins", begins}}))
}

// ExpireWindows closes windows that are over.
func (s *Store) ExpireWindows(ctx context.Context, q store.WindowQuery) (store.Expired, error) {
	if len(shardIDs(q.Shards)) == 0 {
		return store.Expired{}, ended(ctx)
	}
	next, err := s.nextWindow(ctx, q.Shards)
	if err != nil || next == 0 || next > milli(stored(q.Before)) || q.Limit <= 0 {
		return store.Expired{Next: fromMilli(next)}, failed(err, "look for windows that are over")
	}
	closed, records := 0, []store.Run(nil)
	why, err := halves(ctx, &s.aside.windows, q.Limit, func(limit int, aside [][2]int64) ([][2]int64, error) {
		var e expiring
		err := s.withPartitions(ctx, func() error {
			return s.inTx(ctx, bounds{name: "expire_windows", lock: quickPatience}, func(t *tx) error {
				e = expiring{leading: leading{store: s}}
				return e.run(ctx, t, q, limit, aside)
			})
		})
		keys := make([][2]int64, len(e.windows))
		for i, w := range e.windows {
			keys[i] = [2]int64{w.job, w.begins}
		}
		if err != nil {
			if len(keys) == 1 {
				err = fmt.Errorf("the window of job %d from %v: %w", keys[0][0], fromMilli(keys[0][1]), err)
			}
			return keys, err
		}
		e.tellLed()
		closed, records = closed+len(keys), append(records, e.skipped...)
		return keys, nil
	})
	if err != nil {
		return store.Expired{}, failed(err, "close windows that are over")
	}
	next, err = s.nextWindow(ctx, q.Shards)
	return store.Expired{Windows: closed, Records: records, Next: fromMilli(next), Refused: failed(why, "close windows that are over")}, failed(err, "look for windows that are over")
}

// nextWindow is when the first window of the shards is over, 0 where none is open.
func (s *Store) nextWindow(ctx context.Context, shards []store.Shard) (next int64, err error) {
	ids, epochs := fenceArgs(shards)
	return next, s.read(ctx, s.sql.nextWindow.with(ids, epochs).into(scanInto(&next)))
}

// expiring is a transaction that closes windows.
type expiring struct {
	leading
	windows []*window
}

// run closes so many at most, but for those that are left aside.
func (e *expiring) run(ctx context.Context, t *tx, q store.WindowQuery, limit int, aside [][2]int64) error {
	s := e.store
	asideJobs, asideBegins := make([]int64, len(aside)), make([]int64, len(aside))
	for i, w := range aside {
		asideJobs[i], asideBegins[i] = w[0], w[1]
	}
	shards, epochs := fenceArgs(q.Shards)
	var jobs []int64
	err := t.do(ctx, s.sql.overWindows.by(named{
		{"shards", shards}, {"epochs", epochs}, {"before", milli(stored(q.Before))}, {"limit", limit},
		{"aside_jobs", asideJobs}, {"aside_begins", asideBegins},
	}).into(func(rows pgx.Rows) error {
		w := &window{}
		err := rows.Scan(&w.job, &w.begins, &w.parent, &w.depth, &w.succeeded)
		e.windows, jobs = append(e.windows, w), append(jobs, w.job)
		return err
	}))
	if err != nil || len(e.windows) == 0 {
		return err
	}
	_, held, err := s.keepFree(ctx, t, slices.Clone(jobs))
	if err != nil {
		return err
	}
	e.windows = slices.DeleteFunc(e.windows, func(w *window) bool { return slices.Contains(held, w.job) })
	j, err := s.readJoins(ctx, t, jobs)
	if err != nil {
		return err
	}
	for _, w := range e.windows {
		if j.jobs[w.job] == nil {
			continue
		}
		f := w.follower()
		if missing := j.missing(w); len(missing) > 0 {
			f.due, f.reason, f.line = w.begins, store.ReasonJoin, store.WindowOver(fromMilli(w.begins), missing)
		}
		e.add(f)
	}
	if err := e.lead(ctx, t); err != nil {
		return err
	}
	return deleteWindows(ctx, t, s, e.windows)
}

// windowQueries are the statements of this file.
type windowQueries struct {
	namedByKeys, upsertWindow, closedWindows, heldWindows, deleteWindows, nextWindow, overWindows query
}

func (q *windowQueries) define(sql template) {
	q.namedByKeys = sql(`select i.app_name, i.job_key, i.id from unnest({{arg.apps}}::text[], {{arg.keys}}::text[]) r(app, key)
	join {{schema}}.xxl_job_info i on i.app_name = r.app collate "C" and i.job_key = r.key collate "C"`)
	q.upsertWindow = sql(`insert into {{schema}}.xxl_job_window as w (job_id, begins, shard, expires, parent_id, depth, succeeded)
	values ({{arg.job}}, {{arg.begins}}, {{arg.shard}}, ` + milliseconds("{{now}}") + ` + {{arg.timeout}}::bigint, {{arg.parent}}, {{arg.depth}}, {{arg.succeeded}}::int[])
	on conflict (job_id, begins) do update set parent_id = excluded.parent_id, depth = greatest(w.depth, excluded.depth),
		succeeded = array(select distinct s.id from unnest(w.succeeded operator(pg_catalog.||) excluded.succeeded) s(id) order by s.id)
	returning w.depth, w.succeeded, w.xmax = 0`)
	q.closedWindows = sql(`select r.ord from unnest({{arg.jobs}}::int[], {{arg.keys}}::text[]) with ordinality r(job_id, key, ord)
	join {{schema}}.xxl_job_trigger_key k on k.job_id = r.job_id and k.trigger_key = r.key collate "C"`)
	of := `(w.job_id, w.begins) in (select r.job_id, r.begins from unnest({{arg.jobs}}::int[], {{arg.begins}}::bigint[]) r(job_id, begins))`
	q.heldWindows = sql(`with free as materialized (select w.job_id, w.begins from {{schema}}.xxl_job_window w where ` + of + ` order by w.job_id, w.begins for no key update skip locked)
	select w.job_id, w.begins from {{schema}}.xxl_job_window w where ` + of + ` and not exists (select from free f where f.job_id = w.job_id and f.begins = w.begins)`)
	q.deleteWindows = sql(`delete from {{schema}}.xxl_job_window w using unnest({{arg.jobs}}::int[], {{arg.begins}}::bigint[]) r(job_id, begins)
	where w.job_id = r.job_id and w.begins = r.begins`)
	q.nextWindow = sql(`select coalesce(min(w.expires), 0) from unnest($1::smallint[], $2::bigint[]) s(id, epoch)
	join {{schema}}.xxl_job_lock k on k.shard = s.id and k.epoch = s.epoch
	cross join lateral (select w.expires from {{schema}}.xxl_job_window w where w.shard = s.id order by w.expires limit 1) w`)
	q.overWindows = sql(`with ` + fence("") + `
	select w.job_id, w.begins, w.parent_id, w.depth, w.succeeded from {{schema}}.xxl_job_window w
	where w.shard = any(array(select shard from fence)) and w.expires <= {{arg.before}}
	and (w.job_id, w.begins) <> all(select r.job_id, r.begins from unnest({{arg.aside_jobs}}::int[], {{arg.aside_begins}}::bigint[]) r(job_id, begins))
	order by w.expires, w.job_id limit {{arg.limit}} for update of w skip locked`)
}
