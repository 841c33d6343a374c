package wire_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// The tests below are named after the traps of XXL-JOB's protocol, as far as
// they concern the wire. docs/xxl-job.md has the facts behind them.

func TestTrap1TwoSpellingsOfTheDate(t *testing.T) {
	p := newPeer()
	executor, admin := executorHandler(t, p, config(t)), adminHandler(t, p, config(t))
	for _, key := range []string{"logDateTim", "logDateTime"} {
		post(t, executor, "/log", `{"logId":1,"`+key+`":1700000000123}`)
		if got := p.last().(wire.LogRequest).LogDateTim; got != 1700000000123 {
			t.Errorf("log, %s: %d", key, got)
		}
		post(t, admin, "/api/callback", `[{"logId":1,"`+key+`":1700000000123}]`)
		if got := p.last().([]wire.CallbackRequest)[0].LogDateTim; got != 1700000000123 {
			t.Errorf("callback, %s: %d", key, got)
		}
	}
	post(t, executor, "/run", `{"jobId":1,"logId":1,"logDateTime":1700000000123}`)
	if got := p.last().(wire.TriggerRequest).LogDateTime; got != 1700000000123 {
		t.Errorf("run: %d", got)
	}
	post(t, executor, "/log", `{"logId":1,"logDateTim":0,"logDateTime":5}`)
	if got := p.last().(wire.LogRequest).LogDateTim; got != 5 {
		t.Errorf("both spellings: %d", got)
	}
}

func TestTrap2PayloadUnderEitherKey(t *testing.T) {
	for _, in := range []string{`{"code":200,"content":"x"}`, `{"code":200,"data":"x"}`, `{"code":200,"content":null,"data":"x"}`, `{"code":200,"content":"x","data":null}`} {
		if got := returned(t, in).Note(); got != "x" {
			t.Errorf("%s: %q", in, got)
		}
	}
	for _, in := range []string{`{"code":200,"content":{"toLineNum":2},"data":null}`, `{"code":200,"data":{"toLineNum":2},"content":{"toLineNum":9}}`,
		`{"code":200,"content":{"toLineNum":9},"data":{"toLineNum":2}}`} {
		var r wire.LogReturn
		if err := r.Decode([]byte(in)); err != nil || r.Result.ToLineNum != 2 {
			t.Errorf("%s: %+v, %v", in, r, err)
		}
	}
}

func TestTrap3IsEnd(t *testing.T) {
	var r wire.LogReturn
	if err := r.Decode([]byte(`{"code":200,"data":{"end":true}}`)); err != nil || r.Result.IsEnd {
		t.Errorf("%+v, %v", r, err)
	}
	if err := r.Decode([]byte(`{"code":200,"data":{"isEnd":true}}`)); err != nil || !r.Result.IsEnd {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestTrap4BeatWithAnyBody(t *testing.T) {
	srv := httptest.NewServer(executorHandler(t, newPeer(), config(t)))
	defer srv.Close()
	for name, rest := range map[string]string{
		"quotes":    "Content-Length: 2\r\n\r\n\"\"",
		"nothing":   "Content-Length: 0\r\n\r\n",
		"no length": "\r\n",
		"object":    "Content-Length: 2\r\n\r\n{}",
		"chunks":    "Transfer-Encoding: chunked\r\n\r\n2\r\n\"\"\r\n0\r\n\r\n",
	} {
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST /beat HTTP/1.1\r\nHost: h\r\nConnection: close\r\n%s", rest)
		b, _ := io.ReadAll(c)
		c.Close()
		if !strings.HasPrefix(string(b), "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(string(b), `{"code":200,"msg":"Success"}`) {
			t.Errorf("%s: %q", name, b)
		}
	}
}

func TestTrap5AnswersAsHTML(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, _ string, _ int) {
		w.Header().Set("Content-Type", "text/html;charset=UTF-8")
		io.WriteString(w, `{"code":200}`)
	})
	if r, err := executorClient(t, srv.URL, wire.ClientConfig{}).Run(t.Context(), demoRun); err != nil || !r.OK() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestTrap6And7AlwaysStatus200 asks for all kinds of things with a real server
// and a client that would follow a redirect.
func TestTrap6And7AlwaysStatus200(t *testing.T) {
	for _, h := range []http.Handler{executorHandler(t, newPeer(), guarded(t)), adminHandler(t, newPeer(), guarded(t))} {
		srv := httptest.NewServer(h)
		defer srv.Close()
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "X"} {
			for _, path := range []string{"/", "/run", "/run/", "/run?x=1", "/beat/", "//run", "/api", "/api/", "/api/callback", "/api/nowhere", "/a/../run", "/%2e%2e/run"} {
				r, err := http.NewRequest(method, srv.URL+path, strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set(wire.HeaderToken, "wrong")
				resp, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if got := returned(t, string(b)); resp.StatusCode != 200 || got.Code != wire.CodeFail || got.Msg == "" {
					t.Errorf("%s %s: %d %s", method, path, resp.StatusCode, b)
				}
			}
		}
	}
}

// TestTrap9SameRunTwice says that the wire lets a repeated id through to the
// executor, which knows what to do about it.
func TestTrap9SameRunTwice(t *testing.T) {
	p := newPeer()
	h := executorHandler(t, p, config(t))
	post(t, h, "/run", body(t, "run-3.4.2"))
	post(t, h, "/trigger", body(t, "run-3.4.2"))
	if p.count() != 2 || p.asked[0] != p.asked[1] {
		t.Errorf("asked %v", p.asked)
	}
}

func TestTrap10HandleCode(t *testing.T) {
	for in, want := range map[string]wire.CallbackRequest{
		`{"logId":1}`:                                {LogID: 1},
		`{"logId":1,"handleCode":0}`:                 {LogID: 1},
		`{"logId":1,"handleCode":null}`:              {LogID: 1},
		`{"logId":1,"executeResult":null}`:           {LogID: 1},
		`{"logId":1,"executeResult":{"code":200}}`:   {LogID: 1, HandleCode: 200},
		`{"logId":1,"executeResult":{"code":"500"}}`: {LogID: 1, HandleCode: 500},
		`{"logId":1,"executeResult":{"msg":"x"}}`:    {LogID: 1, HandleMsg: "x"},
		`{"logId":1,"handleCode":7}`:                 {LogID: 1, HandleCode: 7},
		`{"logId":1,"handleCode":0,"handleMsg":"m","executeResult":{"code":500,"msg":"x"}}`:   {LogID: 1, HandleCode: 500, HandleMsg: "m"},
		`{"logId":1,"handleCode":500,"handleMsg":"m","executeResult":{"code":200,"msg":"x"}}`: {LogID: 1, HandleCode: 500, HandleMsg: "m"},
		`{"executeResult":{"code":200,"msg":"x","content":null},"logId":1,"handleCode":0}`:    {LogID: 1, HandleCode: 200, HandleMsg: "x"},
	} {
		got, err := wire.DecodeCallback([]byte("[" + in + "]"))
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v, %v, want %+v", in, got, err, want)
		}
	}
}

