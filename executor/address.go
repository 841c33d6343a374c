package executor

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// outboundWait bounds looking up the names of admins.
const outboundWait = 3 * time.Second

// addresses returns what is registered with each of Config.Admins. s is the
// server of Config.Addr, nil without one.
func (e *Executor) addresses(ctx context.Context, s *server) ([]string, error) {
	base := e.cfg.Address
	if base == "" {
		found, err := e.boundAddress(ctx, s.listen.Addr())
		if err != nil {
			return nil, err
		}
		base = found
	}
	return e.cfg.addressesBelow(base), nil
}

// addressesBelow returns the address of each cluster: base as it is for a single
// one, and otherwise the cluster's name below it.
func (c Config) addressesBelow(base string) (list []string) {
	for _, a := range c.Admins {
		if len(c.Admins) > 1 {
			list = append(list, strings.TrimSuffix(base, "/")+"/"+a.Name+"/")
		} else {
			list = append(list, base)
		}
	}
	return list
}

// boundAddress is the default of Config.Address: the host of Config.Addr or, when
// that is every one of this machine, the one from which admins are reached.
func (e *Executor) boundAddress(ctx context.Context, bound net.Addr) (string, error) {
	host, _, err := net.SplitHostPort(e.cfg.Addr)
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		if host = e.outbound(ctx); host == "" {
			return "", errors.New("xxljob: executor: this machine's address towards the admins is not known: set Config.Address")
		}
	}
	return "http://" + net.JoinHostPort(host, port) + "/", nil
}

// outbound is the IP address from which this machine would reach the first admin
// that it has a way to, "" for none. Nothing is sent.
func (e *Executor) outbound(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, outboundWait)
	defer cancel()
	var d net.Dialer
	for _, o := range e.origins[1:] {
		for _, n := range o.cluster.nodes {
			u, err := url.Parse(n.addr)
			if err != nil {
				continue
			}
			c, err := d.DialContext(ctx, "udp", net.JoinHostPort(u.Hostname(), "9"))
			if err != nil {
				continue
			}
			host, _, err := net.SplitHostPort(c.LocalAddr().String())
			if c.Close() == nil && err == nil {
				return host
			}
		}
	}
	return ""
}
