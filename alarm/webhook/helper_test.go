package webhook_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/alarm/webhook"
)

var at = time.Date(2026, 3, 1, 1, 30, 0, 0, time.UTC)

// one is an alarm with one event.
func one() alarm.Message {
	return alarm.Message{
		ID: "4711/ops", Cause: alarm.Failed, App: "billing", JobID: 17, JobKey: "nightly", JobName: "nightly <report> & \"more\"",
		Emails: []string{"ann@example.org"}, Count: 1, First: at, Last: at, Node: "node-1",
		Events: []alarm.Event{{Cause: alarm.Failed, At: at, RunID: 9007199254740993, State: "timed out", Attempt: 1, Instant: at, Text: "no end within 60 s\n@all <!channel> <at id=all></at> <@U1>"}},
	}
}

// storm is an alarm for more than is listed.
func storm() alarm.Message {
	m := one()
	m.Count, m.Last = 300, at.Add(5*time.Minute)
	m.Events = append(m.Events, alarm.Event{Cause: alarm.Skipped, At: at, Text: "3 instants"})
	return m
}

// recovered is good news.
func recovered() alarm.Message {
	m := one()
	m.Cause, m.Events = alarm.Recovered, []alarm.Event{{Cause: alarm.Recovered, At: at, RunID: 4720, State: "succeeded", Instant: at}}
	return m
}

type maker func(webhook.Config) (*webhook.Hook, error)

// preset is a constructor, with an answer of its service that is good, and a secret if it
// takes one.
type preset struct {
	name   string
	make   maker
	secret string
	answer string
}

func presets() []preset {
	return []preset{
		{"webhook", webhook.New, "s3cret-of-hook", ""},
		{"dingtalk", webhook.DingTalk, "SEC0123456789", `{"errcode":0,"errmsg":"ok"}`},
		{"wecom", webhook.WeCom, "", `{"errcode":0,"errmsg":"ok"}`},
		{"feishu", webhook.Feishu, "feishu-secret", `{"code":0,"msg":"success","data":{}}`},
		{"slack", webhook.Slack, "", "ok"},
		{"pagerduty", webhook.PagerDuty, "0123456789abcdef0123456789abcdef", `{"status":"success"}`},
	}
}

// received is a request that a service got.
type received struct {
	path, sign, contentType string
	body                    []byte
}

// memory is a service without a network: it answers over pipes, so that time in a test may be
// virtual. Its field status and answer are what it answers, handle what it does in place.
type memory struct {
	status int
	answer string
	handle func(net.Conn) // in place of HTTP
	conns  chan net.Conn
	server *http.Server

	mu  sync.Mutex
	got []received
}

func newMemory(t *testing.T, answer string) *memory {
	m := &memory{status: 200, answer: answer, conns: make(chan net.Conn)}
	m.server = &http.Server{Handler: m}
	served := make(chan struct{})
	go func() { defer close(served); _ = m.server.Serve(m) }()
	t.Cleanup(func() { _ = m.server.Close(); <-served })
	return m
}

func (m *memory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	m.got = append(m.got, received{r.Method + " " + r.URL.String(), r.Header.Get("X-Xxljob-Signature"), r.Header.Get("Content-Type"), body})
	m.mu.Unlock()
	w.WriteHeader(m.status)
	_, _ = io.WriteString(w, m.answer)
}

func (m *memory) last(t *testing.T) received {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.got) == 0 {
		t.Fatal("nothing was posted")
	}
	return m.got[len(m.got)-1]
}

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	if m.handle != nil {
		go m.handle(server)
		return client, nil
	}
	select {
	case m.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept, Close and Addr make it a listener.
func (m *memory) Accept() (net.Conn, error) {
	c, ok := <-m.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (m *memory) Close() error { close(m.conns); return nil }

func (m *memory) Addr() net.Addr { return &net.TCPAddr{} }

// hook makes an alarmer for it.
func (m *memory) hook(t *testing.T, p preset) *webhook.Hook {
	t.Helper()
	format, err := alarm.NewFormat(alarm.FormatConfig{Link: func(alarm.Message) string { return "https://console.example.org/jobs/17?a=1&b=2" }})
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.make(webhook.Config{
		URL: "http://hook.example.org/robot/send?access_token=t0ken-in-url", AllowHTTP: true, Secret: p.secret, DialContext: m.dial, Format: format,
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// saysNoSecrets checks an error.
func saysNoSecrets(t *testing.T, err error, secrets ...string) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, s := range secrets {
			if s != "" && strings.Contains(e.Error(), s) {
				t.Errorf("%q is in %q", s, e)
			}
		}
		if len(e.Error()) > 500 || strings.ContainsAny(e.Error(), "\r\n\x00") {
			t.Errorf("%d bytes or more than a line: %.600q", len(e.Error()), e)
		}
	}
}
