package main

// Which hosts httpJobHandler calls: those of a list, spelled as there, at addresses that a
// service has.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// caller is httpJobHandler: it calls hosts of a list and no others.
type caller struct {
	allow  map[string]bool // host:port, in lower case
	client *http.Client
}

// newCaller checks the list. A host without a port stands for the usual ports of
// http and https.
func newCaller(hosts []string) (*caller, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second, Control: allowAddress}
	return newCallerBy(hosts, dialer.DialContext)
}

// newCallerBy is newCaller with another way to connect.
func newCallerBy(hosts []string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (*caller, error) {
	c := &caller{allow: map[string]bool{}, client: &http.Client{
		// No proxy of the environment: it could reach what is not on the list. No
		// redirects, for the same reason.
		Transport: &http.Transport{
			DialContext:            dial,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    10 * time.Second,
			IdleConnTimeout:        time.Minute,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(to *http.Request, _ []*http.Request) error {
			return fmt.Errorf("redirect to %s refused", to.URL.Redacted())
		},
	}}
	var errs []error
	for _, h := range hosts {
		errs = append(errs, c.allowHost(strings.TrimSpace(h)))
	}
	return c, errors.Join(errs...)
}

// allowHost puts a host, or host:port, on the list.
func (c *caller) allowHost(h string) error {
	u, err := url.Parse("//" + h)
	if err != nil || u.Hostname() == "" || u.Host != h {
		return fmt.Errorf("-http-allow: %q: want a host or host:port", h)
	}
	if err := plainHost(u.Hostname()); err != nil {
		return fmt.Errorf("-http-allow: %w", err)
	}
	ports := []string{u.Port()}
	if u.Port() == "" {
		ports = []string{"80", "443"}
	}
	for _, port := range ports {
		c.allow[hostPort(u.Hostname(), port)] = true
	}
	return nil
}

// plainHost refuses hosts with letters beyond ASCII. Some of these are folded to letters of
// ASCII by one who compares, and mapped to others by one who connects: "gİthub.com" in
// lower case is "github.com" to the one, and another name to the other.
func plainHost(host string) error {
	for i := range len(host) {
		if c := host[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`%/\?#@<>"'`, c) >= 0 {
			return fmt.Errorf("host %q: want letters of ASCII, digits, dots and hyphens; write other names in Punycode (xn--...)", host)
		}
	}
	return nil
}

// hostPort is how the list has a host of ASCII.
func hostPort(host, port string) string { return net.JoinHostPort(strings.ToLower(host), port) }

// allowAddress refuses addresses that a name on the list must not lead to, such as those
// where clouds tell a host its secrets, when the name has been resolved and nothing has
// been sent. It is a net.Dialer's Control.
func allowAddress(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return wire.DefaultAllowIP(to)
}

// check refuses what must not be called.
func (c *caller) check(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return err
	}
	port := u.Port()
	switch {
	case u.Scheme == "http" && port == "":
		port = "80"
	case u.Scheme == "https" && port == "":
		port = "443"
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("url %q: want http:// or https://", u.Redacted())
	}
	if u.User != nil {
		return fmt.Errorf("url %q: give credentials in a header", u.Redacted())
	}
	if err := plainHost(u.Hostname()); err != nil {
		return err
	}
	if !c.allow[hostPort(u.Hostname(), port)] {
		return fmt.Errorf("host %q, port %s is not in -http-allow", u.Hostname(), port)
	}
	return nil
}
