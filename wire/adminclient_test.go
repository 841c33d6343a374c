package wire_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

var results = []wire.CallbackRequest{{LogID: 1, LogDateTim: 2, HandleCode: 200}, {LogID: 3, LogDateTim: 4, HandleCode: 500, HandleMsg: "no"}}

// generation answers callbacks as an admin of a generation does.
func generation(t *testing.T, g4 bool, refusal string) *recorder {
	var rec *recorder
	rec = serve(t, func(w http.ResponseWriter, _ string, n int) {
		isList := strings.HasPrefix(rec.requests()[n-1].body, "[")
		r := wire.Success()
		if isList == g4 {
			r = wire.Failf("%s", refusal)
		}
		w.Write(r.Encode(nil))
	})
	return rec
}

func (r *recorder) forms() string {
	var b strings.Builder
	for _, sent := range r.requests() {
		b.WriteString(sent.body[:1])
	}
	return b.String()
}

// TestCallbackForms has admins of different generations: the form that one takes
// is found out, and remembered.
func TestCallbackForms(t *testing.T) {
	const gson = "openapi invoke error: java.lang.IllegalStateException: Expected BEGIN_OBJECT but was BEGIN_ARRAY"
	for name, c := range map[string]struct {
		g4      bool
		refusal string
		forms   string
	}{
		"G1 to G3":          {false, "unused", "[[["},
		"G4":                {true, gson, "[{{{"},
		"G4 in other words": {true, "something else", "[{{{"},
	} {
		srv := generation(t, c.g4, c.refusal)
		client := adminClient(t, srv.URL, wire.ClientConfig{App: "app", Token: token})
		for range 3 {
			if r, err := client.Callback(t.Context(), results); err != nil || !r.OK() {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
		if got := srv.forms(); got != c.forms {
			t.Errorf("%s: sent %s, want %s", name, got, c.forms)
		}
		last := srv.requests()[len(srv.requests())-1]
		if got, err := wire.DecodeCallback([]byte(last.body)); err != nil || !reflect.DeepEqual(got, results) {
			t.Errorf("%s: sent %s", name, last.body)
		}
		if last.path != "/api/callback" || last.header.Get(wire.HeaderApp) != "app" {
			t.Errorf("%s: %s %v", name, last.path, last.header)
		}
	}
}

// TestCallbackFormChanges has an admin that is updated, and set back.
func TestCallbackFormChanges(t *testing.T) {
	g4 := false
	var rec *recorder
	rec = serve(t, func(w http.ResponseWriter, _ string, n int) {
		r := wire.Success()
		if strings.HasPrefix(rec.requests()[n-1].body, "[") == g4 {
			r = wire.Failf("openapi invoke error: Expected BEGIN_ARRAY")
		}
		w.Write(r.Encode(nil))
	})
	client := adminClient(t, rec.URL, wire.ClientConfig{})
	for _, g4 = range []bool{false, true, true, false} {
		if r, err := client.Callback(t.Context(), results); err != nil || !r.OK() {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if got := rec.forms(); got != "["+"[{"+"{"+"{[" {
		t.Errorf("sent %s", got)
	}
}

// TestCallbackRefused says that a refusal which is not about the form is not
// sent in another one, once the form is known, and never for a wrong token.
func TestCallbackRefused(t *testing.T) {
	for msg, forms := range map[string]string{
		wire.MsgTokenWrong: "[[", wire.MsgIdentityEmpty: "[[", wire.MsgIdentityInvalid: "[[", wire.MsgTooMany: "[[", "database is away": "[{[{",
	} {
		srv := serve(t, func(w http.ResponseWriter, _ string, _ int) { w.Write(wire.Failf("%s", msg).Encode(nil)) })
		client := adminClient(t, srv.URL, wire.ClientConfig{})
		for range 2 {
			if r, err := client.Callback(t.Context(), results); err != nil || r != wire.Failf("%s", msg) {
				t.Errorf("%+v, %v", r, err)
			}
		}
		if got := srv.forms(); got != forms {
			t.Errorf("%s: sent %s, want %s", msg, got, forms)
		}
	}
	srv := serve(t, func(w http.ResponseWriter, _ string, n int) {
		r := wire.Success()
		if n > 1 {
			r = wire.Failf("database is away")
		}
		w.Write(r.Encode(nil))
	})
	client := adminClient(t, srv.URL, wire.ClientConfig{})
	for range 3 {
		client.Callback(t.Context(), results)
	}
	if got := srv.forms(); got != "[[[" {
		t.Errorf("known form: sent %s", got)
	}
}

// TestTrap35ContextPath is trap 35: the path of admins has moved, and users give
// either form of their address.
func TestTrap35ContextPath(t *testing.T) {
	for _, at := range []string{"", "/xxl-job-admin"} {
		for _, given := range []string{"", "/", "/xxl-job-admin", "/xxl-job-admin/"} {
			srv := serve(t, func(w http.ResponseWriter, path string, _ int) {
				if path != at+"/api/registry" && path != at+"/api/addJob" {
					w.Header().Set("Location", "/toLogin")
					w.WriteHeader(http.StatusFound)
					return
				}
				io.WriteString(w, `{"code":200}`)
			})
			client := adminClient(t, srv.URL+given, wire.ClientConfig{})
			for range 2 {
				if r, err := client.Registry(t.Context(), wire.RegistryRequest{}); err != nil || !r.OK() {
					t.Errorf("at %q, given %q: %+v, %v", at, given, r, err)
				}
			}
			if r, err := client.AddJob(t.Context(), wire.AddJobRequest{}); err != nil || !r.OK() {
				t.Errorf("at %q, given %q: %+v, %v", at, given, r, err)
			}
			if n := len(srv.requests()); n > 4 {
				t.Errorf("at %q, given %q: the path was not remembered: %s", at, given, srv.paths())
			}
		}
	}
	srv := serve(t, func(w http.ResponseWriter, _ string, _ int) { w.WriteHeader(http.StatusNotFound) })
	_, err := adminClient(t, srv.URL, wire.ClientConfig{}).Registry(t.Context(), wire.RegistryRequest{})
	if call := callError(t, err); call.Status != http.StatusNotFound {
		t.Errorf("nowhere: %v", err)
	}
	before := len(srv.requests())
	if _, err := adminClient(t, srv.URL, wire.ClientConfig{}).TriggerJob(t.Context(), wire.TriggerJobRequest{}); err == nil || len(srv.requests()) != before+1 {
		t.Errorf("a trigger was sent %d times, %v", len(srv.requests())-before, err)
	}
}

// TestAdminClientToHandler has our client and our handler talk.
func TestAdminClientToHandler(t *testing.T) {
	p := newPeer()
	h := adminHandler(t, jobPeer{p}, guarded(t))
	srv := httptest.NewServer(h)
	defer srv.Close()
	c := adminClient(t, srv.URL, wire.ClientConfig{App: "app", Token: token})
	ctx := t.Context()
	reg := wire.RegistryRequest{RegistryGroup: wire.GroupExecutor, RegistryKey: "app", RegistryValue: "http://a:1/", BootID: "b", Capabilities: []string{wire.CapRepeat}}
	for _, call := range []struct {
		call func() (wire.Return, error)
		want any
	}{
		{func() (wire.Return, error) { return c.Registry(ctx, reg) }, reg},
		{func() (wire.Return, error) { return c.RegistryRemove(ctx, reg) }, reg},
		{func() (wire.Return, error) { return c.Callback(ctx, results) }, results},
		{func() (wire.Return, error) { return c.AddJob(ctx, wire.AddJobRequest{JobGroup: 1}) }, wire.AddJobRequest{JobGroup: 1}},
		{func() (wire.Return, error) { return c.UpdateJob(ctx, wire.UpdateJobRequest{ID: 1}) }, wire.UpdateJobRequest{ID: 1}},
		{func() (wire.Return, error) { return c.RemoveJob(ctx, wire.JobRequest{ID: 2}) }, wire.JobRequest{ID: 2}},
		{func() (wire.Return, error) { return c.StartJob(ctx, wire.JobRequest{ID: 3}) }, wire.JobRequest{ID: 3}},
		{func() (wire.Return, error) { return c.StopJob(ctx, wire.JobRequest{ID: 4}) }, wire.JobRequest{ID: 4}},
		{func() (wire.Return, error) { return c.TriggerJob(ctx, wire.TriggerJobRequest{ID: 5}) }, wire.TriggerJobRequest{ID: 5}},
	} {
		if r, err := call.call(); err != nil || !r.OK() || !reflect.DeepEqual(p.last(), call.want) {
			t.Errorf("%+v, %v: asked %+v, want %+v", r, err, p.last(), call.want)
		}
	}
	p.err = errors.New("inside")
	if r, err := c.Registry(ctx, reg); err != nil || r.Code != wire.CodeFail {
		t.Errorf("%+v, %v", r, err)
	}
}
