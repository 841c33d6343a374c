package wire_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/wire"
)

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
