package wire_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// BenchmarkDecodeCallback reads batches of 1,000 results.
func BenchmarkDecodeCallback(b *testing.B) {
	results := make([]wire.CallbackRequest, 1000)
	for i := range results {
		results[i] = wire.CallbackRequest{LogID: int64(i + 1), LogDateTim: 1795216929140, HandleCode: 200, HandleMsg: "shard 1/3"}
	}
	body := wire.EncodeCallback(nil, wire.CallbackList, results)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.DecodeCallback(body); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRun hands runs over on loopback, in parallel, to a handler with tokens.
func BenchmarkRun(b *testing.B) {
	srv := httptest.NewServer(executorHandler(b, agreeable{}, guarded(b)))
	defer srv.Close()
	c := executorClient(b, srv.URL, wire.ClientConfig{App: "app", Token: token})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if r, err := c.Run(context.Background(), demoRun); err != nil || !r.OK() {
				b.Error(r, err)
			}
		}
	})
}

// agreeable accepts everything and remembers nothing.
type agreeable struct{ wire.Executor }

func (agreeable) Run(context.Context, wire.TriggerRequest) (wire.Return, error) {
	return wire.Success(), nil
}

// BenchmarkHandler serves requests of several sizes without a network.
func BenchmarkHandler(b *testing.B) {
	results := make([]wire.CallbackRequest, 1000)
	for i := range results {
		results[i] = wire.CallbackRequest{LogID: int64(i + 1), HandleCode: 200}
	}
	h := adminHandler(b, welcoming{}, guarded(b))
	for _, c := range []struct{ name, path, body string }{
		{"registry", "/api/registry", registration},
		{"callback-1", "/api/callback", string(wire.EncodeCallback(nil, wire.CallbackList, results[:1]))},
		{"callback-50", "/api/callback", string(wire.EncodeCallback(nil, wire.CallbackList, results[:50]))},
		{"callback-1000", "/api/callback", string(wire.EncodeCallback(nil, wire.CallbackList, results))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.body)))
			for b.Loop() {
				r, _ := http.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body))
				r.Header.Set(wire.HeaderToken, token)
				h.ServeHTTP(quiet{}, r)
			}
		})
	}
}

// welcoming takes everything and remembers nothing.
type welcoming struct{ wire.Admin }

func (welcoming) Registry(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (welcoming) Callback(context.Context, []wire.CallbackRequest) (wire.Return, error) {
	return wire.Success(), nil
}
