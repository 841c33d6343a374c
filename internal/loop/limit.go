package loop

import (
	"maps"
	"sync"
	"time"
)

const (
	// rarelyEvery is how often the log repeats itself about one thing.
	rarelyEvery = time.Minute
	// rarelyThings is how many things are told apart: callers may name apps without end.
	rarelyThings = 1000
)

// LogLimiter lets the log say a thing once in a while. It is safe for concurrent use, and its
// zero value is ready.
type LogLimiter struct {
	mu   sync.Mutex
	last map[string]time.Time // guarded by mu: when a thing was said
}

// Allow reports whether it is time to say a thing. What there is no room to remember goes
// by one and the same time.
func (r *LogLimiter) Allow(thing string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.last == nil {
		r.last = map[string]time.Time{}
	}
	if _, known := r.last[thing]; !known && len(r.last) >= rarelyThings {
		maps.DeleteFunc(r.last, func(_ string, at time.Time) bool { return now.Sub(at) >= rarelyEvery })
		if len(r.last) >= rarelyThings {
			thing = ""
		}
	}
	if at, said := r.last[thing]; said && now.Sub(at) < rarelyEvery {
		return false
	}
	r.last[thing] = now
	return true
}

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
