package console_test

import (
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

var (
	controls  = regexp.MustCompile(`(?s)<input\b([^>]*)>|<textarea\b([^>]*)>(.*?)</textarea>|<select\b([^>]*)>(.*?)</select>`)
	selected  = regexp.MustCompile(`<option value="([^"]*)" selected>`)
	attrName  = regexp.MustCompile(`\bname="([^"]*)"`)
	attrValue = regexp.MustCompile(`\bvalue="([^"]*)"`)
)

// filled is what a browser sends of the form with the id in which nobody has typed anything.
func (b *browser) filled(id string) url.Values {
	b.Helper()
	_, rest, found := strings.Cut(b.body, `id="`+id+`"`)
	if !found {
		b.Fatalf("%s has no form %s: %s", b.at, id, b.text())
	}
	body, _, _ := strings.Cut(rest, "</form>")
	form := url.Values{}
	for _, m := range controls.FindAllStringSubmatch(body, -1) {
		name := attrName.FindStringSubmatch(m[1] + m[2] + m[4])
		if name == nil {
			continue
		}
		value := ""
		switch {
		case strings.HasPrefix(m[0], "<input"):
			if strings.Contains(m[1], `type="checkbox"`) && !strings.Contains(m[1], " checked") {
				continue
			}
			if v := attrValue.FindStringSubmatch(m[1]); v != nil {
				if value = html.UnescapeString(v[1]); !strings.Contains(m[1], `type="hidden"`) {
					value = strings.NewReplacer("\r", "", "\n", "").Replace(value)
				}
			}
		case strings.HasPrefix(m[0], "<textarea"):
			lines := strings.NewReplacer("\r\n", "\n", "\r", "\n")
			value = lines.Replace(html.UnescapeString(strings.TrimPrefix(lines.Replace(m[3]), "\n")))
			value = strings.ReplaceAll(value, "\n", "\r\n")
		default:
			if v := selected.FindStringSubmatch(m[5]); v != nil {
				value = html.UnescapeString(v[1])
			}
		}
		form.Add(name[1], value)
	}
	return form
}

// with is a form with other values in some fields.
func with(form url.Values, pairs ...string) url.Values {
	out := url.Values{}
	for name, values := range form {
		out[name] = slices.Clone(values)
	}
	for i := 0; i < len(pairs); i += 2 {
		out.Set(pairs[i], pairs[i+1])
	}
	return out
}

// fullJob is a job with something in each field that a user sets, and with what a form cannot
// show to the last digit.
func (x *site) fullJob() xxljob.Job {
	x.Helper()
	child, before := x.job("orders", "child"), x.job("orders", "before")
	at := time.Date(2031, 2, 3, 4, 5, 6, 789e6, time.UTC)
	j, err := x.s.AddJob(x.Context(), xxljob.Job{App: "orders", Name: " full\nof blanks ", Key: "full", Handler: "work", Author: "ann", AlarmEmail: "a@b.example", Tags: []string{"x", "y, z"},
		Schedule: xxljob.Crontab("5 4 * * 1").In("Europe/Berlin").WithDST(xxljob.DSTQuartz), Misfire: xxljob.MisfireFireOnceNow, CatchUp: xxljob.CatchUpEveryMissed, CatchUpMost: 12, CatchUpAge: 36 * time.Hour, OnNoExecutor: xxljob.OnNoExecutorWait, NotBefore: at, NotAfter: at.Add(time.Hour * 1e5), MaxRuns: 77,
		Route: xxljob.RouteFailover, Param: "\r\nline\r\nnext\n\n", Block: xxljob.BlockConcurrent, MaxPerExecutor: 3, Timeout: 90 * time.Second, Retries: 4, RetryBackoff: xxljob.Backoff{First: 1500 * time.Millisecond, Max: time.Minute, Jitter: 20},
		RetryAside: true, OnLost: xxljob.OnLostRerun, MaxReruns: 5, MaxSnoozes: 6, Children: []int64{child.ID}, ChildKeys: []string{"orders/not, yet"}, ChildParam: xxljob.ChildParamResult,
		After: []int64{before.ID}, AfterKeys: []string{"orders/nobody"}, AfterWindow: time.Hour, AfterZone: "Asia/Taipei", AfterTimeout: 2 * time.Hour, LateAfter: time.Minute, KeepRuns: 48 * time.Hour})
	must(x.T, err)
	return j
}

// TestFormAsItIs: a form that is sent as it is shown changes nothing, whatever zone the viewer
// has by then.
func TestFormAsItIs(t *testing.T) { onBothStores(t, testFormAsItIs) }

func testFormAsItIs(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.fullJob()
	edit := "jobs/" + itoa(j.ID) + "/edit"
	form := root.get(edit).is(200).filled("jobform")
	if n := len(form); n < 40 {
		t.Errorf("the form has %d fields: %v", n, form)
	}
	if !slices.Equal(form["retryaside"], []string{"", "1"}) {
		t.Errorf("a box is sent as %q: that it has no tick would not be seen", form["retryaside"])
	}
	root.post("look", url.Values{"zone": {"America/New_York"}})
	root.post(edit, form).is(200).has("The job has been saved.")
	now := must1(x.store.Job(t.Context(), j.ID))
	sameJob(t, j, now)
	if now.Version != j.Version {
		t.Errorf("version %d, want %d", now.Version, j.Version)
	}
	root.post(edit, with(root.get(edit).filled("jobform"), "retryaside", "", "notbefore", "2031-02-03T04:05")).is(200)
	now = must1(x.store.Job(t.Context(), j.ID))
	if want := time.Date(2031, 2, 3, 9, 5, 0, 0, time.UTC); now.RetryAside || !now.NotBefore.Equal(want) {
		t.Errorf("RetryAside %v, NotBefore %v, want %v", now.RetryAside, now.NotBefore, want)
	}
}

// sameJob checks that two jobs have the same definition.
func sameJob(t *testing.T, want, got xxljob.Job) {
	t.Helper()
	var c xxljob.Change
	if c.OfJob(t.Context(), &want, &got); c.Before != "{}" || c.After != "{}" {
		t.Errorf("was %s, is %s", c.Before, c.After)
	}
}

// newForm is a form of a new job that nothing is wrong with.
func (b *browser) newForm(pairs ...string) url.Values {
	b.Helper()
	return with(with(b.get("jobs/new").is(200).filled("jobform"), "name", "fresh", "app", "orders", "handler", "work"), pairs...)
}

func TestAddAndCopy(t *testing.T) { onBothStores(t, testAddAndCopy) }

func testAddAndCopy(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	root.post("jobs/new", root.newForm("type", "FIX_RATE", "conf", "2.5", "zone", "Asia/Taipei", "param", "{\r\n}", "stopped", "1")).is(200).has("The job has been added.", "fresh")
	j := must1(x.store.JobByKey(t.Context(), "orders", "fresh"))
	if want := (xxljob.Schedule{Type: xxljob.ScheduleFixRate, Conf: "2.5"}); j.Schedule != want || j.Param != "{\n}" || !j.Stopped {
		t.Errorf("%+v", j)
	}
	for text, want := range map[string]time.Duration{"5m": 5 * time.Minute, "1h 30M": 90 * time.Minute, "90": 90 * time.Second, "1m30s": 90 * time.Second, "": 0} {
		root.post("jobs/"+itoa(j.ID)+"/edit", with(root.get("jobs/"+itoa(j.ID)+"/edit").filled("jobform"), "timeout", text)).is(200)
		if now := must1(x.store.Job(t.Context(), j.ID)); now.Timeout != want {
			t.Errorf("%q is %v", text, now.Timeout)
		}
		if again := root.get("jobs/" + itoa(j.ID) + "/edit").filled("jobform").Get("timeout"); want == 5*time.Minute && again != "5m" || want == 90*time.Minute && again != "1h30m" {
			t.Errorf("%v is shown as %q", want, again)
		}
	}
	root.post("jobs/new", root.newForm()).is(422).has("The app already has a job with this key.")
	root.post("jobs/new", root.newForm("type", "ONCE", "conf", "2001-01-01T00:00:00Z", "name", "late", "stopped", "")).is(422).has("no instant in the future")
	full := x.fullJob()
	form := root.get("jobs/new?copy=" + itoa(full.ID)).is(200).filled("jobform")
	root.post("jobs/new", with(form, "name", "twin")).is(200)
	twin := must1(x.store.JobByKey(t.Context(), "orders", "twin"))
	full.Name, full.Key = "twin", "twin"
	sameJob(t, full, twin)
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"billing": console.Editor}})
	ann.get("jobs/new?copy=" + itoa(full.ID)).is(404)
	ann.post("jobs/new", with(form, "app", "billing", "name", "stolen")).is(404)
	script := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "script", GlueType: "GLUE_SHELL", GlueSource: "true"}))
	root.get("jobs/new?copy=" + itoa(script.ID)).is(403).has("Scripts cannot be copied")
	root.post("jobs/new", with(form, "copyof", itoa(script.ID), "name", "script two")).is(403)
}

