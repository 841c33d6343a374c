package events

import (
	"cmp"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// What the log says of ends that nobody should have to look for: of the last failed attempt, also where
// a further one was discarded or covered, of each run that is refused or lost, and of instants that are recorded as not run. Comes in each
// end that this node has stored, and those of the apps attached here that others have (otherLines);
// goes out a line a job and minute, apart for what failed and for
// what was skipped, with how many had no line since the last one. Those behind the last line are counted
// in leftout.go.

const (
	linesEvery = time.Minute // where Config.Logs.FailuresEvery is zero
	// linesJobs bounds the jobs that are told apart; those beyond it share one.
	linesJobs = 10_000
)

// endLines is safe for concurrent use.
type endLines struct {
	every time.Duration // negative: never
	mu    sync.Mutex
	jobs  map[lineKey]*endLine // guarded by mu
	own   map[int64]time.Time  // guarded by mu: runs whose ends this node has stored lately; nil while it is alone

	wake    loop.Wake // something had no line, which is counted later
	waiting bool      // guarded by mu: that is known
}

type lineKey struct {
	job     int64
	skipped bool
}

// endLine is when a line was logged, and how many ends had none since.
type endLine struct {
	said   time.Time
	unsaid int
	app    string // of the last that had none
	last   int64  // that run
}

func newEndLines(every time.Duration) *endLines {
	return &endLines{every: cmp.Or(every, linesEvery), jobs: map[lineKey]*endLine{}, wake: loop.NewWake()}
}

// wants reports whether an end has a line, if not too many came before it.
func (l *endLines) wants(r *store.Run) bool {
	if l.every < 0 {
		return false
	}
	switch r.State {
	case store.StateSkipped, store.StateRefused, store.StateLost:
		return true
	}
	return r.FailedForGood()
}

// logEnd logs an end; more is how many had no line before. The key is the job's, "" where it has
// none or it is not known.
func logEnd(log *slog.Logger, r *store.Run, key string, more int) {
	about := []any{"app", r.App, "key", key, "job", r.JobID, "run", r.ID}
	if r.State == store.StateSkipped {
		log.Warn("xxljob: instants were skipped", append(about, "reason", r.Reason, "instants", r.Count, "first", r.First, "last", r.Last, "records_without_line", more)...)
		return
	}
	log.Warn("xxljob: a run has failed", append(about, "state", r.State.String(), "attempt", r.Attempt+1, "instant", r.Instant(), "error", r.Err(), "runs_without_line", more)...)
}

// add takes in an end, and reports whether it has a line, with how many had none before.
func (l *endLines) add(r *store.Run, now time.Time) (more int, say bool) {
	key := lineKey{r.JobID, r.State == store.StateSkipped}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs[key] == nil && len(l.jobs) >= linesJobs {
		maps.DeleteFunc(l.jobs, func(_ lineKey, e *endLine) bool { return now.Sub(e.said) >= l.every && e.unsaid == 0 })
		if len(l.jobs) >= linesJobs {
			key.job = 0
		}
	}
	e := l.jobs[key]
	if e == nil {
		e = &endLine{}
		l.jobs[key] = e
	}
	if !e.said.IsZero() && now.Sub(e.said) < l.every {
		e.unsaid, e.app, e.last = e.unsaid+1, r.App, r.ID
		l.wake.PokeIf(!l.waiting)
		l.waiting = true
		return 0, false
	}
	more, e.said, e.unsaid = e.unsaid, now, 0
	return more, true
}
