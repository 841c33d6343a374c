package events

import (
	"context"
	"maps"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Lines of ends that another node has stored, of the apps that are attached here. In: the latest
// runs that have gone wrong, read a few times a minute while others are there. Out: their lines, a
// line a job and minute as for ends of this node.

const (
	otherEvery = 10 * time.Second
	// otherRuns is how many of the runs that were planned last, of all apps, are looked at: what has
	// failed, and as many records of skipped instants.
	otherRuns = 500
	// otherKept is for how long an end is new, and for how long others are read of that have gone.
	otherKept = time.Minute
)

// otherLines belongs to its duty, but for what endLines guards.
type otherLines struct {
	*Bus
	wake   loop.Wake      // another node has come or gone
	others time.Time      // when another node was there last
	since  time.Time      // by the store's clock: what ended before is not news
	seen   map[int64]bool // what was there at the last look: true where it has been dealt with
}

// OtherLinesDuty says lines of ends of the apps that are attached here which other nodes store.
func (t *Bus) OtherLinesDuty() loop.Duty {
	return loop.Duty{What: "looking for failures that other nodes have stored", Aside: true, Wakes: []<-chan struct{}{t.other.wake}, Once: t.other.once}
}

func (o *otherLines) once(ctx context.Context) (time.Duration, error) {
	now := time.Now()
	there := o.Leases.HasOthers()
	switch {
	case o.lines.every < 0:
		return loop.Forever, nil
	case there && o.others.IsZero():
		o.lines.note(true)
		o.since = o.Clock.Now()
	case !there && (o.others.IsZero() || now.Sub(o.others) > otherKept):
		o.others, o.seen = time.Time{}, nil
		o.lines.note(false)
		return loop.Forever, nil
	}
	if there {
		o.others = now
	}
	apps := map[string]bool{}
	for _, at := range o.Leases.Local() {
		apps[at.App] = true
	}
	if len(apps) == 0 {
		return otherEvery, nil
	}
	seen := map[int64]bool{}
	for _, states := range [][]store.State{
		{store.StateFailed, store.StateTimedOut, store.StateLost, store.StateRefused},
		{store.StateSkipped},
	} {
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
			return o.Store.Runs(ctx, store.RunFilter{States: states, Limit: otherRuns})
		})
		if err != nil {
			return 0, err
		}
		for i := range runs {
			if r := &runs[i]; apps[r.App] && o.lines.wants(r) {
				seen[r.ID] = o.isDone(r)
			}
		}
	}
	o.seen = seen
	o.lines.forget(now.Add(-2 * otherKept))
	return otherEvery, nil
}

// isDone says the line of an end, if it is new and this node has not stored it, when it is seen for
// the second time: the node that stores it says it right after, and that may be this one.
func (o *otherLines) isDone(r *store.Run) bool {
	done, again := o.seen[r.ID]
	if done || r.Ended.Before(o.since) || o.Clock.Now().Sub(r.Ended) > otherKept {
		return true
	}
	if again && !o.lines.isOwn(r.ID) {
		o.say(r, &store.Job{Name: r.JobName, Key: r.JobKey})
	}
	return again
}

// note has the ends noted that this node stores, or no longer.
func (l *endLines) note(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.own = nil; on {
		l.own = map[int64]time.Time{}
	}
}

// stored notes that this node has stored an end.
func (l *endLines) stored(run int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.own != nil {
		l.own[run] = time.Now()
	}
}

// isOwn reports whether this node has stored an end.
func (l *endLines) isOwn(run int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, own := l.own[run]
	return own
}

// forget forgets what this node has stored before a time.
func (l *endLines) forget(before time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.own, func(_ int64, at time.Time) bool { return at.Before(before) })
}
