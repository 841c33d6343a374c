package wire_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// guarded lets in those who know the token.
func guarded(t testing.TB) wire.HandlerConfig {
	t.Helper()
	ring, err := wire.NewKeyring(wire.Tokens{Apps: map[string][]string{"app": {token, token + "-new"}, "other": {"another-token"}}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(t)
	cfg.Authorize = ring.Authorize
	return cfg
}

// TestExecutorHandlerOrder goes through the checks in their order (docs/xxl-job.md,
// checks): each request has everything wrong that comes later, too.
func TestExecutorHandlerOrder(t *testing.T) {
	p := newPeer()
	h := executorHandler(t, p, guarded(t))
	for _, c := range []struct {
		name, method, path, token, app, body string
		want                                 wire.Return
	}{
		{"method", "GET", "/", "wrong", "", "x", wire.Failf(wire.MsgMethod)},
		{"method of a path", "PUT", "/run", "wrong", "", "x", wire.Failf(wire.MsgMethod)},
		{"path", "POST", "/", "wrong", "", "x", wire.Failf(wire.MsgURIEmpty)},
		{"token", "POST", "/nowhere", "wrong", "", "x", wire.Failf(wire.MsgTokenWrong)},
		{"no token", "POST", "/run", "", "", "x", wire.Failf(wire.MsgTokenWrong)},
		{"token of a beat", "POST", "/beat", "wrong", "", "", wire.Failf(wire.MsgTokenWrong)},
		{"token of another app", "POST", "/run", "another-token", "app", "x", wire.Failf(wire.MsgIdentityInvalid)},
		{"G4 token", "POST", "/run", "wrong", "app", "x", wire.Failf(wire.MsgIdentityInvalid)},
		{"G4 app", "POST", "/run", token, "nobody", "x", wire.Failf(wire.MsgIdentityInvalid)},
		{"G4 no token", "POST", "/run", "", "app", "x", wire.Failf(wire.MsgIdentityEmpty)},
		{"unknown", "POST", "/nowhere", token, "", "x", wire.Failf(wire.MsgURINotFound, "/nowhere")},
		{"unknown, with a query", "POST", "/nowhere?accessToken=secret", token, "", "x", wire.Failf(wire.MsgURINotFound, "/nowhere")},
		{"body", "POST", "/run", token, "", "", wire.Failf(wire.MsgRequestError, "the body is empty")},
		{"null", "POST", "/kill", token, "", "null", wire.Failf(wire.MsgRequestError, "the body is not understood: null where an object is expected")},
		{"no run id", "POST", "/run", token, "", `{"jobId":1}`, wire.Failf(wire.MsgRequestError, "logId is missing")},
		{"no job id", "POST", "/trigger", token, "", `{"logId":1}`, wire.Failf(wire.MsgRequestError, "jobId is missing")},
	} {
		r := httptest.NewRequest(c.method, "http://peer"+c.path, strings.NewReader(c.body))
		if c.token != "" {
			r.Header.Set("xxl-job-access-token", c.token)
		}
		if c.app != "" {
			r.Header.Set("xxl-job-appname", c.app)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := returned(t, w.Body.String()); w.Code != 200 || got != c.want {
			t.Errorf("%s: %d %+v, want %+v", c.name, w.Code, got, c.want)
		}
	}
	if p.count() != 0 {
		t.Errorf("the executor was asked %v", p.asked)
	}
}

func TestExecutorHandlerAnswers(t *testing.T) {
	for _, c := range []struct{ token, app string }{{token, ""}, {token + "-new", ""}, {token, "app"}} {
		p := newPeer()
		h := executorHandler(t, p, guarded(t))
		for _, path := range []string{"/beat", "/prefix/idleBeat", "/a/b/run", "/trigger/", "/kill?x=1", "/log"} {
			if r := returned(t, post(t, h, path, `{"jobId":1,"logId":2}`, wire.HeaderToken, c.token, wire.HeaderApp, c.app)); !r.OK() {
				t.Errorf("%s with %v: %+v", path, c, r)
			}
		}
		if p.count() != 6 {
			t.Errorf("asked %v", p.asked)
		}
		for _, from := range p.from {
			if want := (wire.Caller{App: "app", Scope: "app", Named: c.app != ""}); from != want {
				t.Errorf("with %v: caller %+v, want %+v", c, from, want)
			}
		}
	}
}

// TestRequireApp is what peers of G4 insist on.
func TestRequireApp(t *testing.T) {
	cfg := guarded(t)
	cfg.RequireApp = true
	h := executorHandler(t, newPeer(), cfg)
	for _, c := range []struct {
		token, app string
		want       string
	}{
		{token, "", wire.MsgIdentityEmpty}, {"", "app", wire.MsgIdentityEmpty}, {"", "", wire.MsgIdentityEmpty}, {" ", "app", wire.MsgIdentityEmpty},
		{"wrong", "app", wire.MsgIdentityInvalid}, {token, "wrong", wire.MsgIdentityInvalid}, {token, "app", wire.MsgSuccess},
	} {
		if got := returned(t, post(t, h, "/beat", "", wire.HeaderToken, c.token, wire.HeaderApp, c.app)); got.Msg != c.want {
			t.Errorf("token %q, app %q: %+v, want %q", c.token, c.app, got, c.want)
		}
	}
}

// TestMalformedRequests sends what is malformed to both sides: all are
// answered, in words, and nothing is done.
func TestMalformedRequests(t *testing.T) {
	p := newPeer()
	executor, admin := executorHandler(t, p, config(t)), adminHandler(t, jobPeer{p}, config(t))
	for name, in := range malformed {
		for _, path := range []string{"/run", "/trigger", "/idleBeat", "/kill"} {
			got := returned(t, post(t, executor, path, in))
			if got.Code != wire.CodeFail || !strings.HasPrefix(got.Msg, "request error:") {
				t.Errorf("%s: %s: %+v", name, path, got)
			}
		}
		in = strings.NewReplacer("jobId", "id", `job\u0049d`, `\u0069d`).Replace(in)
		for _, path := range []string{"updateJob", "removeJob", "startJob", "stopJob", "triggerJob"} {
			got := returned(t, post(t, admin, "/api/"+path, in))
			if got.Code != wire.CodeFail || got.Msg != wire.MsgBodyEmpty && !strings.HasPrefix(got.Msg, "openapi invoke error: ") {
				t.Errorf("%s: %s: %+v", name, path, got)
			}
		}
	}
	for _, path := range []string{"/run", "/idleBeat", "/kill", "/log"} {
		for _, in := range []string{"null", "[]", `"x"`, `{"logId":{},"jobId":{}}`, `{"logId":1} {}`} {
			if got := returned(t, post(t, executor, path, in)); got.Code != wire.CodeFail || !strings.HasPrefix(got.Msg, "request error:") {
				t.Errorf("%s: %s: %+v", path, in, got)
			}
		}
	}
	if p.count() != 0 {
		t.Errorf("asked %v", p.asked)
	}
}

func TestBodyLimits(t *testing.T) {
	p := newPeer()
	executor, admin := executorHandler(t, p, config(t)), adminHandler(t, p, config(t))
	fill := func(head string, n int) string { return head + strings.Repeat("x", n-len(head)-3) + `"` }
	for _, c := range []struct {
		h     http.Handler
		path  string
		body  string
		limit int
	}{
		{executor, "/run", fill(`{"jobId":1,"logId":2,"executorParams":"`, 5<<20) + "}", 5 << 20},
		{admin, "/api/registry", fill(`{"registryGroup":"EXECUTOR","registryKey":"a","registryValue":"`, 1<<20) + "}", 1 << 20},
		{admin, "/api/callback", fill(`[{"logId":1,"handleMsg":"`, 4<<20) + "}]", 4 << 20},
	} {
		before := p.count()
		if got := returned(t, post(t, c.h, c.path, c.body)); !got.OK() {
			t.Errorf("%s: %d bytes: %+v", c.path, len(c.body), got)
		}
		got := returned(t, post(t, c.h, c.path, c.body+"    "))
		if got.Code != wire.CodeFail || !strings.Contains(got.Msg, "longer than") {
			t.Errorf("%s: more: %+v", c.path, got)
		}
		if got := returned(t, post(t, c.h, c.path, strings.Repeat(" ", c.limit+1))); got.Code != wire.CodeFail {
			t.Errorf("%s: blanks: %+v", c.path, got)
		}
		if n := p.count() - before; n != 1 {
			t.Errorf("%s: asked %d times", c.path, n)
		}
	}
	cfg := config(t)
	cfg.MaxBody = 10
	if got := returned(t, post(t, executorHandler(t, p, cfg), "/kill", `{"jobId":12}`)); !strings.Contains(got.Msg, "longer than 10 bytes") {
		t.Errorf("MaxBody: %+v", got)
	}
}

// TestTroubleInside has a panic and an error of the implementation: the log
// knows, and the peer does not.
func TestTroubleInside(t *testing.T) {
	for name, p := range map[string]*peer{"panic": {boom: "secret of the host"}, "error": {err: errors.New("secret of the host")}} {
		var log bytes.Buffer
		cfg := wire.HandlerConfig{Authorize: wire.Insecure, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		executor, admin := executorHandler(t, p, cfg), adminHandler(t, jobPeer{p}, cfg)
		for path, h := range map[string]http.Handler{"/beat": executor, "/run": executor, "/log": executor, "/api/callback": admin, "/api/registry": admin, "/api/addJob": admin} {
			log.Reset()
			in := `{"jobId":1,"logId":2,"registryGroup":"EXECUTOR","registryKey":"k","registryValue":"v","callbackList":[{"logId":1}]}`
			got := returned(t, post(t, h, path, in, wire.HeaderToken, token))
			if got.Code != wire.CodeFail || !strings.HasSuffix(got.Msg, "internal error") {
				t.Errorf("%s: %s: %+v", name, path, got)
			}
			if s := log.String(); !strings.Contains(s, "secret of the host") || strings.Contains(s, token) {
				t.Errorf("%s: %s: logged %q", name, path, s)
			}
		}
	}
}

// TestAbort lets through the panic by which a handler of net/http ends a
// connection.
func TestAbort(t *testing.T) {
	h := executorHandler(t, &peer{boom: http.ErrAbortHandler}, config(t))
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("recovered %v", p)
		}
	}()
	post(t, h, "/beat", "")
}

func TestHandlersWithoutAuthorize(t *testing.T) {
	if _, err := wire.NewExecutorHandler(newPeer(), wire.HandlerConfig{}); err == nil || !strings.Contains(err.Error(), "Insecure") {
		t.Errorf("executor: %v", err)
	}
	if _, err := wire.NewAdminHandler(newPeer(), wire.HandlerConfig{}); err == nil || !strings.Contains(err.Error(), "Insecure") {
		t.Errorf("admin: %v", err)
	}
	if _, err := wire.NewExecutorHandler(nil, config(t)); err == nil {
		t.Error("no executor: no error")
	}
	if _, err := wire.NewAdminHandler(nil, config(t)); err == nil {
		t.Error("no admin: no error")
	}
	if _, err := wire.NewAdminHandler(newPeer(), wire.HandlerConfig{Authorize: wire.Insecure, MaxBody: -1}); err == nil {
		t.Error("a negative limit: no error")
	}
	if _, err := wire.NewAdminHandler(newPeer(), wire.HandlerConfig{Authorize: wire.Insecure, MinBodyRate: -1}); err == nil {
		t.Error("a negative rate: no error")
	}
}
