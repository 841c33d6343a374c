package postgres

// Runs that are planned so far ahead that they are kept apart. Comes in: triggers. Goes out:
// rows of xxl_job_ahead and, when these come within reach of their time, planned runs.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// The id of an entry lies in the hour in which it moves, so that the run then belongs to the
// partition of its day and is kept for as long as any other. Within the hour it is made of a
// sequence, and in the last aheadIDs of each millisecond's ids, which no other run gets: so
// none that is made while the hour passes takes it, and of two entries of an hour none has
// the other's, before two billion more were made.
const (
	aheadIDs   = 512
	idsOfMilli = 1 << idBits
)

// mayBeAhead reports whether an id may be that of an entry, or of a run that was one. Before
// there were entries other runs had such ids too.
func mayBeAhead(id int64) bool { return id&(idsOfMilli-1) >= idsOfMilli-aheadIDs }

// aheadHour is where the ids begin that an entry may have. What is to move at once moves in
// this hour.
func (s *Store) aheadHour(move time.Time) int64 {
	if now := s.estimate(); move.Before(now) {
		move = now
	}
	return idAt(move.Truncate(time.Hour))
}

// AddAhead inserts an entry.
func (s *Store) AddAhead(ctx context.Context, jobID int64, t store.Trigger, move time.Time) (store.Run, error) {
	if noJobID(jobID) {
		return store.Run{}, failed(store.ErrNotFound, "add run of job %d", jobID)
	}
	hour := s.aheadHour(move)
	run, _, err := s.addTriggered(ctx, jobID, bounds{name: "add_ahead"}, &t,
		s.sql.addAheadKey.by(named{{"job", jobID}, {"key", t.Key}, {"hour", hour}}),
		func(id *int64) statement { return s.sql.addAhead.by(aheadArgs(jobID, id, &t, move, hour)) })
	if err == nil {
		// Also where the key has been used: who asks again has had no answer, and the process that
		// was asked may have ended before it could give the hint.
		s.wakeAhead(run.Shard)
	}
	return run, failed(err, "add run of job %d", jobID)
}

// aheadArgs are the arguments of addAhead and planAhead.
func aheadArgs(jobID int64, id *int64, t *store.Trigger, move time.Time, hour int64) named {
	return append(triggerArgs(jobID, id, t), named{{"move", milli(stored(move))}, {"hour", hour}}...)
}

// MoveAhead moves entries of the shards, in one transaction.
func (s *Store) MoveAhead(ctx context.Context, q store.AheadQuery) (store.Moved, error) {
	shards, _ := fenceArgs(q.Shards)
	if len(shards) == 0 {
		return store.Moved{}, ended(ctx)
	}
	next, err := s.nextAhead(ctx, shards)
	if err != nil || next == 0 || next > milli(stored(q.Before)) || q.Limit <= 0 {
		return store.Moved{Next: fromMilli(next)}, failed(err, "look for runs that are to move")
	}
	m := moving{store: s, query: q, oldest: max(idAt(q.Oldest), 0)}
	runs := 0
	why, err := halves(ctx, &s.aside.ahead, q.Limit, func(limit int, aside []int64) ([]int64, error) {
		m.limit, m.aside = limit, aside
		err := m.run(ctx)
		if err == nil {
			runs += len(m.former)
			return m.former, nil
		}
		chosen := m.due(ctx)
		if len(chosen) == 1 {
			err = fmt.Errorf("run %d: %w", chosen[0], err)
		}
		return chosen, err
	})
	if err != nil {
		return store.Moved{}, failed(err, "move runs that were planned far ahead")
	}
	next, err = s.nextAhead(ctx, shards)
	return store.Moved{Runs: runs, Next: fromMilli(next), Refused: failed(why, "move runs that were planned far ahead")}, failed(err, "look for runs that are to move")
}

// nextAhead is when the first entry of the shards is to move, 0 where there is none.
func (s *Store) nextAhead(ctx context.Context, shards []int16) (next int64, err error) {
	return next, s.read(ctx, s.sql.nextAhead.with(shards).into(scanInto(&next)))
}

