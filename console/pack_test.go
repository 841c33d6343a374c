package console_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
)

// unpacked is what an answer says, and whether it came compressed.
func (b *browser) unpacked() (text string, was bool) {
	b.Helper()
	if b.res.Header.Get("Content-Encoding") != "gzip" {
		return b.body, false
	}
	r, err := gzip.NewReader(strings.NewReader(b.body))
	must(b.T, err)
	return string(must1(io.ReadAll(r))), true
}

// TestPagesArePacked: pages and what they ask for go compressed to who takes that, and say the same.
func TestPagesArePacked(t *testing.T) { synctest.Test(t, testPagesArePacked) }

func testPagesArePacked(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	style := regexp.MustCompile(`href="\./(asset/[^"]*\.css)"`).FindStringSubmatch(root.get("jobs").body)[1]
	for _, c := range []struct {
		header http.Header
		packed bool
	}{
		{nil, false},
		{http.Header{"Accept-Encoding": {"gzip, deflate, br, zstd"}}, true},
		{http.Header{"Accept-Encoding": {"br", "GZIP;q=0.5"}}, true},
		{http.Header{"Accept-Encoding": {"br, gzip;q=0"}}, false},
		{http.Header{"Accept-Encoding": {"deflate"}}, false},
	} {
		root.header = http.Header{}
		plain := map[string]string{}
		for _, to := range []string{"jobs", "jobs/" + itoa(j.ID), style} {
			plain[to] = root.get(to).is(200).body
		}
		root.header = c.header
		for to, want := range plain {
			text, was := root.get(to).is(200).unpacked()
			if was != c.packed || !strings.Contains(root.res.Header.Get("Vary"), "Accept-Encoding") {
				t.Errorf("%s with %v: compressed %v, varies by %q", to, c.header, was, root.res.Header.Get("Vary"))
			}
			if text != want {
				t.Errorf("%s says something else compressed", to)
			}
			if was && len(root.body) > len(text)/2 {
				t.Errorf("%s: %d bytes of %d", to, len(root.body), len(text))
			}
		}
	}
}

// TestFilesArePacked: exports and logs go compressed like pages, and say the same; a log comes as it is
// to who was led to it by another site.
func TestFilesArePacked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		r := x.ran(true, func(_ context.Context, task *xxljob.Task) error {
			for i := range 1500 { // more than are read at once
				task.Log().Info("a line", "n", i)
			}
			return nil
		})
		stamp := regexp.MustCompile(`"exportedAt": "[^"]*"`)
		files := map[string]func(){
			"the log":        func() { root.get("runs/" + itoa(r.ID) + "/log/file") },
			"a job":          func() { root.get("jobs/" + itoa(r.JobID) + "/export") },
			"the list":       func() { root.get("jobs/export") },
			"what is ticked": func() { root.post("jobs/export", url.Values{"id": {itoa(r.JobID)}}) },
		}
		for name, ask := range files {
			root.header = http.Header{}
			ask()
			plain := stamp.ReplaceAllString(root.is(200).body, "")
			root.header = http.Header{"Accept-Encoding": {"gzip"}, "Sec-Fetch-Site": {"same-origin"}}
			ask()
			text, was := root.is(200).unpacked()
			if text = stamp.ReplaceAllString(text, ""); !was || text != plain || len(root.body) > len(text) && len(text) > 1000 || !strings.Contains(root.res.Header.Get("Vary"), "Accept-Encoding") {
				t.Errorf("%s: compressed %v, %d bytes of %d, want %d; %v", name, was, len(root.body), len(text), len(plain), root.res.Header)
			}
			root.header.Set("Sec-Fetch-Site", "cross-site")
			if name != "what is ticked" { // which another site cannot send
				ask()
				if text, was := root.is(200).unpacked(); was || stamp.ReplaceAllString(text, "") != plain {
					t.Errorf("%s, which another site has chosen, is compressed: %v", name, was)
				}
			}
			time.Sleep(time.Minute) // so many files a second
		}
	})
}

// TestWhatOthersHaveChosenIsNotPacked: a page with words that another site may have chosen is sent as
// it is, and so is what that page asks for by itself. Else who sees how long it is could guess what
// else it says.
func TestWhatOthersHaveChosenIsNotPacked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		j := x.job("orders", "nightly")
		x.run(j)
		to := "runs?app=orders"
		for _, c := range []struct {
			site, referer string
			packed        bool
			plain         bool // also what the page asks for
		}{
			{"same-origin", "", true, false},
			{"none", "", true, false},
			{"cross-site", "", false, true},
			{"same-site", "http://host.example/console/jobs", false, true},
			{"", "", false, false},
			{"", "http://host.example/console/jobs", true, false},
			{"", "http://evil.example/", false, false},
			{"", "http://host.example.evil.example/", false, false},
		} {
			root.header = http.Header{"Accept-Encoding": {"gzip"}, "Sec-Fetch-Site": {c.site}}
			if c.site == "" {
				root.header["Sec-Fetch-Site"] = nil
			}
			if c.referer != "" {
				root.header.Set("Referer", c.referer)
			}
			text, was := root.get(to).is(200).unpacked()
			if was != c.packed {
				t.Errorf("from %q, behind %q: compressed %v", c.site, c.referer, was)
			}
			root.body = text
			poll := root.polls()
			for range 2 { // what it asks for is of our own page
				x.run(j)
				time.Sleep(2 * time.Second)
				root.header = http.Header{"Accept-Encoding": {"gzip"}}
				root.live()
				for range 30 { // there is enough of it
					x.run(j)
				}
				text, was = root.get(poll).is(200).unpacked()
				if was == c.plain {
					t.Errorf("from %q, behind %q: the poll %s is compressed %v", c.site, c.referer, poll, was)
				}
				root.body = text
				poll = root.polls()
			}
		}
	})
}

// TestBytesAMinute: who has a list open is sent 200 kB a minute at most, also where each reading of
// it has news and it is as long as can be.
func TestBytesAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		noise := uint64(1)
		word := func() string {
			noise = noise*6364136223846793005 + 1442695040888963407
			return strconv.FormatUint(noise>>16, 36)
		}
		for i := range 500 {
			x.job("orders", fmt.Sprintf("job %s %s %d", word(), word(), i))
		}
		j := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "by hand", Handler: "work"}))
		for range 60 {
			param := word() + word() + word()
			must1(x.store.AddRun(t.Context(), j.ID, xxljob.Trigger{Param: &param}))
		}
		for _, list := range []string{"runs", "jobs", "jobs?rows=200", "jobs?rows=500"} {
			root.header = http.Header{"Accept-Encoding": {"gzip"}}
			text, _ := root.get(list).is(200).unpacked()
			every := must1(time.ParseDuration(regexp.MustCompile(`data-hx-trigger="every (\d+s),`).FindStringSubmatch(text)[1]))
			root.body = text
			poll, _, _ := strings.Cut(root.polls(), "seen=")
			text, was := root.live().get(strings.TrimRight(poll, "?&")).is(200).unpacked()
			head := 600 // of an answer
			sum := (len(root.body) + head) * int(time.Minute/every)
			t.Logf("%s: %d bytes of %d every %v, %d a minute", list, len(root.body), len(text), every, sum)
			if !was || sum > 200_000 {
				t.Errorf("%s: %d bytes a minute", list, sum)
			}
			time.Sleep(2 * time.Second)
		}
	})
}
