package console_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
)

// TestJobPagesHaveWords: no page about jobs says a key in place of its words, in any language.
func TestJobPagesHaveWords(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	full := x.fullJob()
	ctx := xxljob.WithActor(t.Context(), "ann")
	must(t, x.s.StopJob(ctx, full.ID))
	must1(x.s.Trigger(ctx, full.ID, xxljob.Trigger{}))
	must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "all parts", Handler: "work", Route: xxljob.RouteShardingBroadcast}))
	script := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: "script", GlueType: "GLUE_PHP"}))
	key := regexp.MustCompile(`\b(?:bulk|builder|chain|changes|fault|field|filter|form|help|job|jobs|object|option|pager|preview|problem|remove|run|runs|said|state|time|type|verb)\.[a-zA-Z_-]+(?:\.[a-zA-Z_-]+)*`)
	page := "jobs/" + itoa(full.ID)
	for _, language := range []string{"en", "zh-CN", "zh-TW"} {
		root.header.Set("Accept-Language", language)
		check := func() {
			t.Helper()
			if m := key.FindString(root.text()); m != "" {
				t.Errorf("%s: %s says %q", language, root.at, m)
			}
		}
		for _, to := range []string{"jobs", "jobs?type=CRONTAB&state=off&failing=yes", "jobs?type=FIX_DELAY&rows=500", page, page + "/edit", page + "/edit?version=1", page + "/once", page + "/remove", "jobs/" + itoa(script.ID), "jobs/new", "preview?type=CRON&conf=0+30+2+%3F+*+1-5&zone=Europe/Berlin&dst=QUARTZ"} {
			root.get(to).is(200)
			check()
		}
		for _, said := range []string{"added", "saved", "restored", "started", "stopped"} {
			root.get(page + "?said=" + said).is(200)
			check()
			if !strings.Contains(root.body, `class="said"`) {
				t.Errorf("%s: nothing is said of %s", language, said)
			}
		}
		for _, do := range []string{"start", "stop", "once", "remove"} {
			root.post("jobs/bulk", url.Values{"do": {do}, "sure": {"yes"}, "id": {itoa(full.ID), "4711"}}).is(200)
			check()
		}
		root.post(page+"/trigger", url.Values{"key": {"xxljob/x"}, "at": {"x"}}).is(422)
		check()
		root.post("jobs/bulk", nil).is(422)
		check()
	}
}

// TestUnitsInChinese: no page in Chinese has a unit in Latin letters behind a number.
func TestUnitsInChinese(t *testing.T) { inMemory(t, testUnitsInChinese) }

func testUnitsInChinese(t *testing.T) {
	x := newSite(t)
	root := x.admin()
	dark := must1(x.s.AddJob(t.Context(), xxljob.Job{App: "dark", Name: "Dark", Handler: "h", Schedule: xxljob.Cron("0 0 3 * * ?")}))
	j, r := x.stocked(2)
	latin := regexp.MustCompile(`.{0,40}\d ?(?:ms|s|min|h|d)\b.{0,20}`)
	for _, language := range []string{"zh-CN", "zh-TW"} {
		root.inLanguage(language)
		for _, page := range pages(j, r) {
			if m := latin.FindString(root.get(page).text()); m != "" && !strings.Contains(m, "1h30m") {
				t.Errorf("%s of %s says %q", page, language, m)
			}
			if strings.Contains(root.body, "<body") && !regexp.MustCompile(`data-units="[^a-z]*\{n\}[^a-z]*\{n\}[^a-z]*\{n\}[^a-z]*\{n\}[^a-z]*"`).MatchString(root.body) {
				t.Errorf("%s of %s has units in Latin letters for scripts", page, language)
			}
		}
		for _, page := range []string{"overview", "jobs/" + itoa(dark.ID)} {
			if said := root.get(page).text(); strings.Contains(said, "enabled job") || !strings.Contains(said, map[string]string{"zh-CN": "从未有过执行器", "zh-TW": "從未有過執行器"}[language]) {
				t.Errorf("%s of %s says of an app without executors: %q", page, language, said)
			}
		}
	}
}
