package browser

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/store/storetest"
)

// shown is a page as it is to be looked at.
type shown struct {
	name string
	site string // "filled", "standing", at which nothing moves, "lengthy", with long names, "well", at which all is, "empty", which has a user and nothing else, or "new", which has not even that
	out  bool   // for who is not logged in
	as   string // the user, where it is not root
	path string
	look string // what was chosen, beside language and zone, as the cookie says it
	then string // what is done there, as an expression; empty for nothing
	sign string // what is there when it is done
}

// submitted is what fills fields of a form and sends it past the browser's own checks.
func submitted(form, values string) string {
	return `(() => { const f = document.querySelector("` + form + `"); for (const [name, value] of Object.entries(` + values + `)) f.elements[name].value = value; f.noValidate = true; f.requestSubmit() })()`
}

// bulk ticks the rows of the list of jobs and sends its form with more values.
func bulk(rows, values string) string {
	return `(() => { const f = document.querySelector("#bulk"); for (const t of f.querySelectorAll("` + rows + ` input[name=id]")) t.checked = true; for (const [name, value] of Object.entries(` + values + `)) { const i = document.createElement("input"); i.type = "hidden"; i.name = name; i.value = value; f.append(i) } f.submit() })()`
}

// pages are all pages, and the states of them that look different.
func pages(x, still, long *site) []shown {
	id := func(n int64) string { return strconv.FormatInt(n, 10) }
	job, run := func(name string) string { return "jobs/" + id(x.jobs[name]) }, func(name string) string { return "runs/" + id(x.runs[name]) }
	list := []shown{
		{name: "setup", site: "new", out: true, path: "setup"},
		{name: "setup-faults", site: "new", out: true, path: "setup", then: submitted("main form", `{code: "no such code", name: "王 小明", password: "short", again: "other"}`), sign: ".fault"},
		{name: "login", site: "filled", out: true, path: "login"},
		{name: "login-wrong", site: "filled", out: true, path: "login", then: submitted("main form", `{name: "guest-" + String(Math.random()).slice(2, 8), password: "wrong"}`), sign: "[role=alert]"},
		{name: "account", site: "filled", path: "account?said=ended"},
		{name: "account-faults", site: "empty", path: "account", then: submitted("form[action$=password]", `{old: "wrong horse", password: "short", again: "other"}`), sign: ".fault"},
		{name: "users", site: "filled", path: "users?said=user"},
		{name: "user", site: "filled", path: "users/edit?name=zhao.min"},
		{name: "user-faults", site: "filled", path: "users/new", then: submitted("main form", `{name: "zhao.min", title: "赵敏", password: "`+password+`"}`), sign: ".fault"},
		{name: "user-added", site: "filled", path: "users/new", then: submitted("main form", `{name: "guest-" + String(Math.random()).slice(2, 8), title: "李雷", rest: "viewer", password: "`+password+`"}`), sign: ".secret"},
		{name: "user-remove", site: "filled", path: "users/remove?name=zhao.min"},
		{name: "user-tokens", site: "filled", path: "account/tokens"},
		{name: "user-tokens-made", site: "filled", path: "account/tokens", then: submitted("main form", `{name: "t" + String(Math.random()).slice(2, 8), password: "`+password+`"}`), sign: ".secret"},
		{name: "user-token-revoke", site: "filled", path: "account/tokens/remove?id=" + id(x.token)},
		{name: "users-token-revoke", site: "filled", path: "users/tokens/remove?name=root&id=" + id(x.token)},
		{name: "tokens", site: "filled", path: "tokens"},
		{name: "tokens-none", site: "empty", path: "tokens"},
		{name: "tokens-faults", site: "filled", path: "tokens", then: submitted("main form", `{name: "ci", apps: "orders orders", until: "2020-01-01T00:00:00", password: "wrong"}`), sign: ".fault"},
		{name: "tokens-made", site: "filled", path: "tokens", then: submitted("main form", `{name: "t" + String(Math.random()).slice(2, 8), apps: "orders, billing", for: "2160h0m0s", password: "`+password+`"}`), sign: ".secret"},
		{name: "token-revoke", site: "filled", path: "tokens/remove?name=ci+of+the+orders+team"},
		{name: "settings", site: "filled", path: "settings"},
		{name: "overview", site: "filled", path: "overview"},
		{name: "overview-empty", site: "empty", path: "overview"},
		{name: "overview-well", site: "well", path: "overview"},
		{name: "overview-troubled", site: "troubled", path: "overview"},
		{name: "overview-failing", site: "standing", path: "overview?range=7d"},
		{name: "job-mute", site: "filled", path: job("Nightly export") + "/mute"},
		{name: "mute", site: "standing", path: "mute?key=no-executor%2Fmarketplace"},
		{name: "job-muted", site: "standing", path: "jobs/" + id(still.jobs["Stopped by its schedule"]) + "/mute"},
		{name: "run-waiting", site: "standing", path: "runs/" + id(still.runs["planned"])},
		{name: "jobs", site: "filled", path: "jobs"},
		{name: "jobs-filtered", site: "filled", path: "jobs?state=on&tag=ledger&app=orders"},
		{name: "jobs-nothing-found", site: "filled", path: "jobs?text=no+such+job&state=off"},
		{name: "jobs-empty", site: "empty", path: "jobs"},
		{name: "job", site: "filled", path: job("Nightly export") + "?said=saved"},
		{name: "job-once", site: "filled", path: job("Nightly export"), then: `document.querySelector("[data-opens=once]").click()`, sign: "#once[open]"},
		{name: "job-stopped", site: "filled", path: job("stopped")},
		{name: "form-new", site: "filled", path: "jobs/new?app=orders"},
		{name: "form-edit", site: "filled", path: job("Nightly export") + "/edit"},
		{name: "form-former-version", site: "filled", path: job("Nightly export") + "/edit?version=1"},
		{name: "form-faults", site: "filled", path: "jobs/new?app=orders", then: submitted("#jobform", `{conf: "0 0 3 * *", children: "1,x", timeout: "soon"}`), sign: ".fault"},
		{name: "form-conflict", site: "filled", path: job("Nightly export") + "/edit", then: submitted("#jobform", `{version: 1, timeout: "600", conf: "0 30 4 * * ?", author: "李雷"}`), sign: ".alert .rows"},
		{name: "job-stop", site: "filled", path: job("Nightly export"), then: `document.querySelector("[data-opens=stop]").click()`, sign: "#stop[open]"},
		{name: "job-stop-page", site: "filled", path: job("Nightly export") + "/stop"},
		{name: "job-once-page", site: "filled", path: job("Nightly export") + "/once"},
		{name: "job-turn", site: "filled", path: job("stopped") + "/start"},
		{name: "bulk-stop", site: "filled", path: "jobs", then: bulk("tr", `{do: "stop"}`), sign: "main button.danger"},
		{name: "form-conflict-merged", site: "filled", path: job("Nightly export") + "/edit", then: submitted("#jobform", `{version: 1, timeout: "1200", param: '{"table":"ledger","since":"yesterday","columns":["id","amount","currency"]}', author: "李雷"}`), sign: ".note .diff"},
		{name: "runs-held", site: "filled", path: "runs", then: `document.querySelector("#live td input").click()`, sign: "#live-state[data-state=held]"},
		{name: "runs-away", site: "filled", path: "runs", then: `(window.fetch = () => new Promise(() => {}))`, sign: "#live-state[data-state=away]"},
		{name: "remove", site: "filled", path: job("stopped") + "/remove"},
		{name: "jobs-ticked", site: "filled", path: "jobs", then: `document.querySelector("#tick-all").click()`, sign: ".bulk button:not(:disabled)"},
		{name: "bulk-tag", site: "filled", path: "jobs", then: bulk("tr", `{do: "tag"}`), sign: "#add"},
		{name: "bulk-tag-faults", site: "filled", path: "jobs", then: bulk("tr", `{do: "tag", sure: "yes", off: "nightly", add: "a tag that is longer than sixty-four bytes and so is none that anybody keeps, 标签"}`), sign: "#add-fault"},
		{name: "bulk-tag-done", site: "filled", path: "jobs?text=quarterly", then: bulk("tr", `{do: "tag", sure: "yes", add: "quarter"}`), sign: ".said"},
		{name: "runs", site: "filled", path: "runs"},
		{name: "runs-nothing-found", site: "filled", path: "runs?state=lost&app=orders"},
		{name: "runs-empty", site: "empty", path: "runs"},
		{name: "run-succeeded", site: "filled", path: run("good")},
		{name: "run-failed", site: "filled", path: run("bad")},
		{name: "run-running", site: "filled", path: run("live")},
		{name: "run-kill", site: "filled", path: run("live"), then: `document.querySelector("[data-opens=kill]").click()`, sign: "#kill[open]"},
		{name: "run-kill-page", site: "filled", path: run("live") + "/kill"},
		{name: "runs-bulk", site: "standing", path: "runs", then: bulk("tr", `{do: "again"}`), sign: "main form.runbulk"},
		{name: "run-again", site: "filled", path: run("bad") + "/again"},
		{name: "log", site: "filled", path: run("good") + "/log"},
		{name: "log-unwrapped", site: "filled", path: run("good") + "/log", look: "&wrap=off"},
		{name: "timetable", site: "standing", path: "timetable?range=24h"},
		{name: "timetable-ran", site: "filled", path: "timetable?order=name"},
		{name: "timetable-nothing-found", site: "filled", path: "timetable?text=no+such+job"},
		{name: "executors", site: "standing", path: "executors"},
		{name: "executors-nodes", site: "filled", path: "executors?tab=nodes"},
		{name: "executors-shards", site: "standing", path: "executors?tab=shards"},
		{name: "executors-of-app", site: "filled", path: "executors?app=orders"},
		{name: "executors-dark", site: "standing", path: "executors?app=billing"},
		{name: "executors-troubled", site: "troubled", path: "executors"},
		{name: "executors-empty", site: "empty", path: "executors?tab=nodes"},
		{name: "changes", site: "filled", path: "changes"},
		{name: "changes-nothing-found", site: "filled", path: "changes?actor=nobody"},
		{name: "troubles", site: "troubled", path: "troubles"},
		{name: "away", site: "away", out: true, path: "overview"},
		{name: "troubles-none", site: "empty", path: "troubles"},
		{name: "jobs-troubled", site: "troubled", path: "jobs"},
		{name: "jobs-many", site: "standing", path: "jobs"},
		{name: "jobs-stopped", site: "standing", path: "jobs?state=off&app=ledger"},
		{name: "runs-states", site: "standing", path: "runs"},
		{name: "run-timed-out", site: "standing", path: "runs/" + id(still.runs["timed_out"])},
		{name: "run-skipped", site: "standing", path: "runs/" + id(still.runs["skipped"])},
		{name: "job-failing", site: "standing", path: "jobs/" + id(still.jobs["Rates"])},
		{name: "job-broken", site: "standing", path: "jobs/" + id(still.jobs["Stopped by its schedule"])},
		{name: "run-broadcast", site: "standing", path: "runs/" + id(still.runs["part"])},
		{name: "run-retried", site: "standing", path: "runs/" + id(still.runs["retried"])},
		{name: "which", site: "standing", path: "runs?form=1&job=ledger"},
		{name: "form-which", site: "filled", path: "jobs/new?app=orders", then: submitted("#jobform", `{name: "Report", handler: "export", "children.add": "re"}`), sign: "select#f-children-add"},
		{name: "not-found", site: "filled", path: "jobs/999999"},
		{name: "forbidden", site: "filled", as: "zhao.min", path: "users"},
		{name: "no-such-range", site: "filled", path: "timetable?range=10y"},
		{name: "overview-nobody", site: "filled", as: "new.colleague", path: "overview"},
		{name: "jobs-nobody", site: "filled", as: "new.colleague", path: "jobs"},
		{name: "jobs-columns", site: "filled", path: "jobs", then: `document.querySelector(".columnmenu summary").click()`, sign: ".columnmenu[open] .sheet"},
		{name: "jobs-all-columns", site: "filled", path: "jobs", look: "&density=compact&columns.jobs=id,tags,app,key,handler,schedule,next,running,last,median,author,state"},
		{name: "runs-all-columns", site: "filled", path: "runs", look: "&columns.runs=job,handler,created,scheduled,took,where,param,result"},
		{name: "job-lengthy", site: "lengthy", path: "jobs/" + id(long.jobs["lengthy"])},
		{name: "run-lengthy", site: "lengthy", path: "runs/" + id(long.runs["lengthy"])},
		{name: "jobs-lengthy", site: "lengthy", path: "jobs"},
		{name: "jobs-lengthy-all-columns", site: "lengthy", path: "jobs", look: "&columns.jobs=id,tags,app,key,handler,schedule,next,running,last,median,author,state"},
		{name: "runs-lengthy", site: "lengthy", path: "runs"},
		{name: "runs-lengthy-all-columns", site: "lengthy", path: "runs", look: "&columns.runs=job,late,handler,created,took,where,param,result,run,type"},
		{name: "overview-lengthy", site: "lengthy", path: "overview"},
		{name: "executors-lengthy", site: "lengthy", path: "executors"},
		{name: "timetable-lengthy", site: "lengthy", path: "timetable?range=24h"},
		{name: "jobs-all-states", site: "standing", path: "jobs", look: "&columns.jobs=id,tags,app,key,handler,schedule,next,running,last,median,author,state"},
		{name: "runs-all-states-all-columns", site: "standing", path: "runs", look: "&columns.runs=job,late,handler,created,took,where,param,result,run,type"},
		{name: "keys", site: "filled", path: "jobs", then: `document.querySelector("[data-opens=keys]").click()`, sign: "#keys[open]"},
		{name: "look", site: "filled", path: run("good"), then: `document.querySelector("details.menu summary").click()`, sign: "details.menu[open] .sheet"},
	}
	for _, state := range []string{"started", "dispatched", "succeeded", "failed", "killed", "lost", "refused", "discarded", "cancelled", "snoozed"} { // the others are above
		list = append(list, shown{name: "run-is-" + state, site: "standing", path: "runs/" + id(still.runs[state])})
	}
	return list
}

