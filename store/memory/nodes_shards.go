package memory

// Shards with their unended work, and the leases of them.

import (
	"context"
	"fmt"

	"github.com/xxljob/xxljob/store"
)

// shard is a row of the lease table with the unended work of its jobs. All of
// it is guarded by Store.mu.
type shard struct {
	id    int
	owner string
	epoch int64

	due  order[job] // enabled jobs with a next instant
	idle bag[*job]  // enabled jobs without one

	planned order[run] // all planned runs, by (Scheduled, ID), but for
	ahead   order[run] // those that are kept apart, by (move, ID)
	foreign order[run] // those that were not planned or loaded under epoch
	started bag[*run]  // runs in StateStarted

	dispatched order[run] // runs in StateDispatched, by ID

	owed    order[owed]        // what successes of its runs owe, by number
	alarms  order[store.Alarm] // not done with, by ID
	windows order[window]      // open ones, by (expires, number)
}

// SetShards fixes the number of shards, once.
func (s *Store) SetShards(ctx context.Context, n int) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	switch {
	case n < 1:
		return fmt.Errorf("memory: set shards to %d: want at least one", n)
	case s.shards == nil:
		s.shards = make([]*shard, n)
		for i := range s.shards {
			s.shards[i] = &shard{id: i}
		}
	case len(s.shards) != n:
		return failed(store.ErrShards, "the store has %d shards, not %d", len(s.shards), n)
	}
	return nil
}

// fenced returns the shard if it is there and has the epoch, and else nil.
func (s *Store) fenced(id int, epoch int64) *shard {
	if sh := s.shardAt(id); sh != nil && sh.epoch == epoch {
		return sh
	}
	return nil
}

// shardAt returns the shard, or nil.
func (s *Store) shardAt(id int) *shard {
	if id < 0 || id >= len(s.shards) {
		return nil
	}
	return s.shards[id]
}

// take gives the shard to another owner: from here on nothing in it counts as
// loaded.
func (sh *shard) take(owner string) {
	sh.owner = owner
	sh.epoch++
	for c := sh.planned.after(noID, noID); c.peek() != nil; c.next() {
		c.peek().of.foreign = true
	}
	sh.foreign = sh.planned.clone()
}

// bag is a set without an order. Each member knows its place in the one bag it
// may be in.
type bag[T interface{ slot() *int32 }] struct{ members []T }

func (b *bag[T]) add(m T) {
	*m.slot() = int32(len(b.members))
	b.members = append(b.members, m)
}

func (b *bag[T]) remove(m T) {
	last := len(b.members) - 1
	i := int(*m.slot())
	b.members[i] = b.members[last]
	*b.members[i].slot() = int32(i)
	clear(b.members[last:])
	b.members = b.members[:last]
}

// TakeShards makes the incarnation the owner of shards. All writes under the
// epoch before come either before this or to nothing, for the mutex is one.
func (s *Store) TakeShards(ctx context.Context, incarnation string, shards []store.Shard) ([]store.Shard, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	var taken []store.Shard
	for _, q := range shards {
		if sh := s.fenced(q.ID, q.Epoch); sh != nil && sh.owner == q.Owner {
			sh.take(incarnation)
			taken = append(taken, s.lease(sh))
		}
	}
	return taken, nil
}

// ReleaseShards gives up shards. Their epochs stay until somebody takes them.
func (s *Store) ReleaseShards(ctx context.Context, incarnation string, shards []store.Shard) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.done()
	any := false
	for _, q := range shards {
		if sh := s.fenced(q.ID, q.Epoch); sh != nil && sh.owner == incarnation {
			sh.owner, any = "", true
		}
	}
	if any {
		s.tellNodes()
	}
	return nil
}

// lease is the shard as callers get it.
func (s *Store) lease(sh *shard) store.Shard {
	p := s.peers[sh.owner]
	return store.Shard{
		ID: sh.id, Owner: sh.owner, Epoch: sh.epoch,
		Free: sh.owner == "" || p == nil || !p.joined || p.left,
	}
}

// view is the cluster as the incarnation sees it.
func (s *Store) view(incarnation string) (store.View, error) {
	nodes, err := all[store.Node](s.db, tableNodes)
	if err != nil {
		return store.View{}, err
	}
	v := store.View{Now: s.ownTime(), Alone: s.goesBy == nil}
	for _, n := range nodes {
		out := *n
		out.Attached = copiedAttached(out.Attached)
		p := s.peers[n.Incarnation]
		out.Beats, out.Left = p.beats, p.left
		v.Nodes = append(v.Nodes, out)
		if n.Incarnation != incarnation && !p.left {
			v.Alone = false
		}
	}
	for _, sh := range s.shards {
		v.Shards = append(v.Shards, s.lease(sh))
	}
	return v, nil
}
