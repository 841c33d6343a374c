package registry

// What was heard of the addresses of apps, and for how long it is good.

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
)

// Memory is what the store and a registry of the user's have said. It is safe for
// concurrent use.
type Memory struct {
	dead     time.Duration // Config.Cluster.Dead
	wake     loop.Wake     // something has come or gone
	Liveness *liveness     // of addresses at which accepted runs are

	mu         sync.Mutex
	entries    map[BookKey]bookEntry // guarded by mu
	version    int                   // guarded by mu: raised by forget
	last       map[string]Answer     // guarded by mu: by app, what the store and the registry have said
	silent     map[string]silence    // guarded by mu: who did not answer: the store (""), or the registry about an app
	tombstones tombstones            // guarded by mu
	news       map[string]bool       // guarded by mu: apps whose executors have come or gone, until takeNews
}

// NewMemory makes it; news is woken where something has come or gone.
func NewMemory(dead time.Duration, news loop.Wake) *Memory {
	return &Memory{dead: dead, wake: news, news: map[string]bool{}, Liveness: newLiveness(dead), entries: map[BookKey]bookEntry{}, last: map[string]Answer{}, silent: map[string]silence{}}
}

// silence is an answer that has not come.
type silence struct {
	since time.Time
	cause error
}

type BookKey struct{ App, Handler, Glue string }

type bookEntry struct {
	Addrs []string
	None  string // why there are none
	Read  time.Time
}

// AsOf is the version of what is known: an answer that was asked for before there was news
// is not kept.
func (m *Memory) AsOf() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.version
}

// recall returns the last answer about an app, the version of what is known, and as an error
// why there is no newer answer, where somebody is silent.
func (m *Memory) recall(app string, now time.Time) (last Answer, known bool, version int, stale error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known = m.last[app]
	// All apps are in the same tables: one that waits for them is enough.
	for _, of := range []string{"", app} {
		if s, silent := m.silent[of]; silent && now.Sub(s.since) < addressPause {
			stale = s.cause
		}
	}
	return last, known, m.version, stale
}

// noAnswer remembers who has not answered: the store (""), or the registry about an app.
func (m *Memory) noAnswer(who string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.silent[who] = silence{since: time.Now(), cause: err}
}

// hadLately reports whether an address was one of the app's a moment ago, and is gone.
func (m *Memory) hadLately(app, address string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, gone := m.tombstones.apps[app][address]
	return gone && time.Since(at) < m.dead
}

// StillThere keeps an address in mind that was one of the app's, for an executor answers
// there questions about its runs.
func (m *Memory) StillThere(app, address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, gone := m.tombstones.apps[app][address]; gone && time.Since(at) < m.dead {
		m.noteGone(app, address)
	}
}

// MayBeThere keeps an address in mind at which a run is, though it is not one of the app's: its
// executor may have said good-bye before this node was there.
func (m *Memory) MayBeThere(app, address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, gone := m.tombstones.apps[app][address]; !gone || time.Since(at) >= m.dead {
		m.noteGone(app, address)
	}
}

// ForgetApp drops what is known of an app: an executor has come or gone.
func (m *Memory) ForgetApp(app string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, asked := m.last[app]; asked { // there are entries of such apps only
		for key := range m.entries {
			if key.App == app {
				delete(m.entries, key)
			}
		}
		a.fresh = false
		m.last[app] = a
	}
	m.version++
	delete(m.silent, app) // ask anew
	m.news[app] = true
	m.wake.Poke()
}

// takeNews are the apps whose executors have come or gone since it was called last.
func (m *Memory) takeNews() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	apps := slices.Sorted(maps.Keys(m.news))
	clear(m.news)
	return apps
}

// heardLately reports whether an app had addresses when they were asked for last, not long ago.
func (m *Memory) heardLately(app string, within time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, asked := m.last[app]
	return asked && len(a.Addrs) > 0 && time.Since(a.at) < within
}

// left drops an address that an executor has taken back. It is remembered if this node
// knew it: anybody may take back what never was there.
func (m *Memory) left(app, address string, known bool) {
	m.mu.Lock()
	if a, ok := m.last[app]; ok {
		if i := slices.Index(a.Addrs, address); i >= 0 {
			a.Addrs = slices.Concat(a.Addrs[:i], a.Addrs[i+1:]) // others may be reading the list
			known = true
		}
		m.last[app] = a
	}
	if known {
		m.noteGone(app, address)
	}
	m.mu.Unlock()
	m.ForgetApp(app)
}

// noteGone remembers that an address was one of the app's until now. Caller holds mu.
func (m *Memory) noteGone(app, address string) {
	m.tombstones.note(app, address, time.Now(), m.dead)
}

