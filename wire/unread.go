package wire

// What was refused since it could not be read: it is counted, and the log says from where it
// came.

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/xxljob/xxljob/internal/slots"
)

// unreadable are the requests and results that could not be read. It is safe for concurrent
// use.
type unreadable struct {
	count *atomic.Uint64 // HandlerConfig.Unread, or one of its own
	told  slots.Rarely   // by host and endpoint
}

// note counts what err says could not be read, which is one thing, and logs it unless the same
// host has just had a line for the endpoint.
func (s *server) note(r *http.Request, name string, caller Caller, err error) {
	total := s.unread.count.Add(1)
	host, _, splitErr := net.SplitHostPort(r.RemoteAddr)
	if splitErr != nil {
		host = r.RemoteAddr
	}
	if s.unread.told.May(host + " " + name) {
		s.cfg.Logger.Warn("wire: a request was not understood, or a part of it", "endpoint", name, "from", r.RemoteAddr, "app", caller.App, "error", err, "unread", total)
	}
}

// partlyRead is an error beside an answer: of a request some parts could not be read, the first
// of them for this reason, and the rest was served. Where the end could not be read rest says why: how
// much that was nobody knows.
type partlyRead struct {
	bad, of int
	first   error
	rest    error
}

// why is the reason for which something could not be read.
func (e *partlyRead) why() error {
	if e.rest != nil {
		return e.rest
	}
	return e.first
}

func (e *partlyRead) Error() string {
	if e.rest != nil {
		return fmt.Sprintf("the results behind the first %d are not understood, and have to be sent again: %v", e.of, e.rest)
	}
	return fmt.Sprintf("%d of %d results are not understood, the first: %v", e.bad, e.of, e.first)
}
