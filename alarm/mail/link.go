package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
)

// maxHeard is how much a server may say over one connection, with certificates, in bytes.
const maxHeard = 256 << 10

// link is the connection of one mail. The library closes its connection only where all went
// well; link ends it with the context too, and bounds what a server may say.
type link struct {
	mailer *Mailer

	mu    sync.Mutex
	conn  net.Conn // guarded by mu
	ended bool     // guarded by mu
}

// dial is the library's way to a connection.
func (l *link) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	conn, err := l.mailer.cfg.DialContext(ctx, network, l.mailer.address())
	if err != nil {
		return nil, err
	}
	if conn == nil {
		return nil, errors.New("Config.DialContext returned neither a connection nor an error")
	}
	if !l.keep(conn) {
		return nil, net.ErrClosed
	}
	heard := &bounded{Conn: conn, left: maxHeard}
	if l.mailer.cfg.Mode != ImplicitTLS {
		return heard, nil
	}
	encrypted := tls.Client(heard, l.mailer.cfg.TLS.Clone())
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return encrypted, nil
}

// keep remembers a connection for its end, which may have come meanwhile.
func (l *link) keep(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = conn.Close()
		return false
	}
	l.conn = conn
	return true
}

// end closes the connection, if there is one, and may be called again.
func (l *link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

// bounded ends the connection of a server that says too much. One goroutine reads.
type bounded struct {
	net.Conn
	left int // bytes that the server may still say
}

// Read reads at most what the server may still say.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the server has said more than %d bytes", maxHeard)
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
