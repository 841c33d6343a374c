package dispatch

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/internal/loop"
)

// The start loop. Input: planned runs that are due, from the queue. Output: runs that the
// store has marked started, to launch.go; or refused ones, to finish.go. Nothing is sent
// before the store has acknowledged the start. What the loop does with a batch is in
// collect.go, startbatch.go and reread.go; what goes by itself is in singly.go.

// starter starts what is due: it is the start loop.
type starter struct {
	*core.Core
	queue       *queue.Queue
	router      *router.Router
	aside       *router.ParkedLookups
	book        *registry.Addresses
	fitness     *lease.Fitness
	unconfirmed *unconfirmed
	launcher    *launcher
	inDoubt     *inDoubt
	watcher     *watcher
	finisher    *finisher

	buffers   startBuffers
	starting  loop.Backoff                      // of Store.Start
	singly    struct{ first, again batchSizer } // see startSingly
	offeredAt time.Time                         // see offerFreed
}

// duty starts runs at their time.
func (s *starter) duty() loop.Duty {
	return loop.Duty{What: "routing runs", Wakes: []<-chan struct{}{s.Life.Wakes.Start}, Once: s.startOnce}
}

// startOnce starts what is due and returns how long nothing more will be.
func (s *starter) startOnce(ctx context.Context) (time.Duration, error) {
	rushing := false
	defer func() { s.queue.Rush.EndIf(rushing) }()
	for ctx.Err() == nil {
		now := s.Clock.Now()
		if s.queue.TakeNext(now) && !rushing {
			s.queue.Rush.Begin()
			rushing = true
		}
		some, locked, err := s.startPass(ctx)
		s.offerFreed()
		switch {
		case err != nil:
			return 0, err
		case locked:
			return min(core.LockedPause, s.untilNext()), nil
		case some:
			continue
		case !s.Leases.Trusted(time.Now()):
			return s.untilNext(), nil // the lease loop pokes when the trust is back
		case !s.queue.Room.IsLeft():
			s.singly.first, s.singly.again = batchSizer{}, batchSizer{}
			return s.untilNext(), nil
		}
	}
	return s.untilNext(), nil
}

// startPass starts what is due, and behind it some of what is started singly. It reports whether
// there was something, and whether some rows have to be tried again after a pause.
func (s *starter) startPass(ctx context.Context) (some, locked bool, err error) {
	n, _, locked, err := s.startFrom(ctx, queue.WaitKey{Kind: queue.LotDue}, loop.StoreBatch)
	if err != nil {
		return n > 0, locked, err
	}
	some, stuck, err := s.startSingly(ctx)
	return n > 0 || some, locked || stuck, err
}

// startFrom starts up to most entries from a lot, and returns how many the store was asked
// about, and how long that took.
func (s *starter) startFrom(ctx context.Context, from queue.WaitKey, most int) (n int, took time.Duration, locked bool, err error) {
	if from.Kind != queue.LotDue && !s.queue.Room.Waits(from) {
		return 0, 0, false, nil
	}
	if ctx.Err() != nil || !s.Leases.Trusted(time.Now()) {
		return 0, 0, false, nil
	}
	collecting := time.Now()
	batch, err := s.collect(ctx, from, most)
	if err != nil || len(batch) == 0 {
		return 0, 0, false, err
	}
	began := time.Now()
	if locked, err = s.startBatch(ctx, batch, from.Kind == queue.LotDue); from.Kind == queue.LotDue {
		s.queue.Lead.Started(len(batch), time.Since(collecting))
	}
	return len(batch), time.Since(began), locked, err
}

// offerPause is how often the inbox is looked at for places that starts have given back: a
// start whose row is locked takes its place again and again.
const offerPause = 100 * time.Millisecond

// offerFreed has the inbox looked at again where starts that came to nothing have given
// places back for which runs wait there.
func (s *starter) offerFreed() {
	if now := time.Now(); now.Sub(s.offeredAt) >= offerPause && s.queue.Room.TakeFreed() {
		s.offeredAt = now
		s.Life.Wakes.Inbox.PokeIf(s.queue.InboxFull.Load())
	}
}

// untilNext is the time until the ring has something due.
func (s *starter) untilNext() time.Duration {
	now := s.Clock.Now()
	wait := time.Duration(loop.Forever)
	if at, n, ok := s.queue.Held.NextDue(); ok {
		wait = max(at.Sub(now)-s.queue.Lead.ForMany(n), time.Microsecond)
	}
	if s.queue.Room.HasFreed() {
		wait = min(wait, offerPause)
	}
	return wait
}
