package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/store"
)

// TestOverview: the first page says that all is well where it is; of a job that fails it says the
// cause, the error itself, since when and where its log is; an app without executors is one line for
// all of its jobs. Who may not see an app is told nothing of it.
func TestOverview(t *testing.T) {
	onBothStores(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		root.get("overview").is(http.StatusOK).has("There are no jobs here yet")

		must(t, x.s.Handle("work", func(_ context.Context, task *xxljob.Task) error {
			if strings.Contains(task.Param, "bad") {
				return errors.New("dial tcp 10.1.2.3:5432: i/o timeout")
			}
			return nil
		}))
		must(t, x.s.Start(t.Context()))
		t.Cleanup(func() { _ = x.s.Stop(context.WithoutCancel(t.Context())) })
		good := x.job("orders", "good one")
		x.ends(good, xxljob.StateSucceeded)
		root.get("overview").is(http.StatusOK).has("All is well", "good one", "runs in the last hour").lacks("Needs attention")

		bad := x.job("orders", "bad one")
		r := x.ends(bad, xxljob.StateFailed)
		dark, err := x.store.AddJob(t.Context(), xxljob.Job{App: "dark <app>", Name: "lonely", Handler: "work", Schedule: xxljob.Cron("0 0 3 * * ?"), Next: time.Now().Add(time.Hour)}, nil)
		must(t, err)
		root.get("overview").is(http.StatusOK).has("2 things need attention", "Failing", "bad one", "dial tcp 10.1.2.3:5432: i/o timeout", "1 of the last 1",
			"No executor", "dark <app>", "Start an executor of the app", "1 app has none", "1 jobs failing now", "2 runs in the last hour", "1 executors alive").lacks("All is well")
		if !strings.Contains(root.body, "runs/"+strconv.FormatInt(r.ID, 10)+"/log") {
			t.Error("no link to the log of the newest failure")
		}
		if !root.before("No executor", "Failing") {
			t.Error("an app without executors explains more than a job that fails, and stands behind it")
		}

		viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"dark <app>": console.Viewer}})
		viewer.get("overview").is(http.StatusOK).has("1 thing needs attention", "dark <app>", "lonely",
			"0 jobs failing now", "0 runs in the last hour", "0 running", "0 executors alive").lacks("bad one", "good one", "dial tcp")
		x.user(console.User{Name: "nobody", Apps: map[string]console.Role{"elsewhere": console.Viewer}}).get("overview").is(http.StatusOK).lacks("bad one", "dark <app>", "lonely")

		// The remedies are followed.
		must(t, x.s.StopJob(t.Context(), dark.ID))
		bad.Param = "mended"
		_, err = x.s.UpdateJob(t.Context(), bad)
		must(t, err)
		x.ends(bad, xxljob.StateSucceeded)
		root.get("overview").has("All is well").lacks("Needs attention", "i/o timeout")
	})
}

// ends runs a job once, and waits until the run has ended so.
func (x *site) ends(j xxljob.Job, state xxljob.State) (r xxljob.Run) {
	x.Helper()
	ids, err := x.s.Trigger(context.Background(), j.ID, xxljob.Trigger{})
	must(x.T, err)
	await.Until(x.T, "the run of "+j.Name+" ends", func() bool {
		r, err = x.store.Run(context.Background(), ids[0])
		must(x.T, err)
		return r.State == state
	})
	return r
}

// TestEqualErrorsTellNothing: who has a job fail with a text does not learn by that whether another fails
// alike whose error is secret, or is hidden by the host: neither by what is put together, nor by the key
// of a mute, which anybody could work out of a guess.
func TestEqualErrorsTellNothing(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		for _, host := range []bool{false, true} {
			x := newSite(t, func(c *console.Config) {
				if host {
					c.Redact = func(_ string, field console.Field, text string) string {
						return map[bool]string{true: "hidden by the host", false: text}[field == console.FieldResult && text == "the password is swordfish"]
					}
				}
			})
			must(t, x.s.Handle("work", func(context.Context, *xxljob.Task) error { return errors.New("the password is swordfish") }))
			must(t, x.s.Start(t.Context()))
			operator := x.user(console.User{Name: "operator", Apps: map[string]console.Role{"orders": console.Operator}})
			for _, name := range []string{"a guess", "the hidden one"} {
				j, err := x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: name, Handler: "work", Secret: name != "a guess" && !host, Schedule: xxljob.Cron("0 0 3 * * ?")})
				must(t, err)
				x.ends(j, xxljob.StateFailed)
				page := operator.get("overview").has("a guess", name).lacks("further")
				own := "key=failing%2Forders%2F" + strconv.FormatInt(j.ID, 10) + "\""
				if (j.Secret || host) != strings.Contains(page.body, own) {
					t.Errorf("host %t, %s: the key of the mute does not go by the job alone where the error is hidden", host, name)
				}
			}
			operator.get("overview").has("2 things need attention")
			viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"orders": console.Viewer}}) // for whom nothing was counted yet
			if viewer.get("jobs"); !strings.HasSuffix(viewer.presets(), "| 2") {
				t.Errorf("host %t: the rail counts other causes than the overview: %s", host, viewer.presets())
			}
			must(t, x.s.Stop(context.WithoutCancel(t.Context())))
		}
	})
}

