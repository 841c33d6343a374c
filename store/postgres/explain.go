package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store"
)

// reasons are what a start depends on, as read after it was turned down. A start
// that nothing here explains met a row that others had locked, or something has
// changed meanwhile: StartLocked makes the caller try again.
type reasons struct {
	epochs map[int]int64
	runs   map[int64]xxljob.Run
	jobs   map[int64]jobStatus
	there  map[string]bool
	busy   map[busyAt]bool
	retry  map[int64][]xxljob.Run // by job, those that wait, in order of their instants
}

type jobStatus struct {
	version int64
	enabled bool
	manual  bool // it is not enabled for that alone
}

type busyAt struct {
	job     int64
	address string
}

// explain fills in the answers of starts that changed nothing.
func (s *Store) explain(ctx context.Context, starts []xxljob.Start, left []int, answers []xxljob.Started) error {
	why, err := s.reasons(ctx, starts, left)
	if err != nil {
		return err
	}
	for _, i := range left {
		answers[i] = why.of(&starts[i])
	}
	return nil
}

func (s *Store) reasons(ctx context.Context, starts []xxljob.Start, left []int) (*reasons, error) {
	var shards []int16
	var ids, jobs []int64
	var there []string
	for _, i := range left {
		st := &starts[i]
		shards, ids, jobs = append(shards, int16(st.Shard)), append(ids, st.RunID), append(jobs, st.JobID)
		for _, address := range append([]string{st.Address}, st.Targets...) {
			if inc := inboxColumn(st.Owner, address); inc != "" {
				there = append(there, inc)
			}
		}
	}
	r := &reasons{epochs: map[int]int64{}, runs: map[int64]xxljob.Run{}, jobs: map[int64]jobStatus{}, there: map[string]bool{}, busy: map[busyAt]bool{}, retry: map[int64][]xxljob.Run{}}
	lo, hi := rangeOf(ids)
	openLo, openHi := s.openRange()
	var row runRow
	err := s.read(ctx,
		s.sql.whyFence.with(shards).into(r.readFence),
		s.sql.whyRun.by(named{{"runs", ids}, {"lo", lo}, {"hi", hi}}).into(func(rows pgx.Rows) error {
			run, err := row.scan(rows)
			r.runs[run.ID] = run
			return err
		}),
		s.sql.whyJob.with(jobs).into(r.readJob),
		s.sql.whyNode.with(there).into(func(rows pgx.Rows) error {
			var inc string
			err := rows.Scan(&inc)
			r.there[inc] = true
			return err
		}),
		s.sql.whyBusy.by(named{{"shards", shards}, {"jobs", jobs}, {"lo", openLo}, {"hi", openHi}}).into(r.readBusy),
		s.sql.whyRetry.by(named{{"jobs", jobs}, {"lo", s.floors.ofWaiting()}, {"hi", openHi}}).into(r.readRetry()))
	return r, err
}

func (r *reasons) readFence(rows pgx.Rows) error {
	var shard int
	var epoch int64
	err := rows.Scan(&shard, &epoch)
	r.epochs[shard] = epoch
	return err
}

func (r *reasons) readJob(rows pgx.Rows) error {
	var id, version int64
	var status int16
	var reason string
	err := rows.Scan(&id, &version, &status, &reason)
	r.jobs[id] = jobStatus{version, status == statusEnabled, reason == reasonManual}
	return err
}

func (r *reasons) readBusy(rows pgx.Rows) error {
	var b busyAt
	err := rows.Scan(&b.job, &b.address)
	r.busy[b] = true
	return err
}

func (r *reasons) readRetry() result {
	var row runRow
	return func(rows pgx.Rows) error {
		run, err := row.scan(rows)
		r.retry[run.JobID] = append(r.retry[run.JobID], run)
		return err
	}
}

