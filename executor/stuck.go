package executor

// Abandoned handlers that keep runs waiting. Comes in: which handlers were abandoned and hold a place, and
// since when runs wait for one. Goes out: Stuck, by which a scheduler tells of it; and where no scheduler of
// this process does, a line when it begins and one when it is over.

import (
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// stuckAfter is for how long a run has waited for a place before that is said.
	stuckAfter = 5 * time.Second
	// stuckEvery is how often it is looked, while abandoned handlers have not returned.
	stuckEvery = time.Second
)

// Stuck is what abandoned handlers that have not returned keep from others.
type Stuck struct {
	// Places is how many of Config.Places they hold: as many as there are beyond Config.Places.
	Places int
	// Handlers are the names of all of them, sorted, and Since is when the first was abandoned.
	Handlers []string
	Since    time.Time
	// Waiting is since when that job waits for a place which waits longest, zero for none.
	Waiting time.Time
}

// Stuck says what abandoned handlers hold at this moment.
func (e *Executor) Stuck() Stuck {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stuck()
}

// stuck is Stuck where mu is held.
func (e *Executor) stuck() (s Stuck) {
	for r, at := range e.deaf {
		if r.holds {
			s.Places++
		}
		if s.Since.IsZero() || at.Before(s.Since) {
			s.Since = at
		}
		s.Handlers = append(s.Handlers, r.handler.name)
	}
	slices.Sort(s.Handlers)
	s.Handlers = slices.Compact(s.Handlers)
	if j := e.ready.head; j != nil {
		s.Waiting = e.born.Add(j.since)
	}
	return s
}

// keeps reports whether they keep runs waiting: they hold half of the places or more, and a run has waited
// for long.
func (s *Stuck) keeps(places int, now time.Time) bool {
	return s.Places > 0 && 2*s.Places >= places && !s.Waiting.IsZero() && now.Sub(s.Waiting) >= stuckAfter
}

// stuckWatch looks whether abandoned handlers keep runs waiting. What it has is guarded by Executor.mu.
type stuckWatch struct {
	timer *time.Timer // nil while there is nothing to look for
	said  time.Time   // since when it is said; zero while it is not so

	looks sync.WaitGroup // those that look at this moment, for Stop; begun with mu held, and not while stopping
}

// watchStuck begins to look.
func (e *Executor) watchStuck() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watch.timer == nil && !e.stopping {
		e.watch.timer = time.AfterFunc(stuckEvery, e.lookStuck)
	}
}

// lookStuck looks once, and again as long as abandoned handlers are there.
func (e *Executor) lookStuck() {
	now := time.Now()
	e.mu.Lock()
	if e.watch.timer = nil; e.stopping {
		e.mu.Unlock()
		return // who stops may not look for lines any more
	}
	e.watch.looks.Add(1)
	defer e.watch.looks.Done()
	s, said := e.stuck(), e.watch.said
	keeps := s.keeps(e.cfg.Places, now)
	switch {
	case !keeps:
		e.watch.said = time.Time{}
	case said.IsZero():
		e.watch.said = now
	}
	if len(e.deaf) > 0 {
		e.watch.timer = time.AfterFunc(stuckEvery, e.lookStuck)
	}
	e.mu.Unlock()
	switch {
	case keeps && said.IsZero():
		e.cfg.Logger.Error("executor: abandoned handlers hold places, and runs wait for one; they hold them until they return or the process ends",
			"held", s.Places, "places", e.cfg.Places, "handlers", strings.Join(s.Handlers, ","),
			"for", now.Sub(s.Since).Round(time.Millisecond), "oldest_waits", now.Sub(s.Waiting).Round(time.Millisecond))
	case !keeps && !said.IsZero():
		e.cfg.Logger.Info("executor: abandoned handlers do not keep runs waiting any more", "lasted", now.Sub(said).Round(time.Millisecond))
	}
}
