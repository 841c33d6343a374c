package dispatch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/compact"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/errs"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"golang.org/x/sync/errgroup"
)

// Runs that remote executors have accepted and that nobody has reported. Input: dispatched
// runs of this node's shards, whoever has sent them, and what is registered. Output: runs to
// ask about, to unreported_ask.go. Nothing ticks where there are none: the loop is woken when
// this node has sent one, or has taken shards.

// unreported looks after such runs. It belongs to its loop, but for the list.
type unreported struct {
	*core.Core
	book     *registry.Addresses
	finisher *finisher
	inDoubt  *inDoubt
	bounds   unreportedBounds
	list     unreportedList
	times    lookTimes
	rarely   loop.LogLimiter // what the log is not to be filled with
}

// lookTimes say when this node looks.
type lookTimes struct {
	next   time.Time     // the next look; zero where nothing is there to be looked for
	paused time.Duration // from the beginning of the last look to the next
	quiet  bool          // the last look has found nothing: whoever wakes the loop has news
}

func (u *unreported) duty() loop.Duty {
	return loop.Duty{What: "looking for runs that nobody reports", Wakes: []<-chan struct{}{u.Life.Wakes.Unreported}, Once: u.once}
}

// once looks, where it is time to, and has questions asked.
func (u *unreported) once(ctx context.Context) (time.Duration, error) {
	now := time.Now()
	if !u.Leases.Trusted(now) {
		return loop.Forever, nil // until it is again: see WakeLoops
	}
	if soon := now.Add(u.bounds.every / 2); u.times.next.IsZero() || u.times.quiet && u.times.next.After(soon) {
		u.times.next, u.times.quiet = soon, false // most are reported by then
	}
	if !now.Before(u.times.next) {
		more, err := u.look(ctx)
		if err != nil {
			return 0, err
		}
		u.times.next, u.times.quiet = u.lookAfter(more, now), !more
	}
	for key, runs := range u.list.take(time.Now()) {
		u.Life.Loops.Work.Run(func(ctx context.Context) {
			u.askAbout(ctx, key, runs)
			u.list.asked(key)
			u.Life.Wakes.Unreported.Poke()
		})
	}
	wait := u.list.wait(time.Now())
	if !u.times.next.IsZero() {
		wait = min(wait, max(time.Until(u.times.next), 0))
	}
	return wait, nil
}

// lookAfter is when to look again. Where there are other nodes they may have sent a run when
// this one had its shard, and not told the store before this one looked. A look that takes long
// is followed by a longer pause, but by no more than the evidence can do without.
func (u *unreported) lookAfter(more bool, began time.Time) time.Time {
	now := time.Now()
	pause, took := u.Cfg.Cluster.Dead, now.Sub(began)
	switch {
	case more:
		pause = max(u.bounds.every, min(20*took, u.Cfg.Cluster.Dead/3))
	case u.Leases.IsAlone():
		u.times.paused = 0
		return time.Time{}
	}
	u.times.paused = took + pause
	return now.Add(pause)
}

// gap is how long ago the last look at an app may be, as long as this one goes on, without
// counting as one that was missed.
func (u *unreported) gap(began time.Time) time.Duration {
	return min(3*u.bounds.every+u.times.paused+time.Since(began), u.Cfg.Cluster.Dead)
}

// look reads which runs there are, and who is at their addresses. It reports whether there are
// any.
func (u *unreported) look(ctx context.Context) (more bool, err error) {
	began := time.Now()
	runs, more, err := u.read(ctx)
	if err != nil {
		return more, err
	}
	owned := func(shard int) bool { _, is := u.Leases.Epoch(shard); return is }
	fresh := u.list.keep(runs, owned, time.Now(), u.Cfg.Cluster.Dead)
	keys := u.list.addresses()
	u.book.Memory.Liveness.Watch(keys)
	apps := map[string]bool{}
	for k := range keys {
		apps[k.App] = true
	}
	u.recall(fresh, u.lookAt(ctx, slices.Sorted(maps.Keys(apps)), began))
	u.hurry()
	return more || u.list.any(), nil
}

// recall has those addresses of runs that are new here asked too which are none of their apps'
// any more: their executors may have said good-bye before this node was there.
func (u *unreported) recall(fresh []store.Run, there map[string]registry.Answer) {
	listed := map[registry.SiteKey]bool{}
	for app, a := range there {
		for _, address := range a.Addrs {
			listed[registry.LivenessKey(app, address)] = true
		}
	}
	for _, r := range fresh {
		key := registry.LivenessKey(r.App, r.Address)
		if _, known := there[r.App]; known && !listed[key] {
			listed[key] = true // once for all of its runs
			u.book.Memory.MayBeThere(r.App, r.Address)
		}
	}
}