// troubled is a scheduler with troubles of each kind that look different.
type troubled struct{ xxljob.Scheduler }

func (troubled) Troubles() []xxljob.Trouble {
	at := time.Now().Add(-26 * time.Minute)
	return []xxljob.Trouble{
		{Cause: xxljob.TroubleLockedRows, Since: at, Late: 1204, Holder: "pid 4711, user backup, pg_dump from 10.1.4.7:51422, idle in transaction for 13m8s",
			Detail: "somebody's transaction holds rows that the scheduler has to lock: 12 jobs are not planned and 1192 runs are not started, due more than 15s ago", Remedy: "end that transaction"},
		{Cause: xxljob.TroubleNoExecutor, App: "billing", Since: at.Add(7 * time.Minute), Late: 3, Detail: "no address: app billing has no live executor", Remedy: "start an executor of this app"},
		{Cause: xxljob.TroubleUnknownZone, App: "orders", JobID: 2021692778, Since: at.Add(9 * time.Minute), Late: 1, Detail: "unknown time zone Asia/Shanghai: this process has no data of it", Remedy: "give each node the time zones"},
		{Cause: xxljob.TroubleFalseRefusal, App: "orders", Address: "http://orders.prod.svc.cluster.local:9999/", Since: at.Add(20 * time.Minute), Detail: "run 7214 was refused in the name of the executor, which has run it all the same: 503 Service Unavailable", Remedy: "look at what stands in front"},
		{Cause: "of-a-newer-release", Since: at.Add(21 * time.Minute), Detail: "something else", Remedy: "what the scheduler says of it"},
	}
}

