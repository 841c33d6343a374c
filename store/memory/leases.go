package memory

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

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
	v := store.View{Alone: true}
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
