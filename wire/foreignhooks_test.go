package wire_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// firstWaits is an executor whose first run is answered when it is told to.
type firstWaits struct {
	wire.Executor
	came, told chan struct{}
}

func (e firstWaits) Run(_ context.Context, r wire.TriggerRequest) (wire.Return, error) {
	if r.LogID == 1 {
		close(e.came)
		<-e.told
	}
	return wire.Success(), nil
}

// A request that has begun to dial, and was then served by another connection, is over before the dial
// is. Its hooks, by which the dial goes on, are not those of a later request.
func TestHooksOfALaterCaller(t *testing.T) {
	dialing, hold, shaken := make(chan struct{}), make(chan struct{}), make(chan struct{})
	first := firstWaits{came: make(chan struct{}), told: make(chan struct{})}
	srv := httptest.NewTLSServer(executorHandler(t, first, guarded(t)))
	defer srv.Close()
	var dials, handshakes atomic.Int32
	second := func(n *atomic.Int32) bool { return n.Add(1) == 2 }
	transport := wire.NewTransport(wire.TransportConfig{
		TLS: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error {
			if second(&handshakes) {
				close(shaken)
			}
			return nil
		}},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if second(&dials) {
				close(dialing)
				<-hold
			}
			var d net.Dialer
			return d.DialContext(context.WithoutCancel(ctx), network, addr)
		},
	})
	c := executorClient(t, srv.URL, wire.ClientConfig{App: "app", Token: token, Transport: transport})
	run := func(ctx context.Context, id int64) {
		r := demoRun
		r.LogID = id
		if ret, err := c.Run(ctx, r); err != nil || !ret.OK() {
			t.Error(ret, err)
		}
	}
	arrived := make(chan struct{})
	go func() { run(t.Context(), 1); arrived <- struct{}{} }()
	<-first.came
	go func() { run(t.Context(), 2); arrived <- struct{}{} }()
	<-dialing
	close(first.told) // whose connection is free for the second then
	<-arrived
	<-arrived
	var foreign atomic.Int32
	hooked := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{TLSHandshakeStart: func() { foreign.Add(1) }})
	for id := range int64(3) { // none of these dials
		run(hooked, 10+id)
	}
	close(hold)
	<-shaken
	if n := foreign.Load(); n != 0 {
		t.Errorf("the hook was called %d times for the dial of another request", n)
	}
}
