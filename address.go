package xxljob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// addressTTL is how long a node goes by what it has read about an app's
// addresses. What the node itself hears of counts at once (forget).
const addressTTL = time.Second

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

// answer is what the store and the registry have said of an app.
type answer struct {
	addrs  []string
	boots  map[string]string // of executors of our own make: their boot ids, by address
	manual bool              // these and no others
	at     time.Time         // when
	fresh  bool              // nothing has been heard since that contradicts it
	stale  error             // why there is no newer one
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
	b.gone.note(app, address, time.Now(), b.s.cfg.Dead)
}

// knewLately reports whether an address is one of the app's, or was one a moment ago: an
// executor that has said good-bye lets its runs end, and answers questions about them.
func (b *addressBook) knewLately(ctx context.Context, app, address string) (bool, error) {
	b.mu.Lock()
	at, gone := b.gone.apps[app][address]
	b.mu.Unlock()
	if gone && time.Since(at) < b.s.cfg.Dead {
		return true, nil
	}
	return b.knows(ctx, app, address)
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

// lookup returns the sorted addresses for a job's handler; where there are none,
// why says so in XXL-JOB's words. Addresses given by a trigger take the place of
// the app's.
func (b *addressBook) lookup(ctx context.Context, job *Job, given []string) (addrs []string, why string, err error) {
	key := bookKeyOf(job)
	if len(given) > 0 {
		return b.lookupGiven(ctx, key, given)
	}
	now := time.Now()
	b.mu.Lock()
	version := b.version
	b.mu.Unlock()
	e, cached := b.cached(key)
	if cached {
		return e.addrs, "", nil
	}
	e, err = call(ctx, func(ctx context.Context) (bookEntry, error) { return b.read(ctx, key) })
	if err == nil && len(e.addrs) == 0 && b.s.cfg.Registry != nil && b.attached.unregistered(key.app) {
		// A registry of the user's has not heard of this node's executor yet; the
		// run would be refused for good.
		e, err = call(ctx, func(ctx context.Context) (bookEntry, error) {
			if err := b.register(ctx); err != nil {
				return bookEntry{}, err
			}
			return b.read(ctx, key)
		})
	}
	if err != nil {
		return nil, "", err
	}
	e.read = now
	b.keep(key, e, version)
	return e.addrs, e.none, nil
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

// lookupGiven is lookup for addresses that a trigger has given. They are among the
// app's, in whatever spelling: a token goes nowhere else.
func (b *addressBook) lookupGiven(ctx context.Context, key bookKey, given []string) ([]string, string, error) {
	all, err := call(ctx, func(ctx context.Context) ([]string, error) { return b.all(ctx, key.app) })
	if err != nil {
		return nil, "", err
	}
	e := b.chooseGiven(key, all, given)
	return e.addrs, e.none, nil
}

// chooseGiven is choose among the addresses that a trigger has given.
func (b *addressBook) chooseGiven(key bookKey, all, given []string) bookEntry {
	wanted, unknown := amongThem(all, given)
	e := b.choose(key, wanted)
	if len(unknown) > 0 && len(e.addrs) == 0 {
		e.none = fmt.Sprintf("none of the addresses of app %s can be reached from here: it has no %s", key.app, shorten(strings.Join(unknown, ", "), 500))
	}
	return e
}

// amongThem are the given addresses that an app has, in its own spelling, and the others.
func amongThem(all, given []string) (wanted, unknown []string) {
	spelled := make(map[string]string, len(all)) // by how they are compared
	for _, a := range slices.Backward(all) {
		spelled[wire.NormalAddress(a)] = a
	}
	for _, g := range given {
		if a, ok := spelled[wire.NormalAddress(g)]; ok {
			wanted = append(wanted, a)
		} else {
			unknown = append(unknown, g)
		}
	}
	return wanted, unknown
}

// all are the addresses of an app, those of other nodes included.
func (b *addressBook) all(ctx context.Context, app string) ([]string, error) {
	a, err := b.ask(ctx, app)
	return b.allOf(app, a), err
}

func (b *addressBook) allOf(app string, a answer) []string {
	if a.manual || b.s.cfg.Registry != nil {
		return a.addrs
	}
	return append(slices.Clone(a.addrs), b.s.leases.localAddresses(app)...)
}

// knows reports whether an address is one of the app's at this moment: others are not
// called.
func (b *addressBook) knows(ctx context.Context, app, address string) (bool, error) {
	all, err := call(ctx, func(ctx context.Context) ([]string, error) { return b.all(ctx, app) })
	return slices.ContainsFunc(all, func(a string) bool { return sameAddress(a, address) }), err
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

func (b *addressBook) read(ctx context.Context, key bookKey) (bookEntry, error) {
	a, err := b.ask(ctx, key.app)
	if err != nil {
		return bookEntry{}, err
	}
	e := b.choose(key, b.allOf(key.app, a))
	if a.stale != nil && len(e.addrs) == 0 {
		return bookEntry{}, a.stale // an old answer may help, and not refuse a run for good
	}
	return e, nil
}

// bookKeyOf is what a job's addresses go by.
func bookKeyOf(job *Job) bookKey { return bookKey{job.App, job.Handler, job.GlueType} }

// unserved says of jobs of one app, by what their addresses go by, why nobody serves
// them; others are not in the answer. The app's addresses are read once.
func (b *addressBook) unserved(ctx context.Context, app string, jobs []Job) (map[bookKey]string, error) {
	read := func(ctx context.Context) (map[bookKey]string, error) {
		a, err := b.ask(ctx, app)
		if err != nil {
			return nil, err
		}
		why, all, done := map[bookKey]string{}, b.allOf(app, a), map[bookKey]bool{}
		for i := range jobs {
			key := bookKeyOf(&jobs[i])
			if done[key] {
				continue
			}
			done[key] = true
			if e := b.choose(key, slices.Clone(all)); len(e.addrs) == 0 {
				why[key] = e.none
			}
		}
		if a.stale != nil && len(why) > 0 {
			return nil, a.stale
		}
		return why, nil
	}
	why, err := call(ctx, read)
	if err == nil && len(why) > 0 && b.s.cfg.Registry != nil && b.attached.unregistered(app) {
		if err := b.register(ctx); err != nil {
			return nil, err
		}
		return call(ctx, read)
	}
	return why, err
}

// ask asks the store and the registry. Where they do not answer, the last answer
// serves for as long as a heartbeat does: a table that somebody has locked must not
// keep runs from executors that are there.
func (b *addressBook) ask(ctx context.Context, app string) (answer, error) {
	now := time.Now()
	b.mu.Lock()
	last, known := b.last[app]
	if known && last.fresh && now.Sub(last.at) < addressTTL && len(last.addrs) > 0 {
		b.mu.Unlock()
		return last, nil // for another handler of the app
	}
	// All apps are in the same tables: one that waits for them is enough.
	for _, of := range []string{"", app} {
		if s, silent := b.silent[of]; silent && now.Sub(s.since) < addressPause {
			last.stale = s.cause
		}
	}
	version := b.version
	b.mu.Unlock()
	known = known && now.Sub(last.at) < b.s.cfg.Dead
	if known && last.stale != nil {
		return last, nil
	}
	quick, cancel := ctx, context.CancelFunc(func() {})
	if known {
		patience := addressPatience
		if b.s.cfg.Registry != nil {
			patience += b.s.cfg.RouteTimeout
		}
		quick, cancel = context.WithTimeout(ctx, patience)
	}
	defer cancel()
	a, silent, err := b.askNow(quick, app)
	if err == nil {
		a.at = now
		b.heard(app, a, version)
		return a, nil
	}
	if !known || ctx.Err() != nil {
		return answer{}, err
	}
	b.s.log.Warn("xxljob: address lookup failed; using the last known addresses", "app", app, "age", now.Sub(last.at), "error", err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silent[silent] = silence{since: time.Now(), cause: err}
	last.stale = err
	return last, nil
}

// heard remembers an answer. Who gave it is not silent any more. It is not fresh where
// there was news since it was asked for, of whatever app.
func (b *addressBook) heard(app string, a answer, version int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.fresh = b.version == version
	if was, ok := b.last[app]; ok && time.Since(was.at) < b.s.cfg.Dead {
		for _, address := range vanished(was.addrs, a.addrs) {
			b.noteGone(app, address)
		}
	}
	if len(b.last) > 10_000 {
		clear(b.last)
		clear(b.entries)
		clear(b.silent)
	}
	b.last[app] = a
	delete(b.silent, "")
	delete(b.silent, app)
}

// vanished are the addresses of the one list that are not in the other.
func vanished(was, is []string) (gone []string) {
	if slices.Equal(was, is) {
		return nil
	}
	there := make(map[string]bool, len(is))
	for _, a := range is {
		there[a] = true
	}
	for _, a := range was {
		if !there[a] {
			gone = append(gone, a)
		}
	}
	return gone
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
		addrs, err := b.users.lookup(ctx, app)
		return answer{addrs: addrs}, app, err
	}
	regs, err := b.s.store.Addresses(ctx, app, b.s.cfg.Dead)
	return registered(regs), "", err
}

// registered is the answer that registrations are.
func registered(regs []Registration) answer {
	a := answer{addrs: make([]string, 0, len(regs)), boots: map[string]string{}}
	for _, r := range regs {
		a.addrs = append(a.addrs, r.Address)
		if r.BootID != "" && slices.Contains(r.Capabilities, wire.CapRepeat) {
			a.boots[r.Address] = r.BootID
		}
	}
	return a
}

// choose leaves out addresses that cannot run the handler, as far as that is known:
// of a remote executor it is not.
func (b *addressBook) choose(key bookKey, all []string) bookEntry {
	var e bookEntry
	able, hasApp := b.able(key, all)
	bean := key.isBean()
	e.addrs = withoutTwins(b.s.leases.undoubted(able))
	switch {
	case len(e.addrs) > 0:
	case hasApp && !bean:
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

func (k bookKey) isBean() bool { return k.glue == GlueBean || k.glue == "" }

// able are the addresses that can run the handler, sorted, those of doubted nodes
// included, and whether a node is there that has the app.
func (b *addressBook) able(key bookKey, all []string) (addrs []string, hasApp bool) {
	for _, a := range all {
		inc, local := LocalIncarnation(a)
		if !local {
			if b.callable(key.app, a) {
				addrs = append(addrs, a)
			}
			continue
		}
		app, handler := b.s.leases.serves(inc, key.app, key.handler)
		hasApp = hasApp || app
		if handler && key.isBean() {
			addrs = append(addrs, a)
		}
	}
	slices.Sort(addrs)
	return addrs, hasApp
}

// callable reports whether an address is one that can be called. One that is not may
// come from a registry of the user's, or from before such were refused.
func (b *addressBook) callable(app, address string) bool {
	if strings.ContainsFunc(address, notPlain) {
		return false // it would be shown wherever its runs are
	}
	_, err := b.remotes.get(app, address)
	return err == nil
}

// withoutTwins leaves, of sorted addresses that differ in their spelling only, the
// first: an executor must not get two parts of a broadcast.
func withoutTwins(addrs []string) []string {
	addrs = slices.Compact(addrs)
	if len(addrs) < 2 {
		return addrs
	}
	seen := make(map[string]bool, len(addrs))
	return slices.DeleteFunc(addrs, func(a string) bool {
		n := wire.NormalAddress(a)
		twin := seen[n]
		seen[n] = true
		return twin
	})
}

// calledAt returns the executor that a run was sent to, while its address is one of the
// app's, or was a moment ago. It is for questions about the run and for its end; a run is
// sent to addresses of the present only.
func (b *addressBook) calledAt(ctx context.Context, r Run) (*remote, error) {
	known, err := b.knewLately(ctx, r.App, r.Address)
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, fmt.Errorf("%s is not an address of app %s any more", r.Address, r.App)
	}
	return b.remotes.get(r.App, r.Address)
}
