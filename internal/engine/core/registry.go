package core

import (
	"context"
)

// Router is xxljob.Router.
type Router interface {
	Route(ctx context.Context, jobID int64, addrs []string) ([]string, error)
}

// Registry is xxljob.Registry.
type Registry interface {
	Register(ctx context.Context, app, address string) error
	Deregister(ctx context.Context, app, address string) error
	Lookup(ctx context.Context, app string) ([]string, error)
}
