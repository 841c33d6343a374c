package registry

import (
	"time"

	"github.com/xxljob/xxljob/store"
)

// Addresses that stand for several processes: a balancer before executors, or a Service of
// Kubernetes, whose address each of them registers. An answer there is any process's, and says
// nothing about what another one does.

const (
	// sharedFor is for how long an address counts as one of several processes after that has
	// shown last.
	sharedFor = time.Hour
	// sharedMost is how many such addresses are remembered.
	sharedMost = 1000
)

// sharedAddresses are those of which it has shown. Its zero value is ready; it is not safe for
// concurrent use.
type sharedAddresses struct{ signs map[SiteKey]sharedSign }

// sharedSign says when it has shown last, and how.
type sharedSign struct {
	at  time.Time
	how store.SeenWhat
}

// back takes in when a process was heard of again behind another one, zero for never.
func (s *sharedAddresses) back(key SiteKey, at time.Time) {
	if !at.IsZero() && at.After(s.signs[key].at) {
		s.saw(key, at, store.SeenSharedInTurns)
	}
}

// saw takes in that it has shown. Where there is no room the oldest sign makes it.
func (s *sharedAddresses) saw(key SiteKey, at time.Time, how store.SeenWhat) {
	if s.signs == nil {
		s.signs = map[SiteKey]sharedSign{}
	}
	if _, known := s.signs[key]; !known && len(s.signs) >= sharedMost {
		oldest := key
		for k, sign := range s.signs {
			if oldest == key || sign.at.Before(s.signs[oldest].at) {
				oldest = k
			}
		}
		delete(s.signs, oldest)
	}
	s.signs[key] = sharedSign{at, how}
}

// of says how it has shown, and for how long that counts yet: zero where it does not.
func (s *sharedAddresses) of(key SiteKey, now time.Time) (how store.SeenWhat, left time.Duration) {
	sign, known := s.signs[key]
	if !known {
		return "", 0
	}
	if left = sign.at.Add(sharedFor).Sub(now); left <= 0 {
		delete(s.signs, key)
		return "", 0
	}
	return sign.how, left
}
