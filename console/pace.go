package console

// How often somebody may ask for what costs more than a page, in this process.

import (
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"
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

// alone are those who are at something that each does once at a time. The zero value is complete.
type alone struct {
	mu sync.Mutex
	by map[string]bool // guarded by mu
}

// begin reports whether somebody may begin, and how that ends: it is called then, once.
func (a *alone) begin(who string) (end func(), may bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by[who] {
		return nil, false
	}
	if a.by == nil {
		a.by = map[string]bool{}
	}
	a.by[who] = true
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.by, who)
	}, true
}

// asking is who asks, as paces are kept by: a session or a token, else the user whom the host
// names, else an address.
func (q *request) asking() string {
	switch u := q.user; {
	case u == nil:
		return "address " + q.client.network().String()
	case u.token != "":
		return "token " + strconv.FormatInt(u.tokenID, 10)
	case u.session != nil:
		return "session " + strconv.FormatInt(u.session.ID, 10) + " of " + u.Name
	default:
		return "user " + u.Name
	}
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
