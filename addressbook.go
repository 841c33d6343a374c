package xxljob

// What is known of the addresses of apps, and for how long it is good.

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// addressBook knows which addresses may run a handler of an app.
type addressBook struct {
	s        *shared
	engine   *engine
	attached *attachedSet
	remotes  *remotes
	users    *userCalls                  // of a registry of the user's
	register func(context.Context) error // registers this node's executors there
	asked    *appsAsked                  // for the start loop, of such a registry

	mu      sync.Mutex
	entries map[bookKey]bookEntry // guarded by mu
	version int                   // guarded by mu: raised by forget
	last    map[string]answer     // guarded by mu: by app, what the store and the registry have said
	silent  map[string]silence    // guarded by mu: who did not answer: the store (""), or the registry about an app
	gone    goneAddresses         // guarded by mu
}

func newAddressBook(s *shared, e *engine, attached *attachedSet, remotes *remotes, users *userCalls, register func(context.Context) error) *addressBook {
	return &addressBook{
		s: s, engine: e, attached: attached, remotes: remotes, users: users, register: register, asked: newAppsAsked(),
		entries: map[bookKey]bookEntry{}, last: map[string]answer{}, silent: map[string]silence{},
	}
}

// silence is an answer that has not come.
type silence struct {
	since time.Time
	cause error
}

type bookKey struct{ app, handler, glue string }

type bookEntry struct {
	addrs []string
	none  string // why there are none
	read  time.Time
}

// forgetApp drops what is known of an app: an executor has come or gone.
func (b *addressBook) forgetApp(app string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a, asked := b.last[app]; asked { // there are entries of such apps only
		for key := range b.entries {
			if key.app == app {
				delete(b.entries, key)
			}
		}
		a.fresh = false
		b.last[app] = a
	}
	b.version++
	delete(b.silent, app) // ask anew
}

// left drops an address that an executor has taken back. It is remembered if this node
// knew it: anybody may take back what never was there.
func (b *addressBook) left(app, address string, known bool) {
	b.mu.Lock()
	if a, ok := b.last[app]; ok {
		if i := slices.Index(a.addrs, address); i >= 0 {
			a.addrs = slices.Concat(a.addrs[:i], a.addrs[i+1:]) // others may be reading the list
			known = true
		}
		b.last[app] = a
	}
	if known {
		b.noteGone(app, address)
	}
	b.mu.Unlock()
	b.forgetApp(app)
}

// noteGone remembers that an address was one of the app's until now. Caller holds mu.
func (b *addressBook) noteGone(app, address string) {
	b.gone.note(app, address, time.Now(), b.s.cfg.Cluster.Dead)
}

// forget drops everything: a node, a group or a handler has changed.
func (b *addressBook) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.entries)
	for app, a := range b.last {
		a.fresh = false
		b.last[app] = a
	}
	b.version++
	clear(b.silent) // ask anew
}

// cached is what was read a moment ago. Finding no address is not remembered: the run
// would be refused for good.
func (b *addressBook) cached(key bookKey) (bookEntry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[key]
	return e, ok && time.Since(e.read) < addressTTL && len(e.addrs) > 0
}

// keep remembers what was read, unless there was news since it was asked for.
func (b *addressBook) keep(key bookKey, e bookEntry, version int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.version != version {
		return
	}
	if len(b.entries) > 10_000 {
		clear(b.entries)
	}
	b.entries[key] = e
}

// boot is the boot id of the executor at an address, by what was last heard of it;
// empty for executors of other makers.
func (b *addressBook) boot(app, address string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last[app].boots[address]
}

// sameAddress compares two addresses whatever their spelling.
func sameAddress(a, b string) bool { return a == b || wire.NormalAddress(a) == wire.NormalAddress(b) }

// bookKeyOf is what a job's addresses go by.
func bookKeyOf(job *Job) bookKey { return bookKey{job.App, job.Handler, job.GlueType} }

func (k bookKey) isBean() bool { return k.glue == GlueBean || k.glue == "" }

const (
	// addressPatience is how long an answer may take where there is an earlier one.
	addressPatience = time.Second
	// addressPause is how long the earlier one stands in before they are asked again.
	addressPause = 5 * time.Second
)

// addressTTL is how long a node goes by what it has read about an app's
// addresses. What the node itself hears of counts at once (forget).
const addressTTL = time.Second
