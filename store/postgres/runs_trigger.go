package postgres

// Runs outside the schedule, in the host's transactions too, and the trace they are part of.

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/internal/failpoint"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/store"
)

// AddRun inserts a planned run outside the schedule.
func (s *Store) AddRun(ctx context.Context, jobID int64, t store.Trigger) (store.Run, error) {
	if noJobID(jobID) {
		return store.Run{}, failed(store.ErrNotFound, "add run of job %d", jobID)
	}
	run, added, err := s.addTriggered(ctx, jobID, bounds{name: "add_run"}, &t, s.sql.addKey.with(jobID, t.Key),
		func(id *int64) statement { return s.sql.addRun.by(triggerArgs(jobID, id, &t)) })
	if added {
		s.wakeRun(run.Shard)
	}
	return run, failed(err, "add run of job %d", jobID)
}

// addTriggered takes the key, if there is one, and adds what is triggered.
func (s *Store) addTriggered(ctx context.Context, jobID int64, b bounds, t *store.Trigger, addKey statement, add func(id *int64) statement) (run store.Run, added bool, err error) {
	if err := store.CheckTexts("trigger", *t); err != nil {
		return store.Run{}, false, err
	}
	err = s.withPartitions(ctx, func() error {
		return s.inTx(ctx, b, func(x *tx) error {
			added = false
			var id *int64
			if t.Key != "" {
				var err error
				if run, id, err = s.takeKey(ctx, x.do, jobID, t.Key, addKey); err != nil || id == nil {
					return err
				}
			}
			var runs []store.Run
			if err := x.do(ctx, add(id).into(readRuns(&runs))); err != nil {
				return err
			}
			if len(runs) == 0 {
				return store.ErrNotFound
			}
			run, added = runs[0], true
			if c := (changed{}); c.OfTrigger(ctx, &run, t) {
				return x.do(ctx, s.note(c))
			}
			return nil
		})
	})
	if err != nil {
		return store.Run{}, false, err
	}
	return run, added, nil
}

// doer runs statements in a transaction, ours or the host's.
type doer func(context.Context, ...statement) error

// keyTries is how often a key is inserted where neither it nor its run is there afterwards: the
// run may just have been deleted, and the key with it. Where the job is gone it is the same.
const keyTries = 2

// takeKey takes the key for a new run, whose id it returns, or else returns the
// run that the key was used for. The key is inserted first, so a call waits for
// others with the same key only.
func (s *Store) takeKey(ctx context.Context, do doer, jobID int64, key string, addKey statement) (store.Run, *int64, error) {
	for range keyTries {
		var ids []int64
		if err := do(ctx, addKey.into(readIDs(&ids))); err != nil {
			return store.Run{}, nil, err
		}
		if len(ids) > 0 {
			return store.Run{}, &ids[0], nil
		}
		var runs []store.Run
		if err := do(ctx, s.sql.keyAhead.with(jobID, key).into(readRuns(&runs)), s.sql.keyRun.with(jobID, key).into(readRuns(&runs))); err != nil {
			return store.Run{}, nil, err
		}
		if run, there := lastOf(runs); there {
			return run, nil, nil
		}
	}
	return store.Run{}, nil, store.ErrNotFound
}

// takeKeyTx is takeKey in the host's transaction, and returns the id of either run.
func (s *Store) takeKeyTx(jobID int64, key string, addKey statement, queryID func(statement) (int64, error)) (id int64, taken bool, err error) {
	for range keyTries {
		if id, err = queryID(addKey); !noRows(err) {
			return id, true, err
		}
		if id, err = queryID(s.sql.keyID.with(jobID, key)); !noRows(err) {
			return id, false, err
		}
	}
	return 0, false, absentJob(jobID)
}

// triggerArgs are the arguments of addRun and planRun.
func triggerArgs(jobID int64, id *int64, t *store.Trigger) named {
	kind := t.Type
	if kind == "" {
		kind = store.TriggerManual
	}
	retries := retriesOfJob
	if t.Retries != nil {
		retries = *t.Retries
	}
	var addresses []string
	if len(t.Addresses) > 0 {
		addresses = t.Addresses
	}
	var about store.Run // what the run stands for, where it repeats another; the server knows what is past
	t.Stand(&about, time.Time{})
	return named{
		{"instant_time", nonzero(milli(stored(about.StandsFor)))}, {"business_time", nonzero(milli(about.Business))},
		{"parent_id", nonzero(about.ParentID)}, {"depth", nonzero(int64(about.Depth))},
		{"first_time", nonzero(milli(about.First))}, {"last_time", nonzero(milli(about.Last))}, {"instants", nonzero(int64(about.Count))},
		{"run", id}, {"trigger_type", string(kind)}, {"scheduled_time", dueColumn(t.At)},
		{"executor_sharding_param", shardingColumn(t.Shard)}, {"executor_param", t.Param}, {"param_set", flag(t.Param != nil)},
		{"address_list", addresses}, {"executor_fail_retry_count", retries}, {"retries_set", flag(t.Retries != nil)}, {"trace", nonempty(t.Trace)}, {"job", jobID},
	}
}

