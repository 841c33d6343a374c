package xxljob

// The lists of EnsureJobs that this scheduler was given.

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xxljob/xxljob/store"
)

// ownLists are the lists that this scheduler was given, the last one of each app.
type ownLists struct {
	wake  wake          // of the loop
	beats int64         // of the node's row, as of the last beat; owned by the lease loop
	turn  chan struct{} // full while a list is applied: one after the other
	rows  atomic.Int64  // how often the node's row in the store was new
	// unfinished are the apps whose list an error has kept from being applied as a whole,
	// and put are those whose list the store has had, to apply it. Both belong to who has
	// the turn.
	unfinished, put map[string]bool

	mu   sync.Mutex
	apps map[string]*wantedList // guarded by mu
}

func newOwnLists(w wake) *ownLists {
	return &ownLists{wake: w, turn: make(chan struct{}, 1), unfinished: map[string]bool{}, put: map[string]bool{}, apps: map[string]*wantedList{}}
}

// take waits for the turn to apply a list.
func (o *ownLists) take(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case o.turn <- struct{}{}:
		return func() { <-o.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// set makes a list the app's, one that has yet to be applied as a whole. It is called by who
// has the turn.
func (o *ownLists) set(w *wantedList) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unfinished[w.App] = true
	if was := o.apps[w.App]; was != nil && was.isSame(w) {
		return // what was seen while the list was this one goes on counting
	}
	o.apps[w.App] = w
	delete(o.put, w.App)
}

// isSame reports whether two lists of an app say the same.
func (w *wantedList) isSame(other *wantedList) bool {
	return w.Generation == other.Generation && w.Prune == other.Prune && w.Digest == other.Digest
}

func (o *ownLists) of(app string) *wantedList {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.apps[app]
}

// names returns the apps that there are lists for, in order.
func (o *ownLists) names() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.apps))
}

// wantedList is a list as EnsureJobs was given it, complete and with digests. It is
// never changed.
type wantedList struct {
	store.JobList
	jobs  []Job
	stops bool // their Stopped counts for jobs that are there too
}

// applies reports whether the head of the app is this list.
func (w *wantedList) applies(head store.ListHead) bool {
	return head.Generation == w.Generation && head.Digest == w.Digest
}

// noteRow has the lists put again when the node's row in the store is new: the node has
// joined, or was buried and is back. It is called by the lease loop.
func (o *ownLists) noteRow(v View, incarnation string) {
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.Incarnation != incarnation {
			continue
		}
		if n.Beats <= o.beats || o.beats == 0 {
			o.renewed()
		}
		o.beats = n.Beats
	}
}

// renewed has the lists put again: the node's row in the store is new.
func (o *ownLists) renewed() {
	o.rows.Add(1)
	o.wake.poke()
}