// faultsOf has a value for each field that is wrong with it, or several fields that are.
var faultsOf = map[string][]string{
	"name": {" "}, "app": {""}, "key": {strings.Repeat("k", 256)}, "handler": {""}, "param": {strings.Repeat("p", 64<<10+1)}, "type": {"OFTEN"}, "conf": {"* * *"}, "zone": {"Nowhere/At-All"}, "dst": {"EARLY"},
	"notbefore": {"soon"}, "notafter": {"1960-01-01T00:00", "notbefore", ""}, "maxruns": {"-1"}, "route": {"LEFT"}, "block": {"HARD"}, "maxper": {"2"}, "timeout": {"1.5"}, "misfire": {"CRY"}, "catchup": {"NEVER"}, "catchupmost": {"1001"}, "catchupage": {"7"}, "onnoexecutor": {"PRAY"},
	"lateafter": {"0.5"}, "keepruns": {"NaN"}, "retries": {"many"}, "retrypause": {"-1"}, "retrypausemax": {"5"}, "jitter": {"101"}, "onlost": {"SEARCH"}, "maxreruns": {"-3"}, "maxsnoozes": {"30001"},
	"children": {"one"}, "childkeys": {"nokey"}, "childparam": {"NONE"}, "after": {"two"}, "afterkeys": {"nokey"}, "afterwindow": {"7", "afterkeys", "orders/x"}, "afterzone": {"Mars", "afterkeys", "orders/x"}, "aftertimeout": {"0.2", "afterkeys", "orders/x"},
	"author": {strings.Repeat("a", 65)}, "alarm": {strings.Repeat("a", 256)}, "tags": {"<b>"},
}

