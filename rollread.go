package xxljob

// The registry as a node reads it, now and then: as much of it as there may be, whatever is
// there.

import (
	"context"
	"strings"
	"time"
)

const (
	readPage  = 5000 // registrations of a page
	leastPage = 500  // the same while apps have small shares
)

// rollRead is what was read of the registry.
type rollRead struct {
	roll   *roll
	share  int // how many of an app without a token of its own are taken in
	apps   []appRead
	shared int // how many were taken in of apps without a token of their own
	passed int // how many apps have more than was taken in
}

// appRead is what was read of one app, in order of address.
type appRead struct {
	app    string
	rows   []Registration
	passed bool // there are more
}

// newRollRead takes in twice as many as may live: the others have died lately, or are about
// to be forgotten.
func newRollRead(r *roll) *rollRead { return &rollRead{roll: r, share: 2 * r.most} }

// take takes in the next registration in order. It returns false when its app has its
// share: the reader goes on with the next app.
func (r *rollRead) take(reg Registration) bool {
	if n := len(r.apps); n == 0 || r.apps[n-1].app != reg.App {
		r.apps = append(r.apps, appRead{app: reg.App})
	}
	a, own, share := &r.apps[len(r.apps)-1], r.roll.own(reg.App), r.share
	if own {
		share = 2 * r.roll.most
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

func (r *rollRead) pass(a *appRead) {
	if !a.passed {
		a.passed = true
		r.passed++
	}
}

// fit makes the shares smaller while there is more than fits, so that apps which come late
// in the order have as much as those which come early.
func (r *rollRead) fit() {
	for r.shared > 2*rollApps*r.roll.most && r.share > 1 {
		r.share = max(1, r.share/2)
		for i := range r.apps {
			a := &r.apps[i]
			if over := len(a.rows) - r.share; over > 0 && !r.roll.own(a.app) {
				clear(a.rows[r.share:])
				a.rows = a.rows[:r.share]
				r.shared -= over
				r.pass(a)
			}
		}
	}
}

// full reports whether there is no room for even one of each app.
func (r *rollRead) full() bool { return r.shared > 2*rollApps*r.roll.most }

// readAll reads the registry page by page. Of an app that has more than its share the rest
// is passed over, and not read: a million registrations of one app cost a page or two
// more, and do not keep the next one out.
func (r *registrar) readAll(ctx context.Context) (*rollRead, error) {
	read := newRollRead(newRoll(&r.s.cfg))
	f := RegistrationFilter{Limit: readPage}
	for {
		regs, err := call(ctx, func(ctx context.Context) ([]Registration, error) { return r.s.store.Registrations(ctx, f) })
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
func (r *registrar) read(ctx context.Context) error {
	began := time.Now()
	read, err := r.readAll(ctx)
	if err != nil {
		return err
	}
	r.warnOfPassed(read)
	now, late := time.Now(), read.passed > 0
	alive, next := make(map[addressKey]knownAddress), read.roll
	for _, a := range read.apps {
		for _, reg := range a.rows {
			age := max(r.s.clock.now().Sub(reg.Updated), 0)
			late = late || age >= 2*r.s.cfg.Dead && (len(a.rows) >= next.most || read.shared >= rollApps*next.most)
			next.put(reg.App, reg.Address, rolled{at: now.Add(-age), there: true})
			if age < r.s.cfg.Dead {
				alive[addressKey{reg.App, reg.Address}] = knownAddress{bootID: reg.BootID, at: now.Add(-age)}
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
	for app, list := range r.roll.apps {
		for address, e := range list {
			if _, is := next.apps[app][address]; !e.at.Before(began) || !e.there && !is {
				next.put(app, address, e) // it has come meanwhile, or is on its way
			}
		}
	}
	r.known, r.roll = alive, next
	r.crowded.pokeIf(late)
	return nil
}

// warnOfPassed says once in a while that there is more than is read.
func (r *registrar) warnOfPassed(read *rollRead) {
	if read.passed == 0 && !read.full() || !r.s.rarely.lets("registry is too large") {
		return
	}
	var names []string
	for _, a := range read.apps {
		if a.passed && len(names) < 10 {
			names = append(names, a.app)
		}
	}
	r.s.log.Warn("xxljob: the registry has more registrations than may be, and was not read as a whole; heartbeats of those that were not read are refused while there is no room (Config.MaxRegistrations)",
		"apps", strings.Join(names, ", "), "such apps", read.passed, "read of each", read.share)
}
