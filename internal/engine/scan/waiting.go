package scan

import (
	"context"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Jobs that wait for an executor of their app, which has none: nothing is planned of them, and they
// stay due from the first instant on that nobody was there for. Input: what is due. Output: which
// of it waits, and from when on a scan has to look.

// Serving says which apps have nobody: room registry has it.
type Serving interface {
	// HoldsUp reports whether nothing is to be planned of a job.
	HoldsUp(ctx context.Context, job *store.Job) bool
	// SetJobs notes how many jobs of each app wait.
	SetJobs(jobs map[string]int)
	// Turn changes whenever an app is served again.
	Turn() uint64
}

// waitingJobs are those among the due jobs. Most scans pass them by, for there may be ten thousand
// of them: they are looked at when an app is served again, and every few seconds, since an edit
// may have changed one. It belongs to the scan loop.
type waitingJobs struct {
	serving Serving

	whole bool           // the scan that is under way looks at all of them
	found map[string]int // by it, by app
	known int            // how many there are, as of the last that has
	turn  uint64         // as of then
	of    []store.Shard  // what that was for
	next  time.Time      // monotonic: when the next one is to
	start time.Time      // where other scans begin
}

const (
	// waitingEvery is how often all are looked at.
	waitingEvery = 5 * time.Second
	// waitingMargin is how long before its time the last scan has begun: what is written as due is
	// written by clocks that may be behind.
	waitingMargin = 10 * time.Second
)

func (w *waitingJobs) count() int { return w.known }

// from is where a scan begins, the zero time for the first of all; aside says that other jobs are
// left as they are, which are to come with each scan.
func (w *waitingJobs) from(shards []store.Shard, aside bool) time.Time {
	turn := w.serving.Turn()
	w.whole = aside || w.known == 0 || w.turn != turn || !time.Now().Before(w.next) || !slices.EqualFunc(w.of, shards, sameLease)
	if !w.whole {
		return w.start
	}
	w.turn = turn
	clear(w.found)
	return time.Time{}
}

func sameLease(a, b store.Shard) bool { return a.ID == b.ID && a.Epoch == b.Epoch }

// has reports whether a due job waits.
func (w *waitingJobs) has(ctx context.Context, job *store.Job) bool {
	if !w.serving.HoldsUp(ctx, job) {
		return false
	}
	if w.found == nil {
		w.found = map[string]int{}
	}
	w.found[job.App]++
	return true
}

// looked ends a scan; all says that nothing that is due was left but what waits.
func (w *waitingJobs) looked(now time.Time, shards []store.Shard, all bool) {
	if !w.whole {
		return
	}
	was := w.known
	w.known = 0
	for _, n := range w.found {
		w.known += n
	}
	if w.known+was > 0 {
		w.serving.SetJobs(w.found)
	}
	w.again()
	if all {
		w.of, w.next, w.start = append(w.of[:0], shards...), time.Now().Add(waitingEvery), now.Add(-waitingMargin)
	}
}

// again has the next scan look at all of them.
func (w *waitingJobs) again() { w.next = time.Time{} }
