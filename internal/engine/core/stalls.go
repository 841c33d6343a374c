package core

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/loop"
)

// Stalls are the duties that fail and without which no run becomes due, each with the time since when none of
// its tries has succeeded. It is safe for concurrent use, and its zero value is ready.
type Stalls struct {
	mu sync.Mutex
	by map[string]Stall // guarded by mu
}

// Stall is a duty that fails.
type Stall struct {
	What  string
	Since time.Time // the first of the failures began
	Err   error     // the last of them
}

// note notes how a time has ended that began at began, and reports whether it has failed.
func (s *Stalls) note(what string, began time.Time, err error) (failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.by, what)
		return false
	}
	if was, known := s.by[what]; known {
		began = was.Since
	}
	if s.by == nil {
		s.by = map[string]Stall{}
	}
	s.by[what] = Stall{what, began, err}
	return true
}

// List are those that fail, the first first.
func (s *Stalls) List() (list []Stall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.by {
		list = append(list, x)
	}
	slices.SortFunc(list, func(x, y Stall) int { return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.What, y.What)) })
	return list
}

// Watched has it noted how each time of the duty ends, so that the node tells if it fails for long.
func (c *Core) Watched(d loop.Duty) loop.Duty {
	once := d.Once
	d.Once = func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		wait, err := once(ctx)
		c.NoteStall(ctx, d.What, began, err)
		return wait, err
	}
	return d
}

// NoteStall notes how a time of a duty has ended, unless it was ended with ctx.
func (c *Core) NoteStall(ctx context.Context, what string, began time.Time, err error) {
	if ctx.Err() == nil {
		c.Life.Wakes.Waiting.PokeIf(c.Life.Stalls.note(what, began, err))
	}
}
