package postgres

// Searches at a bounded cost: first the id is found down to which so many runs lie, by an
// index alone; then the runs of that range are looked at, newest first, until enough of them
// match. Between the two, runs may be added above the range, and none below its upper end
// but for those of this very moment.

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/xxljob/xxljob/store"
)

// SearchRuns returns runs that the search chooses, newest first.
func (s *Store) SearchRuns(ctx context.Context, q store.RunSearch) (store.RunsFound, error) {
	if err := q.Validate(); err != nil {
		return store.RunsFound{}, err
	}
	if !q.Complete() || allAbsent(&q) {
		return store.RunsFound{SearchedTo: 1}, ended(ctx)
	}
	if isOpenOfJobs(q) {
		return s.openOfJobs(ctx, &q)
	}
	sr := searching{store: s, search: &q, low: 1}
	if !q.Since.IsZero() {
		sr.low = max(idAt(ceilMilli(q.Since)), 1)
	}
	if !q.Until.IsZero() {
		q.Before = min(q.Before, idAt(ceilMilli(q.Until).Add(sr.margin())))
	}
	// Where many match, a page of them is found among the first twentieth of those that may be
	// looked at, and the others are not even counted.
	first := max(q.Examine/20, 1)
	found := store.RunsFound{SearchedTo: 1}
	for _, most := range []int{first, q.Examine - first} {
		if more, err := sr.look(ctx, most, &found); err != nil {
			return store.RunsFound{}, failed(err, "search for runs")
		} else if !more {
			break
		}
	}
	return found, nil
}

// look looks at the newest runs of the range, no more than most, adds what is chosen to what was
// found, and has the range end where it got to. more says that there may be others behind.
func (sr *searching) look(ctx context.Context, most int, found *store.RunsFound) (more bool, err error) {
	if most == 0 {
		return false, nil
	}
	low, limit := sr.low, sr.search.Limit
	n, oldest := 0, int64(0)
	sr.search.Examine, found.SearchedTo = most, 1
	if err := sr.store.list(ctx, sr.edge(&n, &oldest)); err != nil || n == 0 {
		return false, err
	}
	sr.low = oldest
	var runs []store.Run
	if err := sr.store.list(ctx, sr.matches(ctx, &runs)); err != nil {
		return false, err
	}
	found.Runs, found.Examined = append(found.Runs, runs...), found.Examined+n
	if n == most {
		found.SearchedTo = oldest
	}
	if len(runs) == limit {
		oldest = runs[limit-1].ID
		found.SearchedTo = oldest
	}
	found.SearchedTime = idTime(oldest)
	sr.low, sr.search.Before, sr.search.Limit = low, oldest, limit-len(runs)
	return n == most && len(runs) < limit, nil
}

// ceilMilli is the first whole millisecond at or after the time: runs are planned at whole
// ones.
func ceilMilli(t time.Time) time.Time {
	if ms := t.Truncate(time.Millisecond); ms.Before(t) {
		return ms.Add(time.Millisecond)
	}
	return t
}

// allAbsent reports whether only jobs are chosen that cannot be there.
func allAbsent(q *store.RunSearch) bool {
	return len(q.JobIDs) > 0 && !slices.ContainsFunc(q.JobIDs, func(id int64) bool { return !noJobID(id) })
}

// isOpenOfJobs reports whether nothing but the runs of jobs that have not ended is asked for.
func isOpenOfJobs(q store.RunSearch) bool {
	for _, st := range q.States {
		if st != store.StatePlanned && st != store.StateStarted && st != store.StateDispatched {
			return false
		}
	}
	some := len(q.JobIDs) > 0 && len(q.States) > 0
	q.JobIDs, q.States, q.Before, q.Examine, q.Limit = nil, nil, 0, 0, 0
	return some && reflect.ValueOf(q).IsZero()
}