// cutOff is a scheduler whose store does not answer.
type cutOff struct{ xxljob.Scheduler }

func (cutOff) Ready() error {
	return &xxljob.NotReadyError{Reasons: []string{"store-away"}, Errs: []error{errors.New("the store has acknowledged no beat for 41s: dial tcp 10.1.4.7:5432: connect: connection refused")}}
}

func (cutOff) Stats() xxljob.Stats {
	return xxljob.Stats{Node: "orders-7c9d-x2v4", Held: 1204, Due: 31, Shards: 64, Running: map[string]int{"orders": 2, "账单": 17}}
}

// TestPages: each page in each language, theme and width breaks no rule that check knows. Where
// not all are asked for, each page is shown in one combination, which depends on the commit.
func TestPages(t *testing.T) {
	browser(t)
	sites := map[string]*site{"filled": filled(t), "standing": standing(t), "lengthy": lengthy(t), "well": newSite(t), "empty": newSite(t), "new": newSite(t),
		"troubled": newSiteOf(t, func(s xxljob.Scheduler) xxljob.Scheduler { return troubled{s} })}
	sites["away"] = newSiteOf(t, func(s xxljob.Scheduler) xxljob.Scheduler { return cutOff{s} })
	sites["away"].serve(cutOff{sites["away"].s}, console.Loopback(console.Editor))
	sites["away"].faults.Inject("View", storetest.Fault{Before: true, Err: errors.New("dial tcp 10.1.4.7:5432: connect: connection refused")})
	sites["well"].user("root")
	well := sites["well"].job(xxljob.Job{Name: "Nightly export", Handler: "export", Schedule: xxljob.Cron("0 0 3 * * ?")})
	sites["well"].wait(sites["well"].trigger(well), "ended", ended)
	sites["empty"].user("root")
	sites["troubled"].user("root")
	sites["troubled"].job(xxljob.Job{Name: "Nightly export", Handler: "export", Schedule: xxljob.Cron("0 0 3 * * ?")})
	dir := pictures(t)
	list, turn := pages(sites["filled"], sites["standing"], sites["lengthy"]), turnOf(t)
	for i, c := range combinations() {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			tabs := map[string]*tab{}
			for n, p := range list {
				if !everything() && (n+turn)%len(combinations()) != i {
					continue
				}
				key := p.site
				if p.out {
					key += " out"
				}
				key += p.look + p.as
				if tabs[key] == nil {
					tabs[key] = newTab(t, sites[p.site].origin)
					tabs[key].away = p.site == "away"
					cookies := map[string]string{"xxljob_look": "language=" + c.language + "&zone=Asia%2FShanghai" + p.look}
					if !p.out {
						cookies["xxljob_session"] = sites[p.site].session(cmp.Or(p.as, "root")) // so many previews a second are answered to each
					}
					tabs[key].looks(c, cookies)
				}
				t.Run(p.name, func(t *testing.T) { tabs[key].inTest(t).show(p, c, filepath.Join(dir, p.name+"-"+c.String()+".png")) })
			}
		})
	}
}

