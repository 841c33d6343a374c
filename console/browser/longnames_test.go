package browser

import (
	"net/url"
	"strconv"
	"testing"
)

// TestLongNames: no name of as many bytes as it may have, in whatever script and without a place to be broken
// at, makes a page wider than the screen.
func TestLongNames(t *testing.T) {
	browser(t)
	t.Parallel()
	x := extreme(t)
	job := "jobs/" + strconv.FormatInt(x.jobs["longest"], 10)
	b := newTab(t, x.origin)
	session := x.session("root")
	for _, c := range []combination{{"en", "light", 1280}, {"zh-CN", "dark", 390}} {
		b.looks(c, map[string]string{"xxljob_session": session, "xxljob_look": "language=" + c.language + "&zone=UTC"})
		for _, page := range []string{"overview", "jobs", job, job + "/edit", job + "/stop", "runs", "runs/" + strconv.FormatInt(x.runs["longest"], 10), "timetable?range=6h", "executors", "executors?tab=nodes", "executors?app=" + url.QueryEscape(x.app), "changes"} {
			b.open(mount + page)
			for _, fault := range eval[[]string](b, wide) {
				b.Errorf("%s at %d px: %s", page, c.width, fault)
			}
		}
	}
	for _, fault := range b.takeFaults() {
		t.Error(fault)
	}
}
