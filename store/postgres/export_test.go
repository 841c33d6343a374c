package postgres

import "context"

// SchemaOf is the name of a store's schema, as it was given.
func SchemaOf(s *Store) string { return s.cfg.Schema }

// DropAsks deletes the questions for logs that are too old, as housekeeping does.
func DropAsks(ctx context.Context, s *Store) error { return s.dropAsks(ctx) }
