package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xxljob/xxljob/console"
)

// headings are the texts at the top of the columns of the page's list.
func (b *browser) headings() (list []string) {
	head := regexp.MustCompile(`(?s)<thead>.*?</thead>`).FindString(b.body)
	for _, th := range regexp.MustCompile(`(?s)<th[^>]*>(.*?)</th>`).FindAllStringSubmatch(head, -1) {
		list = append(list, strings.TrimSpace(tags.ReplaceAllString(th[1], "")))
	}
	return list
}

// TestColumnsAreChosen for each list, and kept with the user: another browser shows the same.
func TestColumnsAreChosen(t *testing.T) { onBothStores(t, testColumnsAreChosen) }

func testColumnsAreChosen(t *testing.T) {
	x := newSite(t)
	b := x.admin()
	j := x.job("orders", "nightly")
	x.run(j)
	usual := b.get("jobs").headings()
	b.post("look", url.Values{"list": {"jobs"}, "column": {"handler", "state"}, "next": {"jobs"}}).is(http.StatusOK)
	if b.at != "/console/jobs" {
		t.Errorf("one is sent to %s", b.at)
	}
	if got := b.headings(); !slices.Equal(got, []string{"Selected", "Name", "Handler", "State", "Actions"}) {
		t.Errorf("columns %q", got)
	}
	b.post("look", url.Values{"list": {"runs"}, "column": {"result"}, "next": {"runs"}})
	if got := b.headings(); !slices.Equal(got, []string{"Select", "State", "Scheduled", "Result", "Actions"}) {
		t.Errorf("columns of runs %q", got)
	}
	other := x.browser()
	other.cookies["xxljob_session"] = b.cookies["xxljob_session"]
	if got := other.get("jobs").headings(); !slices.Equal(got, []string{"Selected", "Name", "Handler", "State", "Actions"}) {
		t.Errorf("in another browser: columns %q", got)
	}
	b.post("look", url.Values{"theme": {"dark"}, "next": {"jobs"}}) // leaves the columns as they are
	if got := b.headings(); len(got) != 5 {
		t.Errorf("after another theme: columns %q", got)
	}
	b.post("look", url.Values{"list": {"jobs"}, "usual": {"1"}, "column": {"handler"}, "next": {"jobs"}})
	if got := b.headings(); !slices.Equal(got, usual) {
		t.Errorf("columns %q, want the usual %q", got, usual)
	}
	b.post("look", url.Values{"list": {"jobs"}, "next": {"jobs"}}) // none but what each line has
	if got := b.headings(); len(got) != 3 {
		t.Errorf("without any column: %q", got)
	}
}

// TestLookOfWhoHasNoAccount is kept by the browser.
func TestLookOfWhoHasNoAccount(t *testing.T) { inMemory(t, testLookOfWhoHasNoAccount) }