// dueColumn is when a run is due that is to be planned, 0 for now.
func dueColumn(at time.Time) int64 { return max(milli(stored(at)), 0) }

// TriggerTx plans a run of the job in the caller's own transaction, at any
// isolation level, and returns its id. The run exists when the transaction
// commits, and not otherwise; it is found within Poll after the commit and is
// never late for the time that the commit took. Wake after the commit, or
// Config.TxNotify, has it found at once. One that is due in more than two days is
// kept apart, as by Scheduler.Trigger, and needs neither; where runs are kept for less than
// three days the store has to know for how long (Config.RunRetention).
//
// It is one plain insert and takes no lock that a claim, a start or an edit waits
// for. With a Key it inserts the key first, and may wait for another transaction
// with the same Key; above READ COMMITTED the database may answer with a
// serialization error (SQLSTATE 40001), which is returned for the caller to try
// the whole transaction again. A job that is absent is store.ErrNotFound; bad
// input, a nil transaction or context among it, is refused before anything is sent.
// After any other error the transaction has failed and can only be rolled back.
//
// The transaction has to be on the database of the store. A job that is removed
// before the commit leaves a run that is cancelled when it comes up.
func (s *Store) TriggerTx(ctx context.Context, tx pgx.Tx, jobID int64, t store.Trigger) (int64, error) {
	return s.triggerTx(ctx, isNil(tx), jobID, t, func(st statement) (id int64, err error) {
		err = tx.QueryRow(ctx, st.sql, st.args...).Scan(&id)
		return id, err
	})
}

// TriggerSQLTx is TriggerTx for a transaction of database/sql. Its driver has to
// be pgx's, github.com/jackc/pgx/v5/stdlib.
func (s *Store) TriggerSQLTx(ctx context.Context, tx *sql.Tx, jobID int64, t store.Trigger) (int64, error) {
	return s.triggerTx(ctx, tx == nil, jobID, t, func(st statement) (id int64, err error) {
		err = tx.QueryRowContext(ctx, st.sql, st.args...).Scan(&id)
		return id, err
	})
}

// triggerTx inserts the key, if there is one, and then the run.
func (s *Store) triggerTx(ctx context.Context, noTx bool, jobID int64, t store.Trigger, queryID func(statement) (int64, error)) (int64, error) {
	if ctx == nil {
		return 0, errNoContext
	}
	if noTx {
		return 0, failed(errors.New("the transaction is nil"), "trigger job %d", jobID)
	}
	t, err := t.Encode()
	if err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if noJobID(jobID) {
		return 0, absentJob(jobID)
	}
	done := s.tracing.triggering(ctx, jobID, &t)
	id, err := s.insertTx(ctx, jobID, t, queryID)
	done(id, err)
	return id, err
}

// insertTx is triggerTx for what is checked.
func (s *Store) insertTx(ctx context.Context, jobID int64, t store.Trigger, queryID func(statement) (int64, error)) (int64, error) {
	failpoint.Hit("trigger_tx." + failpoint.Begin)
	addKey, plan := s.runStatements(jobID, &t)
	var id *int64
	if t.Key != "" {
		key, taken, err := s.takeKeyTx(jobID, t.Key, addKey, queryID)
		if errors.Is(err, store.ErrNotFound) {
			return 0, err
		}
		if err != nil || !taken {
			return key, failed(err, "trigger job %d", jobID)
		}
		id = &key
	}
	run, err := queryID(plan(id))
	if noRows(err) {
		return 0, absentJob(jobID)
	}
	if err == nil {
		err = s.noteTriggered(ctx, jobID, run, &t, queryID)
	}
	if err != nil {
		return 0, failed(err, "trigger job %d", jobID)
	}
	return run, nil
}

