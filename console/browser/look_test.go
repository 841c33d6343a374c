package browser

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/xxljob/xxljob"
)

// TestLook: language, theme and zone are chosen in the menu and kept, and a chosen theme wins over
// that of the system.
func TestLook(t *testing.T) {
	browser(t)
	x := newSite(t)
	x.user("root")
	x.job(xxljob.Job{Name: "Reindex", Handler: "talk", Schedule: xxljob.Cron("0 0 3 * * ?").In("UTC")})
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	b.open(mount + "jobs")
	const ground = `getComputedStyle(document.body).backgroundColor`
	light := eval[string](b, ground)
	mouse{}.press(b, "details.menu summary")
	b.do(chromedp.SetValue(chromedp.CSS(".sheet [name=language]"), "zh-TW"), chromedp.SetValue(chromedp.CSS(".sheet [name=theme]"), "dark"))
	b.fill(mouse{}, ".sheet [name=zone]", "Asia/Taipei")
	mouse{}.press(b, ".sheet form button")
	b.says("h1", "任務")
	b.says(".menu summary", "UTC+8")
	if dark := eval[string](b, ground); dark == light || !regexp.MustCompile(`^rgb\(\d{1,2}, \d{1,2}, \d{1,2}\)$`).MatchString(dark) {
		b.Errorf("the page is %s in the dark, and %s in the light", dark, light)
	}
	// Escape closes the menu and gives the focus back.
	mouse{}.press(b, "details.menu summary")
	b.until("the menu", `document.querySelector("details.menu[open]")`)
	b.keys(kb.Escape)
	b.until("no menu", `!document.querySelector("details.menu[open]") && document.activeElement.matches("details.menu summary")`)
}

// TestKeys: they are listed, do what the list says, nothing behind a dialog, and can be turned off.
func TestKeys(t *testing.T) {
	browser(t)
	x := newSite(t)
	x.user("root")
	job := x.job(xxljob.Job{Name: "Reindex", Handler: "talk", Schedule: xxljob.Cron("0 0 3 * * ?")})
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	b.open(mount + "jobs/" + strconv.FormatInt(job.ID, 10))
	b.keys("?")
	b.opened("#keys")
	b.keys("s")
	time.Sleep(300 * time.Millisecond)
	if j := must1(x.store.Job(context.Background(), job.ID)); j.Stopped {
		b.Error("a key has stopped the job behind the dialog")
	}
	b.keys(kb.Escape)
	b.until("no dialog", `!document.querySelector("#keys").open`)
	held := func(repeats bool) chromedp.Action[chromedp.Void] {
		return call(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "s", Code: "KeyS", Text: "s", AutoRepeat: &repeats})
	}
	b.do(held(true))
	time.Sleep(300 * time.Millisecond)
	if j := must1(x.store.Job(context.Background(), job.ID)); j.Stopped {
		b.Error("a key that is held since the page before has stopped the job")
	}
	b.do(held(false))
	b.opened("#stop")
	b.keys(kb.Escape)
	b.until("no dialog", `!document.querySelector("#stop").open`)
	b.keys("g", "j")
	b.says("h1", "Jobs")
	b.keys("j", "x")
	b.until("a row is selected", `document.querySelector(".joblist input[name=id]").checked && !document.querySelector(".bulk button").disabled`)
	b.keys("x")

	mouse{}.press(b, "details.menu summary")
	mouse{}.press(b, ".sheet input[type=checkbox][name=keys]")
	mouse{}.press(b, ".sheet form button")
	b.until("no keys", `document.body.dataset.keys === "off" && document.readyState === "complete"`)
	b.keys("g", "r", "?")
	time.Sleep(300 * time.Millisecond)
	if !eval[bool](b, `document.querySelector("h1").innerText === "Jobs" && !document.querySelector("#keys").open`) {
		b.Error("keys that are turned off do something")
	}
	for _, fault := range b.takeFaults() {
		t.Error(fault)
	}
}

