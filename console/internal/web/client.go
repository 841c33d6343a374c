package web

// Where a request comes from: who is connected, or whom a proxy speaks for that is trusted.

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// mostHops is how far a request is followed back through proxies. Behind more than that, it comes
// from the one that is connected.
const mostHops = 20

// Client is where a request comes from.
type Client struct {
	Addr netip.Addr // without a zone; the zero value where it is not known
	Text string     // for the record: with the port, where it is the one that is connected
}

// ClientOf says where a request comes from. The header that proxies add to is read from its end,
// which the one that is connected has written, for as long as a proxy that is trusted has written
// the entry: what is in front of that may be anybody's invention. Where an entry is no address,
// the request comes from the proxy that has written it.
func ClientOf(trusted []netip.Prefix, r *http.Request) Client {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return Client{Text: r.RemoteAddr}
	}
	direct := Client{plainAddr(peer.Addr()), r.RemoteAddr}
	at, hops := direct, 0
	for _, line := range slices.Backward(r.Header["X-Forwarded-For"]) {
		for line != "" {
			if !isTrusted(trusted, at.Addr) {
				return at
			}
			if hops++; hops > mostHops {
				return direct
			}
			comma := strings.LastIndexByte(line, ',')
			entry := strings.TrimSpace(line[comma+1:])
			line = line[:max(comma, 0)]
			if entry == "" {
				continue
			}
			addr, is := hopOf(entry)
			if !is {
				return at
			}
			at = Client{addr, addr.String()}
		}
	}
	return at
}

// hopOf is the address of an entry, which has a port where the proxy adds it.
func hopOf(entry string) (netip.Addr, bool) {
	if len(entry) > 128 {
		return netip.Addr{}, false
	}
	if both, err := netip.ParseAddrPort(entry); err == nil {
		return plainAddr(both.Addr()), true
	}
	if inner, cut := strings.CutPrefix(entry, "["); cut {
		entry = strings.TrimSuffix(inner, "]")
	}
	addr, err := netip.ParseAddr(entry)
	return plainAddr(addr), err == nil
}

// plainAddr is an address as prefixes contain it: without a zone, IPv4 as such.
func plainAddr(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

func isTrusted(trusted []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// Network is what failures are counted by: the address, of IPv6 the network that one customer
// has. It is one for all of whom the address is not known.
func (c Client) Network() netip.Prefix {
	bits := c.Addr.BitLen()
	if c.Addr.Is6() {
		bits = 64
	}
	p, _ := c.Addr.Prefix(bits)
	return p
}
