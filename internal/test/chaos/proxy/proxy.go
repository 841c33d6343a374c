// Package proxy is a TCP proxy that behaves badly on demand: it holds back, delays
// or cuts what passes, or lets one side believe that the other is still there.
//
// In: connections of one program, and orders from a test. Out: the same bytes, in
// order, later or not at all. Bytes are never altered.
package proxy

import (
	"errors"
	"net"
	"sync"
	"time"
)

// Proxy passes connections on to one target. Its methods may be called at any
// time, by several goroutines.
type Proxy struct {
	ln net.Listener
	wg sync.WaitGroup

	mu      sync.Mutex
	target  string         // guarded by mu
	closed  bool           // guarded by mu
	hole    bool           // guarded by mu: nothing passes
	delay   time.Duration  // guarded by mu: of each piece on its way to the target
	changed chan struct{}  // guarded by mu: closed when one of the above changes
	links   map[*link]bool // guarded by mu
}

// Listen starts a proxy for the target on a free port of the loopback interface.
// The caller has to close it.
func Listen(target string) (*Proxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, ln: ln, changed: make(chan struct{}), links: map[*link]bool{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// BlackHole holds back everything from now on, connections that are made included,
// until Heal: what was sent meanwhile then arrives, as it does when a network
// comes back.
func (p *Proxy) BlackHole() { p.set(func() { p.hole = true }) }

// Delay has each piece reach the target so much later, until Heal.
func (p *Proxy) Delay(d time.Duration) { p.set(func() { p.delay = d }) }

// Retarget has connections go to another target that are made from now on. Those that there
// are stay where they are.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Heal lets everything pass again. Connections that were cut stay so.
func (p *Proxy) Heal() { p.set(func() { p.hole, p.delay = false, 0 }) }

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// Reset cuts every connection, with a reset to both sides.
func (p *Proxy) Reset() {
	for _, l := range p.all() {
		l.reset(l.client)
		l.reset(l.server)
	}
}

// HalfOpen cuts every connection towards the client, and leaves the target to
// believe that the client is still there.
func (p *Proxy) HalfOpen() {
	for _, l := range p.all() {
		l.reset(l.client)
	}
}

// Orphan cuts every connection towards the target, and leaves the client to wait
// for answers that never come.
func (p *Proxy) Orphan() {
	for _, l := range p.all() {
		l.reset(l.server)
	}
}

// CutAfter resets each connection that there is once so many further bytes
// have gone to the target through it. Zero takes that back.
func (p *Proxy) CutAfter(n int64) {
	for _, l := range p.all() {
		l.limit(n)
	}
}

// Connections is how many connections there are.
func (p *Proxy) Connections() int { return len(p.all()) }

func (p *Proxy) all() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*link
	for l := range p.links {
		all = append(all, l)
	}
	return all
}

// Close cuts all connections and ends the proxy.
func (p *Proxy) Close() error {
	p.set(func() { p.closed = true })
	err := p.ln.Close()
	for _, l := range p.all() {
		l.close()
	}
	p.wg.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return // closed
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

// serve passes one connection on until both sides are done with it.
func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		reset(client)
		return
	}
	l := &link{client: client, server: server, over: make(chan struct{})}
	p.mu.Lock()
	closed := p.closed
	p.links[l] = true
	p.mu.Unlock()
	if closed {
		l.close()
	}
	var both sync.WaitGroup
	both.Go(func() { p.pump(l, client, server, true) })
	both.Go(func() { p.pump(l, server, client, false) })
	both.Wait()
	l.close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// pump passes bytes in one direction, until its source ends or is cut. What is
// meant for a side that was cut by order is swallowed.
func (p *Proxy) pump(l *link, from, to net.Conn, toTarget bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && p.wait(l, toTarget) {
			if failed := l.write(to, buf[:n], toTarget); !l.isCut(to) {
				err = errors.Join(err, failed)
			}
		}
		if err != nil {
			l.ended(from, to)
			return
		}
	}
}

// wait returns when a piece may pass; false when the connection is over.
func (p *Proxy) wait(l *link, toTarget bool) bool {
	arrived := time.Now()
	for {
		p.mu.Lock()
		hole, delay, changed := p.hole, p.delay, p.changed
		p.mu.Unlock()
		if !toTarget {
			delay = 0
		}
		left := delay - time.Since(arrived)
		if !hole && left <= 0 {
			return true
		}
		if hole {
			left = time.Hour
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-changed:
		case <-l.over:
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}
