package store

// What a Store may leave out, of which each part is an interface of one or two methods: whoever asks looks
// whether the store has it. Larger parts of that kind have files of their own, named after what they are about.

import (
	"context"
	"time"
)

// Retainer is what a Store is as well that keeps runs until it is told to drop them.
// A store that bounds them by itself, by number for example, does not implement it.
type Retainer interface {
	// DropRuns forgets the runs that were planned before the given time, or some
	// that are close to it later. Those that have not ended are ended before. It may
	// take minutes, and may be called again after an error.
	DropRuns(ctx context.Context, before time.Time) error
}

// RetentionAware is what a Store is as well that plans runs without a Scheduler, in
// transactions of the host: whether a run is kept apart depends on how long runs are kept.
type RetentionAware interface {
	// KnowRetention is called by xxljob.New with Config.RunRetention. Of several schedulers
	// over one store the shortest holds. It does not block.
	KnowRetention(d time.Duration)
}

// ClockMarker is what a Store is as well that goes by a clock of its own, and remembers how late
// it was by that when it was last trusted. By this mark a node that has just started sees that the
// clock is far ahead, and deletes nothing by it.
type ClockMarker interface {
	// ClockMark returns the mark, the zero time where there is none.
	ClockMark(ctx context.Context) (time.Time, error)
	// SetClockMark sets the mark, to the millisecond, be it earlier or later than it was.
	SetClockMark(ctx context.Context, mark time.Time) error
}

// RunRedater is what a Store is as well that can correct runs which a clock that was ahead has dated.
// Both stores of this module are.
type RunRedater interface {
	// RedateRuns corrects planned runs of the shards, under their epochs, that no schedule made and
	// that say to have been inserted more than a minute after q.Now: from then on they were
	// inserted at q.Now. Those that were due at once are due then, retries after what is left of
	// their pause; others, for which somebody has named a time, when they were. It corrects at
	// most q.Limit, and returns how many. Runs that the store refuses to correct alone are left as
	// they are, and ErrRefused says so beside the number of the others.
	RedateRuns(ctx context.Context, q RedateQuery) (int, error)
}

// RedateQuery chooses runs that a clock has dated which was ahead.
type RedateQuery struct {
	Shards []Shard
	Now    time.Time
	Limit  int
}

// ZoneNoter is what a Store is as well that keeps of which zones its nodes have no data, so that jobs
// in these go to nodes that have. Both stores of this module are.
type ZoneNoter interface {
	// NoteUnknownZones stores the zones with the node as its UnknownZones, in place of those that it
	// had, by its next Beat at the latest. Beats leave them as they are, and give them back where they
	// add the node again; a node that joins has none, and one that is not there is no error.
	NoteUnknownZones(ctx context.Context, incarnation string, zones []string) error
}

// ProcessNoter is what a Store is as well that keeps what its nodes say of their processes, for who
// looks at them. Both stores of this module are.
type ProcessNoter interface {
	// NoteProcess stores it with the node, in place of what it said before, by its next Beat at the
	// latest. A Version longer than MostVersion is cut. Beats leave it as it
	// is, and give it back where they add the node again; a node that joins has none, and one that is
	// not there is no error.
	NoteProcess(ctx context.Context, incarnation string, p Process) error
}

// Process is what a node says of its process: see Node.
type Process struct {
	Version     string
	ClockOffset time.Duration
}

// MostVersion is how many bytes a Process.Version has at most.
const MostVersion = 64

// Volatile is what a Store is as well that may keep nothing across an exit of the process. A store
// that is none counts as one that outlives it.
type Volatile interface {
	// OutlivesProcess reports whether another process finds what this one has stored. It does not
	// change and does not block.
	OutlivesProcess() bool
}

// Outlives reports whether what is stored in s outlives the process.
func Outlives(s Store) bool {
	v, ok := s.(Volatile)
	return !ok || v.OutlivesProcess()
}

// ReportFolder is what a Store is as well that adds up reports behind the transactions
// that write them.
type ReportFolder interface {
	// FoldReports adds up what is spread over several rows, and quarters of an hour of long
	// ago to days. The reports stay equal to what they were, but for their Length. It may be
	// called again after an error, and by several nodes at a time.
	FoldReports(ctx context.Context) error
}

// LockReader is what a Store is as well that can say who holds rows which others have locked. The
// one in Postgres is.
type LockReader interface {
	// LockHolders returns who holds locks that keep the shards, jobs or runs from being written,
	// at most ten, each in a line for the log: what identifies the session, who it is, and what
	// it is doing, as far as the caller may know that. It waits for none of these locks.
	LockHolders(ctx context.Context, q LockQuery) ([]string, error)
}

// LockQuery says whose rows LockReader.LockHolders is asked about.
type LockQuery struct {
	Shards []int
	Jobs   []int64
	Runs   []int64
}
