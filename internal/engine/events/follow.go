package events

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// What other nodes do with runs of the apps that are attached here. In: the runs in the store, read
// once a second while somebody here wants to hear of runs and other nodes are there, or were a moment
// ago: what they did as they stopped is to be told of too. Out: that they were started, have ended, or are records, to the Bus, as far as this node has not told of that.

const (
	followEvery = time.Second
	// followOverlap is for how long runs are read again behind which others were inserted: ids are
	// given before they are committed.
	followOverlap = 10 * time.Second
	// followWhole is how often all runs that have not ended are read: one that was kept apart has an
	// id of long ago.
	followWhole = time.Minute
	// followKept is for how long, and how often at least, others are followed that have gone. A thing is
	// told when it is seen for the second time.
	followKept   = time.Minute
	followRounds = 3
)

// follower has the runs of the apps that are attached here. All but what mu guards belongs to its loop.
type follower struct {
	*Bus
	wake   loop.Wake // somebody has subscribed, or another node has come or gone
	others time.Time // when another node was there last; zero while nobody is followed
	rounds int       // that have read all since

	mu   sync.Mutex
	apps map[string]*followedApp // guarded by mu; nil while nobody follows
	runs map[int64]*followedRun  // guarded by mu
}

// followedApp is how far the runs of an app were read.
type followedApp struct {
	low, high int64 // all up to low were read for longer than the overlap
	mark      int64 // what high was at the time of since
	since     time.Time
	whole     time.Time
}

// followedRun is what is known of a run. A thing is told when it is seen for the second time: the node
// that does it tells of it right after the write, and that may be this one.
type followedRun struct {
	app                   string
	due                   time.Time
	sawStart, toldStart   bool
	sawEnd, toldEnd, over bool
}

// did notes that this node tells of a run itself, and reports whether it has ended here without
// anybody here having heard that another node has started it.
func (f *follower) did(kind core.EventKind, r *store.Run) (unstarted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.apps[r.App] == nil {
		return false
	}
	run := f.run(r)
	unstarted = kind == core.EventRunEnded && !run.toldStart && !r.Started.IsZero()
	run.toldStart, run.toldEnd = true, run.toldEnd || kind != core.EventRunStarted
	return unstarted
}

// run is what is known of a run. It is called with mu held.
func (f *follower) run(r *store.Run) *followedRun {
	run := f.runs[r.ID]
	if run == nil {
		run = &followedRun{app: r.App, due: r.Scheduled}
		f.runs[r.ID] = run
	}
	return run
}

// wanted reports whether anybody here wants to hear of what others do, who are there or have not been
// gone for long.
func (f *follower) wanted() bool {
	switch {
	case !f.wants(core.EventRunStarted) && !f.wants(core.EventRunEnded) && !f.wants(core.EventRunSkipped):
		return false
	case f.Leases.HasOthers():
		f.others, f.rounds = time.Now(), 0
		return true
	}
	return !f.others.IsZero() && (f.rounds < followRounds || time.Since(f.others) <= followKept)
}

// FollowDuty reads what other nodes do with runs of the apps that are attached here.
func (t *Bus) FollowDuty() loop.Duty {
	return loop.Duty{What: "following runs for hooks and events", Aside: true, Wakes: []<-chan struct{}{t.follow.wake}, Once: t.follow.once}
}

// Look has it looked whether other nodes are there.
func (t *Bus) Look() {
	t.follow.wake.Poke()
	t.other.wake.Poke()
}

func (f *follower) once(ctx context.Context) (time.Duration, error) {
	if !f.wanted() {
		f.mu.Lock()
		f.apps, f.runs = nil, nil
		f.mu.Unlock()
		f.others = time.Time{}
		return loop.Forever, nil
	}
	for _, app := range f.attached() {
		if err := f.read(ctx, app); err != nil {
			return 0, err
		}
	}
	if err := f.look(ctx); err != nil {
		return 0, err
	}
	f.rounds++
	return followEvery, nil
}

