package xxljob

// What is known and being asked of executors, for FAILOVER and BUSYOVER.

import (
	"slices"
	"sync"
	"time"
)

// probes asks executors whether they are there and idle, and keeps the answers
// for a moment.
type probes struct {
	s      *shared
	engine *engine
	calls  *probeCalls

	mu      sync.Mutex
	answers map[probeKey]probeAnswer // guarded by mu
	asking  map[int64]*asking        // guarded by mu, and all in it: jobs whose probes are under way
}

func newProbes(s *shared, e *engine, calls *probeCalls) *probes {
	return &probes{s: s, engine: e, calls: calls, answers: map[probeKey]probeAnswer{}, asking: map[int64]*asking{}}
}

// forgetOld keeps the memory bounded. Caller holds mu.
func (p *probes) forgetOld() {
	if len(p.answers) < 10_000 {
		return
	}
	oldest := time.Now().Add(-probeTTL)
	for _, a := range p.asking {
		if a.order != nil && a.since.Before(oldest) {
			oldest = a.since
		}
	}
	for k, a := range p.answers {
		if !a.from.After(oldest) {
			delete(p.answers, k)
		}
	}
}

// asking is what is being asked for the runs of one job. All of it is guarded by
// probes.mu.
type asking struct {
	todo    []string          // addresses to be asked yet, the next one first
	under   map[probeKey]bool // what is being asked
	workers int

	// Of the runs that wait: none do when order is nil.
	job   *Job
	order []string
	since time.Time // answers from later on count for them, however long others take
}

// settling reports whether runs that have a good answer should wait for further ones
// for a moment.
func (a *asking) settling(now time.Time) bool {
	return a != nil && a.order != nil && (len(a.todo) > 0 || len(a.under) > 0) && now.Sub(a.since) < probeGrace
}

// comes reports whether an address is being asked or will be.
func (a *asking) comes(job *Job, addr string) bool {
	return a.under[keyOf(job, addr)] || slices.Contains(a.todo, addr)
}

// pending reports whether runs of the job wait for answers: one more may, and is let
// out with them.
func (p *probes) pending(jobID int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.asking[jobID]
	return a != nil && a.order != nil
}

const (
	// probeWidth is how many addresses of one job are asked at the same time.
	probeWidth = 4
	// probeTTL is how long an answer is good for.
	probeTTL = time.Second
	// probeGrace is how long a run waits for the rest of the answers once it has a
	// good one: so that it has where to go on to after a refusal.
	probeGrace = 50 * time.Millisecond
)
