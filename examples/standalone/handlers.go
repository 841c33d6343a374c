package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
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

// call makes one request. Its result is the beginning of the answer.
func (c *caller) call(ctx context.Context, t *xxljob.Task, r request) error {
	if err := c.check(r.URL); err != nil {
		return xxljob.Permanent(err) // it will not be allowed the next time either
	}
	if strings.EqualFold(r.Method, http.MethodConnect) {
		return xxljob.Permanent(errors.New("method CONNECT: a proxy would lead to a host that is on no list"))
	}
	timeout := time.Duration(r.Timeout)
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, strings.ToUpper(r.Method), r.URL, strings.NewReader(r.Data))
	if err != nil {
		return xxljob.Permanent(err)
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
