// Package plain holds a router, a time ring and a registry as a user would write
// them: with the standard library only. They show that the scheduler's parts can
// be replaced by types that know nothing of it, so this package imports nothing
// of this module. Each counts how often it is used.
package plain

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Router sends every trigger to the last address, whatever the job.
type Router struct{ routed atomic.Int64 }

// Route returns the last of the addresses.
func (r *Router) Route(_ context.Context, _ int64, addrs []string) ([]string, error) {
	r.routed.Add(1)
	if len(addrs) == 0 {
		return nil, errors.New("plain: no address")
	}
	return addrs[len(addrs)-1:], nil
}

// Routed returns how often Route was called.
func (r *Router) Routed() int64 { return r.routed.Load() }

// Ring keeps runs in a sorted slice. With Early it gives them out before their
// time, which a ring should not do.
type Ring struct {
	Early time.Duration // set before use

	mu      sync.Mutex
	entries []entry // guarded by mu; sorted by time
	pushed  int     // guarded by mu
	popped  int     // guarded by mu
	early   int     // guarded by mu
}

type entry struct {
	at    time.Time
	runID int64
}

// Push puts a run behind those of the same time.
func (r *Ring) Push(at time.Time, runID int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, _ := slices.BinarySearchFunc(r.entries, at, func(e entry, at time.Time) int {
		if e.at.After(at) {
			return 1
		}
		return -1
	})
	r.entries = slices.Insert(r.entries, i, entry{at, runID})
	r.pushed++
}

// Pop removes and returns the runs up to now, or up to Early later.
func (r *Ring) Pop(now time.Time) []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var due []int64
	for _, e := range r.entries {
		if e.at.After(now.Add(r.Early)) {
			break
		}
		if e.at.After(now) {
			r.early++
		}
		due = append(due, e.runID)
	}
	r.entries = slices.Delete(r.entries, 0, len(due))
	r.popped += len(due)
	return due
}

// Len returns how many runs are on the ring.
func (r *Ring) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.entries)
}

// Used returns how many runs were pushed and popped, and how many of those were
// popped before their time.
func (r *Ring) Used() (pushed, popped, early int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pushed, r.popped, r.early
}

// Registry keeps addresses in memory, without an expiry. The zero value is
// empty.
type Registry struct {
	mu       sync.Mutex
	apps     map[string]map[string]bool // guarded by mu: addresses by app
	lookedUp int                        // guarded by mu
}

// Register adds the address.
func (r *Registry) Register(_ context.Context, app, address string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.apps == nil {
		r.apps = map[string]map[string]bool{}
	}
	if r.apps[app] == nil {
		r.apps[app] = map[string]bool{}
	}
	r.apps[app][address] = true
	return nil
}

// Deregister removes the address.
func (r *Registry) Deregister(_ context.Context, app, address string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.apps[app], address)
	return nil
}

// Lookup returns the addresses of an app.
func (r *Registry) Lookup(_ context.Context, app string) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookedUp++
	return slices.Collect(maps.Keys(r.apps[app])), nil
}

// LookedUp returns how often Lookup was called.
func (r *Registry) LookedUp() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lookedUp
}
