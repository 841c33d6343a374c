package postgres

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/xxljob/xxljob/store"
)

// serials knows of which jobs no run is started: then a start of a serial job need
// not make the database look for one, which would cost it as much as the start.
//
// Runs of a shard are started by its owner alone, under its epoch. So what was
// started before is read when the shard is taken, and the rest this process starts
// itself. Ends that this process hears of are counted back; one that it does not
// hear of makes it look, which is what it would do without this.
type serials struct {
	turn turns // had during a start of serial jobs, so that two do not pass by each other

	mu      sync.Mutex
	known   map[int]int64   // guarded by mu: the epochs of shards whose started runs were read
	started map[int64]int   // guarded by mu: by job, the runs that are counted
	counted map[int64]int64 // guarded by mu: those runs, with their jobs
}

// maxSerials bounds the jobs that are remembered.
const maxSerials = 1_000_000

// take reads the started runs of shards that were taken.
func (x *serials) take(ctx context.Context, s *Store, shards []store.Shard) error {
	lo, hi := s.openRange()
	ids, _ := fenceArgs(shards)
	runs := map[int64]int64{}
	err := s.read(ctx, s.sql.startedJobs.by(named{{"shards", ids}, {"lo", lo}, {"hi", hi}}).into(func(rows pgx.Rows) error {
		var run, job int64
		err := rows.Scan(&run, &job)
		runs[run] = job
		return err
	}))
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.known == nil || len(x.started) > maxSerials {
		x.known, x.started, x.counted = map[int]int64{}, map[int64]int{}, map[int64]int64{}
	}
	for _, sh := range shards {
		delete(x.known, sh.ID)
		if err == nil {
			x.known[sh.ID] = sh.Epoch
		}
	}
	for run, job := range runs {
		x.count(run, job)
	}
	return failed(err, "read the started runs of %d shards", len(shards))
}

// begin counts a start, and reports whether it is sure that no run of the job is
// started.
func (x *serials) begin(st *store.Start) (free bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.started == nil {
		return false
	}
	epoch, known := x.known[st.Shard]
	free = known && epoch == st.Epoch && x.started[st.JobID] == 0
	x.count(st.RunID, st.JobID)
	return free
}

// count is called with mu held.
func (x *serials) count(run, job int64) {
	if _, has := x.counted[run]; !has {
		x.counted[run] = job
		x.started[job]++
	}
}

// parts counts the further parts of a broadcast.
func (x *serials) parts(siblings []store.Run) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range siblings {
		if x.started != nil {
			x.count(siblings[i].ID, siblings[i].JobID)
		}
	}
}

// end counts a run back that is not started any more, if it was counted: its end may
// be known before its shard was taken.
func (x *serials) end(run int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	job, has := x.counted[run]
	if !has {
		return
	}
	delete(x.counted, run)
	if x.started[job]--; x.started[job] <= 0 {
		delete(x.started, job)
	}
}

// ended counts runs that have ended or were put back.
func (x *serials) ended(runs []store.Run) {
	for i := range runs {
		if r := &runs[i]; r.State.Ended() || r.State == store.StatePlanned {
			x.end(r.ID)
		}
	}
}

// serialQueries are the statements of this file.
type serialQueries struct {
	startedJobs query
}

func (q *serialQueries) define(sql template) {
	q.startedJobs = sql(`select l.id, l.job_id from {{schema}}.xxl_job_log l where l.shard = any({{arg.shards}}::smallint[])
	and l.state in ({{state.started}}, {{state.dispatched}}) and l.id between {{arg.lo}} and {{arg.hi}}`)
}
