package scenario_test

// The whole way over real connections.

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
	"github.com/xxljob/xxljob/wire"
)

// twins are two stores that give their runs the same ids: they were made in the same
// millisecond.
func twins(t *testing.T) (a, b xxljob.Store) {
	t.Helper()
	first := func(st xxljob.Store) int64 {
		stage.Must(t, st.SetShards(t.Context(), 32))
		job, err := st.AddJob(t.Context(), xxljob.Job{App: "twins", Name: "first", Handler: "none", Schedule: xxljob.Manual()}, nil)
		stage.Must(t, err)
		run, err := st.AddRun(t.Context(), job.ID, xxljob.Trigger{})
		stage.Must(t, err)
		stage.Must(t, st.RemoveJob(t.Context(), job.ID))
		return run.ID
	}
	for {
		a, b = memory.New(), memory.New()
		if first(a) == first(b) {
			return a, b
		}
	}
}

// resender is a peer's HTTP client that sends everything twice at once, as Java's does
// when a connection dies on it.
func resender(to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				again := r.Clone(r.Context())
				again.Body = io.NopCloser(bytes.NewReader(body))
				rec := httptest.NewRecorder()
				to.ServeHTTP(rec, again)
			})
		}
		both.Wait()
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		to.ServeHTTP(w, again)
	})
}

// TestResentRunsOnce: whatever is sent more than once on either side, a handler runs once
// and a result counts once (trap 9).
func TestTrap9ResentRunsOnce(t *testing.T) {
	s, st, admin := stage.OverHTTP(t, xxljob.Config{})
	var calls atomic.Int32
	ex, err := executor.New(executor.Config{App: "far", Logger: stage.QuietLog()})
	stage.Must(t, err)
	stage.Must(t, ex.Handle("count", func(_ context.Context, task *executor.Task) error {
		calls.Add(1)
		task.SetResult("got " + task.Param)
		return nil
	}))
	h, err := wire.NewExecutorHandler(ex, wire.HandlerConfig{Authorize: wire.Insecure})
	stage.Must(t, err)
	server := httptest.NewServer(http.StripPrefix("/mounted/here", resender(h)))
	defer server.Close()
	ex.Bind(stage.RegisterOver(t, admin, "far", server.URL+"/mounted/here/"))
	const runs = 50
	param := "a=<b>&'\"\\ 中文 \U0001F600\n\t"
	job, err := s.AddJob(t.Context(), xxljob.Job{App: "far", Name: "j", Handler: "count", Param: param})
	stage.Must(t, err)
	for range runs {
		run, err := s.Wait(t.Context(), stage.Trigger(t, s, job))
		stage.Must(t, err)
		if run.State != xxljob.StateSucceeded || run.HandleMsg != "got "+param {
			t.Fatalf("%v %q %q", run.State, run.HandleMsg, run.TriggerMsg)
		}
	}
	if n := calls.Load(); n != runs {
		t.Errorf("%d calls for %d runs", n, runs)
	}
	if states := stage.CountStates(stage.AllRuns(t, st)); states[xxljob.StateSucceeded] != runs {
		t.Errorf("%v", states)
	}
	stage.Must(t, ex.Stop(t.Context()))
}

// TestBadRequests: everything malformed, oversized or forged is answered 200 with a code,
// and changes nothing.
func TestBadRequests(t *testing.T) {
	_, st, admin := stage.OverHTTP(t, xxljob.Config{})
	stage.RegisterOver(t, admin, "far", "http://10.0.0.1:9999/")
	before := stage.SnapshotOf(t, st)
	big := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name, method, path, token, body string
	}{
		{"bad token", "POST", "/api/registry", "guess", `{"registryGroup":"EXECUTOR","registryKey":"far","registryValue":"http://10.0.0.2/"}`},
		{"no token", "POST", "/api/registry", "", `{"registryGroup":"EXECUTOR","registryKey":"far","registryValue":"http://10.0.0.2/"}`},
		{"GET", "GET", "/api/registry", stage.Token, ""},
		{"PUT", "PUT", "/api/registryRemove", stage.Token, `{"registryGroup":"EXECUTOR","registryKey":"far","registryValue":"http://10.0.0.1:9999/"}`},
		{"unknown path", "POST", "/api/nothing", stage.Token, `{}`},
		{"no path", "POST", "/api/", stage.Token, `{}`},
		{"empty", "POST", "/api/registry", stage.Token, ""},
		{"no JSON", "POST", "/api/registry", stage.Token, "hello"},
		{"null", "POST", "/api/registry", stage.Token, "null"},
		{"a list", "POST", "/api/registry", stage.Token, "[]"},
		{"wrong types", "POST", "/api/registry", stage.Token, `{"registryGroup":{},"registryKey":[1],"registryValue":3}`},
		{"blank", "POST", "/api/registry", stage.Token, `{"registryGroup":"EXECUTOR","registryKey":" ","registryValue":"http://10.0.0.2/"}`},
		{"another group", "POST", "/api/registry", stage.Token, `{"registryGroup":"ADMIN","registryKey":"far","registryValue":"http://10.0.0.2/"}`},
		{"a local address", "POST", "/api/registry", stage.Token, `{"registryGroup":"EXECUTOR","registryKey":"far","registryValue":"local://node"}`},
		{"a file", "POST", "/api/registry", stage.Token, `{"registryGroup":"EXECUTOR","registryKey":"far","registryValue":"file:///etc/passwd"}`},
		{"credentials", "POST", "/api/registry", stage.Token, `{"registryGroup":"EXECUTOR","registryKey":"far","registryValue":"http://a:b@10.0.0.2/"}`},
		{"a long address", "POST", "/api/registry", stage.Token, `{"registryGroup":"EXECUTOR","registryKey":"far","registryValue":"http://10.0.0.2/` + strings.Repeat("a", 300) + `"}`},
		{"a long app", "POST", "/api/registry", stage.Token, `{"registryGroup":"EXECUTOR","registryKey":"` + strings.Repeat("a", 300) + `","registryValue":"http://10.0.0.2/"}`},
		{"NUL", "POST", "/api/registry", stage.Token, `{"registryGroup":"EXECUTOR","registryKey":"f\u0000r","registryValue":"http://10.0.0.2/"}`},
		{"too large", "POST", "/api/registry", stage.Token, `{"registryGroup":"EXECUTOR","registryKey":"far","registryValue":"` + big + `"}`},
		{"deep", "POST", "/api/registry", stage.Token, strings.Repeat(`{"a":`, 10_000)},
		{"callback of words", "POST", "/api/callback", stage.Token, `["a","b"]`},
		{"callback, id as object", "POST", "/api/callback", stage.Token, `[{"logId":{}}]`},
		{"callback, too many", "POST", "/api/callback", stage.Token, "[" + strings.Repeat(`{"logId":1},`, 10_001) + `{"logId":1}]`},
		{"callback, too large", "POST", "/api/callback", stage.Token, `[{"logId":1,"handleMsg":"` + strings.Repeat("y", 5<<20) + `"}]`},
		{"addJob of nobody", "POST", "/api/addJob", stage.Token, `{"name":"x"}`},
	} {
		for _, base := range []string{strings.TrimSuffix(admin, "/xxl-job-admin"), admin} {
			req, err := http.NewRequest(c.method, base+c.path, strings.NewReader(c.body))
			stage.Must(t, err)
			req.Header.Set(wire.HeaderToken, c.token)
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			var ret wire.Return
			if err := ret.Decode(body); err != nil || resp.StatusCode != 200 || ret.Code != wire.CodeFail || ret.Msg == "" || len(ret.Msg) > 2000 {
				t.Errorf("%s: HTTP %d %.300s: %v", c.name, resp.StatusCode, body, err)
			}
			if strings.Contains(ret.Msg, "goroutine ") || strings.Contains(ret.Msg, ".go:") || strings.Contains(ret.Msg, stage.Token) {
				t.Errorf("%s: says too much: %s", c.name, ret.Msg)
			}
		}
	}
	if after := stage.SnapshotOf(t, st); after != before {
		t.Errorf("the store has changed:\n%s\nwas\n%s", after, before)
	}
}

