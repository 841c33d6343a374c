package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/executor"
)

// demo logs a few lines. It works for a moment, as long as its context lasts.
func demo(ctx context.Context, t *xxljob.Task) error {
	t.Log().Info("demo begins", "param", t.Param, "scheduled", t.ScheduledAt)
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.Log().Info("demo ends")
	t.SetResult(strings.TrimSpace("hello " + t.Param))
	return nil
}

// sharding says which part of a broadcast it is.
func sharding(_ context.Context, t *xxljob.Task) error {
	t.Log().Info("sharding", "index", t.ShardIndex, "total", t.ShardTotal)
	t.SetResult(fmt.Sprintf("part %d of %d", t.ShardIndex, t.ShardTotal))
	return nil
}

const (
	maxBody        = 64 << 10 // of an answer; the rest is not read
	defaultTimeout = 30 * time.Second
)

// request is the parameter of httpJobHandler, as JSON.
type request struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"` // GET when empty
	Headers map[string]string `json:"headers"`
	Data    string            `json:"data"`
	Timeout duration          `json:"timeout"` // "5s"; 30 s when zero
}

// duration is a time.Duration written as "1m30s".
type duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err == nil && v < 0 {
		err = errors.New("must not be negative")
	}
	*d = duration(v)
	return err
}

// caller is httpJobHandler: it calls hosts of a list and no others.
type caller struct {
	allow  map[string]bool // host:port, in lower case
	client *http.Client
}

// newCaller checks the list. A host without a port stands for the usual ports of
// http and https.
func newCaller(hosts []string) (*caller, error) {
	c := &caller{allow: map[string]bool{}, client: &http.Client{
		// No proxy of the environment: it could reach what is not on the list. No
		// redirects, for the same reason.
		Transport: &http.Transport{
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    10 * time.Second,
			IdleConnTimeout:        time.Minute,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(to *http.Request, _ []*http.Request) error {
			return fmt.Errorf("redirect to %s refused", to.URL.Redacted())
		},
	}}
	var errs []error
	for _, h := range hosts {
		u, err := url.Parse("//" + strings.TrimSpace(h))
		switch {
		case err != nil || u.Hostname() == "" || u.Host != strings.TrimSpace(h):
			errs = append(errs, fmt.Errorf("-http-allow: %q: want a host or host:port", h))
		case u.Port() == "":
			c.allow[address(u.Hostname(), "80")] = true
			c.allow[address(u.Hostname(), "443")] = true
		default:
			c.allow[address(u.Hostname(), u.Port())] = true
		}
	}
	return c, errors.Join(errs...)
}

func address(host, port string) string { return strings.ToLower(host) + ":" + port }

// check refuses what must not be called.
func (c *caller) check(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return err
	}
	port := u.Port()
	switch {
	case u.Scheme == "http" && port == "":
		port = "80"
	case u.Scheme == "https" && port == "":
		port = "443"
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("url %q: want http:// or https://", u.Redacted())
	}
	switch {
	case u.User != nil:
		return fmt.Errorf("url %q: give credentials in a header", u.Redacted())
	case !c.allow[address(u.Hostname(), port)]:
		return fmt.Errorf("host %q, port %s is not in -http-allow", u.Hostname(), port)
	}
	return nil
}

// call makes one request. Its result is the beginning of the answer.
func (c *caller) call(ctx context.Context, t *xxljob.Task, r request) error {
	if err := c.check(r.URL); err != nil {
		return executor.Fail(err) // it will not be allowed the next time either
	}
	timeout := time.Duration(r.Timeout)
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, strings.ToUpper(r.Method), r.URL, strings.NewReader(r.Data))
	if err != nil {
		return executor.Fail(err)
	}
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	t.Log().Info("calling", "method", req.Method, "url", req.URL.Redacted())
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() // unread, it closes the connection
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return fmt.Errorf("%s: reading the answer: %w", res.Status, err)
	}
	t.Log().Info("answered", "status", res.Status, "bytes", len(body))
	text := res.Status + "\n" + string(body)
	if res.StatusCode >= 400 {
		return errors.New(text)
	}
	t.SetResult(text)
	return nil
}
