package node

import (
	"context"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
)

// Whether the store's clock is trusted. Input: what beats have shown of it, and the mark that the
// store keeps. Output: a trouble while it is not trusted, and the mark, which the node that owns the first
// shard sets.

// clockEvery is how often the mark is read and set, and how often what waits for a clock that is
// trusted looks again.
const clockEvery = time.Minute

// clockDuty moves the mark on, and tells of a clock that is doubted.
func clockDuty(s *core.Core) loop.Duty {
	marker, keeps := core.Given(s.Store).(store.ClockMarker)
	if keeps {
		s.Clock.KeepsMark()
	}
	var moved time.Time // when the mark was last looked at
	return loop.Duty{What: "watching the store's clock", Aside: true, Wakes: []<-chan struct{}{s.Clock.Stepped}, Once: func(ctx context.Context) (time.Duration, error) {
		if keeps && !s.Leases.HasLooked() {
			return min(s.Cfg.Cluster.LeaseTTL/5, time.Second), nil
		}
		if now := time.Now(); keeps && now.Sub(moved) >= clockEvery-time.Second {
			moved = now
			if err := moveMark(ctx, s, marker); err != nil {
				return 0, err
			}
		}
		doubted := tellOfClock(s)
		if _, held := s.Clock.HasStepped(); held {
			return time.Second, nil // a store without a clock of its own has no beats that show the end
		}
		if doubted || keeps {
			return clockEvery, nil
		}
		return loop.Forever, nil
	}}
}

// moveMark reads the mark and, where this node is the one to do so and trusts the clock, sets it.
func moveMark(ctx context.Context, s *core.Core, m store.ClockMarker) error {
	timed := core.Metered(s.Store, "ClockMark")
	mark, err := loop.Call(ctx, m.ClockMark)
	if timed.End(&err); err != nil {
		return err
	}
	s.Clock.KnowMark(mark)
	_, mine := s.Leases.Epoch(0)
	why, _ := s.Clock.Doubt()
	if !mine || why != "" || !s.Leases.Trusted(time.Now()) {
		return nil
	}
	now := s.Clock.Now()
	timed = core.Metered(s.Store, "SetClockMark")
	err = loop.Do(ctx, func(ctx context.Context) error { return m.SetClockMark(ctx, now) })
	timed.End(&err)
	return err
}

func clockRemedy(seen store.Seen) string {
	if seen.What == store.SeenClockJumped {
		return "look after the clock of the store's host (NTP, chrony); where it is right, restart the schedulers: they believe it an hour later"
	}
	return "look after the clock of the store's host (NTP, chrony); what waits goes on by itself"
}

// tellOfClock says whether the clock is doubted.
func tellOfClock(s *core.Core) bool {
	seen, since := s.Clock.Doubted()
	if seen.What == "" {
		s.Troubles.Set(store.TroubleClock, s.Clock.Now())
		return false
	}
	s.Troubles.Set(store.TroubleClock, s.Clock.Now(), store.Trouble{
		Since:  since,
		Seen:   seen,
		Remedy: clockRemedy(seen),
	})
	return true
}