// TestEachRouteIsShown: each route that answers with a page is among the pages.
func TestEachRouteIsShown(t *testing.T) {
	others := []string{"asset/{name}", "health", "", "jobs/find", "jobs/export", "preview", "jobs/{id}/export", "runs/{id}/previous", "runs/{id}/next", "runs/{id}/log/file", "apps/find"}
	var shown []string
	x := &site{jobs: map[string]int64{}, runs: map[string]int64{}}
	for _, p := range pages(x, x, x) {
		path, _, _ := strings.Cut(p.path, "?")
		shown = append(shown, regexp.MustCompile(`/\d+`).ReplaceAllString(path, "/{id}"))
	}
	table := regexp.MustCompile(`\{method: get, pattern: "([^"]*)"`).FindAllStringSubmatch(string(must1(os.ReadFile("../routes.go"))), -1)
	if len(table) < 40 {
		t.Fatalf("the table of routes has %d lines", len(table))
	}
	for _, route := range table {
		if !slices.Contains(others, route[1]) && !slices.Contains(shown, route[1]) {
			t.Errorf("no page of %s", route[1])
		}
	}
}

// inTest is the tab in the hands of a subtest.
func (b *tab) inTest(t *testing.T) *tab {
	b.T = t
	return b
}

// show goes to a page, checks it and keeps a picture of it.
func (b *tab) show(p shown, c combination, picture string) {
	b.Helper()
	b.open(mount + p.path)
	if p.then != "" {
		b.do(discard(chromedp.Evaluate[any]("void " + p.then)))
		b.until(p.name, `document.querySelector(`+quoted(p.sign)+`) && document.readyState === "complete"`)
	}
	if eval[bool](b, `document.querySelector("[data-preview]") !== null`) {
		b.until("the preview", `document.querySelector("[data-preview]").childElementCount > 0`)
	}
	time.Sleep(100 * time.Millisecond) // for what a page does when it is there
	for _, fault := range b.check() {
		b.Error(fault)
	}
	b.picture(c, picture)
	for _, width := range widths {
		if width == c.width {
			continue
		}
		b.do(chromedp.EmulateViewport(width, combination{width: width}.height()))
		for _, fault := range eval[[]string](b, fits) {
			b.Errorf("at %d px: %s", width, fault)
		}
		if everything() && c.width > 640 && slices.Contains([]int64{1440, 1024, 390}, width) {
			at := combination{c.language, c.theme, width}
			b.picture(at, strings.TrimSuffix(picture, c.String()+".png")+at.String()+".png")
		}
	}
	b.do(chromedp.EmulateViewport(c.width, c.height()))
}

