// Package urgent tells a store which of its calls are a scheduler's own: those without
// which no run goes on.
//
// Input: the context of a call, marked by the scheduler that makes it. Output: whether
// it is, to a store that keeps something back for such calls.
package urgent

import "context"

type key struct{}

// Mark returns a context whose calls of a store are the scheduler's own.
func Mark(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Unmark returns a context for what may wait, and for code of the user's, which may ask
// the store for anything.
func Unmark(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, false) }

// Marked reports whether calls with ctx are the scheduler's own.
func Marked(ctx context.Context) bool {
	marked, _ := ctx.Value(key{}).(bool)
	return marked
}
