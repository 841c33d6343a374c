package wire

// What was refused since it could not be read: it is counted, and the log says from where it
// came.

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// sayAgain is how long the log says no more of what one host sends to one endpoint, and
// maxSaid how many such things are remembered: beyond that they count as one.
const (
	sayAgain = time.Minute
	maxSaid  = 1000
)

// unreadable are the requests and results that could not be read. It is safe for concurrent
// use.
type unreadable struct {
	count *atomic.Uint64 // HandlerConfig.Unread, or one of its own
	mu    sync.Mutex
	said  map[string]time.Time // guarded by mu: by host and endpoint
}

// note counts what err says could not be read, which is one thing, and logs it unless the same
// host has just had a line for the endpoint.
func (s *server) note(r *http.Request, name string, caller Caller, err error) {
	total := s.unread.count.Add(1)
	host, _, splitErr := net.SplitHostPort(r.RemoteAddr)
	if splitErr != nil {
		host = r.RemoteAddr
	}
	if s.unread.mayTell(host + " " + name) {
		s.cfg.Logger.Warn("wire: a request was not understood, or a part of it", "endpoint", name, "from", r.RemoteAddr, "app", caller.App, "error", err, "unread", total)
	}
}

func (u *unreadable) mayTell(thing string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if u.said == nil {
		u.said = map[string]time.Time{}
	}
	if _, known := u.said[thing]; !known && len(u.said) >= maxSaid {
		for other, at := range u.said {
			if now.Sub(at) >= sayAgain {
				delete(u.said, other)
			}
		}
		if len(u.said) >= maxSaid {
			thing = ""
		}
	}
	if at, is := u.said[thing]; is && now.Sub(at) < sayAgain {
		return false
	}
	u.said[thing] = now
	return true
}

// partlyRead is an error beside an answer: of a request some parts could not be read, the first
// of them for this reason, and the rest was served.
type partlyRead struct {
	bad, of int
	first   error
}

func (e *partlyRead) Error() string {
	return fmt.Sprintf("%d of %d results are not understood, the first: %v", e.bad, e.of, e.first)
}
