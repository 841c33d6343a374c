package console_test

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

// faultsShown are the faults that a page shows.
func (b *browser) faultsShown() (list []string) {
	for _, m := range regexp.MustCompile(`(?s)class="fault"[^>]*>(.*?)</(?:p|span)>`).FindAllStringSubmatch(b.body, -1) {
		list = append(list, strings.TrimSpace(html.UnescapeString(tags.ReplaceAllString(m[1], ""))))
	}
	return list
}

// inLanguage makes the browser ask for a language.
func (b *browser) inLanguage(tag string) { b.header.Set("Accept-Language", tag) }

// sentence is what the engine says of a schedule that is saved.
func sentence(t *testing.T, s xxljob.Schedule, language string) string {
	t.Helper()
	var bad *xxljob.ScheduleError
	if err := (xxljob.Job{App: "a", Name: "n", Handler: "h", Schedule: s}).Validate(); !errors.As(err, &bad) {
		t.Fatalf("%v: %v", s, err)
	}
	return bad.In(language)
}

// TestFaultsOfSchedules: what is wrong with a schedule is said in the viewer's language, at its
// field and in the preview, for each type of it.
func TestFaultsOfSchedules(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	j := x.job("orders", "nightly")
	edit := "jobs/" + itoa(j.ID) + "/edit"
	english := regexp.MustCompile(`[A-Za-z]{2,}`)
	for _, language := range []string{"en", "zh-CN", "zh-TW"} {
		root.inLanguage(language)
		form, change := root.newForm(), root.get(edit).filled("jobform")
		for _, bad := range []xxljob.Schedule{
			{Type: xxljob.ScheduleCron, Conf: "0 61 3 * * ?"}, {Type: xxljob.ScheduleCron, Conf: "0 0 3 * *"}, {Type: xxljob.ScheduleCron, Conf: "0 0 3 * * *"}, {Type: xxljob.ScheduleCron, Conf: "0 0 3 ? 1-13 1"},
			{Type: xxljob.ScheduleCron, Conf: ""}, {Type: xxljob.ScheduleCrontab, Conf: "@every 5m"}, {Type: xxljob.ScheduleCrontab, Conf: "TZ=UTC 0 3 * * *"}, {Type: xxljob.ScheduleCrontab, Conf: "0 0 3 * * ?"},
			{Type: xxljob.ScheduleCron, Conf: "0 0 3 * * 1-5"}, {Type: xxljob.ScheduleCron, Conf: "0 0 3 13 * 5"}, {Type: xxljob.ScheduleCronSeconds, Conf: "0 3 * * *"},
			{Type: xxljob.ScheduleFixRate, Conf: "often"}, {Type: xxljob.ScheduleFixRate, Conf: "0.5"}, {Type: xxljob.ScheduleFixDelay, Conf: "-1"}, {Type: xxljob.ScheduleFixDelay, Conf: ""}, {Type: xxljob.ScheduleOnce, Conf: "tomorrow"},
		} {
			want := sentence(t, bad, language)
			if bad.Conf != "0.5" { // what is refused is not to be previewed, but can be
				root.preview(string(bad.Type), bad.Conf, "", "").has(want)
			}
			for to, sent := range map[string]url.Values{"jobs/new": form, edit: change} {
				root.post(to, with(sent, "type", string(bad.Type), "conf", bad.Conf)).is(422).has(want)
				faults := root.faultsShown()
				if len(faults) == 0 || !strings.Contains(strings.Join(faults, "\n"), want) || !strings.Contains(root.body, `id="f-conf-fault"`) {
					t.Errorf("%s: %v: faults %q", language, bad, faults)
				}
				for _, fault := range faults {
					rest := fault
					for _, known := range []string{bad.Conf, strings.ToUpper(bad.Conf), "MON-FRI", "Spring", "CRON_SECONDS", "CRONTAB", "CRON", "FIX_RATE", "crontab", "@daily", "UTC", "JAN", "2027-03-01T08:00:00Z"} {
						rest = strings.ReplaceAll(rest, known, "")
					}
					if word := english.FindString(rest); language != "en" && word != "" {
						t.Errorf("%s: %q in %q", language, word, fault)
					}
					if strings.Contains(fault, "xxljob") {
						t.Errorf("%s: Go in %q", language, fault)
					}
				}
			}
		}
	}
}

// TestBadScheduleThatIsStored: by another program, say. Each page that meets it says what is wrong
// in the viewer's language, and that it is the schedule and not the store.
func TestBadScheduleThatIsStored(t *testing.T) { onBothStores(t, testBadScheduleThatIsStored) }

