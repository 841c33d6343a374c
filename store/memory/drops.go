package memory

// What goes: runs that are dropped when it is asked for, and what Retain bounds.

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/xxljob/xxljob/store"
)

// dropStride is how many runs are looked at before others have the lock.
const dropStride = 1000

// dropping is a walk through runs that deletes some: through those of each job in turn, or of
// all, newest first. Its mark is the run that it has looked at last.
type dropping struct {
	q      *store.RunDrop
	jobs   []int64             // in order; nil for the runs of all
	before map[int64]time.Time // of each job, in the place of q.Before
	mark   store.DropMark
	found  store.Dropped
	now    time.Time
	needs  needs
}

// DropEnded deletes runs that have ended and that the question chooses, or counts them.
func (s *Store) DropEnded(ctx context.Context, q store.RunDrop) (store.Dropped, error) {
	if err := over(ctx); err != nil {
		return store.Dropped{}, err
	}
	if err := q.Validate(); err != nil {
		return store.Dropped{}, err
	}
	d := dropping{q: &q, mark: q.After}
	if len(q.JobIDs) > 0 {
		d.jobs = slices.Compact(slices.Sorted(slices.Values(q.JobIDs)))
	}
	err := s.drop(ctx, &d)
	return d.found, err
}

// DropExpired deletes runs that their jobs do not keep for any longer.
func (s *Store) DropExpired(ctx context.Context, k store.KeepQuery) (store.Dropped, error) {
	if err := over(ctx); err != nil {
		return store.Dropped{}, err
	}
	q := store.RunDrop{All: true, EndedBefore: k.EndedBefore, Limit: k.Limit}
	if err := q.Validate(); err != nil {
		return store.Dropped{}, err
	}
	d := dropping{q: &q, mark: k.After, before: map[int64]time.Time{}}
	if err := s.look(ctx); err != nil {
		return store.Dropped{}, err
	}
	for id := range s.keepers {
		d.before[id] = k.Now.Add(-s.jobs[id].def.keepRuns())
	}
	s.mu.Unlock()
	d.jobs = slices.AppendSeq([]int64{}, maps.Keys(d.before)) // never nil, which is all
	slices.Sort(d.jobs)
	err := s.drop(ctx, &d)
	return d.found, err
}

func (s *Store) drop(ctx context.Context, d *dropping) error {
	d.q.Complete()
	for more := true; more; {
		if err := s.look(ctx); err != nil {
			return err
		}
		d.now, d.needs = s.clock(), s.needs()
		room := min(dropStride, d.q.Limit-d.found.Examined)
		if d.jobs == nil {
			more = s.dropAny(d, room)
		} else {
			more = s.dropOfJobs(d, room)
		}
		s.mu.Unlock()
		if more && d.found.Examined == d.q.Limit {
			d.found.More, d.found.Next = true, d.mark
			more = false
		}
	}
	return nil
}

// dropAny looks at the next runs of all jobs, and reports whether there are more.
func (s *Store) dropAny(d *dropping, room int) bool {
	r := s.runs.before(min(cmp.Or(d.mark.RunID, anyID), s.runs.last+1))
	for ; r != nil && room > 0; room-- {
		s.dropOne(d, r, anyID)
		r = s.runs.before(d.mark.RunID)
	}
	return r != nil
}

// dropOfJobs looks at the next runs of the jobs, and reports whether there are more.
func (s *Store) dropOfJobs(d *dropping, room int) bool {
	at, _ := slices.BinarySearch(d.jobs, d.mark.JobID)
	for _, id := range d.jobs[at:] {
		if d.mark.JobID != id {
			d.mark = store.DropMark{JobID: id}
		}
		j := s.jobs[id]
		if j == nil {
			continue
		}
		end := j.oldestKept(d.q.KeepNewest)
		r := s.below(&store.RunFilter{JobID: id, Before: cmp.Or(d.mark.RunID, anyID)})
		for ; r != nil; room-- {
			if room == 0 {
				return true
			}
			next := r.links[ofJob].prev
			s.dropOne(d, r, end)
			r = next
		}
		d.mark = store.DropMark{JobID: id + 1}
	}
	return false
}

