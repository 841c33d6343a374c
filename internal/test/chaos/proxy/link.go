package proxy

import (
	"errors"
	"net"
	"sync"
)

// link is one connection through the proxy.
type link struct {
	client, server net.Conn
	over           chan struct{} // closed by close

	mu      sync.Mutex
	cut     map[net.Conn]bool // guarded by mu: sides that were cut by order
	left    int64             // guarded by mu: bytes until the cut; zero: no limit
	isOver  bool              // guarded by mu
	hanging bool              // guarded by mu: one side was cut, the other must not notice
}

var errCut = errors.New("proxy: the connection is cut")

// limit resets the link after n further bytes to the target.
func (l *link) limit(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = n
}

// write passes a piece on, up to the limit.
func (l *link) write(to net.Conn, piece []byte, toTarget bool) error {
	l.mu.Lock()
	over := toTarget && l.left > 0 && int64(len(piece)) >= l.left
	if over {
		piece = piece[:l.left]
	} else if toTarget && l.left > 0 {
		l.left -= int64(len(piece))
	}
	l.mu.Unlock()
	_, err := to.Write(piece)
	if over {
		l.close()
		return errCut
	}
	return err
}

// reset cuts one side by order; the other one stays.
func (l *link) reset(side net.Conn) {
	l.mu.Lock()
	l.hanging = true
	if l.cut == nil {
		l.cut = map[net.Conn]bool{}
	}
	l.cut[side] = true
	both := l.cut[l.client] && l.cut[l.server]
	l.mu.Unlock()
	reset(side)
	if both {
		l.close()
	}
}

// isCut reports whether the side was cut by order.
func (l *link) isCut(side net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut[side]
}

// ended is called when nothing more comes from one side. Where a side was cut by
// order, the other must not notice: it is left open until it ends by itself.
func (l *link) ended(from, to net.Conn) {
	l.mu.Lock()
	hanging, cutHere := l.hanging, l.cut[from]
	l.mu.Unlock()
	switch {
	case cutHere:
		return // to stays open
	case hanging:
		l.close() // the side that was left behind has given up
	default:
		if c, ok := to.(*net.TCPConn); ok {
			_ = c.CloseWrite() // the other direction may go on
		}
	}
}

// close resets both sides.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isOver {
		return
	}
	l.isOver = true
	close(l.over)
	reset(l.client)
	reset(l.server)
}

// reset closes a connection in such a way that the peer sees a reset.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}
