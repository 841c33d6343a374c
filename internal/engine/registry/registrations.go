package registry

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// How a node keeps up with the registry. Input: what is read of it now and then. Output: room
// for registrations, or a refusal, and dead ones that are forgotten.

// registrations are those that the store has, as far as this node knows. It is safe for
// concurrent use.
type registrations struct {
	s       *core.Core
	crowded loop.Wake       // dead ones are in the way of others
	rarely  loop.LogLimiter // what the log is not to be filled with

	mu    sync.Mutex
	known map[SiteKey]knownAddress           // guarded by mu
	quota *quota                             // guarded by mu: how many there are
	times struct{ looked, tidied time.Time } // guarded by mu: the last ones
}

func newRegistrations(s *core.Core) *registrations {
	return &registrations{s: s, crowded: loop.NewWake(), known: map[SiteKey]knownAddress{}, quota: newQuota(&s.Cfg)}
}

// due says what it is time for, once.
func (r *registrations) due() (looks, tidies bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if looks = now.Sub(r.times.looked) >= r.s.Cfg.Cluster.Beat; looks {
		r.times.looked = now
	}
	if tidies = now.Sub(r.times.tidied) >= registrationsTidied; tidies {
		r.times.tidied = now
	}
	return looks, tidies
}

// look learns, now and then, what other nodes have stored, for a balancer may give them
// the beats in turn, and has registrations forgotten that are long dead.
func (r *registrations) look(ctx context.Context, looks, tidies bool) {
	err := error(nil)
	if looks {
		err = r.read(ctx)
	}
	if doubted, _ := r.s.Clock.Doubt(); doubted == "" && tidies && err == nil {
		err = loop.Do(ctx, func(ctx context.Context) error {
			return r.s.Store.ForgetAddresses(ctx, max(registrationsKept, 2*r.s.Cfg.Cluster.Dead))
		})
	}
	if err != nil {
		r.s.Logger.Warn("xxljob: could not look through the registry", "error", err)
	}
}

// Enter finds room for a registration, and says why where there is none. One that lives
// has its room, so that no heartbeat is refused; one that was dead needs room again, or
// there would be ever more of them, some of which are dead in turn.
func (r *registrations) Enter(ctx context.Context, reg store.Registration) (refusal string) {
	now := time.Now()
	r.mu.Lock()
	e, has := r.quota.apps[reg.App][reg.Address]
	late := false
	if !has || now.Sub(e.at) >= r.quota.dead {
		if refusal, late = r.quota.room(reg.App, now); refusal == "" {
			r.quota.put(reg.App, reg.Address, quotaEntry{at: now, there: e.there})
		}
	}
	r.mu.Unlock()
	switch {
	case late && r.s.Life.Running():
		r.crowded.Poke()
	case late:
		_ = r.forgetDead(ctx)
	}
	if refusal != "" && r.rarely.Allow("registrations: "+reg.App) {
		r.s.Logger.Warn("xxljob: refusing registrations", "app", reg.App, "why", refusal)
	}
	return refusal
}

// Leave gives back the room of a registration that its executor counts as failed, unless it
// was there before. Should it be stored later all the same, it is taken in then.
func (r *registrations) Leave(reg store.Registration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.quota.apps[reg.App][reg.Address].there {
		r.quota.drop(reg.App, reg.Address, time.Now())
	}
}

// ForgetLoop has registrations forgotten that have been dead for as long as others live,
// whenever there is no more room, until ctx ends.
func (r *registrations) ForgetLoop(ctx context.Context) {
	backoff := loop.Backoff{Log: r.s.Logger, What: "forgetting dead registrations"}
	for loop.Sleep(ctx, loop.Forever, r.crowded) {
		backoff.Failed(ctx, r.forgetDead(ctx))
		if !loop.Sleep(ctx, time.Second) {
			return
		}
	}
}