// oldestKept is the ID of the oldest of so many of its newest ended runs.
func (j *job) oldestKept(n int) int64 {
	end := anyID
	for r := j.runs.tail; r != nil && n > 0; r = r.links[ofJob].prev {
		if r.State.Ended() && !r.ahead {
			end = r.ID
			n--
		}
	}
	if n > 0 {
		return 0
	}
	return end
}

// dropOne looks at a run, and deletes it if it may go and its ID is less than end.
func (s *Store) dropOne(d *dropping, r *run, end int64) {
	d.found.Examined++
	d.mark.RunID = r.ID
	switch {
	case r.ID >= end || !d.chosen(r):
	case s.needed(d, r):
		d.found.Kept++
	case d.q.DryRun:
		d.found.Runs++
	default:
		d.found.Runs++
		s.evict(r)
	}
}

// chosen reports whether the run has ended and is one of those that are to go.
func (d *dropping) chosen(r *run) bool {
	q, before := d.q, d.q.Before
	if d.before != nil {
		before = d.before[r.job.id]
	}
	return r.State.Ended() && !r.ahead &&
		(before.IsZero() || r.plannedAt().Before(before)) &&
		(q.EndedBefore.IsZero() || fromMilli(r.ended).Before(q.EndedBefore)) &&
		(len(q.Apps) == 0 || slices.Contains(q.Apps, r.terms.app))
}

// needs are the ended runs that something still needs, but for those of which the run itself
// or its job knows.
type needs struct {
	runs map[int64]bool
	told map[int64][]store.JobTold // of jobs that are waited for to recover
}

func (s *Store) needs() needs {
	n := needs{runs: map[int64]bool{}, told: map[int64][]store.JobTold{}}
	for _, w := range s.windows {
		n.runs[w.last.parent] = true
	}
	for _, a := range s.alarms {
		n.runs[a.RunID] = true
	}
	for _, t := range s.told {
		if t.Open {
			n.told[t.JobID] = append(n.told[t.JobID], t)
		}
	}
	return n
}

// needed reports whether something needs the run, which has ended.
func (s *Store) needed(d *dropping, r *run) bool {
	first := s.runs.find(r.TriggerID)
	return first != nil && first.unended > 0 ||
		s.owing[r.ID] > 0 || d.needs.runs[r.ID] ||
		slices.ContainsFunc(d.needs.told[r.job.id], func(t store.JobTold) bool {
			return r.ID == t.RunID || r.State == store.StateSucceeded && r.ID > t.RunID
		}) ||
		r.job.waitRun == r.ID || fromMilli(r.scheduled).After(d.now) ||
		!r.job.removed && store.IsWindowKey(r.extra().key) && r.job.windowPassed(r.extra().business).After(d.now)
}

// retention bounds what is kept of what is over: ended runs of a job and of all, bytes of their
// texts, and of the logs of all.
type retention struct {
	perJob, total int
	texts, logs   int64
}

// Bounds of the audit. Entries of a job that exists are kept up to the first
// bound; those of removed jobs for as many jobs as the second says.
const (
	auditPerJob  = 100
	auditRemoved = 10_000
)

// Retain bounds the ended runs that the store keeps: perJob of each job and
// total of all. Those that ended first go first; runs that have not ended are
// always kept. The default is 10,000 and 200,000; less than one counts as one.
func Retain(perJob, total int) Option {
	return func(s *Store) { s.keep.perJob, s.keep.total = max(perJob, 1), max(total, 1) }
}

// RetainBytes bounds the texts of the ended runs that the store keeps: parameters, which runs of a
// job that are started alike have in common, results, messages and the like of all runs together
// may take so many bytes. Beyond it those that ended first go first, whatever jobs they are of, as
// with Retain; a run that takes more by itself stays until the next one ends. The default is 64 MiB,
// 335 bytes for each of the 200,000 runs that Retain keeps: messages of a run take some 200, so
// ordinary runs go by their number, and such with large parameters and results by this. Less than
// one counts as one.
//
// Runs that have not ended are not counted, and are always kept, however much they take. A process
// whose runs wait with large parameters needs room for all of these beside it.
func RetainBytes(bytes int64) Option {
	return func(s *Store) { s.keep.texts = max(bytes, 1) }
}

