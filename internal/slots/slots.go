package wire

// How many large bodies there are at a time, and whose.

import (
	"context"
	"slices"
	"sync"
	"time"
)

// slotPatience is how long a request waits for a slot: Java peers wait for 3 s.
const slotPatience = 2 * time.Second

// slots are the places for the large bodies of one kind of request. A request has one
// from before its body is read until it is served, for so long is the body in memory.
// They are shared out: one caller has a quarter of them at most, and those who have shown
// no token of an app of their own have half of them together. Whoever waits for one is
// served before those who have more of them. It is safe for concurrent use.
type slots struct {
	all, unproved, each int // bounds: of all, of those without a token of their own, of one

	mu           sync.Mutex
	held         int                  // guarded by mu: by all
	heldUnproved int                  // guarded by mu: by those without a token of their own
	holders      map[holder]*holdings // guarded by mu: those who have some or wait, and nobody else
	waited       int                  // guarded by mu: how many have had to wait so far
}

// holder is whom a slot counts for: the app whose token was shown, or else the app that
// was named, which proves nothing, but keeps those apart who name themselves honestly.
type holder struct{ scope, named string }

// holdings is what one holder has, and who of it waits, in order.
type holdings struct {
	held    int
	waiting []*turn
}

// turn is one request that waits.
type turn struct {
	number int
	come   chan struct{} // closed when the slot is there
}

func newSlots(n int) *slots {
	return &slots{all: n, unproved: max(1, n/2), each: max(1, n/4), holders: map[holder]*holdings{}}
}

// holderOf returns whom the slot of a caller counts for.
func holderOf(c Caller) holder {
	if c.Scope == "" {
		return holder{named: c.App}
	}
	return holder{scope: c.Scope}
}

// take gets a slot, and reports whether there was one in time.
func (s *slots) take(ctx context.Context, who holder) bool {
	mine := s.claim(who)
	if mine == nil {
		return true
	}
	timer := time.NewTimer(slotPatience)
	defer timer.Stop()
	select {
	case <-mine.come:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return !s.withdraw(who, mine)
}

// claim takes a slot if there is one, and returns nil then, or else whose turn it is to
// be.
func (s *slots) claim(who holder) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.holders[who]
	if has == nil {
		has = &holdings{}
		s.holders[who] = has
	}
	if s.free(who, has) {
		s.count(who, has, 1)
		return nil
	}
	s.waited++
	mine := &turn{number: s.waited, come: make(chan struct{})}
	has.waiting = append(has.waiting, mine)
	return mine
}

// withdraw ends the wait of a request, and reports whether it was still waiting. If not,
// it has its slot.
func (s *slots) withdraw(who holder, mine *turn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.holders[who]
	i := slices.Index(has.waiting, mine)
	if i < 0 {
		return false
	}
	has.waiting = slices.Delete(has.waiting, i, i+1)
	s.tidy(who, has)
	return true
}

// give gives a slot back, and hands it on if somebody waits who may have it. That is one
// at most: whoever else waits has waited for something that is used up again.
func (s *slots) give(who holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.holders[who]
	s.count(who, has, -1)
	s.tidy(who, has)
	if next, has := s.next(); has != nil {
		s.count(next, has, 1)
		close(has.waiting[0].come)
		has.waiting = slices.Delete(has.waiting, 0, 1)
	}
}

// next returns who of those that wait and may have a slot has the fewest, the one that
// has waited longest among equals. Its holdings are nil where there is nobody.
func (s *slots) next() (next holder, best *holdings) {
	for who, has := range s.holders {
		if len(has.waiting) == 0 || !s.free(who, has) {
			continue
		}
		if best == nil || has.held < best.held || has.held == best.held && has.waiting[0].number < best.waiting[0].number {
			next, best = who, has
		}
	}
	return next, best
}

// free reports whether there is a slot for a holder.
func (s *slots) free(who holder, has *holdings) bool {
	return s.held < s.all && has.held < s.each && (who.scope != "" || s.heldUnproved < s.unproved)
}

// count notes that a holder has got n slots.
func (s *slots) count(who holder, has *holdings, n int) {
	has.held += n
	s.held += n
	if who.scope == "" {
		s.heldUnproved += n
	}
}

// tidy forgets a holder that has nothing and waits for nothing.
func (s *slots) tidy(who holder, has *holdings) {
	if has.held == 0 && len(has.waiting) == 0 {
		delete(s.holders, who)
	}
}
