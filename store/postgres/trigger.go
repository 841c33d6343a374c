package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/failpoint"
)

// AddRun inserts a planned run outside the schedule.
func (s *Store) AddRun(ctx context.Context, jobID int64, t xxljob.Trigger) (xxljob.Run, error) {
	if noJobID(jobID) {
		return xxljob.Run{}, failed(xxljob.ErrNotFound, "add run of job %d", jobID)
	}
	var run xxljob.Run
	added := false
	err := s.withPartitions(ctx, func() error {
		return s.inTx(ctx, bounds{name: "add_run"}, func(x *tx) error {
			added = false
			var id *int64
			if t.Key != "" {
				var err error
				if run, id, err = s.takeKey(ctx, x.do, jobID, t.Key); err != nil || id == nil {
					return err
				}
			}
			var runs []xxljob.Run
			if err := x.do(ctx, statement{s.sql.addRun, triggerArguments.values(triggerArgs(jobID, id, &t)), readRuns(&runs)}); err != nil {
				return err
			}
			if len(runs) == 0 {
				return xxljob.ErrNotFound
			}
			run, added = runs[0], true
			return nil
		})
	})
	if err != nil {
		return xxljob.Run{}, failed(err, "add run of job %d", jobID)
	}
	if added {
		s.wakeRun(run.Shard)
	}
	return run, nil
}

// doer runs statements in a transaction, ours or the host's.
type doer func(context.Context, ...statement) error

// takeKey takes the key for a new run, whose id it returns, or else returns the
// run that the key was used for. The key is inserted first, so a call waits for
// others with the same key only.
func (s *Store) takeKey(ctx context.Context, do doer, jobID int64, key string) (xxljob.Run, *int64, error) {
	var ids []int64
	if err := do(ctx, statement{s.sql.addKey, []any{jobID, key}, readIDs(&ids)}); err != nil {
		return xxljob.Run{}, nil, err
	}
	if len(ids) > 0 {
		return xxljob.Run{}, &ids[0], nil
	}
	var runs []xxljob.Run
	if err := do(ctx, statement{s.sql.keyRun, []any{jobID, key}, readRuns(&runs)}); err != nil {
		return xxljob.Run{}, nil, err
	}
	if len(runs) == 0 {
		return xxljob.Run{}, nil, xxljob.ErrNotFound // the job, or by now the run of the key
	}
	return runs[0], nil, nil
}

// triggerArgs are the arguments of addRun and planRun.
func triggerArgs(jobID int64, id *int64, t *xxljob.Trigger) named {
	kind := t.Type
	if kind == "" {
		kind = xxljob.TriggerManual
	}
	retries := retriesOfJob
	if t.Retries != nil {
		retries = *t.Retries
	}
	var addresses []string
	if len(t.Addresses) > 0 {
		addresses = t.Addresses
	}
	return named{
		"job": jobID, "id": id, "type": string(kind), "at": milli(stored(t.At)), "sharding": shardingColumn(t.Shard),
		"param": t.Param, "param_set": flag(t.Param != nil), "addresses": addresses, "retries": retries,
	}
}

// TriggerTx plans a run of the job in the caller's own transaction, at any
// isolation level, and returns its id. The run exists when the transaction
// commits, and not otherwise; it is found within Poll after the commit and is
// never late for the time that the commit took. Wake after the commit, or
// Config.TxNotify, has it found at once.
//
// It is one plain insert and takes no lock that a claim, a start or an edit waits
// for. With a Key it inserts the key first, and may wait for another transaction
// with the same Key; above READ COMMITTED the database may answer with a
// serialization error (SQLSTATE 40001), which is returned for the caller to try
// the whole transaction again. A job that is absent is xxljob.ErrNotFound; bad
// input, a nil transaction or context among it, is refused before anything is sent.
// After any other error the transaction has failed and can only be rolled back.
//
// The transaction has to be on the database of the store. A job that is removed
// before the commit leaves a run that is cancelled when it comes up.
func (s *Store) TriggerTx(ctx context.Context, tx pgx.Tx, jobID int64, t xxljob.Trigger) (int64, error) {
	return s.triggerTx(ctx, isNil(tx), jobID, t, func(query string, args ...any) (id int64, err error) {
		return id, tx.QueryRow(ctx, query, args...).Scan(&id)
	})
}

// TriggerSQLTx is TriggerTx for a transaction of database/sql. Its driver has to
// be pgx's, github.com/jackc/pgx/v5/stdlib.
func (s *Store) TriggerSQLTx(ctx context.Context, tx *sql.Tx, jobID int64, t xxljob.Trigger) (int64, error) {
	return s.triggerTx(ctx, tx == nil, jobID, t, func(query string, args ...any) (id int64, err error) {
		return id, tx.QueryRowContext(ctx, query, args...).Scan(&id)
	})
}

