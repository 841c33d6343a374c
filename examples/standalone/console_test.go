package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"
)

// visitor is a browser without scripts.
type visitor struct {
	*testing.T
	http.Client
}

func visit(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t, http.Client{Jar: jar, Timeout: 10 * time.Second}}
}

// sees returns the page that an answer leads to, and its address.
func (v *visitor) sees(res *http.Response, err error) (page, at string) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		v.Fatal(err)
	}
	return string(body), res.Request.URL.Path
}

// TestConsole: the link that is printed leads to the console, and nobody gets in without it.
func TestConsole(t *testing.T) {
	for name, o := range map[string]options{
		"by itself":        {console: consoleAccounts},
		"beside executors": {console: consoleAccounts, listen: "127.0.0.1:0", token: "secret-one"},
		"for others":       {console: consoleAccounts, consoleListen: "127.0.0.1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var out lines
			ended := make(chan error, 1)
			o.zone = time.UTC
			go func() { ended <- run(ctx, o, &out, nil) }()
			link := out.wait(t, `console: (http://\S+/console/)setup#([A-Z2-7]{26})\s`)
			if o.listen != "" {
				admin := out.wait(t, `executors register at (http://\S+)/xxl-job-admin`)[1]
				if at, err := url.Parse(link[1]); err != nil || "http://"+at.Host == admin || at.Hostname() != "localhost" {
					t.Errorf("the console is at %s, executors register at %s", link[1], admin)
				}
				if page, _ := visit(t).sees(visit(t).Get(admin + "/console/")); strings.Contains(page, "html") {
					t.Errorf("executors get the console: %s", page)
				}
			}
			v := visit(t)
			if page, at := v.sees(v.Get(link[1] + "jobs")); at != "/console/setup" || strings.Contains(page, "demo") {
				t.Errorf("at %s: %s", at, page)
			}
			form := url.Values{"code": {strings.Repeat("A", 26)}, "name": {"root"}, "password": {"correct horse"}, "again": {"correct horse"}}
			if _, at := v.sees(v.PostForm(link[1]+"setup", form)); at != "/console/setup" {
				t.Errorf("at %s with another code", at)
			}
			form.Set("code", link[2])
			if page, at := v.sees(v.PostForm(link[1]+"setup", form)); at != "/console/overview" || !strings.Contains(page, "All is well") {
				t.Errorf("at %s: %s", at, page)
			}
			if page, _ := v.sees(v.Get(link[1] + "jobs")); strings.Count(page, `class="row"`) < 50 {
				t.Errorf("the demo's jobs are %d", strings.Count(page, `class="row"`))
			}
			if _, at := visit(t).sees(visit(t).Get(link[1] + "jobs")); at != "/console/login" {
				t.Errorf("at %s as nobody", at)
			}
			if strings.Count(out.text(), link[2]) != 1 {
				t.Errorf("the code is printed more than once: %s", out.text())
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTrustedProxies: addresses and networks, and nothing that is neither or is everybody.
func TestTrustedProxies(t *testing.T) {
	o, err := parse([]string{"-trusted-proxy", "192.0.2.7,::ffff:192.0.2.8,10.0.0.0/8,2001:db8::/32"}, io.Discard)
	if got := fmt.Sprint(o.proxies); err != nil || got != "[192.0.2.7/32 192.0.2.8/32 10.0.0.0/8 2001:db8::/32]" {
		t.Errorf("%s, %v", got, err)
	}
	for _, bad := range []string{"", "proxy", "192.0.2.7, 192.0.2.8", "10.0.0.0/33", "0.0.0.0/0", "::/0", "::ffff:10.0.0.0/104"} {
		if _, err := parse([]string{"-trusted-proxy", bad}, io.Discard); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestConsoleOfThisMachine: whoever is on it gets in, and off lets nobody.
func TestConsoleOfThisMachine(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out lines
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, options{zone: time.UTC, console: consoleLoopback}, &out, nil) }()
	link := out.wait(t, `console: (http://localhost:\d+/console/)\s`)[1]
	v := visit(t)
	if _, at := v.sees(v.Get(link)); at != "/console/overview" {
		t.Errorf("at %s", at)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, link+"jobs", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example" // a name of somebody else's that leads here
	if res, err := v.Do(r); err != nil || res.StatusCode != http.StatusUnauthorized {
		t.Errorf("%v, %v for another name", res, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, mode := range []string{consoleOff, ""} {
		var out lines
		if err := run(t.Context(), options{zone: time.UTC, console: mode, runFor: time.Second}, &out, nil); err != nil || strings.Contains(out.text(), "console:") {
			t.Errorf("%q: %v, %s", mode, err, out.text())
		}
	}
	if err := run(t.Context(), options{zone: time.UTC, console: "open"}, &lines{}, nil); err == nil || !strings.Contains(err.Error(), `-console "open"`) {
		t.Errorf("an unknown mode: %v", err)
	}
}
