package xxljob

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// addressTTL is how long a node goes by what it has read about an app's
// addresses. What the node itself hears of counts at once (forget).
const addressTTL = time.Second

// addressBook knows which addresses may run a handler of an app.
type addressBook struct {
	s *scheduler

	mu      sync.Mutex
	entries map[bookKey]bookEntry // guarded by mu
	version int                   // guarded by mu: raised by forget
}

type bookKey struct{ app, handler, glue string }

type bookEntry struct {
	addrs []string
	none  string // why there are none
	read  time.Time
}

// forget drops everything: a node, a group or a handler has changed.
func (b *addressBook) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.entries)
	b.version++
}

// lookup returns the sorted addresses for a job's handler; where there are none,
// why says so in XXL-JOB's words. Addresses given by a trigger take the place of
// the app's.
func (b *addressBook) lookup(ctx context.Context, job *Job, given []string) (addrs []string, why string, err error) {
	key := bookKey{job.App, job.Handler, job.GlueType}
	if len(given) > 0 {
		e := b.choose(key, given)
		return e.addrs, e.none, nil
	}
	now := time.Now()
	b.mu.Lock()
	e, ok := b.entries[key]
	version := b.version
	b.mu.Unlock()
	// Finding none is not remembered: the run would be refused for good.
	if ok && now.Sub(e.read) < addressTTL && len(e.addrs) > 0 {
		return e.addrs, "", nil
	}
	e, err = call(ctx, func(ctx context.Context) (bookEntry, error) { return b.read(ctx, key) })
	if err == nil && len(e.addrs) == 0 && b.s.cfg.Registry != nil && b.s.attached.unregistered(key.app) {
		// A registry of the user's has not heard of this node's executor yet; the
		// run would be refused for good.
		e, err = call(ctx, func(ctx context.Context) (bookEntry, error) {
			if err := b.s.registerAttached(ctx); err != nil {
				return bookEntry{}, err
			}
			return b.read(ctx, key)
		})
	}
	if err != nil {
		return nil, "", err
	}
	e.read = now
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.version == version {
		if len(b.entries) > 10_000 {
			clear(b.entries)
		}
		b.entries[key] = e
	}
	return e.addrs, e.none, nil
}

func (b *addressBook) read(ctx context.Context, key bookKey) (bookEntry, error) {
	var all []string
	group, err := b.s.store.Group(ctx, key.app)
	switch {
	case err == nil && group.Manual:
		all = group.Addresses
	case err != nil && !isNotFound(err):
		return bookEntry{}, err
	default:
		if all, err = b.s.registry.Lookup(ctx, key.app); err != nil {
			return bookEntry{}, err
		}
		if b.s.cfg.Registry == nil {
			all = append(all, b.s.leases.localAddresses(key.app)...)
		}
	}
	return b.choose(key, all), nil
}

// choose leaves out addresses that cannot run the handler.
func (b *addressBook) choose(key bookKey, all []string) bookEntry {
	var e bookEntry
	hasApp := false
	for _, a := range all {
		inc, local := LocalIncarnation(a)
		if !local {
			// A remote address is spoken to over HTTP, which is not there yet.
			continue
		}
		app, handler := b.s.leases.serves(inc, key.app, key.handler)
		hasApp = hasApp || app
		if handler && (key.glue == GlueBean || key.glue == "") {
			e.addrs = append(e.addrs, a)
		}
	}
	slices.Sort(e.addrs)
	e.addrs = slices.Compact(e.addrs)
	switch {
	case len(e.addrs) > 0:
	case hasApp && key.glue != GlueBean && key.glue != "":
		e.none = fmt.Sprintf(wire.MsgGlueType, key.glue)
	case hasApp:
		e.none = fmt.Sprintf(wire.MsgHandlerNotFound, key.handler)
	case len(all) > 0:
		e.none = "none of the addresses of app " + key.app + " can be reached from here"
	default:
		e.none = "no address: app " + key.app + " has no live executor"
	}
	return e
}
