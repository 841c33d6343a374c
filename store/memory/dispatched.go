package memory

import (
	"context"

	"github.com/xxljob/xxljob/store"
)

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
