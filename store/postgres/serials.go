package postgres

import (
	"context"
	"sync"

	"github.com/xxljob/xxljob"
)

// serials knows of which jobs no run is started: then a start of a serial job need
// not make the database look for one, which would cost it as much as the start.
//
// Runs of a shard are started by its owner alone, under its epoch. So what was
// started before is read when the shard is taken, and the rest this process starts
// itself. Ends that this process hears of are counted back; one that it does not
// hear of makes it look, which is what it would do without this.
type serials struct {
	turn sync.Mutex // held during a start of serial jobs, so that two do not pass by each other

	mu      sync.Mutex
	known   map[int]int64 // guarded by mu: the epochs of shards whose started runs were read
	started map[int64]int // guarded by mu: by job, at least the runs that are started
}

// maxSerials bounds the jobs that are remembered.
const maxSerials = 1_000_000

// take reads the started runs of shards that were taken.
func (x *serials) take(ctx context.Context, s *Store, shards []xxljob.Shard) error {
	lo, hi := s.openRange()
	ids, _ := fenceArgs(shards)
	var jobs []int64
	err := s.read(ctx, statement{s.sql.startedJobs, []any{ids, lo, hi}, readIDs(&jobs)})
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.known == nil || len(x.started) > maxSerials {
		x.known, x.started = map[int]int64{}, map[int64]int{}
	}
	for _, sh := range shards {
		delete(x.known, sh.ID)
		if err == nil {
			x.known[sh.ID] = sh.Epoch
		}
	}
	for _, job := range jobs {
		x.started[job]++
	}
	return failed(err, "read the started runs of %d shards", len(shards))
}

// begin counts a start, and reports whether it is sure that no run of the job is
// started.
func (x *serials) begin(st *xxljob.Start) (free bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.started == nil {
		return false
	}
	epoch, known := x.known[st.Shard]
	free = known && epoch == st.Epoch && x.started[st.JobID] == 0
	x.started[st.JobID] += max(1, len(st.Targets))
	return free
}

// undo takes back what begin has counted for a start that changed nothing.
func (x *serials) undo(st *xxljob.Start) { x.end(st.JobID, max(1, len(st.Targets))) }

// undoAll takes back a whole group.
func (x *serials) undoAll(starts []xxljob.Start, g *startGroup) {
	for _, i := range g.places {
		if !g.refused {
			x.undo(&starts[i])
		}
	}
}

// end counts runs that are not started any more.
func (x *serials) end(job int64, n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if left := x.started[job] - n; left > 0 {
		x.started[job] = left
	} else {
		delete(x.started, job)
	}
}

// ended counts runs that have ended or were put back.
func (x *serials) ended(runs []xxljob.Run) {
	for i := range runs {
		if r := &runs[i]; r.ID != 0 && (r.State.Ended() || r.State == xxljob.StatePlanned) && !wasPlanned(r) {
			x.end(r.JobID, 1)
		}
	}
}

// wasPlanned reports whether the run ended without having been started.
func wasPlanned(r *xxljob.Run) bool {
	return r.State == xxljob.StateCancelled && r.Started.IsZero() || r.State == xxljob.StateSkipped || r.State == xxljob.StateRefused && r.Started.IsZero()
}
