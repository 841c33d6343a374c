package console

// How often somebody may ask for what costs more than a page, in this process.

import (
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/xxljob/xxljob/internal/slots"
)

// pacing is a kind of such questions.
type pacing int

const (
	atWill   pacing = iota
	previews        // of a schedule
	wholes          // all of a log, or all of many jobs
)

// mostPaced is how many who ask are remembered, of each kind.
const mostPaced = 10_000

// newPacers are the paces of all kinds.
func newPacers() map[pacing]*pacer {
	return map[pacing]*pacer{
		previews: {every: time.Second / 5, burst: 5},
		wholes:   {every: time.Second / 2, burst: 20},
	}
}

// pacer answers each who asks once in every so long, and so many times at once after a rest.
type pacer struct {
	every time.Duration
	burst int

	mu sync.Mutex
	by map[string]time.Time // when all that was asked for has had its time; guarded by mu
}

// wait is how long one has to wait with a question; with zero it counts as asked.
func (p *pacer) wait(who string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := p.by[who]
	if until.Before(now) {
		until = now
	}
	until = until.Add(p.every)
	if wait := until.Sub(now) - p.every*time.Duration(p.burst); wait > 0 {
		return wait
	}
	if p.by == nil {
		p.by = map[string]time.Time{}
	}
	if len(p.by) >= mostPaced {
		p.forget(now)
	}
	p.by[who] = until
	return 0
}

// forget makes room: of those who have nothing to wait for, or else of any. mu is held.
func (p *pacer) forget(now time.Time) {
	maps.DeleteFunc(p.by, func(_ string, until time.Time) bool { return !until.After(now) })
	for who := range p.by {
		if len(p.by) < mostPaced {
			return
		}
		delete(p.by, who)
	}
}

// What is under way at a time. Each user has a quarter of the slots, in however many sessions, so
// that there are connections to the store left for others; who finds none free waits for a moment.
const (
	pagesAtOnce  = 12 // pages, but for those that take minutes
	costlyAtOnce = 4  // searches for a text in runs, and files of many jobs, which are in memory until they are sent
)

// hold takes a slot for the user until the request is answered.
func (q *request) hold(of *slots.Slots) error {
	who := slots.Holder{Proved: q.user.Name}
	if !of.Take(q.ctx, who) {
		return tooOften(slots.Patience)
	}
	q.giveBack = append(q.giveBack, func() { of.Give(who) })
	return nil
}

// asking is who asks, as paces are kept by: a user, in whatever session and with whatever token,
// else an address.
func (q *request) asking() string {
	if q.user == nil {
		return "address " + q.client.network().String()
	}
	return "user " + q.user.Name
}

// pace counts a question of a kind, or says how long it has to wait.
func (q *request) pace(kind pacing) error {
	p := q.pacers[kind]
	if p == nil {
		return nil
	}
	if wait := p.wait(q.asking(), time.Now()); wait > 0 {
		return tooOften(wait)
	}
	return nil
}

// tooOften is the answer to who has to wait.
func tooOften(wait time.Duration) *problem {
	return &problem{status: http.StatusTooManyRequests, key: "problem.often", values: []any{"n", secondsOf(wait)}, after: wait}
}
