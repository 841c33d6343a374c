package postgres

// What is due: jobs with their definitions, and planned runs.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// Scan finds what is due. It reads no definition that it has read in this version
// before.
func (s *Store) Scan(ctx context.Context, dst store.ScanResult, q store.ScanQuery) (store.ScanResult, error) {
	res, err := s.scan(ctx, dst, q)
	if err != nil {
		return store.ScanResult{}, failed(err, "scan")
	}
	return res, nil
}

func (s *Store) scan(ctx context.Context, res store.ScanResult, q store.ScanQuery) (store.ScanResult, error) {
	had := len(res.Runs)
	shards, _ := fenceArgs(q.Shards)
	if len(shards) == 0 {
		return res, ended(ctx)
	}
	before := milli(stored(q.Before))
	from, turn := s.region.from(q.Shards, time.Now())
	if !q.From.IsZero() {
		from = max(from, milli(stored(q.From)))
	}
	lo, hi := s.openRange()
	dueList := s.dueRows.take()
	defer s.dueRows.giveBack(dueList)
	var next nextTime
	err := s.read(ctx,
		s.sql.scanJobs.by(named{
			{"shards", shards}, {"from", from}, {"to", before}, {"limit", max(q.Jobs, 0)},
		}).into(readDue(dueList)),
		s.sql.scanRuns.by(named{
			{"shards", shards}, {"before", before}, {"limit", max(q.Runs, 0)}, {"lo", lo}, {"hi", hi},
		}).into(readRuns(&res.Runs)),
		s.sql.next.by(named{{"shards", shards}, {"after", before}, {"lo", lo}, {"hi", hi}}).into(next.read))
	if err != nil {
		return store.ScanResult{}, err
	}
	due, first := *dueList, min(before, milli(s.estimate()))
	if len(due) > 0 {
		first = min(first, due[0].next)
	}
	if q.From.IsZero() { // else jobs before that may be due, which others are to find
		s.region.seen(first, turn)
	}
	if err := s.loadRuns(ctx, q.Shards, res.Runs[had:]); err != nil {
		return store.ScanResult{}, err
	}
	if res.Jobs, err = s.describe(ctx, res.Jobs, shards, due); err != nil {
		return store.ScanResult{}, err
	}
	if res.Next = fromMilli(int64(next)); full(len(due), q.Jobs) || full(len(res.Runs)-had, q.Runs) {
		res.Next = stored(q.Before)
	}
	return res, nil
}

func full(n, limit int) bool { return n > 0 && n >= limit }

// nextTime is the earlier of the times read, 0 for none.
type nextTime int64

func (n *nextTime) read(rows pgx.Rows) error {
	var at int64
	if err := rows.Scan(&at); err != nil {
		return err
	}
	if *n == 0 || at < int64(*n) {
		*n = nextTime(at)
	}
	return nil
}

// dueJob is what a scan reads of a job.
type dueJob struct{ id, version, next, last, made int64 }

func readDue(list *[]dueJob) result {
	var d dueJob
	dest := []any{&d.id, &d.version, &d.next, &d.last, &d.made}
	return func(rows pgx.Rows) error {
		err := rows.Scan(dest...)
		*list = append(*list, d)
		return err
	}
}

// loadRuns stamps the runs with the epochs of their shards.
func (s *Store) loadRuns(ctx context.Context, shards []store.Shard, runs []store.Run) error {
	if len(runs) == 0 {
		return nil
	}
	ids := make([]int64, len(runs))
	for i := range runs {
		ids[i] = runs[i].ID
	}
	lo, hi := rangeOf(ids)
	in, epochs := fenceArgs(shards)
	stamped := make(map[int64]int64, len(ids))
	err := s.one(ctx, bounds{name: "stamp", lock: quickPatience}, s.sql.stamp.by(named{
		{"shards", in}, {"epochs", epochs}, {"runs", ids}, {"lo", lo}, {"hi", hi},
	}).into(func(rows pgx.Rows) error {
		var id, epoch int64
		err := rows.Scan(&id, &epoch)
		stamped[id] = epoch
		return err
	}))
	for i := range runs {
		runs[i].PlanEpoch = stamped[runs[i].ID]
	}
	return err
}

// describe adds the definitions, and how many runs wait.
func (s *Store) describe(ctx context.Context, jobs []store.DueJob, shards []int16, due []dueJob) ([]store.DueJob, error) {
	if len(due) == 0 {
		return jobs, nil
	}
	if err := s.defs.fetch(ctx, s, due); err != nil {
		return nil, err
	}
	waiting, err := s.backlogs.get(ctx, s, shards)
	if err != nil {
		return nil, err
	}
	jobs = slices.Grow(jobs, len(due))
	for _, d := range due {
		job, ok := s.defs.get(d)
		if !ok {
			continue // edited or removed since it was read
		}
		job.Next, job.Last, job.WaitRun, job.Runs = fromMilli(d.next), fromMilli(d.last), 0, int(d.made)
		jobs = append(jobs, store.DueJob{Job: job, Waiting: waiting[d.id]})
	}
	return jobs, nil
}