// moving is a transaction that moves entries.
type moving struct {
	store  *Store
	query  store.AheadQuery
	oldest int64 // an entry with a lower id gets a new one
	limit  int
	aside  []int64 // ids of entries that stay

	former []int64 // ids of the entries that have moved
	least  int64
	shards []int
}

// run moves them, and where the day of one has no partition makes that: no node was there
// when its time came. Where the role may not make it, such entries get new ids.
func (m *moving) run(ctx context.Context) error {
	s := m.store
	err := s.withPartitions(ctx, func() error { return m.once(ctx) })
	if noPartition(err) {
		if made := s.define(ctx, m.missingDays); made != nil {
			s.log.Warn("xxljob: runs that were planned far ahead move late, and the partitions of their days cannot be made; they get new ids", "error", made)
			m.oldest = idAt(s.estimate().Truncate(day))
		}
		err = s.withPartitions(ctx, func() error { return m.once(ctx) })
	}
	if err != nil || len(m.former) == 0 {
		return err
	}
	s.lowerFloor(m.least)
	for _, shard := range m.shards {
		s.wakeRun(shard)
	}
	return nil
}

func (m *moving) once(ctx context.Context) error {
	s := m.store
	m.former, m.least, m.shards = nil, maxRunID, nil
	shards, epochs := fenceArgs(m.query.Shards)
	return s.one(ctx, bounds{name: "move_ahead", lock: quickPatience}, s.sql.moveAhead.by(named{
		{"shards", shards}, {"epochs", epochs}, {"before", milli(stored(m.query.Before))}, {"limit", m.limit}, {"oldest", m.oldest}, {"aside", m.aside},
	}).into(func(rows pgx.Rows) error {
		var id, former int64
		var shard int
		err := rows.Scan(&id, &former, &shard)
		m.former, m.least = append(m.former, former), min(m.least, id)
		if !slices.Contains(m.shards, shard) {
			m.shards = append(m.shards, shard)
		}
		if id != former {
			s.log.Warn("xxljob: a run that was planned far ahead moves so late that it gets a new id", "run", id, "former", former)
		}
		return err
	}))
}

// dueFrom reads the entries that are to move, of those whose ids are at least so.
func (m *moving) dueFrom(oldest int64) statement {
	shards, _ := fenceArgs(m.query.Shards)
	return m.store.sql.dueAhead.by(named{
		{"shards", shards}, {"before", milli(stored(m.query.Before))}, {"limit", m.limit}, {"oldest", oldest}, {"aside", m.aside},
	})
}

// due are the entries that were to move, when they have not.
func (m *moving) due(ctx context.Context) (ids []int64) {
	if m.store.read(ctx, m.dueFrom(0).into(readIDs(&ids))) != nil {
		return nil
	}
	return ids
}

// missingDays are the definitions of the partitions that the entries which are to move need.
func (m *moving) missingDays(ctx context.Context, do doer) (sql []string, err error) {
	s := m.store
	var ids []int64
	have := map[string]bool{}
	err = do(ctx, m.dueFrom(m.oldest).into(readIDs(&ids)), s.sql.partitions.with().into(readNames(have)))
	for _, id := range ids {
		from := idTime(id).Truncate(day)
		if name := partitionName(from); !have[name] {
			have[name] = true
			sql = append(sql, s.newPartition(from)...)
		}
	}
	return sql, err
}

// aheadStatements are those of an entry's key and of the entry, for the host's transaction.
func (s *Store) aheadStatements(jobID int64, t *store.Trigger, move time.Time) (key statement, plan func(id *int64) statement) {
	hour := s.aheadHour(move)
	return s.sql.addAheadKey.by(named{{"job", jobID}, {"key", t.Key}, {"hour", hour}}),
		func(id *int64) statement { return s.sql.planAhead.by(aheadArgs(jobID, id, t, move, hour)) }
}

