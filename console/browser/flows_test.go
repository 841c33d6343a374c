package browser

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

// hand is how somebody works with a page.
type hand interface {
	press(b *tab, what string) // a button, a link
	reach(b *tab, what string) // a field, which has the focus then
	String() string
}

// mouse clicks on what it sees.
type mouse struct{}

func (mouse) String() string { return "mouse" }
func (mouse) press(b *tab, what string) {
	b.Helper()
	b.do(chromedp.Click(chromedp.CSS(what), chromedp.NodeVisible))
}
func (m mouse) reach(b *tab, what string) {
	b.Helper()
	m.press(b, what)
}

// keyboard goes from one thing to the next until it is where it wants to be.
type keyboard struct{}

func (keyboard) String() string { return "keyboard" }
func (k keyboard) press(b *tab, what string) {
	b.Helper()
	k.reach(b, what)
	b.do(chromedp.KeyEvent(kb.Enter))
}
func (keyboard) reach(b *tab, what string) {
	b.Helper()
	b.until(what, `document.readyState === "complete" && document.querySelector(`+quoted(what)+`)`) // with its stylesheet
	for range 150 {
		if eval[bool](b, `document.activeElement?.matches(`+quoted(what)+`) ?? false`) {
			if !eval[bool](b, `(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 })()`) {
				b.Errorf("nobody sees that %s has the focus", what)
			}
			return
		}
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	b.Fatalf("%s is not reached by keys, on the page %s", what, b.where())
}

// fill writes a text into a field, in place of what is there.
func (b *tab) fill(h hand, field, text string) {
	b.Helper()
	h.reach(b, field)
	b.do(call(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: "a", Code: "KeyA", Modifiers: int64(kb.ModifierCtrl), Commands: []string{"selectAll"}}),
		call(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: "a", Code: "KeyA"}),
		chromedp.KeyEvent(text))
}

// scripts has pages run scripts from now on, or not.
func (b *tab) scripts(on bool) {
	b.Helper()
	b.do(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on}))
}

// says waits until an element has a text.
func (b *tab) says(what, text string) {
	b.Helper()
	b.until(text, `[...document.querySelectorAll(`+quoted(what)+`)].some(e => e.innerText.includes(`+quoted(text)+`))`)
}

// opened waits until a dialog is there.
func (b *tab) opened(dialog string) {
	b.Helper()
	b.until(dialog, `getComputedStyle(document.querySelector(`+quoted(dialog)+`)).display !== "none"`)
}

// keys presses keys that a page's scripts answer, one after another, as soon as the scripts listen:
// the text of a page that is still being read can be there before them.
func (b *tab) keys(keys ...string) {
	b.Helper()
	b.until("the scripts", `document.readyState === "complete" && "js" in document.documentElement.dataset`)
	for _, key := range keys {
		b.do(chromedp.KeyEvent(key))
	}
}

// read reads the page again until an expression is true of it.
func (b *tab) read(what, expression string) {
	b.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		b.do(chromedp.Reload())
		if eval[bool](b, "!!("+expression+")") {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("%s did not come, on the page %s", what, b.where())
		}
	}
}

// TestFlow: logging in, finding a job, running it once, following its log, killing it, editing
// its schedule, seeing that in the record and taking it back, by mouse, by keyboard and without
// scripts.
func TestFlow(t *testing.T) {
	browser(t)
	for _, f := range []struct {
		name    string
		hand    hand
		scripts bool
		width   int64
	}{{"mouse", mouse{}, true, 1280}, {"keyboard", keyboard{}, true, 1280}, {"narrow", mouse{}, true, 360}, {"without scripts", mouse{}, false, 1280}} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			x := newSite(t)
			x.user("root")
			job := x.job(xxljob.Job{Name: "Reindex", Handler: "talk", Schedule: xxljob.Cron("0 0 3 * * ?"), Param: "all"})
			x.job(xxljob.Job{Name: "Another", Handler: "export", Schedule: xxljob.Cron("0 0 3 * * ?")})
			b := newTab(t, x.origin)
			b.looks(combination{"en", "light", f.width}, nil)
			b.scripts(f.scripts)
			x.work(b, f.hand, f.scripts, job.ID)
			for _, fault := range b.takeFaults() {
				t.Error(fault)
			}
		})
	}
}

