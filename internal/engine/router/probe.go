package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/route"
	"github.com/xxljob/xxljob/store"
)

// What is known and being asked of executors, for FAILOVER and BUSYOVER.

// probes asks executors whether they are there and idle, and keeps the answers
// for a moment.
type probes struct {
	s     *core.Core
	queue *queue.Queue
	calls *probeCalls

	mu      sync.Mutex
	answers map[probeKey]probeAnswer // guarded by mu
	Asking  map[int64]*asking        // guarded by mu, and all in it: jobs whose probes are under way
}

func newProbes(s *core.Core, e *queue.Queue, calls *probeCalls) *probes {
	return &probes{s: s, queue: e, calls: calls, answers: map[probeKey]probeAnswer{}, Asking: map[int64]*asking{}}
}

// forgetOld keeps the memory bounded. Caller holds mu.
func (p *probes) forgetOld() {
	if len(p.answers) < 10_000 {
		return
	}
	oldest := time.Now().Add(-probeTTL)
	for _, a := range p.Asking {
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
	job   *store.Job
	order []string
	since time.Time // answers from later on count for them, however long others take
}

// settling reports whether runs that have a good answer should wait for further ones
// for a moment.
func (a *asking) settling(now time.Time) bool {
	return a != nil && a.order != nil && (len(a.todo) > 0 || len(a.under) > 0) && now.Sub(a.since) < probeGrace
}

// comes reports whether an address is being asked or will be.
func (a *asking) comes(job *store.Job, addr string) bool {
	return a.under[keyOf(job, addr)] || slices.Contains(a.todo, addr)
}

// Pending reports whether runs of the job wait for answers: one more may, and is let
// out with them.
func (p *probes) Pending(jobID int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.Asking[jobID]
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

// Probes of FAILOVER and BUSYOVER. The strategies say in which order to ask; the
// asking is I/O and is done here, by few goroutines, beside the path of the
// other runs.

// Choose takes the first address, in order, that has answered well; the others
// that did are where the run goes on to after a refusal. Where an answer that
// matters is missing it asks, and says so: the run waits.
func (p *probes) Choose(_ context.Context, job *store.Job, order []string) queue.Routed {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var log strings.Builder
	var good []string
	for _, addr := range order {
		a, ok := p.answers[keyOf(job, addr)]
		if !ok || now.Sub(a.from) >= probeTTL {
			if len(good) > 0 && !p.Asking[job.ID].settling(now) {
				break // an earlier one is good: the later ones need not be asked
			}
			p.ask(job, order)
			return queue.Routed{Probing: true}
		}
		if log.Len() < core.MaxStartMsg {
			fmt.Fprintf(&log, "%s: %s\n", addr, a.text)
		}
		if a.ok {
			good = append(good, addr)
		}
	}
	probed := "probed:\n" + strings.TrimSuffix(log.String(), "\n")
	if len(good) == 0 {
		return queue.Routed{Refused: "no address answered well; " + probed}
	}
	if job.Route == route.Busyover {
		// What was idle is busy from now on: the next run asks again.
		delete(p.answers, keyOf(job, good[0]))
	}
	return queue.Routed{Destination: queue.Destination{Address: good[0], Choices: good[1:]}, Msg: probed}
}

// The probes of one job that are under way. Input: runs that cannot be routed for want
// of answers. Output: runs that can, to the start loop.

// ask probes all addresses of a job for the runs that wait, unless that is under way;
// as soon as enough of them have answered the runs go on. Caller holds mu. Stop waits
// for the goroutines.
func (p *probes) ask(job *store.Job, order []string) {
	a := p.Asking[job.ID]
	if a == nil {
		a = &asking{under: map[probeKey]bool{}}
		p.Asking[job.ID] = a
	}
	if a.order != nil {
		return
	}
	a.job, a.order, a.since = job, order, time.Now().Add(-1)
	a.todo = nil // what others have left is in the order, or of no use any more
	for _, addr := range order {
		if !a.under[keyOf(job, addr)] {
			a.todo = append(a.todo, addr)
		}
	}
	// Where all workers are at addresses that hang there is one more for the first of
	// the order; it leaves then.
	for range min(len(a.todo), max(1, probeWidth-a.workers)) {
		a.workers++
		p.s.Life.Loops.Plan.Run(func(ctx context.Context) { p.work(ctx, a, job) })
	}
	p.s.Life.Loops.Plan.Run(func(ctx context.Context) {
		if loop.Sleep(ctx, probeGrace) {
			p.look(a)
		}
	})
}

// work asks one address after the other until there are none left. At the end of ctx
// it leaves all as it is: the runs stay planned.
func (p *probes) work(ctx context.Context, a *asking, job *store.Job) {
	for first := true; ctx.Err() == nil; first = false {
		addr, ok := p.next(a, job, first)
		if !ok {
			return
		}
		answer, keep := p.calls.probe(ctx, job, addr)
		p.mu.Lock()
		key := keyOf(job, addr)
		delete(a.under, key)
		if keep {
			p.answers[key] = answer
		}
		p.mu.Unlock()
		p.look(a)
	}
}

// next gives a worker an address, or lets it go: when there is none, or when it has had
// its first and there are more workers than should be.
func (p *probes) next(a *asking, job *store.Job, first bool) (addr string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(a.todo) > 0 && (first || a.workers <= probeWidth) {
		addr, a.todo = a.todo[0], a.todo[1:]
		a.under[keyOf(job, addr)] = true
		return addr, true
	}
	a.workers--
	if a.workers == 0 {
		delete(p.Asking, job.ID)
		p.forgetOld()
	}
	return "", false
}

// look lets the runs go on that wait, once they have the answers they need.
func (p *probes) look(a *asking) {
	p.mu.Lock()
	now := time.Now()
	ready := a.order != nil && p.ready(a, now)
	if ready {
		p.renew(a, now)
		a.order = nil
	}
	job := a.job
	p.mu.Unlock()
	if ready {
		p.queue.Due.AdmitAll(queue.ForProbes(job.ID))
	}
}

// ready reports whether a prefix of the order is decided, or can only be by asking
// again. Caller holds mu.
func (p *probes) ready(a *asking, now time.Time) bool {
	for _, addr := range a.order {
		answer, ok := p.answers[keyOf(a.job, addr)]
		switch {
		case !ok || !answer.at.After(a.since):
			return !a.comes(a.job, addr)
		case answer.ok:
			return !a.settling(now)
		}
	}
	return true
}

// renew makes the answers that have come while runs waited good from now on: a quick
// one must not have grown old while a slow one was waited for. Those that a run has
// used up are not there any more, and no answer is renewed for the runs that wait
// later, which ask anew. Caller holds mu.
func (p *probes) renew(a *asking, now time.Time) {
	for _, addr := range a.order {
		key := keyOf(a.job, addr)
		if answer, ok := p.answers[key]; ok && answer.at.After(a.since) {
			answer.from = now
			p.answers[key] = answer
		}
	}
}