// TestWrap: the lines of a log are wrapped or not, as one chooses, and stay so on the next page; by
// mouse, by keyboard and without scripts.
func TestWrap(t *testing.T) {
	browser(t)
	for _, f := range []struct {
		name    string
		hand    hand
		scripts bool
	}{{"mouse", mouse{}, true}, {"keyboard", keyboard{}, true}, {"without scripts", mouse{}, false}} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			x := newSite(t)
			x.user("root")
			id := x.trigger(x.job(xxljob.Job{Name: "Export", Handler: "export", Schedule: xxljob.Manual()}))
			x.wait(id, "ended", ended)
			b := newTab(t, x.origin)
			b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
			b.scripts(f.scripts)
			b.open(mount + "runs/" + strconv.FormatInt(id, 10) + "/log")
			const wider = `(l => l.scrollWidth > l.clientWidth)(document.querySelector("#lines"))`
			b.says("#log", "Lines 1 to 5 of 5")
			b.until("wrapped lines", "!"+wider)
			const button = "[data-log-wrap] button"
			f.hand.press(b, button)
			b.until("lines as long as they are", wider+` && document.querySelector("`+button+`").getAttribute("aria-pressed") === "false"`)
			b.until("a page that is as wide as it was", `document.documentElement.scrollWidth <= innerWidth`)
			b.open(mount + "runs/" + strconv.FormatInt(id, 10))
			b.until("lines as long as they are on the next page", wider)
			f.hand.press(b, button)
			b.until("wrapped lines", "!"+wider+` && document.querySelector("`+button+`").getAttribute("aria-pressed") === "true"`)
			for _, fault := range b.takeFaults() {
				t.Error(fault)
			}
		})
	}
}

// TestLoading: what takes long shows a bar, and the old page stays until the new one is there.
func TestLoading(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	b.open(mount + "jobs")
	if eval[bool](b, `!document.querySelector("#loading").hidden`) {
		b.Error("there is a bar though nothing is awaited")
	}
	// The browser answers nothing while it waits for the next page: so the old one notes it.
	const notes = `(new MutationObserver(() => sessionStorage.bar = document.querySelector("h1").innerText).observe(document.querySelector("#loading"), {attributes: true}), true)`
	eval[bool](b, notes)
	to := func(section, heading string) {
		eval[bool](b, `(document.querySelector('.rail a[href$="`+section+`"]').click(), true)`)
		b.until(heading, `document.querySelector("h1").innerText === `+quoted(heading)+` && document.querySelector("#loading").hidden`)
	}
	to("runs", "Runs")
	if bar := eval[string](b, `sessionStorage.bar ?? "none"`); bar != "none" {
		b.Error("there was a bar for a page that came at once")
	}
	b.open(mount + "jobs")
	eval[bool](b, notes)
	x.slow.Store(int64(2 * time.Second))
	to("runs", "Runs")
	if bar := eval[string](b, `sessionStorage.bar ?? "none"`); bar != "Jobs" {
		b.Errorf("the bar was above %q, want the old page", bar)
	}
	for _, fault := range b.takeFaults() {
		t.Error(fault)
	}
}

// TestCauseIsSeen: why a run has failed, and the beginning of its log, are on the first screen.
func TestCauseIsSeen(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	id := x.trigger(x.job(xxljob.Job{Name: "Rates", Handler: "fail", Schedule: xxljob.Manual()}))
	x.wait(id, "ended", ended)
	b := newTab(t, x.origin)
	for _, width := range []int64{1440, 1024, 390} {
		b.looks(combination{"en", "light", width}, map[string]string{"xxljob_session": x.session("root")})
		b.open(mount + "runs/" + strconv.FormatInt(id, 10))
		b.says(".why", "context deadline exceeded")
		if !eval[bool](b, `[".why", "#lines .line"].every(what => document.querySelector(what).getBoundingClientRect().bottom <= innerHeight)`) {
			b.Errorf("at %d px one has to scroll for why it failed", width)
		}
	}
	for _, fault := range b.takeFaults() {
		t.Error(fault)
	}
}
