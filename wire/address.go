package wire

// Addresses of peers: how they are read and compared, and those that no peer has, to which a
// registration, or the answer of a name server, could lead a request, with a token in it.

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// maxAddress is the width of the column that holds addresses.
const maxAddress = 255

// ParseAddress reads the base address of a peer: http or https, a host, perhaps
// a port and a path, and nothing else. User names, queries and fragments are
// refused, since a token would travel to where the address leads. The error
// does not repeat the address.
func ParseAddress(addr string) (*url.URL, error) {
	if len(addr) > maxAddress {
		return nil, fmt.Errorf("xxljob: an address of %d bytes, at most %d are possible", len(addr), maxAddress)
	}
	if strings.ContainsAny(addr, ", \t\r\n") {
		return nil, errors.New("xxljob: the address has a comma or a blank: one address is wanted, and of a list one by one")
	}
	u, err := url.Parse(addr)
	if err != nil && !strings.Contains(addr, "://") { // "10.0.0.1:9999", which url.Parse takes for a path with a colon
		return nil, errors.New("xxljob: the address must begin with http:// or https://")
	} else if err != nil {
		return nil, errors.New("xxljob: the address is not a URL")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("xxljob: the address must begin with http:// or https://")
	case u.User != nil, u.RawQuery != "", u.ForceQuery, u.Fragment != "", u.Opaque != "", strings.Contains(addr, "#"):
		return nil, errors.New("xxljob: the address must be scheme, host, port and path only")
	case u.Hostname() == "":
		return nil, errors.New("xxljob: the address has no host")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("xxljob: the address has no port from 1 to 65535")
		}
	}
	return u, nil
}

// NormalAddress returns the spelling of an address by which two are compared:
// scheme and host in lower case, no default port, no slash at the end. Addresses
// are sent, stored and called as they were given (docs/xxl-job.md, addresses).
// What is no address of HTTP is returned as it is.
func NormalAddress(addr string) string {
	u, err := ParseAddress(strings.TrimSpace(addr))
	if err != nil {
		return addr
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	n, _ := strconv.Atoi(port) // checked by ParseAddress, "" is none
	switch {
	case n == 0, u.Scheme == "http" && n == 80, u.Scheme == "https" && n == 443:
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
	default:
		host = net.JoinHostPort(host, strconv.Itoa(n))
	}
	return u.Scheme + "://" + host + strings.TrimRight(u.EscapedPath(), "/")
}

// reserved is a range of addresses, what it is, and who says so.
type reserved struct {
	prefix netip.Prefix
	what   string
}

// never are ranges that no peer is in. The first of them that holds an address says why.
// For IPv4 they hold also inside of the addresses of IPv6 that translate to it.
var never = ranges([][2]string{
	// Where clouds tell a host its secrets, apart from link-local addresses, which most of
	// them use. Each is named in the documentation of its cloud.
	{"100.100.100.200/32", "Alibaba Cloud's metadata server"},
	{"168.63.129.16/32", "Azure's host agent"},
	{"192.0.0.192/32", "the metadata server of Oracle's classic cloud"},
	{"fd00:ec2::/32", "AWS's range for services of a host: metadata (254), pod identities (23), names (253), time (123)"},
	{"fd20:ce::254/128", "the metadata server of Google Cloud, over IPv6"},
	{"fd00:c1::a9fe:a9fe/128", "the metadata server of Oracle Cloud, over IPv6"},
	{"fd00:42::42/128", "the metadata server of Scaleway, over IPv6"},

	{"0.0.0.0/32", "no address (RFC 1122, 3.2.1.3)"},
	{"::/128", "no address (RFC 4291, 2.5.2)"},
	{"169.254.0.0/16", "link-local (RFC 3927)"},
	{"fe80::/10", "link-local (RFC 4291, 2.5.6)"},
	{"224.0.0.0/4", "multicast (RFC 5771)"},
	{"255.255.255.255/32", "broadcast (RFC 919)"},
	{"ff00::/8", "multicast (RFC 4291, 2.7)"},
	{"192.0.0.0/24", "for protocols of the IETF (RFC 6890)"},
	{"fec0::/10", "site-local, which nobody uses any more (RFC 3879)"},
	{"2002::/16", "6to4, which nobody uses any more (RFC 7526)"},
	{"2001::/32", "Teredo, which leads to an address that is hidden in it (RFC 4380)"},
})

// These translate to the address of IPv4 that is inside of them.
var (
	compatible = netip.MustParsePrefix("::/96")          // RFC 4291, 2.5.5.1; nobody uses them any more
	wellKnown  = netip.MustParsePrefix("64:ff9b::/96")   // RFC 6052
	local      = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215: networks choose prefixes within it
)

func ranges(list [][2]string) (all []reserved) {
	for _, r := range list {
		all = append(all, reserved{netip.MustParsePrefix(r[0]), r[1]})
	}
	return all
}

// DefaultAllowIP is the default of [TransportConfig.AllowIP]. It refuses, with an error that
// says why, the addresses where clouds tell a host its secrets, link-local and multicast
// ones, those that are no address of one host, those that nobody uses any more, and those
// of IPv6 that translate to such an address of IPv4. Loopback and private addresses are
// allowed. It is safe for concurrent use, and is for dialers of others too, whose Control
// sees the address when its name has been resolved.
func DefaultAllowIP(to netip.AddrPort) error {
	ip := to.Addr().Unmap().WithZone("")
	if !ip.IsValid() {
		return errors.New("no address: see TransportConfig.AllowIP")
	}
	what := whyNever(ip)
	for _, inside := range translated(ip) {
		if why := whyNever(inside); what == "" && why != "" {
			what = fmt.Sprintf("%v, %s", inside, why)
		}
	}
	if what == "" && compatible.Contains(ip) && !ip.IsLoopback() {
		what = "compatible with IPv4, which nobody uses any more (RFC 4291, 2.5.5.1)"
	}
	if what != "" {
		return fmt.Errorf("%v is no address of a peer but %s: see TransportConfig.AllowIP", to.Addr(), what)
	}
	return nil
}

// whyNever says what an address is that no peer has, and nothing of another.
func whyNever(ip netip.Addr) string {
	for _, r := range never {
		if r.prefix.Contains(ip) {
			return r.what
		}
	}
	return ""
}

// translated are the addresses of IPv4 that one of IPv6 may stand for. Where in it they are
// depends on the length of the prefix that its network has chosen (RFC 6052, 2.2), which
// the address does not say: all that are possible count, but for no address at all.
func translated(ip netip.Addr) (all []netip.Addr) {
	b := ip.As16()
	switch {
	case wellKnown.Contains(ip):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[12:]))}
	case local.Contains(ip):
		for _, four := range [][4]byte{
			{b[6], b[7], b[9], b[10]},    // behind 48 bits; the ninth byte is none of it
			{b[7], b[9], b[10], b[11]},   // behind 56
			{b[9], b[10], b[11], b[12]},  // behind 64
			{b[12], b[13], b[14], b[15]}, // behind 96
		} {
			if inside := netip.AddrFrom4(four); !inside.IsUnspecified() {
				all = append(all, inside)
			}
		}
	}
	return all
}
