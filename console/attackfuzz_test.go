package console_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/stage"
	"github.com/xxljob/xxljob/store/memory"
)

// fuzzed is a console with a job and a run of an app that the viewer of it does not see, and some
// that the viewer does.
func fuzzed(f *testing.F) http.Handler {
	f.Helper()
	if stage.Detector {
		f.Skip("one request after the other: the race detector has nothing to say of it")
	}
	st := memory.New()
	s := must1(xxljob.New(st, xxljob.Config{App: "orders", Logger: slog.New(slog.DiscardHandler)}))
	for app, name := range map[string]string{"orders": "mine", "billing": "secret one"} {
		j := must1(s.AddJob(f.Context(), xxljob.Job{App: app, Name: name, Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?"), Param: name}))
		must1(st.AddRun(f.Context(), j.ID, xxljob.Trigger{}))
	}
	return must1(console.NewAlike(console.Config{Store: st, Scheduler: s, Logger: slog.New(slog.DiscardHandler), Auth: console.Func(func(*http.Request) (console.User, error) {
		return console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Editor}}, nil
	}, "")}))
}

// harmless checks an answer to who must not see the secret one.
func harmless(t *testing.T, h http.Handler, address string) {
	t.Helper()
	u, err := url.Parse("http://host.example/")
	if err != nil {
		t.Fatal(err)
	}
	p, query, _ := strings.Cut(address, "?")
	u.Path, u.RawQuery = "/"+p, query
	r := &http.Request{Method: http.MethodGet, URL: u, Host: "host.example", Header: http.Header{}, Body: http.NoBody, RemoteAddr: "192.0.2.1:1"}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code >= 500 || w.Code == http.StatusUnauthorized {
		t.Errorf("%q: status %d", address, w.Code)
	}
	if body := w.Body.String(); strings.Contains(body, "secret one") || len(active(body)) > 0 || len(hides("", body)) > 0 {
		t.Errorf("%q shows what it should not: %q %q", address, active(body), hides("", body))
	}
	if to := w.Header().Get("Location"); to != "" {
		if next, err := u.Parse(to); err != nil || next.Host != "host.example" || strings.ContainsAny(to, "\r\n") {
			t.Errorf("%q leads to %q", address, to)
		}
	}
}

// FuzzPlaces: whatever stands where a list is to go on.
func FuzzPlaces(f *testing.F) {
	h := fuzzed(f)
	for _, place := range []string{"", "e30", placeIn("id", "1"), placeIn("id", `{"ID":7}`), placeIn("name", `{"Name":"secret on","ID":1,"App":"billing"}`), placeIn("next", `{"Next":"2000-01-01T00:00:00Z"}`), placeIn("waiting", `{"ID":1,"Scheduled":"2000-01-01T00:00:00Z"}`)} {
		f.Add(place)
	}
	f.Fuzz(func(t *testing.T, place string) {
		q := url.QueryEscape(place)
		for _, page := range []string{"jobs?after=", "jobs?order=id&after=", "jobs?order=next&after=", "runs?before=", "runs?state=waiting&before=", "changes?before="} {
			harmless(t, h, page+q)
		}
	})
}

// FuzzFilters: whatever stands behind the question mark of a list, a log or a preview.
func FuzzFilters(f *testing.F) {
	h := fuzzed(f)
	for _, query := range []string{"", "text=x&app=orders&state=on&type=CRON&handler=h&author=a&tag=t&order=next&rows=500&failing=yes", "job=1&state=bad&type=MANUAL&since=2020-01-01T00:00:00Z&until=2030-01-01T00:00:00Z&slower=1.5&address=a",
		"actor=a&verb=stop&object=job&id=1", "form=1&since=2020-01-01T10:00&until=x&text=%ff", "type=CRON&conf=0+0+3+*+*+%3F&zone=UTC&dst=QUARTZ", "type=FIX_RATE&conf=1e9", "seen=1;2&a=%zz", "app=billing&text=secret+one", "copy=1&app=%00"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, page := range []string{"jobs", "runs", "changes", "preview", "jobs/new", "jobs/find"} {
			if !strings.Contains(query, "secret") { // what is typed is shown to who has typed it
				harmless(t, h, page+"?"+query)
			}
		}
	})
}

// FuzzPaths: whatever is asked for.
func FuzzPaths(f *testing.F) {
	h := fuzzed(f)
	for _, rt := range console.Routes() {
		f.Add(rt.Pattern)
		f.Add(pathOf(rt.Pattern, 1))
	}
	f.Add("jobs/../../etc/passwd")
	f.Add("asset/\x00")
	f.Fuzz(func(t *testing.T, p string) {
		if !strings.Contains(p, "?") && !strings.HasPrefix(p, "health") {
			harmless(t, h, p)
		}
	})
}

// FuzzNextPage: whatever page is asked for after a login is one of the console, for a browser.
func FuzzNextPage(f *testing.F) {
	for _, next := range []string{"", "jobs", "jobs?x=1#y", "//evil", "https:evil", "..", "jobs/%2e%2e/%2e%2e/", `\\evil`, "a:b", "?//", "\x01//evil", "jobs\x7f", strings.Repeat("\x94", 1000)} {
		f.Add(next)
	}
	mount := must1(url.Parse("http://host.example/console/login"))
	f.Fuzz(func(t *testing.T, next string) {
		own := console.OwnPage(next)
		to, err := mount.Parse("./" + own)
		if err != nil || to.Host != "host.example" || to.Scheme != "http" || !strings.HasPrefix(path.Clean(to.Path)+"/", "/console/") || strings.ContainsAny(own, "\\\r\n\t\x00") {
			t.Errorf("%q became %q, which leads to %v, %v", next, own, to, err)
		}
		if again := console.OwnPage(own); again != own {
			t.Errorf("%q became %q, and that %q", next, own, again)
		}
	})
}
