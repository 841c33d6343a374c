package wire

import (
	"context"
	"net"
)

// DialWith makes a transport connect by dial.
func (t *Transport) DialWith(dial func(ctx context.Context, network, addr string) (net.Conn, error)) {
	t.dial = dial
}