// openOfJobs finds those by indexes that hold nothing else, in the few partitions where such are:
// none is looked at in vain, and the statement is planned once.
func (s *Store) openOfJobs(ctx context.Context, q *store.RunSearch) (found store.RunsFound, err error) {
	lo, hi := s.openRange()
	limit := min(q.Limit, q.Examine)
	states := make([]int16, len(q.States))
	for i, st := range q.States {
		states[i] = int16(st)
	}
	there := slices.DeleteFunc(slices.Clone(q.JobIDs), noJobID)
	err = s.readByIndex(ctx, s.sql.openOfJobs.by(named{{"jobs", there}, {"states", states}, {"lo", lo}, {"hi", min(hi, q.Before-1)}, {"limit", limit}, {"texts", textsOf(ctx)}}).into(readNamedRuns(&found.Runs)))
	if err != nil {
		return store.RunsFound{}, failed(err, "search for runs that have not ended")
	}
	found.SearchedTo, found.Examined = 1, len(found.Runs)
	if n := len(found.Runs); n > 0 {
		oldest := found.Runs[n-1].ID
		found.SearchedTime = idTime(oldest)
		if n == limit {
			found.SearchedTo = oldest
		}
	}
	return found, nil
}

// searching is a search under way.
type searching struct {
	store  *Store
	search *store.RunSearch
	low    int64 // the least id
}

// margin is for how long a statement may have waited when it made the id of a run.
func (sr *searching) margin() time.Duration {
	if sr.search.Ahead {
		return 0
	}
	return time.Minute
}

// edge counts the runs of the range, as far as they are to be looked at, and reads the oldest
// of these.
func (sr *searching) edge(n *int, oldest *int64) statement {
	var q listing
	limit := q.arg(sr.search.Examine)
	sql := fmt.Sprintf("%sselect pg_catalog.count(*)::int, coalesce(pg_catalog.min(l.id), 0) from (%s) l", mark, sr.candidates(&q, "l.id", nil, limit))
	return statement{sql: strings.ReplaceAll(sql, "{{schema}}", sr.store.schema), args: q.args, read: scanInto(n, oldest)}
}

// matches reads those of the range that are chosen.
func (sr *searching) matches(ctx context.Context, runs *[]store.Run) statement {
	var q listing
	limit, columns := q.arg(sr.search.Limit), q.runsListed(ctx)
	sql := fmt.Sprintf("%sselect j.job_desc, j.job_key, j.secret, %s from (%s) l %s order by l.id desc", mark, runColumns,
		sr.candidates(&q, columns, sr.filters, limit), namesOfJob)
	return statement{sql: strings.ReplaceAll(sql, "{{schema}}", sr.store.schema), args: q.args, read: readNamedRuns(runs)}
}

// candidates are the runs of the range by the index that knows most of them: of one job, of
// some states, or of all.
func (sr *searching) candidates(q *listing, columns string, filters func(*listing), limit string) string {
	id := "l.id"
	states := stateIndex(sr.search.States)
	ofJob := len(sr.search.JobIDs) == 1
	if states == isStarted && !ofJob { // they are few, and no plan is to look for them among all others
		id = "l.id + 0"
	}
	q.add(id + " >= " + q.arg(sr.low))
	q.add(id + " < " + q.arg(sr.search.Before))
	job := ""
	if ofJob {
		job = q.arg(sr.search.JobIDs[0])
		q.add("l.job_id = " + job + "::bigint")
	}
	if filters != nil {
		filters(q)
	}
	page := func(table, extra string) string {
		return fmt.Sprintf("(select %s from {{schema}}.%s l where %s%s order by %s desc limit %s)", columns, table, q.conditions(), extra, id, limit)
	}
	var parts []string
	switch {
	case sr.search.Ahead:
		parts = append(parts, page("xxl_job_ahead", ""))
	case ofJob: // three indexes hold the runs of a job, by what they are at
		shard := fmt.Sprintf(" and l.shard = (select %s::bigint %% nullif(pg_catalog.count(*), 0) from {{schema}}.xxl_job_lock)", job)
		for _, condition := range indexesOfJob(sr.search.States) {
			if condition == isStarted {
				condition += shard
			}
			parts = append(parts, page("xxl_job_log", " and "+condition))
		}
	case states == "" || states == isPlanned: // the index of those is in order of time: all of it would be sorted
		parts = append(parts, page("xxl_job_log", ""))
	default:
		parts = append(parts, page("xxl_job_log", " and "+states))
	}
	return fmt.Sprintf("select * from (%s) l order by l.id desc limit %s", strings.Join(parts, " union all "), limit)
}