func testLookOfWhoHasNoAccount(t *testing.T) {
	x := newSite(t, func(c *console.Config) {
		c.Auth = console.Func(func(*http.Request) (console.User, error) {
			return console.User{Name: "wang", Apps: map[string]console.Role{"*": console.Editor}}, nil
		}, "")
	})
	x.job("orders", "nightly")
	b := x.browser()
	b.post("look", url.Values{"language": {"zh-CN"}, "theme": {"dark"}, "zone": {"Asia/Shanghai"}, "density": {"compact"}, "live": {"off"}, "keys": {"off"}, "wrap": {"off"}, "next": {"jobs"}})
	b.post("look", url.Values{"list": {"jobs"}, "column": {"app"}, "next": {"jobs"}})
	for _, want := range []string{`lang="zh-CN"`, `data-theme="dark"`, `data-density="compact"`, `data-live="off"`, `data-keys="off"`, `data-wrap="off"`} {
		if !strings.Contains(b.body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if got := b.has("UTC+8").headings(); len(got) != 4 {
		t.Errorf("columns %q", got)
	}
	// A box that is not ticked sends what is hidden before it.
	b.post("look", url.Values{"live": {"off", ""}, "keys": {"off", ""}, "wrap": {"off", ""}, "density": {""}, "next": {"jobs"}})
	b.lacks(`data-live="off"`, `data-keys="off"`, `data-wrap="off"`, `data-density="compact"`)
}

// TestLookThatIsNone is refused, and one that is kept and means nothing any more is left out.
func TestLookThatIsNone(t *testing.T) {
	x := newSite(t)
	b := x.admin()
	x.job("orders", "nightly")
	b.follows = false
	for _, form := range []url.Values{
		{"language": {"xx"}}, {"theme": {"pink"}}, {"zone": {"Local"}}, {"zone": {"../../etc/passwd"}}, {"density": {"tight"}}, {"live": {"1"}}, {"keys": {"none"}}, {"wrap": {"on"}},
		{"list": {"users"}, "column": {"name"}}, {"list": {"jobs"}, "column": {"password"}}, {"list": {"jobs"}, "column": {"app", "app\n"}},
	} {
		b.post("look", form).is(http.StatusUnprocessableEntity)
	}
	b.cookies["xxljob_look"] = &http.Cookie{Name: "xxljob_look", Value: "language=xx&theme=pink&zone=Local&columns.jobs=app,password&columns.users=x&live=%zz"}
	must(t, x.store.SaveSettings(t.Context(), "root", `{"theme":"pink","columns":{"jobs":["gone"],"users":["x"]},"density":7}`))
	if got := b.get("jobs").is(http.StatusOK).headings(); !slices.Equal(got, []string{"Selected", "Name", "App", "Actions"}) {
		t.Errorf("columns %q", got)
	}
	b.lacks("pink", "password")
}

// TestColumnsOfNoListAreForgotten: a cookie of many lists that there are not would cost whoever reads
// it the square of their number, before it is known who has sent it.
func TestColumnsOfNoListAreForgotten(t *testing.T) {
	x := newSite(t)
	b := x.admin()
	for _, kept := range []string{"columns.jobs=&columns.users=&columns.gone=&theme=dark", "theme=dark&pad=" + strings.Repeat("x", 5000)} {
		b.cookies["xxljob_look"] = &http.Cookie{Name: "xxljob_look", Value: kept}
		must(t, x.store.SaveSettings(t.Context(), "root", `{"columns":{"runs":[],"users":[],"gone":[]}}`))
		b.post("look", url.Values{"density": {"compact"}, "next": {"jobs"}}).is(http.StatusOK)
		u, err := x.store.User(t.Context(), "root")
		must(t, err)
		for _, text := range []string{b.cookies["xxljob_look"].Value, u.Settings} {
			if strings.Contains(text, "users") || strings.Contains(text, "gone") || !strings.Contains(text, "runs") {
				t.Errorf("%.100s: kept is %s", kept, text)
			}
		}
		if is := strings.Contains(b.cookies["xxljob_look"].Value, "dark"); is != (len(kept) < 4096) {
			t.Errorf("%.100s: that the theme is dark is taken over: %t", kept, is)
		}
	}
}

// TestALookChosenOnAnAnswer: the page that answers a form is no page that one comes back to by its
// address, unless the form is there too.
func TestALookChosenOnAnAnswer(t *testing.T) { inMemory(t, testALookChosenOnAnAnswer) }

func testALookChosenOnAnAnswer(t *testing.T) {
	x := newSite(t)
	b := x.admin()
	j := x.job("orders", "nightly")
	edit := "jobs/" + itoa(j.ID) + "/edit"
	for _, c := range []struct {
		to   string
		form url.Values
		back string
	}{
		{"jobs/bulk", url.Values{"do": {"remove"}, "id": {itoa(j.ID)}}, "overview"},
		{"runs/bulk", url.Values{}, "overview"},
		{"jobs/" + itoa(j.ID) + "/trigger", url.Values{"at": {"never"}}, "overview"},
		{edit, url.Values{"version": {"1"}, "name": {""}}, edit},
	} {
		b.post(c.to, c.form)
		m := regexp.MustCompile(`name="next" value="([^"]*)"`).FindStringSubmatch(b.body)
		if m == nil {
			t.Fatalf("%s: no look can be chosen: %s", c.to, b.body)
		}
		if b.post("look", url.Values{"theme": {"dark"}, "next": {m[1]}}).is(http.StatusOK); b.at != "/console/"+c.back {
			t.Errorf("%s: one is sent to %s, want %s", c.to, b.at, c.back)
		}
	}
}

// TestTheSwitchOfLiveIsKept: a script says so and wants no page for an answer.
func TestTheSwitchOfLiveIsKept(t *testing.T) { onBothStores(t, testTheSwitchOfLiveIsKept) }

func testTheSwitchOfLiveIsKept(t *testing.T) {
	x := newSite(t)
	b := x.admin()
	b.header = http.Header{"Hx-Request": {"true"}, "Hx-Request-Type": {"partial"}}
	b.post("look", url.Values{"live": {"off"}}).is(http.StatusNoContent)
	b.header = http.Header{}
	if b.get("runs"); !strings.Contains(b.body, `data-live="off"`) {
		t.Error("the next page is refreshed")
	}
}
