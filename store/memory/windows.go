package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// Open windows of jobs that run behind others. A closed one has a run or a record under its
// key, and no row here.

// windowKey is a window of a job.
type windowKey struct {
	job   int64
	begin int64
}

// window is an open one. All of it is guarded by Store.mu.
type window struct {
	job       *job
	begin     int64
	expires   int64
	number    int64          // of those that were opened
	succeeded map[int64]bool // ids of jobs
	last      follower       // as it would follow from what has succeeded so far
}

// arrive counts a success for a window of the job.
func (s *Store) arrive(ctx context.Context, j *job, o *store.Owed, now time.Time, paid *store.Paid) {
	def := j.snapshot()
	if len(j.def.refs()) == 0 {
		return
	}
	begin := stored(def.Window(o.Business))
	if _, closed := s.keys[triggerKey{j.id, store.WindowKey(begin)}]; closed {
		return
	}
	w := s.windowOf(j, begin, now.Add(def.WindowTimeout()))
	w.succeeded[o.ParentID] = true
	w.last.parent, w.last.depth, w.last.trace = o.RunID, max(w.last.depth, o.Depth), o.Trace
	if len(w.missing(s)) == 0 {
		s.closeWindow(w)
		s.lead(ctx, j, w.last, now, paid)
	}
}

// windowOf is the open window, which is opened where it is not there.
func (s *Store) windowOf(j *job, begin, expires time.Time) *window {
	key := windowKey{j.id, toMilli(begin)}
	w := s.windows[key]
	if w == nil {
		s.lastWindow++
		w = &window{job: j, begin: key.begin, expires: toMilli(stored(expires)), number: s.lastWindow, succeeded: map[int64]bool{}}
		w.last.key, w.last.business = store.WindowKey(begin), begin
		s.windows[key] = w
		j.shard.windows.insert(w.expires, w.number, w)
		s.tellOwner(j.shard, func(x *watcher) { tell(x.owed) })
	}
	return w
}

func (s *Store) closeWindow(w *window) {
	delete(s.windows, windowKey{w.job.id, w.begin})
	w.job.shard.windows.remove(w.expires, w.number)
}

// windowPassed is when a window of the job is over.
func (j *job) windowPassed(begins time.Time) time.Time {
	def := j.def.job()
	return def.WindowPassed(begins)
}

// missing are the jobs that have not succeeded for the window.
func (w *window) missing(s *Store) []string {
	def := w.job.def.job()
	return def.Missing(func(id int64, app, key string) bool {
		j := s.named(id, app, key)
		return j != nil && w.succeeded[j.id]
	})
}

// ExpireWindows closes windows that are over.
func (s *Store) ExpireWindows(ctx context.Context, q store.WindowQuery) (store.Expired, error) {
	if err := s.begin(ctx); err != nil {
		return store.Expired{}, err
	}
	defer s.done()
	var due merged[window]
	for _, own := range q.Shards {
		if sh := s.fenced(own.ID, own.Epoch); sh != nil {
			due.add(&sh.windows, noID, noID)
		}
	}
	over, _ := due.take(toMilli(stored(q.Before)), q.Limit)
	expired := store.Expired{Windows: len(over)}
	if e := due.peek(); e != nil {
		expired.Next = fromMilli(e.at)
	}
	now := clock()
	for _, w := range over { // from here on due is out of date
		s.expire(ctx, w, now)
	}
	return expired, nil
}

// expire closes a window that is over.
func (s *Store) expire(ctx context.Context, w *window, now time.Time) {
	s.closeWindow(w)
	if w.job.removed || len(w.job.def.refs()) == 0 {
		return
	}
	missing := w.missing(s)
	if len(missing) == 0 {
		s.lead(ctx, w.job, w.last, now, &store.Paid{})
		return
	}
	begin := fromMilli(w.begin)
	s.insertSkipped(ctx, w.job, w.last, begin, now, store.ReasonJoin, store.WindowOver(begin, missing))
}

// sorted are the ids of a set, in order.
func sorted(ids map[int64]bool) []int64 { return slices.Sorted(maps.Keys(ids)) }
