package interop_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// admin is an admin that agrees to everything and records it.
type admin struct {
	*front
	api http.Handler

	mu       sync.Mutex
	requests []request // guarded by mu
	gone     []string  // guarded by mu: registryValue of each registryRemove
	results  []result  // guarded by mu
}

// request is one as it came.
type request struct {
	at     time.Time
	path   string
	header http.Header
	body   string
}

// result is one that was reported.
type result struct {
	wire.CallbackRequest
	at time.Time
}

const (
	theToken = "interop-secret"
	theApp   = "interop-app"
)

func newAdmin(t *testing.T) *admin {
	t.Helper()
	keys, err := wire.NewKeyring(wire.Tokens{Apps: map[string][]string{theApp: {theToken}}})
	if err != nil {
		t.Fatal(err)
	}
	a := &admin{}
	if a.api, err = wire.NewAdminHandler(a, wire.HandlerConfig{Authorize: keys.Authorize}); err != nil {
		t.Fatal(err)
	}
	a.front = newFront(t, a)
	return a
}

// ServeHTTP records a request and answers it.
func (a *admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the peer has gone
	}
	a.mu.Lock()
	a.requests = append(a.requests, request{time.Now(), r.URL.Path, r.Header.Clone(), string(body)})
	a.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	a.api.ServeHTTP(w, r)
}

func (a *admin) Callback(_ context.Context, results []wire.CallbackRequest) (wire.Return, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range results {
		a.results = append(a.results, result{r, time.Now()})
	}
	return wire.Success(), nil
}

func (a *admin) Registry(context.Context, wire.RegistryRequest) (wire.Return, error) {
	return wire.Success(), nil
}

func (a *admin) RegistryRemove(_ context.Context, req wire.RegistryRequest) (wire.Return, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone = append(a.gone, req.RegistryValue)
	return wire.Success(), nil
}

// asked returns the requests so far whose path ends with an endpoint.
func (a *admin) asked(endpoint string) []request {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []request
	for _, r := range a.requests {
		if strings.HasSuffix(r.path, "/api/"+endpoint) {
			found = append(found, r)
		}
	}
	return found
}

// resultsOf returns the results of a run so far.
func (a *admin) resultsOf(run int64) []result {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []result
	for _, r := range a.results {
		if r.LogID == run {
			found = append(found, r)
		}
	}
	return found
}

// left returns the addresses that have left.
func (a *admin) left() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.gone...)
}
