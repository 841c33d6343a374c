package browser

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
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
	b.open(mount + "runs")
	kept := typed(`.filters input[name="text"]`)
	next := x.trigger(job)
	b.until("the next run", `document.querySelector("#run-`+strconv.FormatInt(next, 10)+`")`)
	if !eval[bool](b, kept) {
		b.Error("the focus, or what was typed, is lost by a refresh of the runs")
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

// TestHeld: under a hand no row moves or changes, whatever the hand does; the header says what is waited
// for and how many rows are newer, nothing else of the page moves, and afterwards the list goes on.
func TestHeld(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	job := x.job(xxljob.Job{Name: "Export", Handler: "export", Schedule: xxljob.Manual()})
	for range 3 {
		x.wait(x.trigger(job), "ended", ended)
	}
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	const rows = `[...document.querySelectorAll("#live tr[id]")].map(r => r.id + " at " + r.getBoundingClientRect().top + ": " + r.innerText).join()`
	const row = "#live tbody tr:nth-child(2)"
	away := func() { b.point(400, 12) }
	for _, c := range []struct {
		name     string
		do, undo func()
		says     string
	}{
		{"a menu", func() { mouse{}.press(b, row+" .rowmenu summary"); away() }, func() { b.keys(kb.Escape); eval[bool](b, `(document.activeElement.blur(), true)`) }, "a menu is open"},
		{"the pointer", func() {
			b.point(700, eval[float64](b, `document.querySelector("`+row+`").getBoundingClientRect().top + 5`))
		}, away, "your pointer is here"},
		{"a tick", func() { mouse{}.press(b, row+" input"); away() }, func() { mouse{}.press(b, row+" input"); eval[bool](b, `(document.activeElement.blur(), true)`); away() }, "rows are ticked"},
		{"the focus", func() { b.keys("j", "j") }, func() { eval[bool](b, `(document.activeElement.blur(), true)`) }, "the focus is in here"},
		{"text", func() { eval[bool](b, `(getSelection().selectAllChildren(document.querySelector("`+row+`")), true)`) }, func() { eval[bool](b, `(getSelection().empty(), true)`) }, "text is selected"},
		{"a dialog", func() { b.keys("?"); b.opened("#keys") }, func() { b.keys(kb.Escape) }, "a dialog is open"},
	} {
		b.open(mount + "runs")
		away()
		b.says("#live-words", "Live ")
		c.do()
		b.says("#live-words", c.says)
		before := eval[string](b, rows)
		x.wait(x.trigger(job), "ended", ended)
		b.until("how many are newer", `!document.querySelector("#newer").hidden`)
		b.says("#newer", "1 newer")
		if now := eval[string](b, rows); now != before {
			b.Errorf("%s: the rows were\n%s\nand are\n%s", c.name, before, now)
		}
		b.says("#live-words", c.says)
		c.undo()
		b.until(c.name+": the newer row", rows+` !== `+quoted(before)+` && document.querySelector("#newer").hidden`)
		b.says("#live-words", "Live ")
	}
	for _, fault := range b.takeFaults() {
		t.Error(fault)
	}
}

// point moves the pointer.
func (b *tab) point(x, y float64) {
	b.Helper()
	b.do(call(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: x, Y: y}))
}

// TestLoggedOut: a page whose session has ended says so in its header, leads to the login and back to
// where it was, and goes on by itself where somebody has logged in beside it.
func TestLoggedOut(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	job := x.job(xxljob.Job{Name: "Export", Handler: "export", Schedule: xxljob.Manual()})
	run := x.trigger(job)
	x.wait(run, "ended", ended)
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	b.open(mount + "runs?state=succeeded")
	b.says("#live-words", "Live ")
	x.endSessions("root")
	b.says("#live-words", "Logged out")
	b.says("#said", "Logged out")
	if n := eval[int](b, `document.querySelectorAll("#live tr[id]").length`); n != 1 {
		b.Errorf("%d rows are left of what was read", n)
	}
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	b.says("#live-words", "Live ")
	x.endSessions("root")
	b.until("the way to the login", `!document.querySelector("#live-login").hidden`)
	mouse{}.press(b, "#live-login")
	b.fill(mouse{}, "#name", "root")
	b.fill(mouse{}, "#password", password)
	mouse{}.press(b, "main button.primary")
	b.until("the same list", `location.pathname + location.search === "`+mount+`runs?state=succeeded" && document.querySelector("#live-words")?.innerText.includes("Live ")`)

	// What does something without a session says so too, and leads back.
	b.open(mount + "jobs/" + strconv.FormatInt(job.ID, 10))
	x.endSessions("root")
	mouse{}.press(b, "[data-opens=once]")
	b.opened("#once")
	b.fill(mouse{}, "#once-param", "typed before")
	mouse{}.press(b, "#once button.primary")
	b.says(".note", "You have been logged out")
	b.fill(mouse{}, "#name", "root")
	b.fill(mouse{}, "#password", password)
	mouse{}.press(b, "main button.primary")
	b.until("what was typed", `document.querySelector("#once-param")?.value === "typed before"`)
	if runs := must1(x.store.Runs(context.Background(), xxljob.RunFilter{})); len(runs) != 1 {
		b.Errorf("there are %d runs: the login has made one", len(runs))
	}
	b.takeFaults() // that one is logged out is one to the browser
}

