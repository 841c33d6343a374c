package xxljob

import (
	"sync"
	"time"
)

// XXL-JOB's bound on calls that manage jobs (section 1.4), here for each app.
const (
	quotaCalls = 100
	quotaSpan  = 30 * time.Second
)

// quota bounds how often each app may manage its jobs. It is safe for concurrent use.
type quota struct {
	mu    sync.Mutex
	calls map[string]window // guarded by mu: by app; as many as have tokens
}

type window struct {
	since time.Time
	n     int
}

func newQuota() *quota { return &quota{calls: map[string]window{}} }

// take counts a call, and reports whether it is allowed.
func (q *quota) take(app string, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.calls[app]
	if now.Sub(w.since) >= quotaSpan {
		w = window{since: now}
	}
	w.n++
	if _, known := q.calls[app]; !known && len(q.calls) >= 10_000 {
		clear(q.calls) // apps without end come with Insecure only
	}
	q.calls[app] = w
	return w.n <= quotaCalls
}
