package store

import "context"

type actorKey struct{}

// WithActor is xxljob.WithActor without its check of ctx.
func WithActor(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, actorKey{}, name)
}

// Actor returns the name that xxljob.WithActor put into ctx, or "", for a nil ctx too.
func Actor(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	name, _ := ctx.Value(actorKey{}).(string)
	return name
}