// region is the part of the index of due jobs that a scan looks at. Entries of
// instants that were claimed lie at its beginning until they are vacuumed, which
// an open transaction anywhere puts off; so a scan begins where the last one
// found the first job, a little before now at most. Once a minute, and when a
// write says that something earlier is due, it looks at all of it.
type region struct {
	mu     sync.Mutex
	start  int64         // guarded by mu: where the next scan begins
	wholly time.Time     // guarded by mu: when all was looked at
	of     []store.Shard // guarded by mu: what the last scan was for
	turn   int           // guarded by mu: raised by each scan and each reach
}

const (
	// regionMargin is how long before the last scan's time a scan begins.
	regionMargin = 10 * time.Second
	// regionWhole is how often all is looked at.
	regionWhole = time.Minute
)

func (r *region) from(shards []store.Shard, now time.Time) (start int64, turn int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.wholly) > regionWhole || !slices.EqualFunc(shards, r.of, sameLease) {
		r.start, r.wholly, r.of = 0, now, slices.Clone(shards)
	}
	r.turn++
	return r.start, r.turn
}

func sameLease(a, b store.Shard) bool { return a.ID == b.ID && a.Epoch == b.Epoch }

// seen moves the start on: nothing before the given time was due, unless something
// has been written, or others have looked, since the scan began.
func (r *region) seen(first int64, turn int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if turn != r.turn {
		return
	}
	r.start = first - regionMargin.Milliseconds()
}

// reach moves the start back to a time at which something is due.
func (r *region) reach(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn++
	if at.IsZero() {
		r.start = 0
		return
	}
	r.start = min(r.start, milli(at))
}

// Planned returns a page of planned runs.
func (s *Store) Planned(ctx context.Context, dst []store.Run, q store.PlannedQuery) ([]store.Run, error) {
	shards, _ := fenceArgs(q.Shards)
	if len(shards) == 0 || q.Limit <= 0 {
		if err := ended(ctx); err != nil {
			return nil, err
		}
		return dst, nil
	}
	lo, hi := s.openRange()
	runs := dst
	err := s.read(ctx, s.sql.planned.by(named{
		{"shards", shards}, {"before", milli(stored(q.Before))}, {"after", milli(q.After)}, {"after_run", q.AfterID},
		{"limit", q.Limit}, {"lo", lo}, {"hi", hi}, {"app", q.App},
	}).into(readRuns(&runs)))
	if err != nil {
		return nil, failed(err, "read planned runs")
	}
	return runs, nil
}

// definitions are jobs as they were read, by version: a definition does not
// change within a version.
type definitions struct {
	mu    sync.Mutex
	jobs  map[int64]store.Job // guarded by mu
	texts map[string]string   // guarded by mu: one of each text that jobs have in common
}

// maxDefinitions bounds them.
const maxDefinitions = 200_000

// fetch reads the definitions that are not known.
func (c *definitions) fetch(ctx context.Context, s *Store, due []dueJob) error {
	c.mu.Lock()
	var missing []int64
	for _, d := range due {
		if job, ok := c.jobs[d.id]; !ok || job.Version != d.version {
			missing = append(missing, d.id)
		}
	}
	c.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	var found []store.Job
	if err := s.read(ctx, s.sql.definitions.with(missing).into(infoColumns.readInto(&found))); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs == nil || len(c.jobs)+len(found) > maxDefinitions {
		c.jobs = make(map[int64]store.Job, len(found))
	}
	for _, job := range found {
		c.share(&job)
		c.jobs[job.ID] = job
	}
	return nil
}

// share makes equal texts of different jobs one: most jobs have most of them in
// common, and a hundred thousand definitions are a lot for the collector to visit.
func (c *definitions) share(job *store.Job) {
	if c.texts == nil || len(c.texts) > maxTexts {
		c.texts = map[string]string{}
	}
	for _, text := range []*string{&job.App, &job.Author, &job.AlarmEmail, (*string)(&job.Schedule.Type), &job.Schedule.Conf,
		&job.Schedule.Zone, (*string)(&job.Misfire), (*string)(&job.CatchUp), (*string)(&job.OnNoExecutor), &job.Route, &job.Handler, &job.Param, &job.Block,
		&job.GlueType, &job.GlueSource, &job.GlueRemark, &job.AfterZone, (*string)(&job.ChildParam)} {
		if len(*text) > maxText {
			continue
		}
		if same, ok := c.texts[*text]; ok {
			*text = same
		} else {
			c.texts[*text] = *text
		}
	}
}