// aheadID makes the id of an entry of the hour. The number is asked for once and used twice:
// a subquery with nextval is not merged into what is around it.
const aheadID = `(select {{arg.hour}}::bigint operator(pg_catalog.+)
	(((n.n operator(pg_catalog./) 512::bigint) operator(pg_catalog.%) 3600000::bigint) operator(pg_catalog.*) 8192::bigint) operator(pg_catalog.+)
	7680::bigint operator(pg_catalog.+) (n.n operator(pg_catalog.%) 512::bigint)
	from (select nextval('{{literal}}.xxl_job_ahead_id') n) n)`

// Entries of xxl_job_ahead as runs: how they are read, cancelled and dropped. An entry that
// moves is deleted and inserted as a run at one moment. So where two statements look, that
// which looks for the entry comes first: an entry that it does not find has moved by then,
// and the other finds the run.

// findRun reads one run with the names of its job, or nothing. Where it is read twice,
// because it moves at this moment, the later reading counts: see lastOf.
func (s *Store) findRun(id int64, runs *[]store.Run) []statement {
	return entryFirst(id, s.sql.aheadByID.with(id).into(readNamedRuns(runs)), s.sql.runByID.with(id).into(readNamedRuns(runs)))
}

// findAsItIs is findRun without the names.
func (s *Store) findAsItIs(id int64, runs *[]store.Run) []statement {
	return entryFirst(id, s.sql.aheadAsItIs.with(id).into(readRuns(runs)), s.sql.runAsItIs.with(id).into(readRuns(runs)))
}

// entryFirst is both statements, or only the other where no entry has such an id.
func entryFirst(id int64, entry, other statement) []statement {
	if !mayBeAhead(id) {
		return []statement{other}
	}
	return []statement{entry, other}
}

// lastOf is the run that findRun or findAsItIs has read.
func lastOf(runs []store.Run) (store.Run, bool) {
	if len(runs) == 0 {
		return store.Run{}, false
	}
	return runs[len(runs)-1], true
}

// entries reads those of the runs that are entries, with the names of their jobs, and
// returns the ids of the others.
func (s *Store) entries(ctx context.Context, ids []int64) (found []store.Run, others []int64, err error) {
	var may []int64
	for _, id := range ids {
		if mayBeAhead(id) {
			may = append(may, id)
		}
	}
	if len(may) == 0 {
		return nil, ids, nil
	}
	if err := s.readByIndex(ctx, s.sql.aheadByIDs.by(named{{"runs", may}, {"texts", textsOf(ctx)}}).into(readNamedRuns(&found))); err != nil || len(found) == 0 {
		return nil, ids, err
	}
	is := make(map[int64]bool, len(found))
	for i := range found {
		is[found[i].ID] = true
	}
	for _, id := range ids {
		if !is[id] {
			others = append(others, id)
		}
	}
	return found, others, nil
}

// byID orders runs by their ids.
func byID(runs []store.Run) []store.Run {
	slices.SortFunc(runs, func(a, b store.Run) int { return cmp.Compare(a.ID, b.ID) })
	return runs
}

// killAhead cancels the run if it is an entry. It waits for one that moves, and does not
// find it then.
func (s *Store) killAhead(ctx context.Context, t *tx, runID int64, reason string) (cancelled []store.Run, err error) {
	if !mayBeAhead(runID) {
		return nil, nil
	}
	return cancelled, t.do(ctx, s.sql.killAhead.with(runID, reason).into(readRuns(&cancelled)))
}

// fewAhead is how many entries of a job are cancelled by the transaction that removes it: its
// tally has a report for each quarter of an hour in which one is due. manyAhead is how many
// another transaction cancels.
const fewAhead, manyAhead = 1000, 5000