// RetainLogs bounds the lines of runs' logs that the store keeps (xxljob.LogConfig.InStore):
// pages of all runs together may take so many bytes, at 128 bytes a page more than their
// compressed lines. Beyond it further logs are cut, as those of a job are that has had its
// share of the day, until runs are dropped with theirs. The default is 256 MiB; with less
// than one nothing is kept but that a log was cut.
func RetainLogs(bytes int64) Option {
	return func(s *Store) { s.keep.logs = max(bytes, 0) }
}

// retire notes that a run has ended and evicts what is then over the bounds.
// That is never r itself, so the caller may go on using r, but no run that
// ended before. The first run of a trigger counts as ended once all runs of it have.
func (s *Store) retire(r *run) {
	s.lastEnd = max(s.lastEnd, r.ended)
	first := r.first
	r.first = nil // it may be evicted from now on
	first.unended--
	if first != r && first.unended == 0 { // r is the last of them; it goes behind, so that it stays
		s.keepEnded(first)
	}
	if first != r || first.unended == 0 {
		s.keepEnded(r)
	}
}

// keepEnded keeps a run among those that have ended.
func (s *Store) keepEnded(r *run) {
	j := r.job
	j.ended.push(r)
	s.ended.push(r)
	r.kept = true
	s.texts += r.textBytes()
	if r.terms.kept++; r.terms.kept == 1 {
		s.texts += int64(len(r.terms.param))
	}
	if j.ended.n > s.keep.perJob {
		s.evict(j.ended.head)
	}
	if s.ended.n > s.keep.total {
		s.evict(s.ended.head)
	}
	for s.texts > s.keep.texts && s.ended.head != r {
		s.evict(s.ended.head)
	}
}

// textBytes are those of the run's own texts: what it has in its terms is counted with these.
func (r *run) textBytes() int64 {
	n := len(r.TriggerMsg) + len(r.HandleMsg)
	if x := r.extras; x != nil {
		n += len(x.trace) + len(x.killReason) + len(x.progressText) + len(x.reason) + len(x.key)
		for _, address := range x.addresses {
			n += len(address)
		}
	}
	return int64(n)
}

// sayLater adds a line to the TriggerMsg of a run that may have ended.
func (s *Store) sayLater(r *run, line string) {
	had := len(r.TriggerMsg)
	if r.say(line); r.kept {
		s.texts += int64(len(r.TriggerMsg) - had)
	}
}

// evict forgets an ended run.
func (s *Store) evict(r *run) {
	j := r.job
	j.ended.remove(r)
	s.ended.remove(r)
	s.texts -= r.textBytes()
	if r.terms.kept--; r.terms.kept == 0 {
		s.texts -= int64(len(r.terms.param))
	}
	j.runs.remove(r)
	if r.extras != nil {
		s.dropExtras(r)
	}
	s.runs.drop(r)
	s.rest(j)
	s.forgetJob(j)
}

// dropExtras forgets what else is known by a run that is evicted.
func (s *Store) dropExtras(r *run) {
	s.unbear(r)
	s.dropPages(r)
	if key := r.extras.key; key != "" {
		delete(s.keys, triggerKey{r.job.id, key})
	}
}

// forgetJob lets go of a removed job of which nothing is kept any more.
func (s *Store) forgetJob(j *job) {
	if j.removed && j.runs.n == 0 && j.audit == nil {
		delete(s.jobs, j.id)
		if !s.jobIDs.given(j.id) {
			s.jobIDs.give(j.id)
		}
	}
}

// forgetAudits drops the audit of the jobs that were removed first.
func (s *Store) forgetAudits() {
	if len(s.removed) <= auditRemoved {
		return
	}
	j := s.jobs[s.removed[0]]
	s.removed = s.removed[1:]
	j.forgetAudit()
	s.forgetJob(j)
}
