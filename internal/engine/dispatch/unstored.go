package dispatch

import (
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
)

// unstored are batches of results that the store has been asked to take and has not taken, by
// their first. Of those that it takes at once there is nothing here.
type unstored struct {
	mu      sync.Mutex
	all     map[*store.Result]unstoredBatch
	refused map[int64]time.Time // results that the store refuses, by run, since when
}

type unstoredBatch struct {
	count int
	since time.Time
}

func (u *unstored) failed(results []store.Result, since time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = make(map[*store.Result]unstoredBatch)
	}
	u.all[&results[0]] = unstoredBatch{len(results), since}
}

func (u *unstored) over(results []store.Result) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, &results[0])
}

// refuses notes results that are left to lockedLoop, since the store refuses them.
func (u *unstored) refuses(results []store.Result, since time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.refused == nil && len(results) > 0 {
		u.refused = make(map[int64]time.Time)
	}
	for i := range results {
		u.refused[results[i].RunID] = since
	}
}

// settled takes in what lockedLoop has left of results, and forgets the others, also in times.
func (u *unstored) settled(results, rest []store.Result, times map[int64]int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.refused)+len(times) == 0 {
		return
	}
	left := make(map[int64]bool, len(rest))
	for i := range rest {
		left[rest[i].RunID] = true
	}
	for i := range results {
		if id := results[i].RunID; !left[id] {
			delete(u.refused, id)
			delete(times, id)
		}
	}
}

// oldest is how many results there are, and since when the first could not be stored.
func (u *unstored) oldest() (n int, since time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, b := range u.all {
		n += b.count
		if since.IsZero() || b.since.Before(since) {
			since = b.since
		}
	}
	for _, at := range u.refused {
		n++
		since = core.Earlier(since, at)
	}
	return n, since
}
