package slots

import (
	"sync"
	"time"
)

// sayAgain is how long the log says no more of a thing, and maxSaid how many things are remembered:
// beyond that they count as one.
const (
	sayAgain = time.Minute
	maxSaid  = 1000
)

// Rarely lets the log say a thing once a minute. It is safe for concurrent use, and its zero value is
// ready.
type Rarely struct {
	mu   sync.Mutex
	said map[string]time.Time // guarded by mu: when a thing was said
}

// May reports whether it is time to say a thing.
func (r *Rarely) May(thing string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.said == nil {
		r.said = map[string]time.Time{}
	}
	if _, known := r.said[thing]; !known && len(r.said) >= maxSaid {
		for other, at := range r.said {
			if now.Sub(at) >= sayAgain {
				delete(r.said, other)
			}
		}
		if len(r.said) >= maxSaid {
			thing = ""
		}
	}
	if at, is := r.said[thing]; is && now.Sub(at) < sayAgain {
		return false
	}
	r.said[thing] = now
	return true
}
