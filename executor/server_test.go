package executor_test

import (
	"context"
	"net"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/wire"
)

// listening serves an admin over HTTP.
func listening(t *testing.T, a wire.Admin) string {
	t.Helper()
	keys, err := wire.NewKeyring(wire.Tokens{Apps: map[string][]string{"app": {token}}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := wire.NewAdminHandler(a, wire.HandlerConfig{Authorize: keys.Authorize, RequireApp: true})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// deadAddress is where nobody listens.
func deadAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// ours counts goroutines that run code of this package or serve its connections.
func ours() (n int) {
	buf := make([]byte, 1<<20)
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "xxljob/executor.(") || strings.Contains(g, "net/http.(*persistConn)") {
			n++
		}
	}
	return n
}

// Everything over loopback: a server of the executor's own, registered under the
// address that it really has, with the second node of its admin, since the first is
// down.
func TestServerAndAdminOverHTTP(t *testing.T) {
	n := newNode()
	dir := t.TempDir()
	before := ours()
	e, err := executor.New(executor.Config{App: "app", Addr: ":0", SpoolDir: dir,
		Admins: []executor.AdminCluster{{Addresses: []string{deadAddress(t), listening(t, n) + "/xxl-job-admin"}, Token: token}}})
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
		task.Log().Info("working")
		<-release
		task.SetResult("done")
		return nil
	})
	start(t, e)
	await.Until(t, "registered", func() bool { return len(n.beats()) > 0 })
	addr := n.beats()[0].req.RegistryValue
	if !strings.HasPrefix(addr, "http://127.0.0.1:") || !strings.HasSuffix(addr, "/") || strings.HasSuffix(addr, ":0/") {
		t.Fatalf("registered %q", addr)
	}

	x := client(t, addr, wire.ClientConfig{App: "app", Token: token})
	for _, id := range []int64{1, 2} {
		r := req(7, id)
		r.BootID = n.beats()[0].req.BootID
		if ret, err := x.Run(t.Context(), r); err != nil || ret != wire.Success() {
			t.Fatalf("run %d: %+v, %v", id, ret, err)
		}
	}
	stopped := make(chan error)
	go func() { stopped <- e.Stop(context.Background()) }()
	await.Until(t, "no beat", func() bool { ret, err := x.Beat(t.Context()); return err == nil && !ret.OK() })
	if len(n.goodbyes()) != 1 || n.goodbyes()[0].req.RegistryValue != addr {
		t.Errorf("deregistered %+v", n.goodbyes())
	}
	await.Until(t, "the log of a run while stopping", func() bool {
		ret, err := x.Log(t.Context(), wire.LogRequest{LogID: 1, FromLineNum: 1})
		return err == nil && strings.HasSuffix(ret.Result.LogContent, "INFO working\n")
	})
	if ret, err := x.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: 7}); err != nil || ret.Msg != wire.MsgBusy {
		t.Errorf("idle beat while stopping: %+v, %v", ret, err)
	}
	if ret, err := x.Run(t.Context(), req(7, 3)); err != nil || ret.Msg != "executor is stopping." {
		t.Errorf("run while stopping: %+v, %v", ret, err)
	}
	if ret, err := x.Kill(t.Context(), wire.KillRequest{JobID: 7, LogID: 2}); err != nil || ret != (wire.Return{Code: wire.CodeSuccess, Msg: wire.MsgSuccess, BootID: n.beats()[0].req.BootID}) {
		t.Errorf("kill while stopping: %+v, %v", ret, err)
	}
	close(release)
	if err := <-stopped; err != nil {
		t.Errorf("Stop: %v", err)
	}
	if got := n.ids(); !slices.Equal(got, []int64{2, 1}) || n.result(t, 1).HandleMsg != "done" {
		t.Errorf("results %+v", n.results())
	}
	if _, err := x.Beat(t.Context()); err == nil {
		t.Error("it answers after Stop")
	}
	await.Until(t, "no goroutine is left", func() bool { return ours() <= before })
	if left := spoolFiles(t, dir); len(left) != 0 {
		t.Errorf("files left: %q", left)
	}
}

// Where there are several clusters, each is given an address of its own, and the
// runs that come there are its own.
func TestServerForTwoClusters(t *testing.T) {
	one, two := newNode(), newNode()
	e, err := executor.New(executor.Config{App: "app", Addr: "127.0.0.1:0", Admins: []executor.AdminCluster{
		{Name: "one", Addresses: []string{listening(t, one)}, Token: token},
		{Name: "two", Addresses: []string{listening(t, two)}, Token: token}}})
	if err != nil {
		t.Fatal(err)
	}
	handle(t, e, "h", func(_ context.Context, task *executor.Task) error { task.SetResult(task.Param); return nil })
	start(t, e)
	for name, n := range map[string]*node{"one": one, "two": two} {
		await.Until(t, "registered", func() bool { return len(n.beats()) > 0 })
		addr := n.beats()[0].req.RegistryValue
		if !strings.HasSuffix(addr, "/"+name+"/") {
			t.Errorf("registered %q", addr)
		}
		r := req(1, 1)
		r.ExecutorParams = name
		if ret, err := client(t, addr, wire.ClientConfig{App: "app", Token: token}).Run(t.Context(), r); err != nil || ret != wire.Success() {
			t.Errorf("run: %+v, %v", ret, err)
		}
	}
	stop(t, e)
	if a, b := one.results(), two.results(); len(a) != 1 || len(b) != 1 || a[0].HandleMsg != "one" || b[0].HandleMsg != "two" {
		t.Errorf("results %+v and %+v", a, b)
	}
}
