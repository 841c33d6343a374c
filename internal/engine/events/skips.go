package events

import (
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Lines about instants that are recorded as not run: comes in each record, goes out a line a job
// and minute, with how many records were made since the last one.

const (
	skipsEvery = time.Minute
	// skipsJobs bounds the jobs that are told apart; those beyond it share one.
	skipsJobs = 10_000
)

// skipLines is safe for concurrent use, and its zero value is ready.
type skipLines struct {
	mu   sync.Mutex
	jobs map[int64]*skipLine // guarded by mu
}

// skipLine is when a line about a job was logged, and how many records had none since.
type skipLine struct {
	said   time.Time
	unsaid int
}

func (s *skipLines) say(log *slog.Logger, r *store.Run) {
	if more, now := s.add(r.JobID, time.Now()); now {
		log.Warn("xxljob: instants were skipped", "job", r.JobID, "app", r.App, "reason", r.Reason, "instants", r.Count, "first", r.First, "last", r.Last, "records_without_line", more)
	}
}

// add takes in a record, and reports whether it has a line, with how many had none before.
func (s *skipLines) add(job int64, now time.Time) (more int, say bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs == nil {
		s.jobs = map[int64]*skipLine{}
	}
	if s.jobs[job] == nil && len(s.jobs) >= skipsJobs {
		maps.DeleteFunc(s.jobs, func(_ int64, l *skipLine) bool { return now.Sub(l.said) >= skipsEvery && l.unsaid == 0 })
		if len(s.jobs) >= skipsJobs {
			job = 0
		}
	}
	l := s.jobs[job]
	if l == nil {
		l = &skipLine{}
		s.jobs[job] = l
	}
	if !l.said.IsZero() && now.Sub(l.said) < skipsEvery {
		l.unsaid++
		return 0, false
	}
	more, l.said, l.unsaid = l.unsaid, now, 0
	return more, true
}
