package wire

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
	u, err := url.Parse(addr)
	if err != nil {
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