// lookAt takes in who is at the addresses of apps. Some are asked for at a time, so that a
// registry which does not answer for one app holds up few of the others. Where there is no
// answer it is as if nobody had looked.
func (u *unreported) lookAt(ctx context.Context, apps []string, began time.Time) map[string]registry.Answer {
	var mu sync.Mutex
	there := make(map[string]registry.Answer, len(apps)) // guarded by mu
	var g errgroup.Group
	g.SetLimit(lookWidth)
	for _, app := range apps {
		g.Go(func() error {
			a, failed := loop.Call(ctx, func(ctx context.Context) (registry.Answer, error) { return u.book.Ask(ctx, app) })
			mu.Lock()
			defer mu.Unlock()
			if failed != nil && ctx.Err() == nil && u.rarely.Allow("addresses: "+app) {
				u.Logger.Warn("xxljob: cannot tell whether the executors of runs are still there", "app", app, "error", failed)
			}
			if failed == nil && a.Stale == nil {
				u.book.Memory.Liveness.Look(app, a, time.Now(), u.gap(began))
				there[app] = a
			}
			return nil
		})
	}
	_ = g.Wait() // they return none
	return there
}

// lookWidth is how many apps' addresses are asked for at once.
const lookWidth = 16

// read returns the dispatched runs of this node's shards that are old enough to be looked after,
// as far as there is room for them. More says that there are any at all.
func (u *unreported) read(ctx context.Context) (runs map[int64]store.Run, more bool, err error) {
	share, shards := fairShare{most: unreportedMost}, u.Leases.Owned()
	for after := int64(0); len(shards) > 0; {
		page, err := loop.Call(ctx, func(ctx context.Context) ([]store.Run, error) {
			return u.Store.DispatchedRuns(ctx, shards, after, loop.StoreBatch)
		})
		if err != nil {
			return nil, false, err
		}
		young := u.Clock.Now().Add(-u.bounds.every / 3)
		for _, r := range page {
			if store.IsRemote(r.Address) && r.Started.Before(young) {
				share.add(compact.Slimmed(r))
			}
		}
		more = more || len(page) > 0
		if len(page) < loop.StoreBatch {
			break
		}
		after = page[len(page)-1].ID
	}
	if share.left > 0 && u.rarely.Allow("too many") {
		u.Logger.Warn("xxljob: executors have accepted more runs than this node looks after at a time; the youngest at the busiest addresses have to wait for the others to end",
			"left", share.left, "most", unreportedMost)
	}
	return share.runs(), more, nil
}

// hurry has those runs asked about now whose executor is not where it was.
func (u *unreported) hurry() {
	now := time.Now()
	for _, o := range u.list.idle() {
		s := u.book.Memory.Liveness.Of(registry.LivenessKey(o.run.App, o.run.Address), o.run.BootID, now)
		switch {
		case !s.Manual && s.Silent >= u.Cfg.Cluster.Dead:
			u.list.at(o, core.Earlier(o.next, now))
		case !s.Listed || s.Replaced > 0 || s.Several:
			u.list.at(o, core.Earlier(o.next, now.Add(u.bounds.every)))
		}
	}
}

// The runs that this node looks after: in the same list as runs in doubt, so that an address is
// asked about them by one at a time.

// unreportedMost is how many of them a node looks after at a time.
const unreportedMost = 50_000

// unreportedTurn is how many runs of one address are looked at in one go: those of one job share
// a question where the executor answers about jobs.
const unreportedTurn = 64

// unreportedList are those runs. It is safe for concurrent use.
type unreportedList struct{ askedRuns }

// keep has these runs looked after, and returns those that are new here. They are asked about
// now, or later where their executor is one of ours, which says more by itself. A run whose
// shard is another node's by now is kept for a while: where shards go to and fro, each node
// would otherwise begin to look anew each time, and none would look for long enough.
func (l *unreportedList) keep(runs map[int64]store.Run, owned func(shard int) bool, now time.Time, dead time.Duration) (fresh []store.Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs == nil {
		l.runs, l.asking, l.turn = map[int64]*askedRun{}, map[registry.SiteKey]bool{}, unreportedTurn
	}
	for id, o := range l.runs {
		r, is := runs[id]
		switch {
		case is && r.Token == o.run.Token && r.Owner == o.run.Owner && r.Address == o.run.Address:
			if !o.left.IsZero() {
				o.left, o.next = time.Time{}, now
			}
		case !is && !owned(o.run.Shard) && (o.left.IsZero() || now.Sub(o.left) < leftFor*dead):
			errs.SetDefault(&o.left, now)
			o.next = o.left.Add(leftFor * dead)
		default:
			delete(l.runs, id)
		}
	}
	for id, r := range runs {
		if l.runs[id] == nil {
			o := &askedRun{run: r, since: now, next: now, known: now}
			if r.BootID != "" {
				o.next = now.Add(dead)
			}
			l.runs[id] = o
			fresh = append(fresh, r)
		}
	}
	return fresh
}