// triggerTx inserts the key, if there is one, and then the run.
func (s *Store) triggerTx(ctx context.Context, noTx bool, jobID int64, t xxljob.Trigger, queryID func(string, ...any) (int64, error)) (int64, error) {
	if ctx == nil {
		return 0, errNoContext
	}
	if noTx {
		return 0, failed(errors.New("the transaction is nil"), "trigger job %d", jobID)
	}
	if err := t.Validate(); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if noJobID(jobID) {
		return 0, absentJob(jobID)
	}
	failpoint.Hit("trigger_tx." + failpoint.Begin)
	var id *int64
	if t.Key != "" {
		key, err := queryID(s.sql.addKey, jobID, t.Key)
		if noRows(err) {
			if key, err = queryID(s.sql.keyID, jobID, t.Key); noRows(err) {
				return 0, absentJob(jobID) // neither was the job there
			}
			return key, failed(err, "trigger job %d", jobID)
		}
		if err != nil {
			return 0, failed(err, "trigger job %d", jobID)
		}
		id = &key
	}
	plan, args, values := s.sql.planRun, triggerArguments, triggerArgs(jobID, id, &t)
	if s.cfg.TxNotify {
		plan, args, values["channel"] = s.sql.planRunTold, triggerToldArguments, s.channel
	}
	run, err := queryID(plan, args.values(values)...)
	if noRows(err) {
		return 0, absentJob(jobID)
	}
	return run, failed(err, "trigger job %d", jobID)
}

// isNil reports whether there is no transaction, or one of a type of the driver's that
// is nil within: what a function returns that declares the one and has the other.
func isNil(tx pgx.Tx) bool {
	v := reflect.ValueOf(tx)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// absentJob is xxljob.ErrNotFound about a job that was to be triggered.
type absentJob int64

func (id absentJob) Error() string {
	return fmt.Sprintf("postgres: trigger: job %d does not exist", int64(id))
}
func (absentJob) Is(target error) bool { return target == xxljob.ErrNotFound }

func noRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// triggerQueries are the statements of this file.
type triggerQueries struct {
	keyID, addKey, keyRun, addRun, planRun, planRunTold string
}

// triggerArguments are those of a trigger, and triggerToldArguments those of one that the
// transaction tells of.
var (
	triggerArguments     = argumentsOf("job id type at sharding param param_set addresses retries")
	triggerToldArguments = argumentsOf("job id type at sharding param param_set addresses retries", "channel")
)

// write writes them. Those that make a trigger's key and its run are for the host's
// transactions too, whose path is whatever the host has set.
func (q *triggerQueries) write() {
	q.keyID = `select k.run_id from {{schema}}.xxl_job_trigger_key k
	where k.job_id operator(pg_catalog.=) $1 and k.trigger_key operator(pg_catalog.=) $2`
	q.addKey = `insert into {{schema}}.xxl_job_trigger_key (job_id, trigger_key, run_id)
	select i.id, $2::text, {{run_id}} from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) $1
	on conflict do nothing returning run_id`
	q.keyRun = `select {{run}} from {{schema}}.xxl_job_log l
	where l.id = (select k.run_id from {{schema}}.xxl_job_trigger_key k where k.job_id = $1 and k.trigger_key = $2)`
	insert := `insert into {{schema}}.xxl_job_log as l (id, job_id, shard, app_name, trigger_type, scheduled_time, state,
		executor_sharding_param, executor_param, param_set, address_list, executor_fail_retry_count, add_time)
	select coalesce({{arg.id}}::bigint, {{run_id}}), i.id, i.shard, i.app_name, {{arg.type}}, greatest({{arg.at}}::bigint, ` + milliseconds("{{now}}") + `),
		{{state.planned}}, {{arg.sharding}}, {{arg.param}}, {{arg.param_set}}, {{arg.addresses}}, {{arg.retries}}, {{now}}
	from {{schema}}.xxl_job_info i where i.id operator(pg_catalog.=) {{arg.job}}`
	q.addRun = triggerArguments.in(insert + ` for key share of i returning {{run}}`)
	q.planRun = triggerArguments.in(insert + ` returning l.id`)
	// The hint is a scan hint as wakeRun sends it. It stands in the condition, for the
	// planner leaves out what nobody reads.
	q.planRunTold = triggerToldArguments.in(`with l as (` + insert + ` returning l.id, l.shard)
	select l.id from l where pg_catalog.pg_notify({{arg.channel}}, 's' operator(pg_catalog.||) l.shard::text) is not null`)
}
