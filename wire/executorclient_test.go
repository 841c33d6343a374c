package wire_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// TestExecutorClientRequests has what is sent, to the byte.
func TestExecutorClientRequests(t *testing.T) {
	srv := serveText(t, `{"code":200}`)
	c := executorClient(t, srv.URL+"/base", wire.ClientConfig{App: "app", Token: token})
	ctx := t.Context()
	c.Beat(ctx)
	c.IdleBeat(ctx, wire.IdleBeatRequest{JobID: 7})
	c.Run(ctx, demoRun)
	c.Kill(ctx, wire.KillRequest{JobID: 7})
	c.Log(ctx, wire.LogRequest{LogDateTim: 5, LogID: 6, FromLineNum: 1})
	sent := srv.requests()
	for i, want := range []request{
		{path: "/base/beat", body: `""`}, // trap 4: every executor takes it
		{path: "/base/idleBeat", body: `{"jobId":7}`},
		{path: "/base/run", body: body(t, "run-3.4.2")},
		{path: "/base/kill", body: `{"jobId":7}`},
		{path: "/base/log", body: `{"logDateTim":5,"logId":6,"fromLineNum":1,"logDateTime":5}`}, // trap 1
	} {
		if i >= len(sent) {
			t.Fatalf("%d requests", len(sent))
		}
		got := sent[i]
		if got.path != want.path || got.body != want.body {
			t.Errorf("sent %s %s, want %s %s", got.path, got.body, want.path, want.body)
		}
		for name, value := range map[string]string{
			wire.HeaderToken: token, wire.HeaderApp: "app", "Content-Type": "application/json;charset=UTF-8",
			"Content-Length": "", "Accept-Encoding": "", "Expect": "",
		} {
			if name != "Content-Length" && got.header.Get(name) != value {
				t.Errorf("%s: header %s is %q, want %q", got.path, name, got.header.Get(name), value)
			}
		}
		if got.header.Get("Transfer-Encoding") != "" || got.header.Get("Content-Length") == "0" {
			t.Errorf("%s: %v", got.path, got.header)
		}
	}
}

// TestEmptyToken says that the header is there without a token: admins of 3.3.0
// insist on it.
func TestEmptyToken(t *testing.T) {
	srv := serveText(t, `{"code":200}`)
	executorClient(t, srv.URL, wire.ClientConfig{}).Beat(t.Context())
	got := srv.requests()[0].header
	if v, ok := got[http.CanonicalHeaderKey(wire.HeaderToken)]; !ok || v[0] != "" {
		t.Errorf("headers %v", got)
	}
	if _, ok := got[http.CanonicalHeaderKey(wire.HeaderApp)]; ok {
		t.Errorf("headers %v", got)
	}
}

// TestOutcomes is promise P6: what an answer says is accepted or refused, and
// everything else is unknown.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int
		answer  string
		want    wire.Return
		unknown bool
	}{
		{"accepted", 200, `{"code":200}`, wire.Return{Code: 200}, false},
		{"accepted as text", 200, `{"code":"200","msg":null}`, wire.Return{Code: 200}, false},
		{"refused", 200, `{"code":500,"msg":"no"}`, wire.Failf("no"), false},
		{"refused by an odd code", 200, `{"code":7}`, wire.Return{Code: 7}, false},
		{"code zero", 200, `{}`, wire.Return{}, false},
		{"xxl-rpc", 200, "\x43\x30\x22com.xxl.rpc.remoting.net.params.XxlRpcResponse\x94", wire.Failf(wire.MsgOldExecutor), false},
		{"empty", 200, "", wire.Return{}, true},
		{"null", 200, "null", wire.Return{}, true},
		{"list", 200, "[]", wire.Return{}, true},
		{"page", 200, "<html>welcome</html>", wire.Return{}, true},
		{"object for a note", 200, `{"code":200,"content":{}}`, wire.Return{}, true},
		{"not found", 404, `{"code":200}`, wire.Return{}, true},
		{"bad gateway", 502, `{"code":200}`, wire.Return{}, true},
		{"created", 201, `{"code":200}`, wire.Return{}, true},
		{"redirect", 302, `{"code":200}`, wire.Return{}, true},
	} {
		srv := serve(t, func(w http.ResponseWriter, _ string, _ int) { w.WriteHeader(c.status); io.WriteString(w, c.answer) })
		client := executorClient(t, srv.URL, wire.ClientConfig{Token: token})
		got, err := client.Run(t.Context(), demoRun)
		if got != c.want || (err != nil) != c.unknown {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		if n := len(srv.requests()); n != 1 {
			t.Errorf("%s: sent %d times", c.name, n)
		}
		if !c.unknown {
			continue
		}
		call := callError(t, err)
		if !call.Sent || wire.NotSent(err) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %#v", c.name, call)
		}
		if c.status != 200 && call.Status != c.status {
			t.Errorf("%s: status %d", c.name, call.Status)
		}
		if c.status == 200 && call.Text != c.answer {
			t.Errorf("%s: text %q", c.name, call.Text)
		}
		if _, err := client.Log(t.Context(), wire.LogRequest{}); err == nil && c.status != 200 {
			t.Errorf("%s: log: no error", c.name)
		}
	}
}

