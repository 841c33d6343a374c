package postgres

import "context"

// SchemaOf is the name of a store's schema, as it was given.
func SchemaOf(s *Store) string { return s.cfg.Schema }

// DropAsks deletes the questions for logs that are too old, as housekeeping does.
func DropAsks(ctx context.Context, s *Store) error { return s.dropAsks(ctx) }

// BeCareful makes the store pass by what is locked, as after it has met a lock.
func BeCareful(s *Store) { s.beCareful() }

// Listens reports whether the store listens for hints of other processes.
func Listens(s *Store) bool { return s.locks() }

// NotesUnderWay counts the hints that are on their way to other processes, and the
// sender of them.
func NotesUnderWay(s *Store) int {
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	n := len(s.notes.pending)
	if s.notes.running {
		n++
	}
	return n
}

// Misdirect has the store notify where nobody listens, before it is used.
func Misdirect(s *Store) { s.channel = "nobody_listens" }

// RaiseStarted reads the least started run anew, as housekeeping does.
func RaiseStarted(ctx context.Context, s *Store) error { return s.started.raise(ctx, s) }
