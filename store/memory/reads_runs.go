package memory

// Questions about runs, at a bounded cost.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/store"
)

// stride is how many runs a query looks at before it lets others have the lock.
const stride = 4096

// texts is how much of the long texts of runs and jobs a list has: see store.WithShortTexts.
type texts struct {
	most  int
	short bool
	links bool // as many of a job's keys of others as there are
}

func listed(ctx context.Context) (has texts) {
	has.most, has.short = store.ShortTexts(ctx)
	has.links = !store.ShortLinks(ctx)
	return has
}

// run is the run as the list has it.
func (has texts) run(r *run) store.Run {
	out := r.read()
	if has.short {
		out.ShortenTexts(has.most)
	}
	return out
}

// Run returns one run.
func (s *Store) Run(ctx context.Context, id int64) (store.Run, error) {
	if err := s.look(ctx); err != nil {
		return store.Run{}, err
	}
	defer s.mu.Unlock()
	r := s.runs.find(id)
	if r == nil {
		return store.Run{}, failed(store.ErrNotFound, "run %d", id)
	}
	return r.read(), nil
}

// RunsByID returns those of the runs that exist, each once.
func (s *Store) RunsByID(ctx context.Context, ids []int64) ([]store.Run, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	ids = copied(ids)
	slices.Sort(ids)
	has := listed(ctx)
	var found []store.Run
	for _, id := range slices.Compact(ids) {
		if r := s.runs.find(id); r != nil {
			found = append(found, has.run(r))
		}
	}
	return found, nil
}

// Runs lists runs, newest first.
func (s *Store) Runs(ctx context.Context, f store.RunFilter) ([]store.Run, error) {
	if f.Limit <= 0 {
		f.Limit = defaultLimit
	}
	if f.Before <= 0 {
		f.Before = anyID
	}
	f.From, f.To, f.EndedSince = stored(f.From), stored(f.To), stored(f.EndedSince)
	has := listed(ctx)
	var found []store.Run
	for more := true; more; {
		if err := s.look(ctx); err != nil {
			return nil, err
		}
		if more = f.EndedSince.IsZero() || !fromMilli(s.lastEnd).Before(f.EndedSince); more {
			found, more = s.walk(found, &f, has)
		}
		s.mu.Unlock()
	}
	return found, nil
}

// walk looks at the next stride of runs below f.Before, which it moves on, and
// reports whether there may be more to find.
func (s *Store) walk(found []store.Run, f *store.RunFilter, has texts) ([]store.Run, bool) {
	if t := s.runs.find(f.TriggerID); t != nil && f.JobID == 0 {
		f.JobID = t.job.id // all runs of a trigger are of one job
	}
	r := s.below(f)
	for range stride {
		if r == nil || r.ID < f.TriggerID || len(found) == f.Limit {
			return found, false
		}
		f.Before = r.ID
		switch {
		case !chosen(r, f):
		case !f.EndedSince.IsZero() && (!r.State.Ended() || fromMilli(r.ended).Before(f.EndedSince)):
			f.Limit-- // it was looked at
		default:
			found = append(found, has.run(r))
		}
		if f.JobID != 0 {
			r = r.links[ofJob].prev
		} else {
			r = s.runs.before(r.ID)
		}
	}
	return found, true
}

// below returns the newest run below f.Before, of the job if one is chosen.
func (s *Store) below(f *store.RunFilter) *run {
	if f.JobID == 0 {
		return s.runs.before(min(f.Before, s.runs.last+1))
	}
	if r := s.runs.find(f.Before); r != nil && r.job.id == f.JobID {
		return r.links[ofJob].prev
	}
	j := s.jobs[f.JobID]
	if j == nil {
		return nil
	}
	r := j.runs.tail
	for r != nil && r.ID >= f.Before {
		r = r.links[ofJob].prev
	}
	return r
}