// filters adds what the runs that are looked at are chosen by.
func (sr *searching) filters(q *listing) {
	f := sr.search
	if len(f.Apps) > 0 {
		q.add("l.app_name = any(" + q.arg(f.Apps) + "::text[])")
	}
	if len(f.JobIDs) > 1 {
		q.add("l.job_id = any(" + q.arg(f.JobIDs) + "::bigint[])")
	}
	if len(f.States) > 0 {
		q.states(f.States)
	}
	if len(f.Types) > 0 {
		types := make([]string, len(f.Types))
		for i, t := range f.Types {
			types[i] = string(t)
		}
		q.add("l.trigger_type = any(" + q.arg(types) + "::text[])")
	}
	for _, c := range []struct{ column, value string }{
		{"l.executor_handler", f.Handler}, {"l.executor_address", f.Address}, {"l.reason", f.Reason},
	} {
		if c.value != "" {
			q.add(c.column + " = " + q.arg(c.value))
		}
	}
	if f.Text != "" {
		text := "pg_catalog.lower(" + q.arg(f.Text) + "::text)"
		in := func(column string) string {
			return "position(" + text + " in pg_catalog.lower(coalesce(" + column + ", ''))) > 0"
		}
		q.add("(" + in("l.executor_param") + " or " + in(spelledOut()) + " or " + in("l.handle_msg") + ")")
	}
	if f.NoSecrets { // a look-up for each run, and no join
		q.add("(l.parent_id is null or l.param_set is not true)")
		q.add("coalesce((select not i.secret from {{schema}}.xxl_job_info i where i.id = l.job_id limit 1), false)")
	}
	q.planned(f)
	q.scheduled(f.From, f.To)
	if f.Slower > 0 {
		q.add(milliseconds("l.handle_time - l.trigger_time") + " >= " + q.arg(wholeMillis(f.Slower)) + "::bigint")
	}
	if f.LateBy > 0 {
		started := fmt.Sprintf("case when %s then %s else l.trigger_time end", isPlanned, sqlNow)
		q.add(milliseconds(started) + " - l.scheduled_time >= " + q.arg(wholeMillis(f.LateBy)) + "::bigint")
	}
}

// wholeMillis is a duration in milliseconds, rounded up: stored times have no finer ones.
func wholeMillis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// planned bounds the time at which runs were planned. Ids tell it to within what a statement
// takes; those of runs that were kept apart tell when they move, and nothing else does: they
// are the last 512 of a millisecond.
func (q *listing) planned(f *store.RunSearch) {
	for _, c := range []struct {
		than string
		at   time.Time
	}{{">=", f.Since}, {"<", f.Until}} {
		if !c.at.IsZero() && !f.Ahead {
			q.add("(l.add_time " + c.than + " " + q.arg(ceilMilli(c.at)) + "::timestamptz or l.id & 8191::bigint >= 7680::bigint)")
		}
	}
}

// LastRuns returns the newest runs of jobs that have ended.
func (s *Store) LastRuns(ctx context.Context, jobs []int64, n int) (runs []store.Run, err error) {
	if n <= 0 || len(jobs) == 0 {
		return nil, ended(ctx)
	}
	if len(jobs) > store.MostLastRuns/n {
		return nil, fmt.Errorf("postgres: the last %d runs of %d jobs are more than %d", n, len(jobs), store.MostLastRuns)
	}
	there := slices.DeleteFunc(slices.Clone(jobs), noJobID)
	err = s.readByIndex(ctx, s.sql.lastRuns.by(named{{"jobs", there}, {"limit", n}, {"texts", textsOf(ctx)}}).into(readNamedRuns(&runs)))
	return runs, failed(err, "read the last runs of %d jobs", len(jobs))
}

