package xxljob

// The registry as a node reads it, now and then: as much of it as there may be, whatever is
// there.

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