// TestOverviewHidesErrors: the error of a secret job is shown to nobody there, and none that the host
// hides.
func TestOverviewHidesErrors(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		for _, host := range []bool{false, true} {
			x := newSite(t, func(c *console.Config) {
				if host {
					c.Redact = func(_ string, field console.Field, text string) string {
						return map[bool]string{true: "hidden by the host", false: text}[field == console.FieldResult]
					}
				}
			})
			must(t, x.s.Handle("work", func(_ context.Context, task *xxljob.Task) error {
				return errors.New("the password is swordfish " + task.Param)
			}))
			must(t, x.s.Start(t.Context()))
			admin := x.admin()
			for _, secret := range []bool{true, false} {
				name := "j" + strconv.FormatBool(secret)
				j, err := x.s.AddJob(t.Context(), xxljob.Job{App: "orders", Name: name, Handler: "work", Param: name, Secret: secret, Schedule: xxljob.Cron("0 0 3 * * ?")})
				must(t, err)
				x.ends(j, xxljob.StateFailed)
				head := admin.get("jobs/" + strconv.FormatInt(j.ID, 10)).has("Failing")
				if secret || host {
					head.lacks("swordfish")
				} else {
					head.has("swordfish")
				}
			}
			page := admin.get("overview").has("Failing", "jtrue", "jfalse").lacks("swordfish jtrue")
			if host {
				page.has("hidden by the host").lacks("swordfish")
			} else {
				page.has("swordfish jfalse")
			}
			must(t, x.s.Stop(context.WithoutCancel(t.Context())))
		}
	})
}

// TestALineOfAHiddenTextIsHidden: the error that is shown of a run is a line of its result, or of what was
// put together of several messages. The host is asked about the whole as well as about the line, wherever
// the line is shown, and what it hides is told by no key of a mute.
func TestALineOfAHiddenTextIsHidden(t *testing.T) {
	const line = "the password is swordfish"
	onBothStores(t, func(t *testing.T) {
		for what, hides := range map[string]func(text string) bool{
			"the whole": func(text string) bool { return strings.Contains(text, line) && text != line },
			"the line":  func(text string) bool { return text == line },
			"the end":   func(text string) bool { return strings.HasPrefix(text, line) && strings.HasSuffix(text, "behind it") },
		} {
			for of, ended := range map[string]store.Result{
				"result":      {State: xxljob.StateFailed, HandleMsg: line + "\nsaid behind it"},
				"long result": {State: xxljob.StateFailed, HandleMsg: line + strings.Repeat("\nsaid behind it", 100)},
				"messages":    {State: xxljob.StateFailed, TriggerMsg: "said before it\n" + line},
			} {
				if what == "the end" && of == "messages" {
					continue
				}
				x := newSite(t, func(c *console.Config) {
					c.Redact = func(_ string, field console.Field, text string) string {
						return map[bool]string{true: "hidden by the host", false: text}[field == console.FieldResult && hides(text)]
					}
				})
				root := x.admin()
				for _, name := range []string{"one", "two"} {
					j := x.job("orders", name)
					ended.RunID = x.parts(j, 1, "")[0].ID
					must1(x.store.Finish(t.Context(), nil, []store.Result{ended}))
					job, run := "jobs/"+itoa(j.ID), "runs/"+itoa(ended.RunID)
					own := "key=failing%2Forders%2F" + itoa(j.ID) + "\""
					if overview := root.get("overview").has(name).lacks("swordfish", "further").body; !strings.Contains(overview, own) {
						t.Errorf("%s, the %s: the key of the mute does not go by the job alone", what, of)
					}
					if of == "result" { // lists have no messages
						root.has("hidden by the host").get(job).has("hidden by the host")
					}
					if root.get(job); of != "result" || what != "the line" {
						root.lacks("swordfish") // else the list of its runs has the whole in a line
					}
					if root.get(run).has("hidden by the host"); what != "the line" {
						root.lacks("swordfish")
					}
				}
			}
		}
	})
}

// TestDarkAppsAreOneLine: apps without executors are one line, which names three of them and leads to the
// executors, where each is muted by itself; the rail counts what the overview does. Each user is told of the
// apps that he sees.
func TestDarkAppsAreOneLine(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		x := newSite(t)
		root := x.admin()
		for _, app := range []string{"ads", "billing", "carts", "deliveries", "账单 <e>"} {
			x.job(app, "of "+app)
		}
		root.get("overview").is(http.StatusOK).has("2 things need attention", "No executor ads , billing , carts and 2 more", "5 enabled jobs", "never", "5 apps have none", "Executors").lacks("executors?app=deliveries")
		for _, link := range []string{`class="acts"> <a href="./executors">`, `<a href="./executors?app=ads">ads</a>`} {
			if !strings.Contains(root.body, link) {
				t.Errorf("no %s in %s", link, root.body)
			}
		}
		viewer := x.user(console.User{Name: "viewer", Apps: map[string]console.Role{"*": console.Viewer}}) // for whom nothing was counted yet
		if viewer.get("jobs"); !strings.HasSuffix(viewer.presets(), "| 2") {
			t.Errorf("the rail counts other causes than the overview: %s", viewer.presets())
		}

		oncall := x.user(console.User{Name: "oncall", Apps: map[string]console.Role{"billing": console.Operator, "账单 <e>": console.Viewer}})
		oncall.get("overview").has("2 things need attention", "No executor billing , 账单 <e>", "2 enabled jobs").lacks("of ads", "and 1 more", "deliveries")
		oncall.get("executors?app=billing").has("No executor", "Mute")
		oncall.get("executors?app=" + url.QueryEscape("账单 <e>")).has("No executor").lacks("Mute")
		oncall.post("mute", url.Values{"key": {"no-executor/billing"}, "for": {"4h0m0s"}}).is(http.StatusOK).has("It is muted", "2 things need attention", "No executor 账单 <e>", "Muted: 1")
		root.get("overview").has("2 things need attention", "No executor ads , carts , deliveries and 1 more", "4 enabled jobs", "Muted: 1")
	})
}