// work is the flow.
func (x *site) work(b *tab, h hand, scripts bool, id int64) {
	b.Helper()
	x.find(b, h)
	x.run(b, h, scripts)
	x.edit(b, h, scripts, strconv.FormatInt(id, 10))
	if j := must1(x.store.Job(context.Background(), id)); j.Schedule.Conf != "0 0 3 * * ?" {
		b.Errorf("the schedule is %s", j.Schedule.Conf)
	}
}

// find logs in and goes to the page of the job.
func (x *site) find(b *tab, h hand) {
	b.Helper()
	b.open(mount)
	b.fill(h, "#name", "root")
	b.fill(h, "#password", password)
	h.press(b, "main form button.primary")
	b.says("h1", "All is well")
	h.press(b, `.rail a[href$="jobs"]`)
	b.says("h1", "Jobs")

	b.fill(h, "#search", "reind")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until("one job", `location.search.includes("reind") && document.querySelectorAll(".rows a.row").length === 1`)
	h.press(b, ".rows a.row")
	b.says("h1", "Reindex")
}

// run runs the job once, follows the log and kills the run.
func (x *site) run(b *tab, h hand, scripts bool) {
	b.Helper()
	h.press(b, "[data-opens=once]")
	if scripts {
		b.opened("#once")
	} else {
		b.until("the page that runs it once", `/once$/.test(location.pathname)`)
	}
	if scripts && !eval[bool](b, `document.querySelector("#once").contains(document.activeElement)`) {
		b.Error("the focus is not in the dialog that was opened")
	}
	b.until("the addresses at which it can run", `document.querySelector("form[action$='/trigger'] input[name=address]") !== null`)
	b.fill(h, "#once-param", "only customers")
	h.press(b, `form[action$="/trigger"] button.primary`)
	b.until("the run", `/runs\/\d+/.test(location.pathname)`)
	b.says("main pre", "only customers")

	const lines = `document.querySelectorAll("#lines .line").length`
	if scripts {
		b.until("the first lines", lines+" >= 3")
		n := eval[int](b, lines)
		b.until("more lines", lines+" > "+strconv.Itoa(n+3))
	} else {
		b.read("the first lines", lines+" >= 3")
		n := eval[int](b, lines)
		b.read("more lines", lines+" > "+strconv.Itoa(n+3))
	}
	b.says("#lines", `param="only customers"`)
	h.press(b, "[data-opens=kill]")
	if scripts {
		b.opened("#kill")
	} else {
		b.until("the page that kills it", `/kill$/.test(location.pathname)`)
	}
	h.press(b, `form[action$="/kill"] button.danger`)
	b.says(".said", "asked to stop")
	b.read("the end of the run", `document.querySelector("main .state-killed")`)
}

// edit goes from the page of the run to that of the job, edits its schedule and takes that back.
func (x *site) edit(b *tab, h hand, scripts bool, id string) {
	b.Helper()
	h.press(b, `.crumbs a[href$="jobs/`+id+`"]`)
	b.says("h1", "Reindex")
	h.press(b, `main a[href$="/edit"]`)
	b.until("the form", `document.querySelector("#jobform")`)
	if scripts {
		b.build(h)
	} else {
		b.fill(h, "#f-conf", "0 0 3 15 * ?")
	}
	h.press(b, "#jobform button.primary")
	b.says(".said", "saved")
	b.says("main", "0 0 3 15 * ?")

	h.press(b, `.rail a[href$="changes"]`)
	b.says(".diff del", "0 0 3 * * ?")
	b.says(".diff ins", "0 0 3 15 * ?")
	h.press(b, `main td a[href$="jobs/`+id+`"]`)
	b.says("h1", "Reindex")
	h.press(b, "details:has(.jobchanges) summary")
	h.press(b, `.jobchanges a[href$="/edit?version=1"]`)
	b.until("the former version", `document.querySelector("#f-conf")?.value === "0 0 3 * * ?"`)
	h.press(b, "#jobform button.primary")
	b.says(".said", "back as it was")
}

