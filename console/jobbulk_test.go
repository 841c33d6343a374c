package console_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
)

// TestBulk: each job by its own rights, with a result of its own, and an entry for each that was
// changed.
func TestBulk(t *testing.T) { onBothStores(t, testBulk) }

func testBulk(t *testing.T) {
	x := newSite(t)
	x.admin()
	one, two, seen, hidden := x.job("orders", "one"), x.job("orders", "two"), x.job("audit", "only seen"), x.job("billing", "hidden one")
	manual := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "by hand", Handler: "work"}))
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Operator, "audit": console.Viewer}})
	ids := []string{itoa(one.ID), itoa(two.ID), itoa(two.ID), itoa(seen.ID), itoa(hidden.ID), "4711", itoa(manual.ID)}
	changes := func() int {
		return len(must1(x.store.SearchChanges(t.Context(), xxljob.ChangeSearch{Actor: "ann"})).Changes)
	}
	job := func(j xxljob.Job) xxljob.Job { return must1(x.store.Job(t.Context(), j.ID)) }
	before := changes()
	ann.post("jobs/bulk", url.Values{"do": {"stop"}, "sure": {"yes"}, "id": ids, "back": {"jobs?app=orders"}}).is(200).has("Done for 3 of 6.", "one", "only seen", "needs the role “operator”", "There is nothing here.").lacks("hidden one")
	if !strings.Contains(ann.body, `href="../jobs?app=orders"`) {
		t.Error("the page does not lead back")
	}
	if !job(one).Stopped || !job(two).Stopped || job(seen).Stopped || job(hidden).Stopped || changes() != before+3 {
		t.Errorf("stopped: %v %v %v %v, %d entries", job(one).Stopped, job(two).Stopped, job(seen).Stopped, job(hidden).Stopped, changes()-before)
	}
	ann.post("jobs/bulk", url.Values{"do": {"start"}, "sure": {"yes"}, "id": {strings.Join(ids, ",")}}).is(200).has("Done for 3 of 6.")
	ann.post("jobs/bulk", url.Values{"do": {"start"}, "sure": {"yes"}, "id": ids}).is(200).has("Done for 2 of 6.", "The job has no schedule")
	ann.post("jobs/bulk", url.Values{"do": {"once"}, "sure": {"yes"}, "id": ids}).is(200).has("Done for 3 of 6.")
	if n := len(must1(x.store.Runs(t.Context(), xxljob.RunFilter{}))); n != 3 {
		t.Errorf("%d runs, want 3", n)
	}
	before = changes()
	remove := url.Values{"do": {"remove"}, "id": {itoa(one.ID), itoa(hidden.ID)}}
	ann.post("jobs/bulk", with(remove, "count", "2")).is(200).has("Done for 0 of 2.")
	root := x.user(console.User{Name: "boss", Admin: true})
	root.post("jobs/bulk", remove).is(200).has("type the number of jobs: 2", "hidden one")
	root.post("jobs/bulk", with(remove, "count", "3")).is(422).has("That is not the number of jobs.")
	job(one)
	root.post("jobs/bulk", with(root.filled("main"), "count", "2")).is(200).has("Done for 2 of 2.")
	if _, err := x.store.Job(t.Context(), one.ID); err == nil || changes() != before {
		t.Errorf("error %v, %d entries of ann", err, changes()-before)
	}
}

// TestBulkAsks: what starts, stops or runs several jobs says first which these are, what it means and
// with which of them it is nothing; what was stopped can be started again.
func TestBulkAsks(t *testing.T) { onBothStores(t, testBulkAsks) }

