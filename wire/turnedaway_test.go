package wire_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

// TestTurnedAway has every status in answer to a trigger: which say that it has not come to an
// executor, and that the error says where they are from.
func TestTurnedAway(t *testing.T) {
	away := map[int]bool{301: true, 302: true, 303: true, 307: true, 308: true, 401: true, 403: true, 404: true, 405: true,
		411: true, 413: true, 414: true, 415: true, 426: true, 429: true, 431: true}
	status, body, header := 0, "", ""
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Server", "gate/1 "+token)
		w.Header().Set("Location", "http://127.0.0.1:1/login")
		if header != "" {
			w.Header().Set(header, "x")
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	defer srv.Close()
	c := executorClient(t, srv.URL, wire.ClientConfig{Token: token})
	for status = 201; status < 600; status++ {
		asked = 0
		_, err := c.Run(t.Context(), demoRun)
		var call *wire.CallError
		if !errors.As(err, &call) || call.Status != status || !call.Sent || asked != 1 {
			t.Fatalf("%d: %v, asked %d times", status, err, asked)
		}
		if wire.TurnedAway(err) != away[status] || wire.NotSent(err) {
			t.Errorf("%d: turned away %v", status, wire.TurnedAway(err))
		}
		if text := err.Error(); !strings.Contains(text, fmt.Sprintf("HTTP status %d, by", status)) || !strings.Contains(text, "gate/1") || !strings.Contains(text, "login") || strings.Contains(text, token) {
			t.Errorf("%d: %s", status, text)
		}
	}
	for _, c := range []struct {
		body, header string
		want         bool
	}{
		{"<html>Forbidden</html>", "", true},
		{`{"error":"waf"}`, "", true},
		{`{"code":403,"msg":"no"}`, "", false},
		{"", "XXL-JOB-APPNAME", false},
	} {
		status, body, header = 403, c.body, c.header
		client := executorClient(t, srv.URL, wire.ClientConfig{Token: token})
		if _, err := client.Run(t.Context(), demoRun); wire.TurnedAway(err) != c.want {
			t.Errorf("403 with %q and %q: %v", c.body, c.header, err)
		}
	}
}