// build has the builder write the expression of the form: the fifteenth of each month.
func (b *tab) build(h hand) {
	b.Helper()
	h.press(b, "#builder summary")
	h.reach(b, "#b-kind")
	b.do(chromedp.KeyEvent("On a day"))
	if _, clicks := h.(mouse); clicks { // which has opened a list to choose from
		b.do(chromedp.KeyEvent(kb.Enter))
	}
	b.until("the day of the month", `document.querySelector("#b-kind").value === "day" && !document.querySelector("[data-for~=day]:has(#b-day)").hidden`)
	b.fill(h, "#b-day", "15")
	b.says("#b-shown", "0 0 3 15 * ?")
	h.press(b, "#b-write")
	b.until("the expression", `document.activeElement.matches("#f-conf") && document.activeElement.value === "0 0 3 15 * ?"`)
	b.says("#preview", "-15 03:00:00")
}

// TestLoggedOutMeanwhile: who has to log in before a form is saved comes back to the form, at its
// own address and with what was typed, by mouse, by keyboard and without scripts; nothing is saved
// before it is sent again.
func TestLoggedOutMeanwhile(t *testing.T) {
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
			job := x.job(xxljob.Job{Name: "Reindex", Handler: "talk", Schedule: xxljob.Cron("0 0 3 * * ?"), Param: "all"})
			b := newTab(t, x.origin)
			b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
			b.scripts(f.scripts)
			b.open(mount + "jobs/" + strconv.FormatInt(job.ID, 10) + "/edit")
			b.fill(f.hand, "#f-conf", "0 30 4 * * ?")
			b.fill(f.hand, "#f-param", "only customers")
			x.endSessions("root")
			f.hand.press(b, "#jobform button.primary")
			x.comeBack(b, f.hand, f.scripts, job)
			f.hand.press(b, "#jobform button.primary")
			b.says(".said", "saved")
			if now := must1(x.store.Job(t.Context(), job.ID)); now.Schedule.Conf != "0 30 4 * * ?" || now.Param != "only customers" {
				t.Errorf("saved is %v, %q", now.Schedule, now.Param)
			}
			for _, fault := range b.takeFaults() {
				t.Error(fault)
			}
		})
	}
}

// comeBack logs in where a form of the job was sent, and checks the form that is there then.
func (x *site) comeBack(b *tab, h hand, scripts bool, job xxljob.Job) {
	b.Helper()
	b.says("main", "Log in to get back the form you submitted")
	b.fill(h, "#name", "root")
	b.fill(h, "#password", password)
	h.press(b, "main form button.primary")
	if !scripts {
		b.says("h1", "You are logged in")
		b.scripts(true) // those of the check; the page's own do not begin any more
		for _, fault := range b.check() {
			b.Error(fault)
		}
		b.scripts(false)
		h.press(b, "#goon button")
	}
	b.says("main", "This is the form you submitted before logging in.")
	b.until("all of the form", `document.readyState === "complete" && document.querySelector("#f-conf") && document.querySelector("#f-param")`)
	address := mount + "jobs/" + strconv.FormatInt(job.ID, 10) + "/edit"
	if at := eval[string](b, `location.pathname + location.search`); at != address {
		b.Errorf("the form is at %s, want %s", at, address)
	}
	history, err := chromedp.Call(b.ctx, page.GetNavigationHistory, cdp.Empty{})
	must(b.T, err)
	for _, entry := range history.Entries {
		if scripts && strings.HasSuffix(entry.URL, "/login") {
			b.Errorf("going back comes to %s, which leads here again", entry.URL)
		}
	}
	if typed := eval[string](b, `document.querySelector("#f-conf").value + ", " + document.querySelector("#f-param").value`); typed != "0 30 4 * * ?, only customers" {
		b.Errorf("the form has %s", typed)
	}
	if now := must1(x.store.Job(context.Background(), job.ID)); now.Version != job.Version {
		b.Errorf("the login has saved version %d", now.Version)
	}
	// Who opens the address gets the form as it is stored.
	if !eval[bool](b, `fetch(location.href).then(r => r.text()).then(t => t.includes('id="jobform"') && t.includes("0 0 3 * * ?"))`) {
		b.Error("the address does not lead to the form")
	}
}

