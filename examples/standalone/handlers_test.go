package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/xxljobtest"
)

func TestDemo(t *testing.T) {
	got := xxljobtest.Work(t, t.Context(), demo, xxljob.Task{Param: "Ada"})
	if got.Err != nil || got.Result != "hello Ada" || len(got.Log) != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestSharding(t *testing.T) {
	got := xxljobtest.Work(t, t.Context(), sharding, xxljob.Task{ShardIndex: 1, ShardTotal: 4})
	if got.Err != nil || got.Result != "part 1 of 4" || len(got.Log) != 1 || got.Log[0] != "INFO sharding index=1 total=4" {
		t.Errorf("got %+v", got)
	}
}

func TestAllowList(t *testing.T) {
	c, err := newCaller([]string{"example.com", " API.internal:8443 ", "[::1]:90", "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []string{
		"http://example.com/a?b=c", "https://EXAMPLE.com", "http://example.com:443/", "https://api.internal:8443/x", "http://[::1]:90/", "http://127.0.0.1",
	} {
		if err := c.check(u); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
	for u, want := range map[string]string{
		"http://example.com:8080/":     "not in -http-allow",
		"http://sub.example.com/":      "not in -http-allow",
		"http://example.com.evil.org/": "not in -http-allow",
		"http://example.com@evil.org/": "credentials",
		"http://evil.org#example.com":  "not in -http-allow",
		"https://api.internal/":        "not in -http-allow",
		"http://[::1]/":                "not in -http-allow",
		"http://2130706433/":           "not in -http-allow",
		"ftp://example.com/":           "want http",
		"file:///etc/passwd":           "want http",
		"//example.com/":               "want http",
		"":                             "want http",
		"http://u:secret@example.com/": "credentials",
		"http://exa mple.com/":         "invalid character",
	} {
		switch err := c.check(u); {
		case err == nil:
			t.Errorf("%s is allowed", u)
		case !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: got %v, want %q", u, err, want)
		}
	}
}

func TestAllowListFaults(t *testing.T) {
	_, err := newCaller([]string{"http://example.com", "", "ok", "a/b"})
	if err == nil || strings.Count(err.Error(), "want a host") != 3 {
		t.Errorf("got %v", err)
	}
}

func TestHTTP(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		io.WriteString(w, r.Method+" "+r.Header.Get("X-Key")+" "+string(body))
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/echo", http.StatusFound) })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "sorry", http.StatusBadGateway) })
	mux.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) {
		for range 1000 {
			io.WriteString(w, strings.Repeat("x", 1000))
		}
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCaller([]string{u.Host})
	if err != nil {
		t.Fatal(err)
	}
	defer c.client.CloseIdleConnections()

	for _, tt := range []struct {
		name        string
		r           request
		result, err string
		final       bool
	}{
		{"get", request{URL: "/echo"}, "200 OK\nGET  ", "", false},
		{"post", request{URL: "/echo", Method: "post", Headers: map[string]string{"X-Key": "k"}, Data: "d"}, "200 OK\nPOST k d", "", false},
		{"redirect", request{URL: "/away"}, "", "redirect to " + server.URL + "/echo refused", false},
		{"status", request{URL: "/broken"}, "", "502 Bad Gateway\nsorry", false},
		{"timeout", request{URL: "/slow", Timeout: duration(30 * time.Millisecond)}, "", "deadline exceeded", false},
		{"method", request{URL: "/echo", Method: "a b"}, "", "invalid method", true},
		{"a way to other hosts", request{URL: "/echo", Method: "connect"}, "", "CONNECT", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.URL = server.URL + tt.r.URL
			got := work(t, c, tt.r)
			if got.Result != tt.result || (got.Err == nil) != (tt.err == "") {
				t.Fatalf("result %q, error %v", got.Result, got.Err)
			}
			if got.Err != nil && (!strings.Contains(got.Err.Error(), tt.err) || executor.IsPermanent(got.Err) != tt.final) {
				t.Errorf("error %v, final %v", got.Err, executor.IsPermanent(got.Err))
			}
		})
	}
	t.Run("size", func(t *testing.T) {
		got := work(t, c, request{URL: server.URL + "/big"})
		if got.Err != nil || len(got.Log) != 2 || got.Log[1] != `INFO answered status="200 OK" bytes=65536` {
			t.Errorf("error %v, log %q", got.Err, got.Log)
		}
	})
	t.Run("not allowed", func(t *testing.T) {
		other, err := newCaller(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := work(t, other, request{URL: server.URL}); !executor.IsPermanent(got.Err) {
			t.Errorf("got %v", got.Err)
		}
	})
	t.Run("bad timeout", func(t *testing.T) {
		got := xxljobtest.Work(t, t.Context(), xxljob.JSON(c.call), xxljob.Task{Param: `{"url": "` + server.URL + `", "timeout": "-5s"}`})
		if got.Err == nil || !strings.Contains(got.Err.Error(), "must not be negative") {
			t.Errorf("got %v", got.Err)
		}
	})
}

// work calls httpJobHandler as the scheduler would.
func work(t *testing.T, c *caller, r request) xxljobtest.Result {
	t.Helper()
	param, err := json.Marshal(map[string]any{
		"url": r.URL, "method": r.Method, "headers": r.Headers, "data": r.Data, "timeout": time.Duration(r.Timeout).String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return xxljobtest.Work(t, t.Context(), xxljob.JSON(c.call), xxljob.Task{Param: string(param)})
}
