package xxljob

// What tests of a whole node ask of its inside.

import (
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Check says what is wrong with what the node holds in memory, at a moment at which nothing is
// being called.
func (s *scheduler) Check() []string {
	settling := len(s.leases.unsettled())+len(s.leases.unloaded()) > 0
	return s.engine.check(s.router.probes.pending, settling)
}

// HeldOf is how many planned runs of an app the node holds, and whether there are more in the
// store alone.
func (s *scheduler) HeldOf(app string) (n int, bounded bool) { return s.engine.heldOf(app) }

// Unheld are those of the planned runs, all due within the window, that are the node's to start
// and that it neither holds nor is about to read.
func (s *scheduler) Unheld(runs []store.Run) []store.Run { return s.scanner.unheld(runs) }

// RunsInDoubt is how many runs the node has whose executor may or may not have them.
func (s *scheduler) RunsInDoubt() int { return s.inDoubt.count() }

// TakenUp is how many planned runs the node has found that nobody held.
func (s *scheduler) TakenUp() int64 { return int64(s.life.mishaps.pickedUp.Load()) }

// Registered is how many registrations the node remembers, and Goodbyes how many addresses
// that are gone.
func (s *scheduler) Registered() int { return s.registrar.remembered() }
func (s *scheduler) Goodbyes() int   { return s.book.goodbyes() }

// DialWith makes the node speak to remote executors by other means than HTTP.
func (s *scheduler) DialWith(dial func(app, address, token string) (wire.Executor, error)) {
	s.remotes.dial = dial
}