// TestAsksFirst: what stops a job, or several, asks first, by the mouse and by its key.
func TestAsksFirst(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	for _, name := range []string{"Export", "Import"} {
		x.job(xxljob.Job{Name: name, Handler: "export", Schedule: xxljob.Cron("0 0 3 * * ?")})
	}
	stopped := func(name string) bool { return must1(x.store.Job(context.Background(), x.jobs[name])).Stopped }
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	b.open(mount + "jobs/" + strconv.FormatInt(x.jobs["Export"], 10))
	b.keys("s")
	b.opened("#stop")
	b.says("#stop", "Stop “Export”?")
	b.keys(kb.Enter) // the focus is where nothing happens
	b.until("no dialog", `!document.querySelector("#stop").open`)
	if stopped("Export") {
		b.Fatal("two keys have stopped the job")
	}
	b.keys("s")
	b.opened("#stop")
	mouse{}.press(b, "#stop button.danger")
	b.says(".said", "stopped")
	mouse{}.press(b, "[data-opens=start]")
	b.opened("#start")
	mouse{}.press(b, "#start button.primary")
	b.says(".said", "started")

	b.open(mount + "jobs")
	mouse{}.press(b, "#tick-all")
	mouse{}.press(b, ".bulk button[value=stop]")
	b.says("h1", "Stop 2 jobs?")
	b.says("table", "Import")
	if stopped("Export") || stopped("Import") {
		b.Fatal("they were stopped before anybody has said that it is meant")
	}
	mouse{}.press(b, "main button.danger")
	b.says(".said", "Done for 2 of 2")
	mouse{}.press(b, ".after form button")
	b.says("h1", "Start 2 jobs?")
	mouse{}.press(b, "main button.primary")
	b.says(".said", "Done for 2 of 2")
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
	const facts, hidden = `document.querySelector("#live").innerText`, `(document.querySelector("#live-state").dataset.state !== "away")`
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
	said, read := eval[string](b, `document.querySelector("#live-words").innerText`), eval[string](b, `document.querySelector(".foot span").innerText.match(/\d\d:\d\d:\d\d/)[0]`)
	if !strings.Contains(said, read) {
		b.Errorf("it says %q of what was read at %s", said, read)
	}
	if !eval[bool](b, `(s => { const [r, g, b] = s.match(/\d+/g).map(Number); return s.startsWith("rgb(") && r > g && g > b + 20 })(getComputedStyle(document.querySelector("#switch")).borderLeftColor)`) {
		b.Errorf("the mark is %s, which is no amber", eval[string](b, `getComputedStyle(document.querySelector("#switch")).borderLeftColor`))
	}
	mend()
	b.until("no mark", hidden)
	b.until("news", facts+" !== "+quoted(old))
	b.takeFaults() // that requests have failed is one to the browser
}

// TestAwayAndBack: a page that the store has no answer for says what the process knows, keeps saying
// it, and is there by itself once the store answers.
func TestAwayAndBack(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	mend := x.faults.Inject("View", storetest.Fault{Before: true})
	b.open(mount + "overview")
	if !eval[bool](b, `document.querySelector(".away .facts") !== null && document.querySelector(".rail") !== null`) {
		b.Fatalf("it says %s", eval[string](b, `document.body.innerText`))
	}
	asked := x.faults.Calls("View")
	b.do(discard(chromedp.Evaluate[any](`void (window.stays = true)`)))
	b.until("what is asked again and again", `document.querySelector(".away") !== null && window.stays`)
	for end := time.Now().Add(patience); x.faults.Calls("View") < asked+2 && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	if n := x.faults.Calls("View"); n < asked+2 || !eval[bool](b, `window.stays`) {
		b.Errorf("it was asked %d times, or has gone", n-asked)
	}
	mend()
	b.until("the overview", `document.querySelector(".tiles") !== null || document.querySelector(".empty") !== null`)
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
		new MutationObserver(() => { window.marks += document.querySelector("#live-state").dataset.state === "away" }).observe(document.querySelector("#live-state"), {attributes: true})
		return true
	})()`)
	b.until("two polls", `window.polls >= 2`)
	if n := eval[int](b, `window.marks`); n > 0 {
		b.Errorf("what was just read is marked as old, %d times", n)
	}
	eval[bool](b, `(window.fetch = () => Promise.reject(new Error("does not answer")), true)`)
	b.until("a mark", `document.querySelector("#live-state").dataset.state === "away"`)
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