// cancelAhead cancels the entries of a job, and counts them.
func (s *Store) cancelAhead(t *tx, jobID int64, reason string, cancelled *int) statement {
	return s.sql.cancelAhead.with(jobID, reason).into(func(rows pgx.Rows) error {
		var app string
		var quarter int64
		var n int
		err := rows.Scan(&app, &quarter, &n)
		*cancelled += n
		t.countCancelled(app, fromMilli(quarter), n)
		return err
	})
}

// cancelManyAhead cancels entries of a job that has more than few, in transactions of their
// own, in which the server counts them for the reports. It returns how many there were.
func (s *Store) cancelManyAhead(ctx context.Context, jobID int64, reason string) (cancelled int, err error) {
	n := 0
	if err := s.read(ctx, s.sql.countAhead.with(jobID, fewAhead+1).into(scanInto(&n))); err != nil || n <= fewAhead {
		return 0, err
	}
	for n, after := manyAhead, int64(0); n == manyAhead; cancelled += n {
		args := named{{"job", jobID}, {"reason", reason}, {"after", after}, {"limit", manyAhead}}
		cancel := s.sql.cancelUncounted
		if !s.cfg.NoReports {
			slot, spare := reportSlot()
			cancel, args = s.sql.cancelCounted, append(args, named{{"slot", slot}, {"spare", spare}}...)
		}
		if err := s.one(ctx, bounds{name: "cancel_ahead"}, cancel.by(args).into(scanInto(&n, &after))); err != nil {
			return cancelled, err
		}
	}
	return cancelled, nil
}

// dropCancelled forgets entries that were cancelled before the given time, and their keys.
func (s *Store) dropCancelled(ctx context.Context, before time.Time) error {
	for ids := make([]int64, endBatch); len(ids) == endBatch; {
		ids = ids[:0]
		if err := s.one(ctx, bounds{name: "drop_ahead"}, s.sql.dropCancelled.with(before, endBatch).into(readIDs(&ids))); err != nil {
			return err
		}
	}
	return nil
}

// aheadQueries are the statements of this file. Those that make a key and an entry are for
// the host's transactions too (see runs_trigger.go).
type aheadQueries struct {
	addAheadKey, addAhead, planAhead, nextAhead, dueAhead, moveAhead                                                                query
	aheadByID, aheadByIDs, aheadAsItIs, keyAhead, killAhead, cancelAhead, countAhead, cancelCounted, cancelUncounted, dropCancelled query
}