// attached are the apps that are attached here. Of one that is new nobody is told what was before.
func (f *follower) attached() []string {
	apps := map[string]bool{}
	for _, a := range f.Leases.Local() {
		apps[a.App] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.apps == nil {
		f.apps, f.runs = map[string]*followedApp{}, map[int64]*followedRun{}
	}
	for app := range apps {
		if f.apps[app] == nil {
			f.apps[app] = &followedApp{low: -1}
		}
	}
	maps.DeleteFunc(f.apps, func(app string, _ *followedApp) bool { return !apps[app] })
	maps.DeleteFunc(f.runs, func(id int64, r *followedRun) bool {
		app := f.apps[r.app]
		return app == nil || (r.over || r.toldEnd) && id <= app.low
	})
	return slices.Sorted(maps.Keys(apps))
}

// read takes in the runs of an app that are new, and now and then all that have not ended.
func (f *follower) read(ctx context.Context, app string) error {
	f.mu.Lock()
	a := f.apps[app]
	f.mu.Unlock()
	now := time.Now()
	if a.low < 0 {
		newest, err := f.page(ctx, store.RunFilter{App: app, Limit: 1})
		if err != nil {
			return err
		}
		a.low = 0
		if len(newest) > 0 {
			a.low = newest[0].ID
		}
		a.mark, a.high, a.since = a.low, a.low, now
	}
	if now.Sub(a.whole) >= followWhole {
		first := a.whole.IsZero()
		if err := f.pages(ctx, store.RunFilter{App: app, States: []store.State{store.StatePlanned, store.StateStarted, store.StateDispatched}}, 0, first); err != nil {
			return err
		}
		a.whole = now
	}
	high := a.high
	if err := f.pages(ctx, store.RunFilter{App: app}, a.low, false); err != nil {
		return err
	}
	f.mu.Lock()
	for id, r := range f.runs {
		if r.app == app {
			high = max(high, id)
		}
	}
	f.mu.Unlock()
	a.high = high
	if now.Sub(a.since) > followOverlap {
		a.low, a.mark, a.since = a.mark, a.high, now
	}
	return nil
}

func (f *follower) page(ctx context.Context, q store.RunFilter) ([]store.Run, error) {
	return loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return f.Store.Runs(ctx, q) })
}

// pages takes in runs with greater ids than after. At first those that are under way were started
// before anybody here followed.
func (f *follower) pages(ctx context.Context, q store.RunFilter, after int64, first bool) error {
	for q.Limit = loop.StoreBatch; ; {
		list, err := f.page(ctx, q)
		if err != nil {
			return err
		}
		f.mu.Lock()
		for i := range list {
			if q.Before = list[i].ID; q.Before <= after {
				break
			}
			run := f.run(&list[i])
			run.toldStart = run.toldStart || first && list[i].State != store.StatePlanned
		}
		f.mu.Unlock()
		if len(list) < q.Limit || q.Before <= after {
			return nil
		}
	}
}

// look reads the runs of which something is to be told, and tells.
func (f *follower) look(ctx context.Context) error {
	now := f.Clock.Now()
	var ids []int64
	f.mu.Lock()
	for id, r := range f.runs {
		if !r.over && !r.toldEnd && !r.due.After(now) {
			ids = append(ids, id)
		}
	}
	f.mu.Unlock()
	slices.Sort(ids)
	for batch := range slices.Chunk(ids, loop.StoreBatch) {
		runs, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) { return f.Store.RunsByID(ctx, batch) })
		if err != nil {
			return err
		}
		there := make(map[int64]*store.Run, len(runs))
		for i := range runs {
			there[runs[i].ID] = &runs[i]
		}
		for _, id := range batch {
			for _, kind := range f.news(id, there[id]) {
				if f.wants(kind) {
					f.addRun(kind, *there[id], nil, false)
				}
			}
		}
	}
	return nil
}

// news is what is to be told of a run as it is, nil for one that is not there any more.
func (f *follower) news(id int64, r *store.Run) (kinds []core.EventKind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	run := f.runs[id]
	if run == nil || r == nil || r.State == store.StateCancelled || r.Reason == store.ReasonEdit {
		if run != nil {
			run.over = true
		}
		return nil
	}
	if run.sawStart && !run.toldStart {
		run.toldStart = true
		kinds = append(kinds, core.EventRunStarted)
	}
	run.sawStart = r.State != store.StatePlanned && !r.Started.IsZero() && r.State != store.StateSkipped
	if run.sawEnd && !run.toldEnd {
		run.toldEnd, run.over = true, true
		kind := core.EventRunEnded
		if r.State == store.StateSkipped {
			kind = core.EventRunSkipped
		}
		return append(kinds, kind)
	}
	run.sawEnd = r.State.Ended()
	return kinds
}