func chosen(r *run, f *store.RunFilter) bool {
	return (f.App == "" || r.terms.app == f.App) &&
		(f.JobID == 0 || r.job.id == f.JobID) &&
		(f.TriggerID == 0 || r.TriggerID == f.TriggerID) &&
		(len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
		(f.From.IsZero() || !fromMilli(r.scheduled).Before(f.From)) &&
		(f.To.IsZero() || fromMilli(r.scheduled).Before(f.To))
}

// SearchRuns returns runs that the search chooses, newest first.
func (s *Store) SearchRuns(ctx context.Context, q store.RunSearch) (store.RunsFound, error) {
	if err := q.Validate(); err != nil {
		return store.RunsFound{}, err
	}
	if !q.Complete() {
		return store.RunsFound{SearchedTo: 1}, over(ctx)
	}
	q.From, q.To = stored(q.From), stored(q.To)
	w := search{clock: s.clock, q: &q, has: listed(ctx), text: strings.ToLower(q.Text), f: store.RunFilter{Before: q.Before}}
	if len(q.JobIDs) == 1 {
		w.f.JobID = q.JobIDs[0]
	}
	for more := true; more; {
		if err := s.look(ctx); err != nil {
			return store.RunsFound{}, err
		}
		more = s.searchOn(&w)
		s.mu.Unlock()
	}
	return w.found, nil
}

// search is a search under way.
type search struct {
	clock func() time.Time
	q     *store.RunSearch
	has   texts
	text  string          // in lower case
	f     store.RunFilter // where it is
	found store.RunsFound
}

// searchOn looks at the next stride of runs, and reports whether it is to go on.
func (s *Store) searchOn(w *search) bool {
	r := s.below(&w.f)
	for range stride {
		switch {
		case r == nil:
			w.found.SearchedTo = 1
			return false
		case w.found.Examined == w.q.Examine || len(w.found.Runs) == w.q.Limit:
			return false
		}
		w.f.Before = r.ID
		if at := r.plannedAt(); r.ahead == w.q.Ahead && (w.q.Since.IsZero() || !at.Before(w.q.Since)) && (w.q.Until.IsZero() || at.Before(w.q.Until)) {
			w.found.Examined++
			w.found.SearchedTo, w.found.SearchedTime = r.ID, at
			if w.chosen(r) {
				w.found.Runs = append(w.found.Runs, w.has.run(r))
			}
		}
		if w.f.JobID != 0 {
			r = r.links[ofJob].prev
		} else {
			r = s.runs.before(r.ID)
		}
	}
	return true
}

// plannedAt is when the run was planned, or moves.
func (r *run) plannedAt() time.Time {
	if move := r.extra().move; move != 0 {
		return fromMilli(move)
	}
	return r.createdAt()
}

// chosen reports whether the search chooses the run, wherever in time it is.
func (w *search) chosen(r *run) bool {
	q := w.q
	return (len(q.Apps) == 0 || slices.Contains(q.Apps, r.terms.app)) &&
		(len(q.JobIDs) == 0 || slices.Contains(q.JobIDs, r.job.id)) &&
		(len(q.States) == 0 || slices.Contains(q.States, r.State)) &&
		(len(q.Types) == 0 || slices.Contains(q.Types, r.Type)) &&
		(q.Handler == "" || r.terms.handler == q.Handler) &&
		(q.Address == "" || r.terms.address == q.Address) &&
		(q.Reason == "" || r.extra().reason == q.Reason) &&
		(q.From.IsZero() || !fromMilli(r.scheduled).Before(q.From)) &&
		(q.To.IsZero() || fromMilli(r.scheduled).Before(q.To)) &&
		(q.Slower == 0 || r.ended != noTime && r.started != noTime && fromMilli(r.ended).Sub(fromMilli(r.started)) >= q.Slower) &&
		(q.LateBy == 0 || w.late(r)) &&
		!(q.NoSecrets && (r.job.removed || r.job.def.secret() || r.ParamSet && r.extra().parent != 0)) &&
		(w.text == "" || w.in(r.terms.param) || w.in(r.TriggerMsg) || w.in(r.HandleMsg))
}

// late reports whether the run was started at least as late as is asked for, or waits and is so
// late by now.
func (w *search) late(r *run) bool {
	at := fromMilli(r.started)
	if r.State == store.StatePlanned {
		at = w.clock()
	}
	return !at.IsZero() && at.Sub(fromMilli(r.scheduled)) >= w.q.LateBy
}

func (w *search) in(text string) bool { return strings.Contains(strings.ToLower(text), w.text) }

// LastRuns returns the newest runs of jobs that have ended.
func (s *Store) LastRuns(ctx context.Context, jobs []int64, n int) (found []store.Run, err error) {
	if n > 0 && len(jobs) > store.MostLastRuns/n {
		return nil, fmt.Errorf("memory: the last %d runs of %d jobs are more than %d", n, len(jobs), store.MostLastRuns)
	}
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	has := listed(ctx)
	for _, id := range jobs {
		j, left := s.jobs[id], n
		if j == nil {
			continue
		}
		for r := j.runs.tail; r != nil && left > 0; r = r.links[ofJob].prev {
			if r.State.Ended() && !r.ahead {
				found = append(found, has.run(r))
				left--
			}
		}
	}
	return found, nil
}

// Children returns the runs that a run has led to.
func (s *Store) Children(ctx context.Context, runID, after int64, limit int) (found []store.Run, err error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	list, has := s.children[runID], listed(ctx)
	at, _ := slices.BinarySearchFunc(list, after+1, func(r *run, id int64) int { return int(max(min(r.ID-id, 1), -1)) })
	for _, r := range list[min(at, len(list)):] {
		if len(found) >= limit {
			break
		}
		found = append(found, has.run(r))
	}
	return found, nil
}

// bear notes that the run has a parent, unbear that it is dropped.
func (s *Store) bear(r *run) {
	if parent := r.extra().parent; parent != 0 {
		s.children[parent] = append(s.children[parent], r)
	}
}

func (s *Store) unbear(r *run) {
	parent := r.extra().parent
	if parent == 0 {
		return
	}
	list := s.children[parent]
	if list = slices.DeleteFunc(list, func(c *run) bool { return c == r }); len(list) == 0 {
		delete(s.children, parent)
		return
	}
	s.children[parent] = list
}

// Waiting returns planned runs in order of time.
func (s *Store) Waiting(ctx context.Context, after store.Run, limit int) ([]store.Run, error) {
	if err := after.ValidateAfter(); err != nil {
		return nil, err
	}
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	at, id := noID, noID
	if !after.Scheduled.IsZero() {
		at, id = toMilli(stored(after.Scheduled)), after.ID
	}
	var waiting merged[run]
	for _, sh := range s.shards {
		waiting.add(&sh.planned, at, id)
	}
	has := listed(ctx)
	var list []store.Run
	for len(list) < limit {
		e := waiting.peek()
		if e == nil {
			break
		}
		list = append(list, has.run(e.of))
		waiting.next()
	}
	return list, nil
}

// OpenRuns counts runs that have not ended.
func (s *Store) OpenRuns(ctx context.Context, most int) (store.OpenRuns, error) {
	open := store.OpenRuns{Planned: map[string]int{}, Running: map[string]int{}}
	if err := s.look(ctx); err != nil {
		return store.OpenRuns{}, err
	}
	defer s.mu.Unlock()
	if most <= 0 {
		return open, nil
	}
	planned, running := 0, 0
	for _, sh := range s.shards {
		for c := sh.planned.after(noID, noID); c.peek() != nil && planned <= most; c.next() {
			open.Planned[c.peek().of.terms.app]++
			planned++
		}
		for _, r := range sh.started.members {
			if running <= most {
				open.Running[r.terms.app]++
				running++
			}
		}
		for c := sh.dispatched.after(noID, noID); c.peek() != nil && running <= most; c.next() {
			open.Running[c.peek().of.terms.app]++
			running++
		}
	}
	open.Stop(most)
	return open, nil
}

// View returns the nodes and the shards.
func (s *Store) View(ctx context.Context) (store.View, error) {
	if err := s.look(ctx); err != nil {
		return store.View{}, err
	}
	defer s.mu.Unlock()
	v, err := s.view("")
	v.Alone = false
	return v, err
}
