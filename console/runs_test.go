package console_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/console/internal/lang"
	"github.com/xxljob/xxljob/internal/test/bent"
)

// watched is a store that counts what it is asked, answers late, or not at all, and looks at few
// runs or entries at a time.
type watched struct {
	st      Store
	asked   atomic.Int64
	err     atomic.Pointer[error]
	late    atomic.Int64 // nanoseconds
	examine int
}

// watch puts a watched store into a console.
func watch(w *watched) func(*console.Config) {
	return func(c *console.Config) { w.st = c.Store.(Store); c.Store = bent.WholeOf(w.st, w) }
}

func (w *watched) ask(ctx context.Context) error {
	w.asked.Add(1)
	if d := time.Duration(w.late.Load()); d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (w *watched) SearchRuns(ctx context.Context, q xxljob.RunSearch) (xxljob.RunsFound, error) {
	if err := w.ask(ctx); err != nil {
		return xxljob.RunsFound{}, err
	}
	q.Examine = w.examine
	return w.st.SearchRuns(ctx, q)
}

func (w *watched) Waiting(ctx context.Context, after xxljob.Run, limit int) ([]xxljob.Run, error) {
	if err := w.ask(ctx); err != nil {
		return nil, err
	}
	return w.st.Waiting(ctx, after, limit)
}

func (w *watched) SearchChanges(ctx context.Context, q xxljob.ChangeSearch) (xxljob.ChangesFound, error) {
	if err := w.ask(ctx); err != nil {
		return xxljob.ChangesFound{}, err
	}
	q.Examine = w.examine
	return w.st.SearchChanges(ctx, q)
}

func (w *watched) Branches(ctx context.Context, id int64, limit int) ([]xxljob.Run, int, error) {
	if err := w.ask(ctx); err != nil {
		return nil, 0, err
	}
	return w.st.Branches(ctx, id, limit)
}

// listed are the runs of the list on the page.
func (b *browser) listed() (ids []string) {
	for _, m := range regexp.MustCompile(`<tr id="run-(\d+)"`).FindAllStringSubmatch(b.body, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// link is where a link of the page leads by what it says.
func (b *browser) link(text string) string {
	b.Helper()
	to := b.linked(text)
	if to == "" {
		b.Fatalf("%s has no link %q", b.at, text)
	}
	return to
}

// linked is the same, or "" where there is no such link.
func (b *browser) linked(text string) string {
	b.Helper()
	m := regexp.MustCompile(`<a [^>]*href="([^"]*)"[^>]*>` + regexp.QuoteMeta(text) + `</a>`).FindStringSubmatch(b.body)
	if m == nil {
		return ""
	}
	to := must1(must1(url.Parse("http://host.example" + b.at)).Parse(strings.ReplaceAll(m[1], "&amp;", "&")))
	return strings.TrimPrefix(to.RequestURI(), "/console/")
}

func TestRunsAreFiltered(t *testing.T) { onBothStores(t, testRunsAreFiltered) }

func testRunsAreFiltered(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	a, b := x.job("orders", "first"), x.job("billing", "second")
	root.get("runs").is(200).has("There are no runs yet.")
	param := "needle in it"
	early := x.run(a)
	killed := must1(x.s.TriggerOne(t.Context(), a.ID, xxljob.Trigger{Param: &param}))
	must(t, x.s.Kill(t.Context(), killed))
	late := x.run(b)
	id := func(n int64) string { return itoa(n) }
	for query, want := range map[string][]string{
		"":                         {id(late.ID), id(killed), id(early.ID)},
		"app=orders":               {id(killed), id(early.ID)},
		"job=" + id(b.ID):          {id(late.ID)},
		"state=cancelled":          {id(killed)},
		"state=open":               nil,
		"state=bad":                nil,
		"state=waiting":            {id(early.ID), id(late.ID)},
		"state=waiting&app=orders": {id(early.ID)},
		"type=CRON":                nil,
		"text=NEEDLE":              {id(killed)},
		"slower=1":                 nil,
		"late=3600":                nil,
		"since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z": nil,
		"since=2020-01-01T00:00:00Z":                            {id(late.ID), id(killed), id(early.ID)},
		"since=2020-01-01T00:00:00Z&until=2030-01-01T00:00:00Z": {id(late.ID), id(killed), id(early.ID)},
	} {
		root.get("runs?" + query).is(200)
		if got := root.listed(); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
		if len(want) == 0 {
			root.has("No runs match these filters.")
		}
	}
	root.post("look", url.Values{"list": {"runs"}, "column": {"param"}, "next": {"runs"}}).is(200).has("needle in it")
	for _, bad := range []string{"since=yesterday", "until=2020-13-01T00:00:00Z", "slower=fast", "slower=-1", "slower=NaN", "slower=1e99", "late=soon", "late=-1", "late=NaN", "late=1e99", "since=1066-01-01T00:00:00Z", "before=e30", "job=0",
		"state=waiting&before=eyJvIjoiaWQiLCJhIjoxfQ", "before=eyJvIjoid2FpdGluZyIsImEiOnt9fQ"} {
		root.get("runs?" + bad).is(400)
	}
	for _, name := range []string{"Running", "Waiting", "Failed", "Skipped", "By hand"} {
		root.get("runs?app=orders")
		root.get(root.link(name)).is(200)
		if !strings.Contains(root.at, "app=orders") {
			t.Errorf("%s leads to %s", name, root.at)
		}
	}
}

// TestRunsThatAreLate: started late, or waiting past their time, in a list of either kind.
func TestRunsThatAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		a, b := x.job("orders", "first"), x.job("billing", "second")
		ids := func(list ...xxljob.Run) (out []string) {
			for _, r := range list {
				out = append(out, itoa(r.ID))
			}
			return out
		}
		first := x.run(a)
		time.Sleep(time.Minute)
		second := x.run(b)
		ahead := must1(x.store.AddRun(t.Context(), a.ID, xxljob.Trigger{At: time.Now().Add(time.Hour)}))
		time.Sleep(1500 * time.Millisecond)
		for query, want := range map[string][]string{
			"late=0":                              ids(ahead, second, first),
			"late=1.5":                            ids(second, first),
			"late=1.501":                          ids(first),
			"late=62":                             nil,
			"late=1&app=billing":                  ids(second),
			"state=waiting":                       ids(first, second, ahead),
			"state=waiting&late=0":                ids(first, second, ahead),
			"state=waiting&late=1.5":              ids(first, second),
			"state=waiting&late=1.501":            ids(first),
			"state=waiting&late=62":               nil,
			"state=waiting&late=1&app=billing":    ids(second),
			"state=waiting&late=1&slower=1":       nil,
			"state=succeeded&late=1":              nil,
			"state=planned&late=1":                ids(second, first),
			"late=1.5&since=2000-01-01T00:00:30Z": ids(second),
		} {
			root.get("runs?" + query).is(200)
			if got := root.listed(); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
		root.get("runs?late=1.5").has("Late by at least, in seconds", "1.5 s")
		if !strings.Contains(root.body, `name="late" type="number" min="0" max="1000000000" step="any" value="1.5"`) {
			t.Error("the form has lost how late")
		}
	})
}

// TestWaitingRunsAreLookedAtWhileTheyAreLate: those behind are not, and so there are no more.
func TestWaitingRunsAreLookedAtWhileTheyAreLate(t *testing.T) {
	inMemory(t, testWaitingRunsAreLookedAtWhileTheyAreLate)
}

func testWaitingRunsAreLookedAtWhileTheyAreLate(t *testing.T) {
	w := &watched{}
	x := newSite(t, watch(w))
	root := x.admin()
	j := x.job("orders", "nightly")
	for i := range 1100 {
		must1(x.store.AddRun(t.Context(), j.ID, xxljob.Trigger{At: time.Now().Add(time.Duration(1+i) * time.Hour)}))
	}
	asked := w.asked.Load()
	root.get("runs?state=waiting&late=1").has("No runs match these filters.")
	if n := w.asked.Load() - asked; n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
}

// TestTheFormOfRuns: times are in the viewer's zone there, and in UTC in the address.
func TestTheFormOfRuns(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	root.post("look", url.Values{"zone": {"Asia/Shanghai"}})
	root.get("runs?form=1&text=&app=&job=&state=bad&since=2027-03-01T06:00&until=2027-03-01T08%3A00%3A30&slower=&handler=+").is(200)
	if want := "/console/runs?since=2027-02-28T22%3A00%3A00Z&state=bad&until=2027-03-01T00%3A00%3A30Z"; root.at != want {
		t.Errorf("at %s, want %s", root.at, want)
	}
	root.has("2027-03-01 06:00:00 +08:00", "(UTC+8)")
	if !strings.Contains(root.body, `value="2027-03-01T06:00:00"`) {
		t.Error("the form has lost the time")
	}
	root.get("runs?form=1&since=noon").is(400)
	root.get("changes?form=1&since=2027-03-01T06:00&verb=").is(200)
	if want := "/console/changes?since=2027-02-28T22%3A00%3A00Z"; root.at != want {
		t.Errorf("at %s, want %s", root.at, want)
	}
	root.get("runs?form=1").is(200)
	if root.at != "/console/runs" {
		t.Errorf("at %s", root.at)
	}
}

// TestARunByItsNumber: typed where texts are looked for, it leads to the run, for who sees it.
func TestARunByItsNumber(t *testing.T) { onBothStores(t, testARunByItsNumber) }

func testARunByItsNumber(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
	mine, other := x.run(x.job("orders", "mine")), x.run(x.job("billing", "other"))
	root.get("runs?text=+" + itoa(other.ID) + "+")
	if root.at != "/console/runs/"+itoa(other.ID) {
		t.Errorf("at %s", root.at)
	}
	ann.get("runs?text=" + itoa(mine.ID))
	if ann.at != "/console/runs/"+itoa(mine.ID) {
		t.Errorf("at %s", ann.at)
	}
	for _, id := range []string{itoa(other.ID), "4711"} {
		ann.get("runs?text=" + id).has("No runs match these filters.")
		if ann.at != "/console/runs?text="+id {
			t.Errorf("at %s", ann.at)
		}
	}
}

// TestASearchSaysHowFarItGot, and goes on from there until everything was looked at.
func TestASearchSaysHowFarItGot(t *testing.T) { onBothStores(t, testASearchSaysHowFarItGot) }

func testASearchSaysHowFarItGot(t *testing.T) {
	w := &watched{examine: 40}
	x := newSite(t, watch(w))
	root := x.admin()
	rare, busy := x.job("orders", "rare"), x.job("orders", "busy")
	needle := "a needle"
	sought := must1(x.store.AddRun(t.Context(), rare.ID, xxljob.Trigger{Param: &needle}))
	for range 120 {
		x.run(busy)
	}
	root.get("runs?text=needle").is(200).has("40 runs were examined, back to")
	n := 0
	for ; strings.Contains(root.body, ">Continue</a>"); n++ {
		root.get(root.link("Continue"))
	}
	if got := root.listed(); len(got) != 1 || got[0] != itoa(sought.ID) || n < 2 {
		t.Errorf("%q after %d steps", got, n)
	}
	root.post("jobs/"+itoa(busy.ID)+"/stop", nil).is(200)
	w.examine = 1
	root.get("changes?actor=root&verb=nothing").has("The search stopped early")
	w.examine = 0
	root.get("runs").is(200)
	seen := map[string]bool{}
	for range 5 {
		for _, id := range root.listed() {
			if seen[id] {
				t.Errorf("run %s is listed twice", id)
			}
			seen[id] = true
		}
		if !strings.Contains(root.body, ">Next page</a>") {
			break
		}
		root.get(root.link("Next page"))
	}
	if len(seen) != 121 {
		t.Errorf("%d runs are listed, want 121", len(seen))
	}
}

// TestWaitingRunsAreInOrder of time, over all pages.
func TestWaitingRunsAreInOrder(t *testing.T) { onBothStores(t, testWaitingRunsAreInOrder) }

func testWaitingRunsAreInOrder(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	for i := range 120 {
		must1(x.store.AddRun(t.Context(), j.ID, xxljob.Trigger{At: time.Now().Add(time.Duration(i*37%120) * time.Minute)}))
	}
	root.get("runs?state=waiting").is(200)
	var last time.Time
	n := 0
	for {
		for _, id := range root.listed() {
			r := must1(x.store.Run(t.Context(), must1(parse(id))))
			if r.Scheduled.Before(last) {
				t.Errorf("run %s is out of order", id)
			}
			last = r.Scheduled
			n++
		}
		if !strings.Contains(root.body, ">Next page</a>") {
			break
		}
		root.get(root.link("Next page")).is(200)
	}
	if n != 120 {
		t.Errorf("%d runs, want 120", n)
	}
}

// TestAStoreThatFailsOrIsSlow is said, by each page, and no empty list is shown.
func TestAStoreThatFailsOrIsSlow(t *testing.T) { inMemory(t, testAStoreThatFailsOrIsSlow) }

func testAStoreThatFailsOrIsSlow(t *testing.T) {
	w := &watched{}
	x := newSite(t, watch(w))
	root := x.admin()
	run := x.run(x.job("orders", "nightly"))
	fault := errors.New("the cable is out")
	for _, page := range []string{"runs", "runs?state=waiting", "runs/" + itoa(run.ID), "runs/" + itoa(run.ID) + "/previous", "changes"} {
		w.err.Store(&fault)
		root.get(page).is(503).has("The store has reported an error.", "the cable is out", "Retry").lacks("There are no runs", "Nothing has been recorded")
		w.err.Store(nil)
		if root.get(page); root.res.StatusCode != 200 {
			t.Errorf("%s: status %d once it is mended", page, root.res.StatusCode)
		}
	}
	late := error(context.DeadlineExceeded)
	w.err.Store(&late)
	root.get("runs").is(503).has("did not answer in time")
}

// TestRunsInThreeLanguages: no page shows the key of a text in place of it.
func TestRunsInThreeLanguages(t *testing.T) { inMemory(t, testRunsInThreeLanguages) }

func testRunsInThreeLanguages(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	ctx := xxljob.WithActor(t.Context(), "root")
	run := must1(x.s.TriggerOne(ctx, j.ID, xxljob.Trigger{}))
	id := itoa(run)
	key := regexp.MustCompile(`\b(?:runs|run|log|runbulk|changes|live|diff|said|field|state|step|type|verb|object|problem|filter|form)\.[a-z][a-z.]+\b`)
	pages := []string{"runs", "runs?state=waiting&app=x", "runs?text=x&since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z&slower=2&late=0.5&type=MANUAL&state=bad&handler=h&address=a", "runs/" + id, "runs/" + id + "?said=nonext",
		"runs/" + id + "/kill", "runs/" + id + "/log", "runs/" + id + "/log?find=x", "changes", "changes?actor=a&verb=kill&object=run&id=1&app=x"}
	for _, tag := range []string{"en", "zh-CN", "zh-TW"} {
		root.post("look", url.Values{"language": {tag}})
		for _, page := range pages {
			if root.get(page).is(200); key.MatchString(root.text()) {
				t.Errorf("%s in %s shows %q", page, tag, key.FindAllString(root.text(), -1))
			}
		}
		for _, form := range []url.Values{{"do": {"kill"}, "id": {id, "4711"}}, {"do": {"again"}, "id": {id}}, {"do": {"kill"}}} {
			if root.post("runs/bulk", form); key.MatchString(root.text()) {
				t.Errorf("%v in %s shows %q", form, tag, key.FindAllString(root.text(), -1))
			}
		}
	}
}

// TestOneWordForRunsUnderWay: a run that was started and one that an executor has accepted are called the same,
// in each language; one looks for both, and an address that asks for one of them alone goes on being read.
func TestOneWordForRunsUnderWay(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		for tag, l := range must1(lang.Load(os.DirFS("lang"))) {
			if started, accepted := l.Text("state.started"), l.Text("state.dispatched"); started != accepted || started != l.Text("runs.state.open") {
				t.Errorf("%s: %q, %q", tag, started, accepted)
			}
		}
		option := regexp.MustCompile(`<option value="([^"]*)"[^>]*>running</option>`)
		for page, want := range map[string][]string{"runs": {"open"}, "runs?state=open": {"open"}, "runs?state=started": {"open", "started"}, "runs?state=dispatched": {"open", "dispatched"}} {
			var got []string
			for _, o := range option.FindAllStringSubmatch(root.get(page).is(200).body, -1) {
				got = append(got, o[1])
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s offers %q, want %q", page, got, want)
			}
		}
	})
}