func testBulkAsks(t *testing.T) {
	x := newSite(t)
	x.admin()
	one, two, seen, hidden := x.job("orders", "one"), x.job("orders", "two"), x.job("audit", "only seen"), x.job("billing", "hidden one")
	must(t, x.s.StopJob(t.Context(), two.ID))
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Operator, "audit": console.Viewer}})
	ids := []string{itoa(one.ID), itoa(two.ID), itoa(seen.ID), itoa(hidden.ID)}
	state := func() string {
		return fmt.Sprint(must1(x.store.Job(t.Context(), one.ID)).Stopped, must1(x.store.Job(t.Context(), two.ID)).Stopped, len(must1(x.store.Runs(t.Context(), xxljob.RunFilter{}))))
	}
	for _, c := range []struct{ do, asks, effect, not, then string }{
		{"stop", "Stop 1 job?", "Their planned runs and the retries that wait are cancelled", "is stopped already", "true true 0"},
		{"start", "Start 2 jobs?", "not made up for", "needs the role", "false false 0"},
		{"once", "Run 2 jobs once?", "with its own parameter", "needs the role", "false false 2"},
	} {
		before := state()
		ann.post("jobs/bulk", url.Values{"do": {c.do}, "id": ids, "back": {"jobs?app=orders"}}).is(200).
			has(c.asks, c.effect, c.not, "one", "two", "only seen", "needs the role “operator”", "There is nothing here.").lacks("hidden one")
		if now := state(); now != before {
			t.Errorf("%s is done before it was said that it is meant: %s", c.do, now)
		}
		if hrefOf(ann.body, `autofocus`) != "../jobs?app=orders" {
			t.Errorf("%s: one does not come back by %s", c.do, hrefOf(ann.body, `autofocus`))
		}
		ann.post("jobs/bulk", ann.filled("main")).is(200).has("Done for")
		if now := state(); now != c.then {
			t.Errorf("after %s it is %s, want %s", c.do, now, c.then)
		}
		if c.do == "stop" {
			ann.has("Start these again").post("jobs/bulk", ann.filled("main")).is(200).has("Start 1 job?")
		}
	}
	ann.post("jobs/bulk", url.Values{"do": {"stop"}, "id": {itoa(seen.ID)}}).is(200).has("There is nothing to do here.")
	if strings.Contains(ann.body, `name="sure"`) {
		t.Error("it can be done all the same")
	}
}

// TestTurnAsks: the page that starts or stops a job names it, says what that means, and leads back.
func TestTurnAsks(t *testing.T) { onBothStores(t, testTurnAsks) }

func testTurnAsks(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	page := "jobs/" + itoa(j.ID)
	root.get(page).is(200)
	for _, want := range []string{`data-opens="stop" data-key="s"`, `<dialog id="stop"`} {
		if !strings.Contains(root.body, want) {
			t.Errorf("the page of the job lacks %s", want)
		}
	}
	root.lacks(`data-opens="start"`)
	root.get(page+"/stop?back="+url.QueryEscape("jobs?app=orders")).is(200).has("Stop “nightly”?", "It plans no more runs.")
	root.post(page+"/stop", root.filled("main")).is(200)
	if root.at != "/console/jobs?app=orders&said=stopped" || !must1(x.store.Job(t.Context(), j.ID)).Stopped {
		t.Errorf("at %s", root.at)
	}
	root.get(page + "/stop").is(200).has("The job is stopped already.")
	root.get(page+"/start?back=//evil.example").is(200).has("Start “nightly”?").lacks(`name="back" value="//evil`, `href="../..///evil`)
	root.post(page+"/start", root.filled("main")).is(200)
	if root.at != "/console/"+page+"?said=started" {
		t.Errorf("at %s", root.at)
	}
}

// TestBulkThatIsNone: what no page of ours sends.
func TestBulkThatIsNone(t *testing.T) { onBothStores(t, testBulkThatIsNone) }

