package wire

// Tokens that were refused: they are counted, the log says from where they came, and who guesses is
// slowed.

import (
	"context"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/internal/slots"
)

// One refusal in refusedEvery is answered to an address. Those that come meanwhile wait for their
// turn, refusedAhead of an address, which is two seconds, and refusedWaiting in all; further ones
// get no answer: their connection ends. Whose token is right never waits for any of them.
const (
	refusedEvery   = time.Second / 10
	refusedAhead   = 20
	refusedWaiting = 1000
)

// refused are the requests whose token was refused. It is safe for concurrent use.
type refused struct {
	count   *atomic.Uint64 // HandlerConfig.Refused, or one of its own
	pace    *slots.Pacer   // by network
	waiting atomic.Int64   // how many wait for their turn
}

// refuse counts a request whose token is refused, logs it unless the same network has just had a
// line, and returns when it may be answered. One that may not panics with http.ErrAbortHandler.
func (s *server) refuse(r *http.Request) {
	total := s.refused.count.Add(1)
	from := networkOf(r.RemoteAddr)
	if s.unread.mayTell(from + " token") {
		s.cfg.Logger.Warn("wire: a token was refused", "from", r.RemoteAddr, "refused", total)
	}
	ahead, over := s.refused.pace.Turn(from, time.Now())
	if over > 0 || ahead > 0 && !s.refused.wait(r.Context(), ahead) {
		panic(http.ErrAbortHandler)
	}
}

// wait waits for a turn, unless too many do or nobody waits for the answer any more.
func (f *refused) wait(ctx context.Context, ahead time.Duration) bool {
	defer f.waiting.Add(-1)
	if f.waiting.Add(1) > refusedWaiting {
		return false
	}
	timer := time.NewTimer(ahead)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// networkOf is what a remote address is counted by: the address, of IPv6 the network that one
// customer has.
func networkOf(remote string) string {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	addr, bits := from.Addr().Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return remote
	}
	return network.Masked().Addr().String()
}