func testBadScheduleThatIsStored(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	x.job("orders", "another") // the first one sets the store up
	bad := xxljob.Job{App: "orders", Name: "nightly", Key: "nightly", Handler: "work", Stopped: true, Schedule: xxljob.Cron("0 61 3 * * ?")}
	j := must1(x.store.AddJob(xxljob.WithActor(t.Context(), "another"), bad, func(xxljob.Job, time.Time) (time.Time, error) { return time.Time{}, nil }))
	page := "jobs/" + itoa(j.ID)
	for _, language := range []string{"en", "zh-CN", "zh-TW"} {
		root.inLanguage(language)
		want := sentence(t, bad.Schedule, language)
		root.get("jobs").is(200).has(want)
		root.get(page).is(200).has(want)
		root.get("changes").is(200).has(want)
		root.post(page+"/start", nil).is(422).has(want).lacks("xxljob:")
		root.post("jobs/bulk", url.Values{"do": {"start"}, "sure": {"yes"}, "id": {itoa(j.ID)}}).is(200).has(want).lacks("xxljob:")
	}
}

// TestNoEnglishTails: no page has a text of programs behind one of the viewer's language, where it
// is not the store's or the host's.
func TestNoEnglishTails(t *testing.T) {
	quiet := &silent{}
	x := newSite(t, func(c *console.Config) { quiet.Scheduler = c.Scheduler; c.Scheduler = quiet })
	root := x.admin()
	j := x.job("orders", "nightly")
	run := "runs/" + itoa(x.run(j).ID)
	must(t, x.s.Kill(t.Context(), x.run(j).ID))
	never := must1(x.store.Runs(t.Context(), xxljob.RunFilter{States: []xxljob.State{xxljob.StateCancelled, xxljob.StateKilled}}))[0]
	root.inLanguage("zh-CN")
	english := regexp.MustCompile(`[A-Za-z]{3,}`)
	check := func(what string, known ...string) {
		t.Helper()
		_, main, _ := strings.Cut(root.body, "<main")
		main, _, _ = strings.Cut(main, "</main>")
		text := blanks.ReplaceAllString(tags.ReplaceAllString("<main"+main, " "), " ")
		text = regexp.MustCompile(`请求编号 \w+`).ReplaceAllString(html.UnescapeString(text), "")
		for _, k := range known {
			text = strings.ReplaceAll(text, k, "")
		}
		if word := english.FindString(text); word != "" {
			t.Errorf("%s: %q in %q", what, word, text)
		}
	}
	for _, to := range []string{"runs?job=abcd", "runs?slower=abcd", "runs?since=abcd", "changes?until=abcd"} {
		root.get(to).is(400).has("abcd")
		check(to, "abcd")
	}
	for _, to := range []string{"runs?before=%21%21", run + "/log?from=abcd"} {
		root.get(to).is(400)
		check(to)
	}
	root.post("jobs/bulk", url.Values{"do": {"explode"}, "id": {"1"}}).is(400)
	check("a bulk that is none")
	root.get("runs/" + itoa(never.ID)).is(200).has("该运行记录未启动")
	root.get("runs/" + itoa(never.ID) + "/log/file").is(404).has("该运行记录未启动")
	check("no log")
	quiet.why = fmt.Errorf("the host says: %w", xxljob.ErrNoLog)
	root.get(run + "/log/file").is(404).has("无法获取该运行的日志")
	quiet.why = nil
	root.post("jobs/"+itoa(j.ID)+"/trigger", url.Values{"key": {"xxljob/x"}, "at": {"2070-01-01T00:00"}, "addresses": {"no address"}, "param": {strings.Repeat("x", 70_000)}}).is(422)
	for _, fault := range root.faultsShown() {
		if english.MatchString(fault) {
			t.Errorf("running once: %q", fault)
		}
	}
	if len(root.faultsShown()) < 3 {
		t.Errorf("running once: %q", root.faultsShown())
	}
	form := root.newForm("name", "", "app", "x\x01", "key", strings.Repeat("k", 300), "retries", "-1", "maxreruns", "-1", "maxsnoozes", "-1", "jitter", "101", "retrypause", "-1", "retrypausemax", "1", "timeout", "0.5", "keeprun", "1", "keepruns", "1",
		"lateafter", "0.1", "maxper", "3", "maxruns", "-1", "notbefore", "1960-01-01T00:00", "notafter", "1950-01-01T00:00", "route", "NONE", "block", "NONE", "misfire", "NONE", "catchup", "NONE", "onnoexecutor", "NONE", "onlost", "NONE", "childparam", "NONE",
		"children", "0", "childkeys", "nothing", "after", "0", "afterkeys", "nothing", "afterwindow", "7", "afterzone", "Nowhere", "aftertimeout", "0.1", "tags", strings.Repeat("t", 100), "author", strings.Repeat("a", 100), "alarm", strings.Repeat("a", 300), "zone", "Nowhere", "dst", "NONE", "handler", "")
	root.post("jobs/new", form).is(http.StatusUnprocessableEntity)
	if n := len(root.faultsShown()); n < 25 {
		t.Errorf("%d faults: %q", n, root.faultsShown())
	}
	for _, fault := range root.faultsShown() {
		if english.MatchString(strings.NewReplacer("IANA", "", "Asia/Shanghai", "", "orders/nightly", "").Replace(fault)) {
			t.Errorf("the form: %q", fault)
		}
	}
	_, alert, _ := strings.Cut(root.body, `role="alert">`)
	alert, _, _ = strings.Cut(alert, "<")
	if english.MatchString(alert) {
		t.Errorf("the form: %q", alert)
	}
}