// noteTriggered writes the entry about a run that was planned in the host's transaction, where
// the context names an actor.
func (s *Store) noteTriggered(ctx context.Context, jobID, run int64, t *store.Trigger, queryID func(statement) (int64, error)) error {
	var c changed
	if !c.OfTrigger(ctx, &store.Run{ID: run, JobID: jobID}, t) {
		return nil
	}
	if s.narrow { // and nobody can ask the server there which characters it has
		for _, text := range []*string{&c.Actor, &c.Client, &c.RequestID, &c.After} {
			*text = (&encoding{}).narrow(plainNarrow(*text))
		}
	}
	_, err := queryID(s.sql.noteRun.by(named{
		{"job", jobID}, {"actor", c.Actor}, {"client", c.Client}, {"request_id", c.RequestID}, {"verb", c.Verb}, {"run", c.ObjectID}, {"after", c.After},
	}))
	if noRows(err) {
		return nil // the job is gone by now
	}
	return err
}

// KnowRetention is store.RetentionAware.
func (s *Store) KnowRetention(d time.Duration) {
	for {
		known := s.retention.Load()
		if d <= 0 || known > 0 && known <= int64(d) || s.retention.CompareAndSwap(known, int64(d)) {
			return
		}
	}
}

// runStatements are those of a run's key and of the run, for the host's transaction. One that
// is due far ahead is kept apart: nobody need be told of it.
func (s *Store) runStatements(jobID int64, t *store.Trigger) (key statement, plan func(id *int64) statement) {
	if move, far := store.Ahead(t.At, s.estimate(), time.Duration(s.retention.Load())); far {
		return s.aheadStatements(jobID, t, move)
	}
	return s.sql.addKey.with(jobID, t.Key), func(id *int64) statement {
		plan, args := s.sql.planRun, triggerArgs(jobID, id, t)
		if s.cfg.TxNotify {
			plan, args = s.sql.planRunTold, append(args, named{{"channel", s.channel}}...)
		}
		return plan.by(args)
	}
}