// Bounds of the texts that are shared.
const (
	maxTexts = 10_000
	maxText  = 256
)

func (c *definitions) get(d dueJob) (store.Job, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	job, ok := c.jobs[d.id]
	return job.Clone(), ok && job.Version == d.version
}

// backlogs are the numbers of runs that are due and wait, by job, counted once a
// second at most.
type backlogs struct {
	mu      sync.Mutex
	counted time.Time     // guarded by mu
	of      []int16       // guarded by mu
	n       map[int64]int // guarded by mu
	from    int64         // guarded by mu: where the next count begins
	wholly  time.Time     // guarded by mu: when all were counted
}

const (
	backlogEvery = time.Second
	// backlogLate is how long a run has to be due to count: in a healthy system
	// there is none, and the count costs nothing.
	backlogLate = 2 * time.Second
)

// get counts from where the earliest one was found the last time: before that lie
// entries of runs that were started, until they are vacuumed. Once a minute it
// counts all, for a run may have been put back.
func (b *backlogs) get(ctx context.Context, s *Store, shards []int16) (map[int64]int, error) {
	b.mu.Lock()
	fresh := time.Since(b.counted) < backlogEvery && slices.Equal(b.of, shards)
	n, from := b.n, b.from
	began := time.Now()
	whole := began.Sub(b.wholly) > regionWhole || !slices.Equal(b.of, shards)
	b.mu.Unlock()
	if fresh {
		return n, nil
	}
	if whole {
		from = 0
	}
	to := milli(s.estimate().Add(-backlogLate))
	first := to
	lo, hi := s.openRange()
	n = map[int64]int{}
	err := s.read(ctx, s.sql.backlog.by(named{
		{"shards", shards}, {"from", from}, {"to", to}, {"lo", lo}, {"hi", hi},
	}).into(func(rows pgx.Rows) error {
		var job, count, earliest int64
		err := rows.Scan(&job, &count, &earliest)
		n[job] = int(count)
		first = min(first, earliest)
		return err
	}))
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counted, b.of, b.n = began, slices.Clone(shards), n
	b.from = first - regionMargin.Milliseconds()
	if whole {
		b.wholly = began
	}
	return n, nil
}

// scanQueries are the statements of this file.
type scanQueries struct {
	scanJobs, scanRuns, next, stamp, planned query
	definitions                              query
	backlog                                  query
}

func (q *scanQueries) define(sql template) {
	// The subqueries hide the times from the planner. It would see that nothing is
	// due, and plan each scan of many jobs anew, which takes longer than the scan.
	q.scanJobs = sql(`select n.job_id, n.version, n.trigger_next_time, n.trigger_last_time, n.run_count from {{schema}}.xxl_job_next n
	where n.trigger_status = {{status.enabled}} and n.trigger_next_time > 0
		and n.trigger_next_time between (select {{arg.from}}::bigint) and (select {{arg.to}}::bigint) and n.shard = any({{arg.shards}}::smallint[])
	order by n.trigger_next_time, n.shard, n.job_id + 0 limit (select {{arg.limit}}::bigint)`)
	q.scanRuns = sql(`select {{run}} from {{schema}}.xxl_job_log l
	where l.state = {{state.planned}} and l.plan_epoch is null and l.scheduled_time <= {{arg.before}} and l.shard = any({{arg.shards}}::smallint[])
		and l.id between {{arg.lo}} and {{arg.hi}}
	order by l.scheduled_time, l.id limit {{arg.limit}}`)
	q.next = sql(`(select n.trigger_next_time from {{schema}}.xxl_job_next n
	where n.trigger_status = {{status.enabled}} and n.trigger_next_time > 0 and n.trigger_next_time > {{arg.after}} and n.shard = any({{arg.shards}}::smallint[])
	order by n.trigger_next_time limit 1)
	union all
	(select l.scheduled_time from {{schema}}.xxl_job_log l
	where l.state = {{state.planned}} and l.plan_epoch is null and l.scheduled_time > {{arg.after}} and l.shard = any({{arg.shards}}::smallint[])
		and l.id between {{arg.lo}} and {{arg.hi}}
	order by l.scheduled_time limit 1)`)
	// What a scan returns is the owner's from here on, or it would be returned
	// without end.
	q.stamp = sql(`with ` + fence("skip locked") + `
	update {{schema}}.xxl_job_log l set plan_epoch = (select fence.epoch from fence where fence.shard = l.shard)
	where l.id = any(array(select p.id from {{schema}}.xxl_job_log p where p.id = any({{arg.runs}}::bigint[]) and p.id between {{arg.lo}} and {{arg.hi}}
		and p.state + 0 = {{state.planned}} and p.plan_epoch is null order by p.id for no key update skip locked))
	and l.id between {{arg.lo}} and {{arg.hi}} and l.shard + 0 = any(array(select shard from fence))
	returning l.id, l.plan_epoch`)
	q.planned = sql(`select {{run}} from {{schema}}.xxl_job_log l
	where l.state = {{state.planned}} and l.scheduled_time <= {{arg.before}} and (l.scheduled_time, l.id) > ({{arg.after}}::bigint, {{arg.after_run}}::bigint)
	and l.shard = any({{arg.shards}}::smallint[]) and l.id between {{arg.lo}} and {{arg.hi}} and ({{arg.app}} = '' or l.app_name = {{arg.app}})
	order by l.scheduled_time, l.id limit {{arg.limit}}`)

	q.definitions = sql(`select ` + definitionColumns + ` from {{schema}}.xxl_job_info i where i.id = any($1::int[])`)

	q.backlog = sql(`select l.job_id, count(*), min(l.scheduled_time) from {{schema}}.xxl_job_log l
	where l.state = {{state.planned}} and l.scheduled_time between {{arg.from}} and {{arg.to}} and l.shard = any({{arg.shards}}::smallint[])
		and l.id between {{arg.lo}} and {{arg.hi}} and l.trigger_type <> 'RETRY'
	group by l.job_id`)
}

