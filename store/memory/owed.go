package memory

// What successes owe to other jobs: stored with the success, in the shard of its run, and paid
// by the owner of that shard.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// succeed notes that a run is about to end as succeeded, and stores what is owed where its
// trigger has succeeded with it.
func (s *Store) succeed(r *run, now int64) {
	first := r.first
	if first.succeeded++; first.succeeded < first.parts {
		return
	}
	if !r.job.def.leads() && len(s.joins) == 0 {
		return
	}
	ended := r.snapshot()
	ended.State, ended.Ended = store.StateSucceeded, fromMilli(now)
	sh := r.job.shard
	for _, o := range ended.Owes(r.job.mayFollow(), s.joinsBehind(r.job)) {
		s.lastOwed++
		sh.owed.insert(0, s.lastOwed, &owed{o, sh, s.lastOwed})
		s.owing[r.ID]++
		s.tellOwner(sh, func(w *watcher) { tell(w.owed) })
	}
}

// owed is something that is owed. All of it is guarded by Store.mu.
type owed struct {
	store.Owed
	shard  *shard
	number int64 // of all that was owed
}

// PayOwed pays what is owed in the shards.
func (s *Store) PayOwed(ctx context.Context, q store.OwedQuery) (paid store.Paid, err error) {
	if err := s.begin(ctx); err != nil {
		return store.Paid{}, err
	}
	defer s.done()
	first := s.payable(q, &paid)
	now := s.clock()
	for _, o := range first {
		if o.shard.owed.remove(0, o.number) {
			if s.owing[o.RunID]--; s.owing[o.RunID] <= 0 {
				delete(s.owing, o.RunID)
			}
			s.pay(ctx, &o.Owed, o.begin, now, &paid)
			paid.Owed++
		}
	}
	return paid, nil
}

// payable is something owed that can be paid, and when the window begins that it counts for.
type payable struct {
	*owed
	begin time.Time
}

// payable is what can be paid of what was owed first. Windows that this process cannot work out are left.
func (s *Store) payable(q store.OwedQuery, paid *store.Paid) (first []payable) {
	joins, unknown := map[*job]*store.Job{}, map[*job]bool{}
	due := merge(s, q.Shards, func(sh *shard) *order[owed] { return &sh.owed })
	for e := due.peek(); e != nil && len(first) < q.Limit; e = due.peek() {
		o := payable{owed: e.of}
		due.next()
		if j := s.named(o.JobID, o.App, o.Key); o.Join && j != nil && len(j.def.refs()) > 0 {
			def := joins[j]
			if def == nil {
				whole := j.snapshot()
				def = &whole
				joins[j] = def
			}
			var begin time.Time
			if !unknown[j] { // each time it is looked for in files
				var err error
				begin, err = def.Window(o.Business)
				unknown[j] = err != nil
			}
			if unknown[j] {
				paid.AddUnknown(o.shard.id, def)
				continue
			}
			o.begin = stored(begin)
		}
		first = append(first, o)
	}
	return first
}

// pay pays one, of a join for the window that begins so.
func (s *Store) pay(ctx context.Context, o *store.Owed, begin, now time.Time, paid *store.Paid) {
	j := s.named(o.JobID, o.App, o.Key)
	switch {
	case j == nil:
		if parent := s.runs.find(o.RunID); parent != nil {
			s.sayLater(parent, o.Unpaid())
		}
		paid.Absent++
	case o.Join:
		s.arrive(ctx, j, o, begin, now, paid)
	default:
		f := follower{key: store.ChildKey(o.TriggerID), parent: o.RunID, depth: o.Depth, business: o.Business, param: o.Param, trace: o.Trace}
		if o.Param != nil && s.withheld(o.RunID, j) {
			f.param, f.line = nil, o.Withheld()
		}
		s.lead(ctx, j, f, now, paid)
	}
}

// withheld reports whether what a run hands on is not for the job: it is secret, or may be, and the
// job is not, or is of another app.
func (s *Store) withheld(id int64, to *job) bool {
	r := s.runs.find(id)
	if r == nil || r.job.app == to.app && to.def.secret() {
		return false
	}
	for range store.MostDepth {
		if r.job.removed || r.job.def.secret() {
			return true
		}
		if !r.ParamSet || r.extra().parent == 0 {
			return false
		}
		from := s.runs.find(r.extra().parent)
		if from == nil {
			return s.hasSecrets(r.job.app)
		}
		r = from
	}
	return false
}

// hasSecrets reports whether the app has a job that is secret.
func (s *Store) hasSecrets(app string) bool {
	for _, j := range s.jobs {
		if j.app == app && j.def.secret() {
			return true
		}
	}
	return false
}

// named is the job with the ID, or with the App and Key where that is zero; nil where it is
// not there.
func (s *Store) named(id int64, app, key string) *job {
	if id != 0 {
		return s.live(id)
	}
	return s.withKey(app, key)
}

// follower is a run that successes lead to.
type follower struct {
	key      string
	parent   int64
	depth    int
	business time.Time
	window   bool // it is a join: it stands for the window that begins at business
	param    *string
	trace    string
	line     string // in the TriggerMsg of its run
}