func testBulkThatIsNone(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "one")
	var many []string
	for i := range 501 {
		many = append(many, fmt.Sprint(i+1))
	}
	root.post("jobs/bulk", url.Values{"do": {"stop"}, "sure": {"yes"}, "id": many}).is(413).has("At most 500 jobs at once.")
	root.post("jobs/bulk", url.Values{"do": {"stop"}, "sure": {"yes"}, "id": append(many[:499:499], itoa(j.ID))}).is(200).has("Done for 1 of 500.")
	root.post("jobs/bulk", url.Values{"do": {"stop"}}).is(422).has("No job is selected.")
	root.post("jobs/bulk", url.Values{"do": {"explode"}, "id": {"1"}}).is(400)
	root.post("jobs/bulk", url.Values{"do": {"stop"}, "sure": {"yes"}, "id": {"x"}}).is(400)
	root.post("jobs/bulk", url.Values{"do": {"stop"}, "sure": {"yes"}, "id": {itoa(j.ID)}, "back": {"//evil.example"}}).is(200).lacks("evil")
}

// TestBulkWhileTheStoreFails: what has failed says that nobody knows whether it was done, and the
// others are done all the same.
func TestBulkWhileTheStoreFails(t *testing.T) { onBothStores(t, testBulkWhileTheStoreFails) }

func testBulkWhileTheStoreFails(t *testing.T) {
	h := &halting{}
	x := newSite(t, func(c *console.Config) {
		h.st = c.Store.(Store)
		c.Store = bent.WholeOf(h.st, h)
		c.Scheduler = must1(xxljob.New(c.Store, xxljob.Config{App: "orders", Logger: slog.New(slog.DiscardHandler)}))
	})
	root := x.admin()
	one, two := x.job("orders", "one"), x.job("orders", "two")
	ids := []string{itoa(one.ID), itoa(two.ID)}
	h.after = errors.New("the cable is out")
	root.post("jobs/bulk", url.Values{"do": {"stop"}, "sure": {"yes"}, "id": ids}).is(200).has("Done for 0 of 2.", "It may or may not have been done.")
	h.after = nil
	root.post("jobs/bulk", url.Values{"do": {"stop"}, "sure": {"yes"}, "id": ids}).is(200).has("Done for 2 of 2.")
	root.post("jobs/bulk", url.Values{"do": {"remove"}, "id": ids, "count": {"2"}}).is(200).has("Done for 2 of 2.")
	root.post("jobs/bulk", url.Values{"do": {"start"}, "sure": {"yes"}, "id": ids}).is(200).has("Done for 0 of 2.", "There is nothing here.")
}

// TestJobFilters: by the type of the schedule, and by how the last runs have gone.
func TestJobFilters(t *testing.T) { onBothStores(t, testJobFilters) }

func testJobFilters(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	x.job("orders", "by cron")
	for i := range 60 {
		must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: fmt.Sprintf("rate %02d", i), Handler: "work", Schedule: xxljob.Schedule{Type: xxljob.ScheduleFixRate, Conf: "60"}}))
	}
	root.get("jobs?type=CRON").is(200).has("by cron", "CRON (Quartz) ×").lacks("rate 0")
	root.get("jobs?type=FIX_RATE").is(200).has("rate 00", "rate 49").lacks("by cron", "rate 50")
	next := strings.ReplaceAll(hrefOf(root.body, `rel="next"`), "&amp;", "&")
	root.get(strings.TrimPrefix(next, "./")).is(200).has("rate 50", "rate 59").lacks("rate 49")
	root.get("jobs?rows=200").is(200).has("by cron", "rate 59")
	root.get("jobs?type=NOTHING").is(400)
	root.get("jobs?failing=yes").is(200).lacks("rate 0").has("No jobs match these filters.")
	root.get("jobs?said=removed").has("The job has been removed.")
	root.get("jobs?said=<b>").lacks("<b>")
}

// hrefOf is where the link leads that has an attribute.
func hrefOf(body, attr string) string {
	head, _, _ := strings.Cut(body, attr)
	at := strings.LastIndex(head, `href="`)
	if at < 0 {
		return ""
	}
	to, _, _ := strings.Cut(head[at+6:], `"`)
	return to
}