// isNil reports whether there is no transaction, or one of a type of the driver's that
// is nil within: what a function returns that declares the one and has the other.
func isNil(tx pgx.Tx) bool {
	v := reflect.ValueOf(tx)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// absentJob is store.ErrNotFound about a job that was to be triggered.
type absentJob int64

func (id absentJob) Error() string {
	return fmt.Sprintf("postgres: trigger: job %d does not exist", int64(id))
}
func (absentJob) Is(target error) bool { return target == store.ErrNotFound }

func noRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// triggerQueries are the statements of this file. Those that make a trigger's key and its
// run are for the host's transactions too, whose path is whatever the host has set.
type triggerQueries struct {
	keyID, addKey, keyRun, addRun, planRun, planRunTold query
}

func (q *triggerQueries) define(sql template) {
	q.keyID = sql(`select k.run_id from {{schema}}.xxl_job_trigger_key k
	where k.job_id operator(pg_catalog.=) $1 and k.trigger_key operator(pg_catalog.=) $2`)
	q.addKey = sql(`insert into {{schema}}.xxl_job_trigger_key (job_id, trigger_key, run_id)
	select i.id, $2::text, {{run_id}} from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) $1
	on conflict do nothing returning run_id`)
	q.keyRun = sql(`select {{run}} from {{schema}}.xxl_job_log l
	where l.id = (select k.run_id from {{schema}}.xxl_job_trigger_key k where k.job_id = $1 and k.trigger_key = $2)`)
	insert := insertTriggered("xxl_job_log", triggered(`{{run_id}}`))
	q.addRun = sql(insert + ` for key share of i returning {{run}}`)
	q.planRun = sql(insert + ` returning l.id`)
	// The hint is a scan hint as wakeRun sends it. It stands in the condition, for the
	// planner leaves out what nobody reads.
	q.planRunTold = sql(`with l as (` + insert + ` returning l.id, l.shard)
	select l.id from l where pg_catalog.pg_notify({{arg.channel}}, 's' operator(pg_catalog.||) l.shard::text) is not null`)
}

// triggered are the columns of a run, or of an entry of xxl_job_ahead, that a trigger makes.
// Its id is the given one where its key has none.
func triggered(id string) assigned {
	return assigned{
		{"id", `coalesce({{arg.run}}::bigint, ` + id + `)`},
		{"job_id", `i.id`},
		{"shard", `i.shard`},
		{"app_name", `i.app_name`},
		{"trigger_type", `{{arg.trigger_type}}`},
		{"scheduled_time", `greatest({{arg.scheduled_time}}::bigint, ` + milliseconds("{{now}}") + `)`},
		{"instant_time", `coalesce({{arg.instant_time}}::bigint, case when {{arg.scheduled_time}}::bigint operator(pg_catalog.>) 0::bigint
			and {{arg.scheduled_time}}::bigint operator(pg_catalog.<) ` + milliseconds("{{now}}") + ` then {{arg.scheduled_time}}::bigint end)`},
		{"business_time", `{{arg.business_time}}`},
		{"parent_id", `{{arg.parent_id}}`},
		{"depth", `{{arg.depth}}`},
		{"first_time", `{{arg.first_time}}`},
		{"last_time", `{{arg.last_time}}`},
		{"instants", `{{arg.instants}}`},
		{"state", `{{state.planned}}`},
		{"executor_sharding_param", `{{arg.executor_sharding_param}}`},
		{"executor_param", `{{arg.executor_param}}`},
		{"param_set", `{{arg.param_set}}`},
		{"address_list", `{{arg.address_list}}`},
		{"executor_fail_retry_count", `{{arg.executor_fail_retry_count}}`},
		{"retries_set", `{{arg.retries_set}}`},
		{"trace", `{{arg.trace}}`},
		{"add_time", `{{now}}`},
	}
}

// insertTriggered inserts them for a job that is there.
func insertTriggered(table string, run assigned) string {
	return `insert into {{schema}}.` + table + ` as l (` + run.columns() + `)
	select ` + run.values() + `
	from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) {{arg.job}}`
}

// Tracer puts runs into the trace of who asks for them. An xxljob.Tracer, which says more of it,
// is one.
type Tracer interface {
	Triggering(ctx context.Context, jobID int64) (trace string, done func(runID int64, err error))
}

// tracing asks Config.Tracer about runs that a host plans in its own transaction. It is nil
// where there is no tracer.
type tracing struct {
	tracer Tracer
	spans  *guard.Spans
}

func newTracing(t Tracer, log *slog.Logger) *tracing {
	if t == nil {
		return nil
	}
	return &tracing{t, guard.NewSpans(guard.NewLog(func() *slog.Logger { return log }))}
}

// triggering is Triggering of the tracer for a trigger that is in no trace yet, which it puts
// into one. Done is called with what has become of it.
func (t *tracing) triggering(ctx context.Context, jobID int64, trigger *store.Trigger) (done func(int64, error)) {
	if t == nil || trigger.Trace != "" {
		return func(int64, error) {}
	}
	trace, done := t.spans.Triggering(ctx, t.tracer, jobID)
	if with := (store.Trigger{Trace: trace}); with.Validate() == nil {
		trigger.Trace = trace
	}
	return done
}

// What tells the owner of a shard about runs that a transaction of the host's has
// planned. Comes in: ids of jobs, once that has committed, or with Config.TxNotify the
// transaction itself. Goes out: a hint for each shard concerned (see nodes_signals.go).

// Wake tells the owners of the jobs' shards that runs of the jobs wait for them, as
// Trigger does. It is for hosts that have planned runs by TriggerTx or TriggerSQLTx, and
// is called when their transaction has committed: a wake that comes before the commit
// finds nothing. Without it, and without Config.TxNotify, the runs are found within Poll.
//
// It waits for no answer: an owner in this process is told before it returns, others by a
// NOTIFY that is sent soon after, together with what else there is to be told, at most
// forty times a second. Close sends what is left; a Wake after it tells no other process.
// A notification that is lost costs the wait for the poll and nothing else, and in
// LeaseRow no other process is told at all.
//
// Whether a job is there is not looked at: the shard follows from the id, so that any
// number of ids makes at most one hint a shard, and of a job that is not there its owner
// finds nothing to do. An id that is not positive is an error, with which nobody is told.
// The first call of a process that runs no Scheduler reads the number of shards; where it
// cannot, or there is none yet, that is the error. It is safe for concurrent use.
func (s *Store) Wake(ctx context.Context, jobIDs ...int64) error {
	if err := ended(ctx); err != nil {
		return err
	}
	for _, id := range jobIDs {
		if id < 1 {
			return fmt.Errorf("postgres: wake: job %d: want positive ids", id)
		}
	}
	if len(jobIDs) == 0 {
		return nil
	}
	shards, err := s.shards(ctx)
	if err != nil {
		return failed(err, "wake %d jobs", len(jobIDs))
	}
	woken := make([]bool, shards)
	for _, id := range jobIDs {
		if shard := shardOf(id, shards); !woken[shard] {
			woken[shard] = true
			s.wakeRun(shard)
		}
	}
	return nil
}

// shardOf is the shard of a job.
func shardOf(jobID int64, shards int) int { return int(jobID % int64(shards)) }

var errNoContext = errors.New("postgres: the context is nil")

// ended returns the error of a context that has ended, or is none.
func ended(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return ctx.Err()
}
