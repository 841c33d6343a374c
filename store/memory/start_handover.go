package memory

// Started runs on their way to whoever executes them.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/xxljob/xxljob/store"
)

// Readdress moves a started run, which nobody but its owner has had, to another
// address.
func (s *Store) Readdress(ctx context.Context, m store.Readdress) (bool, error) {
	if err := s.begin(ctx); err != nil {
		return false, err
	}
	defer s.done()
	r := s.runs.find(m.RunID)
	if r == nil || !r.movable() || r.terms.owner != m.Owner || r.Token != m.Token ||
		r.job.shard != s.fenced(m.Shard, m.Epoch) || !s.addresseeThere(m.Address, m.Owner) {
		return false, nil
	}
	s.leave(r)
	r.say(m.Msg)
	t := *r.terms
	t.address, t.bootID = store.PlainText(m.Address), store.PlainText(m.BootID)
	r.agree(t)
	r.taken = noTime
	s.place(r, toMilli(s.clock()))
	return true, nil
}

// movable reports whether the run is untaken, or at its owner's own address,
// where the start was the taking.
func (r *run) movable() bool {
	return r.untaken() || r.State == store.StateStarted && r.addressee != nil && r.addressee == r.owner
}

// Dispatched marks started runs as accepted by remote executors.
func (s *Store) Dispatched(ctx context.Context, accepted []store.Dispatch) ([]store.Run, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	var changed []store.Run
	for _, d := range accepted {
		r := s.runs.find(d.RunID)
		if r == nil || r.State != store.StateStarted || r.terms.owner != d.Owner || r.Token != d.Token {
			continue
		}
		s.leave(r)
		r.State = store.StateDispatched
		if d.BootID != "" {
			t := *r.terms
			t.bootID = store.PlainText(d.BootID)
			r.agree(t)
		}
		r.say(d.Msg)
		s.enter(r)
		changed = append(changed, r.snapshot())
	}
	return changed, nil
}

// StartedBy returns started runs of the incarnations.
func (s *Store) StartedBy(ctx context.Context, shards []store.Shard, incarnations []string, after int64, limit int) ([]store.Run, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	of := make(map[*peer]bool, len(incarnations))
	for _, name := range incarnations {
		if p := s.peers[name]; p != nil {
			of[p] = true
		}
	}
	if len(of) == 0 {
		return nil, nil
	}
	var found []*run
	for _, q := range shards {
		sh := s.shardAt(q.ID)
		if sh == nil {
			continue
		}
		for _, r := range sh.started.members {
			if r.ID > after && (of[r.owner] || of[r.addressee]) {
				found = append(found, r)
			}
		}
	}
	slices.SortFunc(found, func(a, b *run) int { return cmp.Compare(a.ID, b.ID) })
	found = slices.Compact(found)
	return snapshots(found[:max(0, min(limit, len(found)))]), nil
}

// Inbox returns what waits for the incarnation.
func (s *Store) Inbox(ctx context.Context, incarnation string, after int64, limit int) (store.Inbox, error) {
	if err := s.look(ctx); err != nil {
		return store.Inbox{}, err
	}
	defer s.mu.Unlock()
	box := store.Inbox{Asks: s.asksOf(incarnation, limit)}
	if p := s.peers[incarnation]; p != nil {
		box.Runs, box.Kills = firstOf(&p.inbox, after, limit), firstOf(&p.kills, noID, math.MaxInt)
	}
	return box, nil
}

// firstOf returns the first entries of a set of runs by id, behind an id.
func firstOf(o *order[run], after int64, limit int) []store.Run {
	var out []store.Run
	for c := o.after(0, after); c.peek() != nil && len(out) < limit; c.next() {
		out = append(out, c.peek().of.snapshot())
	}
	return out
}

// Take marks runs as taken by their addressee. One that is to be killed ends
// here, and its state says so to the caller.
func (s *Store) Take(ctx context.Context, incarnation string, ids []int64) ([]store.Run, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	now := s.clock()
	ids = copied(ids)
	slices.Sort(ids)
	var changed []store.Run
	for _, id := range ids {
		r := s.runs.find(id)
		if r == nil || !r.untaken() || r.addressee == nil || r.addressee.incarnation != incarnation {
			continue
		}
		if r.extra().killReason != "" {
			changed = append(changed, s.conclude(ctx, r, ending{state: store.StateKilled}, toMilli(now)))
			continue
		}
		s.leave(r)
		r.taken = toMilli(now)
		s.enter(r)
		changed = append(changed, r.snapshot())
	}
	return changed, nil
}

// DispatchedRuns returns a page of the dispatched runs of shards.
func (s *Store) DispatchedRuns(ctx context.Context, shards []store.Shard, after int64, limit int) ([]store.Run, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var m merged[run]
	named := make(map[int]bool, len(shards))
	for _, q := range shards {
		if sh := s.shardAt(q.ID); sh != nil && !named[q.ID] {
			named[q.ID] = true
			m.add(&sh.dispatched, 0, after)
		}
	}
	var found []store.Run
	for e := m.peek(); e != nil && len(found) < limit; e = m.peek() {
		found = append(found, e.of.snapshot())
		m.next()
	}
	return found, nil
}
