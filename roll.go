package xxljob

// How many registrations there may be. Input: what is read of the registry, and what comes
// here. Output: room, or a refusal; and when to forget the dead ones sooner than usual.

import (
	"fmt"
	"time"
)

// rollApps is how many times Config.HTTP.MaxRegistrations all apps without a token of their own
// may have together. An app that has one has its room for itself: whoever has a token that
// all share may name apps without end, and keeps out others of its kind only.
const rollApps = 10

// Words for registrations that there is no room for.
const (
	msgRollApp = "app %s has %d living registrations, as many as it may have (Config.HTTP.MaxRegistrations)"
	msgRollAll = "the registry is full: app %s cannot register before some of the %d registrations of apps without tokens of their own have ended (Config.HTTP.MaxRegistrations)"
)

// roll are the registrations that the store has, as far as this node knows, and those that
// are on their way there. It includes dead ones, up to a bound: they are read, too.
type roll struct {
	most int           // of an app: Config.HTTP.MaxRegistrations
	dead time.Duration // Config.Cluster.Dead
	own  func(app string) bool

	apps   map[string]map[string]rolled // by app and address
	shared int                          // how many of them are of apps without a token of their own
	counts map[string]count             // of apps that may be full; of all that share, under ""
}

// rolled is one registration.
type rolled struct {
	at    time.Time // monotonic: when it was refreshed, at most
	there bool      // it is stored; otherwise it is on its way
}

// count is how many were alive a moment ago.
type count struct {
	living int
	at     time.Time
}

func newRoll(c *Config) *roll {
	own := func(app string) bool { return len(c.HTTP.Tokens[app]) > 0 }
	return &roll{most: c.HTTP.MaxRegistrations, dead: c.Cluster.Dead, own: own, apps: map[string]map[string]rolled{}, counts: map[string]count{}}
}

// room reports whether there is room for one more of an app, and otherwise why not. late
// is set where dead ones are in the way of a full count.
func (r *roll) room(app string, now time.Time) (why string, late bool) {
	if list := r.apps[app]; len(list) >= r.most {
		n, l := r.count(app, now, func(each func(rolled)) {
			for _, e := range list {
				each(e)
			}
		})
		late = l
		if n >= r.most {
			return fmt.Sprintf(msgRollApp, app, n), late
		}
	}
	if r.own(app) || r.shared < rollApps*r.most {
		return "", late
	}
	n, l := r.count("", now, r.eachShared)
	if n >= rollApps*r.most {
		why = fmt.Sprintf(msgRollAll, app, n)
	}
	return why, late || l
}

// eachShared calls f with each entry of an app without a token of its own.
func (r *roll) eachShared(f func(rolled)) {
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
func (r *roll) count(of string, now time.Time, all func(func(rolled))) (living int, late bool) {
	if c, counted := r.counts[of]; counted && now.Sub(c.at) < time.Second {
		return c.living, false
	}
	all(func(e rolled) {
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
func (r *roll) put(app, address string, e rolled) {
	list := r.apps[app]
	if list == nil {
		list = map[string]rolled{}
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
func (r *roll) drop(app, address string, now time.Time) {
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
func (r *roll) counted(app string, n int) {
	for _, of := range []string{app, ""} {
		if c, has := r.counts[of]; has && (of != "" || !r.own(app)) {
			c.living += n
			r.counts[of] = c
		}
	}
}

// forget strikes off those that were not refreshed for maxAge, and returns whose they were.
func (r *roll) forget(maxAge time.Duration, now time.Time) (gone []siteKey) {
	for app, list := range r.apps {
		for address, e := range list {
			if now.Sub(e.at) >= maxAge {
				gone = append(gone, siteKey{app, address})
			}
		}
	}
	for _, k := range gone {
		r.drop(k.app, k.address, now)
	}
	return gone
}
