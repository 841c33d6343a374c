package webhook_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnswers(t *testing.T) {
	const errcode, feishu = `{"errcode":310000,"errmsg":"sign not match"}`, `{"code":19021,"msg":"sign match fail"}`
	for _, c := range []struct {
		preset string
		status int
		answer string
		want   string // in the error; "" for none
	}{
		{"webhook", 200, "", ""}, {"webhook", 204, "", ""}, {"webhook", 202, strings.Repeat("x", 1<<20), ""},
		{"webhook", 400, "no such\r\nhook", "answered 400: no such hook"}, {"webhook", 429, "slow down", "answered 429"},
		{"webhook", 500, "", "answered 500"}, {"webhook", 301, "", "redirects are not followed"}, {"webhook", 304, "", "answered 304"},
		{"dingtalk", 200, `{"errcode":0}`, ""}, {"dingtalk", 200, errcode, "code 310000"}, {"dingtalk", 200, "", "no JSON"},
		{"dingtalk", 200, "<html>", "no JSON"}, {"dingtalk", 200, "{}", "no code"}, {"dingtalk", 200, `{"errcode":"x"}`, "no JSON"},
		{"dingtalk", 200, `{"errcode":0,"x":"` + strings.Repeat("x", 1<<20) + `"}`, "no JSON"},
		{"dingtalk", 500, `{"errcode":0}`, "answered 500"},
		{"wecom", 200, `{"errcode":0}`, ""}, {"wecom", 200, `{"errcode":93000,"errmsg":"invalid webhook url"}`, "invalid webhook url"},
		{"feishu", 200, `{"code":0}`, ""}, {"feishu", 200, `{"StatusCode":0,"StatusMessage":"success"}`, ""},
		{"feishu", 200, feishu, "code 19021"}, {"feishu", 200, `{"StatusCode":9499}`, "code 9499"}, {"feishu", 200, "null", "no code"},
		{"slack", 200, "ok", ""}, {"slack", 404, "no_service", "no_service"},
		{"pagerduty", 202, "", ""}, {"pagerduty", 400, `{"status":"invalid event"}`, "invalid event"}, {"pagerduty", 429, "", "answered 429"},
		// A service that repeats what it was sent, across two lines of escapes.
		{"webhook", 400, "/robot/send?access_token=t0ken-in-url", "answered 400: [hidden]"},
		{"webhook", 400, "key s3cret\u202e-of-hook, t0ken-in-url\x00", "key [hidden], [hidden]"},
		{"webhook", 400, strings.Repeat("x", 280) + "s3cret-of-hook", "answered 400: xxx"},
		{"pagerduty", 400, "0123456789abcdef0123456789abcdef", "answered 400: [hidden]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			for _, p := range presets() {
				if p.name != c.preset {
					continue
				}
				service := newMemory(t, c.answer)
				service.status = c.status
				err := service.hook(t, p).Alarm(context.Background(), one())
				if c.want == "" {
					if err != nil {
						t.Errorf("%s, %d %.40q: %v", c.preset, c.status, c.answer, err)
					}
					continue
				}
				saysNoSecrets(t, err, p.secret, "t0ken", "s3cret")
				if err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s, %d %.40q: %v; want %q", c.preset, c.status, c.answer, err, c.want)
				}
			}
		})
	}
}

// Servers that speak no HTTP, or not all of it. Time is virtual, so that it passes at once.
func TestBadServers(t *testing.T) {
	request := func(c net.Conn) { _, _ = http.ReadRequest(bufio.NewReader(c)) }
	for name, handle := range map[string]func(net.Conn){
		"hangs before it reads": func(net.Conn) {},
		"hangs":                 request,
		"closes":                func(c net.Conn) { request(c); _ = c.Close() },
		"nonsense":              func(c net.Conn) { request(c); _, _ = io.WriteString(c, "\x00\xff nonsense\r\n\r\n") },
		"endless line":          func(c net.Conn) { request(c); repeat(c, "HTTP/1.1 200 OK") },
		"endless headers":       func(c net.Conn) { request(c); _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"); repeat(c, "A: b\r\n") },
		"endless 1xx":           func(c net.Conn) { request(c); repeat(c, "HTTP/1.1 102 Processing\r\n\r\n") },
		"hangs in an answer": func(c net.Conn) {
			request(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"errcode\":0")
		},
		"closes in an answer": func(c net.Conn) {
			request(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"errcode\":0}")
			_ = c.Close()
		},
		"endless answer": func(c net.Conn) {
			request(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			repeat(c, "{\"errcode\":0}")
		},
		"dribbles": func(c net.Conn) {
			request(c)
			for range 1000 {
				if _, err := io.WriteString(c, "H"); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := newMemory(t, "")
				service.handle = handle
				p := presets()[1] // one that looks at the body
				began := time.Now()
				err := service.hook(t, p).Alarm(context.Background(), one())
				saysNoSecrets(t, err, p.secret, "t0ken-in-url")
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it took %v", took)
				}
				time.Sleep(time.Hour) // for servers that dribble
			})
		})
	}
}

// repeat writes until nobody reads, or 64 MiB are through.
func repeat(c net.Conn, s string) {
	s = strings.Repeat(s, 1000)
	for range 64<<20/len(s) + 1 {
		if _, err := io.WriteString(c, s); err != nil {
			return
		}
	}
	_ = c.Close()
}

func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newMemory(t, "")
		service.handle = func(net.Conn) {}
		h := service.hook(t, presets()[0])
		why := errors.New("the host stops")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(3*time.Second, func() { cancel(why) })
		if err := h.Alarm(ctx, one()); !errors.Is(err, why) {
			t.Errorf("%v", err)
		}
		if err := h.Alarm(context.Background(), one()); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 10s") {
			t.Errorf("%v", err)
		}
	})
}
