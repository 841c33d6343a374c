package stage

// Schedulers over real connections, and requests to their handlers.

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// Token is the token of the tests.
const Token = "hush-hush"

// OverHTTP starts a scheduler on a store of its own, whose Handler is served on a port, and
// returns the address of its admin. It is stopped at the end of the test.
func OverHTTP(t *testing.T, cfg xxljob.Config) (s xxljob.Scheduler, st xxljob.Store, admin string) {
	t.Helper()
	st = memory.New()
	s, admin = OverHTTPWith(t, st, cfg)
	return s, st, admin
}

// OverHTTPWith starts one on a given store.
func OverHTTPWith(t *testing.T, st xxljob.Store, cfg xxljob.Config) (s xxljob.Scheduler, admin string) {
	t.Helper()
	cfg.App = cmp.Or(cfg.App, "here")
	cfg.HTTP.Tokens, cfg.Logger = map[string][]string{"": {Token}}, QuietLog()
	s, err := xxljob.New(st, cfg)
	Must(t, err)
	h, err := s.AdminHandler()
	Must(t, err)
	mux := http.NewServeMux() // the host's own
	mux.Handle("/jobs/", http.StripPrefix("/jobs", h))
	server := httptest.NewServer(mux)
	Must(t, s.Start(context.Background()))
	t.Cleanup(func() { _ = s.Stop(context.Background()); server.Close() })
	return s, server.URL + "/jobs/xxl-job-admin"
}

// RegisterOver registers an address by a real client, which it returns.
func RegisterOver(t *testing.T, admin, app, address string) *wire.AdminClient {
	t.Helper()
	c, err := wire.NewAdminClient(admin, wire.ClientConfig{App: app, Token: Token})
	Must(t, err)
	ret, err := c.Registry(t.Context(), wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: app, RegistryValue: address})
	if err != nil || !ret.OK() {
		t.Fatalf("registry: %+v, %v", ret, err)
	}
	return c
}

// Message is a message of the wire.
type Message interface{ Encode([]byte) []byte }

// Post sends a request to a scheduler's Handler, and returns what that answers.
func Post(t testing.TB, h http.Handler, token, app, endpoint string, body []byte) wire.Return {
	t.Helper()
	req := httptest.NewRequest(http.MethodPost, "/api/"+endpoint, bytes.NewReader(body))
	req.Header.Set(wire.HeaderToken, token)
	if app != "" {
		req.Header.Set(wire.HeaderApp, app)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	if rec.Code != http.StatusOK {
		t.Errorf("%s: HTTP status %d", endpoint, rec.Code)
	}
	var ret wire.Return
	if err := ret.Decode(rec.Body.Bytes()); err != nil {
		t.Errorf("%s: %v: %s", endpoint, err, rec.Body)
	}
	return ret
}

// Manage calls one of the verbs that manage jobs, as G4 does.
func Manage(t *testing.T, h http.Handler, app, verb string, msg Message) wire.Return {
	t.Helper()
	return Post(t, h, "of-"+app, app, verb, msg.Encode(nil))
}