// leftFor is for how many times Cluster.Dead a run is kept whose shard is another node's.
const leftFor = 3

// any reports whether there are runs at all, those included whose shards are other nodes'.
func (l *unreportedList) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.runs) > 0
}

// ofAddress are all runs of an address that are this node's to look after. It is for whoever
// asks about the address.
func (l *unreportedList) ofAddress(k registry.SiteKey) (list []*askedRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.runs {
		if o.left.IsZero() && o.run.App == k.App && o.run.Address == k.Address {
			list = append(list, o)
		}
	}
	return list
}

// addresses are those of the runs, as room registry knows them, with the processes that have the
// runs.
func (l *unreportedList) addresses() map[registry.SiteKey]map[string]bool {
	l.mu.Lock()
	spelled := make(map[registry.SiteKey]map[string]bool)
	for _, o := range l.runs {
		k := registry.SiteKey{App: o.run.App, Address: o.run.Address}
		if spelled[k] == nil {
			spelled[k] = map[string]bool{}
		}
		if o.run.BootID != "" {
			spelled[k][o.run.BootID] = true
		}
	}
	l.mu.Unlock()
	keys := make(map[registry.SiteKey]map[string]bool, len(spelled))
	for k, boots := range spelled {
		key := registry.LivenessKey(k.App, k.Address)
		if keys[key] == nil {
			keys[key] = boots
			continue
		}
		maps.Copy(keys[key], boots)
	}
	return keys
}

// idle are the runs of addresses that are not being asked.
func (l *unreportedList) idle() []*askedRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]*askedRun, 0, len(l.runs))
	for _, o := range l.runs {
		if o.left.IsZero() && !l.asking[registry.SiteKey{App: o.run.App, Address: o.run.Address}] {
			list = append(list, o)
		}
	}
	return list
}

// isOf notes which process has a run, by its own words.
func (l *unreportedList) isOf(o *askedRun, boot string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o.run.BootID = boot
}

// at sets when a run is to be asked about again.
func (l *unreportedList) at(o *askedRun, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o.next = next
}

// Which of very many accepted runs a node looks after: fair shares of the addresses.

// fairShare keeps the oldest runs of each address, at most so many in all: an address that has
// very many leaves room for those of the others. Runs are added in order of their ids.
type fairShare struct {
	most int
	of   map[registry.SiteKey][]store.Run
	n    int // in of
	cap  int // of each address; zero for none yet
	left int // were left out
}

func (f *fairShare) add(r store.Run) {
	if f.of == nil {
		f.of = map[registry.SiteKey][]store.Run{}
	}
	k := registry.SiteKey{App: r.App, Address: r.Address}
	if f.cap > 0 && len(f.of[k]) >= f.cap {
		f.left++
		return
	}
	f.of[k] = append(f.of[k], r)
	if f.n++; f.n > f.most {
		f.shrink()
	}
}

// shrink finds the greatest share with which all have room, and some to spare, and takes the
// youngest from those that have more.
func (f *fairShare) shrink() {
	sizes := make([]int, 0, len(f.of))
	for _, list := range f.of {
		sizes = append(sizes, len(list))
	}
	slices.Sort(sizes)
	room := f.most - f.most/10
	f.cap = max(room/len(sizes), 1)
	for i, n := range sizes { // those that have less leave their room to the others
		if n > f.cap {
			break
		}
		if room -= n; i+1 < len(sizes) {
			f.cap = max(room/(len(sizes)-i-1), 1)
		}
	}
	for k, list := range f.of {
		if over := len(list) - f.cap; over > 0 {
			f.of[k] = slices.Clip(list[:f.cap])
			f.n -= over
			f.left += over
		}
	}
}

// runs are those that were kept.
func (f *fairShare) runs() map[int64]store.Run {
	runs := make(map[int64]store.Run, f.n)
	for _, list := range f.of {
		for _, r := range list {
			runs[r.ID] = r
		}
	}
	return runs
}
