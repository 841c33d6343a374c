package slots

import (
	"maps"
	"sync"
	"time"
)

// mostPaced is how many who ask a Pacer remembers.
const mostPaced = 10_000

// Pacer gives turns: to each who asks one in every so long, and so many at once after a rest. It is
// safe for concurrent use.
type Pacer struct {
	every time.Duration
	burst int

	mu sync.Mutex
	by map[string]time.Time // when all that was asked for has had its time; guarded by mu
}

// NewPacer returns a Pacer by whom nobody has asked yet.
func NewPacer(every time.Duration, burst int) *Pacer { return &Pacer{every: every, burst: burst} }

// Turn takes the next turn of who asks, which is so long ahead in the pace of one in every so long,
// unless burst of them are ahead already: then it takes none, and over says after how long there is
// room for one.
func (p *Pacer) Turn(who string, now time.Time) (ahead, over time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := p.by[who]
	if until.Before(now) {
		until = now
	}
	ahead = until.Sub(now)
	if over = ahead - p.every*time.Duration(p.burst-1); over > 0 {
		return 0, over
	}
	if p.by == nil {
		p.by = map[string]time.Time{}
	}
	if len(p.by) >= mostPaced {
		p.forget(now)
	}
	p.by[who] = until.Add(p.every)
	return ahead, 0
}

// forget makes room: of those who have nothing to wait for, or else of any. mu is held.
func (p *Pacer) forget(now time.Time) {
	maps.DeleteFunc(p.by, func(_ string, until time.Time) bool { return !until.After(now) })
	for who := range p.by {
		if len(p.by) < mostPaced {
			return
		}
		delete(p.by, who)
	}
}

// Holders is for how many callers it keeps account.
func (p *Pacer) Holders() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.by)
}
