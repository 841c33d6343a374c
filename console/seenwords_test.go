package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/store"
)

// latin is a sentence in Latin letters, or the most of one: three words one after the other.
var latin = regexp.MustCompile(`[A-Za-z][a-z']+[,:]? [a-z']{2,}[,:]? [a-z']{2,}`)

// seenIn is what is seen of a trouble, with something for all that a sentence may have.
func seenIn(what store.SeenWhat) store.Seen {
	return store.Seen{What: what, Jobs: 12, Runs: 1204, RunID: 7214, For: 90 * time.Second, At: time.Now().Add(-time.Hour), Names: "Mars/Olympus", Said: "ERROR-23505"}
}

// TestTroublesInChinese: whatever is seen of whichever trouble, the overview and the page of troubles say it in
// Chinese, with the figures, names and errors of it; in English they say it too.
func TestTroublesInChinese(t *testing.T) {
	s := &troubled{}
	x := newSite(t, func(c *console.Config) { s.Scheduler, c.Scheduler = c.Scheduler, s })
	root := x.admin()
	x.job("orders", "nightly")
	english := catalogue(t, "en")
	for _, cause := range store.TroubleCauses() {
		for _, what := range store.SeenOf(cause) {
			seen := seenIn(what)
			x := xxljob.Trouble{Cause: cause, Since: time.Now(), Seen: seen, Detail: seen.String(), Remedy: "this is to be done about it"}
			if cause != xxljob.TroubleNoExecutor && cause != xxljob.TroubleLockedRows {
				x.App = "orders"
			}
			s.list = []xxljob.Trouble{x}
			root.post("look", url.Values{"language": {"en"}})
			root.get("troubles").is(http.StatusOK)
			if !latin.MatchString(root.text()) {
				t.Fatalf("no sentence is found in English: %s", root.text())
			}
			root.post("look", url.Values{"language": {"zh-CN"}})
			for _, page := range []string{"troubles", "overview"} {
				root.get(page).is(http.StatusOK)
				if found := latin.FindString(root.text()); found != "" {
					t.Errorf("%s, %s: %s says %q", cause, what, page, found)
				}
				if page == "overview" && cause == xxljob.TroubleNoExecutor { // which is found by the store
					continue
				}
				for name, value := range map[string]string{"jobs": "12", "runs": "1,204", "run": "7214", "for": "1 分 30 秒", "names": "Mars/Olympus", "said": "ERROR-23505"} {
					if strings.Contains(english["seen."+string(what)], "{"+name+"}") {
						root.has(value)
					}
				}
			}
		}
	}
}

// TestFindingsInChinese: nor is any other cause said in English, but for what executors and handlers say.
func TestFindingsInChinese(t *testing.T) {
	broken := xxljob.Job{ID: 1, Schedule: xxljob.Cron("0 0 0 32 * ?")}
	why := broken.Schedule.Validate(true)
	if why == nil {
		t.Fatal("the schedule is none")
	}
	for _, tag := range []string{"zh-CN", "zh-TW"} {
		for _, f := range []finding.Finding{
			{Cause: finding.ShardUnowned, Shards: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, Detail: "shards 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"},
			{Cause: finding.NodeSilent, Detail: "orders-7c9d"}, {Cause: finding.NodeFailing, Detail: "orders-7c9d"},
			{Cause: finding.NoExecutor, App: "orders", Enabled: 3, Detail: "enabled jobs: 3, and there never was one"},
			{Cause: finding.NoExecutor, App: "orders", Detail: "no enabled jobs, and due runs", Since: time.Now()},
			{Cause: finding.NoHandler, App: "orders", Jobs: []int64{1}, Name: "nightly", Detail: "work"},
			{Cause: finding.NoHandler, App: "orders", Jobs: []int64{1}, Name: "nightly", Error: "job handler [work] not found."},
			{Cause: finding.NoHandler, App: "orders", Jobs: []int64{1}, Name: "nightly", Error: "glueType[GLUE_PHP] is not valid."},
			{Cause: finding.Failing, Jobs: []int64{1}, Name: "nightly"}, {Cause: finding.Stopped, Jobs: []int64{1}, Name: "nightly", Error: why.Error()},
			{Cause: finding.TimingOut, Jobs: []int64{1}, Name: "nightly"}, {Cause: finding.Losing, Jobs: []int64{1}, Name: "nightly"}, {Cause: finding.Refused, Jobs: []int64{1}, Name: "nightly"},
			{Cause: finding.FallingBehind, Jobs: []int64{1}, Name: "nightly", Took: time.Minute, Every: time.Second, Detail: "a run takes 1m0s, one is due each 1s"},
			{Cause: finding.Overdue, Jobs: []int64{1}, Name: "nightly"}, {Cause: finding.NeverFires, Jobs: []int64{1}, Name: "nightly"},
			{Cause: finding.AlarmsUndelivered, App: "orders"}, {Cause: finding.Flapping, Jobs: []int64{1}, Name: "nightly"},
		} {
			text := console.CauseWords(tag, f, broken)
			if found := latin.FindString(text); found != "" || !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x4e00 && r <= 0x9fff }) {
				t.Errorf("%s: %s says %q", tag, f.Cause, text)
			}
			for _, said := range []string{"work", "GLUE_PHP"} {
				if strings.Contains(f.Error, said) && !strings.Contains(text, said) {
					t.Errorf("%s: %s does not name %s: %s", tag, f.Cause, said, text)
				}
			}
		}
	}
	if text := console.CauseWords("zh-CN", finding.Finding{Cause: finding.ShardUnowned, Shards: []int{3, 5}}); !strings.Contains(text, "2 个分片：3, 5") {
		t.Error(text)
	}
}

// TestWhatTheStoreSays of why due jobs are not read is for admins.
func TestWhatTheStoreSays(t *testing.T) {
	s := &troubled{}
	x := newSite(t, func(c *console.Config) { s.Scheduler, c.Scheduler = c.Scheduler, s })
	root := x.admin()
	viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}})
	for i, what := range []store.SeenWhat{store.SeenStalledScan, store.SeenRefusesPlan} {
		seen := seenIn(what)
		s.list = []xxljob.Trouble{{Cause: []xxljob.TroubleCause{xxljob.TroubleStuckRuns, xxljob.TroubleRefused}[i], App: "orders", Since: time.Now(), Seen: seen, Detail: seen.String()}}
		for _, page := range []string{"troubles", "overview"} {
			root.get(page).is(http.StatusOK).has("ERROR-23505")
			viewer.get(page).is(http.StatusOK).lacks("ERROR-23505").has("The store has reported an error")
		}
	}
}
