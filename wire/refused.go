package wire

// Tokens that were refused: they are counted, the log says from where they came, and who guesses is
// slowed.

import (
	"net/http"
	"net/netip"
)

// refuse counts a request whose token is refused, logs it unless the same network has just had a
// line, and returns when it may be answered. One that may not panics with http.ErrAbortHandler.
func (s *server) refuse(r *http.Request) {
	if !s.refused.Refuse(r.Context(), networkOf(r.RemoteAddr), func(total uint64) {
		s.cfg.Logger.Warn("wire: a token was refused", "from", r.RemoteAddr, "refused", total)
	}) {
		panic(http.ErrAbortHandler)
	}
}

// slow is refuse for a request whose token may be right.
func (s *server) slow(r *http.Request) {
	if !s.refused.Slow(r.Context(), networkOf(r.RemoteAddr)) {
		panic(http.ErrAbortHandler)
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
