package executor

import "time"

// withdrawn are starts of runs that an admin was told are not known here. It may have
// started them anew since, elsewhere perhaps: should one still arrive, it is refused.
// They are guarded by Executor.mu.
//
// None is forgotten before its time, unlike ids of recent: where there is no room for one
// more the admin is told that the run may be forgotten, which promises nothing.
type withdrawn struct {
	generations[int64] // the greatest StartToken that is refused
	max                int
}

// withdrawnFor is how long a start is refused at least: longer than a request is on its
// way through a network that comes and goes. A late one does not say that it is late.
const withdrawnFor = 10 * time.Minute

// newWithdrawn refuses starts for keep, and withdrawnFor, at least, and no more than most
// of them.
func newWithdrawn(keep time.Duration, most int) withdrawn {
	return withdrawn{generations[int64]{keep: max(keep, withdrawnFor)}, most}
}

// add refuses a start and earlier ones of the same run from now on, and reports whether
// it can.
func (w *withdrawn) add(k runID, token int64, now time.Time) bool {
	before, _ := w.find(k, now)
	_, young := w.young.exactly(k)
	_, old := w.old.exactly(k)
	if !young && !old && w.young.n+w.old.n >= w.max {
		return false
	}
	w.young.put(k, max(token, before))
	return true
}

// has reports whether a start is refused. One without a token is of a scheduler that does
// not number starts. That it is no later one of the same run nobody can tell: so it is
// refused too, where the date leaves no doubt that it is the same run.
func (w *withdrawn) has(k runID, token int64, now time.Time) bool {
	w.age(now)
	return refuses(&w.young, k, token) || refuses(&w.old, k, token)
}

func refuses(b *byRun[int64], k runID, token int64) bool {
	last, known := b.find(k)
	switch {
	case !known:
		return false
	case token != 0:
		return token <= last
	}
	_, same := b.exactly(k)
	return k.date != 0 && same
}
