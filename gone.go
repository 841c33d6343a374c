package xxljob

import "time"

// maxGone bounds what is remembered of addresses that are gone, of all apps.
const maxGone = 20_000

// goneAddresses are addresses that were an app's, by app and address, and until when. Its
// zero value is ready.
type goneAddresses struct {
	apps    map[string]map[string]time.Time
	n       int
	expired time.Time // when old ones were looked for last
}

// note remembers an address for a while. Where there is no room the old ones make it, and
// then the app that has most: one whose executors come and go without end does not have
// those of the others forgotten.
func (g *goneAddresses) note(app, address string, now time.Time, kept time.Duration) {
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
func (g *goneAddresses) expire(now time.Time, kept time.Duration) {
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
func (g *goneAddresses) forgetMost() {
	most := ""
	for app, list := range g.apps {
		if most == "" || len(list) > len(g.apps[most]) {
			most = app
		}
	}
	g.n -= len(g.apps[most])
	delete(g.apps, most)
}