// forgetDead has them forgotten, by the store and here.
func (r *registrations) forgetDead(ctx context.Context) error {
	maxAge := 2 * r.s.Cfg.Cluster.Dead
	doubted, _ := r.s.Clock.Doubt()
	err := loop.Do(ctx, func(ctx context.Context) error {
		if r.s.Cfg.Registry != nil && len(r.s.Cfg.RegistryApps) == 0 || doubted != "" {
			return nil // it forgets by itself, or nobody knows which are dead
		}
		return r.s.Store.ForgetAddresses(ctx, maxAge)
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.quota.forget(maxAge, time.Now()) {
		delete(r.known, k)
	}
	return nil
}

// readAll reads the registry page by page. Of an app that has more than its share the rest
// is passed over, and not read: a million registrations of one app cost a page or two
// more, and do not keep the next one out.
func (r *registrations) readAll(ctx context.Context) (*quotaReader, error) {
	read := newQuotaReader(newQuota(&r.s.Cfg))
	f := store.RegistrationFilter{Limit: readPage}
	for {
		regs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Registration, error) { return r.s.Store.Registrations(ctx, f) })
		if err != nil {
			return nil, err
		}
		taken := true
		for _, reg := range regs {
			taken = read.take(reg)
			f.After, f.AfterAddress = reg.App, reg.Address
		}
		if len(regs) < f.Limit || read.full() {
			return read, nil
		}
		if !taken {
			f.After, f.AfterAddress = f.After+"\x01", "" // the least name behind it
		}
		f.Limit = min(readPage, max(read.share, leastPage))
	}
}

