package queue

import (
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/blockrule"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
)

// What a node knows of the jobs that have runs in memory.

// jobBook has the jobs of the runs that a node holds and of its flights.
type jobBook struct {
	slowAfter time.Duration  // Limits.SlowAfter
	slowCount int            // Limits.SlowCount
	changed   func(id int64) // called with mu held for a job of which another version is known

	mu     *sync.Mutex       // the lock of the Queue
	refs   map[int64]*jobRef // guarded by mu
	tidied int64             // guarded by mu: the minute of the last tidy
}

func newJobBook(mu *sync.Mutex, limits core.Limits, changed func(id int64)) *jobBook {
	return &jobBook{slowAfter: limits.SlowAfter, slowCount: limits.SlowCount, changed: changed, mu: mu, refs: map[int64]*jobRef{}}
}

// took takes in how long a trigger of a job has taken, and when that was known. Caller
// holds mu.
func (b *jobBook) took(id int64, job *store.Job, took time.Duration, now time.Time) {
	if took <= b.slowAfter {
		return
	}
	ref := b.refs[id]
	if ref == nil { // its result was quicker than the answer
		ref = newRef(id, job)
		b.refs[id] = ref
	}
	ref.slow.add(now)
}

// isSlow reports whether the triggers of a job in use go through the slow lane. Caller holds mu.
func (b *jobBook) isSlow(ref *jobRef, now time.Time) bool { return ref.slow.slow(now, b.slowCount) }

// jobRef is a job in memory, with what is counted about it.
type jobRef struct {
	id    int64
	job   *store.Job // a snapshot: replaced, never changed
	stale bool       // has to be read again before the next start
	gone  bool       // was removed: its entries are dropped when they come up
	slow  slowness
	refs  int
	Memo  any // what room router remembers of where its last run went; nil for nothing
}

// newRef is a job in a copy of its own: what is read by scans is in memory that they use again.
func newRef(id int64, job *store.Job) *jobRef {
	own := *job
	return &jobRef{id: id, job: &own}
}

// know takes a definition over from the store.
func (b *jobBook) know(id int64, r *jobRef, j *store.Job) {
	before, own := r.job.Version, *j
	if r.job, r.stale, r.gone = &own, false, false; own.Version != before {
		b.changed(id)
	}
}

// Remember keeps the latest definition of a job that has runs in memory. One that the
// store has refused, and one of a job that was removed, give way to any other: a database
// that failed over may have forgotten an edit, or that the job was removed.
func (b *jobBook) Remember(jobs map[int64]*store.Job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, j := range jobs {
		if ref := b.refs[id]; ref != nil && (ref.stale || ref.gone || j.Version >= ref.job.Version) {
			b.know(id, ref, j)
		}
	}
}

// ref counts a use of the job, which may be nil where it is not known. What it returns stays
// the job's for as long as it is used.
func (b *jobBook) ref(id int64, job *store.Job) *jobRef {
	ref := b.refs[id]
	switch {
	case ref == nil && job != nil:
		ref = newRef(id, job)
		b.refs[id] = ref
	case ref == nil:
		ref = &jobRef{id: id, job: &store.Job{}, stale: true}
		b.refs[id] = ref
	case job != nil && (ref.stale || ref.gone || job.Version > ref.job.Version):
		b.know(id, ref, job)
	case job == nil && ref.gone:
		ref.stale, ref.gone = true, false // who has runs may be there again
	}
	ref.refs++
	return ref
}

// share counts one more use of a job that the caller already has in use; it looks the job up again
// where that is out of date.
func (b *jobBook) share(ref *jobRef, job *store.Job) *jobRef {
	if ref == nil || ref.stale || ref.gone || job.Version > ref.job.Version {
		return b.ref(job.ID, job)
	}
	ref.refs++
	return ref
}

// unref gives a use back. A job that was slow is remembered until tidy.
func (b *jobBook) unref(ref *jobRef) {
	if ref.refs--; ref.refs <= 0 && ref.slow.count == 0 {
		delete(b.refs, ref.id)
	}
}

// Tidy forgets, once a minute, jobs without runs whose slow minute is over.
func (b *jobBook) Tidy(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if minute := now.Unix() / 60; minute != b.tidied {
		b.tidied = minute
	} else {
		return
	}
	for id, ref := range b.refs {
		if ref.refs <= 0 && ref.slow.minute != now.Unix()/60 {
			delete(b.refs, id)
		}
	}
}

// Job returns what is known of a job, nil when nothing is.
func (b *jobBook) Job(id int64) *store.Job {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ref := b.refs[id]; ref != nil && !ref.stale {
		return ref.job
	}
	return nil
}

// Unread are the jobs of runs that have to be read before these start, each once, in the order of the
// runs.
func (b *jobBook) Unread(runs []store.Run) (ids []int64) {
	seen := map[int64]bool{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range runs {
		id := runs[i].JobID
		if ref := b.refs[id]; ref != nil && ref.stale && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// JobGone notes that a job was removed; its runs were cancelled with it.
func (b *jobBook) JobGone(id int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ref := b.refs[id]; ref != nil {
		ref.gone = true
	}
}

// isSerial reports whether a job is known to be a serial one.
func (b *jobBook) isSerial(jobID int64) bool {
	ref := b.refs[jobID]
	return ref != nil && ref.job.ID != 0 && blockrule.Of(ref.job.Block).KeepsOrder
}

// slowness counts a job's slow triggers by the minute (XXL-JOB: more than ten
// of over 500 ms in one minute).
type slowness struct {
	minute int64
	count  int
}

func (s *slowness) add(now time.Time) {
	if m := now.Unix() / 60; m != s.minute {
		s.minute, s.count = m, 0
	}
	s.count++
}

func (s *slowness) slow(now time.Time, most int) bool {
	return s.minute == now.Unix()/60 && s.count > most
}