// Children returns the runs that a run has led to.
func (s *Store) Children(ctx context.Context, runID, after int64, limit int) (runs []store.Run, err error) {
	if limit <= 0 || runID <= 0 {
		return nil, ended(ctx)
	}
	err = s.readByIndex(ctx, s.sql.children.by(named{{"parent", runID}, {"after", max(after, 0)}, {"limit", limit}, {"texts", textsOf(ctx)}}).into(readNamedRuns(&runs)))
	return runs, failed(err, "read the children of run %d", runID)
}

// Waiting returns planned runs in order of time.
func (s *Store) Waiting(ctx context.Context, after store.Run, limit int) (runs []store.Run, err error) {
	if err := after.ValidateAfter(); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, ended(ctx)
	}
	lo, hi := s.openRange()
	since := int64(math.MinInt64)
	if !after.Scheduled.IsZero() {
		since = milli(stored(after.Scheduled))
	}
	err = s.readByIndex(ctx, s.sql.waitingRuns.by(named{{"since", since}, {"after", after.ID}, {"lo", lo}, {"hi", hi}, {"limit", limit}, {"texts", textsOf(ctx)}}).into(readNamedRuns(&runs)))
	return runs, failed(err, "read waiting runs")
}

// OpenRuns counts runs that have not ended.
func (s *Store) OpenRuns(ctx context.Context, most int) (store.OpenRuns, error) {
	open := store.OpenRuns{Planned: map[string]int{}, Running: map[string]int{}}
	if most <= 0 {
		return open, ended(ctx)
	}
	lo, hi := s.openRange()
	limit := most + min(math.MaxInt-most, 1) // one more says that there are more
	err := s.readByIndex(ctx, s.sql.openRuns.by(named{{"lo", lo}, {"hi", hi}, {"limit", limit}}).into(func(rows pgx.Rows) error {
		var planned bool
		var app string
		var n int
		if err := rows.Scan(&planned, &app, &n); err != nil {
			return err
		}
		if planned {
			open.Planned[app] += n
		} else {
			open.Running[app] += n
		}
		return nil
	}))
	if err != nil {
		return store.OpenRuns{}, failed(err, "count runs that have not ended")
	}
	open.Stop(most)
	return open, nil
}

// searchQueries are the statements of this file.
type searchQueries struct {
	lastRuns, children, waitingRuns, openRuns, openOfJobs query
}

func (q *searchQueries) define(sql template) {
	q.lastRuns = sql(`select j.job_desc, j.job_key, j.secret, {{listed}} from unnest({{arg.jobs}}::int[]) with ordinality a(job, ord)
	cross join lateral (select l.* from {{schema}}.xxl_job_log l where l.job_id = a.job and ` + isOver + ` order by l.id desc limit {{arg.limit}}) l
	` + namesOfJob + ` order by a.ord, l.id desc`)
	open := func(state string) string {
		return `(select l.* from {{schema}}.xxl_job_log l where l.job_id = any({{arg.jobs}}::int[]) and ` + state + ` and l.state = any({{arg.states}}::smallint[])
		and l.id between {{arg.lo}} and {{arg.hi}} order by l.id + 0 desc limit {{arg.limit}})`
	}
	q.openOfJobs = sql(`select j.job_desc, j.job_key, j.secret, {{listed}} from (select * from (` + open(isPlanned) + ` union all ` + open(isStarted) + `) l
	order by l.id desc limit {{arg.limit}}) l ` + namesOfJob + ` order by l.id desc`)
	q.children = sql(`select j.job_desc, j.job_key, j.secret, {{listed}} from (select l.* from {{schema}}.xxl_job_log l
		where l.parent_id = {{arg.parent}}::bigint and l.id > {{arg.after}}::bigint order by l.id limit {{arg.limit}}) l ` + namesOfJob + ` order by l.id`)
	q.waitingRuns = sql(`select j.job_desc, j.job_key, j.secret, {{listed}} from (select l.* from {{schema}}.xxl_job_log l
		where l.state = {{state.planned}} and (l.scheduled_time, l.id) > ({{arg.since}}::bigint, {{arg.after}}::bigint) and l.id between {{arg.lo}} and {{arg.hi}}
		order by l.scheduled_time, l.id limit {{arg.limit}}) l ` + namesOfJob + ` order by l.scheduled_time, l.id`)
	q.openRuns = sql(`select true, l.app_name, count(*)::int from (select l.app_name from {{schema}}.xxl_job_log l
		where l.state = {{state.planned}} and l.id between {{arg.lo}} and {{arg.hi}} order by l.scheduled_time limit {{arg.limit}}) l group by l.app_name
	union all select false, l.app_name, count(*)::int from (select l.app_name from {{schema}}.xxl_job_log l
		where l.state in ({{state.started}}, {{state.dispatched}}) and l.id between {{arg.lo}} and {{arg.hi}} limit {{arg.limit}}) l group by l.app_name`)
}

