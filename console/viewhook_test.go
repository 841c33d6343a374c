package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

// TestViewed: the host is told who has seen a log, a parameter or a result, once a page, and of
// nothing that was refused, was not there, or is asked for by a page that refreshes itself.
func TestViewed(t *testing.T) { inMemory(t, testViewed) }

func testViewed(t *testing.T) {
	var seen []string
	x := newSite(t, func(c *console.Config) {
		c.Viewed = func(ctx context.Context, v console.View) {
			if ctx.Err() != nil || v.Client == "" || v.RequestID == "" {
				t.Errorf("%+v", v)
			}
			seen = append(seen, fmt.Sprintf("%s %s %s %d %d", v.User, v.Kind, v.App, v.JobID, v.RunID))
		}
	})
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Editor}})
	stranger := x.user(console.User{Name: "stranger", Apps: map[string]console.Role{"billing": console.Editor}})
	run := x.ran(true, func(_ context.Context, task *xxljob.Task) error {
		task.Log().Info("working")
		return nil
	})
	job, r := itoa(run.JobID), itoa(run.ID)
	ofJob, ofRun := "orders "+job+" 0", "orders "+job+" "+r
	for _, c := range []struct{ page, want string }{
		{"jobs/" + job, "ann job " + ofJob}, {"jobs/" + job + "/edit", "ann job " + ofJob}, {"jobs/" + job + "/once", "ann job " + ofJob}, {"jobs/new?copy=" + job, "ann job " + ofJob},
		{"jobs/" + job + "/export", "ann export " + ofJob}, {"jobs/export", "ann export  0 0"},
		{"runs/" + r, "ann run " + ofRun}, {"runs/" + r + "/log", "ann log " + ofRun}, {"runs/" + r + "/log?from=1", "ann log " + ofRun}, {"runs/" + r + "/log/file", "ann logfile " + ofRun},
		{"changes", "ann changes  0 0"}, {"jobs", ""}, {"runs", "ann runs  0 0"}, {"jobs/new", ""}, {"preview?type=CRON&conf=0+0+3+*+*+%3F", ""},
		{"jobs/4711", ""}, {"runs/4711/log", ""}, {"runs/" + r + "/log?from=x", ""},
	} {
		if ann.get(c.page); strings.Join(seen, ", ") != c.want {
			t.Errorf("%s: %q, want %q", c.page, seen, c.want)
		}
		seen = nil
		stranger.get(c.page)
		for _, one := range seen {
			if strings.Contains(one, "orders") {
				t.Errorf("%s: %s has not seen it", c.page, one)
			}
		}
		seen = nil
		ann.send(http.MethodHead, "/console/"+c.page, nil)
		ann.header.Set("HX-Request", "true")
		ann.header.Set("HX-Request-Type", "partial")
		ann.get(c.page)
		ann.header = http.Header{}
		if len(seen) > 0 {
			t.Errorf("%s: %q for no page", c.page, seen)
		}
		seen = nil
	}
	ann.post("jobs/export", url.Values{"id": {job}}).is(200)
	if got := strings.Join(seen, ", "); got != "ann export  0 0" {
		t.Errorf("ticked jobs are exported: %q", got)
	}
	for column, want := range map[string]string{"param": "ann runs  0 0", "result": "ann runs  0 0", "took": ""} {
		seen = nil
		ann.post("look", url.Values{"list": {"runs"}, "column": {column}, "next": {"runs"}}).is(200)
		if got := strings.Join(seen, ", "); got != want {
			t.Errorf("a list with the column %s: %q, want %q", column, got, want)
		}
	}
}

// TestViewedThatPanics: the page is there all the same, and the log says so.
func TestViewedThatPanics(t *testing.T) {
	x := newSite(t, func(c *console.Config) { c.Viewed = func(context.Context, console.View) { panic("no room") } })
	root := x.admin()
	root.get("jobs/" + itoa(x.job("orders", "nightly").ID)).is(200).has("param of nightly")
	if !strings.Contains(x.log.String(), "Config.Viewed has panicked") || !strings.Contains(x.log.String(), "no room") {
		t.Errorf("the log says %s", x.log)
	}
}
