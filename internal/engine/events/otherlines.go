package events

import (
	"context"
	"maps"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Lines of ends that another node has stored, of the apps that are attached here. In: runs that have
// gone wrong lately, asked for a few times a minute while others are there; where none has, none is
// read. Out: their lines, a line a job and minute as for ends of this node.

const (
	otherEvery = 10 * time.Second
	// otherRuns is how many runs the store looks at for a page, of all apps, those that were planned last
	// first: of what has failed, and of all else. It answers with those of them that
	// are news; behind the last of these there may be more.
	otherRuns = 500
	// otherPages is how many pages are read at once, and otherSoon when it goes on behind them.
	otherPages = 10
	otherSoon  = time.Second
	// otherOverlap is for how long an end may be seen late: runs are listed by when they were planned.
	otherOverlap = time.Minute
	// otherKept is for how long, and otherLooks how often at least, others are read of that have gone: what
	// ended just before is looked at twice.
	otherKept  = time.Minute
	otherLooks = 3
)

// otherStates are what is looked for, apart. Of what was discarded or killed only a further attempt has a
// line: however much else there is, it keeps nothing that has failed waiting.
func otherStates() [][]store.State {
	return [][]store.State{{store.StateFailed, store.StateTimedOut, store.StateLost, store.StateRefused}, {store.StateSkipped, store.StateDiscarded, store.StateKilled}}
}

// otherLines belongs to its duty, but for what endLines guards.
type otherLines struct {
	*Bus
	wake   loop.Wake          // another node has come or gone
	others time.Time          // when another node was there last
	looks  int                // that have read all since
	since  time.Time          // by the store's clock: what ended before is not news
	seen   map[int64]otherEnd // news of the apps that are attached here
	look   *otherLook         // that is under way, over several rounds
}

// otherEnd is an end that was seen, and whether it has been dealt with.
type otherEnd struct {
	at   time.Time
	done bool
}

// otherLook is a look at all that is news.
type otherLook struct {
	began  time.Time
	at     time.Time       // that, by the store's clock
	states [][]store.State // that are left
	before int64           // the page of the first of them
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
		o.since, o.seen = o.Clock.Now(), map[int64]otherEnd{}
	case !there && (o.others.IsZero() || o.looks >= otherLooks && now.Sub(o.others) > otherKept):
		o.others, o.seen, o.look = time.Time{}, nil, nil
		o.lines.note(false)
		return loop.Forever, nil
	}
	if there {
		o.others, o.looks = now, 0
	}
	apps := map[string]bool{}
	for _, at := range o.Leases.Local() {
		apps[at.App] = true
	}
	if len(apps) == 0 {
		o.looks++
		return otherEvery, nil
	}
	if o.look == nil {
		o.look = &otherLook{began: now, at: o.Clock.Now(), states: otherStates()}
	}
	if more, err := o.read(ctx, apps); more || err != nil {
		return otherSoon, err
	}
	if to := o.look.at.Add(-otherOverlap); to.After(o.since) {
		o.since = to
	}
	maps.DeleteFunc(o.seen, func(_ int64, x otherEnd) bool { return x.at.Before(o.since) })
	o.lines.forget(o.look.began.Add(-2 * otherOverlap))
	o.look = nil
	o.looks++
	return otherEvery, nil
}

// read reads on, as far as it does at once, and reports whether there is more.
func (o *otherLines) read(ctx context.Context, apps map[string]bool) (more bool, err error) {
	for l, pages := o.look, otherPages; len(l.states) > 0; pages-- {
		if pages == 0 {
			return true, nil
		}
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
			return o.Store.Runs(ctx, store.RunFilter{States: l.states[0], EndedSince: o.since, Before: l.before, Limit: otherRuns})
		})
		if err != nil {
			return false, err
		}
		news := false
		for i := range runs {
			r := &runs[i]
			if r.Ended.Before(o.since) {
				continue // the store knows no EndedSince
			}
			l.before, news = r.ID, true
			if apps[r.App] && o.lines.wants(r) {
				o.take(r)
			}
		}
		if !news {
			l.states, l.before = l.states[1:], 0
		}
	}
	return false, nil
}

// take says the line of an end, if it is news and this node has not stored it, when it is seen for the
// second time or was a while ago: the node that stores it says it right after, and that may be this
// one.
func (o *otherLines) take(r *store.Run) {
	x, again := o.seen[r.ID]
	if x.done {
		return
	}
	x = otherEnd{at: r.Ended, done: again || o.Clock.Now().Sub(r.Ended) >= otherEvery}
	if o.seen[r.ID] = x; x.done && !o.lines.isOwn(r.ID) {
		o.say(r, &store.Job{Name: r.JobName, Key: r.JobKey})
	}
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
