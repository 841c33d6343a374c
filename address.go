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
	last    map[string]answer     // guarded by mu: by app, what the store and the registry have said
	silent  map[string]silence    // guarded by mu: who did not answer: the store (""), or the registry about an app
}

// silence is an answer that has not come.
type silence struct {
	since time.Time
	cause error
}

// answer is what the store and the registry have said of an app.
type answer struct {
	addrs  []string
	manual bool      // these and no others
	at     time.Time // when
	stale  error     // why there is no newer one
}

const (
	// addressPatience is how long an answer may take where there is an earlier one.
	addressPatience = time.Second
	// addressPause is how long the earlier one stands in before they are asked again.
	addressPause = 5 * time.Second
)

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
	clear(b.silent) // ask anew
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
	a, err := b.ask(ctx, key.app)
	if err != nil {
		return bookEntry{}, err
	}
	all := a.addrs
	if !a.manual && b.s.cfg.Registry == nil {
		all = append(slices.Clone(all), b.s.leases.localAddresses(key.app)...)
	}
	e := b.choose(key, all)
	if a.stale != nil && len(e.addrs) == 0 {
		return bookEntry{}, a.stale // an old answer may help, and not refuse a run for good
	}
	return e, nil
}

// ask asks the store and the registry. Where they do not answer, the last answer
// serves for as long as a heartbeat does: a table that somebody has locked must not
// keep runs from executors that are there.
func (b *addressBook) ask(ctx context.Context, app string) (answer, error) {
	now := time.Now()
	b.mu.Lock()
	last, known := b.last[app]
	// All apps are in the same tables: one that waits for them is enough.
	for _, of := range []string{"", app} {
		if s, silent := b.silent[of]; silent && now.Sub(s.since) < addressPause {
			last.stale = s.cause
		}
	}
	b.mu.Unlock()
	known = known && now.Sub(last.at) < b.s.cfg.Dead
	if known && last.stale != nil {
		return last, nil
	}
	quick, cancel := ctx, context.CancelFunc(func() {})
	if known {
		quick, cancel = context.WithTimeout(ctx, addressPatience)
	}
	defer cancel()
	a, silent, err := b.askNow(quick, app)
	if err == nil {
		a.at = now
		b.heard(app, a)
		return a, nil
	}
	if !known || ctx.Err() != nil {
		return answer{}, err
	}
	b.s.log.Warn("xxljob: no answer about addresses; going by the last ones", "app", app, "age", now.Sub(last.at), "err", err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silent[silent] = silence{since: time.Now(), cause: err}
	last.stale = err
	return last, nil
}

// heard remembers an answer. Who gave it is not silent any more.
func (b *addressBook) heard(app string, a answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.last) > 10_000 {
		clear(b.last)
		clear(b.silent)
	}
	b.last[app] = a
	delete(b.silent, "")
	delete(b.silent, app)
}

// askNow says with an error who is silent: all apps are in the same tables of the store,
// but a registry of the user's may fail for one of them.
func (b *addressBook) askNow(ctx context.Context, app string) (a answer, silent string, err error) {
	group, err := b.s.store.Group(ctx, app)
	switch {
	case err == nil && group.Manual:
		return answer{addrs: group.Addresses, manual: true}, "", nil
	case err != nil && !isNotFound(err):
		return answer{}, "", err
	}
	if b.s.cfg.Registry != nil {
		silent = app
	}
	addrs, err := b.s.registry.Lookup(ctx, app)
	return answer{addrs: slices.Clone(addrs)}, silent, err // the list may be the registry's own
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
