package xxljob

// Input: planned runs that are due, from the ring. Output: runs that are marked
// started in the store, to send.go; or refused ones, to finish.go. Nothing
// is sent before the store has acknowledged the start.

import (
	"context"
	"time"
)

// startDuty starts runs at their time.
func (s *starter) startDuty() duty {
	return duty{what: "routing runs", wakes: []<-chan struct{}{s.life.wakes.start}, once: s.startOnce}
}

// startOnce starts what is due and returns how long nothing more will be.
func (s *starter) startOnce(ctx context.Context) (time.Duration, error) {
	rushing := false
	defer func() { s.engine.rush.endIf(rushing) }()
	for ctx.Err() == nil {
		now := s.clock.now()
		if s.engine.takeNext(now) && !rushing {
			s.engine.rush.begin()
			rushing = true
		}
		some, locked, err := s.startPass(ctx)
		s.offerFreed()
		switch {
		case err != nil:
			return 0, err
		case locked:
			return min(lockedRetry, s.untilNext()), nil
		case some:
			continue
		case !s.leases.trusted(time.Now()):
			return s.untilNext(), nil // the lease loop pokes when the trust is back
		case !s.engine.room.isLeft():
			s.herds.first, s.herds.again = herd{}, herd{}
			return s.untilNext(), nil
		}
	}
	return s.untilNext(), nil
}

// startPass starts what is due, and behind it some of what goes apart. It reports whether
// there was something, and whether some rows have to be tried again after a pause.
func (s *starter) startPass(ctx context.Context) (some, locked bool, err error) {
	n, _, locked, err := s.startFrom(ctx, lot{kind: lotDue}, storeBatch)
	if err != nil {
		return n > 0, locked, err
	}
	some, stuck, err := s.startApart(ctx)
	return n > 0 || some, locked || stuck, err
}

// offerPause is how often the inbox is looked at for places that starts have given back: a
// start whose row is locked takes its place again and again.
const offerPause = 100 * time.Millisecond

// offerFreed has the inbox looked at again where starts that came to nothing have given
// places back for which runs wait there.
func (s *starter) offerFreed() {
	if now := time.Now(); now.Sub(s.offeredAt) >= offerPause && s.engine.room.takeFreed() {
		s.offeredAt = now
		s.life.wakes.inbox.pokeIf(s.engine.inboxFull.Load())
	}
}

// untilNext is the time until the ring has something due.
func (s *starter) untilNext() time.Duration {
	now := s.clock.now()
	wait := time.Duration(forever)
	if at, n, ok := s.engine.held.nextDue(); ok {
		wait = max(at.Sub(now)-s.engine.lead.forMany(n), time.Microsecond)
	}
	if s.engine.room.hasFreed() {
		wait = min(wait, offerPause)
	}
	return wait
}
