package node

// What tests of a whole scheduler, in package xxljob and its own, ask of the inside of a node. A
// test file here would not be seen by them.

import (
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// Check says what is wrong with what the node holds in memory, at a moment at which nothing is
// being called.
func (s *Node) Check() []string {
	settling := len(s.Leases.Unsettled())+len(s.Leases.Unloaded()) > 0
	return s.queue.Check(s.router.Probes.Pending, settling)
}

// HeldOf is how many planned runs of an app the node holds, and whether there are more in the
// store alone.
func (s *Node) HeldOf(app string) (n int, bounded bool) { return s.queue.HeldOf(app) }

// Unheld are those of the planned runs, all due within the window, that are the node's to start
// and that it neither holds nor is about to read.
func (s *Node) Unheld(runs []store.Run) []store.Run { return s.scanner.Unheld(runs) }

// RunsInDoubt is how many runs the node has whose executor may or may not have them.
func (s *Node) RunsInDoubt() int { return s.dispatch.RunsInDoubt() }

// Registered is how many registrations the node remembers, and Goodbyes how many addresses
// that are gone.
func (s *Node) Registered() int { return s.registrar.Remembered() }
func (s *Node) Goodbyes() int   { return s.book.Goodbyes() }

// DialWith makes the node speak to remote executors by other means than HTTP.
func (s *Node) DialWith(dial func(app, address, token string) (wire.Executor, error)) {
	s.remotes.Dial = dial
}

// BoundAlarms makes the node keep no more alarms than n in memory.
func (s *Node) BoundAlarms(n int) { s.alarms.Bound(n) }