// TestFirstUser: the code that the process has printed leads to the first user, who is logged in.
func TestFirstUser(t *testing.T) {
	browser(t)
	x := newSite(t)
	code := must1(console.SetupCode(context.Background(), x.store))
	b := newTab(t, x.origin)
	b.open(mount)
	b.until("the page", `location.pathname.endsWith("/setup")`)
	for field, text := range map[string]string{"#code": strings.ToLower(code), "#name": "wang", "#title": "王小明", "#password": password, "#again": password} {
		b.fill(mouse{}, field, text)
	}
	mouse{}.press(b, "main form button.primary")
	b.says("h1", "Overview")
	b.says("main", "There are no jobs here yet")
	b.says(".menu summary", "王小明")
}

// tick ticks a box.
func (b *tab) tick(h hand, box string) {
	b.Helper()
	h.reach(b, box)
	if _, keys := h.(keyboard); keys {
		b.do(chromedp.KeyEvent(" "))
	}
	b.until(box, `document.querySelector(`+quoted(box)+`).checked`)
}

// TestTags: jobs are ticked in the list, and given tags and rid of others, by mouse, by keyboard
// and without scripts.
func TestTags(t *testing.T) {
	browser(t)
	for _, f := range []struct {
		name    string
		hand    hand
		scripts bool
		width   int64
	}{{"mouse", mouse{}, true, 1280}, {"keyboard", keyboard{}, true, 1280}, {"narrow", mouse{}, true, 360}, {"without scripts", keyboard{}, false, 1280}} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			x := newSite(t)
			x.user("root")
			one := x.job(xxljob.Job{Name: "One", Handler: "export", Schedule: xxljob.Manual(), Tags: []string{"old"}})
			two := x.job(xxljob.Job{Name: "Two", Handler: "export", Schedule: xxljob.Manual(), Tags: []string{"old"}})
			b := newTab(t, x.origin)
			b.looks(combination{"en", "light", f.width}, map[string]string{"xxljob_session": x.session("root")})
			b.do(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !f.scripts}))
			b.open(mount + "jobs")
			b.tick(f.hand, `input[name=id][value="`+strconv.FormatInt(one.ID, 10)+`"]`)
			if to := eval[string](b, `document.querySelector(".bulk [formaction]").formAction`); to != x.origin+mount+"jobs/export" {
				b.Errorf("what is ticked is exported by %s", to)
			}
			f.hand.press(b, ".bulk button[value=tag]")
			b.says("h1", "Tags of 1 job")
			b.fill(f.hand, "#add", "new, newer")
			b.tick(f.hand, "#off-0")
			f.hand.press(b, "main form button.primary")
			b.says(".said", "Done for 1 of 1.")
			f.hand.press(b, ".after a")
			b.says(".joblist .tags", "newer")
			for id, want := range map[int64]string{one.ID: "new newer", two.ID: "old"} {
				if got := strings.Join(must1(x.store.Job(context.Background(), id)).Tags, " "); got != want {
					b.Errorf("the tags are %q, want %q", got, want)
				}
			}
			for _, fault := range b.takeFaults() {
				t.Error(fault)
			}
		})
	}
}

