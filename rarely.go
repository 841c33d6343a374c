package xxljob

import (
	"maps"
	"sync"
	"time"
)

const (
	// rarelyEvery is how often the log repeats itself about one thing.
	rarelyEvery = time.Minute
	// rarelyThings is how many things are told apart: callers may name apps without end.
	rarelyThings = 1000
)

// rarely lets the log say a thing once in a while. It is safe for concurrent use, and its
// zero value is ready.
type rarely struct {
	mu   sync.Mutex
	last map[string]time.Time // guarded by mu: when a thing was said
}

// lets reports whether it is time to say a thing. What there is no room to remember goes
// by one and the same time.
func (r *rarely) lets(thing string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.last == nil {
		r.last = map[string]time.Time{}
	}
	if _, known := r.last[thing]; !known && len(r.last) >= rarelyThings {
		maps.DeleteFunc(r.last, func(_ string, at time.Time) bool { return now.Sub(at) >= rarelyEvery })
		if len(r.last) >= rarelyThings {
			thing = ""
		}
	}
	if at, said := r.last[thing]; said && now.Sub(at) < rarelyEvery {
		return false
	}
	r.last[thing] = now
	return true
}