// TestNotSent has calls that certainly reach nobody.
func TestNotSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = executorClient(t, "http://"+l.Addr().String(), wire.ClientConfig{}).Run(t.Context(), demoRun)
	if !wire.NotSent(err) {
		t.Errorf("nobody listens: %v", err)
	}

	srv := serveText(t, `{"code":200}`)
	refused := errors.New("not there")
	transport := wire.NewTransport(wire.TransportConfig{AllowIP: func(to netip.AddrPort) error {
		if to.Addr().IsLoopback() {
			return refused
		}
		return nil
	}})
	_, err = executorClient(t, srv.URL, wire.ClientConfig{Transport: transport}).Run(t.Context(), demoRun)
	if !wire.NotSent(err) || !errors.Is(err, refused) || len(srv.requests()) != 0 {
		t.Errorf("not allowed: %v", err)
	}

	for _, addr := range []string{"http://169.254.169.254/", "http://[fe80::1]/", "http://0.0.0.0:9999/", "http://[::ffff:169.254.169.254]/"} {
		_, err = executorClient(t, addr, wire.ClientConfig{Token: token}).Run(t.Context(), demoRun)
		if !wire.NotSent(err) || !strings.Contains(err.Error(), "no address of a peer") {
			t.Errorf("%s: %v", addr, err)
		}
	}

	secure := httptest.NewUnstartedServer(http.NotFoundHandler()) // whose certificate nobody knows
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	_, err = executorClient(t, secure.URL, wire.ClientConfig{Token: token}).Run(t.Context(), demoRun)
	if !wire.NotSent(err) {
		t.Errorf("unknown certificate: %v", err)
	}
	if wire.NotSent(nil) || wire.NotSent(io.EOF) {
		t.Error("NotSent of what is no CallError")
	}
}

// TestTLS has a peer of https, whose outcomes are told apart just so.
func TestTLS(t *testing.T) {
	n := 0
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 2 {
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
		io.WriteString(w, `{"code":200}`)
	}))
	defer secure.Close()
	transport := wire.NewTransport(wire.TransportConfig{TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig})
	c := executorClient(t, secure.URL, wire.ClientConfig{Transport: transport})
	if r, err := c.Run(t.Context(), demoRun); err != nil || !r.OK() {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := c.Run(t.Context(), demoRun); err == nil || wire.NotSent(err) {
		t.Errorf("aborted: %v", err)
	}
	if r, err := c.Run(t.Context(), demoRun); err != nil || !r.OK() || n != 3 {
		t.Errorf("%+v, %v, %d requests", r, err, n)
	}
}

// TestRedirect says that neither a run nor a token goes where a peer points.
func TestRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		elsewhere := serveText(t, `{"code":200}`)
		srv := serve(t, func(w http.ResponseWriter, _ string, _ int) {
			w.Header().Set("Location", elsewhere.URL+"/run")
			w.WriteHeader(status)
		})
		_, err := executorClient(t, srv.URL, wire.ClientConfig{Token: token}).Run(t.Context(), demoRun)
		if call := callError(t, err); call.Status != status || len(elsewhere.requests()) != 0 || len(srv.requests()) != 1 {
			t.Errorf("%d: %v, %d requests elsewhere", status, err, len(elsewhere.requests()))
		}
	}
}

// TestNoProxy says that the environment does not lead calls elsewhere.
func TestNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://proxy.invalid:3128")
	t.Setenv("http_proxy", "http://proxy.invalid:3128")
	var dialled []string
	transport := wire.NewTransport(wire.TransportConfig{DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
		dialled = append(dialled, addr)
		return nil, errors.New("no network")
	}})
	_, err := executorClient(t, "http://executor.invalid:9999/", wire.ClientConfig{Transport: transport}).Beat(t.Context())
	if !wire.NotSent(err) || len(dialled) != 1 || dialled[0] != "executor.invalid:9999" {
		t.Errorf("%v, connected to %v", err, dialled)
	}
}

// TestLongAnswer says that an answer is read up to a bound.
func TestLongAnswer(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, _ string, _ int) {
		io.WriteString(w, `{"code":200,"msg":"`)
		line := strings.Repeat("x", 32<<10)
		for {
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
	})
	c := executorClient(t, srv.URL, wire.ClientConfig{MaxAnswer: 64 << 10, MaxLog: 128 << 10})
	_, err := c.Run(t.Context(), demoRun)
	if call := callError(t, err); !call.Sent || len(call.Text) > 500 || !strings.Contains(err.Error(), "longer than 65536 bytes") {
		t.Errorf("%v", err)
	}
	if _, err := c.Log(t.Context(), wire.LogRequest{}); err == nil || !strings.Contains(err.Error(), "longer than 131072 bytes") {
		t.Errorf("%v", err)
	}
}

