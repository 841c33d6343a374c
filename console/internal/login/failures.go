package login

// How often somebody may try: failures by the address they come from, in this process.

import (
	"net/netip"
	"sync"
	"time"

	"github.com/xxljob/xxljob/store"
)

// The bounds of failures by address.
const (
	freeFailures  = 20        // after which each further try waits
	failuresKept  = time.Hour // after the last one
	mostAddresses = 10_000    // that are remembered
)

// failures are tries that have failed, by address, and the addresses from which somebody has logged
// in. The zero value is complete.
type failures struct {
	mu     sync.Mutex
	by     map[netip.Prefix]failed    // guarded by mu
	passed map[netip.Prefix]time.Time // guarded by mu: the last login, of mostAddresses
}

type failed struct {
	n            int
	last, before time.Time // the last of them, and the one before that
}

// wait is how long a try from the address has to wait. A try that need not counts as one that
// has failed, at that time, until it is taken back.
func (f *failures) wait(at netip.Prefix, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil {
		f.by = map[netip.Prefix]failed{}
	}
	was := f.by[at]
	since := now.Sub(was.last)
	if since < 0 || since >= failuresKept {
		was.n = 0
	}
	if wait := store.LoginWait(was.n-freeFailures+store.FreeTries) - since; was.n >= freeFailures && wait > 0 {
		return wait
	}
	if len(f.by) >= mostAddresses {
		f.forget(now)
	}
	f.by[at] = failed{was.n + 1, now, was.last}
	return 0
}

// forget makes room: of the addresses that are not waiting, or else of any. mu is held.
func (f *failures) forget(now time.Time) {
	for at, was := range f.by {
		if was.n < freeFailures || now.Sub(was.last) > failuresKept {
			delete(f.by, at)
		}
	}
	for at := range f.by {
		if len(f.by) < mostAddresses {
			return
		}
		delete(f.by, at)
	}
}

// takeBack says that the try which was counted for the address at that time has succeeded, or was
// not made: it does not count. Others do, those that came after it too, or who has an account could
// go through the names of all others with a login now and then.
func (f *failures) takeBack(at netip.Prefix, tried time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.by[at]
	if was.n--; was.n <= 0 {
		delete(f.by, at)
		return
	}
	if was.last.Equal(tried) {
		was.last = was.before
	}
	f.by[at] = was
}

// passedKept is for how long an address is known from which somebody has logged in.
const passedKept = 30 * 24 * time.Hour

// pass notes that somebody has logged in from the address.
func (f *failures) pass(at netip.Prefix, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.passed == nil {
		f.passed = map[netip.Prefix]time.Time{}
	}
	if _, known := f.passed[at]; !known && len(f.passed) >= mostAddresses {
		for other := range f.passed {
			delete(f.passed, other) // any: there is room for one
			break
		}
	}
	f.passed[at] = now
}

// hasPassed reports whether somebody has logged in from the address, as far as this process knows.
func (f *failures) hasPassed(at netip.Prefix) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, known := f.passed[at]
	return known && time.Since(last) < passedKept
}