// read takes in the registrations of all apps.
func (r *registrations) read(ctx context.Context) error {
	began := time.Now()
	read, err := r.readAll(ctx)
	if err != nil {
		return err
	}
	r.warnOfPassed(read)
	now, late := time.Now(), read.passed > 0
	alive, next := make(map[SiteKey]knownAddress), read.quota
	for _, a := range read.apps {
		for _, reg := range a.rows {
			age := max(r.s.Clock.Now().Sub(reg.Updated), 0)
			late = late || age >= 2*r.s.Cfg.Cluster.Dead && (len(a.rows) >= next.most || read.shared >= quotaApps*next.most)
			next.put(reg.App, reg.Address, quotaEntry{at: now.Add(-age), there: true})
			if age < r.s.Cfg.Cluster.Dead {
				alive[SiteKey{reg.App, reg.Address}] = knownAddress{bootID: reg.BootID, at: now.Add(-age)}
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, has := range r.known {
		of, is := alive[k]
		if !has.at.Before(began) || is && has.bootID == of.bootID && has.at.After(of.at) {
			alive[k] = has // stored here meanwhile, or known better
		}
	}
	for app, list := range r.quota.apps {
		for address, e := range list {
			if _, is := next.apps[app][address]; !e.at.Before(began) || !e.there && !is {
				next.put(app, address, e) // it has come meanwhile, or is on its way
			}
		}
	}
	r.known, r.quota = alive, next
	r.crowded.PokeIf(late)
	return nil
}

// warnOfPassed says once in a while that there is more than is read.
func (r *registrations) warnOfPassed(read *quotaReader) {
	if read.passed == 0 && !read.full() || !r.rarely.Allow("registry is too large") {
		return
	}
	var names []string
	for _, a := range read.apps {
		if a.passed && len(names) < 10 {
			names = append(names, a.app)
		}
	}
	r.s.Logger.Warn("xxljob: the registry has more registrations than may be, and was not read as a whole; heartbeats of those that were not read are refused while there is no room (Config.HTTP.MaxRegistrations)",
		"apps", strings.Join(names, ", "), "such apps", read.passed, "read of each", read.share)
}

type knownAddress struct {
	bootID string
	at     time.Time // monotonic: when it was stored, at most
}

// beats reports whether a registration only repeats what the store has.
func (r *registrations) beats(reg store.Registration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.known[SiteKey{reg.App, reg.Address}]
	return ok && k.bootID == reg.BootID && time.Since(k.at) < r.s.Cfg.Cluster.Dead/2
}

func (r *registrations) knows(reg store.Registration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.known[SiteKey{reg.App, reg.Address}]
	return ok
}

const (
	// registrationsKept is how long a registration that is dead stays to be seen, and
	// registrationsTidied how often dead ones are looked for.
	registrationsKept   = 24 * time.Hour
	registrationsTidied = time.Hour
)

// How many registrations there may be. Input: what is read of the registry, and what comes
// here. Output: room, or a refusal; and when to forget the dead ones sooner than usual.

// quotaApps is how many times Config.HTTP.MaxRegistrations all apps without a token of their own
// may have together. An app that has one has its room for itself: whoever has a token that
// all share may name apps without end, and keeps out others of its kind only.
const quotaApps = 10

// Words for registrations that there is no room for.
const (
	msgQuotaApp = "app %s has %d living registrations, as many as it may have (Config.HTTP.MaxRegistrations)"
	msgQuotaAll = "the registry is full: app %s cannot register before some of the %d registrations of apps without tokens of their own have ended (Config.HTTP.MaxRegistrations)"
)

// quota are the registrations that the store has, as far as this node knows, and those that
// are on their way there. It includes dead ones, up to a bound: they are read, too.
type quota struct {
	most int           // of an app: Config.HTTP.MaxRegistrations
	dead time.Duration // Config.Cluster.Dead
	own  func(app string) bool

	apps   map[string]map[string]quotaEntry // by app and address
	shared int                              // how many of them are of apps without a token of their own
	counts map[string]count                 // of apps that may be full; of all that share, under ""
}

// quotaEntry is one registration.
type quotaEntry struct {
	at    time.Time // monotonic: when it was refreshed, at most
	there bool      // it is stored; otherwise it is on its way
}

// count is how many were alive a moment ago.
type count struct {
	living int
	at     time.Time
}

func newQuota(c *core.Config) *quota {
	own := func(app string) bool { return len(c.HTTP.Tokens[app]) > 0 }
	return &quota{most: c.HTTP.MaxRegistrations, dead: c.Cluster.Dead, own: own, apps: map[string]map[string]quotaEntry{}, counts: map[string]count{}}
}

// room reports whether there is room for one more of an app, and otherwise why not. late
// is set where dead ones are in the way of a full count.
func (r *quota) room(app string, now time.Time) (why string, late bool) {
	if list := r.apps[app]; len(list) >= r.most {
		n, l := r.count(app, now, func(each func(quotaEntry)) {
			for _, e := range list {
				each(e)
			}
		})
		late = l
		if n >= r.most {
			return fmt.Sprintf(msgQuotaApp, app, n), late
		}
	}
	if r.own(app) || r.shared < quotaApps*r.most {
		return "", late
	}
	n, l := r.count("", now, r.eachShared)
	if n >= quotaApps*r.most {
		why = fmt.Sprintf(msgQuotaAll, app, n)
	}
	return why, late || l
}

// eachShared calls f with each entry of an app without a token of its own.
func (r *quota) eachShared(f func(quotaEntry)) {
	for app, list := range r.apps {
		if r.own(app) {
			continue
		}
		for _, e := range list {
			f(e)
		}
	}
}

// count counts the living ones, once a second at most, and reports whether it has met
// others that may be forgotten.
func (r *quota) count(of string, now time.Time, all func(func(quotaEntry))) (living int, late bool) {
	if c, counted := r.counts[of]; counted && now.Sub(c.at) < time.Second {
		return c.living, false
	}
	all(func(e quotaEntry) {
		age := now.Sub(e.at)
		if age < r.dead {
			living++
		}
		late = late || age >= 2*r.dead
	})
	r.counts[of] = count{living, now}
	return living, late
}

// put takes in a registration that is stored, or is on its way.
func (r *quota) put(app, address string, e quotaEntry) {
	list := r.apps[app]
	if list == nil {
		list = map[string]quotaEntry{}
		r.apps[app] = list
	}
	was, has := list[address]
	list[address] = e
	if !has && !r.own(app) {
		r.shared++
	}
	if !has || e.at.Sub(was.at) >= r.dead {
		r.counted(app, 1)
	}
}

// drop strikes one off.
func (r *quota) drop(app, address string, now time.Time) {
	was, has := r.apps[app][address]
	if !has {
		return
	}
	delete(r.apps[app], address)
	if len(r.apps[app]) == 0 {
		delete(r.apps, app)
	}
	if !r.own(app) {
		r.shared--
	}
	if now.Sub(was.at) < r.dead {
		r.counted(app, -1)
	}
}

// counted corrects counts that are used for a moment yet.
func (r *quota) counted(app string, n int) {
	for _, of := range []string{app, ""} {
		if c, has := r.counts[of]; has && (of != "" || !r.own(app)) {
			c.living += n
			r.counts[of] = c
		}
	}
}

// forget strikes off those that were not refreshed for maxAge, and returns whose they were.
func (r *quota) forget(maxAge time.Duration, now time.Time) (gone []SiteKey) {
	for app, list := range r.apps {
		for address, e := range list {
			if now.Sub(e.at) >= maxAge {
				gone = append(gone, SiteKey{app, address})
			}
		}
	}
	for _, k := range gone {
		r.drop(k.App, k.Address, now)
	}
	return gone
}

// The registry as a node reads it, now and then: as much of it as there may be, whatever is
// there.

const (
	readPage  = 5000 // registrations of a page
	leastPage = 500  // the same while apps have small shares
)

// quotaReader is what was read of the registry.
type quotaReader struct {
	quota  *quota
	share  int // how many of an app without a token of its own are taken in
	apps   []appRead
	shared int // how many were taken in of apps without a token of their own
	passed int // how many apps have more than was taken in
}

// appRead is what was read of one app, in order of address.
type appRead struct {
	app    string
	rows   []store.Registration
	passed bool // there are more
}

// newQuotaReader takes in twice as many as may live: the others have died lately, or are about
// to be forgotten.
func newQuotaReader(r *quota) *quotaReader { return &quotaReader{quota: r, share: 2 * r.most} }

// take takes in the next registration in order. It returns false when its app has its
// share: the reader goes on with the next app.
func (r *quotaReader) take(reg store.Registration) bool {
	if n := len(r.apps); n == 0 || r.apps[n-1].app != reg.App {
		r.apps = append(r.apps, appRead{app: reg.App})
	}
	a, own, share := &r.apps[len(r.apps)-1], r.quota.own(reg.App), r.share
	if own {
		share = 2 * r.quota.most
	}
	if len(a.rows) >= share {
		r.pass(a)
		return false
	}
	a.rows = append(a.rows, reg)
	if !own {
		r.shared++
		r.fit()
	}
	return true
}

func (r *quotaReader) pass(a *appRead) {
	if !a.passed {
		a.passed = true
		r.passed++
	}
}

// fit makes the shares smaller while there is more than fits, so that apps which come late
// in the order have as much as those which come early.
func (r *quotaReader) fit() {
	for r.shared > 2*quotaApps*r.quota.most && r.share > 1 {
		r.share = max(1, r.share/2)
		for i := range r.apps {
			a := &r.apps[i]
			if over := len(a.rows) - r.share; over > 0 && !r.quota.own(a.app) {
				clear(a.rows[r.share:])
				a.rows = a.rows[:r.share]
				r.shared -= over
				r.pass(a)
			}
		}
	}
}

// full reports whether there is no room for even one of each app.
func (r *quotaReader) full() bool { return r.shared > 2*quotaApps*r.quota.most }

// Remembered is how many registrations this node remembers.
func (r *Registrar) Remembered() (n int) {
	r.Regs.mu.Lock()
	defer r.Regs.mu.Unlock()
	for _, list := range r.Regs.quota.apps {
		n += len(list)
	}
	return max(n, len(r.Regs.known))
}