// Forget drops everything: a node, a group or a handler has changed.
func (m *Memory) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.entries)
	for app, a := range m.last {
		a.fresh = false
		m.last[app] = a
	}
	m.version++
	clear(m.silent) // ask anew
	m.wake.Poke()
}

// Cached is what was read a moment ago. Finding no address is not remembered: the run
// would be refused for good.
func (m *Memory) Cached(key BookKey) (bookEntry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[key]
	return e, ok && time.Since(e.Read) < AddressTTL && len(e.Addrs) > 0
}

// Keep remembers what was read, unless there was news since it was asked for.
func (m *Memory) Keep(key BookKey, e bookEntry, version int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.version != version {
		return
	}
	if len(m.entries) > 10_000 {
		clear(m.entries)
	}
	m.entries[key] = e
}

// Boot is the boot id of the executor at an address, by what was last heard of it;
// empty for third-party executors.
func (m *Memory) Boot(app, address string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last[app].boots[address]
}

// heard remembers an answer. Who gave it is not silent any more. It is not fresh where
// there was news since it was asked for, of whatever app.
func (m *Memory) heard(app string, a Answer, version int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a.fresh = m.version == version
	if was, ok := m.last[app]; ok && time.Since(was.at) < m.dead {
		for _, address := range vanished(was.Addrs, a.Addrs) {
			m.noteGone(app, address)
		}
	}
	if len(m.last) > 10_000 {
		clear(m.last)
		clear(m.entries)
		clear(m.silent)
	}
	m.last[app] = a
	delete(m.silent, "")
	delete(m.silent, app)
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

const (
	// addressPatience is how long an answer may take where there is an earlier one.
	addressPatience = time.Second
	// addressPause is how long the earlier one stands in before they are asked again.
	addressPause = 5 * time.Second
)

// AddressTTL is how long a node goes by what it has read about an app's
// addresses. What the node itself hears of counts at once (forget).
const AddressTTL = time.Second

// Answer is what the store and the registry have said of an app.
type Answer struct {
	Addrs  []string
	boots  map[string]string        // of executors of our own make: their boot ids, by address
	ages   map[string]time.Duration // of registrations: how long before the answer they were refreshed, by address
	former map[string]formerBoot    // of addresses at which another process was registered before, by address
	Manual bool                     // these and no others
	at     time.Time                // when
	fresh  bool                     // nothing has been heard since that contradicts it
	Stale  error                    // why there is no newer one
}

// formerBoot is the process that was registered at an address before the one that is.
type formerBoot struct {
	id  string
	ago time.Duration // how long before the answer it was heard of last
}

// SiteKey is an address of an app.
type SiteKey struct{ App, Address string }

// maxGone bounds what is remembered of addresses that are gone, of all apps.
const maxGone = 20_000

// tombstones are addresses that were an app's, by app and address, and until when. Its
// zero value is ready.
type tombstones struct {
	apps    map[string]map[string]time.Time
	n       int
	expired time.Time // when old ones were looked for last
}

// note remembers an address for a while. Where there is no room the old ones make it, and
// then the app that has most: one whose executors come and go without end does not have
// those of the others forgotten.
func (g *tombstones) note(app, address string, now time.Time, kept time.Duration) {
	_, has := g.apps[app][address]
	if !has && g.n >= maxGone && now.Sub(g.expired) >= time.Second {
		g.expire(now, kept)
	}
	if !has && g.n >= maxGone {
		g.forgetMost()
	}
	if g.apps == nil {
		g.apps = map[string]map[string]time.Time{}
	}
	list := g.apps[app]
	if list == nil {
		list = map[string]time.Time{}
		g.apps[app] = list
	}
	if !has {
		g.n++
	}
	list[address] = now
}

// expire forgets what is older than kept.
func (g *tombstones) expire(now time.Time, kept time.Duration) {
	g.expired = now
	for app, list := range g.apps {
		for address, at := range list {
			if now.Sub(at) >= kept {
				delete(list, address)
				g.n--
			}
		}
		if len(list) == 0 {
			delete(g.apps, app)
		}
	}
}

// forgetMost forgets those of the app that has most.
func (g *tombstones) forgetMost() {
	most := ""
	for app, list := range g.apps {
		if most == "" || len(list) > len(g.apps[most]) {
			most = app
		}
	}
	g.n -= len(g.apps[most])
	delete(g.apps, most)
}

// Goodbyes is how many addresses that are gone this node remembers.
func (b *Addresses) Goodbyes() int {
	b.Memory.mu.Lock()
	defer b.Memory.mu.Unlock()
	return b.Memory.tombstones.n
}