// Runs that a clock has dated which was ahead.

// RedateRuns corrects planned runs that say to have been inserted in the future.
func (s *Store) RedateRuns(ctx context.Context, q store.RedateQuery) (n int, err error) {
	shards, epochs := fenceArgs(q.Shards)
	if len(shards) == 0 || q.Limit <= 0 {
		return 0, ended(ctx)
	}
	least := q.Now.Add(backLeast)
	why, err := halves(ctx, &s.aside.redated, q.Limit, func(limit int, aside []int64) (ids []int64, err error) {
		chosen := named{{"shards", shards}, {"least", milli(stored(least))}, {"after", idAt(least)}, {"most", int64(maxRunID)}, {"limit", limit}, {"aside", aside}}
		err = s.one(ctx, bounds{name: "redate_runs"}, s.sql.redateRuns.by(append(chosen, named{{"epochs", epochs}, {"now", milli(stored(q.Now))}}...)).into(readIDs(&ids)))
		if err == nil {
			n += len(ids)
			return ids, nil
		}
		if ids = nil; s.read(ctx, s.sql.misdated.by(chosen).into(readIDs(&ids))) != nil {
			return nil, err
		}
		if len(ids) == 1 {
			err = fmt.Errorf("run %d: %w", ids[0], err)
		}
		return ids, err
	})
	if n > 0 {
		s.region.reach(time.Time{})
	}
	if err == nil {
		err = why
	}
	return n, failed(err, "correct when runs are due")
}

// redateQueries are the statements of this file.
type redateQueries struct{ redateRuns, misdated query }

func (q *redateQueries) define(sql template) {
	added := milliseconds("l.add_time")
	misdated := func(shards string) string {
		return `select p.id from {{schema}}.xxl_job_log p where p.state = {{state.planned}} and p.scheduled_time > {{arg.least}}::bigint
		and p.id between {{arg.after}}::bigint and {{arg.most}}::bigint and p.id <> all({{arg.aside}}::bigint[]) and p.shard = any(` + shards + `) and p.trigger_type not in ({{born}})
		and ` + milliseconds("p.add_time") + ` > {{arg.least}}::bigint order by p.id + 0 limit {{arg.limit}}`
	}
	q.redateRuns = sql(`with ` + fence("") + `
	update {{schema}}.xxl_job_log l set plan_epoch = null, add_time = pg_catalog.to_timestamp({{arg.now}}::bigint::double precision / 1000::double precision),
		scheduled_time = case when l.trigger_type = 'RETRY' then greatest(l.scheduled_time - (` + added + ` - {{arg.now}}::bigint), {{arg.now}}::bigint)
			when abs(l.scheduled_time - ` + added + `) < 1000 then {{arg.now}}::bigint else l.scheduled_time end
	where l.id = any(array(` + misdated(`array(select shard from fence)`) + ` for no key update skip locked))
	and l.id between {{arg.after}}::bigint and {{arg.most}}::bigint
	returning l.id`)
	q.misdated = sql(misdated(`{{arg.shards}}::smallint[]`))
}