// everything reports whether each page is to be shown in each combination, with pictures of more widths.
func everything() bool { return os.Getenv("XXLJOB_BROWSER_ALL") == "1" }

// widths are those at which each page has to fit: of screens, those at which it is laid out otherwise, and
// the narrowest with twice as large a text.
var widths = []int64{1440, 1280, 1140, 1024, 1000, 768, 640, 390, 360}

// picture keeps a picture of the whole page, made as if the screen were as high as that, since
// what sticks to an edge of it would stand in the middle otherwise.
func (b *tab) picture(c combination, name string) {
	b.Helper()
	b.do(chromedp.EmulateViewport(c.width, max(c.height(), eval[int64](b, `document.documentElement.scrollHeight`))))
	shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	must(b.T, err)
	must(b.T, os.WriteFile(name, shot, 0o644))
	b.do(chromedp.EmulateViewport(c.width, c.height()))
}

// discard leaves out the value of an action.
func discard[V any](a chromedp.Action[V]) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := a(ctx, t)
		return chromedp.Void{}, err
	}
}

// pictures is the directory for pictures of pages.
func pictures(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("XXLJOB_SCREENSHOTS")
	if dir == "" {
		dir = t.ArtifactDir()
	}
	must(t, os.MkdirAll(dir, 0o755))
	return dir
}

// turnOf is a number that changes with the commit, or with the day where there is none.
func turnOf(t *testing.T) int {
	t.Helper()
	seed, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		seed = []byte(time.Now().UTC().Format(time.DateOnly))
	}
	sum := sha256.Sum256(seed)
	return int(binary.BigEndian.Uint32(sum[:]) % 1e6)
}
