package browser

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/storetest"
)

// TestMorph: what is refreshed leaves the rest of the page as it is: where the focus is, what was
// typed and where in it, and what somebody has opened, also in what is refreshed itself.
func TestMorph(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	param := `{"table":"ledger","columns":["id","amount","currency"]}`
	job := x.job(xxljob.Job{Name: "Reindex", Handler: "talk", Schedule: xxljob.Manual(), Param: param})
	id := x.trigger(job)
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})

	// typed types into a field, so that the caret is in the midst of it, and returns what there is
	// to be kept.
	typed := func(field string) (kept string) {
		mouse{}.press(b, field)
		b.do(chromedp.KeyEvent("half a wo"))
		eval[bool](b, `(document.activeElement.setSelectionRange(4, 6), true)`)
		return `document.activeElement.matches(` + quoted(field) + `) && document.activeElement.value === "half a wo" && document.activeElement.selectionStart === 4 && document.activeElement.selectionEnd === 6`
	}
	// A click elsewhere closes a menu: so it is opened when the field has the focus already.
	const open = `(document.querySelector(".rowmenu").open = true)`
	b.open(mount + "runs")
	kept := typed(`.filters input[name="handler"]`)
	eval[bool](b, open)
	next := x.trigger(job)
	b.until("the next run", `document.querySelector("#run-`+strconv.FormatInt(next, 10)+`")`)
	if !eval[bool](b, kept) {
		b.Error("the focus, or what was typed, is lost by a refresh of the runs")
	}
	if row := "#run-" + strconv.FormatInt(id, 10); !eval[bool](b, `document.querySelector(`+quoted(row+" .rowmenu")+`).open && document.querySelectorAll(".rowmenu[open]").length === 1`) {
		b.Error("the menu that was opened is not the one that is open")
	}

	b.open(mount + "runs/" + strconv.FormatInt(id, 10))
	mouse{}.press(b, "#live details.fold summary")
	kept = typed("#search")
	const facts = `document.querySelector("#live").innerText`
	for range 2 {
		first := eval[string](b, facts)
		b.until("news", facts+" !== "+quoted(first))
	}
	if !eval[bool](b, kept) {
		b.Error("the focus, or what was typed, is lost by a refresh of the run")
	}
	if !eval[bool](b, `document.querySelector("#live details.fold").open`) {
		b.Error("the parameter that was opened is shut by a refresh")
	}
	for _, fault := range b.takeFaults() {
		t.Error(fault)
	}
}

// TestStale: what could not be read for ten seconds stays, and is marked in amber as what it is,
// with the time that it is of, until it is read again.
func TestStale(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	id := x.trigger(x.job(xxljob.Job{Name: "Reindex", Handler: "talk", Schedule: xxljob.Manual()}))
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	b.open(mount + "runs/" + strconv.FormatInt(id, 10))
	const facts, hidden = `document.querySelector("#live").innerText`, `document.querySelector("#stale").hidden`
	first := eval[string](b, facts)
	b.until("news", facts+" !== "+quoted(first))
	if !eval[bool](b, hidden) {
		b.Error("what was just read is said to be old")
	}
	mend := x.faults.Inject("Run", storetest.Fault{Before: true})
	failed := x.faults.Calls("Run")
	b.until("the mark", "!"+hidden)
	if n := x.faults.Calls("Run") - failed; n < 2 {
		b.Errorf("it was marked after %d failed readings", n)
	}
	old := eval[string](b, facts)
	if !strings.Contains(old, "step ") || !strings.Contains(old, "Reindex") {
		b.Errorf("what was read is gone: %s", old)
	}
	said, read := eval[string](b, `document.querySelector("#stale").innerText`), eval[string](b, `document.querySelector(".foot span").innerText.match(/\d\d:\d\d:\d\d/)[0]`)
	if !strings.Contains(said, read) {
		b.Errorf("it says %q of what was read at %s", said, read)
	}
	if !eval[bool](b, `(s => { const [r, g, b] = s.match(/\d+/g).map(Number); return s.startsWith("rgb(") && r > g && g > b + 20 })(getComputedStyle(document.querySelector("#stale")).borderLeftColor)`) {
		b.Errorf("the mark is %s, which is no amber", eval[string](b, `getComputedStyle(document.querySelector("#stale")).borderLeftColor`))
	}
	mend()
	b.until("no mark", hidden)
	b.until("news", facts+" !== "+quoted(old))
	b.takeFaults() // that requests have failed is one to the browser
}