func TestTrap12LargeBatches(t *testing.T) {
	p := newPeer()
	h := adminHandler(t, p, config(t))
	var b strings.Builder
	for i := range 900 { // as an executor up to 3.4.0 sends after an outage
		fmt.Fprintf(&b, `,{"logId":%d,"logDateTim":1,"handleCode":200,"handleMsg":"%s"}`, i%800+1, strings.Repeat("m", 2000))
	}
	if got := returned(t, post(t, h, "/api/callback", "["+b.String()[1:]+"]")); !got.OK() || len(p.last().([]wire.CallbackRequest)) != 900 {
		t.Errorf("%+v", got)
	}
}

func TestTrap20NullParams(t *testing.T) {
	p := newPeer()
	h := executorHandler(t, p, config(t))
	for _, params := range []string{"", `,"executorParams":null`, `,"executorParams":""`} {
		post(t, h, "/run", `{"jobId":1,"logId":2`+params+`}`)
		if got := p.last().(wire.TriggerRequest); got != (wire.TriggerRequest{JobID: 1, LogID: 2}) {
			t.Errorf("%s: %+v", params, got)
		}
	}
}

func TestTrap24CodeOfAnEmptyAnswer(t *testing.T) {
	srv := serveText(t, "{}")
	if r, err := executorClient(t, srv.URL, wire.ClientConfig{}).Run(t.Context(), demoRun); err != nil || r.OK() || r.Code != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestTrap28Widths(t *testing.T) {
	var r wire.TriggerRequest
	if err := r.Decode([]byte(`{"jobId":2147483647,"logId":9223372036854775807,"logDateTime":9007199254740993}`)); err != nil ||
		r.JobID != 1<<31-1 || r.LogID != 1<<63-1 || r.LogDateTime != 1<<53+1 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, key := range []string{"jobId", "executorTimeout", "broadcastIndex", "broadcastTotal"} {
		if err := r.Decode([]byte(`{"` + key + `":2147483648}`)); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s of 33 bits: %v", key, err)
		}
	}
}

func TestTrap30NothingToKill(t *testing.T) {
	p := newPeer()
	p.ret = wire.Noted(wire.MsgAlreadyKilled)
	srv := httptest.NewServer(executorHandler(t, p, config(t)))
	defer srv.Close()
	r, err := executorClient(t, srv.URL, wire.ClientConfig{}).Kill(t.Context(), wire.KillRequest{JobID: 1})
	if err != nil || !r.OK() || r.Msg != wire.MsgAlreadyKilled || r.Content != wire.MsgAlreadyKilled || r.Data != wire.MsgAlreadyKilled {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestTrap33OldExecutorsAreTold(t *testing.T) {
	h := adminHandler(t, newPeer(), guarded(t))
	if got := returned(t, post(t, h, "/api/registry", registration, "XXL-RPC-ACCESS-TOKEN", token)); got.Msg != wire.MsgOldExecutor {
		t.Errorf("%+v", got)
	}
}

// TestTrap34BothHeaders is the executor of G4, which insists on both headers: our
// client sends them, and the refusal of one whose settings differ is a refusal.
func TestTrap34BothHeaders(t *testing.T) {
	cfg := guarded(t)
	cfg.RequireApp = true
	srv := httptest.NewServer(executorHandler(t, newPeer(), cfg))
	defer srv.Close()
	if r, err := executorClient(t, srv.URL, wire.ClientConfig{App: "app", Token: token}).Run(t.Context(), demoRun); err != nil || !r.OK() {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := executorClient(t, srv.URL, wire.ClientConfig{Token: token}).Run(t.Context(), demoRun); err != nil || r.Msg != wire.MsgIdentityEmpty {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := executorClient(t, srv.URL, wire.ClientConfig{App: "app", Token: "x"}).Run(t.Context(), demoRun); err != nil || r.Msg != wire.MsgIdentityInvalid {
		t.Errorf("%+v, %v", r, err)
	}
}
