package loop

import (
	"maps"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/slots"
)

// LogLimiter lets the log say a thing once a minute. It is safe for concurrent use, and its zero
// value is ready.
type LogLimiter struct{ said slots.Rarely }

// Allow reports whether it is time to say a thing. Callers may name apps without end: of what there
// is no room to remember, all goes by one and the same time.
func (r *LogLimiter) Allow(thing string) bool { return r.said.May(thing) }

// XXL-JOB's bound on calls that manage jobs (docs/xxl-job.md, who may do what), here for each token.
const (
	quotaCalls = 100
	quotaSpan  = 30 * time.Second
	// quotaKeys is how many are counted by themselves; the others count together.
	quotaKeys = 1000
)

// RateLimit bounds how often jobs are managed by those who have the token of an app, and by
// all those together who have one that all share, or none: these may name any app. It is
// safe for concurrent use.
type RateLimit struct {
	mu    sync.Mutex
	calls map[string]window // guarded by mu: by wire.Caller.Scope
}

type window struct {
	since time.Time
	n     int
}

func NewRateLimit() *RateLimit { return &RateLimit{calls: map[string]window{}} }

// Take counts a call, and reports whether it is allowed.
func (q *RateLimit) Take(scope string, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.calls[scope]; !known && len(q.calls) >= quotaKeys {
		maps.DeleteFunc(q.calls, func(_ string, w window) bool { return now.Sub(w.since) >= quotaSpan })
		if len(q.calls) >= quotaKeys {
			scope = ""
		}
	}
	w := q.calls[scope]
	if now.Sub(w.since) >= quotaSpan {
		w = window{since: now}
	}
	w.n++
	q.calls[scope] = w
	return w.n <= quotaCalls
}