// TestTwoMasters: one executor works for a scheduler in its own process and for an admin
// elsewhere at once, though both give their runs the same ids.
func TestTwoMasters(t *testing.T) {
	farStore, nearStore := twins(t)
	far, admin := stage.OverHTTPWith(t, farStore, xxljob.Config{Node: "far", HTTP: xxljob.HTTPConfig{Insecure: true}})
	near, _ := stage.OverHTTPWith(t, nearStore, xxljob.Config{Node: "near"})
	ex, err := executor.New(executor.Config{
		App: "shared", Logger: stage.QuietLog(), Addr: "127.0.0.1:0", SpoolDir: t.TempDir(),
		Admins: []executor.AdminCluster{{Addresses: []string{"http://127.0.0.1:1/", admin}, Token: stage.Token}},
	})
	stage.Must(t, err)
	hold := make(chan struct{})
	stage.Must(t, ex.Handle("echo", func(_ context.Context, task *executor.Task) error {
		<-hold // so that both have the same id under way
		task.Log().Info("for " + task.Param)
		task.SetResult(task.Param)
		return nil
	}))
	stage.Must(t, near.Attach(ex))
	stage.Must(t, ex.Start(t.Context()))
	await.Until(t, "registered", func() bool {
		regs, err := farStore.Registrations(t.Context(), xxljob.RegistrationFilter{App: "shared"})
		return err == nil && len(regs) == 1 && regs[0].BootID != ""
	})
	ids := map[string]int64{}
	for name, s := range map[string]xxljob.Scheduler{"near": near, "far": far} {
		job, err := s.AddJob(t.Context(), xxljob.Job{App: "shared", Name: "j", Handler: "echo", Param: name})
		stage.Must(t, err)
		ids[name] = stage.Trigger(t, s, job)
	}
	if ids["near"] != ids["far"] {
		t.Fatalf("ids %v do not collide", ids)
	}
	await.Until(t, "both run", func() bool { return ex.Running() == 2 })
	close(hold)
	for name, s := range map[string]xxljob.Scheduler{"near": near, "far": far} {
		run, err := s.Wait(t.Context(), ids[name])
		stage.Must(t, err)
		if run.State != xxljob.StateSucceeded || run.HandleMsg != name {
			t.Errorf("%s: %v %q %q", name, run.State, run.HandleMsg, run.TriggerMsg)
		}
		if res, err := s.Log(t.Context(), run.ID, 1); err != nil || strings.Count(res.LogContent, "\n") != 1 || !strings.Contains(res.LogContent, "for "+name) {
			t.Errorf("%s: log %q, %v", name, res.LogContent, err)
		}
	}
	if res, err := far.LogTail(t.Context(), ids["far"], 5); err != nil || res.FromLineNum != 1 || res.ToLineNum != 1 || !strings.Contains(res.LogContent, "for far") || !res.IsEnd {
		t.Errorf("the tail over HTTP: %+v, %v", res, err)
	}
	stage.Must(t, ex.Stop(t.Context()))
	if regs, err := farStore.Registrations(t.Context(), xxljob.RegistrationFilter{}); err != nil || len(regs) != 0 {
		t.Errorf("after Stop: %v, %v", regs, err)
	}
}