var rawKey = regexp.MustCompile(`\b(?:fault|field|form|help|option|problem|builder|preview)\.[a-z]+`)

// TestFaultsStandAtTheirFields: each, in each language, with what was typed; all at once, and the
// first has the focus.
func TestFaultsStandAtTheirFields(t *testing.T) { inMemory(t, testFaultsStandAtTheirFields) }

func testFaultsStandAtTheirFields(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	blank := root.newForm()
	for _, language := range []string{"en", "zh-CN", "zh-TW"} {
		root.header.Set("Accept-Language", language)
		all := with(blank)
		for name, bad := range faultsOf {
			if name != "maxper" && len(bad) == 1 && !slices.Contains([]string{"type", "zone", "dst"}, name) {
				all.Set(name, bad[0])
			}
			form := with(blank, append([]string{name}, bad...)...)
			if _, there := blank[name]; !there {
				t.Errorf("the form has no field %s", name)
			}
			root.post("jobs/new", form).is(422)
			if !strings.Contains(root.body, `id="f-`+name+`-fault"`) || strings.Count(root.body, `-fault">`) != 1 {
				t.Errorf("%s: %s: the faults are %q", language, name, faultIDs(root.body))
			}
			if raw := rawKey.FindString(root.text()); raw != "" {
				t.Errorf("%s: %s: the page says %q", language, name, raw)
			}
			if typed := strings.TrimSpace(html.EscapeString(bad[0])); typed != "" && len(typed) < 300 && !strings.Contains(root.body, typed) {
				t.Errorf("%s: %s: %q is lost", language, name, typed)
			}
		}
		root.post("jobs/new", all).is(422)
		if n := len(faultIDs(root.body)); n < 28 {
			t.Errorf("%s: %d faults at once: %q", language, n, faultIDs(root.body))
		}
		if strings.Count(root.body, " autofocus") != 1 || !regexp.MustCompile(`id="f-name"[^>]* autofocus`).MatchString(root.body) {
			t.Errorf("%s: the focus is not at the name", language)
		}
	}
	if jobs := must1(x.store.Jobs(t.Context(), xxljob.JobFilter{})); len(jobs) != 0 {
		t.Errorf("%d jobs were added", len(jobs))
	}
}

