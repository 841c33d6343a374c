package xxljobtest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob/wire"
	"github.com/xxljob/xxljob/xxljobtest"
)

// ask sends a request to an executor that listens, and returns the body of the answer.
func ask(t *testing.T, e *xxljobtest.Executor, method, path, body string, header map[string]string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(e.Address(), "/")+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	var transport http.Transport
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/html;charset=UTF-8" {
		t.Errorf("%s %s: HTTP %d %s, %v", method, path, resp.StatusCode, resp.Header.Get("Content-Type"), err)
	}
	return string(got)
}

// TestAnswersOfGenerations: what each answers to a request, to the byte.
func TestAnswersOfGenerations(t *testing.T) {
	const (
		run      = `{"jobId":1,"logId":7,"logDateTime":86400000,"executorParams":"p","unknown":[1]}`
		notFound = `{"code":500,"msg":"invalid request, uri-mapping(%s) not found."}`
		noLog    = `{"fromLineNum":3,"toLineNum":0,"logContent":"readLog fail, logFile not exists","isEnd":true}`
		thirdOn  = `{"fromLineNum":3,"toLineNum":4,"logContent":"c\nd\n","isEnd":false}`
	)
	var fakes []*xxljobtest.Executor
	for _, g := range generations {
		e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Generation: g, Token: "hush-hush", Listen: true, Answer: every(xxljobtest.Accept())})
		e.ReportTo(http.NotFoundHandler())
		fakes = append(fakes, e)
	}
	for _, c := range []struct {
		path, body     string
		g1, g2, g3, g4 string // empty for the one before
	}{
		{"/beat", ``, `{"code":200}`, "", `{"code":200,"msg":"Success"}`, ""},
		{"/beat", `""`, `{"code":200}`, "", `{"code":200,"msg":"Success"}`, ""},
		{"/idleBeat", `{"jobId":1}`, `{"code":200}`, "", `{"code":200,"msg":"Success"}`, ""},
		{"/kill", `{"jobId":1}`, `{"code":200,"msg":"job thread already killed."}`, "", `{"code":200,"msg":"Success","data":"job thread already killed."}`, ""},
		{"/log", `{"logDateTim":86400000,"logDateTime":86400000,"logId":7,"fromLineNum":3}`, `{"code":200,"content":` + noLog + `}`, "", `{"code":200,"msg":"Success","data":` + noLog + `}`, ""},
		{"/trigger", run, fmt.Sprintf(notFound, "/trigger"), "", "", `{"code":200,"msg":"Success"}`},
		{"/run", run, `{"code":200}`, "", `{"code":200,"msg":"Success"}`, fmt.Sprintf(notFound, "/run")},
		{"/idleBeat", `{"jobId":1}`, `{"code":500,"msg":"job thread is running or has trigger queue."}`, "", "", ""},
		{"/idleBeat", `{"jobId":2}`, `{"code":200}`, "", `{"code":200,"msg":"Success"}`, ""},
		{"append", ``, "", "", "", ""},
		{"/log", `{"logDateTim":86400000,"logId":7,"fromLineNum":3}`, `{"code":200,"content":` + thirdOn + `}`, "", `{"code":200,"msg":"Success","data":` + thirdOn + `}`, `{"code":200,"msg":"Success","data":` + noLog + `}`},
		{"/log", `{"logDateTime":86400000,"logId":7,"fromLineNum":3}`, `{"code":200,"content":` + noLog + `}`, "", `{"code":200,"msg":"Success","data":` + noLog + `}`, `{"code":200,"msg":"Success","data":` + thirdOn + `}`},
		{"/log", `{"logDateTim":86400000,"logDateTime":86400000,"logId":7,"fromLineNum":5}`, `{"code":200,"content":{"fromLineNum":5,"toLineNum":4,"logContent":"","isEnd":false}}`, "", `{"code":200,"msg":"Success","data":{"fromLineNum":5,"toLineNum":0,"logContent":"","isEnd":false}}`, ""},
		{"/kill", `{"jobId":1}`, `{"code":200}`, "", `{"code":200,"msg":"Success"}`, ""},
		{"/kill", `{"jobId":1}`, `{"code":200,"msg":"job thread already killed."}`, "", `{"code":200,"msg":"Success","data":"job thread already killed."}`, ""},
		{"/other", `{}`, fmt.Sprintf(notFound, "/other"), "", "", ""},
		{"/beat/", `{}`, fmt.Sprintf(notFound, "/beat/"), "", "", ""},
		{"/beat?x=1", `{}`, fmt.Sprintf(notFound, "/beat?x=1"), "", "", ""},
		{"/", `{}`, `{"code":500,"msg":"invalid request, uri-mapping empty."}`, "", "", ""},
		{"/kill", ``, `{"code":500,"msg":"request error:java.lang.NullPointerException"}`, "", "", ""},
		{"/log", ` null `, `{"code":500,"msg":"request error:java.lang.NullPointerException"}`, "", "", ""},
	} {
		want := ""
		for i, w := range []string{c.g1, c.g2, c.g3, c.g4} {
			if w != "" {
				want = w
			}
			e := fakes[i]
			if c.path == "append" {
				e.AppendLog(7, "a", "b\nc", "d")
				continue
			}
			if got := ask(t, e, http.MethodPost, c.path, c.body, map[string]string{wire.HeaderToken: "hush-hush", wire.HeaderApp: "far"}); got != want {
				t.Errorf("%v %s %s: %s, want %s", generations[i], c.path, c.body, got, want)
			}
		}
	}
}