// of is the answer to one start, the first that holds in the order of
// xxljob.StartStatus.
func (r *reasons) of(st *xxljob.Start) xxljob.Started {
	epoch, has := r.epochs[st.Shard]
	run, exists := r.runs[st.RunID]
	job, there := r.jobs[st.JobID]
	started := st.State == xxljob.StateStarted
	switch {
	case !has || epoch != st.Epoch || exists && run.Shard != st.Shard:
		return xxljob.Started{Status: store.StartFenced}
	case !exists || run.State != xxljob.StatePlanned:
		return xxljob.Started{Status: store.StartGone, Run: run}
	case !there || run.JobID != st.JobID || job.version != st.JobVersion || !job.mayRun(&run),
		len(st.Targets) > 0 && run.Sharding.Total > 0:
		return xxljob.Started{Status: store.StartStale}
	case started && !r.nodesThere(st):
		return xxljob.Started{Status: store.StartNoNode}
	case started && r.ahead(st) != nil:
		return xxljob.Started{Status: store.StartBusy, Run: *r.ahead(st)}
	case started && st.Serial && r.isBusy(st):
		return xxljob.Started{Status: store.StartBusy}
	}
	return xxljob.Started{Status: store.StartLocked}
}

// mayRun is mayRun of start.go.
func (j jobStatus) mayRun(r *xxljob.Run) bool {
	return j.enabled || !r.Type.ScheduleBorn() && (!r.Born || j.manual)
}

// ahead is the retry that a start has to wait for, or nil.
func (r *reasons) ahead(st *xxljob.Start) *xxljob.Run {
	if !st.AfterRetries {
		return nil
	}
	for i := range r.retry[st.JobID] {
		w := &r.retry[st.JobID][i]
		if at := w.Instant().Compare(stored(st.Instant)); at < 0 || at == 0 && w.TriggerID < st.TriggerID {
			return w
		}
	}
	return nil
}

func (r *reasons) nodesThere(st *xxljob.Start) bool {
	return !slices.ContainsFunc(append([]string{st.Address}, st.Targets...), func(address string) bool {
		inc := inboxColumn(st.Owner, address)
		return inc != "" && !r.there[inc]
	})
}

func (r *reasons) isBusy(st *xxljob.Start) bool {
	return slices.ContainsFunc(append([]string{st.Address}, st.Targets...), func(address string) bool {
		return r.busy[busyAt{st.JobID, address}]
	})
}

// whyQueries are the statements of this file.
type whyQueries struct {
	whyFence, whyRun, whyJob, whyNode, whyBusy, whyRetry query
}

func (q *whyQueries) define(sql template) {
	q.whyFence = sql(`select k.shard, k.epoch from {{schema}}.xxl_job_lock k where k.shard = any($1::smallint[])`)
	q.whyRun = sql(`select {{run}} from {{schema}}.xxl_job_log l where l.id = any({{arg.runs}}::bigint[]) and l.id between {{arg.lo}} and {{arg.hi}}`)
	q.whyJob = sql(`select i.id, i.version, i.trigger_status, i.stop_reason from {{schema}}.xxl_job_info i where i.id = any($1::int[])`)
	q.whyNode = sql(`select n.incarnation from {{schema}}.xxl_job_node n where n.incarnation = any($1::text[]) and not n.has_left`)
	q.whyBusy = sql(`select l.job_id, l.executor_address from {{schema}}.xxl_job_log l
	where l.shard = any({{arg.shards}}::smallint[]) and l.job_id = any({{arg.jobs}}::int[]) and l.state = {{state.started}}
		and l.id between {{arg.lo}} and {{arg.hi}} and l.executor_address like 'local://%'`)
	// The first few of each job: more may be of the run's own trigger.
	q.whyRetry = sql(`select w.* from unnest({{arg.jobs}}::int[]) j(id) cross join lateral (select {{run}} from {{schema}}.xxl_job_log l
	where l.job_id = j.id and l.state = {{state.planned}} and l.trigger_type = 'RETRY' and l.id between {{arg.lo}} and {{arg.hi}}
		order by l.last_time, l.id limit 100) w`)
}