// TestG4ExecutorIsFoundOut has an executor of G4, which knows no /run, and is
// then called at /trigger; and one that is replaced by an older one.
func TestG4ExecutorIsFoundOut(t *testing.T) {
	knows := "/trigger"
	srv := serve(t, func(w http.ResponseWriter, path string, _ int) {
		r := wire.Success()
		if path != knows {
			r = wire.Failf(wire.MsgURINotFound, path)
		}
		w.Write(r.Encode(nil))
	})
	c := executorClient(t, srv.URL, wire.ClientConfig{})
	run := func() {
		t.Helper()
		if r, err := c.Run(t.Context(), demoRun); err != nil || !r.OK() {
			t.Errorf("%+v, %v", r, err)
		}
	}
	run()
	run()
	knows = "/run"
	run()
	run()
	if got := srv.paths(); got != "/run /trigger /trigger /trigger /run /run" {
		t.Errorf("called %s", got)
	}
	for _, sent := range srv.requests() {
		if sent.body != body(t, "run-3.4.2") {
			t.Errorf("%s: %s", sent.path, sent.body)
		}
	}
	knows = "nothing"
	if r, err := c.Run(t.Context(), demoRun); err != nil || r != wire.Failf(wire.MsgURINotFound, "/run") {
		t.Errorf("neither: %+v, %v", r, err)
	}
}

// TestConcurrentCalls has many goroutines share one client.
func TestConcurrentCalls(t *testing.T) {
	p := newPeer()
	srv := httptest.NewServer(executorHandler(t, p, guarded(t)))
	defer srv.Close()
	c := executorClient(t, srv.URL, wire.ClientConfig{App: "app", Token: token, Timeout: time.Minute})
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			for j := range 20 {
				if r, err := c.Run(t.Context(), runOf(int64(20*i+j+1))); err != nil || !r.OK() {
					t.Errorf("%+v, %v", r, err)
				}
			}
		})
	}
	calls.Wait()
	seen := map[int64]int{}
	for _, asked := range p.asked {
		seen[asked.(wire.TriggerRequest).LogID]++
	}
	if len(seen) != 400 || p.count() != 400 {
		t.Errorf("%d runs arrived %d times", len(seen), p.count())
	}
}

func TestNewClientsRefuse(t *testing.T) {
	for _, c := range []struct {
		addr string
		cfg  wire.ClientConfig
	}{
		{"10.0.0.1:9999", wire.ClientConfig{}},
		{"http://user:word@h/", wire.ClientConfig{}},
		{"http://h/", wire.ClientConfig{Token: "to\r\nken"}},
		{"http://h/", wire.ClientConfig{Token: "token "}},
		{"http://h/", wire.ClientConfig{App: "a\x00"}},
	} {
		_, err1 := wire.NewExecutorClient(c.addr, c.cfg)
		_, err2 := wire.NewAdminClient(c.addr, c.cfg)
		if err1 == nil || err2 == nil || strings.Contains(err1.Error(), "word") || strings.Contains(err1.Error(), "ken\"") {
			t.Errorf("%+v: %v, %v", c, err1, err2)
		}
	}
}

// TestGeneration: what a client has seen of an executor, answer by answer.
func TestGeneration(t *testing.T) {
	answers := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known {
			answer = `{"code":500,"msg":"invalid request, uri-mapping(` + r.URL.Path + `) not found."}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	c, err := wire.NewExecutorClient(server.URL, wire.ClientConfig{Transport: wire.NewTransport(wire.TransportConfig{})})
	if err != nil {
		t.Fatal(err)
	}
	run := func() { _, err = c.Run(t.Context(), wire.TriggerRequest{}) }
	log := func() { _, err = c.Log(t.Context(), wire.LogRequest{}) }
	idle := func() { _, err = c.IdleBeat(t.Context(), wire.IdleBeatRequest{LogID: 1}) }
	const ok, lines = `{"code":200}`, `{"fromLineNum":1,"toLineNum":1,"logContent":"a\n","isEnd":true}`
	for _, step := range []struct {
		call   func()
		at     string
		answer string
		want   string
	}{
		{run, "/nowhere", ok, ""},
		{run, "/run", ok, "2.2 to 3.4"},
		{log, "/log", `{"code":200,"data":` + lines + `}`, "3.3 or 3.4"},
		{log, "/log", `{"code":200,"content":` + lines + `}`, "2.2 to 3.2"},
		{log, "/log", `{"code":200,"content":` + lines + `,"data":` + lines + `}`, "2.2 to 3.2"},
		{idle, "/idleBeat", `{"code":200,"bootId":"boot"}`, "xxljob"},
		{idle, "/idleBeat", ok, "2.2 to 3.2"},
		{run, "/trigger", ok, "2.2 to 3.2"}, // it knows both
	} {
		answers[step.at] = step.answer
		if step.call(); err != nil {
			t.Errorf("%s: %v", step.at, err)
		}
		if got := c.Generation(); got != step.want {
			t.Errorf("after %s %s: %q, want %q", step.at, strings.TrimSpace(step.answer), got, step.want)
		}
	}
	delete(answers, "/run") // the next release took its place
	if run(); err != nil || c.Generation() != "3.5" {
		t.Errorf("after an update: %q, %v", c.Generation(), err)
	}
}
