package executor_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/wire"
)

const (
	token    = "token-of-tests"
	newToken = "token-of-tomorrow"
)

// serving makes an executor without Admins behind mount(its handler).
func serving(t *testing.T, cfg executor.Config, mount func(http.Handler) http.Handler) (*executor.Executor, *admin, string) {
	t.Helper()
	cfg.App = "app"
	e, a := open(t, cfg)
	h, err := e.HTTPHandler()
	if err != nil {
		t.Fatal(err)
	}
	if mount != nil {
		h = mount(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return e, a, s.URL
}

// client calls an executor as admins of this module do.
func client(t *testing.T, addr string, cfg wire.ClientConfig) *wire.ExecutorClient {
	t.Helper()
	cfg.Transport = wire.NewTransport(wire.TransportConfig{})
	t.Cleanup(cfg.Transport.CloseIdle)
	c, err := wire.NewExecutorClient(addr, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// post sends a body by hand, on a connection of its own, and returns the answer.
func post(t *testing.T, url, body string, header ...string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	var transport http.Transport
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("POST %s: status %d, %v", url, resp.StatusCode, err)
	}
	return string(b)
}

// Under any prefix, stripped or not, every endpoint is there, and nothing is
// redirected.
func TestHandlerUnderPrefixes(t *testing.T) {
	for name, c := range map[string]struct {
		mount  func(http.Handler) http.Handler
		prefix string
	}{
		"root": {nil, "/"},
		"mux": {func(h http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/jobs/executor/", h)
			return mux
		}, "/jobs/executor/"},
		"stripped": {func(h http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/jobs/", http.StripPrefix("/jobs", h))
			return mux
		}, "/jobs/"},
		"stripped with its slash": {func(h http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/jobs/", http.StripPrefix("/jobs/", h))
			return mux
		}, "/jobs/"},
	} {
		t.Run(name, func(t *testing.T) {
			e, a, url := serving(t, executor.Config{Tokens: []string{token}}, c.mount)
			handle(t, e, "h", func(_ context.Context, task *executor.Task) error { task.SetResult(task.Param); return nil })
			x := client(t, url+c.prefix, wire.ClientConfig{App: "app", Token: token})
			if ret, err := x.Beat(t.Context()); err != nil || !ret.OK() {
				t.Errorf("beat: %+v, %v", ret, err)
			}
			r := req(1, 1)
			r.ExecutorParams = `<a>&"b"`
			if ret, err := x.Run(t.Context(), r); err != nil || ret != wire.Success() {
				t.Errorf("run: %+v, %v", ret, err)
			}
			if ret, err := x.Kill(t.Context(), wire.KillRequest{JobID: 99}); err != nil || ret != wire.Noted(wire.MsgAlreadyKilled) {
				t.Errorf("kill: %+v, %v", ret, err)
			}
			if ret, err := x.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: 99}); err != nil || !ret.OK() {
				t.Errorf("idle beat: %+v, %v", ret, err)
			}
			about := wire.IdleBeatRequest{JobID: 99, LogID: 98, LogDateTime: 5, StartToken: 1, StartedAgo: time.Hour.Milliseconds()}
			if ret, err := x.IdleBeat(t.Context(), about); err != nil || !ret.OK() || ret.RunState != wire.RunForgotten || ret.BootID == "" {
				t.Errorf("about a run: %+v, %v", ret, err)
			}
			if ret, err := x.Log(t.Context(), wire.LogRequest{LogID: 99, FromLineNum: 1}); err != nil || ret.Result.LogContent != wire.MsgNoLog {
				t.Errorf("log: %+v, %v", ret, err)
			}
			body := string(req(2, 2).Encode(nil))
			if got := post(t, url+c.prefix+"trigger", body, wire.HeaderToken, token, wire.HeaderApp, "app"); !strings.Contains(got, `"code":200`) {
				t.Errorf("trigger: %s", got)
			}
			if got := post(t, url+c.prefix+"nothing", "{}", wire.HeaderToken, token); !strings.Contains(got, "nothing) not found") {
				t.Errorf("unknown path: %s", got)
			}
			if err := e.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			if got := a.result(t, 1); got.HandleMsg != r.ExecutorParams || len(a.ids()) != 2 {
				t.Errorf("results %+v", a.results())
			}
			if ret, err := x.Beat(t.Context()); err != nil || ret.Msg != "executor is stopping." {
				t.Errorf("beat after Stop: %+v, %v", ret, err)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	type call struct {
		token, app string
		refusal    string // "" when it is let in
	}
	for name, c := range map[string]struct {
		cfg   executor.Config
		calls []call
	}{
		"one": {executor.Config{Tokens: []string{token}}, []call{
			{token, "app", ""}, {token, "", ""},
			{"", "", wire.MsgTokenWrong}, {"wrong", "", wire.MsgTokenWrong},
			{"", "app", wire.MsgIdentityEmpty}, {"wrong", "app", wire.MsgIdentityInvalid},
			{token, "another", wire.MsgIdentityInvalid}, {newToken, "", wire.MsgTokenWrong},
		}},
		"rotation": {executor.Config{Tokens: []string{token, newToken}}, []call{
			{token, "", ""}, {newToken, "", ""}, {newToken, "app", ""}, {"", "", wire.MsgTokenWrong},
		}},
		"default allowed": {executor.Config{Tokens: []string{wire.DefaultToken}, AllowDefaultToken: true}, []call{
			{wire.DefaultToken, "", ""}, {"", "", wire.MsgTokenWrong},
		}},
		"insecure": {executor.Config{Insecure: true}, []call{
			{"", "", ""}, {"anything", "app", ""}, {"", "another", wire.MsgIdentityEmpty}, {"x", "another", wire.MsgIdentityInvalid},
		}},
		"insecure beside a token": {executor.Config{Insecure: true, Tokens: []string{token}}, []call{
			{"", "", wire.MsgTokenWrong}, {token, "", ""},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e, _, url := serving(t, c.cfg, nil)
			var runs atomic.Int64
			handle(t, e, "h", func(context.Context, *executor.Task) error { runs.Add(1); return nil })
			var want int64
			for i, call := range c.calls {
				ret, err := client(t, url, wire.ClientConfig{App: call.app, Token: call.token}).Run(t.Context(), req(int64(i+1), int64(i+1)))
				if err != nil || ret.OK() != (call.refusal == "") || call.refusal != "" && ret.Msg != call.refusal {
					t.Errorf("token %q of %q: %+v, %v, want %q", call.token, call.app, ret, err, call.refusal)
				}
				if call.refusal == "" {
					want++
				}
			}
			if err := e.Stop(t.Context()); err != nil || runs.Load() != want {
				t.Errorf("%d runs, want %d, %v", runs.Load(), want, err)
			}
		})
	}
}

func TestHandlerWithoutToken(t *testing.T) {
	for _, cfg := range []executor.Config{
		{},
		{Address: self, Admins: []executor.AdminCluster{{Addresses: []string{"http://a/"}}}},
		{Address: self, Admins: []executor.AdminCluster{
			{Name: "one", Addresses: []string{"http://a/"}, Token: token}, {Name: "two", Addresses: []string{"http://b/"}}}},
	} {
		e, err := executor.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if h, err := e.HTTPHandler(); err == nil || h != nil || !strings.Contains(err.Error(), "no token") || strings.Contains(err.Error(), token) {
			t.Errorf("Handler: %v, %v", h, err)
		}
		stop(t, e)
	}
	e, err := executor.New(executor.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "no token") {
		t.Errorf("Start: %v", err)
	}
}

// A request is of the cluster that its path names, or else of the one that has its
// token.
func TestRequestsFindTheirCluster(t *testing.T) {
	a := admins{}
	nodes := map[string]*node{}
	var clusters []executor.AdminCluster
	for name, tok := range map[string]string{"one": "t1", "two": "t2", "three": "t3", "four": "t3"} {
		nodes[name] = newNode()
		c := a.cluster(name, nodes[name])
		c.Token = tok
		clusters = append(clusters, c)
	}
	for i, c := range clusters { // the first is the first
		if c.Name == "one" {
			clusters[0], clusters[i] = clusters[i], clusters[0]
		}
	}
	e := over(t, a, executor.Config{Admins: clusters})
	handle(t, e, "h", noop)
	h, err := e.HTTPHandler()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	defer s.Close()
	beat := func(path, token string) string {
		return post(t, s.URL+path+"beat", "", wire.HeaderToken, token)
	}
	if got := beat("/", "t1"); !strings.Contains(got, "executor is not started.") {
		t.Errorf("before Start: %s", got)
	}
	start(t, e)
	var id int64
	for _, c := range []struct{ path, token, want string }{
		{"/one/", "t1", "one"}, {"/two/", "t2", "two"}, {"/any/prefix/four/", "t3", "four"},
		{"/", "t2", "two"}, {"/prefix/", "t2", "two"}, {"/", "t1", "one"},
		{"/", "t3", ""}, // two have it, and the first has not
		{"/", "nobody's", ""}, {"/", "", ""},
		{"/two/", "t1", ""}, // that of another cluster opens nothing
	} {
		id++
		got := post(t, s.URL+c.path+"run", string(req(1, id).Encode(nil)), wire.HeaderToken, c.token)
		if ok := strings.Contains(got, `"code":200`); ok != (c.want != "") {
			t.Errorf("%s with %q: %s", c.path, c.token, got)
			continue
		}
		if c.want == "" {
			continue
		}
		if ret := give(t, e, c.want, req(1, id)); !strings.HasPrefix(ret.Msg, "repeat trigger job") {
			t.Errorf("%s with %q did not reach %q: %+v", c.path, c.token, c.want, ret)
		}
	}
	stop(t, e)
	if a, b, c := len(nodes["one"].ids()), len(nodes["two"].ids()), len(nodes["four"].ids()); a != 2 || b != 3 || c != 1 {
		t.Errorf("%d, %d and %d results", a, b, c)
	}
}

// Tokens for all clusters, while they are changed over.
func TestTokensOfAllClusters(t *testing.T) {
	a := admins{}
	one, two := a.cluster("one", newNode()), a.cluster("two", newNode())
	one.Token, two.Token = token, token
	e := over(t, a, executor.Config{Admins: []executor.AdminCluster{one, two}, Tokens: []string{token, newToken}})
	h, err := e.HTTPHandler()
	if err != nil {
		t.Fatal(err)
	}
	start(t, e)
	s := httptest.NewServer(h)
	defer s.Close()
	for _, path := range []string{"/", "/one/", "/two/"} {
		for tok, ok := range map[string]bool{token: true, newToken: true, "": false} {
			if got := post(t, s.URL+path+"beat", "", wire.HeaderToken, tok); strings.Contains(got, `"code":200`) != ok {
				t.Errorf("%s with %q: %s", path, tok, got)
			}
		}
	}
}

// The same run on several connections at once, and again when it has ended, runs
// once and has one result.
func TestResendOverHTTPRunsOnce(t *testing.T) {
	e, a, url := serving(t, executor.Config{Tokens: []string{token}}, nil)
	var runs atomic.Int64
	release := make(chan struct{})
	handle(t, e, "h", func(context.Context, *executor.Task) error { runs.Add(1); <-release; return nil })
	body := string(req(7, 1).Encode(nil))
	var plain, repeated atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			switch got := post(t, url+"/run", body, wire.HeaderToken, token); got {
			case string(wire.Success().Encode(nil)):
				plain.Add(1)
			case string(wire.Noted(wire.MsgRepeat, 1).Encode(nil)):
				repeated.Add(1)
			default:
				t.Errorf("answer %s", got)
			}
		})
	}
	wg.Wait()
	if plain.Load() != 1 || repeated.Load() != 19 {
		t.Errorf("%d accepted, %d repeated", plain.Load(), repeated.Load())
	}
	close(release)
	for {
		if ret, _ := e.IdleBeat(t.Context(), wire.IdleBeatRequest{JobID: 7}); ret.OK() {
			break
		}
	}
	for _, path := range []string{"/run", "/trigger"} {
		if got := post(t, url+path, body, wire.HeaderToken, token); got != string(wire.Noted(wire.MsgRepeatEnded, 1).Encode(nil)) {
			t.Errorf("%s after the end: %s", path, got)
		}
	}
	stop(t, e)
	if runs.Load() != 1 || len(a.results()) != 1 {
		t.Errorf("%d runs, results %+v", runs.Load(), a.results())
	}
}

// A foreign boot id is refused over HTTP, and nothing runs.
func TestForeignBootIDOverHTTP(t *testing.T) {
	e, a, url := serving(t, executor.Config{Tokens: []string{token}}, nil)
	handle(t, e, "h", noop)
	r := req(1, 1)
	r.BootID = "another"
	ret, err := client(t, url, wire.ClientConfig{Token: token}).Run(t.Context(), r)
	if err != nil || ret.OK() || ret.Msg != wire.MsgOtherBoot {
		t.Errorf("answer %+v, %v", ret, err)
	}
	stop(t, e)
	if len(a.results()) != 0 {
		t.Errorf("results %+v", a.results())
	}
}

// What we cannot run is refused in words.
func TestGlueIsRefusedOverHTTP(t *testing.T) {
	e, _, url := serving(t, executor.Config{Tokens: []string{token}}, nil)
	handle(t, e, "h", noop)
	r := req(1, 1)
	r.GlueType, r.GlueSource = "GLUE_PYTHON", "print(1)"
	if ret, err := client(t, url, wire.ClientConfig{Token: token}).Run(t.Context(), r); err != nil || ret.Msg != "glueType[GLUE_PYTHON] is not valid." {
		t.Errorf("answer %+v, %v", ret, err)
	}
}

// A log grows line by line, and is read from where the last answer ended, while the
// run goes on and after.
func TestRollingLogOverHTTP(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		e, _, url := serving(t, executor.Config{Tokens: []string{token}, Log: executor.LogConfig{Dir: dir}}, nil)
		next, said := make(chan string), make(chan struct{})
		handle(t, e, "h", func(_ context.Context, task *executor.Task) error {
			for line := range next {
				task.Log().Info(line)
				said <- struct{}{}
			}
			return nil
		})
		x := client(t, url, wire.ClientConfig{Token: token})
		r := req(1, 1)
		r.LogDateTime = 1700000000123
		if ret, err := x.Run(t.Context(), r); err != nil || !ret.OK() {
			t.Fatal(ret, err)
		}
		from := 1
		read := func(want string, to int) {
			t.Helper()
			ret, err := x.Log(t.Context(), wire.LogRequest{LogID: 1, LogDateTim: 1700000000000, FromLineNum: from})
			got := ret.Result
			if err != nil || got.FromLineNum != from || got.ToLineNum != to || !strings.HasSuffix(got.LogContent, want) || (want == "") != (got.LogContent == "") {
				t.Errorf("from %d: %+v, %v, want %q up to %d", from, got, err, want, to)
			}
			from = to + 1
		}
		read("", 0)
		for i := range 3 {
			next <- fmt.Sprintf("a%d", i)
			<-said
			next <- fmt.Sprintf("b%d", i)
			<-said
			read(fmt.Sprintf("INFO b%d\n", i), 2*i+2)
			read("", 2*i+2)
		}
		close(next)
		for e.Running() > 0 {
		}
		read("", 6)
		body := `{"logId":1,"logDateTime":1700000000000,"fromLineNum":6}` // as G4 asks
		if got := post(t, url+"/log", body, wire.HeaderToken, token); !strings.Contains(got, `"data":{"fromLineNum":6,"toLineNum":6`) ||
			!strings.Contains(got, `"content":{"fromLineNum":6`) {
			t.Errorf("log for every generation: %s", got)
		}
	}
}

// Nothing of the inside, and no token, is told to a peer or to the log.
func TestTokenIsNotLogged(t *testing.T) {
	var logged strings.Builder
	var mu sync.Mutex
	e, _, url := serving(t, executor.Config{Tokens: []string{token},
		Logger: slog.New(slog.NewTextHandler(lockedWriter{&mu, &logged}, &slog.HandlerOptions{Level: slog.LevelDebug}))}, nil)
	handle(t, e, "h", func(context.Context, *executor.Task) error { panic("boom") })
	got := post(t, url+"/run", string(req(1, 1).Encode(nil)), wire.HeaderToken, token)
	got += post(t, url+"/run", "{", wire.HeaderToken, token)
	got += post(t, url+"/run", "{}", wire.HeaderToken, "wrong-one")
	stop(t, e)
	mu.Lock()
	defer mu.Unlock()
	if all := got + logged.String(); strings.Contains(all, token) || strings.Contains(all, "wrong-one") || strings.Contains(got, "goroutine") {
		t.Errorf("told: %s\nlogged: %s", got, logged.String())
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
