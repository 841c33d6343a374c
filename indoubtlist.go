package xxljob

// The runs in doubt: when to ask about which.

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/wire"
)

const (
	// askFirst and askMost space the questions about one run.
	askFirst = time.Second
	askMost  = 10 * time.Second
)

const (
	// askWidth is how many addresses are asked at once.
	askWidth = 64
	// openTurn is how many runs of one address are asked about in one go, and
	// askPatience how long that may take before the rest has to wait.
	openTurn    = 8
	askPatience = 2 * time.Second
)

// inDoubtList are the runs in doubt of this node. It is safe for concurrent use.
type inDoubtList struct {
	mu     sync.Mutex
	runs   map[int64]*runInDoubt // guarded by mu
	asking map[siteKey]bool      // guarded by mu: addresses that are being asked
	turn   int                   // how many runs of one address are taken at a time; zero for openTurn
}

func (o *inDoubtList) add(r *runInDoubt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.runs == nil {
		o.runs, o.asking = map[int64]*runInDoubt{}, map[siteKey]bool{}
	}
	if was := o.runs[r.run.ID]; was == nil || was.run.Token < r.run.Token {
		o.runs[r.run.ID] = r // a later start takes the place of one that is over
	}
}

// drop forgets a run, unless a later start of it is in doubt by now.
func (o *inDoubtList) drop(r *runInDoubt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.runs[r.run.ID] == r {
		delete(o.runs, r.run.ID)
	}
}

func (o *inDoubtList) has(id int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.runs[id] != nil
}

// take returns the runs to ask about now, by address, those first that have waited
// longest. Their addresses count as being asked until asked is called.
func (o *inDoubtList) take(now time.Time) map[siteKey][]*runInDoubt {
	o.mu.Lock()
	defer o.mu.Unlock()
	var due []*runInDoubt
	for _, r := range o.runs {
		if !r.next.After(now) {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *runInDoubt) int {
		return cmp.Or(a.next.Compare(b.next), cmp.Compare(a.run.ID, b.run.ID))
	})
	groups := map[siteKey][]*runInDoubt{}
	for _, r := range due {
		k := siteKey{r.run.App, r.run.Address}
		switch {
		case groups[k] == nil && (o.asking[k] || len(o.asking) >= askWidth), len(groups[k]) >= max(o.turn, openTurn):
			continue
		}
		o.asking[k] = true
		groups[k] = append(groups[k], r)
	}
	return groups
}

// asked ends what take began.
func (o *inDoubtList) asked(k siteKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.asking, k)
}

// wait is the time until there is something to ask that can be asked.
func (o *inDoubtList) wait(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	wait := time.Duration(forever)
	for _, r := range o.runs {
		if !o.asking[siteKey{r.run.App, r.run.Address}] && len(o.asking) < askWidth {
			wait = min(wait, max(r.next.Sub(now), time.Millisecond))
		}
	}
	return wait
}

// later puts off the next question about a run: for longer each time that it was asked.
func (o *inDoubtList) later(r *runInDoubt, asked bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !asked {
		r.next = time.Now() // behind those that have waited longer
		return
	}
	r.next = time.Now().Add(min(askFirst<<min(r.tries, 10), askMost))
	r.tries++
}

// runInDoubt is a run in that state. While its address is being asked it is owned by who
// asks.
type runInDoubt struct {
	run   Run
	req   wire.TriggerRequest // as it was sent
	again bool                // it may be sent again: that process knows ids that it was sent before
	since time.Time           // monotonic
	from  time.Time           // the same moment by the store's clock, or a little earlier
	idle  time.Time           // when the executor first said that the job is idle, or that it does not have the run
	job   *Job                // nil while it was not needed
	tries int
	next  time.Time // when to ask again

	accepted saidSoFar // of a run that was accepted
}

// saidSoFar is what was heard from the executor of a run that it has accepted, and that
// nobody has reported: see unreported.go.
type saidSoFar struct {
	known    time.Time // since when this node looks after the run
	left     time.Time // when its shard went to another node; zero while it is this node's
	asked    time.Time // when something was said of it last
	absences int       // how often in a row it did not have the run
	absent   time.Time // the first of those
	deaf     time.Time // since when nobody has answered; zero while somebody does
	warned   time.Time // when the log was told that the run is overdue
}

// is reports whether a run, as it now is, is still the one that is in doubt here: neither
// over nor somebody else's.
func (o *runInDoubt) is(r Run) bool {
	return r.State == StateStarted && r.Owner == o.run.Owner && r.Token == o.run.Token && r.Address == o.run.Address
}
