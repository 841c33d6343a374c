package wire_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

const registration = `{"registryGroup":"EXECUTOR","registryKey":"app","registryValue":"http://a:1/"}`

// TestAdminHandlerOrder goes through the checks in their order, as
// TestExecutorHandlerOrder does.
func TestAdminHandlerOrder(t *testing.T) {
	p := newPeer()
	h := adminHandler(t, p, guarded(t))
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		want                     wire.Return
	}{
		{"method", "GET", "/api/", "", nil, wire.Failf(wire.MsgMethod)},
		{"path", "POST", "/api/", "", nil, wire.Failf(wire.MsgURIEmpty)},
		{"path without a slash", "POST", "/xxl-job-admin/api", "", nil, wire.Failf(wire.MsgURIEmpty)},
		{"body", "POST", "/api/registry", "", nil, wire.Failf(wire.MsgBodyEmpty)},
		{"blank body", "POST", "/api/nowhere", "  \r\n", nil, wire.Failf(wire.MsgBodyEmpty)},
		{"token", "POST", "/api/nowhere", "x", nil, wire.Failf(wire.MsgTokenWrong)},
		{"G4 token", "POST", "/api/nowhere", "x", []string{wire.HeaderApp, "app", wire.HeaderToken, "wrong"}, wire.Failf(wire.MsgIdentityInvalid)},
		{"G4 without a token", "POST", "/api/nowhere", "x", []string{wire.HeaderApp, "app"}, wire.Failf(wire.MsgIdentityEmpty)},
		{"G0", "POST", "/api/registry", "x", []string{"XXL-RPC-ACCESS-TOKEN", token}, wire.Failf(wire.MsgOldExecutor)},
		{"unknown", "POST", "/api/nowhere", "x", []string{wire.HeaderToken, token}, wire.Failf(wire.MsgURINotFound, "nowhere")},
		{"no job management", "POST", "/api/addJob", "{}", []string{wire.HeaderToken, token}, wire.Failf(wire.MsgURINotFound, "addJob")},
		{"incomplete", "POST", "/api/registry", `{"registryGroup":" "}`, []string{wire.HeaderToken, token}, wire.Failf(wire.MsgIllegalArgument)},
		{"another app", "POST", "/api/registry", registration, []string{wire.HeaderToken, "another-token"}, wire.Failf(wire.MsgTokenWrong)},
		{"another app, G4", "POST", "/api/registryRemove", registration, []string{wire.HeaderToken, "another-token", wire.HeaderApp, "other"}, wire.Failf(wire.MsgIdentityInvalid)},
	} {
		r := httptest.NewRequest(c.method, "http://peer"+c.path, strings.NewReader(c.body))
		for i := 0; i+1 < len(c.headers); i += 2 {
			r.Header.Set(c.headers[i], c.headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := returned(t, w.Body.String()); w.Code != 200 || got != c.want {
			t.Errorf("%s: %d %+v, want %+v", c.name, w.Code, got, c.want)
		}
	}
	if p.count() != 0 {
		t.Errorf("the admin was asked %v", p.asked)
	}
}

// TestAdminHandlerMounts serves under both of XXL-JOB's paths, and under a prefix
// of the host's mux, stripped or not.
func TestAdminHandlerMounts(t *testing.T) {
	for _, path := range []string{"/api/registry", "/xxl-job-admin/api/registry", "/jobs/api/registry", "/jobs/xxl-job-admin/api/registry", "/api/registry/"} {
		p := newPeer()
		h := adminHandler(t, p, guarded(t))
		mux := http.NewServeMux()
		mux.Handle("/api/", h)
		mux.Handle("/xxl-job-admin/", h)
		mux.Handle("/jobs/", http.StripPrefix("/jobs", h))
		if got := returned(t, post(t, mux, path, registration, wire.HeaderToken, token)); !got.OK() || p.count() != 1 {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

func TestJobManagement(t *testing.T) {
	p := newPeer()
	p.ret = wire.Return{Code: wire.CodeSuccess, Data: "12"}
	h := adminHandler(t, jobPeer{p}, guarded(t))
	for path, want := range map[string]any{
		"addJob":     wire.AddJobRequest{JobGroup: 3, JobDefinition: definition},
		"updateJob":  wire.UpdateJobRequest{ID: 3, JobDefinition: definition},
		"removeJob":  wire.JobRequest{ID: 3},
		"startJob":   wire.JobRequest{ID: 3},
		"stopJob":    wire.JobRequest{ID: 3},
		"triggerJob": wire.TriggerJobRequest{ID: 3, AddressList: "http://a:1"},
	} {
		in := `{"id":3,"jobGroup":3,"executorParam":null,"addressList":"http://a:1"}`
		if path == "addJob" || path == "updateJob" {
			in = `{"id":3,"jobGroup":3,` + definitionJSON + `}`
		}
		got := post(t, h, "/api/"+path, in, wire.HeaderToken, token, wire.HeaderApp, "app")
		if got != `{"code":200,"msg":null,"content":null,"data":"12"}` {
			t.Errorf("%s: %s", path, got)
		}
		if !reflect.DeepEqual(p.last(), want) {
			t.Errorf("%s: asked %+v, want %+v", path, p.last(), want)
		}
	}
	for _, from := range p.from {
		if from != (wire.Caller{App: "app", Scope: "app", Named: true}) {
			t.Errorf("caller %+v", from)
		}
	}
}

// TestLooksJava has the headers of several peers' callbacks (docs/xxl-job.md, headers).
func TestLooksJava(t *testing.T) {
	for _, c := range []struct {
		agent, charset string
		want           bool
	}{
		{"Java/1.8.0_402", "application/json;charset=UTF-8", true}, // G1 and G2
		{"Java/21.0.2", "UTF-8", true},
		{"Java/21.0.2", "", false},                                                   // another program on the JDK
		{"Java/1.8.0_402", "big5, big5-hkscs, cesu-8, euc-jp, utf-8, utf-16", false}, // one that uses Spring's RestTemplate
		{"Go-http-client/1.1", "", false},
		{"Python/3.12 aiohttp/3.14.5", "", false},
		{"curl/8.0 Java/1", "UTF-8", false},
		{"", "UTF-8", false},
	} {
		p := newPeer()
		h := adminHandler(t, p, guarded(t))
		post(t, h, "/api/callback", `[{"logId":1,"handleCode":200}]`, wire.HeaderToken, token, "User-Agent", c.agent, "Accept-Charset", c.charset)
		if want := (wire.Caller{App: "app", Scope: "app", Java: c.want}); len(p.from) != 1 || p.from[0] != want {
			t.Errorf("%q %q: caller %+v", c.agent, c.charset, p.from)
		}
	}
}

func TestCallbackBatches(t *testing.T) {
	p := newPeer()
	h := adminHandler(t, p, config(t))
	list := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(`{"logId":1},`, n), ",") + "]" }
	for _, in := range []string{"[]", `{"callbackList":[]}`} { // probes of the form
		if got := returned(t, post(t, h, "/api/callback", in)); !got.OK() || p.count() != 0 {
			t.Errorf("%s: %+v, asked %v", in, got, p.asked)
		}
	}
	if got := returned(t, post(t, h, "/api/callback", list(wire.MaxCallbacks))); !got.OK() || len(p.last().([]wire.CallbackRequest)) != wire.MaxCallbacks {
		t.Errorf("%d results: %+v", wire.MaxCallbacks, got)
	}
	if got := returned(t, post(t, h, "/api/callback", list(wire.MaxCallbacks+1))); got.Code != wire.CodeFail || p.count() != 1 {
		t.Errorf("one more: %+v", got)
	}
}