func faultIDs(body string) (list []string) {
	for _, m := range regexp.MustCompile(`id="f-(\w+)-fault"`).FindAllStringSubmatch(body, -1) {
		list = append(list, m[1])
	}
	return list
}

// TestTheAppOfTheFormDecidesNothing: neither for an edit, nor where it is one of others.
func TestTheAppOfTheFormDecidesNothing(t *testing.T) {
	onBothStores(t, testTheAppOfTheFormDecidesNothing)
}

func testTheAppOfTheFormDecidesNothing(t *testing.T) {
	x := newSite(t)
	x.admin()
	mine, other := x.job("orders", "mine"), x.job("billing", "other")
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Editor, "audit": console.Viewer}})
	form := ann.get("jobs/" + itoa(mine.ID) + "/edit").filled("jobform")
	ann.post("jobs/"+itoa(mine.ID)+"/edit", with(form, "app", "billing", "handler", "new")).is(200)
	if j := must1(x.store.Job(t.Context(), mine.ID)); j.App != "orders" || j.Handler != "new" {
		t.Errorf("%+v", j)
	}
	ann.post("jobs/"+itoa(other.ID)+"/edit", with(form, "app", "orders")).is(404)
	ann.post("jobs/new", ann.newForm("app", "billing")).is(422).has("You may not add jobs to this app.")
	ann.post("jobs/new", ann.newForm("app", "audit")).is(422).has("You may not add jobs to this app.")
	ann.get("jobs/new").lacks("billing")
	for _, field := range []string{"children", "after"} {
		ann.post("jobs/new", ann.newForm(field, itoa(other.ID))).is(422)
		hidden := faultText(ann.body, field)
		ann.post("jobs/new", ann.newForm(field, "4711")).is(422)
		if gone := faultText(ann.body, field); hidden == "" || strings.ReplaceAll(gone, "4711", itoa(other.ID)) != hidden {
			t.Errorf("%s: %q for a hidden job, %q for none", field, hidden, gone)
		}
	}
	ann.post("jobs/new", ann.newForm("childkeys", "billing/other")).is(422)
	if faultText(ann.body, "childkeys") == "" {
		t.Error("a child by key of an app of others is taken")
	}
	watched := x.job("audit", "watched")
	ann.post("jobs/new", ann.newForm("children", itoa(watched.ID))).is(422)
	ann.post("jobs/new", ann.newForm("after", itoa(watched.ID), "name", "behind")).is(200)
	if n := len(must1(x.store.Jobs(t.Context(), xxljob.JobFilter{}))); n != 4 {
		t.Errorf("%d jobs, want 4", n)
	}
}

func faultText(body, field string) string {
	m := regexp.MustCompile(`id="f-` + field + `-fault">(?:<svg.*?</svg>)?([^<]*)<`).FindStringSubmatch(body)
	if m == nil {
		return ""
	}
	return m[1]
}