// TestNewer: for who has gone down the list of runs, nothing moves; it is said how many there are
// that are newer, and leads to them.
func TestNewer(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	job := x.job(xxljob.Job{Name: "Export", Handler: "export", Schedule: xxljob.Manual()})
	for range 40 {
		x.trigger(job)
	}
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	b.open(mount + "runs")
	const there = `document.querySelectorAll("#live tr[id]").length`
	if n := eval[int](b, there); n != 40 {
		b.Fatalf("there are %d rows", n)
	}
	eval[bool](b, `(scrollTo(0, document.body.scrollHeight), true)`)
	b.until("the end of the list", `document.querySelector("#live").getBoundingClientRect().top < 0`)
	for range 3 {
		x.trigger(job)
	}
	b.until("how many are newer", `!document.querySelector("#newer").hidden`)
	b.says("#newer", "3 newer")
	if n := eval[int](b, there); n != 40 {
		b.Errorf("there are %d rows under who reads them", n)
	}
	mouse{}.press(b, "#newer")
	b.until("the newer ones", there+` === 43 && document.querySelector("#newer").hidden && scrollY === 0`)
	for _, fault := range b.takeFaults() {
		t.Error(fault)
	}
}

// TestLive: the page of a run that goes on is refreshed by itself, but not while somebody is at a
// dialog, and who reads the log above its end stays there.
func TestLive(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	job := x.job(xxljob.Job{Name: "Reindex", Handler: "talk", Schedule: xxljob.Manual()})
	id := x.trigger(job)
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	b.open(mount + "runs/" + strconv.FormatInt(id, 10))
	const facts = `document.querySelector("#live").innerText`
	const lines = `document.querySelectorAll("#lines .line").length`
	first := eval[string](b, facts)
	b.until("news", facts+" !== "+quoted(first))
	b.do(chromedp.Click(chromedp.CSS("[data-opens=kill]")))
	b.opened("#kill")
	paused := eval[string](b, facts)
	time.Sleep(3 * time.Second)
	if eval[string](b, facts) != paused {
		b.Error("the page was refreshed under a dialog")
	}
	b.do(chromedp.Click(chromedp.CSS("#kill [data-closes]")))
	b.until("news", facts+" !== "+quoted(paused))

	b.until("a long log", `(l => l.scrollHeight > l.clientHeight + 50)(document.querySelector("#lines"))`)
	eval[bool](b, `(document.querySelector("#lines").scrollTop = 0, true)`)
	n := eval[int](b, lines)
	b.until("more lines", lines+" > "+strconv.Itoa(n))
	if top := eval[float64](b, `document.querySelector("#lines").scrollTop`); top != 0 {
		b.Errorf("the log has moved to %.0f under who reads it", top)
	}
	for _, fault := range b.takeFaults() {
		t.Error(fault)
	}
}

// TestAListReadOnTime: a list that is read each time it is to be is never marked as old, and one that cannot be
// read is.
func TestAListReadOnTime(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	x.job(xxljob.Job{Name: "Reindex", Handler: "talk", Schedule: xxljob.Manual()})
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	b.open(mount + "jobs")
	eval[bool](b, `(() => {
		window.polls = window.marks = 0
		addEventListener("htmx:after:request", () => { window.polls++ })
		new MutationObserver(() => { window.marks += !document.querySelector("#stale").hidden }).observe(document.querySelector("#stale"), {attributes: true})
		return true
	})()`)
	b.until("two polls", `window.polls >= 2`)
	if n := eval[int](b, `window.marks`); n > 0 {
		b.Errorf("what was just read is marked as old, %d times", n)
	}
	eval[bool](b, `(window.fetch = () => Promise.reject(new Error("does not answer")), true)`)
	b.until("a mark", `!document.querySelector("#stale").hidden`)
	b.takeFaults() // nobody has answered
}

// TestSwitch: what is refreshed can be stopped, by the switch and by a key, and stays so.
func TestSwitch(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	id := x.trigger(x.job(xxljob.Job{Name: "Reindex", Handler: "talk", Schedule: xxljob.Manual()}))
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	b.open(mount + "runs/" + strconv.FormatInt(id, 10))
	const facts, off = `document.querySelector("#live").innerText`, `document.querySelector("#switch").getAttribute("aria-pressed") === "false"`
	first := eval[string](b, facts)
	b.until("news", facts+" !== "+quoted(first))
	b.keys(".")
	b.until("the switch is off", off)
	b.says("#said", "paused")
	still := eval[string](b, facts)
	time.Sleep(3 * time.Second)
	if eval[string](b, facts) != still {
		b.Error("the page was refreshed though that is off")
	}
	b.do(chromedp.Reload())
	b.until("the switch is off on the next page", off+` && document.body.dataset.live === "off"`)
	mouse{}.press(b, "#switch")
	again := eval[string](b, facts)
	b.until("news again", facts+" !== "+quoted(again))
	for _, fault := range b.takeFaults() {
		t.Error(fault)
	}
}