// TestPreviewInTheEnd: who types more than is answered is told what the last text means all the
// same, be it that the server has had enough or that nobody answers.
func TestPreviewInTheEnd(t *testing.T) {
	browser(t)
	t.Parallel()
	x := newSite(t)
	x.user("root")
	b := newTab(t, x.origin)
	b.looks(combination{"en", "light", 1280}, map[string]string{"xxljob_session": x.session("root")})
	b.open(mount + "jobs/new")
	b.until("the preview", `document.querySelector("#preview").childElementCount > 0`)
	for _, c := range []struct{ what, first, conf, says string }{
		{"too many", `Promise.resolve(new Response("too many", {status: 429, headers: {"Retry-After": "1"}}))`, "0 31 4 * * ?", "04:31"},
		{"no answer", `Promise.reject(new TypeError("no network"))`, "0 32 4 * * ?", "04:32"},
	} {
		eval[bool](b, `(() => { const real = window.fetch; let n = 0; window.fetch = (...a) => { if (++n === 1) { window.fetch = real; window.refused = true; return `+c.first+` } return real(...a) }; window.refused = false; return true })()`)
		b.fill(mouse{}, "#f-conf", c.conf)
		b.says("#preview", c.says)
		if !eval[bool](b, `window.refused`) {
			b.Errorf("%s: nothing was refused", c.what)
		}
	}

	// While other pages of the session ask all the time, too.
	eval[bool](b, `(() => { window.seen = {}; const ask = async () => { const res = await fetch(document.querySelector("#preview").dataset.preview + "?type=NONE"); window.seen[res.status] = true }; window.asks = setInterval(ask, 50); return true })()`)
	b.until("too many", `window.seen[429]`)
	b.fill(mouse{}, "#f-conf", "0 33 4 * * ?")
	b.until("more of them", `window.seen[200]`)
	eval[bool](b, `(clearInterval(window.asks), true)`)
	b.says("#preview", "04:33")
	b.takeFaults() // that something was refused is one to the browser
}

// TestForcedColors: main pages break no rule where the system has the colors, and what is chosen
// is told apart there.
func TestForcedColors(t *testing.T) {
	browser(t)
	t.Parallel()
	x, still := filled(t), standing(t)
	sites := map[string]*site{"filled": x, "standing": still}
	c, dir := combination{"en", "dark", 1280}, pictures(t)
	sessions := map[string]string{"filled": x.session("root"), "standing": still.session("root")}
	main := map[string]bool{"login": true, "overview": true, "jobs": true, "job": true, "job-once": true, "form-faults": true, "form-conflict": true, "runs": true, "run-failed": true, "run-running": true, "log": true, "executors-of-app": true, "timetable-ran": true, "changes": true, "which": true, "form-which": true, "run-broadcast": true, "run-retried": true}
	for _, p := range pages(x, still, still) {
		if !main[p.name] {
			continue
		}
		delete(main, p.name)
		t.Run(p.name, func(t *testing.T) {
			b := newTab(t, sites[p.site].origin)
			cookies := map[string]string{"xxljob_session": sessions[p.site]}
			if p.out {
				cookies = nil
			}
			b.looks(c, cookies)
			b.do(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}, {Name: "prefers-color-scheme", Value: "dark"}}}))
			b.show(p, c, filepath.Join(dir, "forced-colors-"+p.name+".png"))
			if !eval[bool](b, `matchMedia("(forced-colors: active)").matches`) {
				t.Error("the colors are not forced")
			}
			if p.out {
				return
			}
			border := func(what string) string {
				return eval[string](b, `(e => e ? getComputedStyle(e).borderTopWidth + " " + getComputedStyle(e).borderTopStyle : "none there")(document.querySelector(`+quoted(what)+`))`)
			}
			if got := border(".rail a[aria-current]"); got != "2px solid" {
				t.Errorf("where one is has a border of %s", got)
			}
		})
	}
	if len(main) > 0 {
		t.Errorf("there are no pages %v", main)
	}
}
