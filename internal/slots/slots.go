// Package slots bounds how many large bodies of requests there are in memory at a time, and whose
// they are (Slots), how often somebody is answered (Pacer), who guesses tokens too (Refusals), and how
// often the log says a thing (Rarely).
package slots

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Patience is how long a request waits for a slot: Java peers wait for 3 s.
const Patience = 2 * time.Second

// Slots are the places for the large bodies of one kind of request. A request has one
// from before its body is read until it is served, for so long is the body in memory.
// They are shared out: one caller has a quarter of them at most, and those who have not proved
// who they are have half of them together. Whoever waits for one is served before those who
// have more of them. It is safe for concurrent use.
type Slots struct {
	all, unproved, each int // bounds: of all, of those who have proved nothing, of one

	mu           sync.Mutex
	held         int                  // guarded by mu: by all
	heldUnproved int                  // guarded by mu: by those who have proved nothing
	holders      map[Holder]*holdings // guarded by mu: those who have some or wait, and nobody else
	waited       int                  // guarded by mu: how many have had to wait so far
}

// Holder is whom a slot counts for. Proved is who it was proved to be: an app by a token of its
// own, or a user. Where it is empty, Named keeps those apart who say honestly who they are, or who
// come from different networks.
type Holder struct{ Proved, Named string }

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

// New returns n slots.
func New(n int) *Slots {
	return &Slots{all: n, unproved: max(1, n/2), each: max(1, n/4), holders: map[Holder]*holdings{}}
}

// Take gets a slot, and reports whether there was one in time.
func (s *Slots) Take(ctx context.Context, who Holder) bool { return s.TakeWithin(ctx, Patience, who) }

// TakeWithin is Take for who may wait for so long.
func (s *Slots) TakeWithin(ctx context.Context, patience time.Duration, who Holder) bool {
	mine := s.claim(who)
	if mine == nil {
		return true
	}
	timer := time.NewTimer(patience)
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
func (s *Slots) claim(who Holder) *turn {
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
func (s *Slots) withdraw(who Holder, mine *turn) bool {
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

// Give gives a slot back, and hands it on if somebody waits who may have it. That is one
// at most: whoever else waits has waited for something that is used up again.
func (s *Slots) Give(who Holder) {
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
func (s *Slots) next() (next Holder, best *holdings) {
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
func (s *Slots) free(who Holder, has *holdings) bool {
	return s.held < s.all && has.held < s.each && (who.Proved != "" || s.heldUnproved < s.unproved)
}

// count notes that a Holder has got n slots.
func (s *Slots) count(who Holder, has *holdings, n int) {
	has.held += n
	s.held += n
	if who.Proved == "" {
		s.heldUnproved += n
	}
}

// tidy forgets a Holder that has nothing and waits for nothing.
func (s *Slots) tidy(who Holder, has *holdings) {
	if has.held == 0 && len(has.waiting) == 0 {
		delete(s.holders, who)
	}
}

// Holders is for how many callers it keeps account.
func (s *Slots) Holders() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.holders)
}
