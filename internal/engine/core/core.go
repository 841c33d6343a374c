package core

import (
	"context"
	"log/slog"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Core is what every part of a scheduler needs. New makes it, and it is only read from
// then on.
type Core struct {
	Cfg       Config
	Store     store.Store
	Logger    *slog.Logger
	Clock     *Clock
	Leases    *lease.Leases // and which incarnation this node is
	Life      *lifecycle    // and the wakes of the loops
	Troubles  *Troubles
	LockedOut *LockedOut
	Unable    Unable // see TellUnable
}

// New makes it, but for the leases, which need to know the executors of this process.
func New(cfg Config, st store.Store, log *slog.Logger) *Core {
	return &Core{
		Cfg: cfg, Store: &Meter{Store: st}, Logger: log, Life: NewLife(),
		Clock:    &Clock{Stepped: loop.NewWake(), SetBack: loop.NewWake()},
		Troubles: &Troubles{Logger: log, Wake: loop.NewWake()}, LockedOut: &LockedOut{Wake: loop.NewWake()},
	}
}

// SetShards fixes the number of shards before the first write.
func (c *Core) SetShards(ctx context.Context) error {
	return c.Life.shards.do(func() error { return c.Store.SetShards(ctx, c.Cfg.Cluster.Shards) })
}

// Now returns the store's time as this node knows it; before the first beat it
// asks for it.
func (c *Core) Now(ctx context.Context) (time.Time, error) {
	c.Clock.mu.Lock()
	known := c.Clock.known
	c.Clock.mu.Unlock()
	if !known {
		asked := time.Now()
		t, err := c.Store.Now(ctx)
		if err != nil {
			return time.Time{}, err
		}
		c.Clock.Sample(t, asked)
	}
	return c.Clock.Now(), nil
}

// The jobs of runs, as the store has them.

// ReadJobs reads the jobs of runs by id.
func (c *Core) ReadJobs(ctx context.Context, ids []int64) (map[int64]*store.Job, error) {
	jobs := make(map[int64]*store.Job, len(ids))
	for page := range slices.Chunk(ids, loop.StoreBatch) {
		found, err := loop.Call(ctx, func(ctx context.Context) ([]store.Job, error) {
			return c.Store.Jobs(ctx, store.JobFilter{IDs: page, Limit: len(page)})
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

// JobIsStopped is why a run is cancelled whose job was stopped without it.
const JobIsStopped = "the job is stopped"

// JobsOf are the jobs of runs, each once.
func JobsOf(runs []store.Run) []int64 {
	ids := make([]int64, 0, len(runs))
	for _, r := range runs {
		ids = append(ids, r.JobID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func IdsOf(runs []store.Run) map[int64]bool {
	ids := make(map[int64]bool, len(runs))
	for i := range runs {
		ids[runs[i].ID] = true
	}
	return ids
}

// Numbers that several parts go by. One that a single part goes by is beside it.
const (
	// ScanRuns is how many planned runs one scan, or one page of a reload, reads.
	ScanRuns = 5000
	// LockedPause is the pause before rows that others had locked are tried again.
	LockedPause = 10 * time.Millisecond
	// MaxAnswer bounds what is kept of an executor's answer, in bytes.
	MaxAnswer = 2000
	// MaxStartMsg bounds what is recorded of a start, in bytes: routers of users and
	// long lists of probes may have much to say.
	MaxStartMsg = 16 << 10
	// LogBytes bounds the lines of a run's log in one answer, and one line of it.
	LogBytes = 1 << 20
	// MaxLead is how long before its time a run may be marked started, to make up
	// for the store's round trip. It is sent at its time, never before.
	MaxLead = 20 * time.Millisecond
	// AttachedPlaces is how many runs one app may have under way at one attached
	// executor, where the executor does not say (Places), or is another node's.
	AttachedPlaces = 1000
	// LastWords is how long Stop goes on after its ctx has ended, for the results of the
	// handlers that it then cancels.
	LastWords = 2 * time.Second
)

// MaxPreRead is how far ahead of its time an instant is planned at most, and so
// what a node that takes a shard over has to look for.
const MaxPreRead = 55 * time.Second

// DoubtLasts is how long after an error a node looks for orphans: far longer than
// a call to the store may be under way.
const DoubtLasts = 6 * loop.CallTimeout

// WatchPoll is how often Wait looks by itself.
const WatchPoll = time.Second

// maxProgressText is how much of a progress's text is kept, in bytes: executors of ours keep
// 500 characters.
const maxProgressText = 2 << 10

// BoundProgress is what is kept of what an executor says.
func BoundProgress(p wire.Progress) (percent int, text string) {
	return min(max(p.Percent, 0), 100), errs.PlainText(errs.Shorten(p.Text, maxProgressText))
}

// StartLog is what the book has of a start of a run, from before its handler is called: no log,
// until that logs something, so that handlers which do not cost nothing. Its fields are guarded
// by the book's mu.
type StartLog struct {
	Log      any  // of the book of lines: nil until the run logs something
	Returned bool // the handler has
}

// Unscheduled reports that no schedule makes runs of the job: it has none, or is stopped.
func Unscheduled(j *store.Job) bool { return j.Stopped || j.Schedule.IsManual() }

// MustNotStart reports whether the job is stopped for a run that its schedule has made, or for
// a retry of one.
func MustNotStart(r *store.Run, job *store.Job) bool {
	return r.Type.ScheduleBorn() && Unscheduled(job) || r.Born && job.Stopped
}

// LogChange writes a line about a change that was made, beside its entry in the record.
func LogChange(ctx context.Context, log *slog.Logger, verb, object string, id any, app string, more ...any) {
	o := store.OriginOf(ctx)
	line := []any{"verb", verb, "object", object, "id", id}
	for _, field := range [][2]string{{"app", app}, {"actor", o.Actor}, {"client", o.Client}, {"request", o.RequestID}} {
		if field[1] != "" {
			line = append(line, field[0], field[1])
		}
	}
	log.InfoContext(ctx, "xxljob: change", append(line, more...)...)
}

// TimesOf are the durations that a node's leases go by.
func TimesOf(c *ClusterConfig) lease.Times {
	return lease.Times{Window: c.LeaseTTL - c.LeaseTTL/5, TTL: c.LeaseTTL, LostAfter: c.LostAfter, MaxHold: c.LeaseMaxHold}
}

// KeptAs reports whether a store has kept a text as another one: as it is, or with question marks where
// its database lacks a character.
func KeptAs(given, kept string) bool {
	if given = store.PlainText(given); given == kept {
		return true
	}
	if utf8.RuneCountInString(given) != utf8.RuneCountInString(kept) {
		return false
	}
	for _, r := range kept {
		want, size := utf8.DecodeRuneInString(given)
		if given = given[size:]; r != want && (r != '?' || want < utf8.RuneSelf) {
			return false
		}
	}
	return true
}
