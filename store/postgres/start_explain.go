package postgres

// Why a start was turned down.

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/xxljob/xxljob/store"
)

// reasons are what a start depends on, as read after it was turned down. A start
// that nothing here explains met a row that others had locked, or something has
// changed meanwhile: StartLocked makes the caller try again.
type reasons struct {
	epochs map[int]int64
	runs   map[int64]store.Run
	jobs   map[int64]jobStatus
	there  map[string]bool
	busy   map[busyAt]bool
	retry  map[int64]store.Run // by run, the retry that is in the way of its start
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
func (s *Store) explain(ctx context.Context, starts []store.Start, left []int, answers []store.Started) error {
	why, err := s.reasons(ctx, starts, left)
	if err != nil {
		return err
	}
	for _, i := range left {
		answers[i] = why.of(&starts[i])
	}
	return nil
}

func (s *Store) reasons(ctx context.Context, starts []store.Start, left []int) (*reasons, error) {
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
	r := &reasons{epochs: map[int]int64{}, runs: map[int64]store.Run{}, jobs: map[int64]jobStatus{}, there: map[string]bool{}, busy: map[busyAt]bool{}, retry: map[int64]store.Run{}}
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
		s.sql.whyBusy.by(named{{"shards", shards}, {"jobs", jobs}, {"lo", openLo}, {"hi", openHi}}).into(r.readBusy))
	if err == nil {
		err = s.retriesAhead(ctx, starts, left, r)
	}
	return r, err
}

// retriesAhead reads the retries that are in the way of starts which have to wait for them.
func (s *Store) retriesAhead(ctx context.Context, starts []store.Start, left []int, r *reasons) error {
	var runs, jobs, instants, triggers []int64
	for _, i := range left {
		if st := &starts[i]; st.AfterRetries && st.State == store.StateStarted {
			runs, jobs = append(runs, st.RunID), append(jobs, st.JobID)
			instants, triggers = append(instants, milli(st.Instant)), append(triggers, st.TriggerID)
		}
	}
	if len(runs) == 0 {
		return nil
	}
	_, openHi := s.openRange()
	ahead := map[int64]int64{}
	var ids []int64
	err := s.read(ctx, s.sql.whyRetry.by(named{
		{"runs", runs}, {"jobs", jobs}, {"instants", instants}, {"triggers", triggers}, {"lo", s.floors.ofWaiting()}, {"hi", openHi},
	}).into(func(rows pgx.Rows) error {
		var run, retry int64
		err := rows.Scan(&run, &retry)
		ahead[run], ids = retry, append(ids, retry)
		return err
	}))
	if err != nil || len(ids) == 0 {
		return err
	}
	slices.Sort(ids)
	ids = slices.Compact(ids) // many may wait for one
	lo, hi := rangeOf(ids)
	var found []store.Run
	err = s.read(ctx, s.sql.whyRun.by(named{{"runs", ids}, {"lo", lo}, {"hi", hi}}).into(readRuns(&found)))
	waits := make(map[int64]store.Run, len(found))
	for _, f := range found {
		if f.State == store.StatePlanned {
			waits[f.ID] = f
		}
	}
	for run, retry := range ahead {
		r.retry[run] = waits[retry]
	}
	return err
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

// of is the answer to one start, the first that holds in the order of
// store.StartStatus.
func (r *reasons) of(st *store.Start) store.Started {
	epoch, has := r.epochs[st.Shard]
	run, exists := r.runs[st.RunID]
	job, there := r.jobs[st.JobID]
	started := st.State == store.StateStarted
	switch {
	case !has || epoch != st.Epoch || exists && run.Shard != st.Shard:
		return store.Started{Status: store.StartFenced}
	case !exists || run.State != store.StatePlanned:
		return store.Started{Status: store.StartGone, Run: run}
	case !there || run.JobID != st.JobID || job.version != st.JobVersion || !job.mayRun(&run),
		len(st.Targets) > 0 && run.Sharding.Total > 0:
		return store.Started{Status: store.StartStale}
	case started && !r.nodesThere(st):
		return store.Started{Status: store.StartNoNode}
	case started && r.retry[st.RunID].ID != 0:
		return store.Started{Status: store.StartBusy, Run: r.retry[st.RunID]}
	case started && st.Serial && r.isBusy(st):
		return store.Started{Status: store.StartBusy}
	}
	return store.Started{Status: store.StartLocked}
}

// mayRun is mayRun of start.go.
func (j jobStatus) mayRun(r *store.Run) bool {
	return j.enabled || !r.Type.ScheduleBorn() && (!r.Born || j.manual)
}

func (r *reasons) nodesThere(st *store.Start) bool {
	return !slices.ContainsFunc(append([]string{st.Address}, st.Targets...), func(address string) bool {
		inc := inboxColumn(st.Owner, address)
		return inc != "" && !r.there[inc]
	})
}

func (r *reasons) isBusy(st *store.Start) bool {
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
	q.whyRetry = sql(`select s.run, w.id from unnest({{arg.runs}}::bigint[], {{arg.jobs}}::int[], {{arg.instants}}::bigint[], {{arg.triggers}}::bigint[]) s(run, job, instant, trigger)
	cross join lateral (select w.id from {{schema}}.xxl_job_log w where w.job_id = s.job and ` + isRetry + ` and w.last_time <= s.instant
		and (w.last_time < s.instant or w.trigger_id < s.trigger) and w.id between {{arg.lo}} and {{arg.hi}} order by w.last_time, w.id limit 1) w`)
}
