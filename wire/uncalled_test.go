package wire_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// TestUncalledClients: a client of an address that is never called takes less than 600 bytes, since an
// app may register ten thousand of them.
func TestUncalledClients(t *testing.T) {
	const n = 10_000
	transport := wire.NewTransport(wire.TransportConfig{})
	addresses, clients := make([]string, n), make([]wire.Executor, n)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("http://10.0.0.1:9999/%d/", i)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i, address := range addresses {
		c, err := wire.NewExecutorClient(address, wire.ClientConfig{Transport: transport, App: "app", Token: "a token of the app, which is long", Secrets: []string{"a token of the app, which is long", "and a former one of the same app"}})
		if err != nil {
			t.Fatal(err)
		}
		clients[i] = c
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := int64(after.HeapAlloc-before.HeapAlloc) / n; each > 600 {
		t.Errorf("%d bytes each", each)
	}
	runtime.KeepAlive(clients)
}
