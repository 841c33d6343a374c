package xxljob

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// shared is what every part of a scheduler needs. New makes it, and it is only read from
// then on.
type shared struct {
	cfg    Config
	store  store.Store
	log    *slog.Logger
	clock  *clock
	leases *leases // and which incarnation this node is
	life   *life   // and the wakes of the loops
}

// setShards fixes the number of shards before the first write.
func (s *shared) setShards(ctx context.Context) error {
	return s.life.shards.do(func() error { return s.store.SetShards(ctx, s.cfg.Cluster.Shards) })
}

// now returns the store's time as this node knows it; before the first beat it
// asks for it.
func (s *shared) now(ctx context.Context) (time.Time, error) {
	s.clock.mu.Lock()
	known := s.clock.known
	s.clock.mu.Unlock()
	if !known {
		asked := time.Now()
		t, err := s.store.Now(ctx)
		if err != nil {
			return time.Time{}, err
		}
		s.clock.sample(t, asked)
	}
	return s.clock.now(), nil
}

// The jobs of runs, as the store has them.

// readJobs reads the jobs of runs by id.
func (s *shared) readJobs(ctx context.Context, ids []int64) (map[int64]*store.Job, error) {
	jobs := make(map[int64]*store.Job, len(ids))
	for len(ids) > 0 {
		page := ids[:min(len(ids), loop.StoreBatch)]
		ids = ids[len(page):]
		found, err := loop.Call(ctx, func(ctx context.Context) ([]store.Job, error) {
			return s.store.Jobs(ctx, store.JobFilter{IDs: page, Limit: len(page)})
		})
		if err != nil {
			return jobs, err
		}
		for i := range found {
			jobs[found[i].ID] = &found[i]
		}
	}
	return jobs, nil
}

// jobIsStopped is why a run is cancelled whose job was stopped without it.
const jobIsStopped = "the job is stopped"

// jobsOf are the jobs of runs, each once.
func jobsOf(runs []store.Run) []int64 {
	ids := make([]int64, 0, len(runs))
	for _, r := range runs {
		ids = append(ids, r.JobID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func idsOf(runs []store.Run) map[int64]bool {
	ids := make(map[int64]bool, len(runs))
	for i := range runs {
		ids[runs[i].ID] = true
	}
	return ids
}

// Numbers that several parts go by. One that a single part goes by is beside it.
const (
	// scanRuns is how many planned runs one scan, or one page of a reload, reads.
	scanRuns = 5000
	// lockedRetry is the pause before rows that others had locked are tried again.
	lockedRetry = 10 * time.Millisecond
	// maxAnswer bounds what is kept of an executor's answer, in bytes.
	maxAnswer = 2000
	// maxStartMsg bounds what is recorded of a start, in bytes: routers of users and
	// long lists of probes may have much to say.
	maxStartMsg = 16 << 10
	// logBytes bounds the lines of a run's log in one answer, and one line of it.
	logBytes = 1 << 20
	// maxLead is how long before its time a run may be marked started, to make up
	// for the store's round trip. It is sent at its time, never before.
	maxLead = 20 * time.Millisecond
	// attachedPlaces is how many runs one app may have under way at one attached
	// executor, where the executor does not say (Places), or is another node's.
	attachedPlaces = 1000
	// lastWords is how long Stop goes on after its ctx has ended, for the results of the
	// handlers that it then cancels.
	lastWords = 2 * time.Second
)

// maxPreRead is how far ahead of its time an instant is planned at most, and so
// what a node that takes a shard over has to look for.
const maxPreRead = 55 * time.Second

// doubtLasts is how long after an error a node looks for orphans: far longer than
// a call to the store may be under way.
const doubtLasts = 6 * loop.CallTimeout

// watchPoll is how often Wait looks by itself.
const watchPoll = time.Second

// maxProgressText is how much of a progress's text is kept, in bytes: executors of ours keep
// 500 characters.
const maxProgressText = 2 << 10

// boundProgress is what is kept of what an executor says.
func boundProgress(p wire.Progress) (percent int, text string) {
	return min(max(p.Percent, 0), 100), errs.PlainText(errs.Shorten(p.Text, maxProgressText))
}

// startLog is what the book has of a start of a run, from before its handler is called: no log,
// until that logs something, so that handlers which do not cost nothing. Its fields are guarded
// by the book's mu.
type startLog struct {
	log      any  // of the book of lines: nil until the run logs something
	returned bool // the handler has
}

// unscheduled reports that no schedule makes runs of the job: it has none, or is stopped.
func unscheduled(j *store.Job) bool { return j.Stopped || j.Schedule.IsManual() }

// logChange writes a line about a change that was made, beside its entry in the record.
func logChange(ctx context.Context, log *slog.Logger, verb, object string, id any, app string, more ...any) {
	o := store.OriginOf(ctx)
	line := []any{"verb", verb, "object", object, "id", id}
	for _, field := range [][2]string{{"app", app}, {"actor", o.Actor}, {"client", o.Client}, {"request", o.RequestID}} {
		if field[1] != "" {
			line = append(line, field[0], field[1])
		}
	}
	log.InfoContext(ctx, "xxljob: change", append(line, more...)...)
}
