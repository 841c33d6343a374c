package xxljob

// Runs that remote executors have accepted and that nobody has reported. Input: dispatched
// runs of this node's shards, whoever has sent them, and what is registered. Output: runs to
// ask about, to unreportedask.go. Nothing ticks where there are none: the loop is woken when
// this node has sent one, or has taken shards.

import (
	"context"
	"time"
)

// unreported looks for such runs. It belongs to its loop, but for the list.
type unreported struct {
	*shared
	book  *addressBook
	asker *unreportedAsker
	list  *unreportedList
	next  time.Time // the next look; zero where nothing is there to be looked for
	quiet bool      // the last look has found nothing: whoever wakes the loop has news

	rarely rarely // what the log is not to be filled with
}

func newUnreported(s *shared, book *addressBook, finisher *finisher, inDoubt *inDoubt) *unreported {
	list := &unreportedList{}
	return &unreported{shared: s, book: book, list: list, asker: &unreportedAsker{
		shared: s, bounds: newUnreportedBounds(&s.cfg.Cluster), book: book, finisher: finisher, inDoubt: inDoubt, list: list,
	}}
}

func (u *unreported) duty() duty {
	return duty{what: "looking for runs that nobody reports", wakes: []<-chan struct{}{u.life.wakes.unreported}, once: u.once}
}

// once looks, where it is time to, and has questions asked.
func (u *unreported) once(ctx context.Context) (time.Duration, error) {
	now := time.Now()
	if !u.leases.trusted(now) {
		return forever, nil // until it is again: see wakeLoops
	}
	if soon := now.Add(u.asker.bounds.every / 2); u.next.IsZero() || u.quiet && u.next.After(soon) {
		u.next, u.quiet = soon, false // most are reported by then
	}
	if !now.Before(u.next) {
		more, err := u.look(ctx)
		if err != nil {
			return 0, err
		}
		u.next, u.quiet = u.lookAfter(more, now), !more
	}
	for key, runs := range u.list.take(time.Now()) {
		u.life.loops.work.run(func(ctx context.Context) {
			u.asker.askAbout(ctx, runs)
			u.list.asked(key)
			u.life.wakes.unreported.poke()
		})
	}
	wait := u.list.wait(time.Now())
	if !u.next.IsZero() {
		wait = min(wait, max(time.Until(u.next), 0))
	}
	return wait, nil
}

// lookAfter is when to look again. Where there are other nodes they may have sent a run when
// this one had its shard, and not told the store before this one looked.
func (u *unreported) lookAfter(more bool, began time.Time) time.Time {
	now := time.Now()
	switch {
	case more:
		return now.Add(max(u.asker.bounds.every, 20*now.Sub(began))) // however many there are
	case u.leases.isAlone():
		return time.Time{}
	}
	return now.Add(u.cfg.Cluster.Dead)
}

// look reads which runs there are, and who is at their addresses. It reports whether there are
// any.
func (u *unreported) look(ctx context.Context) (more bool, err error) {
	runs, more, err := u.read(ctx)
	if err != nil {
		return more, err
	}
	now := time.Now()
	u.list.keep(runs, now, now.Add(u.cfg.Cluster.Dead))
	keys := u.list.addresses()
	u.book.memory.presences.watch(keys)
	apps := map[string]bool{}
	for k := range keys {
		apps[k.app] = true
	}
	for app := range apps {
		a, failed := call(ctx, func(ctx context.Context) (answer, error) { return u.book.ask(ctx, app) })
		if failed != nil && ctx.Err() == nil && u.rarely.lets("addresses: "+app) {
			u.log.Warn("xxljob: cannot tell whether the executors of runs are still there", "app", app, "error", failed)
		}
		if failed != nil || a.stale != nil {
			continue // it is as if nobody had looked, and the other apps do not wait for it
		}
		u.book.memory.presences.look(app, a, time.Now(), 3*u.asker.bounds.every)
	}
	u.hurry()
	return more, nil
}

// read returns the dispatched runs of this node's shards that are old enough to be looked
// after, the oldest where there are too many. More says that there are any at all.
func (u *unreported) read(ctx context.Context) (runs map[int64]Run, more bool, err error) {
	runs, shards := map[int64]Run{}, u.leases.owned()
	for after := int64(0); len(shards) > 0 && len(runs) < unreportedMost; {
		page, err := call(ctx, func(ctx context.Context) ([]Run, error) {
			return u.store.DispatchedRuns(ctx, shards, after, storeBatch)
		})
		if err != nil {
			return nil, false, err
		}
		young := u.clock.now().Add(-u.asker.bounds.every / 3)
		for _, r := range page {
			if isRemote(r.Address) && r.Started.Before(young) {
				runs[r.ID] = slimmed(r)
			}
		}
		more = more || len(page) > 0
		if len(page) < storeBatch {
			break
		}
		after = page[len(page)-1].ID
	}
	return runs, more, nil
}

// hurry has those runs asked about now whose executor is not where it was.
func (u *unreported) hurry() {
	now := time.Now()
	for _, o := range u.list.idle() {
		s := u.book.memory.presences.of(presenceKey(o.run.App, o.run.Address), o.run.BootID, now)
		switch {
		case !s.manual && s.silent >= u.cfg.Cluster.Dead:
			u.list.at(o, earlierOf(o.next, now))
		case !s.listed || s.replaced > 0 || s.several:
			u.list.at(o, earlierOf(o.next, now.Add(u.asker.bounds.every)))
		}
	}
}

func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