// TestWhoMayAsk: the token that each generation wants to see, and how it says so.
func TestWhoMayAsk(t *testing.T) {
	const wrong, empty, invalid = "The access token is wrong.", "invalid request, accessToken or appname is empty.", "invalid request, accessToken or appname invalid."
	for _, c := range []struct {
		app, token string
		old, g4    string
	}{
		{"far", "hush-hush", "", ""},
		{"", "hush-hush", "", empty},
		{"other", "hush-hush", "", invalid},
		{"far", "guess", wrong, invalid},
		{"far", "", wrong, empty},
		{"", "", wrong, empty},
	} {
		for _, g := range generations {
			e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Generation: g, Token: "hush-hush", Listen: true})
			want := c.old
			if g == xxljobtest.G4 {
				want = c.g4
			}
			got := ask(t, e, http.MethodPost, "/beat", `""`, map[string]string{wire.HeaderToken: c.token, wire.HeaderApp: c.app})
			if want == "" && !strings.HasPrefix(got, `{"code":200`) || want != "" && got != `{"code":500,"msg":"`+want+`"}` {
				t.Errorf("%v, app %q, token %q: %s, want %q", g, c.app, c.token, got, want)
			}
			if got := ask(t, e, http.MethodGet, "/beat", ``, map[string]string{wire.HeaderToken: c.token}); got != `{"code":500,"msg":"invalid request, HttpMethod not support."}` {
				t.Errorf("%v: GET: %s", g, got)
			}
		}
	}
	open := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Listen: true})
	if got := ask(t, open, http.MethodPost, "/beat", ``, map[string]string{wire.HeaderToken: "whatever"}); got != `{"code":200,"msg":"Success"}` {
		t.Errorf("without a token: %s", got)
	}
}

// TestBadBodies are answered in the way of Java's executors, and are no runs.
func TestBadBodies(t *testing.T) {
	e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Listen: true})
	for _, body := range []string{"", "null", "hello", "[]", `{"jobId":{},"logId":{}}`, `{"jobId":1`, `{"jobId":4294967296,"logId":"x"}`} {
		for _, path := range []string{"/run", "/idleBeat", "/kill", "/log"} {
			got := ask(t, e, http.MethodPost, path, body, nil)
			if !strings.HasPrefix(got, `{"code":500,"msg":"request error:`) {
				t.Errorf("%s %q: %s", path, body, got)
			}
		}
	}
	if runs := e.Runs(); len(runs) != 0 {
		t.Errorf("%+v", runs)
	}
}

