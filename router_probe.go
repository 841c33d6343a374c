package xxljob

// The probes of one job that are under way. Input: runs that cannot be routed for want
// of answers, from probe.go. Output: runs that can, to the start loop.

import (
	"context"
	"time"
)

// ask probes all addresses of a job for the runs that wait, unless that is under way;
// as soon as enough of them have answered the runs go on. Caller holds mu. Stop waits
// for the goroutines.
func (p *probes) ask(job *Job, order []string) {
	a := p.asking[job.ID]
	if a == nil {
		a = &asking{under: map[probeKey]bool{}}
		p.asking[job.ID] = a
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
		p.s.life.loops.plan.run(func(ctx context.Context) { p.work(ctx, a, job) })
	}
	time.AfterFunc(probeGrace, func() { p.look(a) })
}

// work asks one address after the other until there are none left. At the end of ctx
// it leaves all as it is: the runs stay planned.
func (p *probes) work(ctx context.Context, a *asking, job *Job) {
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
func (p *probes) next(a *asking, job *Job, first bool) (addr string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(a.todo) > 0 && (first || a.workers <= probeWidth) {
		addr, a.todo = a.todo[0], a.todo[1:]
		a.under[keyOf(job, addr)] = true
		return addr, true
	}
	a.workers--
	if a.workers == 0 {
		delete(p.asking, job.ID)
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
		p.engine.room.admitAll(lot{kind: lotProbe, jobID: job.ID})
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