// lead plans the run, unless it was planned before; where it is too deep it makes a record.
func (s *Store) lead(ctx context.Context, j *job, f follower, now time.Time, paid *store.Paid) {
	key := triggerKey{j.id, f.key}
	if _, before := s.keys[key]; before {
		return
	}
	if f.depth > store.MostDepth {
		paid.Records = append(paid.Records, s.insertSkipped(ctx, j, f, now, now, store.ReasonDepth, ""))
		paid.Skipped++
		return
	}
	r, run := s.newRun(j), triggered(store.Trigger{Type: store.TriggerParent, Param: f.param, Trace: f.trace}, now)
	run.TriggerMsg = f.line
	r.foreign = true
	if f.window {
		run.StandsFor = f.business
	}
	s.insertFollower(r, &run, f)
	s.tellScan(j)
	paid.Runs++
}

// insertFollower inserts a run that is filled in but for what it follows from.
func (s *Store) insertFollower(r *run, run *store.Run, f follower) {
	run.ParentID, run.Depth, run.Business = f.parent, f.depth, f.business
	r.keep(run)
	r.own().key = f.key
	s.keys[triggerKey{r.job.id, f.key}] = r.ID
	s.insertRun(r)
}

// insertSkipped inserts a record in the place of such a run, and returns it.
func (s *Store) insertSkipped(ctx context.Context, j *job, f follower, at, now time.Time, reason, line string) (record store.Run) {
	r, run := s.newRun(j), store.Run{
		Type: store.TriggerParent, State: store.StateSkipped, Created: now, Scheduled: stored(at), Retries: retriesOfJob,
		First: stored(at), Last: stored(at), Count: 1, Reason: reason, TriggerMsg: line,
	}
	s.insertFollower(r, &run, f)
	s.endTo(&record, r, store.StateSkipped, toMilli(now))
	s.stopFinished(ctx, j, toMilli(now))
	return record
}

// Links returns the jobs that name others.
func (s *Store) Links(ctx context.Context) ([]store.Job, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var links []store.Job
	for m := s.jobsAfter("", noID); m.peek() != nil; m.next() {
		j := m.peek().of
		if r := j.def.rare; r != nil && len(r.children)+len(r.childKeys)+len(r.after)+len(r.afterKeys) > 0 {
			l := store.Job{ID: j.id, App: j.app, Key: j.def.key, Children: r.children, ChildKeys: r.childKeys, ChildParam: j.def.handsOn(), After: r.after, AfterKeys: r.afterKeys}
			links = append(links, l.Clone())
		}
	}
	return links, nil
}

// indexLinks takes a definition into Store.joins, Store.watched and Store.keepers, or out of
// them.
func (s *Store) indexLinks(j *job, in bool) {
	if delete(s.watched, j.id); in && j.def.lateAfter() > 0 {
		s.watched[j.id] = true
	}
	if delete(s.keepers, j.id); in && j.def.keepRuns() > 0 {
		s.keepers[j.id] = true
	}
	for _, ref := range j.def.refs() {
		behind := s.joins[ref]
		if behind == nil {
			behind = map[int64]bool{}
			s.joins[ref] = behind
		}
		if in {
			behind[j.id] = true
		} else if delete(behind, j.id); len(behind) == 0 {
			delete(s.joins, ref)
		}
	}
}

// joinsBehind are the ids of the jobs that run behind one, in order.
func (s *Store) joinsBehind(j *job) []int64 {
	if len(s.joins) == 0 {
		return nil
	}
	ids := map[int64]bool{}
	for _, ref := range []string{store.IDRef(j.id), fmt.Sprintf("%s/%s", j.app, j.def.key)} {
		for id := range s.joins[ref] {
			ids[id] = true
		}
	}
	return sorted(ids)
}

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
func (s *Store) arrive(ctx context.Context, j *job, o *store.Owed, begin, now time.Time, paid *store.Paid) {
	if len(j.def.refs()) == 0 {
		return
	}
	def := j.snapshot()
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
		w.last.key, w.last.business, w.last.window = store.WindowKey(begin), begin, true
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
	due := merge(s, q.Shards, func(sh *shard) *order[window] { return &sh.windows })
	over, _ := due.take(toMilli(stored(q.Before)), q.Limit)
	expired := store.Expired{Windows: len(over)}
	if e := due.peek(); e != nil {
		expired.Next = fromMilli(e.at)
	}
	now := s.clock()
	for _, w := range over { // from here on due is out of date
		s.expire(ctx, w, now, &expired)
	}
	return expired, nil
}

// expire closes a window that is over.
func (s *Store) expire(ctx context.Context, w *window, now time.Time, expired *store.Expired) {
	s.closeWindow(w)
	if w.job.removed || len(w.job.def.refs()) == 0 {
		return
	}
	missing := w.missing(s)
	if len(missing) == 0 {
		var paid store.Paid // where it is too deep, a record too
		s.lead(ctx, w.job, w.last, now, &paid)
		expired.Records = append(expired.Records, paid.Records...)
		return
	}
	begin := fromMilli(w.begin)
	expired.Records = append(expired.Records, s.insertSkipped(ctx, w.job, w.last, begin, now, store.ReasonJoin, store.WindowOver(begin, missing)))
}

// sorted are the ids of a set, in order.
func sorted(ids map[int64]bool) []int64 { return slices.Sorted(maps.Keys(ids)) }