// request is one that an admin got.
type request struct {
	path, body string
	header     http.Header
}

// TestRequestsOfGenerations: what each says to an admin, to the byte, and by which headers.
func TestRequestsOfGenerations(t *testing.T) {
	const registry = `{"registryGroup":"EXECUTOR","registryKey":"far","registryValue":"http://far.test:9999/"}`
	for _, c := range []struct {
		g                         xxljobtest.Generation
		token                     string
		base, java, charset, body string
	}{
		{xxljobtest.G1, "", "/xxl-job-admin/api/", "Java/1.8", "application/json;charset=UTF-8", `[{"logId":7,"logDateTim":5000,"executeResult":{"code":502,"msg":"\u003cb\u003e"}}]`},
		{xxljobtest.G2, "hush-hush", "/xxl-job-admin/api/", "Java/1.8", "application/json;charset=UTF-8", `[{"logId":7,"logDateTim":5000,"handleCode":502,"handleMsg":"\u003cb\u003e"}]`},
		{xxljobtest.G3, "", "/xxl-job-admin/api/", "Java/17", "UTF-8", `[{"logId":7,"logDateTim":5000,"handleCode":502,"handleMsg":"<b>"}]`},
		{xxljobtest.G4, "hush-hush", "/api/", "Java/17", "UTF-8", `{"callbackList":[{"logId":7,"logDateTime":5000,"handleCode":502,"handleMsg":"<b>"}]}`},
	} {
		t.Run(c.g.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []request // guarded by mu
				e := xxljobtest.NewExecutor(t, xxljobtest.ExecutorOptions{App: "far", Generation: c.g, Token: c.token, Answer: every(xxljobtest.Accept())})
				e.Register(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					mu.Lock()
					defer mu.Unlock()
					got = append(got, request{r.URL.Path, string(body), r.Header})
					_, _ = w.Write(wire.Success().Encode(nil))
				}))
				client, err := wire.NewExecutorClient(e.Address(), wire.ClientConfig{App: "far", Token: c.token, Transport: xxljobtest.Transport(t, e)})
				if err != nil {
					t.Fatal(err)
				}
				if ret, err := client.Run(t.Context(), wire.TriggerRequest{JobID: 1, LogID: 7, LogDateTime: 5000}); err != nil || !ret.OK() {
					t.Fatalf("%+v, %v", ret, err)
				}
				e.Report(7, wire.CodeTimeout, "<b>")
				time.Sleep(31 * time.Second)
				e.Unregister()
				mu.Lock()
				defer mu.Unlock()
				want := []request{{c.base + "registry", registry, nil}, {c.base + "callback", c.body, nil}, {c.base + "registry", registry, nil}, {c.base + "registryRemove", registry, nil}}
				for i, r := range got {
					if i >= len(want) || r.path != want[i].path || r.body != want[i].body {
						t.Errorf("request %d: %s %s", i, r.path, r.body)
					}
					_, hasToken := r.header[http.CanonicalHeaderKey(wire.HeaderToken)]
					_, hasApp := r.header[http.CanonicalHeaderKey(wire.HeaderApp)]
					if !strings.HasPrefix(r.header.Get("User-Agent"), c.java) || r.header.Get("Accept-Charset") != c.charset || r.header.Get(wire.HeaderToken) != c.token ||
						hasToken != (c.token != "" || c.g >= xxljobtest.G3) || hasApp != (c.g == xxljobtest.G4) {
						t.Errorf("headers %v", r.header)
					}
				}
				if len(got) != len(want) {
					t.Errorf("%d requests, want %d", len(got), len(want))
				}
			})
		})
	}
}

func TestGenerationString(t *testing.T) {
	for g, want := range map[xxljobtest.Generation]string{xxljobtest.G1: "G1", xxljobtest.G4: "G4", 0: "no generation", 5: "no generation"} {
		if got := g.String(); got != want {
			t.Errorf("%d: %q, want %q", int(g), got, want)
		}
	}
}
