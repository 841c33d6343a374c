package postgres

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Those who look at live pages: what a browser does that has one open.

// The pace of a page's scripts.
const (
	pollEvery   = 2 * time.Second
	followEvery = time.Second
)

// order says what is looked at from now on: pages by their addresses, one viewer each, and logs
// that are followed, each by a viewer more. Nothing ends the looking.
type order struct{ Pages, Logs []string }

// seen is what was seen since the last order.
type seen struct {
	Polls, News int
	Failed      string          // what went wrong, if anything did
	Took        []time.Duration // each poll, sorted
	Lines       []lines         // of each log
}

// lines are those that were followed: how long after it was written each was there, sorted.
type lines []time.Duration

// viewers are all who look.
type viewers struct {
	stop context.CancelFunc // of those of the last order
	all  sync.WaitGroup
	mu   sync.Mutex
	seen seen // guarded by mu
}

// view looks at what it is told to.
func view() error {
	v := &viewers{stop: func() {}}
	return obey(v.do)
}

func (v *viewers) do(o order) (seen, error) {
	v.stop()
	v.all.Wait()
	got := v.seen
	slices.Sort(got.Took)
	for _, l := range got.Lines {
		slices.Sort(l)
	}
	v.seen = seen{Lines: make([]lines, len(o.Logs))}
	ctx, cancel := context.WithCancel(context.Background())
	v.stop = cancel
	for i, page := range o.Pages {
		v.all.Go(func() { v.watch(ctx, page, pollEvery*time.Duration(i)/time.Duration(len(o.Pages))) })
	}
	for i, log := range o.Logs {
		v.all.Go(func() { v.follow(ctx, log, i) })
	}
	return got, nil
}

// polled is where a page is asked for what is new.
var polled = regexp.MustCompile(`data-hx-get="([^"]*)"`)

// watch opens a page after a while, and polls it.
func (v *viewers) watch(ctx context.Context, page string, after time.Duration) {
	if !pause(ctx, after) {
		return
	}
	body, _, err := fetch(ctx, page, false)
	for v.noted(ctx, err) {
		m := polled.FindStringSubmatch(body)
		if m == nil {
			v.noted(ctx, fmt.Errorf("%s is not live", page))
			return
		}
		to, err := resolve(page, strings.ReplaceAll(m[1], "&amp;", "&"))
		if !v.noted(ctx, err) {
			return
		}
		for nothing := true; nothing; {
			if !pause(ctx, pollEvery) {
				return
			}
			began := time.Now()
			news, res, err := fetch(ctx, to, true)
			if !v.noted(ctx, err) {
				return
			}
			if nothing = res.StatusCode == http.StatusNoContent; !nothing {
				body = news
			}
			v.mu.Lock()
			v.seen.Polls++
			v.seen.Took = append(v.seen.Took, time.Since(began))
			if !nothing {
				v.seen.News++
			}
			v.mu.Unlock()
		}
	}
}

// written is when a line was written, as it says itself.
var written = regexp.MustCompile(`\bat=(\d+)`)

// follow follows a log from its end.
func (v *viewers) follow(ctx context.Context, log string, n int) {
	next, begun := "1", false
	for pause(ctx, followEvery) {
		body, res, err := fetch(ctx, log+"?from="+next, true)
		if !v.noted(ctx, err) {
			return
		}
		now := time.Now().UnixNano()
		if to := res.Header.Get("X-Log-Next"); to != "" {
			next = to
		}
		v.mu.Lock()
		for _, m := range written.FindAllStringSubmatch(body, -1) {
			if at, err := strconv.ParseInt(m[1], 10, 64); err == nil && begun {
				v.seen.Lines[n] = append(v.seen.Lines[n], time.Duration(now-at))
			}
		}
		v.mu.Unlock()
		if res.StatusCode == http.StatusNoContent || len(body) < 10_000 { // it has caught up
			begun = true
		}
	}
}

// noted notes what went wrong, unless it is the end, and reports whether to go on.
func (v *viewers) noted(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen.Failed = err.Error()
	return false
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// fetch asks for a page, or as a script for a part of one.
func fetch(ctx context.Context, url string, part bool) (body string, res *http.Response, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", nil, err
	}
	if part {
		r.Header.Set("HX-Request", "true")
		r.Header.Set("HX-Request-Type", "partial")
	}
	if res, err = http.DefaultClient.Do(r); err != nil {
		return "", nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s: status %d", url, res.StatusCode)
	}
	return string(b), res, err
}

func resolve(page, to string) (string, error) {
	r, err := http.NewRequest(http.MethodGet, page, nil)
	if err != nil {
		return "", err
	}
	u, err := r.URL.Parse(to)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}
