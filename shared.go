package xxljob

import (
	"context"
	"log/slog"
	"time"
)

// shared is what every part of a scheduler needs. New makes it, and it is only read from
// then on.
type shared struct {
	cfg    Config
	store  Store
	log    *slog.Logger
	clock  *clock
	leases *leases // and which incarnation this node is
	life   *life   // and the wakes of the loops
}

// setShards fixes the number of shards before the first write.
func (s *shared) setShards(ctx context.Context) error {
	return s.life.shards.do(func() error { return s.store.SetShards(ctx, s.cfg.Cluster.Shards) })
}

// now returns the store's time as this node knows it; before the first beat it
// asks for it.
func (s *shared) now(ctx context.Context) (time.Time, error) {
	s.clock.mu.Lock()
	known := s.clock.known
	s.clock.mu.Unlock()
	if !known {
		asked := time.Now()
		t, err := s.store.Now(ctx)
		if err != nil {
			return time.Time{}, err
		}
		s.clock.sample(t, asked)
	}
	return s.clock.now(), nil
}
