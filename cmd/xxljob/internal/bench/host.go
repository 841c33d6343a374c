package bench

import (
	"context"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/internal/test/measure"
)

// host is where stores come from: this process, or a Postgres server.
type host interface {
	// fresh makes a store with nothing in it. The caller closes it.
	fresh(ctx context.Context) (*backend, error)
	// meter measures this process and the server, if there is one.
	meter(ctx context.Context) measure.Meter
	// server describes it; nil where there is none.
	server(ctx context.Context) (*measure.Server, error)
	close() error
}

// backend is a store, with what a store does not do for its users.
type backend struct {
	store xxljob.Store
	// plan plans n runs that are due now, of the jobs in turn, and returns their ids.
	plan func(ctx context.Context, jobs []int64, n int) ([]int64, error)
	// settle has the store know how much there is in it, as it would a while later.
	settle func(ctx context.Context) error
	close  func() error
}

func openHost(ctx context.Context, cfg Config) (host, error) {
	if cfg.Store == Memory {
		return inMemory{}, nil
	}
	return openPostgres(ctx, cfg)
}