func (q *aheadQueries) define(sql template) {
	q.addAheadKey = sql(`insert into {{schema}}.xxl_job_trigger_key (job_id, trigger_key, run_id)
	select i.id, {{arg.key}}::text, ` + aheadID + ` from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) {{arg.job}}
	on conflict do nothing returning run_id`)
	entry := append(triggered(aheadID), assigned{{"move_time", `{{arg.move}}`}}...)
	insert := insertTriggered("xxl_job_ahead", entry)
	q.addAhead = sql(insert + ` for key share of i returning {{run}}`)
	q.planAhead = sql(insert + ` returning l.id`)
	q.nextAhead = sql(`select coalesce((select a.move_time from {{schema}}.xxl_job_ahead a where a.state = {{state.planned}} and a.shard = any($1::smallint[])
	order by a.move_time, a.id limit 1), 0)`)
	const due = `a.state = {{state.planned}} and a.move_time <= {{arg.before}}`
	q.dueAhead = sql(`select a.id from {{schema}}.xxl_job_ahead a where ` + due + ` and a.shard = any({{arg.shards}}::smallint[]) and a.id >= {{arg.oldest}}
	and a.id <> all({{arg.aside}}::bigint[])
	order by a.move_time, a.id limit {{arg.limit}}`)
	// An id that another run has was made by a node of the version before.
	run := triggered("")
	for i := range run {
		run[i][1] = "r." + run[i][0]
	}
	run[0][1] = "r.new_id"
	q.moveAhead = sql(`with ` + fence("") + `,
	gone as (delete from {{schema}}.xxl_job_ahead d where d.id = any(array(select a.id from {{schema}}.xxl_job_ahead a
		where ` + due + ` and a.shard = any(array(select shard from fence)) and a.id <> all({{arg.aside}}::bigint[])
		order by a.move_time, a.id limit {{arg.limit}} for no key update skip locked)) returning d.*),
	placed as materialized (select g.*, case when g.id >= {{arg.oldest}}
		and (select l.id from {{schema}}.xxl_job_log l where l.id = g.id limit 1) is null then g.id else {{run_id}} end new_id from gone g),
	moved as (insert into {{schema}}.xxl_job_log as l (` + run.columns() + `) select ` + run.values() + ` from placed r),
	keyed as (update {{schema}}.xxl_job_trigger_key k set run_id = r.new_id from placed r where r.new_id <> r.id and k.run_id = r.id)
	select r.new_id, r.id, r.shard from placed r`)

	one := `select {{run}} from {{schema}}.xxl_job_ahead l `
	const named = `.xxl_job_ahead l ` + namesOfJob
	q.aheadByID = sql(`select j.job_desc, j.job_key, j.secret, {{run}} from {{schema}}` + named + ` where l.id = $1`)
	q.aheadByIDs = sql(`select j.job_desc, j.job_key, j.secret, {{listed}} from {{schema}}` + named + ` where l.id = any({{arg.runs}}::bigint[])`)
	q.aheadAsItIs = sql(one + `where l.id = $1`)
	q.keyAhead = sql(one + `where l.id = (select k.run_id from {{schema}}.xxl_job_trigger_key k where k.job_id = $1 and k.trigger_key = $2)`)
	cancelled := func(reason string) string {
		return `update {{schema}}.xxl_job_ahead l set state = {{state.cancelled}}, alarm_status = {{alarm.none}}, reason = ` + reason + `, handle_time = {{now}} `
	}
	q.killAhead = sql(cancelled(`$2`) + `where l.id = $1 and l.state = {{state.planned}} returning {{run}}`).saying()
	q.cancelAhead = sql(`with c as (` + cancelled(`$2`) + `where l.job_id = $1 and l.state = {{state.planned}} returning l.app_name, l.scheduled_time)
	select c.app_name, c.scheduled_time / 900000::bigint * 900000::bigint, count(*) from c group by 1, 2`).saying()
	q.countAhead = sql(`select count(*)::int from (select a.id from {{schema}}.xxl_job_ahead a where a.job_id = $1 and a.state = {{state.planned}} limit $2) a`)
	some := `with c as (` + cancelled(`{{arg.reason}}`) + `where l.state = {{state.planned}} and l.id = any(array(select a.id from {{schema}}.xxl_job_ahead a
		where a.job_id = {{arg.job}} and a.state = {{state.planned}} and a.id > {{arg.after}} order by a.id limit {{arg.limit}} for no key update))
	returning l.id, l.app_name, l.scheduled_time)`
	q.cancelUncounted = sql(some + ` select count(*)::int, coalesce(max(c.id), 0) from c`)
	q.cancelCounted = sql(some + `, r as materialized (select c.app_name as app, c.scheduled_time / 900000::bigint * 900000::bigint as quarter, count(*) as n from c group by 1, 2),
	counted as (insert into {{schema}}.xxl_job_report as t (quarter, app_name, slot, cancelled)
	select r.quarter, r.app, ` + freeSlot + `, r.n from r order by r.quarter, r.app collate "C"
	on conflict (quarter, app_name, slot) do update set cancelled = t.cancelled + excluded.cancelled)
	select count(*)::int, coalesce(max(c.id), 0) from c`)
	q.dropCancelled = sql(`with gone as (delete from {{schema}}.xxl_job_ahead d where d.id = any(array(select a.id from {{schema}}.xxl_job_ahead a
		where a.state = {{state.cancelled}} and a.handle_time < $1 order by a.handle_time limit $2)) returning d.id),
	keys as (delete from {{schema}}.xxl_job_trigger_key k where k.run_id = any(array(select id from gone)))
	select id from gone`)
}
