package wire

import (
	"context"
	"net"
)

// DialWith makes a transport connect by dial.
func (t *Transport) DialWith(dial func(ctx context.Context, network, addr string) (net.Conn, error)) {
	t.dial = dial
}

// AllowIP is what the transport's default says about an address that is about to be
// connected to, without connecting.
func AllowIP(address string) error { return control(allowHosts)("tcp", address, nil) }