// Who holds rows and tables that the scheduler has to lock.

var _ store.LockReader = (*Store)(nil)

// LockHolders looks for locks of whole tables first: while there is one that keeps others from
// reading, the rows cannot be asked. A row says itself which transaction has locked it, unless
// several have, who share the lock.
func (s *Store) LockHolders(ctx context.Context, q store.LockQuery) (holders []string, err error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	into := func(rows pgx.Rows) error {
		var pid int
		var user, program, address, state, age string
		if err := rows.Scan(&pid, &user, &program, &address, &state, &age); err != nil {
			return err
		}
		holders = append(holders, fmt.Sprintf("pid %d, user %s, program %q, address %s, %s for %s", pid, user, program, address, state, age))
		return nil
	}
	if err := s.read(ctx, s.sql.tableHolders.with().into(into)); err != nil {
		return nil, failed(err, "read who holds tables")
	}
	if len(holders) > 0 {
		return holders, nil
	}
	shards := make([]int16, len(q.Shards))
	for i, id := range q.Shards {
		shards[i] = int16(id)
	}
	lo, hi := rangeOf(q.Runs)
	err = s.read(ctx, s.sql.rowHolders.by(named{{"shards", shards}, {"jobs", q.Jobs}, {"runs", q.Runs}, {"lo", lo}, {"hi", hi}}).into(into))
	return holders, failed(err, "read who holds rows")
}

// lockReadQueries are the statements of this file.
type lockReadQueries struct{ tableHolders, rowHolders query }

func (q *lockReadQueries) define(sql template) {
	// What the role may not know of the sessions of others is null.
	const holders = `select a.pid, coalesce(a.usename, '?')::text, coalesce(a.application_name, '?'), coalesce(a.client_addr::text, 'local'),
		coalesce(a.state, 'state unknown'), coalesce(pg_catalog.date_trunc('second', pg_catalog.clock_timestamp() - coalesce(a.state_change, a.xact_start))::text, '?')
	from pg_catalog.pg_stat_activity a where a.pid <> pg_catalog.pg_backend_pid() and a.pid in (select p.pid from pg_catalog.pg_locks p where p.granted and `
	q.tableHolders = sql(holders + `p.locktype = 'relation'
		and p.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
		and p.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
		and p.relation in (select c.oid from pg_catalog.pg_class c where c.relnamespace =
			(select k.relnamespace from pg_catalog.pg_class k where k.oid = '{{literal}}.xxl_job_lock'::pg_catalog.regclass::pg_catalog.oid))) order by a.pid limit 10`)
	q.rowHolders = sql(holders + `p.locktype = 'transactionid' and p.transactionid in (
		select k.xmax from {{schema}}.xxl_job_lock k where k.shard = any({{arg.shards}}::smallint[])
		union all select i.xmax from {{schema}}.xxl_job_info i where i.id = any({{arg.jobs}}::bigint[])
		union all select x.xmax from {{schema}}.xxl_job_next x where x.job_id = any({{arg.jobs}}::bigint[])
		union all select l.xmax from {{schema}}.xxl_job_log l where l.id = any({{arg.runs}}::bigint[]) and l.id between {{arg.lo}}::bigint and {{arg.hi}}::bigint))
	order by a.pid limit 10`)
}
